"""The picture that the page shares: the same texts and bars as the one that matplotlib draws."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hubless import plot
from hubless.report.colours import LIGHT
from tests.report.browser import NOT_ISOLATED
from tests.report.pages import hostile_report, labelled_report

pytestmark = pytest.mark.browser
LISTEN = """window.drawn = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
  if (this.canvas.width === 1200) drawn.push(text);
  return write.call(this, text, ...place);
};"""


def bars(picture):
    """The lengths of the two bars, by a row of pixels above the letters beside them."""
    pixels = np.asarray(picture.convert("RGB"))
    colours = [[*bytes.fromhex(LIGHT[state][1:])] for state in ("before", "after")]
    return [
        (pixels[row] == colour).all(axis=1).sum() for row, colour in zip((458, 502), colours, strict=True)
    ]


def test_it_is_saved_with_one_click_and_is_that_of_matplotlib(open_page, tmp_path):
    page = open_page(labelled_report, script=LISTEN, accept_downloads=True)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the picture").click()
    assert saved.value.suggested_filename == "hubless.png"
    figure = plot.share_card(labelled_report())
    # where lines end depends on the fonts
    assert " ".join(page.evaluate("drawn")) == " ".join(text.get_text() for text in figure.axes[0].texts)
    file = plot.save_card(labelled_report(), tmp_path / "card.png")
    with Image.open(saved.value.path()) as ours, Image.open(file) as theirs:
        assert ours.size == theirs.size == (1200, 630)
        hub = labelled_report().details["hubs"][0]
        expected = [300, 300 * hub["after"] / hub["before"]]
        assert bars(ours) == pytest.approx(expected, abs=1.5)
        assert bars(theirs) == pytest.approx(expected, abs=1.5)


def test_it_is_copied_with_one_click(open_page):
    page = open_page(labelled_report, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as a picture").click()
    page.get_by_text("Copied: the verdict").wait_for()
    read = "navigator.clipboard.read().then(([item]) => item.getType('image/png'))"
    data = page.evaluate(f"{read}.then((part) => part.arrayBuffer()).then((all) => [...new Uint8Array(all)])")
    with Image.open(BytesIO(bytes(data))) as picture:
        assert picture.size == (1200, 630)


def test_hostile_texts_are_only_drawn(open_page):
    page = open_page(hostile_report, script=LISTEN, accept_downloads=True)
    with page.expect_download():
        page.get_by_role("button", name="Save the picture").click()
    texts = page.evaluate("drawn")
    assert any("<script>" in text for text in texts)
    assert all(text.replace("\u00a0", " ").isprintable() for text in texts)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate(NOT_ISOLATED) == []
