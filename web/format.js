// How numbers are written on the page. A true minus sign, and a space that does not break before %.
const MINUS = "\u2212";
const SPACE = "\u00a0";

const fixed = (value, digits) =>
  value
    .toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    .replace(/^-(?=[0.]+$)/, "") // −0.001 is 0.00 here
    .replace("-", MINUS);

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** 10003 → 10,003 */
export const count = (value) => (known(value) ? fixed(value, 0) : "unknown");

/** 0.925 → 92.5 % */
export const percent = (value, digits = 1) =>
  known(value) ? `${fixed(100 * value, digits)}${SPACE}%` : "unknown";

/** About three digits of any number: 1,234, 12.3, 1.23, 0.0123, 1.2 × 10⁻⁷. */
export const number = (value) => {
  if (!known(value)) return "unknown";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3) return power(value, 2);
  if (size >= 100) return fixed(value, 0);
  if (size >= 10) return fixed(value, 1);
  return size >= 0.1 ? fixed(value, 2) : Number(value.toPrecision(2)).toString().replace("-", MINUS);
};

/** A number without digits that say nothing: 1, 0.5, 0.001, 1,000, 3 × 10⁻⁶. */
export const short = (value) => {
  if (!known(value)) return "unknown";
  if (value !== 0 && Math.abs(value) < 1e-4) return power(value, 3);
  return Number(value.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 6 }).replace("-", MINUS);
};

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** 1.2e-7 → 1.2 × 10⁻⁷ */
const power = (value, digits) => {
  const [factor, exponent] = value.toExponential(digits - 1).split("e");
  const raised = [...exponent].map((sign) => (sign === "-" ? "⁻" : sign === "+" ? "" : RAISED[sign]));
  return `${Number(factor)}${SPACE}×${SPACE}10${raised.join("")}`.replace("-", MINUS);
};

const signed = (value, digits) => (value > 0 ? "+" : "") + fixed(value, digits);

/**
 * @typedef {"percent"|"number"|"fraction"} Form
 * Writes a value in its form: 92.5 %, 1.48 or 0.842.
 */
export const inForm = (value, form) => {
  if (!known(value)) return "unknown";
  if (form === "percent") return percent(value);
  return form === "fraction" ? fixed(value, 3) : fixed(value, 2);
};

/** Writes a change in the form of its value: +0.5 (points), −0.33, +0.012. */
export const changeInForm = (change, form) => {
  if (form !== "percent") return signed(change, form === "fraction" ? 3 : 2);
  const small = Math.abs(change) > 0 && Math.abs(change) < 0.0005;
  return signed(100 * change, small ? 2 : 1);
};

/** Writes a score: shares are written in per cent, nDCG and MRR are numbers from 0 to 1. */
export const formOf = (measure) =>
  /^(accuracy|precision|hit rate|recall)\b/.test(measure ?? "") ? "percent" : "fraction";

/** Sentences that Python wrote for terminals too: with true minus signs, and no line end before a unit. */
export const prose = (text) =>
  String(text ?? "")
    .replace(/(\d)\s?%/g, `$1${SPACE}%`)
    .replace(/(\d) (?=(s|min|ms|MB|points?)\b)/g, `$1${SPACE}`)
    .replace(/(?<=^|[\s(])-(?=\d)/g, MINUS);

/** 0.12 → 0.12 s; 3.14 → 3.1 s; 95 → 1 min 35 s */
export const duration = (seconds) => {
  if (!known(seconds)) return "not measured";
  const whole = Math.round(seconds);
  if (seconds >= 60) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${seconds >= 1 ? fixed(seconds, 1) : number(seconds)}${SPACE}s`;
};

/** 1 query, 2 queries */
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;
