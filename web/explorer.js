// Look up a query: its neighbours before and after, side by side.

import { askForm } from "./ask.js";
import { goTo, onAddress } from "./address.js";
import { isThumbnail } from "./data.js";
import { cut, element, pictureOf, radios, userText, userWord } from "./dom.js";
import { Lookup } from "./explorer_model.js";
import { count, plural } from "./format.js";
import { rowAddress, rowLink } from "./links.js";
import { rankColumns } from "./ranks.js";

const LISTED = 8; // queries that a search lists
const PAUSE = 120; // milliseconds without a key before a search starts
const SIGNS = { broken: "×", fixed: "✓", right: "✓", wrong: "×" };
const STATUS = {
  broken: "broken: right before, wrong after",
  fixed: "fixed: wrong before, right after",
  right: "right before and after",
  wrong: "wrong before and after",
};
const MARKS = {
  labels: { right: "same class", wrong: "another class" },
  pairs: { right: "relevant", unjudged: "not judged relevant" },
};

/** The section: a search on the left, the query with its neighbours on the right. */
export const renderExplorer = (section, figures, details, page) => {
  const model = new Lookup(figures, details);
  if (model.places.length === 0) {
    section.append(element("p", {}, "There is no query to look up."));
    return;
  }
  const shown = element("div", { class: "explored" });
  const words = MARKS[figures.task] ?? MARKS.labels;
  const show = (place) => {
    list.mark(place);
    shown.replaceChildren(...explored(model, place, words, page));
  };
  const choose = (place) => {
    goTo({ query: model.query(place).id });
    show(place);
  };
  const list = createList(model, choose);
  section.append(
    element("p", { class: "count" }, sizes(model, figures)),
    figures.asks ? askForm((item) => onPage(item, page)) : "",
    element("div", { class: "explorer" }, list.element, shown),
  );
  onAddress(({ query }) => {
    const place = query === null ? undefined : model.find(query);
    show(place ?? list.first());
    if (query !== null && place === undefined) shown.prepend(notHere(query));
  });
};

const notHere = (id) =>
  element("p", { class: "note" }, "The neighbours of the query ", userWord(id, 80), " are not on this page.");

const sizes = (model, { counts, words, task }) => {
  const some = model.places.length < counts.queries ? `${count(model.places.length)} of the ` : "";
  return (
    `${some}${plural(counts.queries, "query", "queries")} can be looked up; those whose neighbours change the ` +
    `most come first. A query is right if ${task === "pairs" ? `it has ${words.answered}` : `${words.answered} is its own`}.`
  );
};

/** The search box, the filter and the queries that match. */
const createList = (model, choose) => {
  const filter = { status: "all", words: "" };
  const found = element("p", { class: "count", "aria-live": "polite" });
  const results = element("ul", { class: "explorer-results" });
  let matches = [];
  let marked = -1;
  let waiting = 0;

  const mark = (place) => {
    marked = place;
    for (const button of results.querySelectorAll("button")) {
      if (Number(button.dataset.place) === place) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  };
  const search = () => {
    matches = model.search(filter.words, filter.status);
    const some = matches.length > LISTED ? " The first ones are listed." : "";
    found.textContent = `${plural(matches.length, "query matches", "queries match")}.${some}`;
    results.replaceChildren(...matches.slice(0, LISTED).map((place) => resultLine(model, place, choose)));
    mark(marked);
  };
  const input = element("input", { type: "search", id: "explorer-search", autocomplete: "off", placeholder: "Id, text or class" });
  input.addEventListener("input", () => {
    filter.words = input.value;
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(waiting);
      search();
      if (matches.length) choose(matches[0]);
    } else if (event.key === "Escape" && input.value) {
      event.preventDefault();
      input.value = filter.words = "";
      search();
    }
  });
  const options = [["all", "All"], ["broken", "Broken"], ["fixed", "Fixed"]];
  const kinds = radios({ legend: "Show", name: "explorer-status", value: "all", options }, (status) => {
    filter.status = status;
    search();
  });
  search();
  return {
    mark,
    first: () => model.order[0],
    element: element(
      "div",
      { class: "explorer-list" },
      element("label", { for: "explorer-search" }, "Find a query"),
      input,
      kinds,
      found,
      results,
    ),
  };
};

const resultLine = (model, place, choose) => {
  const { id, text } = model.query(place);
  const status = model.status(place);
  return element(
    "li",
    {},
    element(
      "button",
      { type: "button", "data-place": place, onclick: () => choose(place) },
      element("span", { class: "user", dir: "auto" }, cut(text ?? id, 90)),
      element("span", { class: `explorer-status ${status}` }, `${SIGNS[status]} ${STATUS[status]}`),
    ),
  );
};

/** A query with its neighbours. */
const explored = (model, place, words, page) => {
  const { id, text, label } = model.query(place);
  const status = model.status(place);
  const [before, after] = [0, 1].map((state) => model.neighbours(place, state).map((item) => onPage(item, page)));
  const picture = page.pictures.query(place);
  const rights = (list) => list.filter(({ mark }) => mark === "right").length;
  return [
    element("h3", { class: "explored-query" }, userText(text ?? id, 300)),
    isThumbnail(picture) ? pictureOf(picture, "Picture of the query") : "",
    element(
      "p",
      { class: "explored-facts" },
      element("span", { class: `explorer-status ${status}` }, `${SIGNS[status]} ${STATUS[status]}`),
      element("span", {}, "id ", rowLink(page.links.queries, id)),
      label === null ? null : element("span", {}, "class ", userWord(label, 60)),
      element("span", {}, `${words.right}: ${rights(before)} of ${before.length} before, ${rights(after)} of ${after.length} after`),
    ),
    rankColumns({ before, after }, words),
  ];
};

const onPage = (item, page) => ({
  ...item,
  picture: item.picture ?? page.pictures.item(item.key),
  link: rowAddress(page.links.items, item.id),
  show: item.place >= 0 && page.map ? () => page.map.select(item.place) : null,
});
