// The drawn map: picks a renderer, draws when something changed, knows which item is under the pointer.

import { createCanvas } from "./map_canvas.js";
import { drawOverlay } from "./map_overlay.js";
import { FILTERED, paintItems, readTheme } from "./map_paint.js";
import { radii, View } from "./map_view.js";
import { createWebgl, hasGraphicsCard } from "./map_webgl.js";

const REACH = 10; // a click this near to a dot still means the dot, CSS pixels
const RIM = 3.5; // larger dots get a rim in the colour of the paper, CSS pixels
const FADED = 0.3; // opacity of everything else while an item is selected
const DIAMOND = 2.6; // half a query's width, CSS pixels
const REPAINT = ["colour", "label", "onlyHubs"]; // parts of the state that colours depend on

/** WebGL2 on a graphics card, else pixels by hand; "#webgl" or "#canvas" in the address forces one. */
const chooseRenderer = (canvas, model, colours) => {
  const forced = window.location.hash.slice(1);
  const webgl = forced === "webgl" || (forced !== "canvas" && hasGraphicsCard());
  return (webgl ? createWebgl(canvas, model, colours) : null) ?? createCanvas(canvas, model, colours);
};

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
  #printing = false;
  #frames = 0;
  #visible = 0;
  #theme = readTheme();
  #colours;
  #renderer;
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
    this.#renderer = chooseRenderer(this.canvas, model, this.#colours);
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

  /** Where an item is now, CSS pixels of the canvas. */
  pointOf(place) {
    const { x0, y0, x1, y1 } = this.model.items;
    const { originX, originY, scale } = this.view.projection;
    return [originX + this.#mixed(x0, x1, place) * scale, originY - this.#mixed(y0, y1, place) * scale];
  }

  queryPoint(query) {
    const { originX, originY, scale } = this.view.projection;
    return [originX + this.model.queries.x[query] * scale, originY - this.model.queries.y[query] * scale];
  }

  radiusOf(place) {
    const { growth, least, most } = this.radii(this.view.zoomed);
    const { n0, n1 } = this.model.items;
    return Math.min(most, Math.max(least, growth * Math.sqrt(this.#mixed(n0, n1, place))));
  }

  radii(zoomed = 1) {
    return radii(this.model, this.#size, zoomed);
  }

  /** The item under a point of the canvas, or −1. Inside dots the largest wins, around them the nearest. */
  pick(x, y) {
    const { x0, y0, x1, y1, n0, n1 } = this.model.items;
    const { originX, originY, scale } = this.view.projection;
    const { growth, least, most } = this.radii(this.view.zoomed);
    const { morph } = this.state;
    const stay = 1 - morph;
    let best = -1;
    let bestKey = REACH;
    for (let place = 0; place < this.model.count; place++) {
      const right = originX + (x0[place] * stay + x1[place] * morph) * scale - x;
      const down = originY - (y0[place] * stay + y1[place] * morph) * scale - y;
      const away = Math.hypot(right, down);
      if (away > most + REACH || this.#colours[0][4 * place + 3] < FILTERED) continue;
      const radius = Math.min(
        most,
        Math.max(least, growth * Math.sqrt(n0[place] * stay + n1[place] * morph)),
      );
      const key = away <= radius + 1 ? -radius : away - radius;
      if (key < bestKey) [best, bestKey] = [place, key];
    }
    return best;
  }

  #mixed(from, to, place) {
    return from[place] + (to[place] - from[place]) * this.state.morph;
  }

  #listen() {
    new ResizeObserver(() => this.#resize()).observe(this.host);
    onThemeChange(({ type }) => {
      this.#printing = type === "beforeprint" || window.matchMedia("print").matches;
      this.#theme = readTheme();
      this.#stale = true;
      this.#draw(); // at once: printing does not wait for a frame
    });
    this.canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => {
      this.host.querySelector(".map-overlay")?.remove();
      this.#renderer = chooseRenderer(this.canvas, this.model, this.#colours);
      this.#request();
    });
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width < 1 || height < 1) return; // folded away
    const ratio = Math.min(this.#renderer.finest, window.devicePixelRatio || 1);
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
      printing: this.#printing,
    };
  }

  #draw() {
    cancelAnimationFrame(this.#pending);
    this.#pending = 0;
    if (this.#stale) {
      this.#visible = paintItems(this.model, this.#theme, this.state, ...this.#colours);
      this.#renderer.recolour();
      this.#stale = false;
    }
    const frame = this.#frame();
    const marked = this.state.selected >= 0 || this.state.matches.length > 0;
    this.#renderer.draw(frame, marked ? (context) => drawOverlay(context, frame, this) : null);
    this.#frames += 1;
    this.#drawn({
      ...this.state,
      frames: this.#frames,
      visible: this.#visible,
      renderer: this.#renderer.name,
      zoom: this.view.zoomed,
    });
  }
}
