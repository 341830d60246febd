"""k-NN classification with moved labeled objects: one setting, or the best of a grid by cross-validation."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, namespace, to_numpy
from .inputs import (
    check_alpha,
    check_alphas,
    check_choice,
    check_count,
    check_counts,
    check_labels,
    check_points,
    check_weights,
)
from .movers import learn_from_labels, move
from .neighbors import check_neighbors, search
from .selection import Grid, best_setting, feasible_neighbors, folds, results, score_fold
from .solve import Penalty
from .targets import Labeled, labeled_objects
from .vote import probabilities, vote, votes_of


class _MovedNeighbors(ClassifierMixin, BaseEstimator):
    """k-NN among moved objects: what both classifiers do once they are fitted."""

    def _n_neighbors(self) -> int:
        raise NotImplementedError

    def kneighbors(self, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest moved objects of each query.

        Parameters
        ----------
        X : array of shape (n_queries, d)
        n_neighbors : int, optional
        return_distance : bool

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors), ‖x − z'‖; only with `return_distance`
        indices : int array of the same shape: row numbers of `moved_`, nearest first, ties to the lower
        """
        k = None if n_neighbors is None else check_count("n_neighbors", n_neighbors)
        return self._search(X, k, return_distance, "kneighbors")

    def _search(self, X: Any, k: int | None, return_distance: bool, method: str) -> Any:
        check_is_fitted(self)
        X = check_points(self, X, method=method)
        k = self._n_neighbors() if k is None else k
        _check_enough(k, self.moved_.shape[0])
        return search(X, self.moved_, k, return_distance=return_distance)

    def predict(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """The class of each query: the majority among its neighbours, a tie to the class of the nearest.

        Parameters
        ----------
        X : array of shape (n_queries, d); not needed with `neighbors`
        neighbors : precomputed neighbours, optional
            What `kneighbors` returns (or another index over `moved_`): indices, or (distances, indices),
            which weights="distance" needs.
        """
        winners = vote(*self._votes(X, neighbors, "predict"))
        winners = convert(winners, self.classes_)
        return namespace(self.classes_).take(self.classes_, winners)

    def predict_proba(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """Share of the votes of each class, in the order of `classes_`; shape (n_queries, n_classes)."""
        labels, weights = self._votes(X, neighbors, "predict_proba")
        return probabilities(labels, self.classes_.shape[0], weights, dtype=self.moved_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, neighbors: Any = None) -> float:
        """Accuracy on queries X of classes y; `neighbors` as in `predict`."""
        right = to_numpy(self.predict(X, neighbors=neighbors)) == to_numpy(y)
        return float(np.average(right, weights=None if sample_weight is None else to_numpy(sample_weight)))

    def _votes(self, X: Any, neighbors: Any, method: str) -> tuple[Array, Array | None]:
        """Classes of the neighbours of each query and their weights; both of shape (n_queries, k)."""
        check_is_fitted(self)
        by_distance = self.weights == "distance"
        distances = None
        if X is None and neighbors is None:
            raise ValueError(f"{method} needs queries X, or their precomputed neighbors; got neither.")
        if neighbors is None:
            found = self._search(X, None, by_distance, method)
            distances, indices = found if by_distance else (None, found)
        elif isinstance(neighbors, tuple):
            distances, indices = (convert(part, self.moved_) for part in neighbors)
        else:
            indices = neighbors
        if by_distance and distances is None:
            raise ValueError('weights="distance" needs neighbors=(distances, indices); got indices alone.')
        if neighbors is not None:
            indices = check_neighbors(indices, self.moved_.shape[0], like=self.moved_)
            if bool(namespace(indices).any(indices < 0)):
                raise ValueError("neighbors must name an object in every place; got -1. Search for fewer.")
        return votes_of(indices, distances if by_distance else None, self.codes_, self.weights_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _store(self, labeled: Labeled, penalty: Penalty) -> None:
        self.W_, self.mean_, self.alpha_ = learn_from_labels(labeled, penalty, self.center)
        self.moved_ = move(labeled.X, self.W_, self.mean_)
        self.codes_, self.weights_ = labeled.codes, labeled.weights
        self.n_singletons_ = labeled.n_without_target()


class MoveLabeledClassifier(_MovedNeighbors):
    """k-nearest-neighbour classifier that moves its labeled objects, and never its queries (Eq. 4-7).

    Parameters
    ----------
    n_neighbors : int
        Neighbours that vote.
    alpha : float or "scale"
        The ridge penalty λ ≥ 0. "scale" takes the mean eigenvalue of XKXᵀ, which follows the number and the
        scale of the data; MoveLabeledClassifierCV finds a better one.
    n_targets : int
        Targets per object: its nearest objects of the same class, which move toward it.
    weights : "uniform" or "distance"
        Neighbours vote equally, or by the inverse of their distance.
    center : bool
        Move about the mean of the labeled objects, as the paper does, or about the origin.

    Attributes
    ----------
    W_ : array of shape (d, d)
        A row z moves to mean_ + (z - mean_) @ W_.T.
    mean_ : array of shape (d,)
    moved_ : array of shape (n_objects, d)
        The moved objects. Any index that holds them answers raw queries as this classifier does.
    classes_ : array of shape (n_classes,)
    codes_ : int array of shape (n_objects,)
        Class number of each row of `moved_`.
    weights_ : array of shape (n_objects,) or None
        Weight of each object's vote. Objects of weight 0 are left out of `moved_`.
    alpha_ : float
        The λ used.
    n_singletons_ : int
        Objects without a target, alone in their class. They are moved and vote like the others.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from hubless import MoveLabeledClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MoveLabeledClassifier(n_neighbors=5, alpha=1.0).fit(X_train, y_train)
    >>> model.predict(X_test[:2]).shape, model.W_.shape
    ((2,), (13, 13))
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        alpha: Any = "scale",
        n_targets: int = 1,
        *,
        weights: str = "uniform",
        center: bool = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_targets = n_targets
        self.weights = weights
        self.center = center

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, targets: Any = None
    ) -> "MoveLabeledClassifier":
        """Learn W from labeled objects and move them.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Weighs an object's pairs and its vote; 0 leaves it out.
        targets : int array of shape (n, width), optional
            Precomputed targets: same-class objects by row number, nearest first, -1 for none. The first
            `n_targets` are used.
        """
        k, n_targets = check_count("n_neighbors", self.n_neighbors), check_count("n_targets", self.n_targets)
        penalty = check_alpha(self.alpha)
        check_choice("weights", self.weights, ("uniform", "distance"))
        X = check_points(self, X, min_rows=2)
        self.classes_, codes = check_labels(y, X)
        labeled = labeled_objects(X, codes, check_weights(sample_weight, X), targets, n_targets)
        _check_enough(k, labeled.X.shape[0])
        self._store(labeled, penalty)
        return self

    def _n_neighbors(self) -> int:
        return check_count("n_neighbors", self.n_neighbors)


class MoveLabeledClassifierCV(_MovedNeighbors):
    """MoveLabeledClassifier that chooses n_neighbors, alpha and n_targets by cross-validated accuracy.

    One pass: per fold one search for targets, per fold and number of targets one eigendecomposition, per λ
    one search for neighbours, and every number of neighbours from those.

    Parameters
    ----------
    n_neighbors : sequence of int, optional
        Numbers of neighbours to try; by default 1, 3, 5, 7, 10, 15, 20, 30 and 50, as far as there are
        objects enough.
    alphas : sequence of float, optional
        Penalties λ to try. By default 13 values from 1e-4 to 100 times the mean eigenvalue of XKXᵀ, which is
        taken anew in each fold.
    n_targets : sequence of int
        Numbers of targets to try.
    weights, center : as in MoveLabeledClassifier
    cv : int, splitter or iterable of (train, test)
        A number gives that many stratified folds, shuffled by `random_state`; classes smaller than the
        number of folds are spread over as many folds as they have objects.
    random_state : int, RandomState or None
        Seed of the folds where `cv` is a number.

    Attributes
    ----------
    n_neighbors_, alpha_, n_targets_ : the choice; `alpha_` is the λ used on all the data
    best_score_ : float
        Mean accuracy of the choice over the folds. Equal scores go to fewer targets, then the larger λ, then
        fewer neighbours.
    scores_ : array of shape (n_folds, n_targets, alphas, n_neighbors)
        Accuracy of every setting in every fold.
    grid_ : dict
        The values along the last three axes of `scores_`: "n_targets", "alpha", "n_neighbors". "alpha" holds
        multiples of the mean eigenvalue where `alphas` was not given.
    cv_results_ : dict of arrays
        The same as columns, one row per setting, as GridSearchCV has it; pandas.DataFrame(cv_results_).
    W_, mean_, moved_, classes_, codes_, weights_, n_singletons_ : as in MoveLabeledClassifier

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hubless import MoveLabeledClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MoveLabeledClassifierCV(n_targets=(1, 3)).fit(X, y)
    >>> bool(model.best_score_ > 0.95)
    True
    """

    def __init__(
        self,
        n_neighbors: Any = None,
        alphas: Any = None,
        n_targets: Any = (1,),
        *,
        weights: str = "uniform",
        center: bool = True,
        cv: Any = 5,
        random_state: Any = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alphas = alphas
        self.n_targets = n_targets
        self.weights = weights
        self.center = center
        self.cv = cv
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, targets: Any = None
    ) -> "MoveLabeledClassifierCV":
        """Choose by cross-validation, then learn W from all labeled objects and move them.

        Parameters
        ----------
        X, y, sample_weight : as in MoveLabeledClassifier; weights also weigh the accuracy of a fold
        targets : int array of shape (n, width), optional
            Precomputed targets. A fold takes the first ones that are in its training part, so give more
            columns than the largest of `n_targets`.
        """
        check_choice("weights", self.weights, ("uniform", "distance"))
        n_targets = check_counts("n_targets", self.n_targets)
        penalties = None if self.alphas is None else check_alphas(self.alphas)
        X = check_points(self, X, min_rows=2)
        self.classes_, codes = check_labels(y, X)
        # Precomputed targets are kept whole: which of them a fold can use is not known before.
        width = max(n_targets) if targets is None else X.shape[0]
        labeled = labeled_objects(X, codes, check_weights(sample_weight, X), targets, width)
        parts = folds(to_numpy(labeled.codes), self.cv, self.random_state)
        ks = feasible_neighbors(self.n_neighbors, min(len(train) for train, _ in parts))
        grid = Grid(n_targets, Grid.default_penalties() if penalties is None else penalties, ks)
        how = (grid, self.weights, self.center, targets is not None)
        scores = np.stack([score_fold(labeled, train, test, *how) for train, test in parts])
        self.grid_, self.cv_results_, self.scores_ = grid.as_dict(), results(scores, grid), convert(scores, X)
        (self.n_targets_, penalty, self.n_neighbors_), self.best_score_ = best_setting(scores, grid)
        self._store(labeled._replace(targets=labeled.targets[:, : self.n_targets_]), penalty)
        return self

    def _n_neighbors(self) -> int:
        return self.n_neighbors_


def _check_enough(k: int, n_objects: int) -> None:
    if k > n_objects:
        raise ValueError(
            f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {n_objects}: "
            "ask for fewer neighbours or give more labeled objects."
        )
