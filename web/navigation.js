import { element } from "./dom.js";
import { themeButton } from "./theme.js";

/** The bar at the top: links to the sections, the current one marked, and the theme. */
export const navigation = (sections) => {
  const links = new Map(sections.map(({ id, short }) => [id, element("a", { href: `#${id}` }, short)]));
  const list = element("nav", { "aria-label": "Sections" }, ...links.values());
  requestAnimationFrame(() => follow(list, links));
  return [list, themeButton()];
};

// The section that crosses the upper third of the window is the current one.
const follow = (list, links) => {
  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const link = links.get(entry.target.id);
        if (!entry.isIntersecting) link.removeAttribute("aria-current");
        else {
          link.setAttribute("aria-current", "true");
          list.scrollTo({ left: link.offsetLeft - list.clientWidth / 2 });
        }
      }
    },
    { rootMargin: "-30% 0px -70% 0px" },
  );
  for (const id of links.keys()) watch.observe(document.getElementById(id));
};
