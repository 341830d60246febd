import { axisX, axisY, dot, frame, rect } from "@observablehq/plot";
import { chart, draw, hover, NARROW, ramp, shade } from "./chart.js";
import { alongDiagonal, mostConfused, pairsOf, valueOf, worstPairs } from "./confusions.js";
import { cut, element, firstOf, oneLine, radios, table, tellApart, userWord } from "./dom.js";
import { count, plural } from "./format.js";

const FEW = 30;
const LISTED = 15;
const LETTER = 12; // px: classes are named on the axes where this much room is for each

/** Section 5: class × class heat map of wrong answers. */
export const renderClasses = (section, figures) => {
  const { classes } = figures;
  if (!classes || classes.names.length < 2) {
    section.append(
      element(
        "p",
        {},
        classes
          ? "There is only one class, so no classes can be confused."
          : "These queries have relevant items, not classes, so no classes can be confused.",
      ),
    );
    return;
  }
  const pairs = pairsOf(classes.wrong);
  if (pairs.length === 0) {
    section.append(element("p", {}, "No query is given a wrong class, neither before nor after."));
    return;
  }
  const size = classes.names.length;
  buildHeatmap(section, {
    names: classes.names,
    pairs,
    view: "before",
    extent: size > FEW ? "worst" : "all",
  });
};

/**
 * @param {HTMLElement} section
 * @param {object} state names, pairs, view and extent
 */
const buildHeatmap = (section, state) => {
  const row = element("div", { class: "heat-row" });
  const legend = element("div");
  const list = element("div", { class: "pairs" });
  const controls = element("div", { class: "controls" });
  section.append(controls, row);
  const map = chart(row, {
    title: "",
    label: labelOf(state),
    draw: (width) => drawHeatmap(state, width),
    legend,
    caption:
      "Rows are true classes, columns the classes that were given; the small dots are right answers. " +
      "Shown are the most confused classes that have room, without empty rows and columns.",
  });
  row.append(list);
  const show = () => {
    map.redraw(labelOf(state));
    legend.replaceChildren(legendOf(state));
    list.replaceChildren(...pairList(state));
  };
  const change = (key) => (value) => {
    state[key] = value;
    show();
  };
  controls.append(
    radios(
      {
        legend: "View",
        name: "view",
        value: state.view,
        options: [
          ["before", "Before"],
          ["after", "After"],
          ["difference", "Difference"],
        ],
      },
      change("view"),
    ),
  );
  if (state.names.length > FEW) {
    controls.append(
      radios(
        {
          legend: "Classes",
          name: "extent",
          value: state.extent,
          options: [
            ["worst", "Most confused"],
            ["all", `All ${count(state.names.length)}`],
          ],
        },
        change("extent"),
      ),
    );
  }
  show();
};

const total = (pairs, state) => pairs.reduce((sum, pair) => sum + pair[state], 0);

const labelOf = ({ names, pairs }) => {
  const [worst] = worstPairs(pairs, "before", 1).concat(worstPairs(pairs, "after", 1));
  return (
    `Heat map of wrong classes: ${plural(total(pairs, "before"), "wrong answer")} before, ` +
    `${count(total(pairs, "after"))} after. Most often ${cut(names[worst.from], 60)} is taken for ` +
    `${cut(names[worst.to], 60)}: ${count(worst.before)} before, ${count(worst.after)} after.`
  );
};

const largestOf = (pairs, view) =>
  Math.max(
    1,
    ...(view === "difference"
      ? pairs.map((pair) => Math.abs(pair.after - pair.before))
      : pairs.map((pair) => Math.max(pair.before, pair.after))),
  );

// A root, so that a single wrong answer is still seen beside twenty.
const colour = (value, largest, view) => {
  const share = 0.15 + 0.85 * Math.sqrt(Math.abs(value) / largest);
  if (view !== "difference") return shade(share);
  return shade(share, value < 0 ? "--after" : "--before");
};

/** Cells that are not zero; classes with one, as rows and as columns, in their order. */
const gridOf = ({ pairs, view }, limit) => {
  const order = alongDiagonal(pairs, mostConfused(pairs, limit));
  const kept = new Set(order);
  const shown = pairs.filter((pair) => kept.has(pair.from) && kept.has(pair.to) && valueOf(pair, view) !== 0);
  const [rows, columns] = ["from", "to"].map((side) => {
    const some = new Set(shown.map((pair) => pair[side]));
    return order.filter((name) => some.has(name));
  });
  const [rowOf, columnOf] = [rows, columns].map((names) => new Map(names.map((name, place) => [name, place])));
  const cells = shown.map((pair) => ({ ...pair, row: rowOf.get(pair.from), column: columnOf.get(pair.to) }));
  const right = rows
    .filter((name) => columnOf.has(name))
    .map((name) => ({ row: rowOf.get(name), column: columnOf.get(name) }));
  return { rows, columns, cells, right };
};

/** Margin and width of the cells: with names on the axes, unless all of many classes are wanted. */
const drawHeatmap = (state, width) => {
  const whole = Math.min(width, 700);
  const roomy = Math.min(190, Math.round((width < NARROW ? 0.36 : 0.3) * width));
  const named = state.extent === "worst" || state.names.length <= FEW;
  const fitting = Math.min(FEW, Math.floor((whole - roomy) / LETTER));
  const { rows, columns, cells, right } = gridOf(state, named ? fitting : Infinity);
  const margin = named ? roomy : 26;
  const cell = Math.min((whole - margin - 4) / Math.max(rows.length, columns.length, 1), 40);
  const names = (places) => tellApart(
      places.map((place) => state.names[place]),
      () => Math.floor(margin / 7.4),
    );
  const axis = (places) => ({
    ticks: named ? places.map((_, place) => place + 0.5) : [],
    tickFormat: ((shown) => (at) => shown[Math.floor(at)])(names(places)),
    ...{ tickSize: 0, labelArrow: false, labelAnchor: "center", labelOffset: 14 },
  });
  const top = { anchor: "top", tickRotate: -90, textAnchor: "start" };
  return draw({
    width: margin + columns.length * cell + 4,
    height: margin + rows.length * cell + 4,
    margins: [margin, 4, 4, margin],
    x: { domain: [0, columns.length || 1] },
    y: { domain: [rows.length || 1, 0] },
    marks: [
      frame({ stroke: "var(--line)", fill: "var(--empty)" }),
      axisX({ ...axis(columns), ...top, label: named ? null : "class that was given →" }),
      axisY({ ...axis(rows), label: named ? null : "← true class" }),
      ...cellMarks(state, cells, right, cell),
    ],
  });
};

/** @param {number} pixels width of a cell; below 2 px it is drawn larger than its place, to be seen */
const cellMarks = (state, cells, right, pixels) => {
  const largest = largestOf(state.pairs, state.view);
  const grow = Math.max(0, 2 / pixels - 1) / 2;
  const title = (cell) =>
    `true: ${oneLine(state.names[cell.from], 60)}\ngiven: ${oneLine(state.names[cell.to], 60)}\n` +
    `before ${count(cell.before)}, after ${count(cell.after)}`;
  const middle = { x: (cell) => cell.column + 0.5, y: (cell) => cell.row + 0.5 };
  return [
    dot(right, { ...middle, r: Math.min(2, pixels / 5), fill: "var(--line)" }),
    rect(cells, {
      x1: (cell) => cell.column - grow,
      x2: (cell) => cell.column + 1 + grow,
      y1: (cell) => cell.row - grow,
      y2: (cell) => cell.row + 1 + grow,
      fill: (cell) => colour(valueOf(cell, state.view), largest, state.view),
      inset: pixels > 6 ? 0.5 : 0,
    }),
    hover(cells, { ...middle, title }),
  ];
};

const legendOf = ({ pairs, view }) => {
  const largest = largestOf(pairs, view);
  const steps = [0, 0.25, 0.5, 0.75, 1].map((share) => 1 + share * (largest - 1));
  const colours = steps.map((value) => colour(value, largest, view));
  if (view !== "difference") return ramp(colours, ["1 wrong answer", count(largest)]);
  const fewer = steps.map((value) => colour(-value, largest, view)).reverse();
  return ramp(
    [...fewer, "var(--empty)", ...colours],
    [`${count(largest)} fewer after`, "same", `${count(largest)} more after`],
  );
};

const TITLES = {
  before: "Worst pairs before",
  after: "Worst pairs after",
  difference: "Pairs that changed most",
};

const pairList = ({ names, pairs, view }) => {
  const rows = worstPairs(pairs, view, LISTED);
  const columns = [
    { title: "True class" },
    { title: "Given" },
    { title: "Before", numeric: true },
    { title: "After", numeric: true },
  ];
  const list = table(
    columns,
    rows.map((pair) => [
      userWord(names[pair.from]),
      userWord(names[pair.to]),
      count(pair.before),
      count(pair.after),
    ]),
    TITLES[view],
  );
  return [element("h3", {}, TITLES[view]), ...firstOf(list, `Show ${rows.length} pairs`)];
};
