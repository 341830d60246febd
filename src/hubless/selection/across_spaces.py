"""Choose λ of the map from the space of the items into that of the queries, on held-out queries.

Users search for items that nobody judged, so items are held out, not queries alone: all queries of an item
are in one fold, and an item that answers a query of the fold is in no pair that is learned from. Held-out
queries are answered among the items that were not learned from. Those that were lie nearer to queries, the
more so the smaller λ is: among them, too large a λ would look best for all others. Not moving cannot be
compared, as items and queries have different columns; what a random order would score is given instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..movers.points import weighted_mean
from ..movers.ridge import move
from ..neighbors import nearest
from ..neighbors.knn import unit
from ..retrieval import Relevant, gains, ndcg
from ..solve import RidgeProblem, problem_of_pairs
from ..support.progress import step
from .folds import mean_and_error, tried_row
from .grid import GRID
from .pair_map import JudgedQueries

K = 10  # of nDCG@10
FOLDS = 5
ANSWERS = 3000  # queries of all folds together that are answered, of more a random sample
ENOUGH = 1000  # queries that are split once; fewer are split several times, at most REPEATS
REPEATS = 5
POOL = 20_000  # items that held-out queries are compared with; of more, a random sample


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs of a query and an item that answers it, by row numbers."""

    query: np.ndarray  # (pairs,)
    item: np.ndarray  # (pairs,)

    @staticmethod
    def of(relevant: Relevant) -> "JudgedPairs":
        """Return every judged pair."""
        pairs = [(query, item) for query, items in enumerate(relevant) for item in items]
        return JudgedPairs(*np.array(pairs, dtype=np.int64).T)

    def without(self, queries: np.ndarray, relevant: Relevant) -> "JudgedPairs":
        """Return the pairs that have none of these queries, and none of their items."""
        items = [item for query in queries for item in relevant[query]]
        kept = ~np.isin(self.query, queries) & ~np.isin(self.item, items)
        return JudgedPairs(self.query[kept], self.item[kept])

    def problem(self, judged: JudgedQueries, vectors: np.ndarray) -> RidgeProblem:
        """Return the ridge regression from the items to the queries, about a mean of each."""
        x, z = judged.queries[self.query], vectors[self.item]
        return problem_of_pairs(x, z, None, weighted_mean(z), weighted_mean(x))


def item_folds(relevant: Relevant, n_folds: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the queries of each fold; those of one item, by their most relevant one, are in one fold."""
    items, number = np.unique(
        [max(worth, key=lambda item: worth[item]) for worth in relevant], return_inverse=True
    )
    fold = rng.permutation(len(items)) % n_folds
    for i in range(n_folds):
        yield np.flatnonzero(fold[number] == i)


@dataclass(frozen=True)
class PenaltyScores:
    """nDCG@10 of held-out queries for every λ of GRID."""

    scores: np.ndarray  # (penalties, queries)
    by_chance: float  # the mean of a random order of the items

    @property
    def best(self) -> int:
        """The place in GRID of the best mean; of equal ones, the larger λ."""
        means = self.scores.mean(axis=1)
        return int(np.flatnonzero(means == means.max())[-1])

    def tried_rows(self) -> list[dict[str, Any]]:
        """Return every λ with its score, the best first, as plain data for a page."""
        n = self.scores.shape[1]
        rows = [
            tried_row(str(penalty), *mean_and_error(scores), n, chosen=i == self.best)
            for i, (penalty, scores) in enumerate(zip(GRID, self.scores, strict=True))
        ]
        return sorted(rows, key=lambda row: -row["score"])

    def explain(self) -> str:
        """Return what was chosen and why, in words."""
        (mean, error), n = mean_and_error(self.scores[self.best]), self.scores.shape[1]
        end = ", at the end of those tried" if self.best in (0, len(GRID) - 1) else ""
        return (
            f"nDCG@{K} {mean:.3f} (standard error {error:.3f}) on {n:,} held-out queries, among items that "
            f"were not learned from; a random order of these has {self.by_chance:.3f}. The best of "
            f"{len(GRID)} λ{end}. Items as they are cannot be compared with queries, which have other "
            "columns: there is no score of not moving."
        )


def score_penalties(
    vectors: np.ndarray,
    judged: JudgedQueries,
    is_unit: bool,
    *,
    random_state: int = 0,
) -> PenaltyScores:
    """Score every λ on queries whose items it has not learned from.

    Parameters
    ----------
    vectors : array of shape (n, d), those of all items
    judged : queries of shape (m, e) with the rows of their items
    is_unit : whether items have length 1, and are brought to it again after they moved
    """
    n, rng = len(judged.queries), np.random.default_rng(random_state)
    n_items = len({item for worth in judged.relevant for item in worth})
    if n < 2 * FOLDS or n_items < 2 * FOLDS:
        raise ValueError(
            f"{n} judged queries of {n_items} items are too few to choose by: give {2 * FOLDS} or more of "
            "both."
        )
    pairs, total, answered = JudgedPairs.of(judged.relevant), np.zeros((len(GRID) + 1, n)), np.zeros(n)
    repeats = min(REPEATS, -(-ENOUGH // n))
    with step(f"choosing among {len(GRID)} λ", repeats * FOLDS, "folds") as choosing:
        for _ in range(repeats):
            for fold in item_folds(judged.relevant, FOLDS, rng):
                rest = pairs.without(fold, judged.relevant)
                test = fold if len(fold) <= ANSWERS // FOLDS else rng.choice(fold, ANSWERS // FOLDS, False)
                if len(rest.query) and len(test):
                    unseen = unseen_items(vectors, judged.take(test), rest.item, rng)
                    total[:, test] += _score_fold(rest.problem(judged, vectors), *unseen, is_unit)
                    answered[test] += 1
                choosing.update()
    used = answered > 0
    if not used.any():
        raise ValueError(
            "every query shares an item with every fold, so none can be held out: give queries of more items."
        )
    *scores, by_chance = total[:, used] / answered[used]
    return PenaltyScores(np.stack(scores), float(by_chance.mean()))


def _score_fold(
    problem: RidgeProblem, vectors: np.ndarray, judged: JudgedQueries, is_unit: bool
) -> np.ndarray:
    """Return nDCG@10 of the queries for every λ, and of a random order; shape (penalties + 1, queries)."""
    path, scale, scores = problem.path(), problem.mean_eigenvalue(), []
    for penalty in GRID:
        moved = move(vectors, path.at(penalty.absolute(scale)), problem.mean, problem.query_mean)
        stored = unit(moved) if is_unit else moved
        indices = nearest(judged.queries, stored, min(K, len(stored)), return_distance=False)
        scores.append(ndcg(gains(indices, judged.relevant), judged.relevant))
    return np.stack([*scores, _by_chance(judged.relevant, len(vectors))])


# in a random order of n items, each of the first k is worth Σ worth / n on average
def _by_chance(relevant: Relevant, n: int) -> np.ndarray:
    """Return the expected nDCG@10 of each query in a random order of n items."""
    worth = np.array([sum(items.values()) / n for items in relevant])
    return ndcg(np.repeat(worth[:, None], min(K, n), axis=1), relevant)


def unseen_items(
    vectors: np.ndarray, judged: JudgedQueries, seen: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, JudgedQueries]:
    """Return the items that are not seen, of many a sample, and queries with the new rows of their items."""
    rows = np.setdiff1d(np.arange(len(vectors)), seen)
    if len(rows) > POOL:
        needed = np.unique([item for worth in judged.relevant for item in worth])
        others = rng.permutation(np.setdiff1d(rows, needed))
        rows = np.sort(np.concatenate([needed, others[: max(POOL - len(needed), 0)]]))
    relevant = []
    for worth in judged.relevant:
        places = np.searchsorted(rows, [*worth]).tolist()
        relevant.append(dict(zip(places, worth.values(), strict=True)))
    return vectors[rows], JudgedQueries(judged.queries, relevant)
