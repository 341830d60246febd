import { renderApply } from "./apply.js";
import { shareButtons } from "./card.js";
import { renderCards } from "./cards.js";
import { renderChanged } from "./changed.js";
import { remeasure } from "./chart.js";
import { renderChoice } from "./choice.js";
import { readDetails, readFigures } from "./data.js";
import { element, folded } from "./dom.js";
import { renderExplorer } from "./explorer.js";
import { renderClasses } from "./heatmap.js";
import { renderFamilies } from "./families.js";
import { renderMap } from "./map_section.js";
import { followAddress, navigation } from "./navigation.js";
import { readPictures } from "./pictures.js";
import { renderSkyline } from "./skyline.js";
import { renderSummary } from "./summary.js";
import { renderWhy } from "./why.js";

/**
 * The sections in their order. `packed`: needs the details. `lead` makes one sentence, given the name of N10.
 * A render function gets (section, figures, details, page); `page.map` is set by the section of the map.
 * `deep`: for those who ask how and why, so it is folded on a phone.
 */
const SECTIONS = [
  { id: "summary", short: "Summary", render: placeSummary },
  {
    id: "skyline",
    short: "Skyline",
    title: "How often every item is returned",
    render: renderSkyline,
    lead: (n) =>
      `${n} of every item, sorted: hubs are at the left, items that no query finds at the bottom right.`,
  },
  {
    id: "map",
    short: "Map",
    title: "The map of items and queries",
    render: placeMap,
    packed: true,
    lead: (n) =>
      `Each dot is a stored item, its area shows its ${n}; the slider goes from before moving to after.`,
  },
  {
    id: "hubs",
    short: "Hubs",
    title: "The hubs that do the most harm",
    render: (...given) => {
      renderCards(...given);
      renderFamilies(...given);
    },
    packed: true,
    lead: (n) =>
      "Items by how often they are a wrong answer before moving, or take the place of a relevant item; " +
      `then by ${n}. Queries that find them, those harmed first.`,
  },
  {
    id: "explorer",
    short: "Queries",
    title: "Look up a query",
    render: renderExplorer,
    packed: true,
    lead: () => "What a query finds before and after, side by side; lines lead from rank to rank.",
  },
  {
    id: "classes",
    short: "Classes",
    title: "Which classes are confused",
    render: renderClasses,
    lead: () => "How often queries of one class are given another, before and after.",
  },
  {
    id: "changed",
    short: "Changed",
    title: "Broken and fixed queries",
    render: renderChanged,
    packed: true,
    lead: () =>
      "Broken queries are answered correctly before and not after, fixed ones the other way round. " +
      "The broken ones come first.",
  },
  {
    id: "why",
    deep: true,
    short: "Why",
    title: "Why hubs come and go",
    render: renderWhy,
    lead: () =>
      "In many dimensions, items near the mean are near to everything and become hubs. The less the stored " +
      "items vary compared with the queries, the weaker this effect. In this data:",
  },
  {
    id: "choice",
    deep: true,
    short: "Choice",
    title: "How the mover was chosen",
    render: renderChoice,
    lead: () => "What was tried, how it scored, and how long that took.",
  },
  {
    id: "apply",
    deep: true,
    short: "Apply",
    title: "Apply and roll back",
    render: renderApply,
    lead: () =>
      "How to switch to the moved items and back, if that is advised; where the figures come from.",
  },
];

function placeSummary(section, figures) {
  renderSummary(section, figures);
  section.append(shareButtons(figures.share));
}

function placeMap(section, figures, details, page) {
  const holder = element("div");
  section.append(holder);
  page.map = renderMap(holder, figures, details);
}

/** An empty section with its heading, already in the page: charts must know their width. */
const place = (main, { id, title, lead }, figures) => {
  const name = `N${figures.counts.hub_k}`;
  const heading =
    id === "summary"
      ? element("h1", { id: "summary-title", class: "user", dir: "auto" }, figures.title)
      : element("h2", { id: `${id}-title` }, title);
  const section = element(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    heading,
    lead ? element("p", { class: "lead" }, lead(name)) : null,
  );
  main.append(section);
  return section;
};

const PHONE = matchMedia("(max-width: 640px)");

const fill = (section, { render, deep }, figures, details, page) => {
  const part = deep && PHONE.matches ? section.appendChild(foldedPart(section)) : section;
  try {
    render(part, figures, details, page);
  } catch (error) {
    section.append(
      element("p", { class: "note", role: "alert" }, `This part could not be shown: ${error.message}`),
    );
  }
};

const foldedPart = (section) => {
  const part = folded(element("span", { "aria-describedby": `${section.id}-title` }, "Show this part"));
  part.classList.add("deep");
  return part;
};

const start = async () => {
  const main = document.getElementById("page");
  const figures = readFigures();
  const failure = [];
  const details = await readDetails().catch((error) => failure.push(error.message) && null);
  const sections = SECTIONS.filter((section) => details !== null || !section.packed);
  const page = { map: null, links: figures.links, pictures: details && readPictures(details.pictures) };
  main.replaceChildren();
  document.querySelector("header.top").append(...navigation(sections));
  if (details === null)
    main.append(
      element(
        "p",
        { class: "note", role: "alert" },
        `The map, the hub cards and the changed queries cannot be shown: ${failure[0]}.`,
      ),
    );
  for (const section of sections) fill(place(main, section, figures), section, figures, details, page);
  followAddress(
    sections.map(({ id }) => id),
    details,
  );
  document.documentElement.dataset.ready = "true";
};

// Charts are drawn for the width of the paper, then again for that of the window.
const onPaper = (yes) => {
  document.documentElement.classList.toggle("paper", yes);
  for (const part of document.querySelectorAll("details.deep")) part.open = yes;
  remeasure();
};
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));

start().catch((error) => {
  document
    .getElementById("page")
    .append(
      element(
        "p",
        { class: "note", role: "alert" },
        `The figures of this page cannot be read: ${error.message}`,
      ),
    );
});
