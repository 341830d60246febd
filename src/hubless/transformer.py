"""MoveQuery: the paper's counter-example as a scikit-learn transformer."""

from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .arrays import Array
from .inputs import check_alpha, check_count, check_labels, check_points, check_weights
from .movers.linear import learn_from_labels, move
from .targets import labeled_objects


class MoveQuery(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Move queries toward the labeled objects, which stay (Eq. 9-10).

    The paper's counter-example: the same regression with the roles exchanged. It makes hubs, and is here to
    show it. `fit_transform(X, y)` gives the labeled objects as a k-NN should store them, as they are;
    `transform` gives queries as it should be asked, moved.

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
    W_, mean_, alpha_, n_singletons_ : as in MoveLabeled, but rows move in `transform`, not in `fit_transform`
    """

    def __init__(self, alpha: Any = "scale", n_targets: int = 1, *, center: bool = True) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.center = center

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None) -> "MoveQuery":
        """Learn the map from labeled objects; parameters as in MoveLabeled."""
        self._fit(X, y, sample_weight, targets)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, targets: Any) -> Array:
        penalty, n_targets = check_alpha(self.alpha), check_count("n_targets", self.n_targets)
        X = check_points(self, X, min_rows=2)
        _, codes = check_labels(y, X)
        labeled = labeled_objects(X, codes, check_weights(sample_weight, X), targets, n_targets)
        self.W_, self.mean_, self.alpha_ = learn_from_labels(labeled, penalty, self.center, reverse=True)
        self.n_singletons_ = labeled.n_without_target()
        return X

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None
    ) -> Array:
        """Learn the map and return the labeled objects, which stay as they are."""
        return self._fit(X, y, sample_weight, targets)

    def transform(self, X: Any) -> Array:
        """Queries, moved."""
        check_is_fitted(self)
        X = check_points(self, X, method="transform", like=self.mean_)
        return move(X, self.W_, self.mean_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
