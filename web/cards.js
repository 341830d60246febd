import { cut, element, firstOf, pictureOf, userText, userWord } from "./dom.js";
import { isThumbnail } from "./data.js";
import { count, percent, plural } from "./format.js";
import { rowLink } from "./links.js";

/** Section 4: the busiest items, one card each, whether they are hubs or not. */
export const renderCards = (section, figures, details, page) => {
  const hubs = details.hubs ?? [];
  if (hubs.length === 0) {
    section.append(element("p", {}, "No query finds any item."));
    return;
  }
  const largest = Math.max(1, ...hubs.map((hub) => Math.max(hub.before, hub.after)));
  const cards = hubs.map((hub) => card(hub, largest, figures.counts.hub_k, page));
  section.append(...firstOf(element("div", { class: "cards" }, ...cards), `Show ${hubs.length} items`));
};

const card = (hub, largest, k, page) =>
  element(
    "article",
    { class: "card", "data-place": hub.place },
    element(
      "header",
      {},
      element("h3", {}, rowLink(page.links.items, hub.id, 40)),
      hub.label === null || hub.label === undefined
        ? null
        : element("p", { class: "tag" }, userWord(hub.label, 40)),
    ),
    isThumbnail(hub.thumbnail)
      ? pictureOf(hub.thumbnail, `Picture of item ${cut(hub.id, 80)}`)
      : null,
    hub.text === null || hub.text === undefined
      ? null
      : element("p", { class: "text" }, userText(hub.text, 180)),
    element(
      "dl",
      { class: "bars" },
      ...bar("before", hub.before, largest, k),
      ...bar("after", hub.after, largest, k),
    ),
    wrongShare(hub),
    hub.before > 0 && hub.after === 0
      ? element("p", { class: "note" }, "After moving, no query finds it: the hub became an anti-hub.")
      : null,
    findingQueries(hub.queries ?? [], page),
    hub.place >= 0 && page.map
      ? element(
          "button",
          { type: "button", class: "show", onclick: () => page.map.select(hub.place) },
          "Show on the map",
        )
      : null,
  );

const bar = (state, value, largest, k) => [
  element("dt", {}, element("abbr", { title: `N${k} ${state} moving` }, state)),
  element(
    "dd",
    {},
    element("span", { class: `bar ${state}`, style: `width: ${(70 * value) / largest}%` }),
    element("span", { class: "bar-value" }, count(value)),
  ),
];

/** What it does to its queries; of pairs, most answers are not judged, which is not to be wrong. */
const wrongShare = (hub) => {
  const state = (kind, name) =>
    Number.isFinite(hub[`${kind}_${name}`])
      ? [element("strong", {}, percent(hub[`${kind}_${name}`], 0)), ` ${name}`]
      : null;
  const shares = (words, kind) => {
    const [before, after] = [state(kind, "before"), state(kind, "after")];
    if (before === null) return null;
    return element("p", { class: "wrong-share" }, words, ...before, ...(after ? [", ", ...after] : []));
  };
  if (!(hub.unjudged_before > 0 || hub.unjudged_after > 0))
    return shares("A wrong answer to this share of its queries: ", "wrong");
  return element(
    "div",
    {},
    hub.wrong_before > 0 || hub.wrong_after > 0 ? shares("Judged wrong: ", "wrong") : null,
    shares("Unjudged: ", "unjudged"),
    element(
      "p",
      { class: "wrong-share" },
      "In the way of a relevant item: ",
      element("strong", {}, plural(hub.harm_before, "query", "queries")),
      " before, ",
      element("strong", {}, count(hub.harm_after)),
      " after",
    ),
  );
};

const findingQueries = (queries, page) =>
  queries.length === 0
    ? null
    : element(
        "div",
        { class: "captured" },
        element("h4", {}, "Queries that find it"),
        element("ul", {}, ...queries.map((query) => queryLine({ ...query, picture: page.pictures.query(query.place) }))),
      );

/** A query or neighbour on one line; a wrong one has a cross and the word. */
export const queryLine = (query) =>
  element(
    "li",
    { class: query.wrong ? "wrong" : "right" },
    query.wrong
      ? element("span", { class: "mark" }, element("span", { "aria-hidden": "true" }, "× "), "wrong")
      : query.unjudged
        ? element("span", { class: "tag" }, "unjudged")
        : null,
    isThumbnail(query.picture) ? pictureOf(query.picture, `Picture of ${cut(query.id, 60)}`) : null,
    userText(query.text ?? query.id, 110),
    " ",
    query.label === null || query.label === undefined
      ? null
      : element("span", { class: "tag" }, userWord(query.label, 40)),
  );
