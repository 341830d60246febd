// Wrong answers of class × class: which pairs there are, which are worst, in which order classes are drawn.

/**
 * @typedef {{from: number, to: number, before: number, after: number}} Pair
 * from: true class of the queries, to: class that they were given
 */

/** @returns {Pair[]} one for each pair of classes that was confused before or after */
export const pairsOf = (wrong) => {
  const pairs = new Map();
  for (const state of ["before", "after"]) {
    for (const [from, to, number] of wrong[state] ?? []) {
      const key = `${from} ${to}`;
      if (!pairs.has(key)) pairs.set(key, { from, to, before: 0, after: 0 });
      pairs.get(key)[state] += number;
    }
  }
  return [...pairs.values()];
};

const weight = (pair) => pair.before + pair.after;

/** Both classes of the worst pairs, before and after together, until there are `limit` or all. */
export const mostConfused = (pairs, limit) => {
  const order = [...pairs].sort((a, b) => weight(b) - weight(a) || a.from - b.from || a.to - b.to);
  const classes = new Set();
  for (const { from, to } of order) {
    if (classes.size + !classes.has(from) + !classes.has(to) <= limit) classes.add(from).add(to);
  }
  return [...classes];
};

/**
 * Orders classes so that those that are confused are side by side: each next one is the class that the
 * latest ones are confused with most; how much a class counts halves with every step.
 * @param {Pair[]} pairs
 * @param {number[]} classes the worst first
 * @returns {number[]} the same classes
 */
export const alongDiagonal = (pairs, classes) => {
  const rest = new Set(classes);
  const near = new Map(classes.map((name) => [name, []]));
  for (const pair of pairs) {
    if (!rest.has(pair.from) || !rest.has(pair.to)) continue;
    near.get(pair.from).push([pair.to, weight(pair)]);
    near.get(pair.to).push([pair.from, weight(pair)]);
  }
  const pull = new Map(classes.map((name) => [name, 0]));
  const order = [];
  while (rest.size > 0) {
    let next = null;
    for (const name of rest) if (next === null || pull.get(name) > pull.get(next)) next = name;
    order.push(next);
    rest.delete(next);
    for (const name of rest) pull.set(name, pull.get(name) / 2);
    for (const [name, number] of near.get(next)) pull.set(name, pull.get(name) + number);
  }
  return order;
};

/** What a view shows of a pair. */
export const valueOf = (pair, view) => (view === "difference" ? pair.after - pair.before : pair[view]);

/** The pairs with the largest values in a view. */
export const worstPairs = (pairs, view, limit) =>
  pairs
    .filter((pair) => valueOf(pair, view) !== 0)
    .sort((a, b) => Math.abs(valueOf(b, view)) - Math.abs(valueOf(a, view)) || weight(b) - weight(a))
    .slice(0, limit);
