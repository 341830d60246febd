"""The command line, run as a user runs it."""

import io
import json
import subprocess
import sys

import pytest

from hubless import __version__, cli
from hubless.cli.options import VerbOptions
from hubless.paper import demo


def test_demo_prints_a_table(capsys, monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", {"iris": demo.DATASETS["iris"]})
    assert cli.main(["demo", "--splits", "2"]) == 0
    shown = capsys.readouterr()
    words = ("iris", "105 × 4", "Euclidean", "Move-query", "Move-labeled", "auto", "N10 skewness", "Next,")
    for word in words:
        assert word in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.err == ""  # no bar in a pipe


@pytest.mark.slow
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


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_terminals_of_any_encoding(monkeypatch, encoding):
    """JSON is the same everywhere; in words, what cannot be shown is a question mark."""
    for is_json in (True, False):
        stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            VerbOptions(json=is_json).show({"grün": "a → b\ud800"}, ["grün a → b"])
        text = stdout.detach().getvalue().decode(encoding)
        if is_json:
            assert json.loads(text)["grün"].startswith("a → b")
        else:
            assert text.strip() == {"utf-8": "grün a → b", "latin-1": "grün a ? b"}.get(
                encoding, "gr?n a ? b"
            )


@pytest.mark.parametrize("arguments", [["dance"], ["demo", "--splits", "0"]])
def test_usage_errors_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: hubless" in capsys.readouterr().err
