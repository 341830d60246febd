"""The outside references: linear classifiers, each with the setting that is best on a quarter of the objects.

Features are scaled to a mean squared norm of 1. The costs C of the SVM and of logistic regression are tried
in steps of ten, further in either direction as long as the best is the last one tried, so that no reference
is behind for want of a setting. LDA chooses its shrinkage: Ledoit and Wolf's for each class, or one for all.
Where a quarter has fewer than 1,000 objects, several quarters are drawn.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hubless.arrays import Array, to_numpy

from .svm import SquaredHingeSVC, rows_of

LINEAR = {"svm": "linear SVM", "logistic": "logistic regression", "lda": "LDA"}
LEAST, MOST = 1e-4, 1e5  # costs beyond which no better one is looked for
ENOUGH, MOST_QUARTERS = 1000, 10  # held-out objects to choose by, and quarters to draw for them
SHRINKAGES = ("auto", 0.001, 0.01, 0.1, 0.3, 0.6, 0.9)


def linear(slug: str, d: int, seed: int) -> Pipeline:
    """Return an unfitted reference by its name; the number of columns does not matter to it."""
    if slug == "svm":  # where the objects are
        return make_pipeline(UnitScale(), BestSetting(SquaredHingeSVC(), "C", (0.1, 1.0, 10.0), 10.0, seed))
    if slug == "logistic":
        chosen = BestSetting(LogisticRegression(max_iter=1000, tol=1e-5), "C", (1.0, 10.0, 100.0), 10.0, seed)
    else:
        chosen = BestSetting(LinearDiscriminantAnalysis(solver="lsqr"), "shrinkage", SHRINKAGES, None, seed)
    return make_pipeline(FunctionTransformer(to_numpy), UnitScale(), chosen)


class UnitScale(FunctionTransformer):
    """Divide by the root of the mean squared norm of the objects."""

    def fit(self, X: Array, y: Any = None) -> "UnitScale":
        """Measure the objects."""
        self.size_ = float((X**2).sum(axis=1).mean()) ** 0.5 or 1.0
        return self

    def transform(self, X: Array) -> Array:
        """Return objects or queries in the new unit."""
        return X / self.size_


class BestSetting(ClassifierMixin, BaseEstimator):
    """A classifier with the setting that is best on held-out quarters of the objects, fitted on all of them.

    Of equal settings the first is taken; where all are equal, the middle one of `values`, which are in order.
    With `step`, numbers beyond both ends of `values` are tried as long as the best is at an end.
    """

    def __init__(
        self, model: Any, name: str, values: Sequence[Any], step: float | None = None, seed: int = 0
    ) -> None:
        self.model = model
        self.name = name
        self.values = values
        self.step = step
        self.seed = seed

    def fit(self, X: Array, y: np.ndarray) -> "BestSetting":
        """Choose and fit."""
        n_quarters = int(np.clip(np.ceil(ENOUGH / (len(y) / 4)), 1, MOST_QUARTERS))
        quarters = list(ShuffleSplit(n_quarters, test_size=0.25, random_state=self.seed).split(y))

        def score(value: Any) -> float:
            scores = []
            for train, test in quarters:
                model = self._fitted(value, rows_of(X, train), y[train])
                scores.append(np.mean(model.predict(rows_of(X, test)) == y[test]))
            return float(np.mean(scores))

        best = best_value(score, self.values, self.step)
        self.best_params_ = {self.name: best}
        self.model_ = self._fitted(best, X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Array) -> np.ndarray:
        """Return the class of each query."""
        return np.asarray(self.model_.predict(X))

    def _fitted(self, value: Any, X: Array, y: np.ndarray) -> Any:
        with warnings.catch_warnings():  # a class of one object has no covariance; LDA goes on with zeros
            warnings.filterwarnings("ignore", message="Only one sample available")
            return clone(self.model).set_params(**{self.name: value}).fit(X, y)


def best_value(score: Callable[[Any], float], values: Sequence[Any], step: float | None) -> Any:
    """Return the first value of the highest score; with `step`, looking beyond an end that is the best."""
    scores = {value: score(value) for value in values}
    if len(set(scores.values())) == 1:  # nothing to choose by, as with one object per class
        return values[len(values) // 2]
    while step is not None:
        best = max(sorted(scores), key=scores.__getitem__)
        beyond = best / step if best == min(scores) else best * step if best == max(scores) else None
        if beyond is None or not LEAST <= beyond <= MOST:
            return best
        scores[beyond] = score(beyond)
    return max(scores, key=scores.__getitem__)
