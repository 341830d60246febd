"""What the Mahalanobis learners share: a matrix L that moves queries and labeled objects alike (Eq. 2-3)."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, overload

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, count, namespace
from ..arrays.inputs import check_count, check_labels, check_points, check_positive
from ..arrays.types import ArrayLike, ArrayOrNone, HostArray, HostLike, SomeArray
from ..movers.points import weighted_mean


class LearnedMetric(NamedTuple):
    """A learned metric, and how the optimisation went."""

    L: Array  # (d, d), float64
    n_iter: int
    history: list[float]  # the objective, or another measure of progress, once per round


class MahalanobisLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The distance f(x, z) = ‖Lx − Lz‖ (Eq. 2-3): a subclass learns L, this class checks and applies."""

    _learned: ClassVar = {"components_": "dd", "n_iter_": "count", "history_": "list"}
    _checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {  # of parameters, by name
        "max_iter": check_count,
        "tol": partial(check_positive, or_zero=True),
    }

    def _check_parameters(self) -> None:
        """Refuse invalid parameters."""
        for name, check in self._checks.items():
            check(name, getattr(self, name))

    def fit(self, X: ArrayLike, y: ArrayOrNone = None) -> Self:
        """Learn L from labeled objects.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,), the class of each object
        """
        self._check_parameters()
        points = check_points(self, X, min_rows=2)
        xp = namespace(points)
        classes, codes = check_labels(y, points)
        sizes = count(codes, classes.shape[0])
        if sizes.shape[0] < 2 or int(xp.max(sizes)) < 2:
            raise ValueError(
                f"{type(self).__name__} learns from pairs within and between classes, so it needs at least "
                f"two classes, one of them with two objects; got {sizes.shape[0]} class(es) and at most "
                f"{int(xp.max(sizes))} object(s) in a class."
            )
        # Distances do not depend on the mean, their rounding does; squares of tiny numbers underflow, and of
        # huge ones overflow.
        points = xp.astype(xp.astype(points, xp.float64) - weighted_mean(points), points.dtype)
        peak = float(xp.max(xp.abs(points)))
        if peak == 0:
            raise ValueError(
                f"all {points.shape[0]} objects are identical: there is no distance to learn from."
            )
        unit = 1.0 if 1e-3 < peak < 1e6 else peak
        learned = self._learn(points / unit, codes)
        self.components_ = xp.astype(learned.L / unit, points.dtype)
        self.n_iter_, self.history_ = learned.n_iter, learned.history
        return self

    def _learn(self, X: Array, codes: Array) -> LearnedMetric:
        raise NotImplementedError

    @overload
    def transform(self, X: HostLike) -> HostArray: ...
    @overload
    def transform(self, X: SomeArray) -> SomeArray: ...
    def transform(self, X: Any) -> Array:
        """Return Lx for each row x: Euclidean distances of the results are the learned distances.

        Returns
        -------
        X : array of shape (n_objects, d)
        """
        check_is_fitted(self)
        return check_points(self, X, method="transform", like=self.components_) @ self.components_.T

    def get_mahalanobis_matrix(self) -> Array:
        """Return M = LᵀL of f(x, z)² = (x − z)ᵀ M (x − z); shape (d, d)."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
