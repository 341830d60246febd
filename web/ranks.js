// Two lists side by side: the neighbours of a query before and after, with lines from rank to rank.

import { isThumbnail } from "./data.js";
import { cut, element, pictureOf } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const OUTSIDE = { target: "_blank", rel: "noopener noreferrer" };
const MARKS = { right: "✓", wrong: "×", unjudged: "·" };
const FIRST = 5; // that a phone shows before one asks for all

/**
 * @typedef {{key: number, id: string, text: ?string, label: ?string, mark: ?string, picture: ?string,
 *   link: ?string, show: ?Function}} Neighbour `mark` is a key of MARKS, or null; `link` is the address of the
 *   user's own row, `show` shows the item on the map
 */

/**
 * @param {{before: Neighbour[], after: Neighbour[]}} lists nearest first
 * @param {Object<string, string>} words of the marks
 */
export const rankColumns = ({ before, after }, words) => {
  const places = [before, after].map((list) => new Map(list.map(({ key }, place) => [key, place])));
  const k = Math.max(before.length, after.length);
  const column = (title, list, moved) =>
    element(
      "div",
      { class: "rank-column" },
      element("h3", {}, `${title} moving`),
      element("ol", { class: "ranks" }, ...list.map((item, place) => row(item, moved(item.key, place), words))),
    );
  const columns = element(
    "div",
    { class: "rank-columns" },
    column("Before", before, (key) => leaving(places[1].get(key), k)),
    lines(before, places[1], k),
    column("After", after, (key, place) => arriving(places[0].get(key), place)),
  );
  if (k <= FIRST) return columns;
  const more = element("button", { type: "button", class: "ranks-more" }, `Show all ${k}`);
  more.addEventListener("click", () => {
    columns.classList.add("all");
    more.remove();
  });
  return element("div", {}, columns, more);
};

/** @returns {[string, string, string]} kind, sign and words */
const leaving = (after, k) =>
  after === undefined ? ["out", "", `leaves the first ${k}`] : ["moves", "→", `${after + 1} after`];

const arriving = (before, place) => {
  if (before === undefined) return ["new", "+", "new"];
  if (before === place) return ["same", "=", "same rank"];
  return place < before ? ["up", "▲", `from ${before + 1}`] : ["down", "▼", `from ${before + 1}`];
};

const row = (item, [kind, sign, moved], words) => {
  const { mark } = item;
  return element(
    "li",
    { class: `rank is-${mark}` },
    mark === null
      ? null
      : element(
          "span",
          { class: "rank-mark", title: words[mark] },
          element("span", { "aria-hidden": "true" }, MARKS[mark]),
          element("span", { class: "visually-hidden" }, `${words[mark]}: `),
        ),
    isThumbnail(item.picture) ? pictureOf(item.picture, `Picture of ${cut(item.id, 60)}`) : null,
    element(
      "span",
      { class: "rank-body" },
      item.link
        ? element("a", { class: "user rank-text", dir: "auto", href: item.link, ...OUTSIDE }, named(item))
        : element("span", { class: "user rank-text", dir: "auto" }, named(item)),
      element(
        "span",
        { class: "rank-line" },
        element("span", { class: `rank-moved ${kind}` }, sign && `${sign} `, moved),
        item.label === null ? null : element("span", { class: "user", dir: "auto" }, cut(item.label, 40)),
      ),
    ),
    item.show
      ? element("button", { type: "button", class: "link", onclick: item.show, title: "Show on the map" }, "map")
      : null,
  );
};

const named = (item) => cut(item.text ?? item.id, 160);

// From each rank before to the rank after; decoration, as each row says the same in words.
const lines = (before, after, k) => {
  const drawing = document.createElementNS(SVG, "svg");
  const attributes = { viewBox: `0 0 10 ${k}`, preserveAspectRatio: "none", "aria-hidden": "true" };
  for (const [name, value] of Object.entries(attributes)) drawing.setAttribute(name, value);
  before.forEach(({ key, mark }, from) => {
    const to = after.get(key);
    if (to === undefined) return;
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M0 ${from + 0.5}C5 ${from + 0.5} 5 ${to + 0.5} 10 ${to + 0.5}`);
    path.setAttribute("class", `is-${mark}`);
    drawing.append(path);
  });
  const holder = element("div", { class: "rank-lines" });
  holder.append(drawing);
  return holder;
};
