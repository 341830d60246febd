import { dot, link, ruleX, text } from "@observablehq/plot";
import { chart, draw, hover } from "./chart.js";
import { cut, element, folded, oneLine, table, tellApart, userWord } from "./dom.js";
import { count, duration, inForm, percent } from "./format.js";

const FIRST = 6;
const WIDE = 660; // px: names left of the dots, reasons right of them; below, names above the dots
const LETTER = 7; // px, about, of a letter in a name

/** All movers that were tried, the chosen one first, then by score, with standard errors. */
export const moverChart = (section, movers, form) => {
  const scored = movers
    .filter((mover) => Number.isFinite(mover.score))
    .sort((a, b) => Boolean(b.chosen) - Boolean(a.chosen) || b.score - a.score);
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
  const after = [scored.length > FIRST ? button : null, folded("The movers as a table", moverTable(movers, form))];
  if (scored.length === 0) {
    section.append(...after.filter(Boolean));
    return;
  }
  const chosen = movers.find((mover) => mover.chosen);
  const best = scored.reduce((one, other) => (other.score > one.score ? other : one));
  const figure = chart(section, {
    title: "All movers that were tried",
    label:
      `${count(movers.length)} movers by score. ` +
      `Best: ${best.name}, ${inForm(best.score, form)}.` +
      (chosen ? ` Chosen: ${chosen.name}.` : ""),
    caption:
      "The chosen mover comes first, then all by score. A dot is the score on held-out queries, its line " +
      "± one standard error.",
    draw: (width) => drawMovers(scored.slice(0, state.limit), form, width),
    after,
  });
};

const moverTable = (movers, form) =>
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
      Number.isFinite(mover.score) ? inForm(mover.score, form) : "",
      Number.isFinite(mover.error) ? inForm(mover.error, form) : "",
      Number.isFinite(mover.queries) ? count(mover.queries) : "",
      Number.isFinite(mover.seconds) ? duration(mover.seconds) : "",
      mover.chosen ? "chosen" : mover.why_not || "",
    ]),
    "All movers that were tried",
  );

const errorOf = (mover) => (Number.isFinite(mover.error) ? mover.error : 0);

/** Room for names and reasons, px: names take the place of reasons where there are none. */
const sides = (movers, wide, width) => {
  if (!wide) return { left: 12, right: 12, letters: Math.floor((width - 24) / LETTER) };
  const reasons = movers.some((mover) => mover.why_not);
  const bold = (mover) => (mover.chosen ? 5 : 0); // wider letters
  const longest = Math.max(...movers.map((mover) => mover.name.length + tailOf(mover).length + bold(mover)));
  const left = Math.min(reasons ? 380 : 480, 24 + Math.ceil(longest * LETTER));
  return { left, right: reasons ? 235 : 20, letters: Math.floor((left - 24) / LETTER) };
};

const drawMovers = (movers, form, width) => {
  const wide = width >= WIDE;
  const { left, right, letters } = sides(movers, wide, width);
  const step = wide ? 24 : 42;
  const ends = (mover) => [-1, 1].map((side) => possible(mover.score + side * errorOf(mover)));
  const all = movers.flatMap(ends);
  const room = 0.05 * (Math.max(...all) - Math.min(...all) || 0.1);
  const domain = [possible(Math.min(...all) - room), possible(Math.max(...all) + room)];
  const rows = movers.map((mover, place) => ({ ...mover, place }));
  const colour = (mover) => (mover.chosen ? "var(--after)" : "var(--muted)");
  const y = (mover) => mover.place + (wide ? 0 : 0.22);
  const bounds = {
    x1: (mover) => ends(mover)[0],
    x2: (mover) => ends(mover)[1],
    y1: y,
    y2: y,
  };
  const fill = (mover) => (mover.chosen ? "var(--after)" : "var(--surface)");
  return draw({
    width,
    height: 60 + rows.length * step,
    margins: [14, right, 40, left],
    x: {
      domain,
      label: "score →",
      labelAnchor: "center",
      ticks: wide ? 5 : 3,
      tickFormat: tickWords(domain, form),
      grid: true,
    },
    y: { domain: [rows.length - 0.4, -0.6], axis: null },
    marks: [
      ruleX([Math.max(...rows.map((row) => row.score))], { stroke: "var(--line)", strokeDasharray: "5 4" }),
      link(rows, { ...bounds, stroke: colour, strokeWidth: 2 }),
      dot(rows, { x: "score", y, r: 5, stroke: colour, strokeWidth: 2, fill }),
      ...names(rows, letters, wide, domain),
      hover(rows, { x: "score", y, title: (mover) => tipOf(mover, form) }),
    ],
  });
};

/** A score is between 0 and 1, and so are the ends of its line. */
const possible = (score) => Math.min(1, Math.max(0, score));

/** As many digits as tell ticks apart. */
const tickWords = ([low, high], form) => {
  const digits = Math.max(0, 1 - Math.floor(Math.log10(high - low)) - (form === "percent" ? 2 : 0));
  return (value) => (form === "percent" ? percent(value, digits) : value.toFixed(digits));
};

const tipOf = (mover, form) =>
  [
    oneLine(mover.name, 80),
    mover.k === null || mover.k === undefined ? null : `k ${mover.k}`,
    inForm(mover.score, form) + (Number.isFinite(mover.error) ? ` ± ${inForm(mover.error, form)}` : ""),
    Number.isFinite(mover.seconds) ? `learned in ${duration(mover.seconds)}` : null,
    mover.chosen ? "chosen" : cut(mover.why_not ?? "", 160),
  ]
    .filter(Boolean)
    .join("\n");

const tailOf = (mover) => (mover.k ? `, k\u00a0${mover.k}` : "") + (mover.chosen ? " (chosen)" : "");

// Marks of direction in a name must not turn around what stands beside it: it is isolated.
const named = (rows, length) => {
  const tails = rows.map(tailOf);
  const short = tellApart(
    rows.map((mover) => mover.name),
    (place) => Math.max(4, length - tails[place].length),
  );
  return rows.map((mover, place) => `\u2068${short[place]}\u2069${tails[place]}`);
};

const names = (rows, letters, wide, [low, high]) => {
  const shown = named(rows, letters);
  const label = (chosen) =>
    text(
      rows.filter((mover) => Boolean(mover.chosen) === chosen),
      {
        x: low,
        y: (mover) => mover.place - (wide ? 0 : 0.22),
        text: (mover) => shown[mover.place],
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
