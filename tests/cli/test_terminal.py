"""Progress bars are shown on a terminal, and not in a pipe."""

import io
import os
import pty
import subprocess
import sys
import termios
from contextlib import suppress

import pytest

from hubless import cli
from hubless.paper import demo
from hubless.selection import from_pairs


class Terminal(io.StringIO):
    """What a program writes to a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def seen(monkeypatch, capsys):
    """Run a verb with a terminal as stderr; return what is written there."""

    def seen(*arguments):
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            assert cli.main([*map(str, arguments)]) == 0
        return terminal.getvalue()

    return seen


def test_a_program_on_a_terminal_shows_a_bar(shop, model):
    """In a pipe it shows none: the fixture `run` sees to that for every verb."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    arguments = ["apply", model, *shop.source, "-o", "moved.faiss"]
    command, written = [sys.executable, "-m", "hubless", *map(str, arguments)], b""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as program:
        os.close(theirs)
        with suppress(OSError):  # how a terminal says that nobody writes any more
            while part := os.read(ours, 1 << 16):
                written += part
    os.close(ours)
    assert program.returncode == 0
    assert b" rows" in written


def test_bars_of_fit_from_pairs(seen, library, tmp_path, monkeypatch):
    monkeypatch.setattr(from_pairs, "REPEATS", 1)
    pairs = ["--pairs", library.folder / "train.tsv", "-o", tmp_path / "new"]
    written = seen("fit", *library.source, *library.asking, *pairs)
    assert "read" in written
    assert "choose" in written


def test_bars_of_fit_part_by_part(seen, shop, tmp_path):
    parts = ["--labels", "category", "--mover", "ridge", "--memory", "1GB", "-o", tmp_path / "new"]
    assert " blocks" in seen("fit", *shop.source, *parts)


def test_bar_of_the_demo(seen, monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", {"iris": demo.DATASETS["iris"]})
    monkeypatch.setattr(demo, "SHOWN", {"original-metric": "Euclidean"})
    assert "comparing" in seen("demo", "--splits", "1")
