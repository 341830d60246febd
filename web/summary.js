import { element, folded, shape, table } from "./dom.js";
import { changeInForm, count, formOf, inForm, percent, plural, prose } from "./format.js";
import { hubPicture } from "./hub_picture.js";

const VERDICTS = {
  move: ["✓", "move"],
  mixed: ["±", "no-gain"],
  "no gain": ["≈", "no-gain"],
  harmful: ["✕", "harmful"],
};

/** Section 1: the verdict with one sentence, what a hub is, figures before → after beside chance. */
export const renderSummary = (section, figures) => {
  const { summary, counts, words } = figures;
  section.append(
    element("p", { class: "facts" }, sizes(counts)),
    verdictBand(summary),
    element("div", { class: "tiles" }, ...(summary.figures ?? []).map(tile)),
    hubPicture(counts.hub_k),
    element("p", { class: "lead" }, states(counts, words)),
    moverPart(summary.mover),
    moreFigures(summary),
  );
};

const sizes = ({ items, queries, classes, dimension, metric }) =>
  [
    plural(items, "stored item"),
    classes ? plural(classes, "class", "classes") : null,
    plural(queries, "query", "queries"),
    plural(dimension, "dimension"),
    `metric ${metric}`,
  ]
    .filter(Boolean)
    .join(" · ");

const states = (counts, words) =>
  `Asked: ${words.asked}. ` +
  `Before: the stored vectors as they are. After: each is replaced by its moved vector; ${words.queries}.` +
  (counts.classes ? ` The nearest ${counts.k_before} vote before, the nearest ${counts.k} after.` : "") +
  ` A hub here is an item in ${count(counts.hub_from)} answers or more: by chance, at most ` +
  `${percent(counts.hub_false_alarms, 0)} of such collections have an item in as many.`;

const verdictBand = ({ verdict, sentence }) => {
  const [icon, kind] = VERDICTS[verdict.kind] ?? ["?", "no-gain"];
  return element(
    "div",
    { class: `verdict ${kind}`, role: "note", "aria-label": "Verdict", "data-kind": verdict.kind },
    element("span", { class: "icon", "aria-hidden": "true" }, icon),
    element(
      "div",
      {},
      element("strong", {}, prose(verdict.title)),
      element("p", { class: "sentence user", dir: "auto" }, prose(sentence)),
      folded("The evidence", element("p", { class: "evidence", dir: "auto" }, prose(verdict.words))),
    ),
  );
};

const tile = (figure) => {
  const [kind, sign, word] = judge(figure);
  return element(
    "div",
    {
      class: `tile ${kind}`,
      "data-key": figure.key,
      "data-before": figure.before,
      "data-after": figure.after,
    },
    element("h2", {}, prose(figure.title)),
    element(
      "p",
      { class: "values" },
      element("span", { class: "value-before" }, `before ${inForm(figure.before, figure.form)}`),
      element("span", { class: "visually-hidden" }, ", after "),
      element(
        "strong",
        { class: "value-after" },
        element("span", { class: "arrow", "aria-hidden": "true" }, "→ "),
        inForm(figure.after, figure.form),
      ),
    ),
    element(
      "p",
      { class: "judgement" },
      element("span", { "aria-hidden": "true" }, `${sign} `),
      word,
    ),
    element("p", { class: "change" }, changeWords(figure)),
    element("div", { class: "beside-chance" }, ...besideChance(figure)),
    element("p", { class: "says" }, prose(figure.says)),
  );
};

/** @returns {[string, string, string]} class, sign and word of a change; a word, never colour alone */
const judge = ({ before, after, judgement }) => {
  if (!Number.isFinite(before) || !Number.isFinite(after)) return ["same", "", "not measured"];
  if (before === after) return ["same", "=", "no change"];
  if (judgement === "same") return ["same", "≈", "no clear change"];
  if (judgement === "unknown") return ["same", "≈", "too few queries to tell"];
  return [judgement, after > before ? "▲" : "▼", judgement];
};

const changeWords = ({ before, after, low, high, form }) => {
  if (!Number.isFinite(before) || !Number.isFinite(after)) return "";
  const unit = form === "percent" ? " points" : "";
  const change = changeInForm(after - before, form) + unit;
  if (!Number.isFinite(low) || !Number.isFinite(high)) return change;
  return `${change}, 95\u00a0% interval ${changeInForm(low, form)} to ${changeInForm(high, form)}`;
};

/** Before, after and chance on one line, and what chance gives in words. */
const besideChance = ({ before, after, chance, form }) => {
  if (![before, after, chance].every(Number.isFinite)) return [];
  const values = [before, after, chance];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const at = (value) => 6 + (high > low ? (88 * (value - low)) / (high - low) : 44);
  const svg = shape("svg", { viewBox: "0 0 100 16", "aria-hidden": "true", preserveAspectRatio: "none" });
  const dot = (value, name) =>
    shape("ellipse", { cx: at(value), cy: 8, rx: 2.4, ry: 5, class: `scale-${name}` });
  const mark = shape("line", { x1: at(chance), x2: at(chance), y1: 0, y2: 16, class: "scale-chance" });
  svg.append(shape("line", { x1: 0, x2: 100, y1: 8, y2: 8, class: "scale-line" }), mark);
  svg.append(dot(before, "before"), dot(after, "after"));
  return [svg, element("p", {}, `by chance ${inForm(chance, form)}`)];
};

/** How the items are moved: a formula for those who want it. */
const moverPart = (mover) =>
  mover ? folded("How the items are moved", element("p", {}, element("code", { class: "user", dir: "auto" }, mover))) : "";

const noteLine = (note) => element("li", { class: "user", dir: "auto" }, prose(note));

const moreFigures = (summary) => {
  const columns = [
    { title: "Measure" },
    { title: "Part" },
    { title: "Queries", numeric: true },
    { title: "Before", numeric: true },
    { title: "After", numeric: true },
    { title: "Change (95\u00a0% interval)", numeric: true },
  ];
  const rows = (summary.more ?? []).map((row) => [
    row.measure,
    row.part,
    count(row.n),
    inForm(row.before, formOf(row.measure)),
    inForm(row.after, formOf(row.measure)),
    changeWords({ ...row, form: formOf(row.measure) }).replace(", 95\u00a0% interval", ":"),
  ]);
  const notes = summary.notes ?? [];
  if (rows.length === 0 && notes.length === 0) return "";
  return folded(
    "More measures and notes",
    rows.length > 0 ? table(columns, rows, "More measures") : null,
    notes.length > 0 ? element("ul", {}, ...notes.map(noteLine)) : null,
  );
};
