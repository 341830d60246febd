// Which queries can be looked up, and what each finds, free of any drawing. "place" is one in details.queries.

const BITS = 16;

const bits = (number) => {
  let count = 0;
  for (let bit = 0; bit < BITS; bit++) count += (number >> bit) & 1;
  return count;
};

export class Lookup {
  constructor({ counts, classes, task }, { items, queries, explorer }) {
    this.items = items;
    this.others = explorer.items; // items that are not on the map
    this.queries = queries;
    this.k = counts.hub_k;
    this.other = task === "pairs" ? "unjudged" : "wrong"; // what is not known to be relevant may be
    this.names = classes?.names ?? [];
    this.places = Array.from(explorer.places ?? queries.id.keys());
    this.rows = new Map(this.places.map((place, row) => [place, row]));
    this.near = [explorer.near0 ?? queries.near0, explorer.near1 ?? queries.near1];
    this.wrong = [queries.wrong0, queries.wrong1];
    this.right = [queries.right0, queries.right1];
    /** Those whose neighbours change the most come first, for better or for worse. */
    this.order = [...this.places].sort((a, b) => this.#change(b) - this.#change(a) || a - b);
    this.searched = null;
  }

  #change = (place) => Math.abs(bits(this.wrong[0][place]) - bits(this.wrong[1][place]));

  /** "broken", "fixed", "right" or "wrong" */
  status(place) {
    const [before, after] = this.right.map((state) => Boolean(state[place]));
    if (before === after) return before ? "right" : "wrong";
    return before ? "broken" : "fixed";
  }

  /** Place of the query with an id; undefined without one that can be looked up. */
  find(id) {
    const place = this.queries.id.indexOf(id);
    return this.rows.has(place) ? place : undefined;
  }

  /** A query: id, text and class. */
  query(place) {
    return this.#caption(this.queries, place);
  }

  /** What a query finds in a state (0 before, 1 after), nearest first. */
  neighbours(place, state) {
    const start = this.rows.get(place) * this.k;
    return Array.from(this.near[state].subarray(start, start + this.k), (item, rank) => {
      const drawn = item < this.items.id.length;
      const found = drawn ? this.#caption(this.items, item) : this.#caption(this.others, item - this.items.id.length);
      const mark = ((this.wrong[state][place] >> rank) & 1) === 0 ? "right" : this.other;
      return { key: item, place: drawn ? item : -1, mark, ...found };
    });
  }

  #caption(columns, place) {
    const label = columns.label === null ? null : (this.names[columns.label[place]] ?? null);
    return { id: columns.id[place], text: columns.text?.[place] ?? null, label };
  }

  /** Queries of a status ("all" for any) whose id, text or class has these words. */
  search(words, status) {
    const wanted = words.trim().toLowerCase();
    this.searched ??= new Map(this.places.map((place) => [place, this.#searchable(place)]));
    return this.order.filter(
      (place) =>
        (status === "all" || this.status(place) === status) && this.searched.get(place).includes(wanted),
    );
  }

  #searchable(place) {
    const { id, text, label } = this.query(place);
    return [id, text, label].filter((part) => part !== null).join("\n").toLowerCase();
  }
}
