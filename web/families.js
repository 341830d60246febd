// Families of hubs: hubs that the same queries find, named by the words that their texts share.

import { cut, element, userWord } from "./dom.js";
import { count, plural } from "./format.js";
import { rowLink } from "./links.js";

/** Below the cards of the hubs. */
export const renderFamilies = (section, figures, details, page) => {
  const families = details.families ?? [];
  section.append(element("h3", {}, "Hub families"));
  if (families.length === 0) {
    section.append(element("p", {}, "No hubs are found by the same queries often enough to be a family."));
    return;
  }
  section.append(
    element(
      "p",
      {},
      "Hubs that the same queries find. Their words are frequent in the family and rare in other items; " +
        "a hub here is an item that chance would not return so often.",
    ),
    element("div", { class: "families" }, ...families.map((family) => card(family, figures, page))),
  );
};

const card = (family, { counts }, page) =>
  element(
    "article",
    { class: "family" },
    element("h4", {}, ...title(family)),
    element(
      "p",
      { class: "family-facts" },
      `${count(family.hubs)} hubs, found by ${plural(family.before, "query", "queries")} before and ` +
        `${count(family.after)} after`,
    ),
    element("ul", {}, ...family.members.map((member) => line(member, counts.hub_k, page))),
    family.hubs > family.members.length
      ? element("p", { class: "family-facts" }, `and ${count(family.hubs - family.members.length)} more`)
      : null,
  );

/** Its words; without any, the class that its hubs share, or their ids. */
const title = ({ words, members }) => {
  if (words.length > 0) return words.flatMap((word, place) => [place > 0 ? ", " : "", userWord(word, 40)]);
  const [first, ...others] = members;
  const isShared = first.label !== null && others.every(({ label }) => label === first.label);
  if (isShared) return ["class ", userWord(first.label, 40)];
  return [userWord(first.id, 30), ", ", userWord(others[0].id, 30)];
};

const line = (member, k, page) =>
  element(
    "li",
    {},
    element("span", { class: "family-id" }, rowLink(page.links.items, member.id, 30)),
    member.text === null
      ? null
      : element("span", { class: "user family-text", dir: "auto" }, cut(member.text, 110)),
    element(
      "span",
      { class: "family-counts" },
      `N${k} ${count(member.before)} → ${count(member.after)}`,
      member.place >= 0 && page.map
        ? element(
            "button",
            { type: "button", class: "link", onclick: () => page.map.select(member.place), title: "Show on the map" },
            "map",
          )
        : null,
    ),
  );
