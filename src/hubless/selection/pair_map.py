"""What is learned from pairs of queries and items: a map for all items, and steps of those that have queries.

An item that steps toward its own queries comes closer to everybody's, and would answer queries that are not
its own. So it is held: after the step, its score for the rest of the log is what it was before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays.library import blocks
from ..corrections.directions import ridge_direction
from ..movers.points import weighted_mean
from ..movers.ridge import move
from ..neighbors.knn import unit
from ..retrieval import Relevant
from ..solve import Penalty, problem_of_pairs
from .grid import PAIR_ALPHAS

STEPS = (0.0, 0.25, 0.5, 0.75)
SHRINK = 0.5  # κ: an item with one query goes 1 / 1.5 of its step, with ten 10 / 10.5
NEAREST = 0.03  # share of the log, the queries nearest to an item, for which it must not gain on average
FEWEST = 10  # queries of which that share consists at least, where there are as many
ROUNDS = 2  # of holding items of length 1: bringing them back to length 1 undoes a part
BLOCK = 1 << 24  # scores of items for queries that are computed at once


class JudgedQueries(NamedTuple):
    """Queries with the row numbers of the items that answer them."""

    queries: np.ndarray  # (n, d)
    relevant: Relevant  # of each query, never empty

    def take(self, rows: np.ndarray) -> "JudgedQueries":
        """Return the queries of these rows."""
        return JudgedQueries(self.queries[rows], [self.relevant[i] for i in rows])


@dataclass(frozen=True)
class PairSetting:
    """λ relative to the mean eigenvalue, None for no map; and the step of items toward their queries."""

    alpha: float | None
    step: float

    def __str__(self) -> str:
        if self == STAY:
            return "not moving"
        parts = [] if self.alpha is None else [str(Penalty(self.alpha, relative=True))]
        return ", ".join([*parts, *([f"step {self.step:g}"] if self.step else [])])

    def in_words(self) -> str:
        """Return how items move, in whole words."""
        if self == STAY:
            return "not moving"
        parts = [] if self.alpha is None else [f"W toward the identity, {Penalty(self.alpha, relative=True)}"]
        parts += [f"a held step of {self.step:g} toward own queries"] if self.step else []
        return ", and ".join(parts)


STAY = PairSetting(None, 0.0)


# z'' = (1 − s) z' + s q̄
def step_toward(moved: np.ndarray, goals: np.ndarray, step: float) -> np.ndarray:
    """Return items part of the way to a goal, in their precision."""
    return ((1 - step) * moved + step * goals).astype(moved.dtype, copy=False)


# u = (Σ q qᵀ + λI)⁻¹ Σ q, which minimises Σ (uᵀq − 1)² + λ‖u‖²; λ is the mean eigenvalue of Σ q qᵀ
def even_direction(log: np.ndarray) -> np.ndarray:
    """Return a direction u in which all queries of a log are about equally far: z − b u loses about b.

    Where there is no such direction (queries around the origin), uᵀq is small, and so is what is lost.
    """
    return np.asarray(ridge_direction(log, 1.0))


class PairMap:
    """What is learned from pairs of queries and items, for any setting."""

    def __init__(self, judged: JudgedQueries, vectors: np.ndarray, is_unit: bool) -> None:
        """`vectors` are those of all items, (n, d); with `is_unit` they have length 1, and keep it."""
        queries_of: dict[int, list[int]] = {}  # by item
        for query, relevant in enumerate(judged.relevant):
            for item in relevant:
                queries_of.setdefault(item, []).append(query)
        self.is_unit, self.log = is_unit, judged.queries
        self.own = [*queries_of.values()]  # the queries of each item in `rows`
        self.rows = np.array([*queries_of], dtype=np.int64)  # items that have queries
        self.means = np.stack([judged.queries[queries].mean(axis=0) for queries in self.own])
        self.x = judged.queries[[query for queries in self.own for query in queries]]
        self.z = vectors[np.repeat(self.rows, [len(queries) for queries in self.own])]
        self.problem = problem_of_pairs(self.x, self.z, None, weighted_mean(self.z))
        self.direction = even_direction(judged.queries)

    def moved(self, alpha: float | None, vectors: np.ndarray) -> np.ndarray:
        """Return all items moved by the map of one λ."""
        if alpha is None:
            return vectors
        W, mean, _ = self.problem.best_map(Penalty(alpha, relative=True), self.z.dtype, "identity")
        moved = move(vectors, W, mean)
        return unit(moved) if self.is_unit else moved

    def stepped(self, step: float, moved: np.ndarray) -> np.ndarray:
        """Return moved items, those that have queries a step further."""
        if not step:
            return moved
        moved = moved.copy()
        moved[self.rows] = self.held(moved[self.rows], self.free(step, moved[self.rows]))
        return moved

    # z + s n / (n + κ) (q̄ − z − g), where g is the mean of q̄ − z over the items that have queries
    def free(self, step: float, before: np.ndarray) -> np.ndarray:
        """Return items a step toward the mean of their queries, not held; an item with few goes less far.

        The mean difference g of queries and items is left out: with it, all these items would come closer to
        every query, and displace other answers.
        """
        apart = self.means - before
        n = np.array([[len(queries)] for queries in self.own])
        further = before + step * n / (n + SHRINK) * (apart - apart.mean(axis=0))
        further = further.astype(before.dtype, copy=False)
        return unit(further) if self.is_unit else further

    def held(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return items after their step, lowered by what they gained for the nearest other queries."""
        after = after.copy()
        for rows in blocks(len(after), max(1, BLOCK // len(self.log))):
            for _ in range(ROUNDS if self.is_unit else 1):
                gain, product = self._gain(rows, before[rows], after[rows])
                after[rows] = self._lowered(after[rows], np.maximum(gain, 0.0), product)
        return after

    # s(q, z) = qᵀz − ‖z‖² / 2 orders items for a query as their distances do
    def _gain(self, rows: slice, before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of s(q, after) − s(q, before) and of uᵀq over the nearest queries of others."""
        k = min(max(FEWEST, round(NEAREST * len(self.log))), len(self.log))
        near = after @ self.log.T - (self.log**2).sum(axis=1) / 2
        for row, queries in enumerate(self.own[rows]):
            near[row, queries] = -np.inf
        nearest = np.argpartition(-near, k - 1, axis=1)[:, :k]
        is_other = np.isfinite(np.take_along_axis(near, nearest, axis=1))
        share = is_other / np.maximum(is_other.sum(axis=1, keepdims=True), 1)
        closer = np.take_along_axis((after - before) @ self.log.T, nearest, axis=1)
        norms = ((after**2).sum(axis=1) - (before**2).sum(axis=1)) / 2
        gain = (closer * share).sum(axis=1) - norms
        products = (self.log @ self.direction)[nearest]
        return np.where(is_other.any(axis=1), gain, 0.0), (products * share).sum(axis=1)

    # z − b u; not of length 1, with b (c − uᵀz) + b² ‖u‖² / 2 = gain, c the mean of uᵀq
    def _lowered(self, after: np.ndarray, gain: np.ndarray, product: np.ndarray) -> np.ndarray:
        """Return items whose score is lower by `gain` for queries with this product with the direction."""
        bias = gain
        if not self.is_unit:
            ahead, square = product - after @ self.direction, float(self.direction @ self.direction)
            bias = (np.sqrt(ahead**2 + 2 * square * gain) - ahead) / max(square, np.finfo(float).tiny)
        lowered = (after - bias[:, None] * self.direction).astype(after.dtype, copy=False)
        return unit(lowered) if self.is_unit else lowered

    def goals(self, step: float, moved: np.ndarray) -> np.ndarray:
        """Return the points that items with queries step toward: what `stepped` gives, by `step_toward`."""
        before, after = moved[self.rows], self.stepped(step, moved)[self.rows]
        return np.asarray(before + (after - before) / step, dtype=moved.dtype)

    def ways(self, vectors: np.ndarray) -> Iterator[tuple[PairSetting, np.ndarray]]:
        """Yield every setting with all items as they are then stored."""
        for alpha in (None, *PAIR_ALPHAS):
            moved = self.moved(alpha, vectors)
            for step in STEPS:
                yield PairSetting(alpha, step), self.stepped(step, moved)
