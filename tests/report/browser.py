"""What tests of the page in a real browser share: views, the map, pictures; fixtures are in conftest.py."""

import os
import shutil
from collections import namedtuple
from importlib.util import find_spec
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from benchmarks.map_frames import BROWSERS

SECTIONS = ["summary", "skyline", "map", "hubs", "explorer", "classes", "changed", "why", "choice", "apply"]
TIMEOUT = 120_000  # milliseconds that the browser may take for anything: machines may be busy

View = namedtuple("View", "width height scheme")
DESK, PHONE = View(1280, 900, "light"), View(390, 844, "dark")
each_width = pytest.mark.parametrize("view", [DESK, PHONE], ids=["desk", "phone"])
each_view = pytest.mark.parametrize(
    "view",
    [DESK, PHONE, DESK._replace(scheme="dark"), PHONE._replace(scheme="light")],
    ids=["desk", "phone", "desk-dark", "phone-light"],
)


def lacking(message):
    """Without a browser the tests are skipped, or fail where HUBLESS_BROWSER=required."""
    (pytest.fail if os.environ.get("HUBLESS_BROWSER") == "required" else pytest.skip)(message)


def browser_file():
    """Return the path of the browser."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        lacking(f"no browser ({', '.join(BROWSERS)}) on the path: apt-get install chromium")
    if find_spec("playwright") is None:
        lacking("Playwright drives the browser: pip install playwright")
    return executable


# Texts that steer the direction of what is written after them, and are not isolated from it; in an SVG, each
# text is on its own
NOT_ISOLATED = """(() => {
  const found = [], all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = all.nextNode(); text; text = all.nextNode()) {
    let holder = text.parentElement;
    if (!/[\u202a-\u202e\u2066-\u2069]/.test(text.data) || holder.closest("script, style, svg")) continue;
    const inline = () => ["inline", "contents"].includes(getComputedStyle(holder).display);
    while (inline() && holder.textContent === text.data) holder = holder.parentElement;
    const isolated = /isolate|plaintext/.test(getComputedStyle(text.parentElement).unicodeBidi);
    if (!isolated && (inline() || holder.textContent !== text.data)) found.push(holder.outerHTML);
  }
  return found;
})()"""


def overflow(page):
    """Pixels that the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def wait_frames(page):
    """Until what was changed is drawn: observers of sizes run between two frames."""
    page.evaluate("async () => { for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); }")


class Map:
    """The map of an open page."""

    def __init__(self, page):
        self.page, self.host = page, page.locator("#map .map")
        self.stage, self.canvas = page.locator(".map-stage"), page.locator(".map-dots")
        self.slider = page.get_by_role("slider")
        self.stage.scroll_into_view_if_needed()

    def value(self, name):
        """A value of the last frame."""
        return self.host.get_attribute(f"data-{name}")

    def wait(self, **values):
        """Until the last frame has these values."""
        marks = "".join(f'[data-{name.replace("_", "-")}="{value}"]' for name, value in values.items())
        self.page.wait_for_selector(f"#map .map{marks}")

    def morph(self, percent):
        self.slider.fill(str(percent))
        self.wait(morph=f"{percent / 100:.2f}")

    def screen(self, place):
        return self.host.evaluate("(host, place) => host.hublessMap.screen(place)", place)

    def click(self, place):
        self.page.mouse.click(*self.screen(place))

    def picture(self):
        """Pixels without what pointer and focus show; (height, width, 3)."""
        self.page.mouse.move(1, 1)
        self.page.evaluate("document.activeElement.blur()")
        with Image.open(BytesIO(self.stage.screenshot())) as image:
            return np.asarray(image.convert("RGB"), dtype=int)

    def wait_found(self, words):
        """Until the search says this."""
        self.page.locator(".map-found", has_text=words).wait_for()


def differ(one, other, share=1e-3):
    """Whether two pictures do, in more than this share of their pixels and by more than smoothed edges."""
    return (np.abs(one - other).max(axis=2) > 48).mean() > share
