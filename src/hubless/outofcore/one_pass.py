"""Sums over pairs from one read of the objects, where their sources were kept from the read before.

While the objects pass, every source holds the vectors of the nearest so far, so that nothing need be read
again to sum up; and sums of classes are taken from the same blocks.
"""

from typing import Any

import numpy as np

from ..moments import Moments, moments_of_pairs
from ..neighbors.blocks import Nearest
from .block_steps import (
    NUMBERS,
    Centring,
    ClassSums,
    Rows,
    Work,
    add_moments,
    all_rows,
    class_sums,
    nearest_of_sources,
)
from .checkpoints import Checkpoint
from .pair_sums import COPIES, PairSummation, group_size
from .sampling import sampled_sources


class HeldTargets:
    """The k nearest of each of m sources among the objects so far, with their vectors."""

    def __init__(self, m: int, k: int, d: int, dtype: Any) -> None:
        self.near = Nearest(np.full((m, k), np.inf), np.full((m, k), -1))
        self.vectors = np.empty((m, k, d), dtype)
        self.slots = np.tile(np.arange(k), (m, 1))  # where the vector of each is; (m, k)

    def add(self, near: Nearest, rows: Rows) -> None:
        """Add the nearest of a block, in the order of `nearest_of_blocks`."""
        k = self.slots.shape[1]
        is_nearer = near.squared[:, 0] <= self.near.squared[:, -1]
        changed = np.flatnonzero(is_nearer & (near.rows[:, 0] >= 0))
        old, new = ([part[changed] for part in parts[:2]] for parts in (self.near, near))
        squared, numbers = (np.concatenate(pair, axis=1) for pair in zip(old, new, strict=True))  # (·, 2 k)
        order = np.lexsort((numbers, squared), axis=1)[:, :k]
        for whole, joined in zip(self.near[:2], (squared, numbers), strict=True):
            whole[changed] = np.take_along_axis(joined, order, axis=1)
        # a new target takes the place of one that is dropped: of each source there are as many of both
        slots, is_new = self.slots[changed], order >= k
        is_dropped = np.ones_like(is_new)
        row, place = np.nonzero(~is_new)
        is_dropped[row, order[row, place]] = False
        ordered = np.take_along_axis(slots, np.minimum(order, k - 1), axis=1)
        ordered[is_new] = slots[is_dropped]  # both source by source
        self.slots[changed] = ordered
        row, place = np.nonzero(is_new & (self.near.rows[changed] >= 0))
        size = max(1, NUMBERS // rows.X.shape[1])
        for start in range(0, len(row), size):
            at, rank = changed[row[start : start + size]], place[start : start + size]
            wanted = self.near.rows[at, rank] - rows.numbers[0]
            self.vectors[at, self.slots[at, rank]] = rows.X[wanted]

    def moments(self, sources: Rows, centring: Centring) -> Moments | None:
        """Return the moments of all pairs; None where there is none."""
        source, rank = np.nonzero(self.near.rows >= 0)
        size, parts = max(1, NUMBERS // sources.X.shape[1]), []
        for start in range(0, len(source), size):
            at, place = source[start : start + size], rank[start : start + size]
            centre = centring.class_offset(sources.codes[at])
            z = self.vectors[at, self.slots[at, place]]
            parts.append(moments_of_pairs(sources.X[at] - centre, z - centre, None, centring.origin))
        return add_moments(parts) if parts else None


def kept_sources(pairs: PairSummation, n_sources: int, seed: int) -> Rows | None:
    """Return the sources, if all were kept and they are held at once with the vectors of their targets."""
    kept, d = pairs.seen.kept, pairs.work.look.n_columns
    held = d + -(-pairs.k * d // COPIES)  # as if they had as many columns more
    if kept is None or n_sources > group_size(pairs.room(), held, pairs.work.dtype.itemsize, pairs.k):
        return None
    drawn = sampled_sources(pairs.seen.n, n_sources, seed)
    numbers = np.arange(n_sources) if drawn is None else drawn
    found = kept.rows(numbers, pairs.work.classes)
    return None if found is None else Rows(numbers, found[0].astype(pairs.work.dtype, copy=False), found[1])


class OnePass:
    """The moments of the pairs of some sources, and sums of classes where they are wanted."""

    def __init__(self, pairs: PairSummation, sources: Rows, *, class_means: bool) -> None:
        self.pairs, self.sources, self.wants_means = pairs, sources, class_means
        self.sums: ClassSums | None = None

    def moments(self) -> Moments:
        """Return the moments; ValueError for no pair."""
        total = self.pairs.sum_group(self.sources.numbers, self._compute)
        return self.pairs.check(total, len(self.sources.numbers))

    def class_means(self) -> np.ndarray | None:
        """Return the means of all classes; an earlier run may have kept the moments and not these."""
        seen, objects = self.pairs.seen, self.pairs.objects
        if self.wants_means and self.sums is None:
            self.sums = objects.map(
                class_sums, ClassSums.join, self.pairs.work, wanted=seen.filled, title="adding up classes"
            )
        return None if self.sums is None else self.sums.means(seen.sizes)

    def _compute(self, numbers: np.ndarray, origin: np.ndarray, checkpoint: Checkpoint | None) -> Any:
        pairs, sources = self.pairs, self.sources
        held = HeldTargets(len(numbers), pairs.k, sources.X.shape[1], sources.X.dtype)
        shared = (pairs.work, held, checkpoint)
        pairs.objects.map(
            self._search, list, *shared, wanted=pairs.seen.filled, title="searching for targets"
        )
        centring = Centring(origin)
        if pairs.within_classes:
            means = self.class_means()
            assert means is not None
            centring = Centring.within(sources, means)
        return held.moments(sources, centring)

    def _search(
        self, block: Any, number: int, work: Work, held: HeldTargets, checkpoint: Checkpoint | None
    ) -> None:
        """Search a block, unless an earlier run did, and hold what is nearer than anything before."""
        rows = all_rows(block, number, work)
        kept = None if checkpoint is None else checkpoint.load(number, ("squared", "rows"))
        if kept is None:
            shared = (work, self.sources, self.pairs.k, checkpoint)
            near = nearest_of_sources(rows, number, *shared)
        else:
            near = Nearest(*kept)
        held.add(near, rows)
        if self.wants_means:
            part = class_sums(rows, number, work)
            self.sums = part if self.sums is None else ClassSums.join([self.sums, part])
