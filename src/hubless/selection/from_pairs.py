"""Choose how to move items on held-out queries, when pairs of queries and items are known.

Queries are split into folds; what is learned from the other folds answers the queries of a fold, among all
items. This is repeated until there are a few thousand answers, since few queries split once choose by chance.
A setting must not visibly harm queries whose items it has not seen: the step of an item toward its queries
makes it a better answer to these, and may make it a wrong answer to others.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..movers.points import weighted_mean
from ..movers.ridge import move
from ..neighbors import nearest
from ..neighbors.knn import unit
from ..retrieval import Relevant, gains, ndcg
from ..solve import Penalty, problem_of_pairs
from ..support.progress import progress_bar
from .folds import mean_and_error, query_folds, tried_row
from .grid import PAIR_ALPHAS

K = 10  # of nDCG@10
STEPS = (0.0, 0.1, 0.2, 0.3, 0.5)
ANSWERS = 3000  # of held-out queries that a choice is based on: few queries are split several times
REPEATS = 10  # times that queries are split, at most
VISIBLE = 2.0  # standard errors from which a loss counts
AHEAD = 3.0  # standard errors that the best must be ahead of not moving: of thirty, one is ahead by chance
POOL = 100_000  # items that held-out queries are compared with; of more, a random sample


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
        parts = [] if self.alpha is None else [f"W toward the identity, λ = {self.alpha:g} scale"]
        return " and ".join(parts + ([f"a step of {self.step:g} toward own queries"] if self.step else []))


STAY = PairSetting(None, 0.0)
SETTINGS = tuple(PairSetting(alpha, step) for alpha in (None, *PAIR_ALPHAS) for step in STEPS)


# z'' = (1 − s) z' + s q̄
def step_toward(moved: np.ndarray, goals: np.ndarray, step: float) -> np.ndarray:
    """Return items part of the way to a goal, in their precision."""
    return ((1 - step) * moved + step * goals).astype(moved.dtype, copy=False)


class PairMap:
    """What is learned from pairs of queries and items, for any setting."""

    def __init__(self, judged: JudgedQueries, vectors: np.ndarray, is_unit: bool) -> None:
        """`vectors` are those of all items, (n, d); with `is_unit` they have length 1, and keep it."""
        queries_of: dict[int, list[int]] = {}  # by item
        for query, relevant in enumerate(judged.relevant):
            for item in relevant:
                queries_of.setdefault(item, []).append(query)
        self.is_unit = is_unit
        self.rows = np.array([*queries_of], dtype=np.int64)  # items that have queries
        self.means = np.stack([judged.queries[queries].mean(axis=0) for queries in queries_of.values()])
        self.x = judged.queries[[query for queries in queries_of.values() for query in queries]]
        self.z = vectors[np.repeat(self.rows, [len(queries) for queries in queries_of.values()])]
        self.problem = problem_of_pairs(self.x, self.z, None, weighted_mean(self.z))

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
        further = step_toward(moved[self.rows], self.goals(moved), step)
        moved[self.rows] = unit(further) if self.is_unit else further
        return moved

    # q̄ − g, where g is the mean of q̄ − z' over the items that have queries
    def goals(self, moved: np.ndarray) -> np.ndarray:
        """Return the points that items with queries step toward.

        Each is the mean of the item's queries, less the mean difference of queries and items: with that
        difference, all these items would come closer to every query, and displace other answers.
        """
        apart = self.means - moved[self.rows]
        return np.asarray(self.means - apart.mean(axis=0), dtype=moved.dtype)


@dataclass(frozen=True)
class HeldOutScores:
    """nDCG@10 of held-out queries for every setting."""

    scores: dict[PairSetting, np.ndarray]  # (repeats, queries)
    seen: np.ndarray  # (repeats, queries), whether an item of the query was learned from another query

    def of(self, setting: PairSetting, part: str) -> np.ndarray:
        """Return the mean score of each query over the repeats in which it is in a part of the queries."""
        mask = {"all": np.ones_like(self.seen), "seen": self.seen, "unseen": ~self.seen}[part]
        used = mask.any(axis=0)
        return (self.scores[setting] * mask).sum(axis=0)[used] / mask.sum(axis=0)[used]

    def ahead(self, setting: PairSetting, part: str) -> tuple[float, float]:
        """Return how far a setting is ahead of not moving, and the standard error of that."""
        return mean_and_error(self.of(setting, part) - self.of(STAY, part))

    def spares_unseen(self, setting: PairSetting) -> bool:
        """Return whether a setting does not visibly harm queries with unseen items."""
        gain, error = self.ahead(setting, "unseen")
        return gain >= -VISIBLE * error

    def tried_rows(self, chosen: PairSetting) -> list[dict[str, Any]]:
        """Return every setting with its score, the best first, as plain data for a page."""
        rows = []
        for setting in SETTINGS:
            scores = self.of(setting, "all")
            why_not = "" if self.spares_unseen(setting) else "harms queries with unseen items"
            figures = (*mean_and_error(scores), len(scores))
            rows.append(tried_row(str(setting), *figures, chosen=setting == chosen, why_not=why_not))
        return sorted(rows, key=lambda row: -row["score"])

    def surface(self, chosen: PairSetting) -> dict[str, Any]:
        """Return scores over λ and the step of items toward their queries, as plain data for a page."""
        alphas = (*PAIR_ALPHAS, None)
        return {
            "x": {
                "title": "λ / mean eigenvalue",
                "values": ["no map" if alpha is None else alpha for alpha in alphas],
                "log": False,
            },
            "y": {"title": "step toward own queries", "values": list(STEPS)},
            "score": [
                [float(self.of(PairSetting(alpha, step), "all").mean()) for alpha in alphas] for step in STEPS
            ],
            "measure": f"nDCG@{K} of held-out queries",
            "chosen": [alphas.index(chosen.alpha), STEPS.index(chosen.step)],
            "words": "The ringed point was chosen.",
        }


def score_held_out(
    vectors: np.ndarray,
    judged: JudgedQueries,
    is_unit: bool,
    *,
    n_folds: int = 5,
    random_state: int = 0,
    progress: bool | None = False,
) -> HeldOutScores:
    """Score every setting on queries that it has not learned from."""
    n = len(judged.queries)
    if n < 2 * n_folds:
        raise ValueError(f"{n} judged queries are too few to choose by: give {2 * n_folds} or more.")
    rng = np.random.default_rng(random_state)
    vectors, judged = _pool(vectors, judged, rng)
    repeats = min(REPEATS, -(-ANSWERS // n))
    scores = {setting: np.empty((repeats, n)) for setting in SETTINGS}
    seen = np.empty((repeats, n), dtype=bool)
    with progress_bar(progress, repeats * n_folds, unit=" folds", desc="choose") as bar:
        for i in range(repeats):
            for train, test in query_folds(n, n_folds, rng):
                pair_map = PairMap(judged.take(train), vectors, is_unit)
                queries, known = judged.take(test), set(pair_map.rows.tolist())
                seen[i, test] = [not known.isdisjoint(relevant) for relevant in queries.relevant]
                _score_fold(scores, (i, test), pair_map, vectors, queries)
                bar.update()
    return HeldOutScores(scores, seen)


def _score_fold(
    scores: dict[PairSetting, np.ndarray],
    place: Any,
    pair_map: PairMap,
    vectors: np.ndarray,
    judged: JudgedQueries,
) -> None:
    """Let every setting answer the queries of a fold."""
    for alpha in (None, *PAIR_ALPHAS):
        moved = pair_map.moved(alpha, vectors)
        for step in STEPS:
            stored = pair_map.stepped(step, moved)
            indices = nearest(judged.queries, stored, min(K, len(stored)), return_distance=False)
            scores[PairSetting(alpha, step)][place] = ndcg(gains(indices, judged.relevant), judged.relevant)


def choose_setting(scores: HeldOutScores) -> tuple[PairSetting, str]:
    """Return the best setting of those that do not visibly harm queries with unseen items; and why.

    That is not moving, unless the best is ahead of that by AHEAD standard errors.
    """
    allowed = [setting for setting in SETTINGS if scores.spares_unseen(setting)]
    best = max(allowed, key=lambda setting: scores.of(setting, "all").mean())
    gain, error = scores.ahead(best, "all")
    n_allowed = f"{len(allowed)} of {len(SETTINGS)} settings"
    why = f"the best of the {n_allowed} that do not harm queries with unseen items"
    if gain <= AHEAD * error:
        best, why = STAY, f"no setting is ahead of not moving by {AHEAD:g} standard errors"
    figures = []
    for part, words in (("all", "held-out queries"), ("unseen", "of them with unseen items")):
        before, after = scores.of(STAY, part), scores.of(best, part)
        if len(before):
            figures.append(f"{before.mean():.3f} → {after.mean():.3f} on {len(before)} {words}")
    return best, f"nDCG@{K} {', '.join(figures)}; {why}."


def _pool(
    vectors: np.ndarray, judged: JudgedQueries, rng: np.random.Generator
) -> tuple[np.ndarray, JudgedQueries]:
    """Return all items, or of many those that are judged and others at random, with their new row numbers."""
    n = len(vectors)
    if n <= POOL:
        return vectors, judged
    needed = np.array([*{item: None for relevant in judged.relevant for item in relevant}], dtype=np.int64)
    others = np.setdiff1d(np.arange(n), needed)
    mask = np.zeros(n, dtype=bool)
    mask[needed] = True
    mask[rng.choice(others, max(POOL - len(needed), 0), replace=False)] = True
    places = np.cumsum(mask) - 1
    relevant = [{int(places[item]): worth for item, worth in items.items()} for items in judged.relevant]
    return vectors[mask], JudgedQueries(judged.queries, relevant)
