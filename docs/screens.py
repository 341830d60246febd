"""A picture of the head of a page: `python docs/screens.py PAGE FOLDER`, with Chromium installed.

The committed one is of the page that `make demo` writes: `python docs/screens.py demo.html docs`.
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


def save(picture: Image.Image, file: Path) -> None:
    """Write a picture with few colours, so that the file is small."""
    picture.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)


def main(file: Path, folder: Path) -> None:
    """Write a picture of the head of the page."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 1000}, reduced_motion="reduce")
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.add_style_tag(content="header.top { display: none }")
        save(picture(page, "#summary"), folder / "page-summary.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
