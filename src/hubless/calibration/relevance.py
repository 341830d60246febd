"""How likely each answer of an index is to be relevant: learned on held-out queries whose answers are known.

A distance alone does not say it: with one query all items are far away, the right one too; with another all
are near. So an answer is also compared with the best of the others.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

K = 10  # answers of a query that are learned from
FEWEST = 100  # held-out queries from which anything is learned
SPREAD = 1e3  # variance of the normal prior of a coefficient: felt only where answers are separated entirely


class Relevance(NamedTuple):
    """What was learned from the answers to held-out queries; nothing where these were too few."""

    coefficients: np.ndarray | None = None  # (4,): of 1 and of the three numbers of an answer
    unit: float | None = None  # of squared distances
    best: np.ndarray | None = None  # (h,), ascending: the largest probability of each held-out query

    def check(self) -> None:
        """Refuse what cannot have been learned."""
        is_right = all(value is None for value in self)
        if self.coefficients is not None and self.unit is not None and self.best is not None:
            rising = (np.diff(self.best) >= 0).all() and self.best[0] >= 0 and self.best[-1] <= 1
            is_right = self.coefficients.shape == (4,) and self.unit > 0 and bool(rising)
        if not is_right:
            raise ValueError("relevance_ is not what is learned from held-out queries; fit the model again.")


# −d_j / u,  max(m_j, 0) / u,  min(m_j, 0) / u   with the margin m_j = min_{i ≠ j} d_i − d_j, which is above 0
# for the nearest answer alone
def answer_numbers(squared: np.ndarray, unit: float) -> np.ndarray:
    """Return three numbers of each answer from squared distances; shapes (m, k) → (m, k, 3)."""
    two = np.sort(squared, axis=1)[:, :2]
    other = np.where(squared == two[:, :1], two[:, 1:], two[:, :1])  # of two that are as near, each other
    margin = other - squared
    return np.stack([-squared, np.maximum(margin, 0), np.minimum(margin, 0)], axis=2) / unit


# p_j = 1 / (1 + exp(−wᵀ(1, f_j)))
def probability_of_relevance(squared: np.ndarray, learned: Relevance) -> np.ndarray:
    """Return how likely answers are to be relevant; shapes (m, k) → (m, k), k of at least 2."""
    assert learned.coefficients is not None
    assert learned.unit is not None
    numbers = answer_numbers(np.asarray(squared, dtype=np.float64), learned.unit)
    return np.asarray(expit(learned.coefficients[0] + numbers @ learned.coefficients[1:]))


def learn_relevance(squared: np.ndarray, is_relevant: np.ndarray) -> Relevance:
    """Learn from the answers to held-out queries, nearest first; both of shape (n, k), at most K are used.

    One half of the queries gives the coefficients, the other half the ascending probabilities, so that these
    are of a fixed function.
    """
    squared, is_relevant = squared[:, :K], is_relevant[:, :K]
    one, other = slice(0, None, 2), slice(1, None, 2)
    if len(squared) < FEWEST or squared.shape[1] < 2 or len(np.unique(is_relevant[one])) < 2:
        return Relevance()
    unit = float(np.median(squared)) or 1.0
    numbers = answer_numbers(squared[one], unit).reshape(-1, 3)
    fit = LogisticRegression(C=SPREAD, tol=1e-6, max_iter=1000).fit(numbers, is_relevant[one].reshape(-1))
    learned = Relevance(np.concatenate([fit.intercept_, fit.coef_[0]]), unit, np.zeros(1))
    best = probability_of_relevance(squared[other], learned).max(axis=1)
    return learned._replace(best=np.sort(best))


# t = the ⌊a (h + 1)⌋-th smallest of the h best probabilities. If the h held-out queries and a new one are
# exchangeable, the probability that the best of the new one is below t is at most a (split conformal).
def threshold(learned: Relevance, reject: float) -> float:
    """Return the least probability that an answer must have, so that few queries get no answer at all."""
    assert learned.best is not None
    return float(learned.best[int(reject * (len(learned.best) + 1)) - 1])
