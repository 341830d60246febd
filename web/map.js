// The drawn map: draws when something changed, knows which item is under the pointer.

import { createCanvas } from "./map_canvas.js";
import { drawOverlay } from "./map_overlay.js";
import { FILTERED, paintItems, readTheme } from "./map_paint.js";
import { radii, View } from "./map_view.js";

const REACH = 10; // a click this near to a dot still means the dot, CSS pixels
const RIM = 3.5; // larger dots get a rim in the colour of the paper, CSS pixels
const FADED = 0.3; // opacity of everything else while an item is selected
const DIAMOND = 2.6; // half a query's width, CSS pixels
const REPAINT = ["colour", "label", "onlyHubs"]; // parts of the state that colours depend on

/** Events that change the page's colours, printing among them. */
const onThemeChange = (listener) => {
  document.addEventListener("themechange", listener);
  window.addEventListener("beforeprint", listener);
  window.addEventListener("afterprint", listener);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    window.matchMedia(query).addEventListener("change", listener);
  }
};

export class DrawnMap {
  /** Read by anyone, changed by set() only. label: −1 for all classes; selected: −1 for none. */
  state = {
    morph: 0,
    colour: "hubs",
    label: -1,
    onlyHubs: false,
    showQueries: true,
    selected: -1,
    captured: [],
    matches: [],
  };
  #size = { width: 1, height: 1, ratio: 1 };
  #pending = 0; // id of the frame that was requested
  #stale = true; // colours must be painted again
  #frames = 0;
  #visible = 0;
  #theme = readTheme();
  #colours;
  #painter;
  #drawn;

  /**
   * @param host an empty element that the map fills
   * @param drawn called after every frame with the state and what was drawn
   */
  constructor(host, model, drawn) {
    this.host = host;
    this.model = model;
    this.#drawn = drawn;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "map-dots";
    host.append(this.canvas);
    this.#colours = [new Uint8Array(4 * model.count), new Uint8Array(4 * model.count)];
    this.#painter = createCanvas(this.canvas, model, this.#colours);
    this.view = new View(this.canvas, model.bounds, () => this.#request());
    this.#listen();
  }

  get after() {
    return this.state.morph >= 0.5;
  }

  /** Takes changes of the state, finds the rays again where needed, and requests a frame. */
  set(changes) {
    const { after } = this;
    const { selected } = this.state;
    Object.assign(this.state, changes);
    const turned = this.after !== after;
    if (turned || this.state.selected !== selected) {
      this.state.captured =
        this.state.selected < 0 ? [] : this.model.captured(this.state.selected, this.after);
    }
    this.#stale ||= turned || REPAINT.some((key) => key in changes);
    this.#request();
  }

  /** Where an item is, or with `points` a query; CSS pixels of the canvas. */
  pointOf(place, { x, y } = this.model.items) {
    const { originX, originY, scale } = this.view.projection;
    return [originX + x[place] * scale, originY - y[place] * scale];
  }

  radiusOf(place) {
    const { growth, least, most } = this.radii(this.view.zoomed);
    const { n0, n1 } = this.model.items;
    const occurrence = n0[place] + (n1[place] - n0[place]) * this.state.morph;
    return Math.min(most, Math.max(least, growth * Math.sqrt(occurrence)));
  }

  radii(zoomed = 1) {
    return radii(this.model, this.#size, zoomed);
  }

  /** The item under a point of the canvas, or −1. Inside dots the largest wins, around them the nearest. */
  pick(x, y) {
    const { x: across, y: up } = this.model.items;
    const { originX, originY, scale } = this.view.projection;
    const { most } = this.radii(this.view.zoomed);
    let best = -1;
    let bestKey = REACH;
    for (let place = 0; place < this.model.count; place++) {
      const away = Math.hypot(originX + across[place] * scale - x, originY - up[place] * scale - y);
      if (away > most + REACH || this.#colours[0][4 * place + 3] < FILTERED) continue;
      const radius = this.radiusOf(place);
      const key = away <= radius + 1 ? -radius : away - radius;
      if (key < bestKey) [best, bestKey] = [place, key];
    }
    return best;
  }

  #listen() {
    new ResizeObserver(() => this.#resize()).observe(this.host);
    onThemeChange(() => {
      this.#theme = readTheme();
      this.#stale = true;
      this.#draw(); // at once: printing does not wait for a frame
    });
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width < 1 || height < 1) return; // folded away
    const ratio = Math.min(this.#painter.finest, window.devicePixelRatio || 1);
    this.#size = { width, height, ratio };
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.view.resize(width, height);
    this.#draw(); // at once: a changed size has emptied the canvas
  }

  #request() {
    this.#pending ||= requestAnimationFrame(() => this.#draw());
  }

  #frame() {
    const { morph, showQueries, selected } = this.state;
    return {
      ...this.#size,
      ...this.radii(this.view.zoomed),
      theme: this.#theme,
      view: this.view.projection,
      morph,
      showQueries,
      reach: DIAMOND * Math.min(2, this.view.zoomed ** 0.3),
      queryOpacity: this.model.queries.x.length > 3000 ? 0.35 : 0.5,
      fade: selected < 0 ? 1 : FADED,
      faint: FILTERED,
      rim: RIM,
    };
  }

  #draw() {
    cancelAnimationFrame(this.#pending);
    this.#pending = 0;
    if (this.#stale) {
      this.#visible = paintItems(this.model, this.#theme, this.state, ...this.#colours);
      this.#stale = false;
    }
    const frame = this.#frame();
    const marked = this.state.selected >= 0 || this.state.matches.length > 0;
    this.#painter.draw(frame, marked ? (context) => drawOverlay(context, frame, this) : null);
    this.#frames += 1;
    this.#drawn({
      ...this.state,
      frames: this.#frames,
      visible: this.#visible,
      zoom: this.view.zoomed,
    });
  }
}
