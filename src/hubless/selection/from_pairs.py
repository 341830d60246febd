"""Choose how to move items on held-out queries, when pairs of queries and items are known.

Queries are split into folds; what is learned from the other folds answers the queries of a fold, among all
items. This is repeated until there are a few thousand answers, since few queries split once choose by chance.
Each setting is tested by itself: it must be ahead of not moving by more than chance, and queries whose items
it has not seen must not plausibly lose much. Of those that pass, the best is taken.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..neighbors import nearest
from ..retrieval import gains, ndcg
from ..support.progress import step
from .folds import mean_and_error, query_folds, tried_row
from .grid import PAIR_ALPHAS
from .pair_map import STAY, STEPS, JudgedQueries, PairSetting

K = 10  # of nDCG@10
ANSWERS = 3000  # of held-out queries that a choice is based on: few queries are split several times
REPEATS = 5  # times that queries are split, at most; more change the choice little
CHANCE = 0.1  # how often the best of settings that all change nothing may be taken to be ahead
SIGNS = 1000  # draws of random signs that say how far chance may put the best ahead
ERRORS = 2.0  # standard errors by which a loss may be larger than it was measured
LOSS = 0.02  # of nDCG that queries with unseen items may plausibly lose
POOL = 100_000  # items that held-out queries are compared with; of more, a random sample

# what is learned from judged queries, given the vectors of all items: settings, each with the stored vectors
Learn = Callable[[JudgedQueries, np.ndarray], Iterable[tuple[Hashable, np.ndarray]]]


@dataclass(frozen=True)
class HeldOutScores:
    """nDCG@10 of held-out queries for every setting, of which `stay` is not moving."""

    scores: dict[Any, np.ndarray]  # (repeats, queries)
    seen: np.ndarray  # (repeats, queries), whether an item of the query was learned from another query
    stay: Any = STAY

    def of(self, setting: Any, part: str) -> np.ndarray:
        """Return the mean score of each query over the repeats in which it is in a part of the queries."""
        mask = {"all": np.ones_like(self.seen), "seen": self.seen, "unseen": ~self.seen}[part]
        used = mask.any(axis=0)
        return (self.scores[setting] * mask).sum(axis=0)[used] / mask.sum(axis=0)[used]

    def ahead(self, setting: Any, part: str) -> tuple[float, float]:
        """Return how far a setting is ahead of not moving, and the standard error of that."""
        return mean_and_error(self.of(setting, part) - self.of(self.stay, part))

    @property
    def has_unseen(self) -> bool:
        """Whether there are queries with unseen items, two or more."""
        return bool((~self.seen).any(axis=0).sum() > 1)

    def plausible_loss(self, setting: Any) -> float:
        """Return the most that queries with unseen items plausibly lose; a noisy setting may lose more."""
        gain, error = self.ahead(setting, "unseen")
        return ERRORS * error - gain

    def spares_unseen(self, setting: Any) -> bool:
        """Return whether queries with unseen items plausibly lose at most LOSS."""
        return setting == self.stay or self.plausible_loss(setting) <= LOSS

    def beyond_chance(self) -> list[Any]:
        """Return the settings that are ahead of not moving by more than chance puts the best of all."""
        settings = [setting for setting in self.scores if setting != self.stay]
        differences = np.array([self.of(setting, "all") - self.of(self.stay, "all") for setting in settings])
        ratios, bar = ratios_and_bar(differences)
        return [setting for setting, ratio in zip(settings, ratios, strict=True) if ratio > bar]


# t_j = Σ_i d_ij / √(Σ_i d_ij²), and with random signs ε_i the quantile of max_j Σ_i ε_i d_ij / √(Σ_i d_ij²)
def ratios_and_bar(differences: np.ndarray) -> tuple[np.ndarray, float]:
    """Return how far each setting is ahead, in its standard errors, and how far chance puts the best.

    Parameters
    ----------
    differences : array of shape (settings, queries)
        How far a setting is ahead on each query. If it changes nothing, either sign is as likely. All
        settings get the same signs, so settings that are much alike count as few.
    """
    lengths = np.sqrt((differences**2).sum(axis=1))
    scaled = differences / np.where(lengths > 0, lengths, 1.0)[:, None]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (SIGNS, differences.shape[1]))
    return scaled.sum(axis=1), float(np.quantile((signs @ scaled.T).max(axis=1), 1 - CHANCE))


def score_held_out(
    vectors: np.ndarray,
    judged: JudgedQueries,
    learn: Learn,
    *,
    n_folds: int = 5,
    repeats: int | None = None,
    random_state: int = 0,
) -> HeldOutScores:
    """Score every setting that `learn` yields on queries that it has not learned from.

    Queries are split `repeats` times; by default as often as gives enough answers.
    """
    n = len(judged.queries)
    if n < 2 * n_folds:
        raise ValueError(f"{n} judged queries are too few to choose by: give {2 * n_folds} or more.")
    rng = np.random.default_rng(random_state)
    vectors, judged = pool(vectors, judged, rng, POOL)
    repeats = repeats or min(REPEATS, -(-ANSWERS // n))
    scores: dict[Any, np.ndarray] = {}
    seen = np.empty((repeats, n), dtype=bool)
    with step(f"choosing a map by {n:,} judged queries", repeats * n_folds, "folds") as choosing:
        for i in range(repeats):
            for train, test in query_folds(n, n_folds, rng):
                known, queries = judged.take(train), judged.take(test)
                items = {item for relevant in known.relevant for item in relevant}
                seen[i, test] = [not items.isdisjoint(relevant) for relevant in queries.relevant]
                for setting, stored in learn(known, vectors):
                    scores.setdefault(setting, np.empty((repeats, n)))[i, test] = answered(queries, stored)
                choosing.update()
    return HeldOutScores(scores, seen)


def answered(judged: JudgedQueries, stored: np.ndarray) -> np.ndarray:
    """Return the nDCG@10 of each query."""
    indices = nearest(judged.queries, stored, min(K, len(stored)), return_distance=False)
    return ndcg(gains(indices, judged.relevant), judged.relevant)


def choose_setting(scores: HeldOutScores) -> tuple[Any, str]:
    """Return a setting that passes both tests, or not moving; and why.

    The tests are `beyond_chance` and `spares_unseen`. Of those that pass, the best is taken.
    """
    ahead = scores.beyond_chance()
    allowed = [setting for setting in ahead if scores.spares_unseen(setting)]
    chosen = max(allowed, key=lambda setting: scores.of(setting, "all").mean(), default=scores.stay)
    figures = []
    for part, words in (("all", "held-out queries"), ("unseen", "of them with unseen items")):
        before, after = scores.of(scores.stay, part), scores.of(chosen, part)
        if len(before):
            figures.append(f"{before.mean():.3f} → {after.mean():.3f} on {len(before):,} {words}")
    return chosen, f"nDCG@{K} {', '.join(figures)}; {_why(scores, len(ahead), len(allowed))}."


def _why(scores: HeldOutScores, n_ahead: int, n_allowed: int) -> str:
    n = len(scores.scores) - 1
    bar = f"by more than chance puts the best of {n} in {CHANCE:.0%} of cases"
    if not n_ahead:
        return f"no setting is ahead of not moving {bar}"
    ahead = f"{n_ahead} of {n} settings {'is' if n_ahead == 1 else 'are'} ahead of not moving {bar}"
    if not scores.has_unseen:
        return f"{ahead}; what they do to queries with unseen items could not be measured; this is the best"
    if not n_allowed:
        return f"{ahead}, but queries with unseen items may lose more than {LOSS:g} with each"
    return (
        f"{ahead}; with {n_allowed} of these, queries with unseen items plausibly lose at most {LOSS:g}; "
        "this is the best of those"
    )


def tried_rows(scores: HeldOutScores, chosen: Any) -> list[dict[str, Any]]:
    """Return every setting with its score, the best first, as plain data for a page."""
    rows, ahead = [], scores.beyond_chance()
    for setting in scores.scores:
        values = scores.of(setting, "all")
        why_not = "" if setting in (scores.stay, *ahead) else "not ahead by more than chance"
        if not scores.spares_unseen(setting):
            why_not = "may harm queries with unseen items"
        figures = (*mean_and_error(values), len(values))
        behind = mean_and_error(scores.of(chosen, "all") - values)
        rows.append(
            tried_row(str(setting), *figures, chosen=setting == chosen, why_not=why_not, behind=behind)
        )
    return sorted(rows, key=lambda row: -row["score"])


def surface(scores: HeldOutScores, chosen: PairSetting) -> dict[str, Any]:
    """Return scores over λ and the step of items toward their queries, as plain data for a page."""
    alphas = (*PAIR_ALPHAS, None)
    return {
        "x": {
            "title": "λ (× mean eigenvalue)",
            "values": ["no map" if alpha is None else alpha for alpha in alphas],
            "log": False,
        },
        "y": {"title": "step toward own queries", "values": list(STEPS)},
        "score": [
            [float(scores.of(PairSetting(alpha, step), "all").mean()) for alpha in alphas] for step in STEPS
        ],
        "measure": f"nDCG@{K} of held-out queries",
        "chosen": [alphas.index(chosen.alpha), STEPS.index(chosen.step)],
        "words": "The ringed point was chosen.",
    }


def pool(
    vectors: np.ndarray, judged: JudgedQueries, rng: np.random.Generator, most: int
) -> tuple[np.ndarray, JudgedQueries]:
    """Return all items, or of more than `most` those that are judged and others at random, newly numbered."""
    n = len(vectors)
    if n <= most:
        return vectors, judged
    needed = np.array([*{item: None for relevant in judged.relevant for item in relevant}], dtype=np.int64)
    others = np.setdiff1d(np.arange(n), needed)
    mask = np.zeros(n, dtype=bool)
    mask[needed] = True
    mask[rng.choice(others, max(most - len(needed), 0), replace=False)] = True
    places = np.cumsum(mask) - 1
    relevant = [{int(places[item]): worth for item, worth in items.items()} for items in judged.relevant]
    return vectors[mask], JudgedQueries(judged.queries, relevant)
