// Colours of the map: the page's CSS variables, and one colour for every item in either state.

const NAMES = ["background", "surface", "text", "muted", "line", "before", "after", "wrong", "accent"];
/** Okabe–Ito without black and with a darker yellow, so that all eight show on white and on black. */
export const CLASS_COLOURS = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#b5a000",
  "#8a8f96",
];
/** Opacities, 0…255: plain items are translucent, hubs are not; FAINT is for items that a filter excludes. */
const PLAIN = 150;
const FULL = 235;
const FAINT = 40;
export const FILTERED = 64; // below this opacity, an item is excluded by a filter

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/** Any CSS colour as [red, green, blue] in 0…255. */
const parse = (colour) => {
  probe.canvas.width = probe.canvas.height = 1;
  probe.fillStyle = "#808080";
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return Array.from(probe.getImageData(0, 0, 1, 1).data.subarray(0, 3));
};

const mix = (from, to, share) => from.map((value, channel) => value + (to[channel] - value) * share);

export const css = ([red, green, blue], opacity = 1) =>
  `rgb(${Math.round(red)} ${Math.round(green)} ${Math.round(blue)} / ${opacity})`;

/** @returns {Record<string, number[]>} the colours of the page as it looks now, and "item": a plain item */
export const readTheme = () => {
  const style = getComputedStyle(document.documentElement);
  const theme = {};
  for (const name of NAMES) theme[name] = parse(style.getPropertyValue(`--${name}`).trim());
  theme.item = mix(mix(theme.after, theme.muted, 0.55), theme.surface, 0.15);
  return theme;
};

/** How much of a hub, 0…1: nothing below the floor, then with the logarithm of N10. */
const hubStrength = (model) => {
  const range = Math.log(Math.max(2, model.largest / model.hubFloor));
  return (occurrence) => {
    if (occurrence < model.hubFloor) return 0;
    return Math.min(1, 0.15 + (0.85 * Math.log(occurrence / model.hubFloor)) / range);
  };
};

/** @returns {(place: number, after: boolean) => number[]} the colour of an item in a state */
const colouring = (model, theme, by) => {
  if (by === "class" && model.hasClasses) {
    const palette = CLASS_COLOURS.map(parse);
    return (place) => palette[model.items.label[place] % palette.length];
  }
  const steps = 64; // ramps are made once: an array for every item and frame would be slow
  const end = by === "wrong" ? theme.wrong : theme.before;
  const ramp = Array.from({ length: steps + 1 }, (_, step) => mix(theme.item, end, step / steps));
  if (by === "wrong")
    return (place, after) => ramp[Math.round((model.wrongShare(place, after) ?? 0) * steps)];
  const strength = hubStrength(model);
  return (place, after) => ramp[Math.round(strength(model.occurrence(place, after)) * steps)];
};

/** Does the item pass the filters? "Only hubs" looks at the nearer state. */
export const passes = (model, state) => {
  const after = state.morph >= 0.5;
  const { label } = model.items;
  return (place) =>
    (state.label < 0 || label[place] === state.label) &&
    (!state.onlyHubs || model.occurrence(place, after) >= model.hubFloor);
};

/**
 * Fills red, green, blue, opacity (4 bytes an item) of both states.
 * @returns {number} how many items pass the filters
 */
export const paintItems = (model, theme, state, colours0, colours1) => {
  const colour = colouring(model, theme, state.colour);
  const shown = passes(model, state);
  let visible = 0;
  for (let place = 0; place < model.count; place++) {
    const show = shown(place);
    if (show) visible += 1;
    for (const [array, after] of [
      [colours0, false],
      [colours1, true],
    ]) {
      array.set(colour(place, after), 4 * place);
      array[4 * place + 3] = show ? (model.occurrence(place, after) < model.hubFloor ? PLAIN : FULL) : FAINT;
    }
  }
  return visible;
};
