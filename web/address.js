// The address of the page says what is open: #map a section, #hub=8391&state=after&query=12 an item, one of the
// two states and a query. Ids are the user's, so they are untrusted: they are only ever compared.

const STATES = ["before", "after"];
const PAUSE = 250; // milliseconds: browsers refuse addresses that change with every step of a slider
const SEEN = { seen: true }; // of entries of the history that were shown: Back leaves their scrolling to the browser

const listeners = [];
let current = location.hash; // newer than location.hash while a change waits, or where addresses cannot change
let waiting = 0;
let fresh = history.state?.seen !== true; // not where the page is loaded anew

/** @typedef {{section: string|null, hub: string|null, query: string|null, state: "before"|"after"|null}} Address */

/**
 * What an address says; parts that are missing or unreadable are null.
 * @returns {Address}
 */
export const readAddress = (text = current) => {
  const address = { section: null, hub: null, query: null, state: null };
  for (const part of text.replace(/^#/, "").split("&")) {
    const [key, value] = part.split(/=(.*)/s).map(decoded);
    if (value === undefined) address.section ??= /^[a-z]+$/.test(key ?? "") ? key : null;
    else if (key === "state") address.state ??= STATES.includes(value) ? value : null;
    else if (key === "hub" || key === "query") address[key] ??= value || null;
  }
  return address;
};

const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // "%" without two digits
  }
};

/** The address of something, for a link: addressOf({hub: "a b"}) is "#hub=a%20b". */
export const addressOf = ({ section, ...ids }) => {
  const parts = ["hub", "state", "query"].filter((key) => (ids[key] ?? null) !== null);
  return `#${[section, ...parts.map((key) => `${key}=${encoded(ids[key])}`)].filter(Boolean).join("&")}`;
};

// Half of a pair of surrogates cannot be encoded.
const encoded = (id) => encodeURIComponent(String(id).replace(/\p{Surrogate}/gu, "\ufffd"));

/**
 * Changes the address: what is not named stays, but a new item or query takes the place of a section. Back
 * returns to the old one, unless `replace`. Listeners are called only if `tell`: the caller has shown the change.
 * @param {Partial<Address>} changes
 */
export const goTo = (changes, { replace = false, tell = false } = {}) => {
  const section = Object.keys(changes).some((key) => key !== "state") ? null : readAddress().section;
  const text = addressOf({ ...readAddress(), section, ...changes });
  if (text !== (current || "#")) {
    if (!replace) flush();
    current = text;
    if (replace) {
      clearTimeout(waiting);
      waiting = setTimeout(flush, PAUSE);
    } else write("pushState");
  }
  if (tell) {
    fresh = true;
    notify();
  }
};

const flush = () => {
  if (waiting) write("replaceState");
};

const write = (how) => {
  clearTimeout(waiting);
  waiting = 0;
  try {
    history[how](SEEN, "", location.href.split("#")[0] + (current === "#" ? "" : current));
  } catch {
    // In a frame without an origin, the page works and its address stays.
  }
};

/**
 * Calls listener(address, fresh) now and whenever Back, Forward, a link or the user changes the address.
 * `fresh`: this was asked for, so it is scrolled to; after Back, the browser scrolls to where one was.
 */
export const onAddress = (listener) => {
  listeners.push(listener);
  listener(readAddress(), fresh);
};

const notify = () => {
  for (const listener of listeners) listener(readAddress(), fresh);
};

addEventListener("popstate", () => {
  current = location.hash;
  fresh = history.state?.seen !== true;
  write("replaceState");
  notify();
});

addEventListener("pagehide", flush);
write("replaceState");
