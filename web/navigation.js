import { goTo, onAddress, readAddress } from "./address.js";
import { cut, element } from "./dom.js";
import { themeButton } from "./theme.js";

/** The bar at the top: links to the sections, the current one marked, and the theme. In narrow windows, a menu. */
export const navigation = (sections) => {
  const links = new Map(sections.map(({ id, short }) => [id, sectionLink(id, short)]));
  const list = element("nav", { id: "sections", "aria-label": "Sections" }, ...links.values());
  const menu = menuButton(list);
  requestAnimationFrame(() => follow(links, menu.show));
  document.querySelector(".skip").addEventListener("click", skip);
  return [menu.button, list, themeButton()];
};

/** The button is seen in narrow windows only; it names the current section and opens the list. */
const menuButton = (list) => {
  const name = element("span", {}, "Summary");
  const button = element(
    "button",
    { type: "button", class: "menu", "aria-controls": "sections", "aria-expanded": "false" },
    element("span", { "aria-hidden": "true" }, "☰ "),
    element("span", { class: "visually-hidden" }, "Sections, now "),
    name,
  );
  const open = (yes) => {
    list.classList.toggle("open", yes);
    button.setAttribute("aria-expanded", String(yes));
  };
  button.addEventListener("click", () => open(!list.classList.contains("open")));
  list.addEventListener("click", () => open(false));
  addEventListener("pointerdown", ({ target }) => {
    if (!list.contains(target) && !button.contains(target)) open(false);
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !list.classList.contains("open")) return;
    event.preventDefault(); // Escape closes the menu only
    open(false);
    button.focus();
  });
  const show = (words) => {
    name.textContent = words;
  };
  return { button, show };
};

// What is selected stays selected, and in the address, while one looks at another section.
const sectionLink = (id, short) =>
  element(
    "a",
    {
      href: `#${id}`,
      onclick: (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab or window
        event.preventDefault();
        goTo({ section: id });
        show(id);
      },
    },
    short,
  );

// The address keeps what it says.
const skip = (event) => {
  event.preventDefault();
  document.getElementById("page").focus();
};

const show = (id) => {
  const section = document.getElementById(id);
  const part = section?.querySelector(":scope > details.deep");
  if (part) part.open = true;
  section?.scrollIntoView();
};

// The section that crosses the upper third of the window is the current one.
const follow = (links, show) => {
  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const link = links.get(entry.target.id);
        if (!entry.isIntersecting) link.removeAttribute("aria-current");
        else {
          link.setAttribute("aria-current", "true");
          show(link.textContent);
        }
      }
    },
    { rootMargin: "-30% 0px -70% 0px" },
  );
  for (const id of links.keys()) watch.observe(document.getElementById(id));
};

/**
 * Scrolls to what the address asks for, says which item or query is not on this page, and clears both at Escape.
 * @param {string[]} sections
 * @param {object|null} details
 */
export const followAddress = (sections, details) => {
  const notice = element("p", { class: "notice", role: "status", hidden: true });
  document.querySelector("header.top").after(notice);
  const known = { hub: idsOf(details?.items, details?.hubs), query: idsOf(details?.queries, details?.changed) };
  onAddress((address, fresh) => {
    const unknown = ["hub", "query"].filter((key) => address[key] !== null && !known[key].has(address[key]));
    notice.hidden = unknown.length === 0;
    notice.replaceChildren(...unknown.map((key) => unknownId(key, address[key])));
    const named = address.section ?? (address.query !== null ? "explorer" : address.hub !== null ? "map" : null);
    if (fresh && unknown.length === 0 && sections.includes(named)) show(named);
  });
  addEventListener("keydown", clearAtEscape);
};

const idsOf = (points, rows) => new Set([...(points?.id ?? []), ...(rows ?? []).map((row) => row.id)]);

const NAMES = { hub: "item", query: "query" };
const unknownId = (key, id) =>
  element(
    "span",
    {},
    `No ${NAMES[key]} of this page has the id `,
    element("span", { class: "user", dir: "auto" }, cut(id, 80)),
    ". ",
  );

const isWritten = (node) => node.matches?.("input[type=search], input[type=text]") && node.value !== "";

// Whatever is open closes first: a list, a picture or a menu that has dealt with the key has prevented it.
const clearAtEscape = (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || isWritten(event.target)) return;
  const { hub, query } = readAddress();
  if (hub !== null || query !== null) goTo({ hub: null, query: null, state: null }, { tell: true });
};
