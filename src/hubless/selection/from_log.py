"""Choose a correction from a log of queries, by the few queries of the log whose answers are known.

Judged queries are split into folds; those of a fold are answered among items whose correction is learned
from the log without them. Every correction is compared with none by itself: of those that are ahead by more
than chance would explain, the best is taken, and none where there is no such one. Few hubs alone are no
reason to choose a correction: the one that leaves the fewest often costs answers.

Without judgements nothing can be compared, and the one correction that is safe without them is taken:
`HoldHubs`, which leaves every item alone whose share of the answers may be chance.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..corrections import (
    CSLS,
    NNN,
    Correction,
    DisSimLocal,
    DualIS,
    HoldHubs,
    InvertedSoftmax,
    LocalScaling,
    MeanQuery,
    Sinkhorn,
)
from ..corrections.correction import answers_of
from ..retrieval import gains, ndcg
from ..support.progress import step
from .folds import mean_and_error, tried_row
from .from_pairs import CHANCE, K, pool, ratios_and_bar
from .pair_map import JudgedQueries

FOLDS = 5
ANSWERS = 400  # of judged queries that a choice is based on; more take longer and change little
LEAST_JUDGED = 20  # judged queries to choose by
BANK = 5000  # queries of the log that candidates learn from
POOL = 20_000  # items that judged queries are compared with; of more, a random sample
NONE = "no correction"


@dataclass(frozen=True)
class CorrectionScores:
    """nDCG@10 of judged queries with every correction, and with none."""

    none: np.ndarray  # (n,)
    scores: dict[str, np.ndarray]  # (n,), by the text of a correction
    part: str = "all"  # the items that they are asked of: all, or the unseen ones alone

    def ahead(self, name: str) -> tuple[float, float]:
        """Return how far a correction is ahead of none, and the standard error of that."""
        return mean_and_error(self.scores[name] - self.none)

    @property
    def beyond_chance(self) -> list[str]:
        """The corrections that are ahead of none by more than chance puts the best of all."""
        ratios, bar = ratios_and_bar(np.array([scores - self.none for scores in self.scores.values()]))
        return [name for name, ratio in zip(self.scores, ratios, strict=True) if ratio > bar]

    def best(self) -> str:
        """Return the best of the corrections that are ahead of none, or NONE."""
        return max(self.beyond_chance, key=lambda name: self.scores[name].mean(), default=NONE)

    def tried_rows(self, chosen: str) -> list[dict[str, Any]]:
        """Return every correction with its score, the best first, as plain data for a page."""
        ahead = [NONE, *self.beyond_chance]
        rows = [
            tried_row(
                name,
                *mean_and_error(scores),
                len(scores),
                chosen=name == chosen,
                why_not="" if name in ahead else "not ahead of no correction",
            )
            for name, scores in ((NONE, self.none), *self.scores.items())
        ]
        return sorted(rows, key=lambda row: -row["score"])

    def explain(self, chosen: str) -> str:
        """Return why a correction was chosen, in words."""
        n = len(self.none)
        if chosen == NONE:
            name = max(self.scores, key=lambda name: self.scores[name].mean())
            gain, error = self.ahead(name)
            return (
                f"No correction is ahead of none on {n:,} judged queries by more than chance may put the "
                f"best of {len(self.scores)} ({CHANCE:.0%} of the time); {name} changes nDCG@{K} by "
                f"{gain:+.3f} ± {1.96 * error:.3f}."
            )
        gain, error = self.ahead(chosen)
        return (
            f"nDCG@{K} {self.none.mean():.3f} → {self.scores[chosen].mean():.3f} on {n:,} judged queries "
            f"({gain:+.3f} ± {1.96 * error:.3f}); the best of the {len(self.beyond_chance)} of "
            f"{len(self.scores)} corrections that are ahead of none by more than chance."
        )


def all_candidates() -> list[Correction]:
    """Return the corrections that compete, each with a few settings at most."""
    return [
        HoldHubs(),
        NNN(0.25, 16),
        NNN(0.5, 64),
        CSLS(),
        MeanQuery(0.25),
        InvertedSoftmax(2.0, 0.5),
        DualIS(2.0, 0.5),
        Sinkhorn(3.0),
        Sinkhorn(4.0),
        Sinkhorn(4.0, 0.5),
        LocalScaling(),
        DisSimLocal(),
    ]


def candidates_for(metric: str, column: bool) -> list[Correction]:
    """Return the corrections that compete, for an index that compares by this metric."""
    usable = [
        correction for correction in all_candidates() if not (correction._by_distance and metric == "ip")
    ]
    return [clone(correction).set_params(metric=metric, column=column) for correction in usable]


def name_of(correction: Correction) -> str:
    """Return the name and the setting of a correction, without what the index decides."""
    return repr(clone(correction).set_params(metric="cosine", column=False))


class LogFold(NamedTuple):
    """Judged queries that nothing was learned from, and what they are answered by."""

    items: np.ndarray  # (n, d), as stored before any correction, in the space that the index compares in
    judged: JudgedQueries  # with row numbers of these items
    log: np.ndarray  # (m, d), the queries that corrections learn from: none of the judged ones


def fold_numbers(n: int) -> range:
    """Return the numbers of the folds that are used of n judged queries; ValueError where these are few."""
    if n < LEAST_JUDGED:
        raise ValueError(
            f"{n} judged queries are too few to choose a correction by: give {LEAST_JUDGED} or more."
        )
    return range(min(FOLDS, -(-ANSWERS * FOLDS // n)))


def score_corrections(
    folds: Iterable[LogFold],
    n_folds: int,
    metric: str,
    *,
    column: bool = False,
    random_state: int = 0,
) -> CorrectionScores:
    """Score every correction on judged queries that nothing was learned from.

    Parameters
    ----------
    folds : iterable of LogFold, n_folds of them
    metric : "l2", "cosine" (all have length 1) or "ip"
    column : whether corrections are written into one more column
    """
    rng = np.random.default_rng(random_state)
    candidates = candidates_for(metric, column)
    parts: dict[str, list[np.ndarray]] = {NONE: []}
    n_scores = n_folds * (len(candidates) + 1)
    with step(f"choosing among {len(candidates)} corrections", n_scores, "scores") as choosing:
        for fold in folds:
            items, (queries, relevant) = pool(fold.items, fold.judged, rng, POOL)
            log = fold.log[rng.permutation(len(fold.log))[:BANK]]
            for correction in (None, *candidates):
                stored = items if correction is None else correction.fit(log, items).move(items)
                asked = np.pad(queries, ((0, 0), (0, stored.shape[1] - queries.shape[1])))
                indices = answers_of(asked, stored, min(K, len(stored)), metric)
                name = NONE if correction is None else name_of(correction)
                parts.setdefault(name, []).append(ndcg(gains(indices, relevant), relevant))
                choosing.update()
    scores = {name: np.concatenate(values) for name, values in parts.items()}
    return CorrectionScores(scores.pop(NONE), scores)
