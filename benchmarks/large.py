"""`fit_large` beside the bare work on the same file: how often the data is read, and the ratio of the times.

The bare work reads the file twice, multiplies the sources with all objects of their class, and sums up A and
K of as many pairs. Both run in this process in turn, in every round, as the machine may be busy.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from hubless import MoveLabeled, fit_large
from hubless.outofcore.sources import ArrayObjects

from .beyond_data import make
from .record import Options

ROWS = 1 << 16  # rows read at once by the bare work
SOURCES = 1 << 12  # sources that are multiplied at once


class Shape(NamedTuple):
    """How much there is, and how it is learned from."""

    n: int
    d: int
    classes: int
    pairs: int
    memory: dict[str, str]  # by case: with room for all sources at once, or for some of them
    rounds: int


FULL = Shape(400_000, 128, 100, 40_000, {"one group": "1GB", "several groups": "600MB"}, 3)
QUICK = Shape(20_000, 16, 20, 2_000, {"one group": "1GB"}, 1)


def measure(options: Options) -> dict[str, Any]:
    """Seconds and processor seconds of each round, and reads, of each case."""
    shape = QUICK if options.quick else FULL
    with TemporaryDirectory(prefix="hubless-large-") as folder:
        made = make(Path(folder), shape.n, shape.d, shape.classes)
        cases: dict[str, list[Any]] = {name: [] for name in (*shape.memory, "bare")}
        for _ in range(shape.rounds):
            for name, memory in shape.memory.items():
                cases[name].append(_timed(_fit, made, shape, memory))
            cases["bare"].append(_timed(_bare, made, shape))
    return {"reads": {"settings": shape._asdict(), "rounds": cases}}


def _timed(work: Any, *given: Any) -> dict[str, Any]:
    wall, processor = perf_counter(), process_time()
    result = work(*given)
    return {"seconds": perf_counter() - wall, "processor seconds": process_time() - processor, **result}


def _fit(made: Any, shape: Shape, memory: str) -> dict[str, Any]:
    """Fit, and return how many times the bytes of the vectors were read."""
    X, y = (np.load(file, mmap_mode="r") for file in made)
    with counted() as read, warnings.catch_warnings():
        mover = fit_large(MoveLabeled(), X, y, memory=memory, max_pairs=shape.pairs)
    return {"reads": sum(read) / X.nbytes, "pairs": mover.n_pairs_}


@contextmanager
def counted() -> Iterator[list[int]]:
    """Give a list that gets the bytes of every block of vectors that is read from an array."""
    read, blocks = [], ArrayObjects.blocks

    def count(self: ArrayObjects, wanted: set[int] | None = None) -> Any:
        for number, block in blocks(self, wanted):
            read.append(block.X.nbytes)
            yield number, block

    ArrayObjects.blocks = count  # type: ignore[method-assign]
    try:
        yield read
    finally:
        ArrayObjects.blocks = blocks  # type: ignore[method-assign]


def _bare(made: Any, shape: Shape) -> dict[str, Any]:
    """Read twice; multiply and sum up rows at hand, as many as a fit does."""
    d = shape.d
    offset = np.load(made.vectors, mmap_mode="r").offset
    for _ in range(2):
        for start in range(0, shape.n, ROWS):
            rows = min(ROWS, shape.n - start)
            X = np.fromfile(made.vectors, np.float32, rows * d, offset=offset + 4 * d * start)
    X = X.reshape(-1, d)
    sizes = np.bincount(np.load(made.labels))
    shares = np.maximum(1, np.round(sizes * shape.pairs / shape.n)).astype(int)
    for size, count in zip(sizes.tolist(), shares.tolist(), strict=True):
        for first in range(0, count, SOURCES):
            sources = X[: min(SOURCES, count - first)]
            for start in range(0, size, len(X)):
                np.matmul(sources, X[: min(len(X), size - start)].T)
    for start in range(0, shape.pairs, len(X)):
        x = X[: min(len(X), shape.pairs - start)].astype(np.float64)
        x.T @ x[::-1], x.T @ x
    return {}
