import { element, table, userWord } from "./dom.js";
import { changeInForm, count, inForm, number, percent, prose } from "./format.js";

/** The best settings of the race and not moving, side by side: in the race, and on the queries of the page. */
export const compareMovers = (section, { measure, settings }, hubK, form) => {
  const columns = [
    { title: "Setting" },
    { title: "Score in the race", numeric: true },
    { title: measure, numeric: true },
    { title: `N${hubK} skewness`, numeric: true },
    { title: "Never returned", numeric: true },
    { title: "Fixed", numeric: true },
    { title: "Broken", numeric: true },
  ];
  const rows = settings.map((setting) => [
    nameOf(setting),
    raceOf(setting, form),
    lines(inForm(setting.value, form), ...apart(setting.here, form)),
    number(setting.skewness),
    percent(setting.never),
    count(setting.fixed),
    count(setting.broken),
  ]);
  const compared = table(columns, rows, "The best settings side by side");
  compared.classList.add("stacked");
  section.append(element("h3", {}, "The best settings side by side"), compared, element("p", { class: "says" }, CAPTION));
};

const CAPTION =
  "The score in the race is that of held-out queries, ± its standard error; all else was measured on the " +
  "queries of this page. Fixed queries are answered correctly here and not without moving, broken ones the " +
  "other way round. Below a score: its difference from that of the chosen setting on the same queries, ± the " +
  "standard error of the difference. A difference within its standard error says nothing about which is better.";

const nameOf = ({ name, k, does, chosen, why_not }) =>
  element(
    "div",
    { class: "setting" },
    chosen ? element("strong", {}, "Chosen: ") : null,
    element("span", { class: "user", dir: "auto" }, prose(does)),
    lines(
      null,
      element("span", {}, userWord(name, 160), k ? `, k\u00a0${k}` : ""),
      why_not ? element("span", { class: "user", dir: "auto" }, why_not) : null,
    ),
  );

const raceOf = ({ score, error, queries, in_race }, form) => {
  if (!Number.isFinite(score)) return lines("not in the race");
  const sure = Number.isFinite(error) ? ` ±\u00a0${inForm(error, form)}` : "";
  return lines(
    inForm(score, form) + sure,
    Number.isFinite(queries) ? `${count(queries)} queries` : null,
    ...apart(in_race, form),
  );
};

/** How far a setting is from the chosen one: "−0.5 ± 0.9", "within the error". */
const apart = (difference, form) => {
  if (!difference) return [];
  const { mean, error, within } = difference;
  const size = `${changeInForm(mean, form)} ±\u00a0${changeInForm(error, form).replace("+", "")}`;
  return [size, within ? "within the error" : null];
};

const lines = (first, ...others) =>
  element(
    "div",
    {},
    first,
    ...others.filter(Boolean).map((other) => element("div", { class: "says" }, other)),
  );
