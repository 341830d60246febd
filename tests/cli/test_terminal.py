"""What a terminal gets beside the result: bars, a line for each long step, colours; and what a pipe gets."""

import os
import pty
import re
import subprocess
import sys
import termios
from contextlib import suppress

import pytest

from hubless import cli
from hubless.paper import demo
from hubless.selection import from_pairs
from hubless.support import progress

PROGRAM = """
import sys
from hubless.cli import main
from hubless.support import progress
progress.LINE_AFTER = progress.BAR_AFTER = 0.0
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.fixture
def steps(monkeypatch, capsys):
    """Run a verb whose steps all count as long; return their names, which are on stderr."""
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)

    def steps(*arguments):
        assert cli.main([*map(str, arguments)]) == 0
        written = capsys.readouterr().err
        assert written.replace("\n", "").isprintable()  # no bar, no colour
        return [line.rpartition(": ")[0] for line in written.splitlines()]

    return steps


def on_terminal(*arguments, **variables):
    """Run a program whose stderr is a terminal; return its stdout and what the terminal got."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command, shown = [sys.executable, "-c", PROGRAM, *map(str, arguments)], b""
    plain = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env={**plain, "TERM": "xterm", **variables}
    ) as program:
        os.close(theirs)
        with suppress(OSError):  # how a terminal says that nobody writes any more
            while part := os.read(ours, 1 << 16):
                shown += part
        printed = program.stdout.read().decode()
    os.close(ours)
    assert program.returncode == 0, shown
    return printed, shown.decode()


def test_a_program_on_a_terminal_shows_bars_and_lines(shop, model):
    arguments = ["apply", model, *shop.source, "-o", "moved.faiss"]
    printed, shown = on_terminal(*arguments)
    assert "\x1b[2mmoving 240 rows into moved.faiss: " in shown
    assert re.search("\rmoving 240 rows into moved.faiss: .*rows", shown)
    assert "\x1b" not in printed  # which goes to a pipe
    os.remove(shop.folder / "moved.faiss")
    _, shown = on_terminal(*arguments, NO_COLOR="1")
    assert "\x1b[2m" not in shown
    os.remove(shop.folder / "moved.faiss")
    _, shown = on_terminal(*arguments, TERM="dumb")
    assert shown.replace("\r\n", "").isprintable()


def test_steps_of_fit_and_what_follows(steps, shop, model, tmp_path):
    fitted = steps("fit", *shop.source, "--labels", "category", "-o", tmp_path / "new")
    assert fitted[0].startswith("reading 240 rows of ")
    assert fitted[1].startswith("choosing among ")
    assert fitted[-1] == "writing new"
    asked = ["--queries", shop.folder / "queries.npy", "--query-items", shop.folder / "queries.csv"]
    evaluated = steps("evaluate", model, *shop.source, *asked, "--labels", "category", "--json")
    assert any(re.fullmatch(r"answering \d+ queries among 240 items", name) for name in evaluated)
    assert "moving 240 rows into moved.faiss" in steps("apply", model, *shop.source, "-o", "moved.faiss")
    assert any(name.startswith("switching ") for name in steps("promote", *shop.source, "moved.faiss"))
    assert steps("doctor", shop.folder / "queries.npy")[-1].startswith("searching for the neighbours of ")


def test_steps_of_fit_from_pairs(steps, library, tmp_path, monkeypatch):
    monkeypatch.setattr(from_pairs, "REPEATS", 1)
    pairs = ["--pairs", library.folder / "train.tsv", "-o", tmp_path / "new"]
    names = steps("fit", *library.source, *library.asking, *pairs)
    assert any(re.fullmatch(r"choosing a map by [\d,]+ judged queries", name) for name in names)


def test_steps_of_fit_part_by_part(steps, shop, tmp_path):
    parts = ["--labels", "category", "--mover", "ridge", "--memory", "1GB", "-o", tmp_path / "new"]
    assert "looking through the objects" in steps("fit", *shop.source, *parts)


def test_steps_of_the_demo(steps, monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", {"iris": demo.DATASETS["iris"]})
    monkeypatch.setattr(demo, "SHOWN", {"original-metric": "Euclidean"})
    assert steps("demo", "--splits", "1")[0].startswith("comparing")


def test_colours_are_forced_and_forbidden(capsys, monkeypatch, shop):
    def printed(**variables):
        with monkeypatch.context() as patch:
            for name in ("NO_COLOR", "FORCE_COLOR"):
                patch.delenv(name, raising=False)
            for name, value in variables.items():
                patch.setenv(name, value)
            assert cli.main([]) == 0
            assert cli.main(["status", str(shop.folder / "none.npy")]) == 1
        return "".join(capsys.readouterr())

    plain, coloured = printed(), printed(FORCE_COLOR="1")
    assert "\x1b" not in plain + printed(FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[1mfirst steps:\x1b[0m" in coloured
    assert "  \x1b[36mdoctor\x1b[0m     diagnose" in coloured
    assert "\x1b[31mhubless: " in coloured
    assert re.sub("\x1b\\[\\d*m", "", coloured) == plain
