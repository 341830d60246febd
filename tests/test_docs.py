"""Everything the documents show is run."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import news

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_a_page_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:  # a page is read from its top: later blocks use the names of earlier ones
        exec(compile(block, str(page), "exec"), names)
    shown = capsys.readouterr().out
    assert "skewness" in shown
    if page.name == "README.md":  # the two accuracies it tells in comments
        assert "plain k-NN 0.75" in shown
        assert "hubless    0.88" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_on_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_results_on_the_front_page_are_the_raw_numbers():
    table = news.markdown(json.loads(news.RESULT.read_text()))
    assert table in (ROOT / "README.md").read_text()


def test_every_file_is_on_the_map():
    readme = (ROOT / "README.md").read_text()
    for file in (ROOT / "src" / "hubless").glob("[!_]*.py"):
        assert f"`{file.name}`" in readme


def test_picture_can_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["idea.py", str(tmp_path / "idea.svg")])
    runpy.run_path(str(ROOT / "docs" / "idea.py"), run_name="__main__")
    drawn = (tmp_path / "idea.svg").read_text()
    assert "queries stay" in drawn
    assert "worst hub" in drawn
