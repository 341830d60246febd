import { axisX, axisY, frame, link, rect } from "@observablehq/plot";
import { chart, draw, hover, ramp, shade } from "./chart.js";
import { alongDiagonal, pairsOf, valueOf, worstClasses, worstPairs } from "./confusions.js";
import { cut, element, oneLine, radios, table, userWord } from "./dom.js";
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
  const ranked = worstClasses(pairs, size, size);
  const orders = { all: alongDiagonal(pairs, ranked), worst: alongDiagonal(pairs, ranked.slice(0, FEW)) };
  buildHeatmap(section, {
    names: classes.names,
    pairs,
    orders,
    view: "before",
    extent: size > FEW ? "worst" : "all",
  });
};

/**
 * @param {HTMLElement} section
 * @param {object} state names, pairs, orders (places of classes for "all" and "worst"), view and extent
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
      "A row is the true class of the queries, a column the class that they were given. Classes that are " +
      "confused are side by side. Point at a cell to see its classes.",
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
            ["worst", `Worst ${FEW}`],
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

const cellsOf = ({ pairs, orders, extent, view }) => {
  const at = new Map(orders[extent].map((name, place) => [name, place]));
  return pairs
    .filter((pair) => at.has(pair.from) && at.has(pair.to) && valueOf(pair, view) !== 0)
    .map((pair) => ({ ...pair, row: at.get(pair.from), column: at.get(pair.to) }));
};

/** Margin and side of a heat map of `size` classes: with names on its axes if there is room for letters. */
const layout = (size, width) => {
  const whole = Math.min(width, 700);
  const roomy = Math.min(190, Math.round(0.3 * width));
  const named = (whole - roomy) / size >= LETTER;
  const margin = named ? roomy : 26;
  return { named, margin, side: whole - margin - 4 };
};

const drawHeatmap = (state, width) => {
  const order = state.orders[state.extent];
  const size = order.length;
  const { named, margin, side } = layout(size, width);
  const name = (place) => oneLine(state.names[order[Math.floor(place)]], Math.floor(margin / 7.2));
  const ticks = named ? order.map((_, place) => place + 0.5) : [];
  const axis = {
    ticks,
    tickFormat: name,
    tickSize: 0,
    labelArrow: false,
    labelAnchor: "center",
    labelOffset: 14,
  };
  const top = { anchor: "top", tickRotate: -90, textAnchor: "start" };
  return draw({
    width: margin + side + 4,
    height: margin + side + 4,
    margins: [margin, 4, 4, margin],
    x: { domain: [0, size] },
    y: { domain: [size, 0] },
    marks: [
      frame({ stroke: "var(--line)", fill: "var(--empty)" }),
      link([0], { x1: 0, y1: 0, x2: size, y2: size, stroke: "var(--line)" }),
      axisX({ ...axis, ...top, label: named ? null : "class that was given →" }),
      axisY({ ...axis, label: named ? null : "← true class" }),
      ...cellMarks(state, side / size),
    ],
  });
};

/** @param {number} pixels width of a cell; below 2 px it is drawn larger than its place, to be seen */
const cellMarks = (state, pixels) => {
  const cells = cellsOf(state);
  const largest = largestOf(state.pairs, state.view);
  const grow = Math.max(0, 2 / pixels - 1) / 2;
  const title = (cell) =>
    `true: ${oneLine(state.names[cell.from], 60)}\ngiven: ${oneLine(state.names[cell.to], 60)}\n` +
    `before ${count(cell.before)}, after ${count(cell.after)}`;
  return [
    rect(cells, {
      x1: (cell) => cell.column - grow,
      x2: (cell) => cell.column + 1 + grow,
      y1: (cell) => cell.row - grow,
      y2: (cell) => cell.row + 1 + grow,
      fill: (cell) => colour(valueOf(cell, state.view), largest, state.view),
      inset: pixels > 6 ? 0.5 : 0,
    }),
    hover(cells, { x: (cell) => cell.column + 0.5, y: (cell) => cell.row + 0.5, title }),
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
  return [
    element("h3", {}, TITLES[view]),
    table(
      [
        { title: "True class" },
        { title: "Given" },
        { title: "Before", numeric: true },
        { title: "After", numeric: true },
      ],
      rows.map((pair) => [
        userWord(names[pair.from], 34),
        userWord(names[pair.to], 34),
        count(pair.before),
        count(pair.after),
      ]),
      TITLES[view],
    ),
  ];
};
