"""A first look at labeled objects: their classes, their mean, the content of each block, what is wrong."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .block import Block, Look, clean
from .kept import KeptRows
from .labels import NONE, BadPart
from .objects import Objects

CACHED = 1 << 16  # numbers whose sums are taken at once


class SkippedPart(NamedTuple):
    """A part that was skipped."""

    part: str
    why: str


class BlockSummary(NamedTuple):
    """What was seen of one block."""

    part: str
    length: int = 0  # objects that are learned from; 0 for a skipped one
    n_missing: int = 0  # rows without a vector or a label
    digest: str = ""  # of the objects and their labels
    kind: int = NONE  # of its labels: TEXT, NUMBER, or NONE for none


@dataclass
class Survey:
    """What was seen of consecutive blocks, or of all."""

    counts: dict[Any, int] = field(default_factory=dict)  # objects of each class
    total: Any = 0.0  # (d,), float64, Σ x
    dtype: Any = np.float32  # of the finest objects
    blocks: list[BlockSummary] = field(default_factory=list)
    skipped: list[SkippedPart] = field(default_factory=list)
    state: str = ""  # of the objects when the look began
    kept: KeptRows | None = None  # rows that need not be read again

    @property
    def starts(self) -> np.ndarray:
        """The number of objects before each block, and of all; int64 (blocks + 1,)."""
        return np.cumsum([0, *(block.length for block in self.blocks)], dtype=np.int64)

    @property
    def n(self) -> int:
        """Objects in all."""
        return sum(block.length for block in self.blocks)

    @property
    def n_missing(self) -> int:
        """Rows without a vector or a label, which are not learned from."""
        return sum(block.n_missing for block in self.blocks)

    @property
    def filled(self) -> list[int]:
        """The numbers of the blocks that have objects."""
        return [number for number, block in enumerate(self.blocks) if block.length]

    @property
    def classes(self) -> np.ndarray:
        """The classes, sorted; (c,)."""
        return np.array(sorted(self.counts))

    @property
    def sizes(self) -> np.ndarray:
        """Objects of each class, in the order of `classes`; int64 (c,)."""
        return np.array([self.counts[label] for label in sorted(self.counts)], dtype=np.int64)

    @property
    def mean(self) -> np.ndarray:
        """The mean of all objects, (d,)."""
        return np.asarray(self.total / max(1, self.n))

    def n_pairs(self, n_targets: int) -> int:
        """Return how many pairs all objects have with their targets."""
        return int((self.sizes * np.minimum(n_targets, self.sizes - 1)).sum())

    def check(self) -> None:
        """Refuse what nothing can be learned from."""
        if not self.n:
            parts = f" {len(self.skipped)} parts were skipped, the first because: " if self.skipped else ""
            why = self.skipped[0].why if self.skipped else ""
            raise ValueError(f"there is no object with a label to learn from.{parts}{why}")


def survey(objects: Objects, kept: KeptRows | None = None) -> Survey:
    """Look at all blocks; BadPart where one is bad, unless bad parts are skipped.

    `kept` keeps rows of what this process reads, block after block.
    """
    state, look = objects.state(), look_at if kept is None else partial(look_and_keep, kept)
    seen: Survey = (
        objects.take(objects.map(look, join_surveys, objects.look, title="looking through the objects"))
        or Survey()
    )
    seen.state, seen.kept = state, kept
    skipped = {part.part: part for part in reversed([*seen.skipped, *mixed_kinds(seen)])}
    seen.skipped = [*skipped.values()][::-1]
    if skipped and not objects.look.skip_bad:
        raise BadPart(f"{seen.skipped[0].why} To skip bad parts: fit_large(..., skip_bad=True), --skip-bad.")
    if any(block.length and block.part in skipped for block in seen.blocks):
        _skip_whole_parts(objects, seen, {*skipped})
    seen.check()
    return seen


def _skip_whole_parts(objects: Objects, seen: Survey, skipped: set[str]) -> None:
    """Look again at the good parts, as good blocks of the skipped ones were counted."""
    seen.blocks = [BlockSummary(block.part) if block.part in skipped else block for block in seen.blocks]
    again, look = Survey(), look_at
    if seen.kept is not None:
        seen.kept.clear()
        look = partial(look_and_keep, seen.kept)
    if seen.filled:
        result = objects.map(
            look, join_surveys, objects.look, wanted=seen.filled, title="looking through the objects"
        )
        again = objects.take(result)
    seen.counts, seen.total, seen.dtype = again.counts, again.total, again.dtype


def look_and_keep(kept: KeptRows, block: Block, number: int, look: Look) -> Survey:
    """Look at one block, the next one, and keep some of its rows."""
    return look_at(block, number, look, kept)


def look_at(block: Block, number: int, look: Look, kept: KeptRows | None = None) -> Survey:
    """Look at one block; what is wrong with it is noted as skipped."""
    try:
        X, labels = clean(block, look)
    except ValueError as error:
        why = str(error) if block.part in str(error) else f"{block.part}: {error}"
        return Survey(blocks=[BlockSummary(block.part)], skipped=[SkippedPart(block.part, why)])
    n_missing = len(block.X) - len(X)
    if not len(X):
        return Survey(blocks=[BlockSummary(block.part, 0, n_missing)])
    digest = hashlib.sha256(f"{X.dtype.str} {X.shape} {labels.values.dtype.str}".encode())
    for array in (X, labels.values, labels.places):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    seen = BlockSummary(block.part, len(X), n_missing, digest.hexdigest(), labels.kind)
    if kept is not None:
        kept.add(X, labels)
    return Survey(labels.counts(), column_sums(X), X.dtype, [seen])


def column_sums(X: np.ndarray) -> np.ndarray:
    """Return Σ x in float64, (d,): by products of rows that stay in the cache, 3 times as fast as a sum."""
    size = max(1, CACHED // X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        ones = np.ones(min(size, len(X)))
        parts = (X[first : first + size].astype(np.float64) for first in range(0, len(X), size))
        return np.asarray(sum(ones[: len(part)] @ part for part in parts))


def join_surveys(surveys: Sequence[Survey]) -> Survey:
    """Return what was seen of consecutive blocks."""
    whole = Survey()
    for seen in surveys:
        for label, count in seen.counts.items():
            whole.counts[label] = whole.counts.get(label, 0) + count
        whole.total = whole.total + seen.total
        whole.dtype = np.result_type(whole.dtype, seen.dtype)
        whole.blocks += seen.blocks
        whole.skipped += seen.skipped
    return whole


def mixed_kinds(seen: Survey) -> list[SkippedPart]:
    """Return the parts whose labels are texts where those of the first part are numbers, or the reverse."""
    first = next((block.kind for block in seen.blocks if block.kind != NONE), NONE)
    odd = dict.fromkeys(block.part for block in seen.blocks if block.kind not in (NONE, first))
    message = "Unknown label type: {} has texts where earlier labels are numbers, or the reverse."
    return [SkippedPart(part, message.format(part)) for part in odd]
