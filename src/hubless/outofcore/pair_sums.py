"""Sums over pairs of objects in blocks: sources are drawn, their targets searched for, moments added up."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..moments import SUMS, Moments
from ..neighbors.blocks import Nearest, nearest_of_blocks
from ..solve import check_pairs
from .block_steps import (
    Centring,
    Rows,
    Work,
    add_moments,
    chosen_rows,
    nearest_of_sources,
    pair_moments,
    target_blocks,
)
from .checkpoints import Checkpoint, digest_of
from .memory import bytes_of_means
from .objects import Objects, changed
from .sampling import groups_of
from .survey import Survey

COPIES = 4  # of the objects of a group that are held at once
NEAREST = 128  # bytes of a target of a source: distances and numbers from several blocks

# from the numbers of sources, an origin and a checkpoint to moments
Compute: TypeAlias = Callable[[np.ndarray, np.ndarray, Checkpoint | None], Moments | None]


@dataclass(frozen=True)
class PairSummation:
    """How the moments of pairs are summed."""

    objects: Objects
    seen: Survey
    work: Work
    n_targets: int
    folder: Path | None  # for checkpoints
    centred: bool = True  # whether pairs are about the mean of all, or 0
    within_classes: bool = False  # whether they are about the means of their classes instead
    class_means: Any = None  # these: a result of `map` or `call`
    # from sources to the blocks that may have objects of their classes; None for all blocks
    blocks_of_classes: Callable[[Rows], list[int]] | None = None

    def moments(self, sources: np.ndarray | None) -> Moments:
        """Return the moments of the pairs of these sources, or of all objects; ValueError for no pair."""
        size = group_size(self.room(), self.work.look.n_columns, self.work.dtype.itemsize, self.k)
        n_sources = self.seen.n if sources is None else len(sources)
        n_groups, total = -(-n_sources // size), None
        for number, numbers in enumerate(groups_of(sources, n_sources, size), 1):
            moments = self.sum_group(numbers, partial(self._compute_group, title=f"{number}/{n_groups}"))
            if moments is not None:
                total = moments if total is None else total + moments
        return self.check(total, n_sources)

    def check(self, total: Moments | None, n_sources: int) -> Moments:
        """Return moments; ValueError for no pair."""
        if total is None and n_sources < self.seen.n:
            raise ValueError(
                f"there is no pair to learn from: all of the {n_sources:,} objects that were sampled are "
                "alone in their class. Give a larger max_pairs (--max-pairs), or None (all)."
            )
        check_pairs(0 if total is None else 1)
        assert total is not None
        return total

    def room(self) -> int:
        """Bytes of sources that may be held: class means, and those of the classes of a group, take some."""
        room, n_classes = self.objects.room, len(self.work.classes)
        held = 0 if not self.within_classes else 2 * bytes_of_means(self.work.look.n_columns, n_classes)
        return max(room // 3, room - held)

    @property
    def k(self) -> int:
        """Targets of a source at most."""
        return min(self.n_targets, max(1, int(self.seen.sizes.max()) - 1))

    @property
    def _about_mean(self) -> bool:
        return self.centred and not self.within_classes

    def sum_group(self, numbers: np.ndarray, compute: Compute) -> Moments | None:
        """Return the moments of the pairs of the sources with these numbers, ascending; None for no pair."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint = self._checkpoint(numbers)
        origin = self.seen.mean if self._about_mean else np.zeros_like(self.seen.mean)
        if checkpoint is None:
            return compute(numbers, origin, None)
        kept = checkpoint.load("moments", SUMS)
        if kept is not None:
            return Moments(origin, float(kept[0]), *kept[1:])
        try:
            result = compute(numbers, origin, checkpoint)
        finally:
            self._check_unchanged(checkpoint)
        if result is not None:
            checkpoint.save("moments", **{name: getattr(result, name) for name in SUMS})
            checkpoint.remove(self.work.filled)
        return result

    def _check_unchanged(self, checkpoint: Checkpoint) -> None:
        """Refuse to keep what was found in other objects than those of the first look; OSError."""
        if self.objects.state() != self.seen.state:
            checkpoint.remove(self.work.filled)
            raise changed(self.objects.name)

    def _compute_group(
        self, numbers: np.ndarray, origin: np.ndarray, checkpoint: Checkpoint | None, title: str
    ) -> Moments | None:
        """Draw the sources, search for their targets, and add up the moments; None for no pair."""
        objects, blocks = self.objects, self.work.blocks_with(numbers)
        sources = objects.map(
            chosen_rows, Rows.join, self.work, numbers, wanted=blocks, title=f"drawing sources {title}"
        )
        near = self._nearest(sources, checkpoint, title)
        blocks = objects.take(objects.call(target_blocks, near, self.work))
        if not blocks:
            return None
        centring = Centring(origin)
        if self.within_classes:
            centring = objects.call(Centring.within, sources, self.class_means)
        shared = (self.work, sources, near, centring)
        moments = objects.map(
            pair_moments, add_moments, *shared, wanted=blocks, title=f"adding up pairs {title}"
        )
        result: Moments = objects.take(moments)
        return result

    def _checkpoint(self, numbers: np.ndarray) -> Checkpoint | None:
        """Return where results of a group are kept: under a digest of all that they depend on."""
        if self.folder is None:
            return None
        contents = [f"{block.digest} {block.length}" for block in self.seen.blocks]
        by_class = self.blocks_of_classes is not None
        where = (contents, self.work.classes, by_class, self.work.starts, numbers)
        how = (self.k, not self.within_classes, self._about_mean)
        return Checkpoint(self.folder, digest_of(*where, *how))

    def _nearest(self, sources: Any, checkpoint: Checkpoint | None, title: str) -> Any:
        """Return the nearest of each source in the blocks, some of which an earlier run may have searched."""
        kept: list[Nearest] = []
        missing = []
        searched = self.work.filled if self.blocks_of_classes is None else self.blocks_of_classes(sources)
        for number in searched:
            loaded = None if checkpoint is None else checkpoint.load(number, ("squared", "rows"))
            if loaded is None:
                missing.append(number)
            else:
                kept = [nearest_of_blocks([*kept, Nearest(*loaded)])]
        if not missing:
            return kept[0]
        shared = (self.work, sources, self.k, checkpoint)
        near = self.objects.map(
            nearest_of_sources,
            nearest_of_blocks,
            *shared,
            wanted=missing,
            title=f"searching for targets {title}",
        )
        return self.objects.call(_merged, near, *kept) if kept else near


def bytes_of_source(n_columns: int, itemsize: int, k: int) -> int:
    """Return how many bytes a source with k targets takes, with all that is held beside it."""
    return COPIES * n_columns * itemsize + NEAREST * max(1, k)


def group_size(room: int, n_columns: int, itemsize: int, k: int) -> int:
    """Return how many sources with k targets each are held at once, in `room` bytes."""
    return max(1, room // bytes_of_source(n_columns, itemsize, k))


def _merged(*parts: Nearest) -> Nearest:
    return nearest_of_blocks(parts)
