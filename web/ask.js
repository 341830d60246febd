// A query that one types, where the page is served (`hubless report --serve --embed`): the server embeds it.

import { element, userText } from "./dom.js";
import { rankColumns } from "./ranks.js";

const LONGEST = 2000; // characters, as in Python

const ask = async (text) => {
  const response = await fetch("search", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text }),
  });
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
};

/** A form and what the last text found; `onPage` adds links and pictures to an item. */
export const askForm = (onPage) => {
  const input = element("input", { type: "search", id: "ask", autocomplete: "off", maxlength: LONGEST });
  const button = element("button", { type: "submit" }, "Search");
  const shown = element("div", { class: "asked", "aria-live": "polite" });
  const send = async (event) => {
    event.preventDefault();
    const text = input.value;
    if (!text.trim() || button.disabled) return;
    button.disabled = true;
    try {
      const found = await ask(text);
      const [before, after] = [found.before, found.after].map((items) => items.map(readItem).map(onPage));
      shown.replaceChildren(
        element("h3", {}, userText(text, 300)),
        element("p", { class: "count" }, "Nobody has judged these answers."),
        rankColumns({ before, after }, {}),
      );
    } catch (error) {
      shown.replaceChildren(element("p", { class: "note user", role: "alert", dir: "auto" }, error.message));
    }
    button.disabled = false;
  };
  return element(
    "div",
    { class: "ask" },
    element(
      "form",
      { onsubmit: send },
      element("label", { for: "ask" }, "Type a query"),
      element("div", { class: "ask-line" }, input, button),
    ),
    shown,
  );
};

const readItem = (item) => ({ ...item, mark: null });
