// The view of the map: where the layout is on the screen, and zooming and panning by d3-zoom.

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";

const MARGIN = 26; // CSS pixels around the fitted layout, so that hubs at the edge are whole
const DEEPEST = 64;
const LEAST_RADIUS = 1.5;
const GLIDE = 420; // milliseconds

const reducedMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Calls step(0…1) in every frame for `duration` milliseconds; at once where reduced motion is preferred. */
export const animate = (duration, step, done = () => {}) => {
  if (reducedMotion()) {
    step(1);
    done();
    return () => {};
  }
  let cancelled = false;
  let began = null;
  const tick = (now) => {
    if (cancelled) return;
    began ??= now;
    const share = Math.min(1, (now - began) / duration);
    step(share);
    if (share < 1) requestAnimationFrame(tick);
    else done();
  };
  requestAnimationFrame(tick);
  return () => {
    cancelled = true;
  };
};

export const ease = (share) => share * share * (3 - 2 * share);

const COVERED = 0.4; // share of the map that dots may take if none overlap

/**
 * Radii in CSS pixels: the area of a dot grows with N10, the largest hub has at most about 22 at zoom 1.
 * @returns {{growth: number, least: number, most: number}} growth: for the root of N10
 */
export const radii = (model, { width, height }, zoomed) => {
  const most = Math.min(22, Math.max(11, width / 34));
  const larger = Math.min(3, zoomed ** 0.4); // dots grow more slowly than the space between them
  const crowded = Math.sqrt((COVERED * width * height) / (Math.PI * Math.max(1, model.total)));
  return {
    growth: Math.min(most / Math.sqrt(model.largest), Math.max(crowded, 0.8), 4) * larger,
    least: LEAST_RADIUS * Math.min(2, larger),
    most: most * larger,
  };
};

/** Fits the box of the layout into the canvas; one scale for both axes, y goes up. */
const fit = ({ left, right, bottom, top }, width, height) => {
  const across = Math.max(1, right - left);
  const up = Math.max(1, top - bottom);
  const free = [Math.max(1, width - 2 * MARGIN) / across, Math.max(1, height - 2 * MARGIN) / up];
  const scale = Math.min(...free);
  return {
    scale,
    originX: width / 2 - (scale * (left + right)) / 2,
    originY: height / 2 + (scale * (bottom + top)) / 2,
  };
};

/**
 * Which events zoom and pan the map. On a phone, one finger scrolls the page and two fingers zoom and pan. The
 * wheel scrolls the page until the map has the focus, so that scrolling does not stop at the map.
 */
const movesMap = (event) => {
  if (event.type.startsWith("touch")) return event.touches.length > 1;
  if (event.type === "wheel") return event.ctrlKey || document.activeElement === event.currentTarget;
  return !event.button && !event.ctrlKey;
};

export class View {
  #size = { width: 1, height: 1 };
  #transform = zoomIdentity;
  #stop = () => {};
  #base;
  #zoom;
  #target;

  /** @param changed called after every change of the view */
  constructor(canvas, bounds, changed) {
    this.bounds = bounds;
    this.#base = fit(bounds.central, 1, 1);
    this.#zoom = zoom()
      .filter(movesMap)
      .on("start", ({ sourceEvent }) => sourceEvent && this.#stop()) // a gesture of the user ends an animation
      .on("zoom", ({ transform }) => {
        this.#transform = transform;
        changed();
      });
    this.#target = select(canvas).call(this.#zoom).on("dblclick.zoom", null);
  }

  resize(width, height) {
    const grown = width / this.#size.width;
    this.#size = { width, height };
    this.#base = fit(this.bounds.central, width, height);
    this.#zoom.extent([
      [0, 0],
      [width, height],
    ]);
    this.#bound(width, height);
    const { x, y, k } = this.#transform;
    this.#go(k === 1 ? zoomIdentity : zoomIdentity.translate(x * grown, y * grown).scale(k));
  }

  /** One may zoom out until all is seen, and pan as far as a third of the map beyond it. */
  #bound(width, height) {
    const { scale, originX, originY } = this.#base;
    const { left, right, bottom, top } = this.bounds.whole;
    this.#zoom.scaleExtent([Math.min(1, fit(this.bounds.whole, width, height).scale / scale), DEEPEST]);
    this.#zoom.translateExtent([
      [Math.min(0, originX + scale * left) - width / 3, Math.min(0, originY - scale * top) - height / 3],
      [
        Math.max(width, originX + scale * right) + width / 3,
        Math.max(height, originY - scale * bottom) + height / 3,
      ],
    ]);
  }

  get zoomed() {
    return this.#transform.k;
  }

  /** Layout → CSS pixels of the canvas: x = originX + scale * layout x, y = originY − scale * layout y. */
  get projection() {
    const { scale, originX, originY } = this.#base;
    const transform = this.#transform;
    return {
      originX: transform.applyX(originX),
      originY: transform.applyY(originY),
      scale: scale * transform.k,
    };
  }

  zoomBy(factor) {
    this.#stop();
    this.#target.call(this.#zoom.scaleBy, factor);
  }

  panBy(right, down) {
    this.#stop();
    this.#target.call(this.#zoom.translateBy, -right / this.zoomed, -down / this.zoomed);
  }

  reset() {
    this.#glide(zoomIdentity);
  }

  /** Glides until the point (CSS pixels now) is in the middle, and the zoom is no less than this. */
  centre([x, y], least) {
    const { width, height } = this.#size;
    const scale = Math.max(this.zoomed, least);
    const [plainX, plainY] = this.#transform.invert([x, y]);
    this.#glide(zoomIdentity.translate(width / 2 - plainX * scale, height / 2 - plainY * scale).scale(scale));
  }

  #go(transform) {
    this.#target.call(this.#zoom.transform, transform);
  }

  #glide(to) {
    this.#stop();
    const from = this.#transform;
    this.#stop = animate(GLIDE, (share) => {
      const done = ease(share);
      const scale = from.k * (to.k / from.k) ** done;
      // The shift keeps step with the scale, so that the map zooms straight toward its goal.
      const part = to.k === from.k ? done : (scale - from.k) / (to.k - from.k);
      this.#go(
        zoomIdentity.translate(from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part).scale(scale),
      );
    });
  }
}
