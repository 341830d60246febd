"""Which objects are sources of pairs, and which a mover is chosen on: by their numbers and the seed alone.

All objects are sources where that is affordable. Otherwise a part of them is, drawn so that every object has
the same chance, and so that the sample is the same in whatever blocks the objects come; the targets of a
source are always the nearest of its whole class.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

OPERATIONS = 4e12  # multiplications and additions that learning may cost: about a minute of two cores
FEW = 32  # columns below which a comparison is not cheaper: the nearest must be picked too
READING = 500  # operations that take as long as reading and checking one number
HELD = 1 << 24  # coordinates of sources held at a time; all objects are read twice at most for each group
PAIRS = 500  # pairs per column that "auto" learns from at least: docs/large.md has what fewer cost
NEIGHBORS = 20  # objects of a class, or all, that are drawn at least to choose a mover on
AT_ONCE = 1 << 20  # numbers that are hashed at once


class SampledPairs(UserWarning):
    """A mover learned from a sample of the pairs."""


def warn_sampled(n_pairs: int, all_pairs: int) -> None:
    """Warn, at the line of the user's code, that pairs were sampled."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("hubless."):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"learned from a sample of {n_pairs:,} of {all_pairs:,} pairs, as all would take long; "
        "fit_large(..., max_pairs=None) takes all.",
        SampledPairs,
        stacklevel=level,
    )


def check_max_pairs(max_pairs: Any) -> Any:
    """Return how many pairs are learned from at most: "auto", a number of at least 1, or None for all."""
    if max_pairs is None or (isinstance(max_pairs, str) and max_pairs == "auto"):
        return max_pairs
    if isinstance(max_pairs, bool) or not isinstance(max_pairs, int | np.integer) or max_pairs < 1:
        raise ValueError(
            f'max_pairs must be "auto", a number of at least 1, or None for all pairs; got {max_pairs!r}.'
        )
    return int(max_pairs)


# A source of class c is compared with n_c objects, at 2 max(d, FEW) operations each. HELD / d sources are
# held at a time, and each time all n d numbers are read twice at most: in all
# 2 max(d, FEW) Σ n_c² + 2 n d READING (n d / HELD).
def n_sources(sizes: np.ndarray, n_columns: int, n_targets: int, max_pairs: Any) -> int:
    """Return how many objects are sources: all of them where all pairs are learned from.

    Parameters
    ----------
    sizes : objects of each class
    n_columns, n_targets : int
    max_pairs : as `check_max_pairs` returns it
    """
    n, counts = int(sizes.sum()), sizes.astype(np.float64)
    n_pairs = float((counts * np.minimum(n_targets, counts - 1)).sum())
    if max_pairs is None or not n_pairs:
        return n
    if max_pairs == "auto":
        passes = n * n_columns / HELD
        comparisons, reading = float((counts**2).sum()), passes * READING * n * n_columns
        all_sources = 2 * (max(n_columns, FEW) * comparisons + reading)
        wanted = max(OPERATIONS / all_sources * n, PAIRS * n_columns * n / n_pairs)
    else:
        most = min(n_targets, int(sizes.max()) - 1)  # pairs of a source
        wanted = n if n_pairs <= max_pairs else max_pairs / most
    return min(n, max(1, int(wanted)))


def sampled_sources(n: int, n_sources: int, seed: int) -> np.ndarray | None:
    """Return the numbers of the sources among n objects, ascending; None where all are sources."""
    return None if n_sources == n else sampled_rows(n, n_sources, seed)


def groups_of(sources: np.ndarray | None, n_sources: int, size: int) -> Iterator[np.ndarray]:
    """Yield the numbers of sources, `size` at a time; None stands for 0 … n_sources − 1."""
    for first in range(0, n_sources, size):
        last = min(first + size, n_sources)
        yield np.arange(first, last) if sources is None else sources[first:last]


def sampled_rows(n: int, size: int, seed: int) -> np.ndarray:
    """Return `size` of the numbers 0 … n − 1, ascending: those with the smallest hash."""
    # below the bound: six standard deviations more than needed, as fewer mean another round
    expected = size + 6 * size**0.5 + 10
    while True:
        parts = [_below(first, min(first + AT_ONCE, n), expected / n, seed) for first in range(0, n, AT_ONCE)]
        rows, hashes = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(rows) >= size:
            return np.sort(rows[np.argpartition(hashes, size - 1)[:size]])
        expected *= 2


def _below(first: int, last: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of first … last − 1 whose hash is below a share of the range, and the hashes."""
    rows = np.arange(first, last)
    hashes = hash_rows(rows, seed)
    below = hashes < min(share, 1.0) * 2.0**64
    return rows[below], hashes[below]


def hash_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return a hash of each number, uint64, spread evenly."""
    mixed = rows.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (seed + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # numbers of splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


# --- to choose a mover -------------------------------------------------------------------------------------


class Draw(NamedTuple):
    """How objects are drawn to choose a mover on: of each class enough to be neighbours."""

    shares: np.ndarray  # (classes,), 0 for a class that is left out
    every: int  # every n-th object is drawn besides, for a digest of all
    seed: int

    @staticmethod
    def of(sizes: np.ndarray, most: int, seed: int) -> "Draw":
        """Draw about `most` objects of classes of these sizes; of very many small classes, a part."""
        return Draw(_shares(sizes, most, seed), max(1, int(sizes.sum()) // 1000), seed)

    def draw_rows(self, first: int, X: np.ndarray, labels: np.ndarray, codes: np.ndarray) -> "Drawn":
        """Return what is drawn of the objects first, first + 1, …"""
        rows = first + np.arange(len(X))
        chosen = hash_rows(rows, self.seed) < self.shares[codes] * 2.0**64
        return Drawn(X[chosen], labels[chosen], X[rows % self.every == 0])


# Of every class at least the share s_c = min(1, NEIGHBORS / n_c) is drawn. Where Σ s_c n_c objects are not
# too many, max(t, s_c) is drawn with t such that Σ max(t, s_c) n_c = most. Otherwise t is most / n, and a
# class with s_c > t is drawn with the chance t / s_c: each object has the chance t.
def _shares(sizes: np.ndarray, most: int, seed: int) -> np.ndarray:
    """What share of each class is drawn, (classes,); a large class is never left out."""
    least = np.minimum(1.0, NEIGHBORS / sizes)
    if (least * sizes).sum() > most:
        share = most / sizes.sum()
        chances = np.minimum(1.0, share / least)
        chosen = (chances == 1.0) | (hash_rows(np.arange(len(sizes)), seed + 1) < chances * 2.0**64)
        return np.where(chosen, np.maximum(share, least), 0.0)
    low, high = 0.0, 1.0
    for _ in range(50):  # halves the distance to t
        share = (low + high) / 2
        low, high = (share, high) if (np.maximum(share, least) * sizes).sum() <= most else (low, share)
    return np.maximum(1.0 if sizes.sum() <= most else low, least)


class Drawn(NamedTuple):
    """Objects that were drawn."""

    X: np.ndarray  # (m, d)
    labels: np.ndarray  # (m,)
    every: np.ndarray  # (about 1000, d)

    @staticmethod
    def join(parts: "Sequence[Drawn]") -> "Drawn":
        """Return those of all parts, in order."""
        return Drawn(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
