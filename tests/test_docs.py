"""Everything the documents show is run."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from hubless import cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = ("results.md", "movers-results.md", "speed.md")  # by a command, and compared with it
WITH_CODE = [page for page in PAGES if page.name not in MADE]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
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
        assert "hubless    0.89" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_on_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_a_page_make_sense(page):
    """What they do is tested elsewhere; here, that they are spelled as the tool wants them."""
    commands = re.findall(r"^(?:    )?hubless (.*)$", page.read_text(), re.MULTILINE)
    assert commands or page.name in ("guide.md", "speed.md")
    for command in commands:
        cli.parser().parse_args(shlex.split(command, comments=True))


def test_every_file_is_on_the_map():
    readme = (ROOT / "README.md").read_text()
    for file in (ROOT / "src" / "hubless").rglob("[!_]*.py"):
        assert f"`{file.name}`" in readme


def test_picture_can_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["idea.py", str(tmp_path / "idea.svg")])
    runpy.run_path(str(ROOT / "docs" / "idea.py"), run_name="__main__")
    drawn = (tmp_path / "idea.svg").read_text()
    assert "queries stay" in drawn
    assert "worst hub" in drawn
