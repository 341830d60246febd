import { addressOf } from "./address.js";
import { isThumbnail } from "./data.js";
import { queryLine } from "./cards.js";
import { cut, element, pictureOf, radios, userText, userWord } from "./dom.js";
import { Lookup } from "./explorer_model.js";
import { count, plural } from "./format.js";

const FIRST = 3;
const STEP = 20; // that a click adds
const WORDS = {
  broken: ["×", "broken: right before, wrong after"],
  fixed: ["✓", "fixed: wrong before, right after"],
};

/** Section 6: queries whose answer changed, broken first, with filters. */
export const renderChanged = (section, figures, details, page) => {
  const model = new Lookup(figures, details);
  const all = (details.changed ?? []).map((query) => withPictures(query, model, page.pictures));
  const totals = figures.changed ?? {};
  section.append(
    element(
      "p",
      {},
      `${plural(totals.broken ?? 0, "query is", "queries are")} broken, ` +
        `${count(totals.fixed ?? 0)} fixed; ${count(totals.unchanged_right ?? 0)} are right before and ` +
        `after, ${count(totals.unchanged_wrong ?? 0)} wrong before and after.` +
        sampleWords(all, totals),
    ),
  );
  if (all.length === 0) return;
  const filter = { status: "all", label: null, words: "", shown: FIRST };
  const line = element("p", { class: "count", "aria-live": "polite" });
  const list = element("ol", { class: "changed" });
  const more = element("button", { type: "button", class: "more" });
  const show = () => showList(all, filter, { line, list, more });
  const change = (key) => (value) => {
    Object.assign(filter, { [key]: value, shown: FIRST });
    show();
  };
  more.addEventListener("click", () => {
    filter.shown += STEP;
    show();
  });
  section.append(controls(all, change), line, list, more);
  show();
};

/** A query with pictures of it and of its neighbours, where the page has them. */
const withPictures = (query, model, pictures) => {
  if (!model.rows.has(query.place)) return query;
  const [before, after] = [query.before, query.after].map((answer, state) => {
    const places = model.neighbours(query.place, state);
    const pictured = (item, rank) => ({ ...item, picture: pictures.item(places[rank].key) });
    return { ...answer, neighbors: answer.neighbors.map(pictured) };
  });
  return { ...query, picture: pictures.query(query.place), before, after };
};

/** Python lists at most a hundred queries of each kind. */
const sampleWords = (all, { broken = 0, fixed = 0 }) =>
  all.length < broken + fixed ? ` ${count(all.length)} of the ${count(broken + fixed)} are listed.` : "";

const controls = (all, change) => {
  const labels = [
    ...new Set(all.map((query) => query.label).filter((label) => typeof label === "string")),
  ].sort();
  // The value is a place: a class may have any name, an empty one too.
  const select = element(
    "select",
    { onchange: () => change("label")(labels[select.value] ?? null) },
    element("option", { value: "" }, "all classes"),
    ...labels.map((label, place) => element("option", { value: place }, cut(label, 60))),
  );
  return element(
    "div",
    { class: "controls" },
    radios(
      {
        legend: "Show",
        name: "status",
        value: "all",
        options: [
          ["all", "All"],
          ["broken", "Broken"],
          ["fixed", "Fixed"],
        ],
      },
      change("status"),
    ),
    labels.length > 1 ? element("label", {}, "Class ", select) : null,
    element(
      "label",
      {},
      "Search ",
      element("input", {
        type: "search",
        autocomplete: "off",
        oninput: (event) => change("words")(event.target.value.toLowerCase()),
      }),
    ),
  );
};

const matches = (query, filter) => {
  if (filter.status !== "all" && query.status !== filter.status) return false;
  if (filter.label !== null && query.label !== filter.label) return false;
  if (filter.words === "") return true;
  const texts = [query.id, query.text, query.label, query.before?.answer, query.after?.answer];
  return texts.some((text) => typeof text === "string" && text.toLowerCase().includes(filter.words));
};

const showList = (all, filter, { line, list, more }) => {
  const matching = all.filter((query) => matches(query, filter));
  const shown = matching.slice(0, filter.shown);
  const broken = matching.filter((query) => query.status === "broken").length;
  line.textContent =
    matching.length === 0
      ? "No query matches."
      : `${plural(matching.length, "query", "queries")} ` +
        `(${count(broken)} broken, ${count(matching.length - broken)} fixed), ` +
        `${count(shown.length)} shown.`;
  list.replaceChildren(...shown.map(changedQuery));
  more.hidden = shown.length >= matching.length;
  more.textContent = `Show ${Math.min(STEP, matching.length - shown.length)} more`;
};

const changedQuery = (query) => {
  const [sign, words] = WORDS[query.status] ?? ["", query.status];
  const label = query.label ?? null;
  const title = element(
    "summary",
    {},
    element("span", { class: "status" }, element("span", { "aria-hidden": "true" }, `${sign} `), words),
    element("span", { class: "text user", dir: "auto" }, cut(query.text ?? query.id, 140)),
    element("span", { class: "answers" }, ...answers(query, label)),
  );
  return element(
    "li",
    { class: `query ${query.status}`, "data-status": query.status },
    element(
      "details",
      {},
      title,
      isThumbnail(query.picture) ? pictureOf(query.picture, "Picture of the query") : null,
      wholeText(query.text),
      element("div", { class: "columns sides" }, side("Before", query.before), side("After", query.after)),
      element("p", { class: "look-up" }, element("a", { href: addressOf({ query: query.id }) }, "All neighbours")),
    ),
  );
};

/** Class of the query and the classes it was given; nothing where queries have no classes. */
const answers = (query, label) => [
  label === null ? null : element("span", {}, "class ", userWord(label, 40)),
  query.before?.answer
    ? element(
        "span",
        {},
        "answered ",
        userWord(query.before.answer, 40),
        " → ",
        userWord(query.after?.answer ?? "nothing", 40),
      )
    : null,
];

const wholeText = (text) =>
  text && cut(text, 140) !== text ? element("p", { class: "whole" }, userText(text, 600)) : null;

const side = (title, state) =>
  element(
    "div",
    {},
    element("h3", {}, `Neighbours ${title.toLowerCase()}`),
    element("ol", { class: "neighbors" }, ...(state?.neighbors ?? []).map(queryLine)),
  );
