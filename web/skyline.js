import { area, line, link, pointerX, ruleX, ruleY, text } from "@observablehq/plot";
import { chart, draw, hover, logAxis, logTicks, NARROW, STROKES } from "./chart.js";
import { element, folded, table } from "./dom.js";
import { count, number, percent } from "./format.js";

// A log axis has no zero: items that no query has found are drawn on a floor at one half, marked 0.
const FLOOR = 0.5;

/** Section 2: N10 of every item, sorted, before and after; and the Lorenz curve. */
export const renderSkyline = (section, figures) => {
  const { skyline, lorenz, counts } = figures;
  const row = element("div", { class: "skyline-row" });
  section.append(row);
  if (skyline?.rank?.length) skylineChart(row, skyline, counts.hub_k);
  else row.append(element("p", {}, "There are no items to rank."));
  if (!lorenz?.share?.length) return;
  const part = section.clientWidth < NARROW ? folded("Lorenz curve of the answers") : row;
  if (part !== row) section.append(part);
  lorenzChart(part, lorenz);
};

const skylineChart = (parent, skyline, k) => {
  const rows = skyline.rank.map((rank, place) => ({
    rank,
    before: skyline.before[place],
    after: skyline.after[place],
  }));
  const first = rows[0];
  chart(parent, {
    title: `N${k} of every item, busiest first`,
    label:
      `N${k} of the items by rank. The busiest item is among the ${k} nearest of ` +
      `${count(first.before)} queries before and ${count(first.after)} after; ` +
      `the mean is ${number(skyline.mean)}.`,
    caption:
      "Both axes are logarithmic. The steeper the left end, the stronger the hubs. " +
      "Items that no query finds are at the bottom, marked 0.",
    draw: (width) => drawSkyline(rows, skyline.mean, k, width),
    after: [
      folded(
        "The curve as a table",
        table(
          [
            { title: "Rank", numeric: true },
            { title: "Before", numeric: true },
            { title: "After", numeric: true },
          ],
          rows
            .filter((_, place) => place < 10 || place % 20 === 0 || place === rows.length - 1)
            .map((row) => [count(row.rank), count(row.before), count(row.after)]),
          `N${k} of items by rank`,
        ),
      ),
    ],
  });
};

const lifted = (key) => (row) => Math.max(row[key], FLOOR);

const drawSkyline = (rows, mean, k, width) => {
  const top = Math.max(...rows.map((row) => Math.max(row.before, row.after)), 2);
  const last = rows[rows.length - 1].rank;
  const ticks = [FLOOR, ...logTicks(1, top)];
  const powers = logTicks(1, last).filter((value) => Math.log10(value) % 1 === 0);
  const ranks = { ticks: powers, tickFormat: count, grid: true };
  const title = (row) =>
    `rank ${count(row.rank)}\nbefore: N${k} ${count(row.before)}\nafter: N${k} ${count(row.after)}`;
  return draw({
    width,
    height: width < NARROW ? 250 : 340,
    margins: [34, 12, 40, 44],
    x: { ...ranks, type: "log", domain: [1, Math.max(last, 2)], label: "rank of the item →" },
    y: { type: "log", domain: [FLOOR, top * 1.1] },
    marks: [
      ...logAxis(ticks, (value) => (value < 1 ? "0" : count(value)), `↑ N${k}`),
      ruleY([FLOOR], { stroke: "var(--muted)", strokeDasharray: "2 3" }),
      area(rows, {
        x1: "rank",
        y1: lifted("after"),
        y2: lifted("before"),
        fill: "var(--before)",
        fillOpacity: 0.1,
      }),
      ...meanRule(mean),
      line(rows, { x: "rank", y: lifted("before"), ...STROKES.before }),
      line(rows, { x: "rank", y: lifted("after"), ...STROKES.after }),
      ...ends(rows[0]),
      ruleX(rows, pointerX({ x: "rank", stroke: "var(--muted)" })),
      hover(rows, {
        x: "rank",
        y: (row) => Math.max(row.before, row.after, FLOOR),
        title,
        nearest: pointerX,
      }),
    ],
  });
};

// Named at the left, where the curves are high above it.
const meanRule = (mean) => {
  if (!(mean >= FLOOR)) return [];
  const words = { x: 1, y: mean, text: [`mean ${number(mean)}`], textAnchor: "start", dx: 7, dy: 10 };
  return [
    ruleY([mean], { stroke: "var(--text)", strokeDasharray: "5 4", strokeOpacity: 0.7 }),
    text([mean], { ...words, ...halo }),
  ];
};

const halo = { stroke: "var(--surface)", strokeWidth: 4, fill: "var(--text)" };

/** The two curves are named where they begin: the higher one above its line, the lower one below. */
const ends = (first) =>
  ["before", "after"].map((key) => {
    const higher = key === "before" ? first.before >= first.after : first.after > first.before;
    return text([first], {
      x: "rank",
      y: lifted(key),
      text: [`${key}: ${count(first[key])}`],
      textAnchor: "start",
      dx: 7,
      dy: higher ? -9 : 15,
      ...halo,
      fill: `var(--${key})`,
      fontWeight: 600,
      fontSize: 13,
    });
  });

const lorenzChart = (parent, lorenz) => {
  const rows = lorenz.share.map((share, place) => ({
    share,
    before: lorenz.before[place],
    after: lorenz.after[place],
  }));
  const { before, after } = lorenz.gini;
  const change = Math.round(100 * after) - Math.round(100 * before);
  const trend = change < 0 ? "more even" : change > 0 ? "less even" : "about as even as before";
  chart(parent, {
    title: "Lorenz curve of the answers",
    label: `Lorenz curve. Gini coefficient ${number(before)} before, ${number(after)} after: ${trend}.`,
    caption:
      "The diagonal: every item is returned equally often. " +
      "Gini coefficient (0 equal, 1 all from one item): " +
      `${number(before)} → ${number(after)}, ${trend}.`,
    draw: (width) => drawLorenz(rows, Math.min(width, 280)),
  });
};

const drawLorenz = (rows, width) => {
  const axis = { domain: [0, 1], ticks: [0, 0.5, 1], tickFormat: whole };
  const title = (row) =>
    `the least busy ${percent(row.share, 0)} give\n` +
    `before: ${percent(row.before)}\nafter: ${percent(row.after)} of the answers`;
  return draw({
    width,
    height: width,
    margins: [34, 12, 40, 50],
    x: { ...axis, label: "share of the items →" },
    y: { ...axis, label: "↑ share of the answers" },
    marks: [
      link([0], { x1: 0, y1: 0, x2: 1, y2: 1, stroke: "var(--muted)", strokeDasharray: "2 3" }),
      line(rows, { x: "share", y: "before", ...STROKES.before }),
      line(rows, { x: "share", y: "after", ...STROKES.after }),
      hover(rows, { x: "share", y: "after", title, nearest: pointerX }),
    ],
  });
};

const whole = (value) => percent(value, 0);
