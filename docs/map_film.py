"""The map of a page from before to after, as an animated picture: `python docs/map_film.py FOLDER [PAGE]`.

Needs Chromium. Without a page, it makes that of News (the paper's 20 Newsgroups) from the files in
$HUBLESS_DATA, and prints what the README says of it. It writes `map.webp`, and for readers who want
no motion `map.png`, before beside after. The committed ones: `python docs/map_film.py docs`.
"""

import shutil
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from sklearn.model_selection import train_test_split

from hubless import MoveLabeledClassifier, compare
from hubless.paper import datasets

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
STEPS = 12  # pictures between the ends
HELD, PASSED = 1600, 80  # milliseconds at either end, and of a picture between
ITEMS, QUERIES = 8000, 2500
HIDDEN = "header.top, .map-zoom, .map-visible { display: none !important }"


def make_page(file: Path) -> None:
    """Write the page of News and print how often its busiest item is found."""
    news = datasets.load("news")
    classes = np.array(news.classes)[news.y]
    sizes = {"train_size": ITEMS, "test_size": QUERIES, "stratify": classes, "random_state": 0}
    stored, queries, labels, truth = train_test_split(news.X, classes, **sizes)
    model = MoveLabeledClassifier(n_neighbors=10)
    print(compare(model, stored, labels, queries, truth, report=file, title="News"))


def film(page: Page) -> list[Image.Image]:
    """Take pictures of the map while the slider goes from before to after."""
    pictures = []
    for step in range(STEPS + 2):
        share = step / (STEPS + 1)
        percent = round(100 * share * share * (3 - 2 * share))  # slow, fast, slow
        page.locator("#map input[type=range]").fill(str(percent))
        page.wait_for_selector(f'#map .map[data-morph="{percent / 100:.2f}"]')
        pictures.append(Image.open(BytesIO(page.locator(".map-stage").screenshot())).convert("RGB"))
    return pictures


def save(pictures: list[Image.Image], folder: Path) -> None:
    """Write the film, forth and back, and its ends beside each other."""
    first, last = pictures[0], pictures[-1]
    forth_and_back = [*pictures, *pictures[-2:0:-1]]
    lasts = [PASSED] * len(forth_and_back)
    lasts[0] = lasts[len(pictures) - 1] = HELD
    options = {"duration": lasts, "loop": 0, "quality": 60, "method": 4}
    first.save(folder / "map.webp", save_all=True, append_images=forth_and_back[1:], **options)
    beside = Image.new("RGB", (2 * first.width, first.height))
    for place, end in enumerate((first, last)):
        beside.paste(end, (place * first.width, 0))
    beside.quantize(128, dither=Image.Dither.NONE).save(folder / "map.png", optimize=True)


def main(folder: Path, file: Path) -> None:
    """Open the page and write the pictures of its map."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 800, "height": 900}, reduced_motion="reduce")
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.add_style_tag(content=HIDDEN)
        save(film(page), folder)
        browser.close()


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        page_file = Path(sys.argv[2] if len(sys.argv) > 2 else f"{made}/news.html")
        if len(sys.argv) == 2:
            make_page(page_file)
        main(Path(sys.argv[1]), page_file)
