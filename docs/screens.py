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
    """Take a picture of a part of the page."""
    return Image.open(BytesIO(page.locator(selector).screenshot())).convert("RGB")


def beside(*pictures: Image.Image) -> Image.Image:
    """Put pictures in a row."""
    gap, height = 24, max(part.height for part in pictures)
    row = Image.new("RGB", (sum(part.width + gap for part in pictures) - gap, height), "white")
    left = 0
    for part in pictures:
        row.paste(part, (left, 0))
        left += part.width + gap
    return row


def save(picture: Image.Image, file: Path) -> None:
    """Write a picture with few colours, so that the file is small."""
    picture.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)


def main(file: Path, folder: Path) -> None:
    """Write pictures of the head of the page, and of the map before and after."""
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
        for percent in (0, 100):
            page.locator("#map input[type=range]").fill(str(percent))
            page.wait_for_selector(f'#map .map[data-morph="{percent / 100:.2f}"]')
            states.append(picture(page, "#map canvas >> nth=0"))
        save(beside(*states), folder / "page-map.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
