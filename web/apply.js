import { element, folded } from "./dom.js";
import { prose } from "./format.js";

/** Section 9: how to apply and roll back, provenance, versions, the figures as JSON. */
export const renderApply = (section, figures) => {
  const { apply, provenance, versions } = figures;
  if (apply) {
    section.append(element("p", { class: "user", dir: "auto" }, prose(apply.words)));
    section.append(steps("Apply", apply.steps), steps("Roll back", apply.undo));
  }
  const pairs = (provenance ?? []).concat(figures.made ? [["made", figures.made]] : []);
  const names = Object.entries(versions ?? {});
  const facts = pairs.concat(names.length > 0 ? [["versions", names.map((name) => name.join(" ")).join(", ")]] : []);
  if (facts.length > 0) section.append(folded("Where the figures come from", definitions(facts)));
  section.append(asJson(figures));
};

const steps = (title, list) =>
  list?.length
    ? element(
        "div",
        {},
        element("h3", {}, title),
        element(
          "ol",
          { class: "steps" },
          ...list.map((step) =>
            element("li", {}, element("p", { dir: "auto" }, step.title), codeBlock(step.code, step.language)),
          ),
        ),
      )
    : "";

const definitions = (pairs) =>
  element(
    "dl",
    { class: "definitions" },
    ...pairs.flatMap(([name, value]) => [
      element("dt", {}, name),
      element("dd", { class: "user", dir: "auto" }, value),
    ]),
  );

const codeBlock = (code, language) => {
  const block = element("pre", { tabindex: "0" }, element("code", { "data-language": language }, code));
  const button = element(
    "button",
    { type: "button", class: "copy", onclick: () => copy(code, block, button) },
    "Copy",
  );
  return element("div", { class: "code" }, block, button);
};

// A page from file:// may have no clipboard: then the text is selected, ready for the keyboard.
const copy = async (code, block, button) => {
  try {
    await navigator.clipboard.writeText(code);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(block);
    button.textContent = "Selected: press Ctrl+C or ⌘C";
  }
  setTimeout(() => {
    button.textContent = "Copy";
  }, 3000);
};

const asJson = (figures) => {
  // Lists of numbers go on one line. Strings cannot match: their line ends are escaped.
  const pretty = JSON.stringify(figures, null, 2).replace(/\[\n[-\d.,eE+\snul]*\n\s*\]/g, (list) =>
    list.replace(/\s+/g, " "),
  );
  const download = element("button", { type: "button", onclick: () => save(pretty) }, "Download");
  return folded(
    "The figures as JSON",
    element("p", {}, download),
    element("pre", { class: "json", tabindex: "0" }, pretty),
  );
};

const save = (text) => {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: address, download: "hubless-figures.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};
