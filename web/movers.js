import { dot, link, ruleX, text } from "@observablehq/plot";
import { chart, draw, hover } from "./chart.js";
import { cut, element, folded, oneLine, table, userWord } from "./dom.js";
import { count, duration, inForm } from "./format.js";

const FIRST = 15;
const WIDE = 760; // px: names left of the dots, reasons right of them; below, names above the dots
const LETTER = 6.6; // px, about, of a letter in a name

/** All movers that were tried, the best first, with standard errors. */
export const moverChart = (section, movers) => {
  const scored = movers.filter((mover) => Number.isFinite(mover.score));
  const state = { limit: FIRST };
  const button = element(
    "button",
    { type: "button", class: "more" },
    `Show all ${count(scored.length)} movers`,
  );
  button.addEventListener("click", () => {
    state.limit = Infinity;
    button.remove();
    figure?.redraw();
  });
  const after = [scored.length > FIRST ? button : null, folded("The movers as a table", moverTable(movers))];
  if (scored.length === 0) {
    section.append(...after.filter(Boolean));
    return;
  }
  const chosen = movers.find((mover) => mover.chosen);
  const figure = chart(section, {
    title: "All movers that were tried",
    label:
      `${count(movers.length)} movers by score. ` +
      `Best: ${scored[0].name}, ${inForm(scored[0].score, "fraction")}.` +
      (chosen ? ` Chosen: ${chosen.name}.` : ""),
    caption:
      "A dot is the score of a mover on held-out queries, its line ± one standard error. " +
      "The chosen mover is filled and named in bold.",
    draw: (width) => drawMovers(scored.slice(0, state.limit), width),
    after,
  });
};

const moverTable = (movers) =>
  table(
    [
      { title: "Mover" },
      { title: "k", numeric: true },
      { title: "Score", numeric: true },
      { title: "± error", numeric: true },
      { title: "Queries", numeric: true },
      { title: "Time", numeric: true },
      { title: "Remark" },
    ],
    movers.map((mover) => [
      userWord(mover.name, 120),
      mover.k ?? "",
      Number.isFinite(mover.score) ? inForm(mover.score, "fraction") : "",
      Number.isFinite(mover.error) ? inForm(mover.error, "fraction") : "",
      Number.isFinite(mover.queries) ? count(mover.queries) : "",
      Number.isFinite(mover.seconds) ? duration(mover.seconds) : "",
      mover.chosen ? "chosen" : mover.why_not || "",
    ]),
    "All movers that were tried",
  );

const errorOf = (mover) => (Number.isFinite(mover.error) ? mover.error : 0);

/** Room for names and reasons, px: names take the place of reasons where there are none. */
const sides = (movers, wide) => {
  if (!wide) return { left: 12, right: 12, letters: 42 };
  const reasons = movers.some((mover) => mover.why_not);
  const bold = (mover) => (mover.chosen ? 5 : 0); // wider letters
  const longest = Math.max(...movers.map((mover) => mover.name.length + tailOf(mover).length + bold(mover)));
  const left = Math.min(reasons ? 290 : 460, 24 + Math.ceil(longest * LETTER));
  return { left, right: reasons ? 250 : 20, letters: Math.floor((left - 24) / LETTER) };
};

const drawMovers = (movers, width) => {
  const wide = width >= WIDE;
  const { left, right, letters } = sides(movers, wide);
  const step = wide ? 24 : 42;
  const low = Math.min(...movers.map((mover) => mover.score - errorOf(mover)));
  const high = Math.max(...movers.map((mover) => mover.score + errorOf(mover)));
  const room = 0.05 * (high - low || 0.1);
  const rows = movers.map((mover, place) => ({ ...mover, place }));
  const colour = (mover) => (mover.chosen ? "var(--after)" : "var(--muted)");
  const y = (mover) => mover.place + (wide ? 0 : 0.22);
  const bounds = {
    x1: (mover) => mover.score - errorOf(mover),
    x2: (mover) => mover.score + errorOf(mover),
    y1: y,
    y2: y,
  };
  const fill = (mover) => (mover.chosen ? "var(--after)" : "var(--surface)");
  return draw({
    width,
    height: 60 + rows.length * step,
    margins: [14, right, 40, left],
    x: {
      domain: [low - room, high + room],
      label: "score →",
      labelAnchor: "center",
      ticks: wide ? 5 : 4,
      grid: true,
    },
    y: { domain: [rows.length - 0.4, -0.6], axis: null },
    marks: [
      ruleX([rows[0].score], { stroke: "var(--line)", strokeDasharray: "5 4" }),
      link(rows, { ...bounds, stroke: colour, strokeWidth: 2 }),
      dot(rows, { x: "score", y, r: 5, stroke: colour, strokeWidth: 2, fill }),
      ...names(rows, letters, wide, [low - room, high + room]),
      hover(rows, { x: "score", y, title: tipOf }),
    ],
  });
};

const tipOf = (mover) =>
  [
    oneLine(mover.name, 80),
    mover.k === null || mover.k === undefined ? null : `k ${mover.k}`,
    inForm(mover.score, "fraction") +
      (Number.isFinite(mover.error) ? ` ± ${inForm(mover.error, "fraction")}` : ""),
    Number.isFinite(mover.seconds) ? `learned in ${duration(mover.seconds)}` : null,
    mover.chosen ? "chosen" : cut(mover.why_not ?? "", 160),
  ]
    .filter(Boolean)
    .join("\n");

const tailOf = (mover) => (mover.k ? `, k\u00a0${mover.k}` : "") + (mover.chosen ? " (chosen)" : "");

// Marks of direction in a name must not turn around what stands beside it: it is isolated.
const named = (mover, length) => {
  const tail = tailOf(mover);
  return `\u2068${oneLine(mover.name, Math.max(4, length - tail.length))}\u2069${tail}`;
};

const names = (rows, letters, wide, [low, high]) => {
  const label = (chosen) =>
    text(
      rows.filter((mover) => Boolean(mover.chosen) === chosen),
      {
        x: low,
        y: (mover) => mover.place - (wide ? 0 : 0.22),
        text: (mover) => named(mover, letters),
        textAnchor: wide ? "end" : "start",
        dx: wide ? -12 : 0,
        fill: "var(--text)",
        fontWeight: chosen ? 700 : 400,
        stroke: "var(--surface)",
        strokeWidth: 4,
      },
    );
  const reason = text(
    rows.filter((mover) => mover.why_not),
    {
      x: high,
      y: "place",
      text: (mover) => oneLine(mover.why_not, 36),
      textAnchor: "start",
      dx: 12,
      fill: "var(--muted)",
    },
  );
  return wide ? [label(false), label(true), reason] : [label(false), label(true)];
};
