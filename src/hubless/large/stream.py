"""Learn from objects that do not fit in memory, on one machine: look, gather by class, learn by class."""

import hashlib
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..progress import bar_of
from ..stores.switch import locked
from .checkpoints import Checkpoints, key_of
from .lesson import Lesson, Near, Sums, Taught, learn_classes, learn_found, nearest_in_chunk, taught_in
from .memory import rows_within
from .partition import ROWS, Partition
from .sampling import Draw, Drawn, Sample
from .survey import Block, Look, clean, codes_of, survey_all

BLOCK = 1 << 24  # bytes read at once
SUMS = 4  # copies of the sums of classes that are held at once
SOURCES = 16_384  # sources of a class in chunks that look for their targets at once


class Source(ABC):
    """Labeled objects, part by part, as often as they are asked for."""

    name: str
    n_columns: int
    itemsize: int
    n_rows: int | None  # for a progress bar; None where it is not known
    texts: bool = False  # whether labels are compared as texts
    may_miss: bool = False  # whether rows may lack a label

    @abstractmethod
    def parts(self, size: int) -> Iterable[tuple[str, Callable[[], Iterable[Block]]]]:
        """Names of the parts, and what reads each in blocks of `size` rows."""

    def check_scratch(self, folder: Path) -> None:
        """Refuse a scratch that would lie among the objects."""
        return

    def state(self) -> str:
        """A text that differs once the objects were changed, where that can be told."""
        return ""


class Plan(NamedTuple):
    """How objects are learned from."""

    max_pairs: int | None
    memory: int  # bytes
    scratch: Path | None  # where objects by class and results of parts are kept; None for a place that goes
    seed: int
    skip_bad: bool
    progress: bool | None  # None shows a bar on a terminal

    def bar(self, total: int | None, what: str) -> Any:
        return bar_of(self.progress, total, unit=" rows", unit_scale=True, desc=f"{what:6}")


@contextmanager
def gathered(source: Source, plan: Plan) -> Iterator["Gathered"]:
    """Objects that were looked at, and are brought together by class once somebody asks for them."""
    made = None if plan.scratch is not None else Path(tempfile.mkdtemp(prefix="hubless-"))
    folder = plan.scratch or made
    assert folder is not None
    source.check_scratch(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"scratch must be a folder; {folder} is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / ROWS):
            found = Gathered(source, plan, folder)
            try:
                yield found
            finally:
                found.rows.close()
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


class Gathered:
    """Objects in a file, class by class."""

    def __init__(self, source: Source, plan: Plan, folder: Path) -> None:
        self.source, self.plan = source, plan
        self.look = Look(source.texts, source.may_miss, plan.skip_bad)
        self.at_once = rows_within(plan.memory, source.n_columns, source.itemsize)
        self.block = max(1, min(BLOCK // (source.n_columns * source.itemsize), self.at_once))
        self.state = source.state()
        with plan.bar(source.n_rows, "look") as bar:
            self.seen = survey_all(source.parts(self.block), source.n_columns, self.look, bar.update)
        self.seen.check()
        self.rows = Partition(folder, self.seen.sizes, source.n_columns, self.seen.dtype)
        self.checkpoints = Checkpoints(None if plan.scratch is None else folder)

    def gather(self) -> None:
        """Bring the objects together by class, unless they are."""
        source, seen = self.source, self.seen
        if self.rows.holds(seen.digest):
            return
        classes = seen.classes
        self.rows.begin()
        with self.plan.bar(seen.n, "gather") as bar:
            for X, labels in self._clean():
                self.rows.add(X, codes_of(labels, classes))
                bar.update(len(X))
        if source.state() != self.state:
            raise OSError(f"{source.name} changed while it was read. Start again.")
        self.rows.finish(seen.digest)

    def some(self, most: int) -> Drawn:
        """About so many objects by chance, in their order."""
        draw, classes = Draw.of(self.seen.sizes, most, self.plan.seed), self.seen.classes
        found, first = [], 0
        with self.plan.bar(self.seen.n, "sample") as bar:
            for X, labels in self._clean():
                found.append(draw.of_rows(first, X, labels, codes_of(labels, classes)))
                first += len(X)
                bar.update(len(X))
        return Drawn.joined(found)

    def _clean(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The objects that can be learned from and their labels, block by block."""
        left_out = {part for part, _ in self.seen.skipped}
        for name, blocks in self.source.parts(self.block):
            for block in () if name in left_out else blocks():
                yield clean(block, self.source.n_columns, self.look)

    def learn(self, lesson: Lesson) -> Sums:
        """What the objects teach."""
        total = Sums.none(lesson)
        if not lesson.n_targets and not lesson.means:
            return total
        self.gather()
        sizes, source = self.rows.sizes, self.source
        means = SUMS * 8 * len(sizes) * source.n_columns if lesson.means else 0
        self.at_once = rows_within(
            self.plan.memory - means, source.n_columns, source.itemsize, lesson.n_targets
        )
        sample = Sample.of(sizes, self.plan.max_pairs, max(1, lesson.n_targets), self.plan.seed)
        with self.plan.bar(self.seen.n, "learn") as bar:
            for first, last in runs(sizes, self.at_once):
                if sizes[first] > self.at_once:
                    for found in _large_class(self, sample, lesson, first):
                        total = total + found
                else:
                    total = total + _whole_classes(self, sample, lesson, first, last)
                bar.update(int(sizes[first:last].sum()))
        return total


def runs(sizes: np.ndarray, at_once: int) -> Iterator[tuple[int, int]]:
    """Runs of classes of at most so many objects together; a larger class is a run of its own."""
    first = held = 0
    for number, size in enumerate(sizes.tolist()):
        if number > first and held + size > at_once:
            yield first, number
            first, held = number, 0
        held += size
    if len(sizes) > first:
        yield first, len(sizes)


def streaks(ranks: np.ndarray) -> Iterator[tuple[int, int]]:
    """Rising numbers as slices, each of consecutive ones."""
    for streak in np.split(ranks, np.flatnonzero(np.diff(ranks) != 1) + 1):
        if len(streak):
            yield int(streak[0]), int(streak[-1]) + 1


def _whole_classes(objects: Gathered, sample: Sample, lesson: Lesson, first: int, last: int) -> Sums:
    rows, checkpoints = objects.rows, objects.checkpoints
    codes, sizes = np.arange(first, last), rows.sizes[first:last]
    X = rows.read(int(rows.starts[first]), int(rows.ends[last - 1]))
    taught = taught_in(sample, codes, sizes)
    key = "" if checkpoints.folder is None else key_of(lesson, taught, codes, sizes, X)
    return checkpoints.get(key, lambda: learn_classes(X, codes, sizes, taught, lesson))


def _large_class(objects: Gathered, sample: Sample, lesson: Lesson, code: int) -> Iterator[Sums]:
    """A class that is read in chunks, for a few thousand of its sources at a time."""
    rows, start, size = objects.rows, int(objects.rows.starts[code]), int(objects.rows.sizes[code])
    ranks, step = sample.ranks(code), max(1, objects.at_once // 2)
    chunks = [(first, min(first + step, size)) for first in range(0, size, step)]
    digest, total = hashlib.sha256(), np.zeros(rows.n_columns)
    for first, last in chunks if lesson.means or objects.checkpoints.folder is not None else ():
        chunk = rows.read(start + first, start + last)
        digest.update(chunk.data)
        total += chunk.sum(axis=0, dtype=np.float64)
    if lesson.means:
        yield Sums(Sums.none(lesson).moments, 0, np.array([code]), total[None, :])
    weight = None if sample.is_whole() else sample.weight(code)
    at_once = max(1, min(SOURCES, step // (3 * (lesson.n_targets + 1))))  # each has so many targets in hand
    for first in range(0, len(ranks) if lesson.n_targets else 0, at_once):
        own = ranks[first : first + at_once]
        weights = None if weight is None else np.full(len(own), weight)

        def learn(own: np.ndarray = own, weights: np.ndarray | None = weights) -> Sums:
            x = np.concatenate([rows.read(start + a, start + b) for a, b in streaks(own)])
            near: Near | None = None
            for a, b in chunks:
                found = nearest_in_chunk(x, own, rows.read(start + a, start + b), a, lesson.n_targets)
                near = found if near is None else near.joined(found)
            assert near is not None
            return learn_found(x, near, weights, lesson, total / size)

        key = key_of(lesson, Taught(own, weights), np.array([code]), digest.digest())
        yield objects.checkpoints.get(key, learn)
