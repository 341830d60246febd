// Drawn above the dots: rays from the selected item to the queries that find it, and rings.

import { css } from "./map_paint.js";

export const MAX_RINGS = 1000;
const BUNDLE = 10; // rays in one path

const circle = (context, x, y, radius) => {
  context.moveTo(x + radius, y);
  context.arc(x, y, radius, 0, 2 * Math.PI);
};

/** Ends of the rays: a cross for a wrong answer, a dot for a right one. */
const drawEnds = (context, ends, wrong, reach) => {
  context.beginPath();
  for (const [x, y] of ends) {
    if (wrong) {
      context.moveTo(x - reach, y - reach);
      context.lineTo(x + reach, y + reach);
      context.moveTo(x - reach, y + reach);
      context.lineTo(x + reach, y - reach);
    } else {
      circle(context, x, y, 0.6 * reach);
    }
  }
  context.setLineDash([]);
  if (wrong) context.stroke();
  else context.fill();
};

/** Rays of one kind, a few in a path: one path of thousands is slow, and crossings should show. */
const drawRays = (context, [fromX, fromY], ends, colour, wrong) => {
  const crowd = Math.min(1, 12 / Math.sqrt(ends.length + 1)); // many rays are drawn thinner and lighter
  context.strokeStyle = css(colour, 0.3 + 0.5 * crowd);
  context.fillStyle = css(colour);
  context.lineWidth = crowd < 1 ? 1 : 1.25; // a width of just 1 is drawn several times faster
  context.setLineDash(wrong ? [5, 4] : []);
  for (let first = 0; first < ends.length; first += BUNDLE) {
    context.beginPath();
    for (const [x, y] of ends.slice(first, first + BUNDLE)) {
      context.moveTo(fromX, fromY);
      context.lineTo(x, y);
    }
    context.stroke();
  }
  context.strokeStyle = css(colour);
  context.lineWidth = crowd < 1 ? 1 : 1.5;
  drawEnds(context, ends, wrong, 2 + 1.5 * crowd);
};

/** The selected item itself, in full colour above its rays. */
const drawSelected = (context, [x, y], radius, theme) => {
  context.setLineDash([]);
  context.beginPath();
  circle(context, x, y, radius);
  context.fillStyle = css(theme.before);
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = css(theme.surface);
  context.stroke();
  context.beginPath();
  circle(context, x, y, radius + 3);
  context.strokeStyle = css(theme.text);
  context.lineWidth = 1.5;
  context.stroke();
};

const drawRings = (context, places, map, theme) => {
  context.setLineDash([]);
  for (const [width, colour] of [
    [4, theme.surface],
    [2, theme.text],
  ]) {
    context.beginPath();
    for (const place of places.slice(0, MAX_RINGS)) {
      const [x, y] = map.pointOf(place);
      circle(context, x, y, map.radiusOf(place) + 4);
    }
    context.lineWidth = width;
    context.strokeStyle = css(colour);
    context.stroke();
  }
};

/** Draws what is marked in map.state: found items, and the selected one with its rays. */
export const drawOverlay = (context, { ratio, theme }, map) => {
  const { selected, captured, matches } = map.state;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (matches.length) drawRings(context, matches, map, theme);
  if (selected < 0) return;
  const from = map.pointOf(selected);
  for (const wrong of [false, true]) {
    const ends = captured.filter((ray) => ray.wrong === wrong).map((ray) => map.pointOf(ray.query, map.model.queries));
    drawRays(context, from, ends, wrong ? theme.wrong : theme.after, wrong);
  }
  drawSelected(context, from, map.radiusOf(selected), theme);
};
