import { axisY, dot, line, ruleY, text } from "@observablehq/plot";
import { chart, countTicks, draw, hover, logAxis, logTicks, NARROW, spread } from "./chart.js";
import { element, folded } from "./dom.js";
import { count, inForm, number, percent, prose, short } from "./format.js";

/** Section 7: three charts that say why moving works. */
export const renderWhy = (section, figures) => {
  const { why, counts } = figures;
  if (why?.centrality) centrality(section, why.centrality, counts.hub_k);
  const row = element("div", { class: "pair-row" });
  section.append(folded("Variances and singular values", row));
  if (why?.variance?.component?.length) variance(row, why.variance);
  if (why?.singular_values?.length) singular(row, why);
  else
    row.append(
      element(
        "p",
        { class: "note" },
        prose(why?.singular_words) || "This mover has no matrix, so there are no singular values.",
      ),
    );
};

const centrality = (section, data, k) => {
  const rows = ["before", "after"].flatMap((state) =>
    data[state].distance.map((distance, place) => ({
      state,
      distance,
      occurrence: data[state].occurrence[place],
    })),
  );
  if (rows.length === 0) return;
  const shown = data.shown < data.of ? ` ${count(data.shown)} of ${count(data.of)} items are drawn.` : "";
  const { before, after } = data;
  chart(section, {
    title: "Distance to the mean, and how often an item is found",
    label:
      `N${k} against the distance to the mean of the items. Spearman correlation ` +
      `${correlation(before)} before and ${correlation(after)} after.`,
    caption:
      "Each dot is an item. Where items close to the mean are found most often (spatial centrality), the " +
      `dots slope down to the right. Spearman correlation of distance and N${k}: ${correlation(before)} ` +
      `before, ${correlation(after)} after; at 0, the distance does not matter. ` +
      `${data.words ?? ""}${shown}`,
    draw: (width) => drawCentrality(rows, k, width),
  });
};

const correlation = (state) => inForm(state.correlation, "number");

const drawCentrality = (rows, k, width) => {
  const narrow = width < NARROW;
  const top = Math.max(1, ...rows.map((row) => row.occurrence));
  const ticks = [0, 1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4].filter((value) => value <= top);
  const panels = { domain: ["before", "after"], label: null, axis: null, padding: 0.12 };
  const [facet, place] = narrow ? ["fy", { fy: "state" }] : ["fx", { fx: "state" }];
  const at = { ...place, x: "distance", y: "occurrence" };
  const fill = (row) => `var(--${row.state})`;
  const title = (row) => `${row.state}\ndistance ${short(row.distance)}\nN${k} ${count(row.occurrence)}`;
  const names = { text: "state", frameAnchor: "top-right", fontWeight: 600, fontSize: 13, dy: -16, dx: -4 };
  return draw({
    width,
    height: narrow ? 400 : 235,
    margins: [30, 10, 40, 44],
    x: { label: "distance to the mean of the items →", nice: true, ticks: 5 },
    y: { type: "symlog", domain: [0, top], ticks, grid: true },
    [facet]: panels,
    marks: [
      axisY({ ticks, tickFormat: count, label: `↑ N${k}`, labelArrow: false }),
      dot(rows, { ...at, r: 2.2, fill, fillOpacity: 0.45 }),
      text([{ state: "before" }, { state: "after" }], { ...place, ...names, fill }),
      hover(rows, { ...at, title }),
    ],
  });
};

const ROUNDED = 1e-6; // of the largest: smaller variances are rounding errors of directions that are flat
const SERIES = [
  ["before", "--before", "7 3"],
  ["after", "--after", null],
  ["queries", "--muted", "2 3"],
];

const variance = (parent, data) => {
  const { total } = data;
  const share = total.before > 0 ? ` (${percent(total.after / total.before, 0)} of it)` : "";
  chart(parent, {
    title: "Variance of stored items and of queries",
    label:
      `Variance along the principal components. In total: items before ${number(total.before)}, after ` +
      `${number(total.after)}, queries ${number(total.queries)}.`,
    caption:
      `Total variance: items ${number(total.before)} before, ${number(total.after)} after${share}, ` +
      `queries ${number(total.queries)}. The less the stored items vary compared with the queries, ` +
      "the less one of them can be nearer to everything than the others.",
    draw: (width) => drawVariance(data, width),
  });
};

const drawVariance = (data, width) => {
  const height = 260;
  const [top, bottom] = [30, 40];
  const largest = Math.max(...SERIES.flatMap(([name]) => data[name] ?? []));
  const rows = SERIES.flatMap(([name, colour, dash]) =>
    data.component
      .map((component, place) => ({ name, colour, dash, component, value: data[name]?.[place] }))
      .filter((row) => row.value > 0 && row.value >= ROUNDED * largest),
  );
  const values = rows.map((row) => row.value);
  const high = Math.max(...values) * 1.05;
  const low = Math.min(...values, high / 2);
  const pixel = (value) => top + (height - top - bottom) * (Math.log(high / value) / Math.log(high / low));
  const ends = SERIES.map(([name]) => rows.findLast((row) => row.name === name)).filter(Boolean);
  const places = spread(
    ends.map((row) => pixel(row.value)),
    15,
    height - bottom - 4,
  );
  return draw({
    width,
    height,
    margins: [top, 58, bottom, 56],
    x: { label: "principal component →", ticks: countTicks(data.component.length), tickFormat: count },
    y: { type: "log", domain: [low, high] },
    marks: [
      ...logAxis(logTicks(low, high), short, "↑ variance"),
      ...SERIES.map(([name, colour, dash]) =>
        line(
          rows.filter((row) => row.name === name),
          { x: "component", y: "value", stroke: `var(${colour})`, strokeWidth: 2.25, strokeDasharray: dash },
        ),
      ),
      ...ends.map((row, place) =>
        text([row], {
          x: "component",
          y: "value",
          text: "name",
          textAnchor: "start",
          dx: 6,
          dy: places[place] - pixel(row.value),
          fill: `var(${row.colour})`,
          fontWeight: 600,
        }),
      ),
      hover(rows, {
        x: "component",
        y: "value",
        title: (row) => `${row.name}\ncomponent ${count(row.component)}\nvariance ${short(row.value)}`,
      }),
    ],
  });
};

const singular = (parent, why) => {
  const zero = ROUNDED * why.singular_values[0]; // what is smaller is a rounding error
  const rows = why.singular_values.map((value, place) => ({ rank: place + 1, value: value < zero ? 0 : value }));
  const below = rows.filter((row) => row.value < 1).length;
  chart(parent, {
    title: "Singular values of W",
    label:
      `Singular values of the map W: largest ${number(rows[0].value)}, ` +
      `smallest ${number(rows.at(-1).value)}; ${count(below)} of ${count(rows.length)} are below 1.`,
    caption:
      "In directions whose singular value is below 1, the map W pulls items toward the mean: " +
      `${count(below)} of ${count(rows.length)}. The largest is ${number(rows[0].value)}, the smallest ` +
      `${number(rows.at(-1).value)}.`,
    draw: (width) => drawSingular(rows, width),
  });
};

const drawSingular = (rows, width) =>
  draw({
    width,
    height: 260,
    margins: [30, 12, 40, 48],
    x: { label: "singular value, largest first →", ticks: countTicks(rows.length), tickFormat: count },
    y: {
      domain: [0, Math.max(1.1, 1.05 * rows[0].value)],
      label: "↑ size",
      ticks: 5,
      grid: true,
    },
    marks: [
      ruleY([1], { stroke: "var(--text)", strokeDasharray: "5 4" }),
      text([1], {
        x: rows.at(-1).rank,
        y: 1,
        text: ["1: neither shrinks nor stretches"],
        textAnchor: "end",
        dy: -8,
        fill: "var(--text)",
        stroke: "var(--surface)",
        strokeWidth: 4,
      }),
      line(rows, { x: "rank", y: "value", stroke: "var(--after)", strokeWidth: 2.25 }),
      rows.length <= 60 ? dot(rows, { x: "rank", y: "value", fill: "var(--after)", r: 2.5 }) : null,
      hover(rows, {
        x: "rank",
        y: "value",
        title: (row) => `${count(row.rank)} of ${count(rows.length)}\n${short(row.value)}`,
      }),
    ],
  });
