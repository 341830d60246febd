"""MoveLabeledClassifier with its parameters chosen by cross-validation, as RidgeCV stands beside Ridge."""

from typing import Any

import numpy as np

from .arrays import convert, to_numpy
from .classifier import VOTES, MovedNeighbors
from .inputs import check_alphas, check_choice, check_counts, check_labels, check_points, check_weights
from .selection import Grid, best_setting, feasible_neighbors, folds, results, score_fold
from .targets import first_targets, labeled_objects


class MoveLabeledClassifierCV(MovedNeighbors):
    """MoveLabeledClassifier that chooses n_neighbors, alpha and n_targets by cross-validated accuracy.

    One pass: per fold one search for targets, per fold and number of targets one eigendecomposition, per λ
    one search for neighbours, and every number of neighbours from those.

    Parameters
    ----------
    n_neighbors : sequence of int, default=None
        Numbers of neighbours to try; by default 1, 3, 5, 7, 10, 15, 20, 30 and 50, as far as there are
        objects enough.
    alphas : sequence of float, default=None
        Penalties λ to try. By default 13 values from 1e-4 to 100 times the mean eigenvalue of XKXᵀ, which is
        taken anew in each fold.
    n_targets : sequence of int, default=(1,)
        Numbers of targets to try.
    weights : "uniform" or "distance", default="uniform"
        Neighbours vote equally, or by the inverse of their distance.
    center : bool, default=True
        Move about the mean of the labeled objects, as the paper does, or about the origin.
    cv : int, splitter or iterable of (train, test), default=5
        A number of at least 2 gives that many stratified folds, shuffled by `random_state`; a class smaller
        than that is spread over as many folds as it has objects.
    random_state : int, RandomState or None, default=0
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
        check_choice("weights", self.weights, VOTES)
        n_targets = check_counts("n_targets", self.n_targets)
        penalties = None if self.alphas is None else check_alphas(self.alphas)
        X = check_points(self, X, min_rows=2)
        classes, codes = check_labels(y, X)
        # Precomputed targets are kept whole: which of them a fold can use is not known before.
        width = max(n_targets) if targets is None else X.shape[0]
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, width)
        kept = np.flatnonzero(np.ones(X.shape[0]) if weights is None else to_numpy(weights))
        parts = folds(to_numpy(codes), kept, self.cv, self.random_state)
        ks = feasible_neighbors(self.n_neighbors, min(len(train) for train, _ in parts))
        grid = Grid(n_targets, Grid.default_penalties() if penalties is None else penalties, ks)
        how = (grid, self.weights, self.center, targets is not None)
        scores = np.stack([score_fold(labeled, train, test, *how) for train, test in parts])
        (self.n_targets_, penalty, self.n_neighbors_), self.best_score_ = best_setting(scores, grid)
        self.grid_, self.cv_results_, self.scores_ = grid.as_dict(), results(scores, grid), convert(scores, X)
        self._store(
            classes, labeled._replace(targets=first_targets(labeled.targets, self.n_targets_)), penalty
        )
        return self

    def _n_neighbors(self) -> int:
        return self.n_neighbors_
