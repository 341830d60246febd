"""MoveQuery: the paper's counter-example as a scikit-learn transformer."""

from typing import Any, ClassVar, Self, overload

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .arrays import Array
from .arrays.inputs import check_choice, check_count, check_labels, check_points, check_weights
from .arrays.types import ArrayLike, ArrayOrNone, HostArray, HostLike, SomeArray
from .movers.points import centre
from .movers.ridge import move
from .solve import Alpha, Penalty, check_alpha, problem_of_targets
from .targets import labeled_objects


class MoveQuery(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Move queries toward the labeled objects, which stay (equation 9-10).

    The paper's counter-example: the same regression with the roles exchanged. The paper shows that it
    promotes hubs, and it is here to reproduce that. `fit_transform(X, y)` returns the labeled objects, which
    are stored as they are; `transform` returns queries, moved.

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0, or the mean eigenvalue of Σ x xᵀ over the pairs.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class.
    center : bool, default=True
        Move about the mean of the labeled objects, or about the origin.

    Attributes
    ----------
    W_, mean_, alpha_, n_singletons_ : as in MoveLabeled, but it is `transform` that moves rows

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import MoveQuery
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 4.0], [6.0, 5.0]]), [0, 0, 1, 1]
    >>> move = MoveQuery(alpha=0.0).fit(X, y)
    >>> move.fit_transform(X, y).tolist() == X.tolist()  # stored objects stay; queries move
    True
    >>> move.transform(np.array([[2.0, 2.0]])).shape
    (1, 2)
    """

    _learned: ClassVar = {"W_": "dd", "mean_": "d", "alpha_": "number"}

    def __init__(self, alpha: Alpha = "scale", n_targets: int = 1, *, center: bool = True) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.center = center

    def fit(
        self,
        X: ArrayLike,
        y: ArrayOrNone = None,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
    ) -> Self:
        """Learn the map from labeled objects; parameters as in MoveLabeled."""
        self._fit(X, y, sample_weight, targets)
        return self

    def _check_parameters(self) -> tuple[Penalty, int]:
        check_choice("center", self.center, (True, False))
        return check_alpha("alpha", self.alpha), check_count("n_targets", self.n_targets)

    def _fit(self, X: Any, y: Any, sample_weight: Any, targets: Any) -> Array:
        penalty, n_targets = self._check_parameters()
        X = check_points(self, X, min_rows=2)
        _, codes = check_labels(y, X)
        labeled = labeled_objects(X, codes, check_weights(sample_weight, X), targets, n_targets)
        mean = centre(labeled.X, labeled.weights, self.center)
        problem = problem_of_targets(labeled.X, labeled.targets, labeled.weights, mean, reverse=True)
        self.W_, self.mean_, self.alpha_ = problem.best_map(penalty, X.dtype)
        self.n_singletons_ = labeled.n_without_target()
        return X

    @overload
    def fit_transform(
        self,
        X: HostLike,
        y: ArrayOrNone = None,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
    ) -> HostArray: ...
    @overload
    def fit_transform(
        self,
        X: SomeArray,
        y: ArrayOrNone = None,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
    ) -> SomeArray: ...
    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None
    ) -> Array:
        """Learn the map and return the labeled objects, which are not moved."""
        return self._fit(X, y, sample_weight, targets)

    @overload
    def transform(self, X: HostLike) -> HostArray: ...
    @overload
    def transform(self, X: SomeArray) -> SomeArray: ...
    def transform(self, X: Any) -> Array:
        """Return queries, moved.  (equation 10)"""
        check_is_fitted(self)
        X = check_points(self, X, method="transform", like=self.mean_)
        return move(X, self.W_, self.mean_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
