import { element } from "./dom.js";

// The picture to share, drawn here as `hubless.plot` draws it: src/hubless/plot/share_picture.py. Python has made
// its texts harmless, each one line.
const WIDTH = 1200;
const HEIGHT = 630;
const LEFT = 72;
const RIGHT = 616;
const COLUMN = 500;
const TILE = 240;
const SMALLEST = 0.7;
const SENTENCE = [[25, 36], [22, 29], [20, 27]];
const LOWEST = 340;
const KINDS = { move: ["✓", "accent"], mixed: ["±", "text"], harmful: ["✕", "wrong"] };
const JUDGED = { better: "accent", worse: "wrong" };

/** The buttons that copy the picture, and save it. */
export const shareButtons = (card) => {
  const said = element("span", { role: "status" });
  const button = (title, does) =>
    element(
      "button",
      {
        type: "button",
        onclick: () => does().then((words) => said.replaceChildren(words), () => said.replaceChildren(REFUSED)),
      },
      title,
    );
  const picture = () => new Promise((resolve) => drawCard(card).toBlob(resolve, "image/png"));
  return element(
    "p",
    { class: "share controls" },
    button("Copy as a picture", async () => {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": picture() })]);
      return "Copied: the verdict, the worst hub and the figures.";
    }),
    button("Save the picture", async () => {
      const address = URL.createObjectURL(await picture());
      element("a", { href: address, download: "hubless.png" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      return "Saved as hubless.png.";
    }),
    said,
  );
};

const REFUSED = "The browser does not let this page copy pictures: save it instead.";

/** @returns {HTMLCanvasElement} 1200 × 630 pixels, in the colours of the page */
export const drawCard = (card) => {
  const canvas = element("canvas", { width: WIDTH, height: HEIGHT });
  const pen = penOf(canvas);
  const [sign, colour] = KINDS[card.kind] ?? ["≈", "muted"];
  pen.box(0, 0, WIDTH, HEIGHT, "surface");
  pen.box(0, 0, 20, HEIGHT, colour);
  pen.write(LEFT, 80, card.title, { size: 26, colour: "muted" });
  const title = { size: 46, colour, bold: true, most: 2, step: 54 };
  const y = 146 + pen.write(LEFT, 146, `${sign} ${card.verdict}`, title);
  writeSentence(pen, y + 50, card.words);
  pen.box(LEFT, 362, WIDTH - 2 * LEFT, 2, "line");
  if (card.hub) drawHub(pen, card.hub);
  card.tiles.forEach((tile, place) =>
    drawTile(pen, RIGHT + 268 * (place % 2), 402 + 100 * Math.floor(place / 2), tile),
  );
  pen.write(LEFT, 606, card.sizes, { size: 18, colour: "muted", width: 800 });
  pen.write(WIDTH - LEFT - 91, 606, "hubless", { size: 21, bold: true });
  return canvas;
};

/** In the largest letters that have room for all of it. */
const writeSentence = (pen, y, text) => {
  const styles = SENTENCE.map(([size, step]) => ({ size, step, most: 1 + Math.floor((LOWEST - y) / step) }));
  const hasRoom = (style) => pen.lines(text, { ...style, most: style.most + 1 }).length <= style.most;
  pen.write(LEFT, y, text, styles.find(hasRoom) ?? styles.at(-1));
};

const drawHub = (pen, hub) => {
  pen.write(LEFT, 402, hub.title, { size: 18, colour: "muted", width: COLUMN });
  pen.write(LEFT, 436, hub.name, { size: 24, bold: true, width: COLUMN });
  const longest = Math.max(hub.before, hub.after, 1);
  for (const [state, top] of [["before", 456], ["after", 500]]) {
    const length = Math.max(3, (300 * hub[state]) / longest);
    pen.write(LEFT, top + 25, state, { size: 20, colour: state });
    pen.box(LEFT + 84, top, length, 34, state);
    const number = hub[state].toLocaleString("en-US");
    pen.write(LEFT + 96 + length, top + 26, number, { size: 26, colour: state, bold: true });
  }
  pen.write(LEFT, 562, hub.says, { size: 18, colour: "muted", width: COLUMN });
};

const drawTile = (pen, x, y, tile) => {
  pen.write(x, y, tile.title, { size: 18, colour: "muted", width: TILE });
  pen.write(x, y + 34, `${tile.before} → ${tile.after}`, { size: 26, bold: true, width: TILE });
  pen.write(x, y + 60, tile.says, { size: 18, colour: JUDGED[tile.judgement] ?? "muted", width: TILE });
};

/** What draws boxes and texts; `write` returns how much lower than y the last line of `lines` is. */
const penOf = (canvas) => {
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const family = getComputedStyle(document.body).fontFamily;
  const use = (name) => (context.fillStyle = style.getPropertyValue(`--${name}`));
  const box = (x, y, width, height, colour) => {
    use(colour);
    context.fillRect(x, y, width, height);
  };
  const lines = (text, { size, bold, width = WIDTH - 2 * LEFT, most = 1 }) => {
    const font = (pixels) => (context.font = `${bold ? "bold " : ""}${pixels}px ${family}`);
    font(size);
    const wide = context.measureText(text).width;
    if (most === 1) font(size * Math.min(1, Math.max(SMALLEST, width / Math.max(wide, 1))));
    return linesOf([...text], most, (part) => context.measureText(part.join("")).width <= width);
  };
  const write = (x, y, text, { colour = "text", step = 0, ...style }) => {
    const written = lines(text, style);
    use(colour);
    written.forEach((line, number) => context.fillText(line.join(""), x, y + number * step));
    return step * Math.max(0, written.length - 1);
  };
  return { box, lines, write };
};

/** The lines of a text, of letters; what has no room ends in an ellipsis. */
const linesOf = (text, most, fits) => {
  const lines = [];
  let rest = text;
  while (rest.length > 0 && lines.length < most) {
    const room = fitting(rest, fits);
    const place = rest.lastIndexOf(" ", room);
    const end = room === rest.length ? room : place > 0 ? place : room;
    lines.push(rest.slice(0, end));
    rest = rest.slice(rest[end] === " " ? end + 1 : end);
  }
  if (rest.length > 0) {
    const whole = [...lines.pop(), " ", ...rest];
    lines.push([...whole.slice(0, Math.max(fitting(whole, fits) - 2, 0)), "…"]);
  }
  return lines;
};

/** How many letters fit, at least one. */
const fitting = (text, fits) => {
  let [low, high] = [1, text.length];
  while (low < high) {
    const middle = Math.floor((low + high + 1) / 2);
    if (fits(text.slice(0, middle))) low = middle;
    else high = middle - 1;
  }
  return low;
};
