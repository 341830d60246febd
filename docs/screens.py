"""Pictures of a page for the documents: `python docs/screens.py PAGE FOLDER`, with Chromium installed.

The committed ones are of the page that `make demo` writes: `python docs/screens.py demo.html docs`.
"""

import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"]


def picture(page: Page, selector: str) -> Image.Image:
    """A part of the page, without the bar that floats over it."""
    return Image.open(BytesIO(page.locator(selector).screenshot())).convert("RGB")


def beside(*pictures: Image.Image) -> Image.Image:
    """Pictures in a row."""
    gap, height = 24, max(own.height for own in pictures)
    whole = Image.new("RGB", (sum(own.width + gap for own in pictures) - gap, height), "white")
    left = 0
    for own in pictures:
        whole.paste(own, (left, 0))
        left += own.width + gap
    return whole


def save(picture: Image.Image, file: Path) -> None:
    """Few colours, few bytes."""
    picture.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)


def main(file: Path, folder: Path) -> None:
    """The head of the page, and the map before and after."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 1000}, reduced_motion="reduce")
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.add_style_tag(content="header.top { display: none } .map-zoom { display: none }")
        save(picture(page, "#summary"), folder / "page-summary.png")
        states = []
        for state in ("0", "100"):
            page.locator("#map input[type=range]").fill(state)
            page.wait_for_timeout(500)
            states.append(picture(page, "#map canvas >> nth=0"))
        save(beside(*states), folder / "page-map.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
