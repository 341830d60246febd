// Above the map: the slider from before to after, the colouring and the filters.

import { cut, element } from "./dom.js";
import { count, plural } from "./format.js";
import { animate, ease } from "./map_view.js";

const PLAY = 1600; // milliseconds from before to after
const MOST_OPTIONS = 30; // with more classes a box to type in is faster than a list

const RANGE = { type: "range", min: "0", max: "100", step: "1", value: "0" };

const stateWords = (percent) => {
  if (percent === 0) return "before moving";
  return percent === 100 ? "after moving" : `${percent} % of the way from before to after`;
};

/** In the corner of the map, so that a picture of it says what it shows. */
const createState = () => {
  const words = element("span", { class: "map-state", "aria-hidden": "true" });
  const show = (percent) => {
    const text = percent % 100 ? `${percent} %` : `${percent ? "After" : "Before"} moving`;
    if (words.textContent === text) return;
    words.textContent = text;
    words.classList.toggle("map-before", percent === 0);
    words.classList.toggle("map-after", percent === 100);
  };
  return { element: words, show };
};

const createSlider = (change) => {
  const slider = element("input", { ...RANGE, id: "map-morph", "aria-label": "From before to after moving" });
  const button = element("button", { type: "button", class: "map-play" }, "Play");
  let stop = null;
  const finish = () => {
    stop?.();
    stop = null;
    button.textContent = "Play";
  };
  slider.addEventListener("input", () => {
    finish();
    change({ morph: Number(slider.value) / 100 });
  });
  button.addEventListener("click", () => {
    if (stop) return finish();
    button.textContent = "Stop";
    stop = animate(
      PLAY,
      (share) => change({ morph: ease(share) }),
      () => queueMicrotask(finish),
    );
  });
  const show = (morph) => {
    const percent = Math.round(100 * morph);
    if (slider.value !== String(percent)) slider.value = percent;
    slider.setAttribute("aria-valuetext", stateWords(percent));
  };
  const row = element(
    "div",
    { class: "map-morph" },
    button,
    element("label", { for: "map-morph", class: "map-before" }, "Before"),
    slider,
    element("span", { class: "map-after", "aria-hidden": "true" }, "After"),
  );
  return { element: row, show };
};

const labelled = (words, control) =>
  element("label", { class: "map-control" }, element("span", {}, words), control);

const colourChoice = (model, change) => {
  const options = [
    ["hubs", "hubs"],
    ...(model.hasClasses ? [["class", "class"]] : []),
    ["wrong", `${model.miss} answers`],
  ];
  const choice = element(
    "select",
    { onchange: () => change({ colour: choice.value }) },
    ...options.map(([value, words]) => element("option", { value }, words)),
  );
  return labelled("Colour by", choice);
};

const classList = (names, change) => {
  const choice = element(
    "select",
    { onchange: () => change({ label: Number(choice.value) }) },
    element("option", { value: "-1" }, "all classes"),
    ...names.map((name, place) => element("option", { value: place }, cut(name, 60))),
  );
  return choice;
};

/** A box that completes names; an unknown name filters nothing and is marked. */
const classBox = (names, change) => {
  const box = element("input", {
    type: "search",
    list: "map-classes",
    placeholder: "all classes",
    autocomplete: "off",
  });
  box.addEventListener("input", () => {
    const place = names.indexOf(box.value);
    box.setAttribute("aria-invalid", String(box.value !== "" && place < 0));
    change({ label: place });
  });
  const list = element(
    "datalist",
    { id: "map-classes" },
    ...names.map((name) => element("option", { value: name })),
  );
  return element("span", {}, box, list);
};

const classFilter = (model, change) => {
  if (!model.hasClasses) return null;
  const make = model.names.length > MOST_OPTIONS ? classBox : classList;
  return labelled("Class", make(model.names, change));
};

const checkbox = (words, checked, changed) => {
  const box = element("input", { type: "checkbox", checked, onchange: () => changed(box.checked) });
  return element("label", { class: "map-check" }, box, element("span", {}, words));
};

/** @returns {{element: HTMLElement, corner: HTMLElement, show(frame): void}} corner: the state, how many items pass */
export const createControls = (model, change) => {
  const slider = createSlider(change);
  const state = createState();
  const visible = element("output", { class: "map-visible", "aria-live": "polite" });
  const show = ({ morph, visible: shown }) => {
    slider.show(morph);
    state.show(Math.round(100 * morph));
    const words =
      shown === model.count ? plural(shown, "item") : `${count(shown)} of ${plural(model.count, "item")}`;
    if (visible.textContent !== words) visible.textContent = words;
  };
  const hubs = `Only hubs (${model.measure} ≥ ${count(Math.ceil(model.hubFloor))})`;
  const row = element(
    "div",
    { class: "map-filters" },
    colourChoice(model, change),
    classFilter(model, change),
    checkbox(hubs, false, (onlyHubs) => change({ onlyHubs })),
    checkbox("Queries", true, (showQueries) => change({ showQueries })),
  );
  const corner = element("div", { class: "map-corner" }, state.element, visible);
  return { element: element("div", { class: "map-controls" }, slider.element, row), corner, show };
};
