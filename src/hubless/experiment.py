"""The paper's protocol for one method on one split: choose on the training part, measure on the test part.

k, and λ where a method has one, are chosen by 5-fold cross-validation on the training part. Accuracy is that
of the k-NN vote on the test part, N_10 skewness counts the training objects over the test queries, and the
training time is that of one fit with everything chosen.
"""

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .classifier import MoveLabeledClassifier
from .classifier_cv import MoveLabeledClassifierCV
from .hubness import k_occurrence, skewness
from .selection import Grid, best_setting, feasible_neighbors, folds
from .solve import Penalty
from .targets import same_class_targets
from .topk import search
from .transformer import MoveQuery
from .vote import vote

METHODS = ("original metric", "Move-query", "Move-labeled")


class Result(NamedTuple):
    """One cell of a table."""

    method: str
    accuracy: float
    skewness: float  # of N_10, or of N_n where there are only n < 10 training objects
    choice_seconds: float  # of the cross-validation
    fit_seconds: float  # with everything chosen
    n_neighbors: int
    alpha: float | None


def run(
    method: str, X: np.ndarray, y: np.ndarray, test_X: np.ndarray, test_y: np.ndarray, seed: int = 0
) -> Result:
    """Choose, fit and measure one of METHODS; y and test_y are class numbers."""
    start = perf_counter()
    n_neighbors, alpha = _choose(method, X, y, seed)
    chosen = perf_counter()
    stored, move_queries = _fitted(method, X, y, alpha)
    fitted = perf_counter()
    wide = min(10, len(X))
    found = search(move_queries(test_X), stored, max(n_neighbors, wide), return_distance=False)
    right = vote(y[found[:, :n_neighbors]]) == test_y
    skew = skewness(k_occurrence(found[:, :wide], len(X)))
    accuracy = float(right.mean())
    return Result(method, accuracy, skew, chosen - start, fitted - chosen, n_neighbors, alpha)


def _fitted(
    method: str, X: np.ndarray, y: np.ndarray, alpha: float | None, targets: Array | None = None
) -> tuple[Array, Any]:
    """The stored objects and the function that queries pass before they are searched."""
    if method == "original metric":
        return X, np.asarray
    if method == "Move-query":
        return X, MoveQuery(alpha).fit(X, y, targets=targets).transform
    return MoveLabeledClassifier(alpha=alpha, n_neighbors=1).fit(X, y).moved_, np.asarray


def _choose(method: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[int, float | None]:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "Move-labeled":
        chosen = MoveLabeledClassifierCV(random_state=seed).fit(X, y)
        return chosen.n_neighbors_, chosen.alpha_
    parts = folds(y, np.arange(len(y)), 5, seed)
    ks = feasible_neighbors(None, min(len(train) for train, _ in parts))
    penalties = Grid.default_penalties() if method == "Move-query" else (Penalty(0.0, relative=False),)
    scores = np.empty((len(parts), 1, len(penalties), len(ks)))
    for i, (train, test) in enumerate(parts):
        own, own_y, targets, unit = X[train], y[train], None, 0.0
        if method == "Move-query":
            targets = same_class_targets(own, own_y)  # the same for every λ
            unit = MoveQuery().fit(own, own_y, targets=targets).alpha_
        for j, penalty in enumerate(penalties):
            stored, move_queries = _fitted(method, own, own_y, penalty.absolute(unit), targets)
            found = search(move_queries(X[test]), stored, max(ks), return_distance=False)
            scores[i, 0, j] = [np.mean(winner == y[test]) for winner in vote(own_y[found], ks=ks)]
    (_, penalty, k), _ = best_setting(scores, Grid((1,), penalties, ks))
    return k, penalty.absolute(MoveQuery().fit(X, y).alpha_) if method == "Move-query" else None
