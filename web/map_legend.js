// Under the map: what sizes, colours and rays mean, and what the layout is.

import { element, userWord } from "./dom.js";
import { count } from "./format.js";
import { CLASS_COLOURS } from "./map_paint.js";

const SVG = "http://www.w3.org/2000/svg";

const shape = (name, attributes) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const picture = (width, height, ...shapes) => {
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  svg.append(...shapes);
  return svg;
};

const entry = (mark, ...words) =>
  element("span", { class: "map-entry" }, mark, element("span", {}, ...words));

/** Three circles: a rare item, one in between, the busiest. */
const sizes = (model, { growth, least }) => {
  const values = [...new Set([1, Math.ceil(model.largest / 6), model.largest])];
  return values.map((value) => {
    const radius = Math.max(least, growth * Math.sqrt(value));
    const side = Math.ceil(2 * radius + 2);
    const disc = shape("circle", { cx: side / 2, cy: side / 2, r: radius, class: "map-size" });
    return entry(picture(side, side, disc), count(value));
  });
};

const band = (name, low, high) => entry(element("span", { class: `map-band ${name}` }), `${low} → ${high}`);

const dot = (colour) => picture(12, 12, shape("circle", { cx: 6, cy: 6, r: 5, fill: colour }));

const classEntries = (model) => {
  if (model.names.length > CLASS_COLOURS.length) {
    return [
      entry(
        picture(
          8 * 11,
          12,
          ...CLASS_COLOURS.map((fill, place) => shape("circle", { cx: 6 + 11 * place, cy: 6, r: 4.5, fill })),
        ),
        `${CLASS_COLOURS.length} colours, repeated, for ${count(model.names.length)} classes; ` +
          "point at an item to see its class",
      ),
    ];
  }
  return model.names.map((name, place) => entry(dot(CLASS_COLOURS[place]), userWord(name, 30)));
};

const colours = (model, by) => {
  if (by === "class") return classEntries(model);
  if (by === "wrong") return [band("map-band-wrong", "all answers right", `all ${model.miss}`)];
  return [band("map-band-hubs", "item", `hub (${model.measure} ≥ ${count(Math.ceil(model.hubFloor))})`)];
};

const marks = (model) => [
  entry(picture(12, 12, shape("path", { d: "M6 1.5 10.5 6 6 10.5 1.5 6Z", class: "map-query" })), "query"),
  entry(
    picture(
      34,
      12,
      shape("path", { d: "M1 6H28", class: "map-ray" }),
      shape("circle", { cx: 29, cy: 6, r: 2.2, class: "map-ray-end" }),
    ),
    "query that finds the selected item, right answer",
  ),
  entry(
    picture(
      34,
      12,
      shape("path", { d: "M1 6H26", class: "map-ray map-ray-wrong", "stroke-dasharray": "5 3" }),
      shape("path", { d: "M26 2.5 33 9.5M33 2.5 26 9.5", class: "map-ray map-ray-wrong" }),
    ),
    `query that finds the selected item, ${model.miss} answer`,
  ),
];

/** @returns {{element: HTMLElement, show(by: string, radii: {growth: number, least: number}): void}} */
export const createLegend = (model) => {
  const legend = element("div", { class: "map-legend" });
  let shown = "";
  const show = (by, radii) => {
    const now = `${by} ${radii.growth}`;
    if (now === shown) return;
    shown = now;
    legend.replaceChildren(
      element(
        "div",
        {},
        element("span", { class: "map-legend-title" }, model.measure),
        ...sizes(model, radii),
      ),
      element("div", {}, element("span", { class: "map-legend-title" }, "Colour"), ...colours(model, by)),
      element("div", {}, element("span", { class: "map-legend-title" }, "Marks"), ...marks(model)),
    );
  };
  return { element: legend, show };
};
