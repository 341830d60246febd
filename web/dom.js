/**
 * Builds an element. Strings become text nodes, so no text is ever read as HTML.
 * @param {string} name
 * @param {Object<string, string|number|boolean|Function|null|undefined>} attributes
 *   a function is a listener ("onclick"); null, undefined and false are left out
 * @param {...(Node|string|number|null|undefined)} children
 * @returns {HTMLElement}
 */
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return made;
};

const asNode = (child) => (child instanceof Node ? child : document.createTextNode(String(child)));

const SVG = "http://www.w3.org/2000/svg";

/** A part of a drawing. */
export const shape = (name, attributes = {}) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const TINY = 48; // pixels: smaller pictures are enlarged dot by dot, not blurred

/** A picture from an address that isThumbnail allows. */
export const pictureOf = (address, alt) =>
  element("img", {
    class: "picture",
    src: address,
    alt,
    onload: ({ target }) => target.classList.toggle("pixels", target.naturalHeight < TINY),
  });

/** The first `length` code points of a text, with an ellipsis where it is longer. */
export const cut = (text, length) => {
  // A code point has at most two units: the slice bounds the work for very long texts.
  const points = [...String(text).slice(0, 2 * length + 2)];
  return points.length > length ? `${points.slice(0, length - 1).join("")}…` : String(text);
};

/** A cut text without line ends, for a place in a chart that has one line. */
export const oneLine = (text, length) => cut(cut(text, 2 * length).replace(/\s+/g, " "), length);

/**
 * Names cut in the middle, or to where they differ: those that are equal then were equal before.
 * @param {string[]} names
 * @param {(place: number) => number} lengthOf code points that a name may have
 */
export const tellApart = (names, lengthOf) => {
  const lines = names.map((name) => [...oneLine(name, 400)]);
  const short = lines.map((points, place) => cutMiddle(points, lengthOf(place)));
  const groups = new Map(short.map((name) => [name, []]));
  short.forEach((name, place) => groups.get(name).push(place));
  for (const places of groups.values()) {
    const start = commonLength(places.map((place) => lines[place]));
    if (places.some((place) => lines[place].length !== start)) {
      for (const place of places) short[place] = cutAround(lines[place], start, lengthOf(place));
    }
  }
  return short;
};

const cutMiddle = (points, length) => {
  if (points.length <= length) return points.join("");
  const end = Math.floor((length - 1) / 2);
  return `${points.slice(0, length - 1 - end).join("")}…${points.slice(points.length - end).join("")}`;
};

/** How many code points all of them begin with. */
const commonLength = ([first, ...others]) => {
  let same = 0;
  while (same < first.length && others.every((points) => points[same] === first[same])) same += 1;
  return same;
};

/** The part around `start`, where names that begin alike go on differently. */
const cutAround = (points, start, length) => {
  const from = Math.max(0, Math.min(start - Math.floor(length / 3), points.length - length + 1));
  const part = (from > 0 ? "…" : "") + points.slice(from).join("");
  return oneLine(part, length);
};

/** Text of a user: any script, any length; long ones are cut and can be opened. */
export const userText = (text, length = 220) => {
  const whole = String(text);
  const short = cut(whole, length);
  const lines = whole.split("\n", 5).length;
  const shown = element("span", { class: "user clamp", dir: "auto" }, short);
  if (short === whole && lines <= 4) return shown;
  const button = element("button", { type: "button", class: "link", "aria-expanded": "false" }, "Show all");
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    shown.textContent = open ? whole : short;
    shown.classList.toggle("clamp", !open);
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Show less" : "Show all";
  });
  return element("span", { class: "expandable" }, shown, " ", button);
};

/** A short text of a user (an id, a class), on one line where it fits. */
export const userWord = (text, length = 60) => {
  const short = cut(text, length);
  // A line may end after a joint: names_like_this have no spaces.
  const parts = short
    .split(/(?<=[_\-./])/)
    .flatMap((part) => [part, element("wbr")])
    .slice(0, -1);
  return element(
    "span",
    { class: "user", dir: "auto", title: short === text ? null : cut(text, 400) },
    ...parts,
  );
};

/**
 * A table; cells are texts, numbers or nodes.
 * @param {{title: string, numeric?: boolean}[]} columns
 * @param {(Node|string|number|null)[][]} rows
 * @param {string} title for screen readers, another for each table of the page
 */
export const table = (columns, rows, title) =>
  element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    element(
      "table",
      {},
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ...columns.map((column) =>
            element("th", { scope: "col", class: column.numeric && "numeric" }, column.title),
          ),
        ),
      ),
      element(
        "tbody",
        {},
        ...rows.map((row) =>
          element(
            "tr",
            {},
            ...row.map((cell, place) =>
              element(
                "td",
                { class: columns[place].numeric && "numeric", "data-title": columns[place].title },
                cell,
              ),
            ),
          ),
        ),
      ),
    ),
  );

/** Content that is folded until it is opened. */
export const folded = (title, ...children) =>
  element("details", {}, element("summary", {}, title), ...children);

/**
 * A list of which CSS shows the first ones (.first), with a button that shows all.
 * @param {HTMLElement} list
 * @param {string} words on the button
 */
export const firstOf = (list, words) => {
  list.classList.add("first");
  const button = element("button", { type: "button", class: "more" }, words);
  button.addEventListener("click", () => {
    list.classList.remove("first");
    button.remove();
  });
  return [list, button];
};

/**
 * A row of radio buttons.
 * @param {{legend: string, name: string, options: [string, string][], value: string}} choice
 * @param {(value: string) => void} changed
 */
export const radios = ({ legend, name, options, value }, changed) =>
  element(
    "fieldset",
    { class: "radios" },
    element("legend", {}, legend),
    ...options.map(([key, title]) =>
      element(
        "label",
        {},
        element("input", {
          type: "radio",
          name,
          value: key,
          checked: key === value,
          onchange: () => changed(key),
        }),
        element("span", {}, title),
      ),
    ),
  );
