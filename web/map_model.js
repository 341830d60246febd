// What the map knows about the data, free of any drawing. "place" is an item's position in details.items.

const SHOWN_FIRST = 12; // hubs that are always in the first view

const largestOf = (...arrays) => {
  let largest = 0;
  for (const array of arrays) for (const value of array) if (value > largest) largest = value;
  return largest;
};

const APART = 0.02; // share of the points at either end of an axis that may be outside of the first view
const WIDER = 2.5; // the first view leaves points out only where this many times the room is needed for them

/** [least, largest] of all values, and of those in the middle with the values in `kept`. */
const range = (arrays, kept) => {
  const sorted = new Uint16Array(arrays.reduce((length, array) => length + array.length, 0));
  arrays.reduce((start, array) => (sorted.set(array, start), start + array.length), 0);
  if (sorted.length === 0) return { whole: [0, 1], central: [0, 1] };
  sorted.sort();
  const last = sorted.length - 1;
  const middle = [Math.floor(last * APART), Math.ceil(last * (1 - APART))].map((place) => sorted[place]);
  return {
    whole: [sorted[0], sorted[last]],
    central: [Math.min(middle[0], ...kept), Math.max(middle[1], ...kept)],
  };
};

/** Boxes in the layout: of all items and queries; and of most, for the first view. */
const boundsOf = (items, queries, busiest) => {
  const of = (axis) => range([items[axis], queries[axis]], busiest.map((place) => items[axis][place]));
  const [across, up] = [of("x"), of("y")];
  const box = ([left, right], [bottom, top]) => ({ left, right, bottom, top });
  const whole = box(across.whole, up.whole);
  const central = box(across.central, up.central);
  const side = ({ left, right, bottom, top }) => Math.max(right - left, top - bottom);
  return { whole, central: side(whole) > WIDER * side(central) ? central : whole };
};

/** Places from the least busy to the busiest: drawn in this order, hubs end on top. */
const drawingOrder = ({ n0, n1 }) => {
  const order = Uint32Array.from(n0, (_, place) => place);
  return order.sort((a, b) => Math.max(n0[a], n1[a]) - Math.max(n0[b], n1[b]) || a - b);
};

export class Model {
  #searched = null; // lower-case "id\ntext" of every item, made at the first search

  constructor({ counts, classes }, { items, queries, hubs }) {
    this.items = items;
    /** Pictures by place: those of the hubs that have a card. */
    this.pictures = new Map((hubs ?? []).map((hub) => [hub.place, hub.thumbnail]));
    this.queries = queries;
    this.names = classes ? classes.names : [];
    /** What an answer is that is not right: without classes, it may only be unjudged. */
    this.miss = items.label ? "wrong" : "unjudged";
    this.hasClasses = Boolean(items.label) && this.names.length > 0;
    this.nearest = counts.hub_k;
    this.measure = `N${counts.hub_k}`;
    this.count = items.id.length;
    this.largest = Math.max(1, largestOf(items.n0, items.n1));
    /** A hub is in so many answers that chance hardly ever gives them to any item: hubless.chance. */
    this.hubFloor = counts.hub_from;
    this.order = drawingOrder(items);
    /** Places in falling order of N10 before. */
    this.busiest = Array.from(this.order).sort((a, b) => items.n0[b] - items.n0[a] || a - b);
    this.bounds = boundsOf(items, queries, this.busiest.slice(0, SHOWN_FIRST));
    this.total = items.n0.reduce((sum, found) => sum + found, 0);
  }

  occurrence(place, after) {
    return (after ? this.items.n1 : this.items.n0)[place];
  }

  /** Share of wrong answers among the queries that have the item; null when no query has it. */
  wrongShare(place, after) {
    const found = this.occurrence(place, after);
    return found ? (after ? this.items.bad1 : this.items.bad0)[place] / found : null;
  }

  /** @returns {{query: number, wrong: boolean}[]} the drawn queries that have the item, wrong first */
  captured(place, after) {
    const { near0, near1, wrong0, wrong1 } = this.queries;
    const near = after ? near1 : near0;
    const wrong = after ? wrong1 : wrong0;
    const found = [];
    for (let slot = 0; slot < near.length; slot++) {
      if (near[slot] !== place) continue;
      const query = Math.floor(slot / this.nearest);
      found.push({ query, wrong: ((wrong[query] >> (slot % this.nearest)) & 1) === 1 });
    }
    return found.sort((a, b) => b.wrong - a.wrong || a.query - b.query);
  }

  /** Places whose id or text contains the words: an id that is equal comes first, then the busiest. */
  search(words) {
    const wanted = words.trim().toLowerCase();
    if (!wanted) return [];
    const { id, text } = this.items;
    this.#searched ??= id.map((name, place) => `${name}\n${text?.[place] ?? ""}`.toLowerCase());
    const found = this.busiest.filter((place) => this.#searched[place].includes(wanted));
    const equal = found.filter((place) => id[place].toLowerCase() === wanted);
    return equal.length ? [...equal, ...found.filter((place) => !equal.includes(place))] : found;
  }

  /** The text of an item, or its id where it has none. */
  itemText(place) {
    return this.items.text?.[place] || this.items.id[place];
  }

  itemLabel(place) {
    return this.#nameOf(this.items.label, place);
  }

  queryText(query) {
    return this.queries.text?.[query] || this.queries.id[query];
  }

  queryLabel(query) {
    return this.#nameOf(this.queries.label, query);
  }

  #nameOf(labels, place) {
    return labels ? (this.names[labels[place]] ?? null) : null;
  }
}
