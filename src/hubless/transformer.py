"""MoveLabeled and MoveQuery: the paper's two maps as scikit-learn transformers.

`fit_transform(X, y)` gives the labeled objects as a k-NN should store them, `transform(X)` gives queries as
it should be asked. The two differ on purpose (as in scikit-learn's TargetEncoder): a pipeline calls the
first when it is fitted and the second when it predicts, so `make_pipeline(MoveLabeled(),
KNeighborsClassifier())` is Eq. 7. Do not call `fit(X, y).transform(X)` to get moved objects: that leaves
them where they are; `move` moves objects that come later.
"""

from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .arrays import Array
from .inputs import check_alpha, check_count, check_labels, check_points, check_weights
from .movers import LinearMap, learn_from_labels, learn_from_pairs, move
from .targets import labeled_objects


class _Mover(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What Move-labeled and Move-query share: the targets, the centre and the solution."""

    _reverse: bool  # whether objects move toward their targets (Eq. 9) or targets toward objects (Eq. 5)

    def __init__(self, alpha: Any = "scale", n_targets: int = 1, *, center: bool = True) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.center = center

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None) -> Any:
        """Learn the map from labeled objects.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,), the class of each object
        sample_weight : array of shape (n,), optional
            Weight of the pairs of each object. An object of weight 0 is nobody's target either.
        targets : int array of shape (n, width), optional
            Precomputed targets: same-class objects by row number, nearest first, -1 for none. The first
            `n_targets` are used.
        """
        self._fit(X, y, sample_weight, targets)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, targets: Any) -> Array:
        penalty, n_targets = check_alpha(self.alpha), check_count("n_targets", self.n_targets)
        X = check_points(self, X, min_rows=2)
        _, codes = check_labels(y, X)
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, n_targets)
        self._keep(learn_from_labels(labeled, penalty, self.center, reverse=self._reverse))
        self.n_singletons_ = labeled.n_without_target()
        return X

    def _keep(self, learned: LinearMap) -> None:
        self.W_, self.mean_, self.alpha_ = learned

    def _moved(self, X: Array) -> Array:
        return move(X, self.W_, self.mean_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MoveLabeled(_Mover):
    """Move labeled objects toward the objects they should be neighbours of; queries stay (Eq. 4-7).

    z' = μ + W (z − μ), where W = XJXᵀ (XKXᵀ + λI)⁻¹ solves the ridge regression from each object's nearest
    same-class objects to itself, and μ is the mean of the labeled objects.

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0. "scale" takes the mean eigenvalue of XKXᵀ, which follows the number and the
        scale of the data.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class.
    center : bool, default=True
        Move about the mean of the labeled objects, as the paper does, or about the origin.

    Attributes
    ----------
    W_ : array of shape (d, d)
        A row z moves to mean_ + (z - mean_) @ W_.T.
    mean_ : array of shape (d,)
    alpha_ : float
        The λ used.
    n_singletons_ : int
        Objects without a target, alone in their class. They are moved all the same.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless import MoveLabeled
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(MoveLabeled(), KNeighborsClassifier())
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _reverse = False

    def fit_pairs(self, queries: Any, objects: Any, sample_weight: Any = None) -> "MoveLabeled":
        """Learn the map from pairs that you have: objects[i] should move toward queries[i].

        Parameters
        ----------
        queries, objects : arrays of shape (pairs, d)
        sample_weight : array of shape (pairs,), optional

        Notes
        -----
        The centre is the mean of `objects` over the pairs. `n_targets` plays no part.
        """
        penalty = check_alpha(self.alpha)
        objects = check_points(self, objects)
        queries = check_points(self, queries, method="fit_pairs", like=objects)
        if tuple(queries.shape) != tuple(objects.shape):
            raise ValueError(
                "queries and objects must pair up row by row, with equal shapes; "
                f"got {tuple(queries.shape)} and {tuple(objects.shape)}."
            )
        weights = check_weights(sample_weight, objects)
        self._keep(learn_from_pairs(queries, objects, weights, penalty, self.center))
        self.n_singletons_ = 0
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None
    ) -> Array:
        """Learn the map as `fit` does, and move the labeled objects: what a k-NN should store.

        Returns
        -------
        moved : array of shape (n, d)
        """
        return self._moved(self._fit(X, y, sample_weight, targets))

    def transform(self, X: Any) -> Array:
        """Queries as a k-NN should be asked: as they are.

        Returns
        -------
        X : array of shape (n_queries, d), unchanged
        """
        check_is_fitted(self)
        return check_points(self, X, method="transform", like=self.mean_)

    def move(self, Z: Any) -> Array:
        """Move labeled objects that come later, which a k-NN may then store with the others.

        Returns
        -------
        moved : array of shape (n, d)
        """
        check_is_fitted(self)
        return self._moved(check_points(self, Z, method="move", like=self.mean_))


class MoveQuery(_Mover):
    """Move queries toward the labeled objects, which stay (Eq. 9-10).

    The paper's counter-example: the same regression with the roles exchanged. It makes hubs, and is here to
    show it.

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

    _reverse = True

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None
    ) -> Array:
        """Learn the map and return the labeled objects, which stay as they are."""
        return self._fit(X, y, sample_weight, targets)

    def transform(self, X: Any) -> Array:
        """Queries, moved."""
        check_is_fitted(self)
        return self._moved(check_points(self, X, method="transform", like=self.mean_))
