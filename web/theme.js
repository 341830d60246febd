import { element } from "./dom.js";

const NAME = "hubless-theme";
const CHOICES = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");

// Storage may be forbidden, most often on file://.
const remembered = () => {
  try {
    const choice = localStorage.getItem(NAME);
    return CHOICES.includes(choice) ? choice : "auto";
  } catch {
    return "auto";
  }
};

const remember = (choice) => {
  try {
    localStorage.setItem(NAME, choice);
  } catch {
    // The choice lasts as long as the page.
  }
};

/** Sets data-theme on <html> to light or dark, and notifies what draws on a canvas. */
const apply = (choice) => {
  const theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("themechange"));
};

/** @returns {HTMLElement} the button that goes through auto, light and dark */
export const themeButton = () => {
  let choice = remembered();
  const button = element("button", { type: "button", class: "theme" });
  const show = () => {
    button.textContent = `Theme: ${choice}`;
    apply(choice);
  };
  button.addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    remember(choice);
    show();
  });
  dark.addEventListener("change", () => choice === "auto" && apply(choice));
  show();
  return button;
};
