"""Pages on data sets that people know, here on tiny data of the same form."""

from PIL import Image

from benchmarks.__main__ import main
from benchmarks.pages import PAGES
from tests.report.page_files import figures_of

SIZES = {  # items, queries, task
    "news": (67, 23, "labels"),
    "banking77": (90, 30, "labels"),
    "scifact": (80, 250, "pairs"),
    "flickr8k": (30, 60, "pairs"),
}


def test_every_page_is_made_with_its_picture(tmp_path):
    assert main(["pages", "--quick", "--out", str(tmp_path)]) == 0
    assert [*SIZES] == [*PAGES]
    for name, expected in SIZES.items():
        figures = figures_of(tmp_path / f"{name}.html")
        assert (figures["counts"]["items"], figures["counts"]["queries"], figures["task"]) == expected
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.size == (1200, 630)


def test_an_unknown_page_is_refused(tmp_path, capsys):
    assert main(["pages", "newz", "--out", str(tmp_path / "new")]) == 1
    assert "unknown page newz; pages are news, banking77, scifact, flickr8k" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
