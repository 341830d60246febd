import { rect, text } from "@observablehq/plot";
import { chart, draw, hover, NARROW, ramp, shade } from "./chart.js";
import { compareMovers } from "./compare_movers.js";
import { element, folded, oneLine, table } from "./dom.js";
import { duration, formOf, inForm, prose, short } from "./format.js";
import { moverChart } from "./movers.js";

// The share of colour in the best cell: more, and the numbers in the cells would be hard to read.
const STRONGEST = 0.42;
const LETTER = 6.8; // px, about, of a figure on an axis

/** Section 8: scores over λ and k, all movers that were tried, time spent. */
export const renderChoice = (section, figures) => {
  const { choice, words } = figures;
  if (!choice) {
    section.append(element("p", {}, "It is not known how the mover was chosen."));
    return;
  }
  const form = formOf(words.measure);
  section.append(element("p", { class: "user", dir: "auto" }, prose(choice.words)));
  if (choice.movers?.length) moverChart(section, choice.movers, form);
  else section.append(element("p", {}, "No other movers were tried."));
  if (choice.compared) compareMovers(section, choice.compared, figures.counts.hub_k, form);
  if (choice.surface) {
    const part = folded(`Scores over ${choice.surface.x.title} and ${choice.surface.y.title}`);
    section.append(part);
    surfaceChart(part, choice.surface, form);
  } else section.append(element("p", { class: "lead" }, NO_SURFACE));
  if (choice.seconds?.length) section.append(folded("Time spent", timeSpent(choice.seconds)));
};

const NO_SURFACE = "There are no scores over λ and k: the mover has no such settings, or they were given.";

const timeSpent = (seconds) =>
  table(
    [{ title: "Step" }, { title: "Time", numeric: true }],
    seconds.map((step) => [step.what, duration(step.seconds)]),
    "Time spent",
  );

const surfaceChart = (section, surface, form) => {
  const cells = surface.y.values.flatMap((y, row) =>
    surface.x.values.map((x, column) => ({
      x,
      y,
      row,
      column,
      score: surface.score[row]?.[column] ?? null,
      chosen: surface.chosen?.[0] === column && surface.chosen?.[1] === row,
    })),
  );
  const scores = cells.filter((cell) => cell.score !== null).map((cell) => cell.score);
  if (scores.length === 0) return;
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const best = cells.find((cell) => cell.chosen);
  chart(section, {
    title: `Score of every setting: ${surface.measure}`,
    label:
      `Heat map of ${surface.measure} by ${surface.x.title} and ${surface.y.title}, ` +
      `from ${inForm(low, form)} to ${inForm(high, form)}.` +
      (best ? ` Ringed: ${settingWords(surface, best, form).replaceAll("\n", ", ")}.` : ""),
    caption: prose(surface.words) || "The ring marks the setting that was chosen.",
    draw: (width) => drawSurface(surface, cells, { low, high, form }, width),
    legend: ramp(
      [shade(0, "--after"), shade(STRONGEST, "--after")],
      [inForm(low, form), inForm(high, form)],
    ),
  });
};

// A setting may be a word ("no map") instead of a number.
const setting = (value) => (typeof value === "number" ? short(value) : oneLine(value ?? "none", 16));

/** Setting and score of a cell, one a line. */
const settingWords = (surface, cell, form) =>
  `${surface.x.title} ${setting(cell.x)}\n${surface.y.title} ${setting(cell.y)}\n` +
  (cell.score === null ? "not tried" : inForm(cell.score, form));

const drawSurface = (surface, cells, scale, width) => {
  const [columns, rows] = [surface.x.values.length, surface.y.values.length];
  const cellWidth = (width - 64) / columns;
  const longest = Math.max(...surface.x.values.map((value) => setting(value).length));
  const axis = (values, every) => ({
    ticks: values.map((_, place) => place + 0.5).filter((_, place) => place % every === 0),
    tickSize: 0,
    tickFormat: (at) => setting(values[Math.floor(at)]),
  });
  return draw({
    width,
    height: 74 + rows * (width < NARROW ? 30 : 34),
    margins: [30, 8, 44, 56],
    x: {
      domain: [0, columns],
      label: `${surface.x.title} →`,
      ...axis(surface.x.values, Math.ceil((LETTER * longest + 10) / cellWidth)),
    },
    y: { domain: [rows, 0], label: surface.y.title, ...axis(surface.y.values, 1) },
    marks: surfaceMarks(surface, cells, scale, cellWidth >= 44 && cells.length <= 120),
  });
};

const surfaceMarks = (surface, cells, { low, high, form }, written) => {
  const known = cells.filter((cell) => cell.score !== null);
  const chosen = cells.filter((cell) => cell.chosen);
  const place = {
    x1: "column",
    x2: (cell) => cell.column + 1,
    y1: "row",
    y2: (cell) => cell.row + 1,
    inset: 1,
  };
  const middle = { x: (cell) => cell.column + 0.5, y: (cell) => cell.row + 0.5 };
  const fill = (cell) => shade((STRONGEST * (cell.score - low)) / (high - low || 1), "--after");
  const score = (cell) => inForm(cell.score, form);
  return [
    rect(cells, { ...place, fill: "var(--empty)" }),
    rect(known, { ...place, fill }),
    written ? text(known, { ...middle, text: score, fill: "var(--text)" }) : null,
    rect(chosen, { ...place, stroke: "var(--surface)", strokeWidth: 5, fill: "none" }),
    rect(chosen, { ...place, stroke: "var(--text)", strokeWidth: 2.5, fill: "none" }),
    hover(cells, {
      ...middle,
      title: (cell) => settingWords(surface, cell, form) + (cell.chosen ? ", ringed" : ""),
    }),
  ];
};
