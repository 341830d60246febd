"""Steps of long work: lines, bars, who is told, dry runs, colours."""

import io
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from hubless.cli import lines
from hubless.cli.lines import plain_warnings
from hubless.support import progress
from hubless.support.progress import (
    DryRunEnds,
    beside_bar,
    dry_run,
    duration,
    is_dry_run,
    reporting,
    reports_steps,
    step,
)
from hubless.support.terminal import wants_colour


class Terminal(io.StringIO):
    """A terminal that waits until something is on its screen."""

    def __init__(self):
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        written = super().write(text)
        if text.strip():
            self.drawn.set()
        return written

    def wait(self, text=""):
        """Wait until something is written, and a text is on the screen."""
        for _ in range(1000):
            self.drawn.clear()
            assert self.drawn.wait(60)
            if text in self.getvalue():
                return
        raise AssertionError(self.getvalue())

    def screen(self):
        """Return the lines that are left, as a terminal shows them: \\r returns, what follows overwrites."""
        lines = []
        for line in self.getvalue().split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part + shown[len(part) :]
            lines.append(shown.rstrip())
        return lines


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)


@pytest.fixture
def soon(monkeypatch):
    """Bars come at once, and are drawn often."""
    monkeypatch.setattr(progress, "BAR_AFTER", 0.0)
    monkeypatch.setattr(progress, "REDRAWN", 0.001)


def as_stderr(stream, monkeypatch):
    for module in (progress, lines):  # pytest puts back its own sys.stderr before a test
        monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream))
    return stream


@pytest.fixture
def pipe(monkeypatch):
    return as_stderr(io.StringIO(), monkeypatch)


@pytest.fixture
def terminal(monkeypatch):
    return as_stderr(Terminal(), monkeypatch)


def two_steps():
    with step("reading 5 rows", 5, "rows") as reading:
        reading.update(5)
    with step("learning"):
        pass


def test_work_is_silent_unless_it_is_asked(terminal, soon):
    two_steps()
    with reporting(False):
        two_steps()
    assert terminal.getvalue() == ""


def test_a_pipe_gets_a_line_for_each_long_step(pipe, soon):
    with reporting(None, lines=True):
        two_steps()
    names = [line.rpartition(": ")[0] for line in pipe.getvalue().splitlines()]
    assert names == ["reading 5 rows", "learning"]
    assert pipe.getvalue().replace("\n", "").isprintable()


def test_a_pipe_gets_nothing_from_a_library(pipe):
    with reporting(None):
        two_steps()
    assert pipe.getvalue() == ""


def test_a_short_step_gets_no_line(pipe, monkeypatch):
    monkeypatch.setattr(progress, "LINE_AFTER", 3600.0)
    with reporting(None, lines=True):
        two_steps()
    assert pipe.getvalue() == ""


def test_a_bar_counts_and_leaves_its_line(terminal, soon):
    with reporting(None), step("choosing", 8, "folds") as choosing:
        terminal.wait()
        choosing.update(3)
        choosing.note = "best: W"
        terminal.wait("3/8 folds")
        terminal.wait("best: W")
    assert [line.rpartition(": ")[0] for line in terminal.screen()] == ["\x1b[2mchoosing", ""]


def test_a_bar_comes_where_nothing_is_counted(terminal, soon):
    with reporting(None), step("solving"):
        terminal.wait()
        assert "solving: 00:00" in terminal.getvalue()


def test_a_terminal_that_moves_no_cursor_gets_lines(terminal, soon, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with reporting(None, lines=True):
        two_steps()
    assert terminal.getvalue().replace("\n", "").isprintable()
    assert terminal.getvalue().count("\n") == 2


def test_steps_within_a_step_are_named_on_its_bar(terminal, soon):
    with reporting(None), step("outer"), step("inner"):
        terminal.wait("inner")
    assert [line.rpartition(": ")[0] for line in terminal.screen()] == ["\x1b[2mouter", ""]


def test_a_step_that_fails_removes_its_bar_and_has_no_line(terminal, soon):
    def fail():
        with reporting(None), step("learning"):
            terminal.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert terminal.screen() == [""]
    assert not [thread for thread in threading.enumerate() if isinstance(thread, progress._Bar)]


def test_a_warning_does_not_mix_with_a_bar(terminal, soon):
    with reporting(None), plain_warnings(), step("learning", 100, "rows"):
        terminal.wait()
        warnings.simplefilter("always")
        warnings.warn("beware", stacklevel=1)
        terminal.wait()
    assert terminal.screen()[0] == "\x1b[33mhubless: warning: beware\x1b[0m"
    with reporting(None), beside_bar():  # without a bar
        pass


def test_names_steer_no_terminal(pipe):
    with reporting(True), step("reading \x1b]0;title\x07\nx"):
        pass
    assert pipe.getvalue().startswith("reading  ]0;title  x: ")


def test_functions_report_as_their_argument_says(pipe):
    @reports_steps
    def work(*, progress=False):
        two_steps()

    work()
    assert pipe.getvalue() == ""
    work(progress=True)
    assert pipe.getvalue().count("\n") == 2
    with reporting(True):
        work(progress=False)
    assert pipe.getvalue().count("\n") == 4


def test_threads_and_forked_processes_report_nothing(pipe, monkeypatch):
    with reporting(True), ThreadPoolExecutor(1) as pool:
        pool.submit(two_steps).result()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        two_steps()
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1.04, "1.0 s"), (9.96, "10 s"), (59.4, "59 s"), (125, "2 min 5 s"), (4200, "1 h 10 min")],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_a_dry_run_ends_before_the_first_step():
    done = []

    def work():
        assert is_dry_run()
        with step("reading"):
            done.append(1)

    with dry_run(), pytest.raises(DryRunEnds, match="reading"):
        work()
    assert done == []
    assert not is_dry_run()


@pytest.mark.parametrize(
    ("variables", "on_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
        ({"CLICOLOR": "0"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_colours(monkeypatch, variables, on_terminal, in_pipe):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (wants_colour(Terminal()), wants_colour(io.StringIO())) == (on_terminal, in_pipe)
