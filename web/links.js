// Links from ids to the user's own rows, by a template that Python has checked; ids are untrusted.

import { element, userWord } from "./dom.js";

const SCHEME = /^(https?|file):\/\//;
const DOTS = /^\.{1,2}$/; // folders of an address: they would lead elsewhere
const CUT = "…"; // at the end of an id that was too long for the page

/** The address of a row; null without a template, or where the page does not know the whole id. */
export const rowAddress = (template, id) => {
  const text = String(id);
  if (!template || !SCHEME.test(template) || DOTS.test(text) || text.endsWith(CUT)) return null;
  const encoded = encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
  return template.replaceAll("{id}", () => encoded);
};

/** An id, as a link where there is an address for it. */
export const rowLink = (template, id, length = 60) => {
  const href = rowAddress(template, id);
  const word = userWord(id, length);
  if (href === null) return word;
  return element("a", { class: "row-link", href, target: "_blank", rel: "noopener noreferrer" }, word);
};
