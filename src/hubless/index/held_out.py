"""Choose how to move items by queries that were held out, when pairs of queries and items are known.

Queries are split into folds; what the others teach is asked with the queries of a fold, against all items.
This is done anew until there are some thousand answers, since few queries split once choose by chance. A
setting may not visibly cost queries whose items it has not seen: the step of an item toward its own queries
makes it a better answer to these, and a worse neighbour of all others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..movers.linear import centre, learned, move, problem_of_pairs
from ..neighbors import nearest
from ..progress import bar_of
from ..retrieval import gains, ndcg
from ..solve import Penalty
from ..stores.store import StoreError
from .collection import Collection
from .pairs import Judged
from .repair import own_step, unit

K = 10  # of nDCG@10
ALPHAS = (0.25, 0.5, 1.0, 2.0, 4.0)  # λ over the mean eigenvalue; beyond, W hardly differs from the identity
STEPS = (0.0, 0.1, 0.2, 0.3, 0.5)
ANSWERS = 3000  # of held-out queries that a choice rests on: few queries are split several times
REPEATS = 10  # times at most
VISIBLE = 2.0  # standard errors that a cost must have to be one
AHEAD = 3.0  # standard errors that the best must be ahead of not moving: of thirty, one is ahead by chance
POOL = 100_000  # items that held-out queries are asked against; the others are left out, by chance


@dataclass(frozen=True)
class Setting:
    """λ relative to the mean eigenvalue, None for no map; and the step of items with queries of their own."""

    alpha: float | None
    step: float

    def __str__(self) -> str:
        if self == STAY:
            return "not to move"
        parts = [] if self.alpha is None else [f"W toward the identity, λ = {self.alpha:g} scale"]
        return " and ".join(parts + ([f"a step of {self.step:g} toward own queries"] if self.step else []))


STAY = Setting(None, 0.0)
SETTINGS = tuple(Setting(alpha, step) for alpha in (None, *ALPHAS) for step in STEPS)


class Lesson:
    """What pairs teach, for any setting."""

    def __init__(self, judged: Judged, items: Collection) -> None:
        own: dict[Any, list[int]] = {}
        for row, relevant in enumerate(judged.relevant):
            for item in relevant:
                own.setdefault(item, []).append(row)
        self.ids = [*own]
        self.rows = items.rows_of(self.ids)
        self.means = np.stack([judged.queries[rows].mean(axis=0) for rows in own.values()])
        self.x = judged.queries[[row for rows in own.values() for row in rows]]
        self.z = items.vectors[np.repeat(self.rows, [len(rows) for rows in own.values()])]
        self.mean = centre(self.z, None, True)
        self.problem = problem_of_pairs(self.x, self.z, None, self.mean)

    def moved(self, alpha: float | None, items: Collection) -> np.ndarray:
        """All items moved by the map of one λ."""
        if alpha is None:
            return items.vectors
        W, mean, _ = learned(self.problem, self.mean, Penalty(alpha, relative=True), self.z, "identity")
        moved = move(items.vectors, W, mean)
        return unit(moved) if items.metric == "cosine" else moved

    def stepped(self, step: float, moved: np.ndarray, metric: str) -> np.ndarray:
        """The same with a step of the items that have queries of their own."""
        if not step:
            return moved
        moved = moved.copy()
        own = own_step(moved[self.rows], self.goals(moved), step)
        moved[self.rows] = unit(own) if metric == "cosine" else own
        return moved

    # q̄ − g, where g is the mean of q̄ − z' over the items with queries of their own
    def goals(self, moved: np.ndarray) -> np.ndarray:
        """Where these items would go: to the mean of their queries, less what queries and items are apart in
        common. With that, all of them would come closer to every query, and take answers from all others.
        """
        apart = self.means - moved[self.rows]
        return np.asarray(self.means - apart.mean(axis=0), dtype=moved.dtype)


@dataclass(frozen=True)
class Answers:
    """nDCG@10 of held-out queries for every setting."""

    scores: dict[Setting, np.ndarray]  # (repeats, queries)
    seen: np.ndarray  # (repeats, queries), whether an item of the query was taught by another

    def of(self, setting: Setting, part: str) -> np.ndarray:
        """The mean score of each query over the repeats in which it belongs to a part of the queries."""
        mask = {"all": np.ones_like(self.seen), "seen": self.seen, "unseen": ~self.seen}[part]
        asked = mask.any(axis=0)
        return (self.scores[setting] * mask).sum(axis=0)[asked] / mask.sum(axis=0)[asked]

    def ahead(self, setting: Setting, part: str) -> tuple[float, float]:
        """How far a setting is ahead of not moving, and the standard error of that."""
        apart = self.of(setting, part) - self.of(STAY, part)
        if len(apart) < 2:
            return 0.0, 0.0
        return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))

    def spares(self, setting: Setting) -> bool:
        """Whether it does not visibly cost queries with unseen items."""
        gain, error = self.ahead(setting, "unseen")
        return gain >= -VISIBLE * error

    def tried(self, chosen: Setting) -> list[dict[str, Any]]:
        """Every setting with its score, the best first, as plain data for a page."""
        rows = []
        for setting in SETTINGS:
            scores = self.of(setting, "all")
            error = float(scores.std(ddof=1) / np.sqrt(len(scores)))
            rows.append(
                {
                    "name": str(setting),
                    "k": None,
                    "score": float(scores.mean()),
                    "error": error,
                    "queries": len(scores),
                    "seconds": None,
                    "chosen": setting == chosen,
                    "why_not": "" if self.spares(setting) else "costs queries with unseen items",
                }
            )
        return sorted(rows, key=lambda row: -row["score"])

    def surface(self, chosen: Setting) -> dict[str, Any]:
        """Scores over λ and the step of items toward their own queries, as plain data for a page."""
        alphas = (*ALPHAS, None)
        return {
            "x": {
                "title": "λ / mean eigenvalue",
                "values": ["no map" if alpha is None else alpha for alpha in alphas],
                "log": False,
            },
            "y": {"title": "step toward own queries", "values": list(STEPS)},
            "score": [
                [float(self.of(Setting(alpha, step), "all").mean()) for alpha in alphas] for step in STEPS
            ],
            "measure": f"nDCG@{K} of held-out queries",
            "chosen": [alphas.index(chosen.alpha), STEPS.index(chosen.step)],
            "words": "The ringed point was chosen.",
        }


def ask_held_out(
    items: Collection,
    judged: Judged,
    *,
    n_folds: int = 5,
    random_state: int = 0,
    progress: bool | None = False,
) -> Answers:
    """Every setting's answers to queries that it has not learned from."""
    n = len(judged.queries)
    if n < 2 * n_folds:
        raise StoreError(f"{n} judged queries are too few to choose by: give {2 * n_folds} or more.")
    rng = np.random.default_rng(random_state)
    pool, repeats = _pool(items, judged, rng), min(REPEATS, -(-ANSWERS // n))
    scores = {setting: np.empty((repeats, n)) for setting in SETTINGS}
    seen = np.empty((repeats, n), dtype=bool)
    with bar_of(progress, repeats * n_folds, unit=" folds", desc="choose") as bar:
        for i in range(repeats):
            for fold in np.array_split(rng.permutation(n), n_folds):
                lesson = Lesson(judged.take(np.setdiff1d(np.arange(n), fold)), pool)
                asked, taught = judged.take(fold), set(lesson.ids)
                seen[i, fold] = [not taught.isdisjoint(relevant) for relevant in asked.relevant]
                _ask(scores, (i, fold), lesson, pool, asked)
                bar.update()
    return Answers(scores, seen)


def _ask(
    scores: dict[Setting, np.ndarray], place: Any, lesson: Lesson, pool: Collection, asked: Judged
) -> None:
    """Let every setting answer the queries of a fold."""
    relevant = asked.rows(pool.places)
    for alpha in (None, *ALPHAS):
        moved = lesson.moved(alpha, pool)
        for step in STEPS:
            stored = lesson.stepped(step, moved, pool.metric)
            found = nearest(asked.queries, stored, min(K, len(stored)), return_distance=False)
            scores[Setting(alpha, step)][place] = ndcg(gains(found, relevant), relevant)


def choose(answers: Answers) -> tuple[Setting, str]:
    """The best setting of those that do not visibly cost queries with unseen items; and why.

    Not to move, unless the best is visibly ahead of that.
    """
    allowed = [setting for setting in SETTINGS if answers.spares(setting)]
    best = max(allowed, key=lambda setting: answers.of(setting, "all").mean())
    gain, error = answers.ahead(best, "all")
    told = f"the best of the {len(allowed)} settings of {len(SETTINGS)} that spare queries with unseen items"
    if gain <= AHEAD * error:
        best, told = STAY, f"no setting is ahead of not moving by {AHEAD:g} standard errors"
    figures = []
    for part, words in (("all", "held-out queries"), ("unseen", "of them with unseen items")):
        before, after = answers.of(STAY, part), answers.of(best, part)
        if len(before):
            figures.append(f"{before.mean():.3f} → {after.mean():.3f} on {len(before)} {words}")
    return best, f"nDCG@{K} {', '.join(figures)}; {told}."


def _pool(items: Collection, judged: Judged, rng: np.random.Generator) -> Collection:
    """All items, or of many those that are judged and others by chance."""
    if len(items.ids) <= POOL:
        return items
    needed = items.rows_of([*{item: None for relevant in judged.relevant for item in relevant}])
    others = np.setdiff1d(np.arange(len(items.ids)), needed)
    mask = np.zeros(len(items.ids), dtype=bool)
    mask[needed] = True
    mask[rng.choice(others, max(POOL - len(needed), 0), replace=False)] = True
    return items.take(mask)
