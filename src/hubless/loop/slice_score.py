"""How well an index answers the questions of a slice, and how sure a difference of two is.

Of a question with judgements, the nDCG@10 among all items. Of one with clicks, items that were never shown
are neither good nor bad: only those that were shown are put in order, and each is worth its clicks per
expected click. An index that agrees with what was shown has no advantage: where clicks say nothing of items,
every order has the same score on average.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.stats import t as student

from ..neighbors import nearest
from ..retrieval import gains, ndcg
from .questions import Questions, Worth

K = 10
RISK = 0.025  # of ever replacing what serves by something that is not better, over all looks together
LEVEL = 0.975  # of each end of the 95 % intervals that are shown, and that guards and ways back are judged by
FEWEST = 20  # questions that a decision needs


@dataclass(frozen=True)
class Answered:
    """What one state of an index answers to the questions of a slice."""

    scores: np.ndarray  # (n,)
    neighbors: np.ndarray  # (n, 10), row numbers, for the measures of hubness


def answer(questions: Questions, stored: np.ndarray) -> Answered:
    """Return the score of each question, and its neighbours among stored vectors."""
    neighbors = nearest(questions.vectors, stored, min(K, len(stored)), return_distance=False)
    judged = np.array([worth is None for worth in questions.shown], dtype=bool)
    scores = np.zeros(len(questions))
    if judged.any():
        relevant = [known for known, is_judged in zip(questions.relevant, judged, strict=True) if is_judged]
        scores[judged] = ndcg(gains(neighbors[judged], relevant), relevant)
    clicked = np.flatnonzero(~judged).tolist()
    of_clicks = [click_gain(questions.vectors[i], questions.shown[i] or {}, stored) for i in clicked]
    total = sum(sum((questions.shown[i] or {}).values()) for i in clicked)
    if clicked:
        scores[clicked] = np.array(of_clicks) * len(clicked) / total
    return Answered(scores, np.asarray(neighbors))


# S(q) = Σ_i ρ̂_i / log₂(1 + rank_i), with ranks among the items that were shown for q
def click_gain(query: np.ndarray, worth: Worth, stored: np.ndarray) -> float:
    """Return the gain of the order in which stored vectors put the items that were shown.

    It is not divided by that of the best order, which would undo the weights of clicks far down.
    """
    rows = np.array([*worth], dtype=np.int64)
    distances = ((stored[rows] - query) ** 2).sum(axis=1)
    order = np.lexsort((rows, distances))
    values = np.array([*worth.values()])[order]
    return float(values @ (1 / np.log2(np.arange(2, len(rows) + 2))))


@dataclass(frozen=True)
class Differences:
    """Differences of scores, question by question, added up over slices."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    looks: int = 0  # decisions that these differences have been, or will have been, used for

    def __add__(self, other: Self) -> "Differences":
        return Differences(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            self.looks + other.looks,
        )

    @property
    def mean(self) -> float:
        """The mean difference; 0 without questions."""
        return self.total / self.n if self.n else 0.0

    # d̄ ± t s / √n
    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the mean difference, each end at a level; infinite for few questions."""
        if self.n < FEWEST:
            return -np.inf, np.inf
        variance = max(0.0, self.squares - self.n * self.mean**2) / (self.n - 1)
        error = float(student.ppf(level, self.n - 1)) * np.sqrt(variance / self.n)
        return self.mean - error, self.mean + error

    def is_above(self) -> bool:
        """Whether the mean is above 0, as surely as all looks together allow."""
        return self.interval(look_level(self.looks))[0] > 0

    def is_below(self) -> bool:
        """Whether the 95 % interval is below 0."""
        return self.interval(LEVEL)[1] < 0


# α_k = α · 6 / (π² k²), which adds up to α over all looks k = 1, 2, …
def look_level(look: int) -> float:
    """Return the level of the interval at the k-th look at growing evidence."""
    return 1 - RISK * 6 / (np.pi * max(look, 1)) ** 2


def compare(before: np.ndarray, after: np.ndarray) -> Differences:
    """Return the evidence that one state is better than another, paired by question; one look."""
    differences = after - before
    return Differences(len(differences), float(differences.sum()), float((differences**2).sum()), 1)
