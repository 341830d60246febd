"""Steps of long work: each has a name; one that took a second gets a line, one that takes three gets a bar.

Work is silent unless it is asked to report: by `progress=` of a function, or by the command line. Bars are
removed at the end of their step. A step within another is named on the bar of the outer one.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import wraps
from threading import Event, Lock, Thread
from time import perf_counter
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from .terminal import is_terminal, painted, wants_colour
from .text import encodable, printable

LINE_AFTER, BAR_AFTER, REDRAWN = 1.0, 3.0, 0.1  # seconds
WITH_TOTAL = "{desc}: {bar} {n_fmt}/{total_fmt}{unit}, {elapsed}, about {remaining} left{postfix}"
WITHOUT_TOTAL = "{desc}: {n_fmt}{unit}, {elapsed}{postfix}"
WITHOUT_UNIT = "{desc}: {elapsed}{postfix}"
SHARE = "{desc}: {bar} {percentage:.0f} %, {elapsed}, about {remaining} left{postfix}"

P = ParamSpec("P")
T = TypeVar("T")


class Step:
    """A step of long work, which counts what is done of it."""

    def __init__(self, name: str, total: float | None = None, unit: str = "") -> None:
        """`unit` is what is counted, in the plural; "B" for bytes. Without one, a total gives a share."""
        self.name, self.total, self.unit = name, total, unit
        self.done: float = 0
        self.note = ""  # shown behind the bar
        self.is_shown = False

    def update(self, count: float = 1) -> None:
        """Count what was done."""
        self.done += count

    def counted(self, result: T) -> T:
        """Count one thing that was done, and return it."""
        self.update()
        return result


class _Reporter:
    """Where steps are reported, and how."""

    def __init__(self, stream: Any, bars: bool, lines: bool) -> None:
        self.stream, self.bars, self.lines = stream, bars, lines
        self.process = os.getpid()  # a forked process reports nothing
        self.active: Step | None = None
        self.drawn: Any = None  # the bar that is on the screen
        self.lock = Lock()  # of the screen

    def text(self, words: str) -> str:
        return encodable(printable(words), getattr(self.stream, "encoding", None) or "utf-8")

    def line(self, step: Step, seconds: float) -> None:
        line = self.text(f"{step.name}: {duration(seconds)}")
        if seconds >= LINE_AFTER and self.lines:
            self.stream.write((painted(line, "faint") if wants_colour(self.stream) else line) + "\n")
            self.stream.flush()


class _Bar(Thread):
    """Draws a step once it has taken long, from a thread: also where nothing is counted meanwhile."""

    def __init__(self, reporter: _Reporter, step: Step) -> None:
        super().__init__(daemon=True)
        self.reporter, self.step, self.is_over, self.started = reporter, step, Event(), perf_counter()

    def run(self) -> None:
        """Draw the bar until the step is over."""
        if self.is_over.wait(BAR_AFTER):
            return
        with suppress(OSError, ValueError):  # the terminal is gone, or closed
            bar = self._new_bar()
            while True:
                with self.reporter.lock:
                    self.reporter.drawn, bar.n = bar, self.step.done
                    bar.set_postfix_str(self.reporter.text(self.step.note), refresh=False)
                    bar.refresh()
                if self.is_over.wait(REDRAWN):
                    break
            with self.reporter.lock:
                self.reporter.drawn = None
                bar.close()

    def _new_bar(self) -> Any:
        from tqdm import tqdm

        step, unit = self.step, self.step.unit
        form = (WITH_TOTAL if unit else SHARE) if step.total else (WITHOUT_TOTAL if unit else WITHOUT_UNIT)
        bar = type("Drawn", (tqdm,), {"monitor_interval": 0})(  # ours is the only thread
            total=step.total or None,
            desc=self.reporter.text(step.name),
            unit=unit if unit in ("", "B") else f" {unit}",
            unit_scale=unit == "B",
            bar_format=form,
            file=self.reporter.stream,
            leave=False,
            dynamic_ncols=True,
            mininterval=0,
        )
        bar.start_t -= perf_counter() - self.started
        return bar

    def close(self) -> None:
        """Remove the bar."""
        self.is_over.set()
        self.join()


_REPORTER: ContextVar[_Reporter | None] = ContextVar("reporter", default=None)


@contextmanager
def reporting(progress: bool | None, *, lines: bool = False) -> Iterator[None]:
    """Report the steps within: always (True), on a terminal (None), or as the caller does (False).

    With `lines`, a pipe gets a line for each step that took long, too; bars are for terminals.
    """
    bars = is_terminal(sys.stderr) if progress is None else progress
    if not (bars or lines) or progress is False:
        yield
        return
    token = _REPORTER.set(_Reporter(sys.stderr, bars, bars or lines))
    try:
        yield
    finally:
        _REPORTER.reset(token)


def reports_steps(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function report its steps as its argument `progress` says."""

    report = reporting

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        progress: Any = kwargs.get("progress", False)
        with report(progress):
            return function(*args, **kwargs)

    # with the globals of the function: by these, doctest knows that it is of its module
    same = FunctionType(call.__code__, function.__globals__, call.__name__, None, call.__closure__)
    return cast(Callable[P, T], wraps(function)(same))


@contextmanager
def step(name: str, total: float | None = None, unit: str = "") -> Iterator[Step]:
    """Do a step of long work, such as step("reading items", 1000, "rows"); a dry run ends before it."""
    end_dry_run(name)
    this, reporter = Step(name, total, unit), _REPORTER.get()
    if reporter is None or reporter.process != os.getpid():
        yield this
    elif reporter.active is not None:
        outer, before = reporter.active, reporter.active.note
        outer.note = name
        try:
            yield this
        finally:
            outer.note = before
    else:
        yield from _reported(this, reporter)


def _reported(this: Step, reporter: _Reporter) -> Iterator[Step]:
    started, bar = perf_counter(), _Bar(reporter, this) if reporter.bars else None
    reporter.active, this.is_shown = this, True
    if bar is not None:
        bar.start()
    try:
        yield this
    finally:
        reporter.active = None
        if bar is not None:
            bar.close()
    reporter.line(this, perf_counter() - started)


@contextmanager
def beside_bar() -> Iterator[None]:
    """Write lines to a terminal: a bar that is there makes room for them, and comes back."""
    reporter = _REPORTER.get()
    with nullcontext() if reporter is None else reporter.lock:
        if reporter is not None and reporter.drawn is not None:
            reporter.drawn.clear()
        yield


def duration(seconds: float) -> str:
    """Return a time as one would say it: 1.4 s, 12 s, 2 min 5 s, 1 h 10 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# --- dry runs -----------------------------------------------------------------------------------------------

_IS_DRY: ContextVar[bool] = ContextVar("is_dry", default=False)


class DryRunEnds(BaseException):
    """A dry run has come to the first step that takes long or writes: nothing refused what was asked."""


@contextmanager
def dry_run() -> Iterator[None]:
    """Do what comes before the first step, which are checks, and end with DryRunEnds before it."""
    token = _IS_DRY.set(True)
    try:
        yield
    finally:
        _IS_DRY.reset(token)


def is_dry_run() -> bool:
    """Return whether nothing may be written, and only checks be made."""
    return _IS_DRY.get()


def end_dry_run(next_step: str) -> None:
    """End a dry run here: what comes next takes long, or writes."""
    if is_dry_run():
        raise DryRunEnds(next_step)
