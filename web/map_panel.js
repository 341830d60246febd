// Beside the map, as ordinary elements: the selected item, or the busiest ones, and the results of a search.

import { isThumbnail } from "./data.js";
import { cut, element, pictureOf, userText, userWord } from "./dom.js";
import { count, percent, plural } from "./format.js";
import { MAX_RINGS } from "./map_overlay.js";

const LISTED = 50; // queries that find the selected item
const RESULTS = 20;
const BUSIEST = 8;
const SEARCH_BOX = { type: "search", autocomplete: "off", spellcheck: "false" };
const PAUSE = 120; // milliseconds without a key before a search starts

const change = (before, after, write) => `${write(before)} → ${write(after)}`;
const share = (value) => (value === null ? "none" : percent(value, 0));

/** "N10 207 → 33" and "60 % → 30 % wrong answers", in words for tooltips and screen readers. */
export const describe = (model, place) => {
  const { n0, n1 } = model.items;
  return {
    occurrence: `${model.measure} ${change(n0[place], n1[place], count)}`,
    wrong: `${model.miss} answers ${change(model.wrongShare(place, false), model.wrongShare(place, true), share)}`,
  };
};

/** A list of items as buttons, each with its N10 before and after. */
const itemButtons = (model, places, choose) =>
  element(
    "ul",
    { class: "map-items" },
    ...places.map((place) =>
      element(
        "li",
        {},
        element(
          "button",
          { type: "button", onclick: () => choose(place) },
          element("span", { class: "user", dir: "auto" }, cut(model.itemText(place), 80)),
          element(
            "span",
            { class: "map-number" },
            change(model.items.n0[place], model.items.n1[place], count),
          ),
        ),
      ),
    ),
  );

const queryItem = (model, { query, wrong }) =>
  element(
    "li",
    { class: wrong ? "map-wrong" : "map-right" },
    element(
      "span",
      { class: "map-mark", title: wrong ? `${model.miss} answer` : "right answer" },
      element("span", { "aria-hidden": "true" }, wrong ? "×" : "✓"),
      element("span", { class: "map-unseen" }, wrong ? `${model.miss}: ` : "right: "),
    ),
    element("span", { class: "user", dir: "auto" }, cut(model.queryText(query), 160)),
    model.queryLabel(query) === null
      ? null
      : element("span", { class: "map-label" }, "class ", userWord(model.queryLabel(query), 40)),
  );

/** "207 queries, 80 of them drawn" */
const drawnWords = (found, drawn) => {
  if (found === drawn) return plural(found, "query", "queries");
  return `${plural(found, "query", "queries")}, ${count(drawn)} of them drawn`;
};

const capturedList = (model, place, captured, after) => {
  const found = model.occurrence(place, after);
  const moment = after ? "after moving" : "before moving";
  if (found === 0) return [element("h4", {}, `No query finds it ${moment}`)];
  const rest = captured.length > LISTED ? `The first ${LISTED} are listed, ${model.miss} answers first.` : null;
  return [
    element("h4", {}, `Queries that find it ${moment}`),
    element("p", { class: "map-note" }, drawnWords(found, captured.length), rest ? `. ${rest}` : null),
    element(
      "ul",
      { class: "map-queries", tabindex: "0", "aria-label": `Queries that find it ${moment}` },
      ...captured.slice(0, LISTED).map((ray) => queryItem(model, ray)),
    ),
  ];
};

const figure = (title, before, after) =>
  element(
    "div",
    {},
    element("dt", {}, title),
    element(
      "dd",
      {},
      element("span", { class: "map-before" }, before),
      " → ",
      element("span", { class: "map-after" }, after),
    ),
  );

const selectedItem = (model, { selected, captured, morph }, clear) => {
  const { n0, n1 } = model.items;
  const label = model.itemLabel(selected);
  const picture = model.pictures.get(selected);
  return [
    element(
      "div",
      { class: "map-selected-head" },
      element("h3", {}, userWord(model.items.id[selected], 60)),
      element(
        "button",
        { type: "button", class: "map-clear", "aria-label": "Clear the selection", onclick: clear },
        "×",
      ),
    ),
    label === null ? null : element("p", { class: "map-label" }, "class ", userWord(label, 60)),
    isThumbnail(picture) ? pictureOf(picture, "Picture of the selected item") : null,
    model.items.text?.[selected]
      ? element("p", { class: "map-text" }, userText(model.items.text[selected], 240))
      : null,
    element(
      "dl",
      { class: "map-figures" },
      figure(model.measure, count(n0[selected]), count(n1[selected])),
      figure(
        model.miss === "wrong" ? "Wrong answers" : "Unjudged answers",
        share(model.wrongShare(selected, false)),
        share(model.wrongShare(selected, true)),
      ),
    ),
    ...capturedList(model, selected, captured, morph >= 0.5),
  ].filter((child) => child !== null);
};

const overview = (model, choose) => [
  element("h3", {}, "The busiest items"),
  element(
    "p",
    { class: "map-note" },
    `${model.measure}: how many queries have the item among their ${model.nearest} nearest, ` +
      "before → after. Choose an item to see the queries that find it.",
  ),
  itemButtons(model, model.busiest.slice(0, BUSIEST), choose),
];

const spoken = (model, place) => {
  const { occurrence, wrong } = describe(model, place);
  return `Selected ${cut(model.itemText(place), 80)}: ${occurrence}, ${wrong}.`;
};

/** @returns {{element: HTMLElement, show(state): void}} shows the selected item, or the busiest */
export const createPanel = (model, choose, clear) => {
  const content = element("div", { class: "map-panel", role: "region", "aria-label": "Selected item" });
  const announcement = element("p", { class: "map-unseen", "aria-live": "polite" });
  let shown = null;

  const show = (state) => {
    const now = `${state.selected} ${state.morph >= 0.5}`;
    if (now === shown || (state.selected < 0 && shown?.startsWith("-1"))) return;
    shown = now;
    const selected = state.selected >= 0;
    content.classList.toggle("map-overview", !selected);
    content.replaceChildren(...(selected ? selectedItem(model, state, clear) : overview(model, choose)));
    announcement.textContent = selected ? spoken(model, state.selected) : "";
  };

  return { element: element("div", {}, content, announcement), show };
};

const matchWords = (matches, words) => {
  if (!words.trim()) return "";
  const found = `${plural(matches.length, "item matches", "items match")}.`;
  if (matches.length > MAX_RINGS) return `${found} The busiest ${count(MAX_RINGS)} are ringed.`;
  return matches.length > RESULTS ? `${found} The first ${RESULTS} are listed.` : found;
};

/** @returns {HTMLElement} the search box with its results; found(places) rings them, choose(place) selects */
export const createSearch = (model, found, choose) => {
  const input = element("input", { ...SEARCH_BOX, id: "map-search", placeholder: "Id or text" });
  const message = element("p", { class: "map-note map-found", "aria-live": "polite" });
  const results = element("div", { class: "map-results" });
  let waiting = 0;
  let matches = [];

  const search = () => {
    clearTimeout(waiting);
    waiting = 0;
    matches = model.search(input.value);
    message.textContent = matchWords(matches, input.value);
    results.replaceChildren(
      ...(matches.length ? [itemButtons(model, matches.slice(0, RESULTS), choose)] : []),
    );
    found(matches);
  };
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && input.value) {
      input.value = "";
      search();
    } else if (event.key === "Enter") {
      if (waiting) search();
      if (matches.length) choose(matches[0]);
    }
  });
  return element(
    "div",
    { class: "map-search" },
    element("label", { for: "map-search" }, "Find an item"),
    input,
    message,
    results,
  );
};
