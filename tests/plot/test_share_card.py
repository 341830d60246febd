"""The picture to share: its texts and bars against the figures, hostile texts, and files."""

import sys
from types import SimpleNamespace

import pytest
from matplotlib.patches import Rectangle
from PIL import Image

from hubless import plot
from hubless.plot.share_picture import quiet
from hubless.plot.style import styled
from hubless.report.colours import LIGHT
from hubless.report.share_card import share_card

TILES = [
    ("Accuracy", 0.72499, 0.8125, "percent", "higher", "better", "72.5 % → 81.3 %", "▲ better"),
    ("N10 skewness", 1204.375, -0.125, "number", "lower", "better", "1,204.38 → −0.13", "▼ better"),
    ("Never returned", 0.1, 0.2, "percent", "lower", "worse", "10.0 % → 20.0 %", "▲ worse"),
    ("nDCG@10", 0.5, 0.5, "fraction", "higher", "same", "0.500 → 0.500", "= no change"),
    ("A fifth", 1.0, 2.0, "number", "lower", "worse", None, None),  # there is room for four
]


@pytest.fixture
def figures():
    names = ("title", "before", "after", "form", "better", "judgement")
    return {
        "title": "Trees",
        "counts": {"items": 10003, "queries": 3080, "dimension": 384, "hub_k": 10},
        "summary": {
            "sentence": "After moving, more is right: move them.",
            "verdict": {"kind": "move", "title": "Move"},
            "figures": [dict(zip(names, tile, strict=False)) for tile in TILES],
        },
    }


HUB = {"id": "item-7", "text": "leaf 7 of the beech", "before": 1360, "after": 18, "harm_before": 40}


def drawn(figures, hubs=(HUB,), threshold=20):
    """The figure, and the texts on it."""
    card = share_card(figures, hubs, threshold)
    figure = plot.share_card({"skyline": None, "share": card})
    (axes,) = figure.axes
    return figure, [text.get_text() for text in axes.texts]


def test_the_texts_are_the_figures(figures):
    _, texts = drawn(figures)
    shown = [text.replace("\u00a0", " ") for text in texts]
    expected = ["Trees", "✓ Move", "After moving, more is right: move them.", "The worst hub"]
    expected += [HUB["text"], "before", "1,360", "after", "18", "queries that have it among their 10 nearest"]
    expected += [text for title, *_, values, says in TILES[:4] for text in (title, values, says)]
    assert shown == [*expected, "10,003 items · 3,080 queries · 384 dimensions", "hubless"]


def test_the_bars_are_as_long_as_the_counts(figures):
    figure, _ = drawn(figures)
    boxes = [box for box in figure.axes[0].patches if isinstance(box, Rectangle) and box.get_height() == 34]
    before, after = (box.get_width() for box in boxes)
    assert after / before == pytest.approx(18 / 1360)


def test_what_chance_explains_is_no_hub(figures):
    _, texts = drawn(figures, threshold=1361)
    assert "The worst item: no hub, chance makes as busy ones" in texts
    assert "The worst hub" not in texts
    assert "before" not in drawn(figures, hubs=())[1]


def test_a_hub_is_shown_before_items_that_do_more_harm(figures):
    item, harmless = {**HUB, "id": "a", "text": "few", "before": 19}, {**HUB, "harm_before": 0}
    assert {"The worst hub", HUB["text"]} < {*drawn(figures, [item, HUB])[1]}
    assert {"The busiest hub", HUB["text"]} < {*drawn(figures, [harmless])[1]}


def test_a_long_sentence_is_whole_below_two_lines_of_a_title(figures):
    figures["summary"]["verdict"]["title"] = "Better for seen items, no measurable gain for all of the others"
    words = figures["summary"]["sentence"] = "moves " * 53 + "the end."
    assert words in " ".join(drawn(figures)[1])


def test_hostile_texts_are_drawn_as_texts_inside_of_the_picture(figures):
    hostile = "$\\frac{1$ <script> \x00\x1b[31m \u202e\u2066 😀 漢字 \udc80 " + "long " * 1000
    figures["title"] = figures["summary"]["sentence"] = figures["summary"]["verdict"]["title"] = hostile
    for tile in figures["summary"]["figures"]:
        tile["title"] = hostile
    figure, texts = drawn(figures, [{**HUB, "text": None, "id": hostile}])
    assert sum(text.startswith(("$\\frac{1$ <script> ", "✓ $\\frac{1$ <script> ")) for text in texts) == 8
    assert all(text.replace("\u00a0", " ").isprintable() for text in texts)
    with styled(), quiet():
        box = figure.get_tightbbox()
    assert (box.xmin, box.ymin) >= (0, 0)
    assert box.xmax <= 12
    assert box.ymax <= 6.3


def test_a_file_is_1200_by_630_pixels_and_stays_the_same(figures, tmp_path):
    report = SimpleNamespace(figures={"skyline": None, "share": share_card(figures, [HUB], 20)})
    file = plot.save_card(report, tmp_path / "new" / "card.png")
    content = file.read_bytes()
    with Image.open(file) as picture:
        assert picture.size == (1200, 630)
        pixels = picture.convert("RGB")
        assert pixels.getpixel((5, 300)) == tuple(bytes.fromhex(LIGHT["accent"][1:]))  # Move is green
    assert plot.save_card(report, file).read_bytes() == content
    with pytest.raises(ValueError, match=r"a PNG file; got .*card.jpg"):
        plot.save_card(report, tmp_path / "card.jpg")


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'hubless\[plot\]'"):
        plot.check_card(tmp_path / "card.png")
