"""What the Mahalanobis learners share: a matrix L that moves queries and labeled objects alike (Eq. 2-3)."""

from typing import Any, NamedTuple

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, count, namespace
from ..inputs import check_labels, check_points
from ..movers.linear import centre


class Learned(NamedTuple):
    """What an optimisation gives back."""

    L: Array  # (d, d), float64
    n_iter: int
    history: list[float]  # the objective, or what the method watches, once per round


class MahalanobisLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """f(x, z) = ‖Lx − Lz‖: a subclass learns L, this class checks the input and moves both sides."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn L from labeled objects.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,), the class of each object
        """
        X = check_points(self, X, min_rows=2)
        xp = namespace(X)
        classes, codes = check_labels(y, X)
        sizes = count(codes, classes.shape[0])
        if sizes.shape[0] < 2 or int(xp.max(sizes)) < 2:
            raise ValueError(
                f"{type(self).__name__} learns from pairs within and between classes, so it needs at least "
                f"two classes, one of them with two objects; got {sizes.shape[0]} class(es) and at most "
                f"{int(xp.max(sizes))} object(s) in a class."
            )
        # Distances ignore the mean, rounding does not; squares of tiny or huge numbers would leave the range.
        X = xp.astype(xp.astype(X, xp.float64) - centre(X, None, True), X.dtype)
        peak = float(xp.max(xp.abs(X)))
        if peak == 0:
            raise ValueError(f"all {X.shape[0]} objects are identical: there is no distance to learn from.")
        unit = 1.0 if 1e-3 < peak < 1e6 else peak
        learned = self._learn(X / unit, codes)
        self.components_ = xp.astype(learned.L / unit, X.dtype)
        self.n_iter_, self.history_ = learned.n_iter, learned.history
        return self

    def _learn(self, X: Array, codes: Array) -> Learned:
        raise NotImplementedError

    def transform(self, X: Any) -> Array:
        """Lx for each row x: Euclidean distances between the results are the learned distances.

        Returns
        -------
        X : array of shape (n_objects, d)
        """
        check_is_fitted(self)
        return check_points(self, X, method="transform", like=self.components_) @ self.components_.T

    def get_mahalanobis_matrix(self) -> Array:
        """M = LᵀL of f(x, z)² = (x − z)ᵀ M (x − z); shape (d, d)."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
