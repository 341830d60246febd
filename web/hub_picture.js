import { element, shape } from "./dom.js";

// Queries (rings) at the left and right, stored items (discs) between them; most queries find the same item.
const QUERIES = [
  [12, 16],
  [8, 52],
  [16, 90],
  [72, 8],
  [74, 100],
  [136, 20],
  [142, 56],
  [132, 92],
];
const HUB = [76, 54];
const OTHERS = [
  [42, 34],
  [46, 80],
  [106, 32],
  [104, 80],
];
const [GAP, RING] = [13, 5];

/** What a hub is, in words and as a small picture. */
export const hubPicture = (k) =>
  element(
    "figure",
    { class: "hub-idea" },
    drawing(),
    element(
      "figcaption",
      {},
      element("strong", {}, "What is a hub? "),
      `An item that is among the ${k} nearest of many more queries than chance explains, whether it answers ` +
        "them or not. It takes the places of better items, some of which are never returned. ",
      element("span", { class: "definition" }, `N${k} of an item: how many queries have it among their ${k} nearest.`),
    ),
  );

const drawing = () => {
  const svg = shape("svg", {
    viewBox: "0 0 150 108",
    role: "img",
    "aria-label": "Eight queries around five items: all queries point at the item in the middle, the hub.",
  });
  svg.append(
    ...QUERIES.map(arrow),
    ...QUERIES.map(([cx, cy]) => shape("circle", { cx, cy, r: RING, class: "idea-query" })),
    ...OTHERS.map(([cx, cy]) => shape("circle", { cx, cy, r: 3.5, class: "idea-item" })),
    shape("circle", { cx: HUB[0], cy: HUB[1], r: 9, class: "idea-hub" }),
  );
  return svg;
};

/** A line from the edge of a query toward the hub, with a head that ends short of it. */
const arrow = ([x, y]) => {
  const [dx, dy] = [HUB[0] - x, HUB[1] - y];
  const length = Math.hypot(dx, dy);
  const [ux, uy] = [dx / length, dy / length];
  const [tipX, tipY] = [HUB[0] - GAP * ux, HUB[1] - GAP * uy];
  const head = [-1, 1].map((side) => `${tipX - 5 * ux - side * 3 * uy},${tipY - 5 * uy + side * 3 * ux}`);
  const start = `${x + (RING + 1) * ux},${y + (RING + 1) * uy}`;
  return shape("path", { d: `M${start}L${tipX},${tipY}M${head[0]}L${tipX},${tipY}L${head[1]}`, class: "idea-ray" });
};
