import { element, folded, table } from "./dom.js";
import { changeInForm, count, inForm } from "./format.js";

const VERDICTS = {
  move: ["✓", "move"],
  mixed: ["±", "no-gain"],
  "no gain": ["≈", "no-gain"],
  harmful: ["✕", "harmful"],
};

/** Section 1: the sentence, four figures before → after, the verdict. */
export const renderSummary = (section, figures) => {
  const { summary, counts, words } = figures;
  section.append(element("p", { class: "sentence user", dir: "auto" }, summary.sentence));
  section.append(element("div", { class: "tiles" }, ...(summary.figures ?? []).map(tile)));
  section.append(verdictBand(summary.verdict));
  section.append(element("p", { class: "lead" }, sizes(counts, words)));
  section.append(moreFigures(summary));
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
    element("h2", {}, figure.title),
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
    element("p", { class: "judgement" }, element("span", { "aria-hidden": "true" }, `${sign} `), word),
    element("p", { class: "change" }, changeWords(figure)),
    chanceWords(figure),
    element("p", { class: "says" }, figure.says ?? ""),
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

/** What random answers would give, where that is known. */
const chanceWords = ({ chance, form }) =>
  Number.isFinite(chance)
    ? element("p", { class: "says by-chance" }, `By chance ${inForm(chance, form)}.`)
    : null;

const changeWords = ({ before, after, low, high, form }) => {
  if (!Number.isFinite(before) || !Number.isFinite(after)) return "";
  const unit = form === "percent" ? " points" : "";
  const change = changeInForm(after - before, form) + unit;
  if (!Number.isFinite(low) || !Number.isFinite(high)) return change;
  return `${change}, 95\u00a0% interval ${changeInForm(low, form)} to ${changeInForm(high, form)}`;
};

const verdictBand = (verdict) => {
  const [icon, kind] = VERDICTS[verdict.kind] ?? ["?", "no-gain"];
  return element(
    "div",
    { class: `verdict ${kind}`, role: "note", "aria-label": "Verdict", "data-kind": verdict.kind },
    element("span", { class: "icon", "aria-hidden": "true" }, icon),
    element(
      "p",
      {},
      element("strong", {}, verdict.title),
      " ",
      element("span", { dir: "auto" }, verdict.words),
    ),
  );
};

const sizes = (counts, words) => {
  const classes = counts.classes ? ` in ${count(counts.classes)} classes` : "";
  return (
    `${count(counts.items)} stored ${words?.item ?? "items"} and ${count(counts.queries)} queries` +
    `${classes}, ${count(counts.dimension)} dimensions, metric ${counts.metric}. ` +
    "Before: the original stored vectors. After: each is replaced by its moved vector (see the section " +
    "Choice); queries are unchanged. " +
    `N${counts.hub_k} of an item is how many queries have it among their ${counts.hub_k} nearest; ` +
    `a hub is an item whose N${counts.hub_k} is at least twice the mean.`
  );
};

const noteLine = (note) => element("li", { class: "user", dir: "auto" }, note);

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
    inForm(row.before, "fraction"),
    inForm(row.after, "fraction"),
    changeWords({ ...row, form: "fraction" }).replace(", 95\u00a0% interval", ":"),
  ]);
  const notes = summary.notes ?? [];
  if (rows.length === 0 && notes.length === 0) return "";
  return folded(
    "More measures and notes",
    rows.length > 0 ? table(columns, rows, "More measures") : null,
    notes.length > 0 ? element("ul", {}, ...notes.map(noteLine)) : null,
  );
};
