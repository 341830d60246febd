"""What learning does with one block, and how results of blocks are joined.

Every function has the arguments (block, number of the block, Work, …), as `Objects.map` gives them, and its
result depends on these alone: it does not matter which process computes it, or how often.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from ..arrays.inputs import check_squares
from ..moments import Moments, moments_of_pairs
from ..neighbors.blocks import Nearest
from ..neighbors.differences import squared_distances
from ..neighbors.frame import ignore_overflow
from ..neighbors.within import nearest_of_class
from .block import Block, Look, clean
from .checkpoints import Checkpoint
from .objects import changed
from .sampling import Draw, Drawn
from .survey import Survey

NUMBERS = 1 << 22  # numbers of pairs whose moments are summed at once


class Work(NamedTuple):
    """What every step needs to know of all objects."""

    name: str
    look: Look
    classes: np.ndarray  # (c,), sorted
    starts: np.ndarray  # (blocks + 1,), the number of objects before each block
    dtype: np.dtype

    @staticmethod
    def of(name: str, look: Look, seen: Survey) -> "Work":
        """Return what was seen of all blocks."""
        return Work(name, look, seen.classes, seen.starts, np.dtype(seen.dtype))

    @property
    def filled(self) -> list[int]:
        """The blocks that have objects."""
        return np.flatnonzero(np.diff(self.starts)).tolist()

    def blocks_with(self, numbers: np.ndarray) -> list[int]:
        """Return the blocks that have some of these objects, given by their numbers."""
        places = np.searchsorted(self.starts, numbers, side="right") - 1
        return np.unique(places).tolist()


class Rows(NamedTuple):
    """Objects with their numbers among all objects."""

    numbers: np.ndarray  # (n,), int64, ascending
    X: np.ndarray  # (n, d)
    codes: np.ndarray  # (n,), their classes

    @staticmethod
    def join(parts: "Sequence[Rows]") -> "Rows":
        """Return those of all parts, in order."""
        return Rows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def all_rows(block: Block | Rows, number: int, work: Work) -> Rows:
    """Return all objects of a block; OSError where there are other ones than at the first look."""
    if isinstance(block, Rows):  # from a copy
        return block
    X, labels = clean(block, work.look)
    numbers = np.arange(work.starts[number], work.starts[number + 1])
    if len(X) != len(numbers):
        raise changed(work.name)
    return Rows(numbers, X.astype(work.dtype, copy=False), labels.codes(work.classes))


def chosen_rows(block: Block | Rows, number: int, work: Work, numbers: np.ndarray) -> Rows:
    """Return the objects of a block whose numbers are among these, which ascend."""
    rows, first = all_rows(block, number, work), work.starts[number]
    start, stop = np.searchsorted(numbers, work.starts[number : number + 2])
    here = numbers[start:stop] - first
    return Rows(rows.numbers[here], rows.X[here], rows.codes[here])


def drawn_rows(block: Block | Rows, number: int, work: Work, draw: Draw) -> Drawn:
    """Return what is drawn of the objects of a block."""
    rows = all_rows(block, number, work)
    drawn = draw.draw_rows(int(work.starts[number]), rows.X, rows.codes, rows.codes)
    return drawn._replace(labels=work.classes[drawn.labels])


# --- targets -----------------------------------------------------------------------------------------------


def nearest_of_sources(
    block: Block | Rows, number: int, work: Work, sources: Rows, k: int, checkpoint: Checkpoint | None
) -> Nearest:
    """Find the k nearest objects of a block of the class of each source, other than the source itself."""
    rows = all_rows(block, number, work)
    width = min(k + 1, len(rows.X))  # one more, as the source may be among them
    with ignore_overflow():
        index = nearest_of_class(sources.X, sources.codes, rows.X, rows.codes, width)
        source, place = np.nonzero(index >= 0)
        squared = np.full((len(index), max(k, width)), np.inf)
        squared[source, place] = squared_distances(sources.X, rows.X, source, index[source, place])
    check_squares(float(squared[source, place].sum()))
    numbers = np.full(squared.shape, -1)
    numbers[source, place] = rows.numbers[index[source, place]]
    is_source = numbers == sources.numbers[:, None]
    squared[is_source], numbers[is_source] = np.inf, -1
    order = np.lexsort((numbers, squared), axis=1)[:, :k]
    near = Nearest(*(np.take_along_axis(array, order, axis=1) for array in (squared, numbers)))
    if checkpoint is not None:
        checkpoint.save(number, squared=near.squared, rows=near.rows)
    return near


def target_blocks(near: Nearest, work: Work) -> list[int]:
    """Return the blocks that have targets."""
    return work.blocks_with(near.rows[near.rows >= 0])


# --- sums --------------------------------------------------------------------------------------------------


class ClassSums(NamedTuple):
    """Σ x of classes."""

    codes: np.ndarray  # (c,), ascending
    sums: np.ndarray  # (c, d), float64

    @staticmethod
    def join(parts: "Sequence[ClassSums]") -> "ClassSums":
        """Return the sums of all parts."""
        codes = np.unique(np.concatenate([part.codes for part in parts]))
        sums = np.zeros((len(codes), parts[0].sums.shape[1]))
        for part in parts:
            places, size = np.searchsorted(codes, part.codes), max(1, NUMBERS // sums.shape[1])
            for first in range(0, len(places), size):  # or the sum of a part would take as much once more
                sums[places[first : first + size]] += part.sums[first : first + size]
        return ClassSums(codes, sums)

    @property
    def is_large(self) -> bool:
        """Whether a process should hold only two at a time: those of many classes are as large as a block."""
        return True

    def means(self, sizes: np.ndarray) -> np.ndarray:
        """Return the means of all classes, of these sizes; (c, d)."""
        return np.asarray(self.sums / sizes[:, None])


def class_sums(block: Block | Rows, number: int, work: Work) -> ClassSums:
    """Return the sums of the classes in a block."""
    rows = all_rows(block, number, work)
    order = np.argsort(rows.codes, kind="stable")
    size = max(1, NUMBERS // rows.X.shape[1])
    parts = []
    for first in range(0, len(order), size):
        part = order[first : first + size]
        codes, starts = np.unique(rows.codes[part], return_index=True)
        parts.append(ClassSums(codes, np.add.reduceat(rows.X[part].astype(np.float64), starts, axis=0)))
    return ClassSums.join(parts)


class Centring(NamedTuple):
    """What is subtracted from the objects of a pair."""

    origin: np.ndarray  # (d,), float64
    codes: np.ndarray | None = None  # (s,), ascending: classes of the sources
    means: np.ndarray | None = None  # (s, d), their means, in the precision of the objects; None for no means

    @staticmethod
    def within(sources: Rows, means: np.ndarray) -> "Centring":
        """Return the centring that subtracts the mean of the class."""
        codes = np.unique(sources.codes)
        return Centring(np.zeros(means.shape[1]), codes, means[codes].astype(sources.X.dtype))

    def class_offset(self, codes: np.ndarray) -> np.ndarray | float:
        """Return what is subtracted from objects of these classes, besides the origin."""
        if self.codes is None or self.means is None:
            return 0.0
        return np.asarray(self.means[np.searchsorted(self.codes, codes)])


def pair_moments(
    block: Block | Rows, number: int, work: Work, sources: Rows, near: Nearest, centring: Centring
) -> Moments:
    """Return the moments of the pairs whose target is in a block, of which there is at least one."""
    rows, (first, last) = all_rows(block, number, work), work.starts[number : number + 2]
    source, place = np.nonzero((near.rows >= first) & (near.rows < last))
    target = near.rows[source, place] - first
    size, parts = max(1, NUMBERS // rows.X.shape[1]), []
    for start in range(0, len(source), size):
        part = slice(start, start + size)
        centre = centring.class_offset(sources.codes[source[part]])
        x, z = sources.X[source[part]] - centre, rows.X[target[part]] - centre
        parts.append(moments_of_pairs(x, z, None, centring.origin))
    return add_moments(parts)


def add_moments(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all parts, which have one origin."""
    return reduce(add, parts)
