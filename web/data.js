// What Python wrote into the page: figures as plain JSON, details packed.

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f32: Float32Array };

/** @returns {object} the numbers of the page */
export const readFigures = () => JSON.parse(document.getElementById("figures").textContent);

/** @returns {Promise<object>} points, texts, cards and changed queries, with typed arrays */
export const readDetails = async () => {
  if (typeof DecompressionStream === "undefined")
    throw new Error(
      "this browser has no DecompressionStream to unpack them; browsers since 2023 have it",
    );
  try {
    const packed = bytesOf(document.getElementById("details").textContent.trim());
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text(), withArrays);
  } catch (error) {
    throw new Error(`their part of this file is damaged (${error.message}); write the report again`);
  }
};

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// {"type": "u16", "data": base64} is a typed array. All browsers that run this are little endian.
const withArrays = (key, value) => {
  if (value === null || typeof value !== "object" || typeof value.data !== "string") return value;
  return Object.hasOwn(ARRAYS, value.type) ? new ARRAYS[value.type](bytesOf(value.data).buffer) : value;
};

const IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** Whether it is a picture that Python packed: nothing else becomes the address of a picture. */
export const isThumbnail = (address) => typeof address === "string" && IMAGE.test(address);
