"""What labeled objects teach, part by part: sums that add up, whatever the parts are.

A part is some classes, whole. A class that is too large for one part is cut into chunks; its sources look for
their targets chunk by chunk, and what was found is merged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..moments import Moments, moments_of_pairs, moments_of_targets
from ..ranking import differences, without
from ..topk import search
from ..within import nearest_within
from .sampling import Sample

SMALL = 256  # classes up to this size are searched together, all of their objects, though few may teach


class Lesson(NamedTuple):
    """What is to be learned."""

    origin: np.ndarray  # (d,), float64: the mean of all objects, about which sums are taken
    n_targets: int  # 0 where no pairs are needed
    means: bool = False  # sums of the classes are wanted too
    within: bool = False  # pairs are taken about the means of their classes, which are then wanted


@dataclass(frozen=True)
class Sums:
    """What some labeled objects taught."""

    moments: Moments
    n_pairs: int
    codes: np.ndarray  # (c,), int64: classes whose sums these are; none unless they were asked for
    class_sums: np.ndarray  # (c, d), float64, Σ x of each

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.moments + other.moments,
            self.n_pairs + other.n_pairs,
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.class_sums, other.class_sums]),
        )

    def class_means(self, sizes: np.ndarray) -> np.ndarray:
        """Mean of each class, (classes, d), from sums of all of them."""
        sums = np.zeros((len(sizes), self.class_sums.shape[1]))
        np.add.at(sums, self.codes, self.class_sums)
        return np.asarray(sums / sizes[:, None])

    @staticmethod
    def none(lesson: Lesson) -> "Sums":
        """Those of no objects."""
        d = len(lesson.origin)
        zero = np.zeros(d)
        moments = Moments(origin_of(lesson), 0.0, zero, zero, np.zeros((d, d)), np.zeros((d, d)))
        return Sums(moments, 0, np.zeros(0, np.int64), np.zeros((0, d)))


def origin_of(lesson: Lesson) -> np.ndarray:
    """The point that moments are about: the mean, or 0 where objects are taken about their classes."""
    return np.zeros_like(lesson.origin) if lesson.within else lesson.origin


class Taught(NamedTuple):
    """Which of some rows teach, and how much."""

    rows: np.ndarray  # (s,), int64, rising
    weights: np.ndarray | None  # (s,), float64; None for ones


def taught_in(sample: Sample, codes: np.ndarray, sizes: np.ndarray) -> Taught:
    """Which rows of some whole classes teach, and how much."""
    starts = np.cumsum(sizes) - sizes
    own = [sample.ranks(code) for code in codes.tolist()]
    rows = np.concatenate([start + ranks for start, ranks in zip(starts, own, strict=True)])
    if sample.is_whole():
        return Taught(rows, None)
    weights = [sample.weight(code) for code in codes.tolist()]
    return Taught(rows, np.repeat(weights, [len(ranks) for ranks in own]))


# --- classes that are here as a whole --------------------------------------------------------------------


def learn_classes(
    X: np.ndarray, codes: np.ndarray, sizes: np.ndarray, taught: Taught, lesson: Lesson
) -> Sums:
    """Sums of whole classes.

    Parameters
    ----------
    X : array of shape (n, d): the objects, class by class
    codes, sizes : arrays of shape (c,): the class numbers, and how many rows each has, in their order
    taught : the sources among the rows
    """
    none = Sums.none(lesson)
    targets = _targets(X, sizes, taught, lesson.n_targets)
    n_pairs = int((targets >= 0).sum())
    classes, class_sums = none.codes, none.class_sums
    if lesson.means:
        classes, class_sums = codes, run_sums(X, sizes)
    if lesson.within:
        X = X - np.repeat((class_sums / sizes[:, None]).astype(X.dtype), sizes, axis=0)
    weights = None
    if taught.weights is not None:
        weights = np.zeros(len(X))
        weights[taught.rows] = taught.weights
    moments = moments_of_targets(X, targets, weights, origin_of(lesson)) if n_pairs else none.moments
    return Sums(moments, n_pairs, classes, class_sums)


def run_sums(X: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sums of runs of rows, in float64; (c, d)."""
    sums = np.empty((len(sizes), X.shape[1]))
    ends = np.cumsum(sizes)
    for i, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
        sums[i] = X[start:end].sum(axis=0, dtype=np.float64)
    return sums


def _targets(X: np.ndarray, sizes: np.ndarray, taught: Taught, k: int) -> np.ndarray:
    """Targets of the rows that teach, -1 elsewhere; (n, k)."""
    targets = np.full((len(X), k), -1, dtype=np.int64)
    if k == 0 or not len(taught.rows):
        return targets
    ends = np.cumsum(sizes)
    starts = ends - sizes
    owner = np.searchsorted(ends, taught.rows, side="right")
    n_taught = np.bincount(owner, minlength=len(sizes))
    together = (n_taught > 0) & ((n_taught == sizes) | (sizes <= SMALL)) & (sizes > 1)
    if together.any():
        rows = np.flatnonzero(np.repeat(together, sizes))
        found = nearest_within(X, rows, sizes[together], k)
        teaches = np.zeros(len(X), dtype=bool)
        teaches[taught.rows] = True
        targets[rows[teaches[rows]]] = found[teaches[rows]]
    for c in np.flatnonzero((n_taught > 0) & ~together & (sizes > 1)):
        own = taught.rows[owner == c]
        part = slice(starts[c], ends[c])
        most = min(k, int(sizes[c]) - 1)
        found = search(X[own], X[part], most + 1, return_distance=False) + starts[c]
        targets[own, :most] = without(np, found, found, own)
    return targets


# --- a class in chunks -----------------------------------------------------------------------------------


class Near(NamedTuple):
    """The nearest objects found so far of each of s sources, nearest first."""

    squared: np.ndarray  # (s, k), float64, inf where there is none
    rank: np.ndarray  # (s, k), int64, -1 where there is none
    z: np.ndarray  # (s, k, d)

    def joined(self, other: "Near") -> "Near":
        """The nearest of both; of equal ones the first in the class."""
        return Near(*nearest_of_all([self, other]))


def nearest_of_all(found: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The k nearest of what was found in several places, with all that is told of them.

    Parameters
    ----------
    found : of each place, arrays of shape (m, k) or (m, k, …): squared distances, numbers that decide between
        equal ones, and others
    """
    told = [np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)]
    order = np.lexsort((told[1], told[0]), axis=1)[:, : found[0][0].shape[1]]
    return [np.take_along_axis(own, order[(..., *(None,) * (own.ndim - 2))], axis=1) for own in told]


def nearest_in_chunk(x: np.ndarray, ranks: np.ndarray, chunk: np.ndarray, first: int, k: int) -> Near:
    """The k nearest objects of a chunk of each source, itself left out.

    Parameters
    ----------
    x : array of shape (s, d), the sources; ranks : (s,), their ranks in the class
    chunk : array of shape (m, d): objects of the class with the ranks first, first + 1, …
    """
    wanted = min(k + 1, len(chunk))
    found = search(x, chunk, wanted, return_distance=False)
    rows = np.repeat(np.arange(len(x)), wanted)
    squared = differences(x, chunk, rows, found.reshape(-1)).reshape(found.shape)
    rank = found + first
    squared = np.where(rank == ranks[:, None], np.inf, squared)
    z = chunk[found]
    if wanted <= k:
        spare = k + 1 - wanted
        squared = np.pad(squared, ((0, 0), (0, spare)), constant_values=np.inf)
        rank = np.pad(rank, ((0, 0), (0, spare)), constant_values=-1)
        z = np.pad(z, ((0, 0), (0, spare), (0, 0)))
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    squared = np.take_along_axis(squared, order, axis=1)
    rank = np.where(np.isinf(squared), -1, np.take_along_axis(rank, order, axis=1))
    return Near(squared, rank, np.take_along_axis(z, order[:, :, None], axis=1))


def learn_found(
    x: np.ndarray, near: Near, weights: np.ndarray | None, lesson: Lesson, mean: np.ndarray | None = None
) -> Sums:
    """Sums of the pairs of some sources of a class in chunks; `mean` of the class, where it is asked for."""
    none = Sums.none(lesson)
    source, place = np.nonzero(near.rank >= 0)
    X, Z = x[source], near.z[source, place]
    if lesson.within:
        X, Z = X - mean.astype(X.dtype), Z - mean.astype(X.dtype)  # type: ignore[union-attr]
    w = None if weights is None else weights[source]
    moments = moments_of_pairs(X, Z, w, origin_of(lesson)) if len(X) else none.moments
    return Sums(moments, len(X), none.codes, none.class_sums)
