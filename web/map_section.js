// Section 3, the map: builds the controls and joins them to the drawn map.

import { goTo as remember, onAddress } from "./address.js";
import { cut, element } from "./dom.js";
import { count, plural } from "./format.js";
import { DrawnMap } from "./map.js";
import { createControls } from "./map_controls.js";
import { createLegend } from "./map_legend.js";
import { Model } from "./map_model.js";
import { createPanel, createSearch, describe } from "./map_panel.js";

const HELP =
  "Drag to pan; click the map and turn the wheel, or pinch, to zoom; on a touch screen use two fingers. " +
  "On the focused map: arrows pan, + and − zoom, 0 resets, " +
  "n and p step through the busiest items, Escape clears the selection.";
const OUTSIDE = "A few points are further out: zoom out to see them.";
const STEP = 60; // pixels that an arrow key pans
const NEAR = 1.6; // zoom at which an item that was looked up is shown, at least

const createTooltip = (model, stage) => {
  const tip = element("div", { class: "map-tip", role: "tooltip", hidden: true });
  stage.append(tip);
  const hide = () => {
    tip.hidden = true;
  };
  const show = (place, x, y) => {
    const { occurrence, wrong } = describe(model, place);
    const label = model.itemLabel(place);
    const lines = [
      element("span", { class: "map-tip-id user", dir: "auto" }, cut(model.items.id[place], 60)),
      model.items.text?.[place]
        ? element("span", { class: "user", dir: "auto" }, cut(model.items.text[place], 160))
        : null,
      label === null ? null : element("span", { class: "user", dir: "auto" }, `class ${cut(label, 60)}`),
      element("span", { class: "map-tip-numbers" }, `${occurrence}, ${wrong}`),
    ];
    tip.replaceChildren(...lines.filter((line) => line !== null));
    tip.hidden = false;
    const { width, height } = stage.getBoundingClientRect();
    const left = Math.min(x + 14, width - tip.offsetWidth - 6);
    const top = y + 16 + tip.offsetHeight > height ? y - tip.offsetHeight - 12 : y + 16;
    tip.style.transform = `translate(${Math.max(6, left)}px, ${Math.max(6, top)}px)`;
  };
  return { show, hide };
};

/** Pointer: hovering shows the tooltip, a click without a drag selects. */
const listenToPointer = (map, tooltip, choose) => {
  const { canvas } = map;
  let pending = 0;
  let down = null;
  const inside = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const hover = (x, y) => {
    pending = 0;
    const place = map.pick(x, y);
    canvas.classList.toggle("map-over", place >= 0);
    if (place >= 0) tooltip.show(place, x, y);
    else tooltip.hide();
  };
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    cancelAnimationFrame(pending);
    if (event.buttons) tooltip.hide();
    else pending = requestAnimationFrame(() => hover(...inside(event)));
  });
  canvas.addEventListener("pointerleave", () => {
    cancelAnimationFrame(pending);
    tooltip.hide();
  });
  canvas.addEventListener("pointerdown", (event) => {
    down = inside(event);
  });
  canvas.addEventListener("click", (event) => {
    const [x, y] = inside(event);
    if (down && Math.hypot(x - down[0], y - down[1]) > 5) return; // a drag
    choose(map.pick(x, y));
  });
};

const listenToKeys = (map, model, choose) => {
  const walk = (step) => {
    const { busiest } = model;
    const at = busiest.indexOf(map.state.selected);
    const next = at < 0 ? (step > 0 ? 0 : busiest.length - 1) : (at + step + busiest.length) % busiest.length;
    if (busiest.length) choose(busiest[next]);
  };
  const keys = {
    ArrowLeft: () => map.view.panBy(-STEP, 0),
    ArrowRight: () => map.view.panBy(STEP, 0),
    ArrowUp: () => map.view.panBy(0, -STEP),
    ArrowDown: () => map.view.panBy(0, STEP),
    "+": () => map.view.zoomBy(1.4),
    "=": () => map.view.zoomBy(1.4),
    "-": () => map.view.zoomBy(1 / 1.4),
    0: () => map.view.reset(),
    n: () => walk(1),
    p: () => walk(-1),
    Escape: () => choose(-1),
  };
  map.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
};

/** What a test can read: numbers of the last frame as data attributes. */
const publish = (host, model, frame) => {
  const values = {
    morph: frame.morph.toFixed(2),
    selected: frame.selected < 0 ? "" : model.items.id[frame.selected],
    rays: frame.captured.length,
    wrongRays: frame.captured.filter((ray) => ray.wrong).length,
    frames: frame.frames,
    zoom: frame.zoom.toFixed(3),
    visible: frame.visible,
  };
  for (const [name, value] of Object.entries(values)) {
    if (host.dataset[name] !== String(value)) host.dataset[name] = value;
  }
};

const zoomButtons = (map) =>
  element(
    "div",
    { class: "map-zoom", role: "group", "aria-label": "Zoom" },
    element("button", { type: "button", "aria-label": "Zoom in", onclick: () => map.view.zoomBy(1.6) }, "+"),
    element(
      "button",
      { type: "button", "aria-label": "Zoom out", onclick: () => map.view.zoomBy(1 / 1.6) },
      "−",
    ),
    element("button", { type: "button", onclick: () => map.view.reset() }, "Reset"),
  );

/** Where an item is now, as clientX and clientY. */
const onScreen = (map, place) => {
  const box = map.canvas.getBoundingClientRect();
  const [x, y] = map.pointOf(place);
  return [box.left + x, box.top + y];
};

const labelCanvas = (canvas, model) => {
  const words =
    `Map of ${plural(model.count, "item")} and ${plural(model.queries.x.length, "query", "queries")}; ` +
    `before moving, ${count(model.items.n0[model.busiest[0]] ?? 0)} queries have the busiest item ` +
    `among their ${model.nearest} nearest.`;
  // An image and no "application": screen readers keep their keys, and search and lists do all that keys do.
  const attributes = { tabindex: "0", role: "img", "aria-label": words, "aria-describedby": "map-help" };
  for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
};

/** The map with its legend on the left, search and panel on the right. */
const layOut = (host, details, { model, stage, legend, controls, search, panel }) => {
  const apart = model.bounds.central === model.bounds.whole ? null : OUTSIDE;
  const caption = [details.layout.words, details.sampled, apart].filter(Boolean).join(" ");
  host.classList.add("map");
  host.append(
    controls.element,
    element(
      "div",
      { class: "map-body" },
      element(
        "div",
        { class: "map-main" },
        stage,
        legend.element,
        element("p", { class: "map-note map-caption" }, caption),
        element("p", { class: "map-note", id: "map-help" }, HELP),
      ),
      element("aside", { class: "map-side", "aria-label": "Items of the map" }, search, panel.element),
    ),
  );
};

/** @returns {{select(place: number): void, element: HTMLElement}} */
export const renderMap = (host, figures, details) => {
  const model = new Model(figures, details);
  const stage = element("div", { class: "map-stage" });
  const choose = (place) => {
    map.set({ selected: place });
    remember({ hub: place < 0 ? null : model.items.id[place] });
  };
  const change = (changes) => {
    map.set(changes);
    if ("morph" in changes) remember({ state: map.after ? "after" : null }, { replace: true });
  };
  const goTo = (place) => {
    choose(place);
    if (place < 0) return;
    const box = stage.getBoundingClientRect();
    if (box.top < 0 || box.bottom > window.innerHeight) stage.scrollIntoView({ block: "center" });
    map.view.centre(map.pointOf(place), NEAR);
  };
  const clear = () => {
    choose(-1);
    map.canvas.focus({ preventScroll: true }); // the button that had the focus is gone
  };
  const tooltip = createTooltip(model, stage);
  const legend = createLegend(model);
  const panel = createPanel(model, goTo, clear);
  const controls = createControls(model, change);
  const search = createSearch(model, (matches) => map.set({ matches }), goTo);
  layOut(host, details, { model, stage, legend, controls, search, panel });
  const map = new DrawnMap(stage, model, (frame) => {
    publish(host, model, frame);
    tooltip.hide(); // what is under the pointer may have moved
    controls.show(frame);
    panel.show(frame);
    legend.show(frame.colour, map.radii());
  });
  labelCanvas(map.canvas, model);
  stage.append(controls.corner, zoomButtons(map));
  listenToPointer(map, tooltip, choose);
  listenToKeys(map, model, goTo);
  host.hublessMap = { screen: (place) => onScreen(map, place) };
  onAddress(({ hub, state }) => {
    map.set({ selected: hub === null ? -1 : model.items.id.indexOf(hub) });
    if (map.after !== (state === "after")) map.set({ morph: state === "after" ? 1 : 0 });
  });
  const select = (place) => goTo(place < model.count ? place : -1);
  return { select, element: host };
};
