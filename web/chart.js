import { axisY, gridY, plot, pointer, tip } from "@observablehq/plot";
import { element } from "./dom.js";

/** Lines of the two states, which differ by dashes too, not by colour alone. */
export const STROKES = {
  before: { stroke: "var(--before)", strokeWidth: 2.25, strokeDasharray: "7 3" },
  after: { stroke: "var(--after)", strokeWidth: 2.25 },
};

/** Narrower than this, a chart is laid out for a phone. */
export const NARROW = 560;

const measures = [];

/** Draws every chart whose width has changed: observers of sizes come too late for a printer. */
export const remeasure = () => {
  for (const measure of measures) measure();
};

/**
 * A chart in its figure, drawn again when its width changes.
 * @param {HTMLElement} parent already in the page, so that the width is known
 * @param {object} options
 * @param {string} options.title what is drawn, above the chart
 * @param {string} options.label the main numbers in words, for screen readers
 * @param {string} [options.caption] how to read it, under the chart
 * @param {(width: number) => SVGElement} options.draw
 * @param {Node} [options.legend] between chart and caption
 * @param {(Node|null)[]} [options.after] a folded table
 * @returns {{figure: HTMLElement, redraw: (label?: string) => void}}
 */
export const chart = (parent, { title, label, caption, draw, legend = null, after = [] }) => {
  const holder = element("div", { class: "chart" });
  const figure = element(
    "figure",
    {},
    title && element("p", { class: "chart-title" }, title),
    holder,
    legend,
    element("figcaption", {}, caption ?? ""),
    ...after,
  );
  parent.append(figure);
  let width = 0;
  let words = label;
  const redraw = (newLabel) => {
    words = newLabel ?? words;
    if (width === 0) return;
    const svg = draw(width);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", words);
    hideInside(svg);
    holder.replaceChildren(svg);
  };
  const measure = () => {
    const now = Math.floor(holder.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    redraw();
  };
  measure();
  measures.push(measure);
  new ResizeObserver(measure).observe(holder);
  return { figure, redraw };
};

/** Only the name of a chart is read aloud: Plot gives names to its parts too, which have no role. */
const hideInside = (svg) => {
  const inside = document.createElementNS(svg.namespaceURI, "g");
  inside.setAttribute("aria-hidden", "true");
  inside.append(...svg.childNodes);
  svg.append(inside);
};

/**
 * Plot in the manner of the page: letters of 12 px and more, colours by CSS, our own arrows.
 * @param {object} options of Plot, and `margins`: top, right, bottom, left
 */
export const draw = ({ margins: [marginTop, marginRight, marginBottom, marginLeft], x, y, ...options }) =>
  plot({
    ...options,
    ...{ marginTop, marginRight, marginBottom, marginLeft },
    x: { labelArrow: false, ...x },
    y: { labelArrow: false, ...y },
    color: { type: "identity" },
    style: { fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
  });

/** A tooltip for the nearest of `data`; `title` gives its lines, `nearest` says in which direction. */
export const hover = (data, { x, y, title, nearest = pointer, ...others }) =>
  tip(
    data,
    nearest({
      x,
      y,
      title,
      fill: "var(--surface)",
      stroke: "var(--muted)",
      fontSize: 12,
      lineHeight: 1.35,
      lineWidth: 26,
      ...others,
    }),
  );

/** A colour of the page mixed with the empty colour; `share` 0…1. CSS mixes them, so that light and dark need no second drawing. */
export const shade = (share, name = "--heat") =>
  `color-mix(in oklab, var(${name}) ${Math.round(100 * share)}%, var(--empty))`;

/**
 * What the colours of a heat map mean.
 * @param {string[]} colours from low to high
 * @param {string[]} words one at each end, more between
 */
export const ramp = (colours, words) =>
  element(
    "div",
    { class: "ramp" },
    element("div", {
      class: "ramp-colours",
      style: `background: linear-gradient(to right, ${colours.join(", ")})`,
    }),
    element("div", { class: "ramp-words" }, ...words.map((word) => element("span", {}, word))),
  );

/** Round values for a log axis: powers of ten, with 2 and 5 between where the range is short. */
export const logTicks = (low, high) => {
  const steps = high / low > 200 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    ticks.push(...steps.map((step) => Number(`${step}e${power}`)));
  }
  return ticks.filter((value) => value >= low && value <= high);
};

/** Whole numbers up to `last` for an axis that counts; Plot would put halves between few of them. */
export const countTicks = (last) => (last <= 10 ? Array.from({ length: last }, (_, place) => place + 1) : 6);

/** A vertical log axis with all its ticks named: Plot by itself leaves names out. */
export const logAxis = (ticks, text, label) => [
  gridY(ticks),
  axisY(ticks, { text, label, labelArrow: false }),
];

/** Moves label positions (pixels) apart, so that none is on another and none below `lowest`. */
export const spread = (positions, gap, lowest) => {
  const order = positions.map((at, place) => ({ at, place })).sort((a, b) => a.at - b.at);
  order.forEach((label, rank) => {
    if (rank > 0) label.at = Math.max(label.at, order[rank - 1].at + gap);
  });
  order.reverse().forEach((label, rank) => {
    label.at = Math.min(label.at, lowest - rank * gap);
  });
  return order.sort((a, b) => a.place - b.place).map((label) => label.at);
};
