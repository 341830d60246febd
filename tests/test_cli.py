"""The command line, run as a user runs it."""

import json
import os
import pty
import select
import subprocess
import sys
import termios

import pytest

from hubless import __version__, cli, demo


def test_demo_prints_a_table(capsys, monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", {"iris": demo.DATASETS["iris"]})
    assert cli.main(["demo", "--splits", "2"]) == 0
    shown = capsys.readouterr()
    for word in ("iris", "105 × 4", "Euclidean", "Move-query", "Move-labeled", "N10 skewness", "Next:"):
        assert word in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.err == ""  # no progress bar in a pipe


def test_demo_shows_hubs_made_and_removed(monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", {"blobs": demo.DATASETS["blobs"]})
    euclidean, query, labeled, auto = demo.compare(1)
    assert query["skewness"] > euclidean["skewness"] > 3 > labeled["skewness"]
    assert query["accuracy"] < euclidean["accuracy"] < labeled["accuracy"] - 0.03
    assert auto["accuracy"] > labeled["accuracy"] - 0.01


def test_demo_as_json(capsys, monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", {"iris": demo.DATASETS["iris"], "wine": demo.DATASETS["wine"]})
    cli.main(["demo", "--splits", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["dataset"], row["method"]) for row in rows[:4]] == [
        ("iris", "Euclidean"),
        ("iris", "Move-query"),
        ("iris", "Move-labeled"),
        ("iris", "auto"),
    ]
    assert len(rows) == 8
    assert rows[0]["accuracy_standard_error"] is None
    assert all(0.8 < row["accuracy"] <= 1 for row in rows)


def test_version_and_help():
    run = [sys.executable, "-m", "hubless"]
    assert subprocess.check_output([*run, "--version"], text=True).strip() == f"hubless {__version__}"
    assert "demo" in subprocess.check_output([*run, "--help"], text=True)
    assert "example:" in subprocess.check_output([*run, "demo", "--help"], text=True)


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--splits", "0"]])
def test_senseless_command_lines_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: hubless" in capsys.readouterr().err


def test_progress_bar_on_a_terminal():
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    script = "from hubless import demo; demo.DATASETS.pop('digits'); demo.compare(1)"
    subprocess.run([sys.executable, "-c", script], stderr=theirs, check=True)
    readable, _, _ = select.select([ours], [], [], 10)  # never waits for a bar that does not come
    assert readable
    assert b"comparing" in os.read(ours, 1 << 16)
    os.close(theirs)
    os.close(ours)
