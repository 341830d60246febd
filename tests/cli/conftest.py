"""The indexes of `shops.py`, and models that the command line learned from them."""

import json
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest

import hubless
from hubless import cli
from hubless.movers import Shrink
from hubless.repair.repair import Repair
from hubless.selection import from_pairs
from tests.cli.shops import Library, Shop


def run_json(*arguments):
    """Run a verb outside of a test; return what it prints."""
    with redirect_stdout(StringIO()) as out:
        assert cli.main([*map(str, arguments), "--json"]) == 0
    return json.loads(out.getvalue())


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Folder of the paper's mover, learned by the command line from the labels of the shop."""
    shop = Shop(tmp_path_factory.mktemp("shop"))
    run_json("fit", *shop.source, "--labels", "category", "--mover", "ridge", "-o", shop.folder / "model")
    return shop.folder / "model"


@pytest.fixture(scope="session")
def by_class(tmp_path_factory):
    """Folder of a model that needs the class of an item."""
    folder = tmp_path_factory.mktemp("shrink")
    shop = Shop(folder)
    mover = Shrink(0.4).fit(shop.X, shop.y)
    hubless.save(Repair(mover, "l2", label="category"), folder / "model")
    return folder / "model"


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The library with a model in its folder, learned by the command line, and what `fit` printed."""
    library = Library(tmp_path_factory.mktemp("library"))
    arguments = ["fit", *library.source, *library.asking, "--pairs", library.folder / "train.tsv"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_pairs, "REPEATS", 2)  # instead of 10: what is chosen is not the point
        library.fitted = run_json(*arguments, "-o", library.folder / "model")
    return library


@pytest.fixture
def move(capsys, monkeypatch):
    """`hubless move` in this process: its exit code, what it gave and what it said."""

    def move(model, text, *options):
        monkeypatch.setattr(sys, "stdin", iter(text.splitlines(keepends=True)))
        code = cli.main(["move", str(model), *options])
        return code, *capsys.readouterr()

    return move
