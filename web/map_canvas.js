// Draws items and queries: shapes are stamped into one block of 32-bit pixels, which needs no graphics card.

const CROWD = 20000; // with more things than this, pixels are not split finer than CSS pixels
const STEP = 4; // radii are rounded to a quarter of a pixel, so that stamps can be kept

/**
 * Coverage (0…256) of a shape's pixels; `inside` is the depth of a pixel in the shape.
 * starts and ends are where each row is not empty: the corners of a disc cost nothing.
 */
const stamp = (half, inside) => {
  const width = 2 * half + 1;
  const cover = new Uint16Array(width * width);
  const starts = new Int32Array(width).fill(width);
  const ends = new Int32Array(width);
  for (let row = 0; row < width; row++) {
    for (let column = 0; column < width; column++) {
      const depth = Math.min(1, Math.max(0, inside(column - half, row - half)));
      cover[row * width + column] = Math.round(256 * depth);
      if (depth === 0) continue;
      starts[row] = Math.min(starts[row], column);
      ends[row] = column + 1;
    }
  }
  return { half, width, cover, starts, ends };
};

const discStamp = (radius) => stamp(Math.ceil(radius), (x, y) => radius + 0.5 - Math.hypot(x, y));
const diamondStamp = (reach, line) =>
  stamp(Math.ceil(reach), (x, y) => 1 - Math.abs(Math.abs(x) + Math.abs(y) - reach) / line);

/** Discs by radius, each made once. */
const createDiscs = () => {
  const discs = [];
  return (radius) => {
    const key = Math.round(radius * STEP);
    discs[key] ??= discStamp(key / STEP);
    return discs[key];
  };
};

/** A block of pixels. Words are 0xAABBGGRR, as ImageData has them on every machine in use. */
const createPaper = () => {
  let image = new ImageData(1, 1);
  let words = new Uint32Array(image.data.buffer);
  let across = 1;
  let down = 1;

  const clear = (width, height, [red, green, blue]) => {
    if (across !== width || down !== height) {
      image = new ImageData(width, height);
      words = new Uint32Array(image.data.buffer);
      [across, down] = [width, height];
    }
    words.fill(0xff000000 | (blue << 16) | (green << 8) | red);
  };

  /** Blends red and blue at once: they are 16 bits apart, so that they cannot spill over. */
  const press = ({ half, width, cover, starts, ends }, centreX, centreY, even, green, opacity) => {
    const left = Math.round(centreX) - half;
    const top = Math.round(centreY) - half;
    if (left >= across || top >= down || left + width <= 0 || top + width <= 0) return;
    const lastRow = Math.min(width, down - top);
    for (let row = Math.max(0, -top); row < lastRow; row++) {
      const end = Math.min(ends[row], across - left);
      const shift = (top + row) * across + left;
      const from = row * width;
      for (let column = Math.max(starts[row], -left); column < end; column++) {
        const share = (cover[from + column] * opacity) >> 8;
        const under = words[shift + column];
        const underEven = under & 0xff00ff;
        const underGreen = under & 0xff00;
        words[shift + column] =
          0xff000000 |
          ((underEven + (Math.imul(even - underEven, share) >> 8)) & 0xff00ff) |
          ((underGreen + (Math.imul(green - underGreen, share) >> 8)) & 0xff00);
      }
    }
  };

  return { clear, press, image: () => image };
};

const drawQueries = (paper, { queries }, { view, ratio, reach, theme, queryOpacity, fade }) => {
  const diamond = diamondStamp(reach * ratio, ratio);
  const [red, green, blue] = theme.muted;
  const opacity = Math.round(256 * queryOpacity * fade);
  for (let place = 0; place < queries.x.length; place++) {
    const x = view.originX + queries.x[place] * view.scale;
    const y = view.originY - queries.y[place] * view.scale;
    paper.press(diamond, x * ratio, y * ratio, (blue << 16) | red, green << 8, opacity);
  }
};

/** One long loop over plain numbers: with 50,000 items a call or an object for each would be slow. */
const drawItems = (paper, discOf, { items, order, count }, [colours0, colours1], frame) => {
  const { x: across, y: up, n0, n1 } = items;
  const { ratio, morph, growth, least, most, fade, rim } = frame;
  const { originX, originY, scale } = frame.view;
  const stay = 1 - morph;
  const [paperRed, paperGreen, paperBlue] = frame.theme.surface;
  for (let rank = 0; rank < count; rank++) {
    const place = order[rank];
    const at = 4 * place;
    const alpha = colours0[at + 3] * stay + colours1[at + 3] * morph;
    const left = alpha < frame.faint; // excluded by a filter: a faint dot
    const wanted = left ? least : growth * Math.sqrt(n0[place] * stay + n1[place] * morph);
    const radius = Math.min(most, Math.max(least, wanted));
    const x = (originX + across[place] * scale) * ratio;
    const y = (originY - up[place] * scale) * ratio;
    const red = colours0[at] * stay + colours1[at] * morph;
    const green = colours0[at + 1] * stay + colours1[at + 1] * morph;
    const blue = colours0[at + 2] * stay + colours1[at + 2] * morph;
    const opacity = ((alpha + 1) * fade) | 0;
    if (radius > rim) {
      paper.press(discOf((radius + 1) * ratio), x, y, (paperBlue << 16) | paperRed, paperGreen << 8, opacity);
    }
    paper.press(discOf(radius * ratio), x, y, (blue << 16) | red, green << 8, opacity);
  }
};

/**
 * A second sheet in plain memory: lines are drawn there, so that one picture goes to the screen. Where the
 * processor plays a graphics card, 2,700 lines on the canvas itself take more than a second.
 */
const createSheet = () => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  return (image, over) => {
    const { width, height } = image;
    if (context.canvas.width !== width) context.canvas.width = width;
    if (context.canvas.height !== height) context.canvas.height = height;
    context.putImageData(image, 0, 0);
    over(context);
    return context.getImageData(0, 0, width, height);
  };
};

/**
 * draw(frame, over) draws the dots and lets over(context), if any, draw lines above them; finest is the most
 * pixels per CSS pixel that it wants.
 */
export const createCanvas = (canvas, model, colours) => {
  const context = canvas.getContext("2d", { alpha: false });
  const paper = createPaper();
  const withLines = createSheet();
  const discOf = createDiscs();
  const draw = (frame, over) => {
    paper.clear(canvas.width, canvas.height, frame.theme.surface);
    if (frame.showQueries) drawQueries(paper, model, frame);
    drawItems(paper, discOf, model, colours, frame);
    context.putImageData(over ? withLines(paper.image(), over) : paper.image(), 0, 0);
  };
  return { finest: model.count + model.queries.x.length > CROWD ? 1 : 2, draw };
};
