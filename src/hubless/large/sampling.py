"""Which objects teach: a sample of the sources, when there are more pairs than W needs.

W has d² numbers, and 10 to 30 · d pairs were measured to give the accuracy of all pairs. Targets are never
sampled: that of a sampled source is its nearest of the whole class.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

NEIGHBORS = 20  # objects of a class, or all, that are drawn at least
PAIRS = 50  # pairs per column that are learned from by default


def check_max_pairs(max_pairs: Any, n_columns: int) -> int | None:
    """How many pairs are learned from: "auto", a number of at least 1, or None for all."""
    if max_pairs is None:
        return None
    if isinstance(max_pairs, str) and max_pairs == "auto":
        return PAIRS * n_columns
    if isinstance(max_pairs, bool) or not isinstance(max_pairs, int | np.integer) or max_pairs < 1:
        raise ValueError(
            f'max_pairs must be "auto" ({PAIRS} per column), a number of at least 1, or None for all pairs; '
            f"got {max_pairs!r}."
        )
    return int(max_pairs)


# s_c = 1 + ⌊(S − C) (n_c − 1) / Σ (n_c − 1)⌋ over the C classes of two or more objects
def allot(sizes: np.ndarray, most: int | None) -> np.ndarray:
    """Sources of each class, int64 (classes,): in proportion to its size, `most` in all, none left out.

    A class of one has none, since it has no pair. Where there are more classes than sources, each has one.
    """
    others = np.maximum(sizes - 1, 0)
    if most is None or sizes[others > 0].sum() <= most:
        return np.where(others > 0, sizes, 0).astype(np.int64)
    has_pair = others > 0
    room = max(0, most - int(has_pair.sum()))
    share = np.floor(room * (others / others.sum())).astype(np.int64)
    return np.where(has_pair, np.minimum(1 + share, sizes), 0)


def taken(first: int, count: int, share: Any, seed: int) -> np.ndarray:
    """Which of the rows first, first + 1, … belong to a sample: a share of all, told by their numbers alone.

    So it is the same sample, whoever looks at which rows; bool (count,).
    """
    mixed = np.arange(first, first + count, dtype=np.uint64) + np.uint64(
        0x9E3779B97F4A7C15 * (seed + 1) % 2**64
    )
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # numbers of splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) < share * 2.0**64


class Draw(NamedTuple):
    """Objects to choose a mover on: of each class enough to be neighbours, and of many classes some."""

    shares: np.ndarray  # (classes,), 0 for one that is left out
    every: int  # each so manyth object stands for the content of all
    seed: int

    @staticmethod
    def of(sizes: np.ndarray, most: int, seed: int) -> "Draw":
        """About so many objects of classes of these sizes."""
        shares = np.minimum(1.0, np.maximum(most / sizes.sum(), NEIGHBORS / sizes))
        expected = float((shares * sizes).sum())
        if expected > most:
            shares = np.where(taken(0, len(sizes), most / expected, seed + 1), shares, 0.0)
        return Draw(shares, max(1, int(sizes.sum()) // 1000), seed)

    def of_rows(self, first: int, X: np.ndarray, labels: np.ndarray, codes: np.ndarray) -> "Drawn":
        """What is drawn of the objects first, first + 1, …"""
        chosen = taken(first, len(X), self.shares[codes], self.seed)
        return Drawn(X[chosen], labels[chosen], X[(first + np.arange(len(X))) % self.every == 0])


class Drawn(NamedTuple):
    """Objects that were drawn."""

    X: np.ndarray  # (m, d)
    labels: np.ndarray  # (m,)
    every: np.ndarray  # (about 1000, d)

    @staticmethod
    def joined(parts: "Sequence[Drawn]") -> "Drawn":
        """Those of all parts."""
        return Drawn(*(np.concatenate(own) for own in zip(*parts, strict=True)))


class Sample(NamedTuple):
    """The sources of all classes."""

    sizes: np.ndarray  # (classes,), int64, n_c
    counts: np.ndarray  # (classes,), s_c
    seed: int

    @staticmethod
    def of(sizes: np.ndarray, max_pairs: int | None, n_targets: int, seed: int) -> "Sample":
        """A sample of at most so many pairs, where every class can be covered by them."""
        most = None if max_pairs is None else max(1, max_pairs // n_targets)
        return Sample(sizes, allot(sizes, most), seed)

    def ranks(self, number: int) -> np.ndarray:
        """Sources of a class, rising: an object's rank is how many of its class come before it."""
        size, count = int(self.sizes[number]), int(self.counts[number])
        if count == size:
            return np.arange(size)
        rng = np.random.default_rng([self.seed, number])
        return np.sort(rng.choice(size, count, replace=False, shuffle=False))

    # w = n_c / s_c, so that sums over the sample estimate those over all objects
    def weight(self, number: int) -> float:
        """What a source of a class stands for."""
        return int(self.sizes[number]) / max(1, int(self.counts[number]))

    def is_whole(self) -> bool:
        """Whether every object with a pair teaches."""
        return bool((self.counts[self.sizes > 1] == self.sizes[self.sizes > 1]).all())
