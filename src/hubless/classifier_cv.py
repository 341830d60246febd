"""MoveLabeledClassifier with its mover and parameters chosen by cross-validation, as RidgeCV is to Ridge."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, to_numpy
from .arrays.devices import dispatched, to_device
from .arrays.inputs import (
    check_choice,
    check_counts,
    check_labels,
    check_points,
    check_positive,
    check_weights,
    or_none,
)
from .calibration.calibrate import calibrate, queries_wanted
from .moved_neighbors import VOTES, MovedNeighbors
from .movers import MoveLabeled, Mover, Stay
from .selection.candidates import name as name_of
from .selection.explain import explain, table
from .selection.folds import feasible_neighbors, folds
from .selection.grid import GRID, Grid, best_setting, cv_results, score_fold
from .selection.race import MAX_NEIGHBORS, Race, n_targets_of
from .selection.validation import CrossValidation
from .solve import check_alphas
from .targets import Labeled, first_targets, labeled_objects

GRID_ATTRIBUTES = ("n_targets_", "grid_", "scores_")  # only with mover="ridge"
CHOICE_ATTRIBUTES = ("n_neighbors_", "best_score_", "cv_results_", "_why", *GRID_ATTRIBUTES)


class MoveLabeledClassifierCV(MovedNeighbors):
    """MoveLabeledClassifier that chooses its parameters, or its mover too, by cross-validated accuracy.

    With mover="ridge", the paper's, it chooses n_neighbors, alpha and n_targets in one pass: per fold one
    search for targets, per fold and number of targets one eigendecomposition, per λ one search for
    neighbours, and every number of neighbours from those. With mover="auto" it chooses among movers and their
    combinations in a race: many settings on few held-out queries, few on many (see `selection.race`).

    Parameters
    ----------
    n_neighbors : sequence of int, default=None
        Numbers of neighbours to try; by default 1, 3, 5, 7, 10, 15, 20, 30 and, for "ridge", 50, as far as
        there are enough objects.
    alphas : sequence of float, default=None
        Penalties λ of "ridge" to try. By default 13 values from 1e-4 to 100 times the mean eigenvalue of
        XKXᵀ, which is computed in each fold.
    n_targets : sequence of int, default=(1,)
        Numbers of targets of "ridge" to try.
    mover : "ridge", "auto", mover or sequence of movers, default="ridge"
        The paper's mover; the best of about 100 combinations (`selection.candidates`), including not moving
        at all; or the best of the given movers, which must be of `hubless.movers`.
    weights : "uniform" or "distance", default="uniform"
        Neighbours vote equally, or by the inverse of their distance.
    center : bool, default=True
        "ridge" moves about the mean of the labeled objects, as the paper does, or about the origin.
    lift : bool, default=True
        Whether movers that need one more column (see `moved_`) are tried. False for an index that cannot have
        one; weights="distance" leaves them out too, as they only give the order of distances.
    max_seconds : float or None, default=None
        Stop trying after this many seconds and take the best so far. With a limit the choice may depend on
        the speed of the machine.
    cv : int, splitter or iterable of (train, test), default=5
        A number of at least 2 gives that many stratified folds, shuffled by `random_state`; a class smaller
        than that is spread over as many folds as it has objects. A race starts with the queries of the first
        fold and stops at 4,000, so of many objects it uses only one or a few folds.
    random_state : int, RandomState or None, default=0
        Seed of the folds where `cv` is a number, and of the order of the queries in a race.
    device : str, default=None
        "cuda", for example, computes arrays of the host there (with torch), if they fit; results are on the
        host.

    Attributes
    ----------
    mover_ : the chosen mover, fitted to all labeled objects
    n_neighbors_ : the chosen number of neighbours
    best_score_ : float
        Accuracy of the choice on held-out queries. It was chosen by these, so expect a little less.
    cv_results_ : dict of arrays
        One row per setting; pandas.DataFrame(cv_results_). For "ridge" as GridSearchCV has it. Otherwise,
        those with the most queries and then the best first: mover, n_neighbors, n_steps, n_queries (held-out
        queries answered before it was dropped), mean_test_score, behind_choice and standard_error (of the
        difference, over the queries that both answered), seconds, and error (why a setting failed).
    n_targets_, scores_, grid_ : only with "ridge"
        The chosen number of targets; the accuracy of every setting in every fold, of shape (n_folds,
        n_targets, alphas, n_neighbors); and the values along its last three axes, where "alpha" holds
        multiples of the mean eigenvalue unless `alphas` was given. Of equal scores, the one with
        fewer targets wins, then the larger λ, then fewer neighbours.
    calibration_ : what held-out queries taught: probabilities for `predict_proba`, and `familiarity`
    W_, mean_, alpha_, moved_, classes_, codes_, weights_, n_singletons_ : as in MoveLabeledClassifier
        `alpha_` is the λ used on all the data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hubless import MoveLabeledClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MoveLabeledClassifierCV(n_targets=(1, 3)).fit(X, y)
    >>> bool(model.best_score_ > 0.95)
    True
    >>> auto = MoveLabeledClassifierCV(mover="auto").fit(X, y)
    >>> "standard error" in auto.explain()
    True
    """

    _learned: ClassVar[dict[str, str]] = {
        **MovedNeighbors._learned,
        "n_neighbors_": "count",
        "best_score_": "number",
        "_why": "text",
        "cv_results_": "table",
        "n_targets_": "count optional",
        "grid_": "grid optional",
        "scores_": "ftak nan optional",  # a fold without two objects of a class has no score
    }

    def __init__(
        self,
        n_neighbors: Any = None,
        alphas: Any = None,
        n_targets: Any = (1,),
        *,
        mover: Any = "ridge",
        weights: str = "uniform",
        center: bool = True,
        lift: bool = True,
        max_seconds: float | None = None,
        cv: Any = 5,
        random_state: Any = 0,
        device: str | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alphas = alphas
        self.n_targets = n_targets
        self.mover = mover
        self.weights = weights
        self.center = center
        self.lift = lift
        self.max_seconds = max_seconds
        self.cv = cv
        self.random_state = random_state
        self.device = device

    @dispatched
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, targets: Any = None
    ) -> "MoveLabeledClassifierCV":
        """Choose by cross-validation, then learn from all labeled objects and move them.

        Parameters
        ----------
        X, y, sample_weight : as in MoveLabeledClassifier; weights also weigh the accuracy. With Dask arrays,
            the choice uses a sample of about 20,000 objects, and all are learned from.
        targets : int array of shape (n, width), optional
            Precomputed targets. A fold takes the first ones that are in its training part, so give more
            columns than are used.
        """
        movers = self._check_fit()
        n_targets = check_counts("n_targets", self.n_targets) if movers is None else (n_targets_of(movers),)
        penalties = or_none(check_alphas)("alphas", self.alphas)
        X = to_device(check_points(self, X, min_rows=2), self.device, whole=True)
        classes, codes = check_labels(y, X)
        # All precomputed targets are kept: which of them a fold can use is not known yet.
        width = max(n_targets) if targets is None else X.shape[0]
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, width)
        kept = np.flatnonzero(np.ones(X.shape[0]) if weights is None else to_numpy(weights))
        parts = folds(to_numpy(codes), kept, self.cv, self.random_state)
        if movers is None:
            grid = Grid(n_targets, penalties or GRID, self._ks(parts))
            self._choose_ridge(classes, labeled, parts, grid, targets is not None)
        else:
            self._choose_mover(classes, labeled, parts, movers, targets is not None)
        return self

    def _check_fit(self) -> list[Mover] | None:
        """Return the movers to race, before any data is read: an empty list for all, None for "ridge"."""
        check_choice("weights", self.weights, VOTES)
        if isinstance(self.mover, str):
            check_choice("mover", self.mover, ("ridge", "auto"))
            return None if self.mover == "ridge" else []
        movers = [*self.mover] if np.iterable(self.mover) else [self.mover]
        if not movers or not all(isinstance(mover, Mover) for mover in movers):
            raise ValueError(
                'mover must be "ridge", "auto", or movers of hubless.movers, such as Shrink(0.3) or '
                f"[Stay(), Shrink(0.3)]; got {self.mover!r}."
            )
        for mover in movers:
            mover._check_nested("a classifier")
        return movers

    def _check_parameters(self) -> None:
        """Refuse invalid parameters, including those that this choice ignores."""
        self._check_fit()
        check_counts("n_targets", self.n_targets)
        or_none(check_counts)("n_neighbors", self.n_neighbors)
        or_none(check_alphas)("alphas", self.alphas)
        or_none(check_positive)("max_seconds", self.max_seconds)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        has_grid = [hasattr(self, name) for name in GRID_ATTRIBUTES]
        if not any(has_grid):  # a race has none
            return
        if not all(has_grid) or [*self.grid_] != ["n_targets", "alpha", "n_neighbors"]:
            raise ValueError("n_targets_, grid_ and scores_ belong together, and one is missing.")
        lengths = tuple(len(values) for values in self.grid_.values())
        if tuple(self.scores_.shape[1:]) != lengths:
            raise ValueError(
                f"scores_ has the shape {tuple(self.scores_.shape)}; expected (any, *{lengths})."
            )

    def _take_choice(self, other: "MoveLabeledClassifierCV") -> None:
        """Copy what another classifier chose, and why."""
        for name in CHOICE_ATTRIBUTES:
            self.__dict__.pop(name, None)
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _ks(self, parts: Any, most: int | None = None) -> tuple[int, ...]:
        return feasible_neighbors(self.n_neighbors, min(len(train) for train, _ in parts), most)

    def _choose_ridge(
        self, classes: Array, labeled: Labeled, parts: Any, grid: Grid, given_targets: bool
    ) -> None:
        options = (grid, self.weights, self.center, given_targets)
        scores = np.stack([score_fold(labeled, train, test, *options) for train, test in parts])
        (self.n_targets_, penalty, self.n_neighbors_), self.best_score_ = best_setting(scores, grid)
        self.grid_, self.cv_results_ = grid.as_dict(), cv_results(scores, grid)
        self.scores_ = convert(scores, labeled.X)
        chosen = labeled._replace(targets=first_targets(labeled.targets, self.n_targets_))
        self._store(classes, chosen, MoveLabeled(penalty, self.n_targets_, center=self.center))
        shuffle = check_random_state(self.random_state).permutation  # else they go by their row, or class
        shuffled = [(train, shuffle(test)) for train, test in parts]
        votes = ((self.n_neighbors_,), self.weights == "distance", given_targets)
        validation = CrossValidation(chosen, int(classes.shape[0]), shuffled, *votes)
        self._calibrate(validation, MoveLabeled(penalty, self.n_targets_, center=self.center))
        plural = "s" * (self.n_neighbors_ > 1)
        self._why = (
            f"MoveLabeled with alpha={self.alpha_:.3g}, n_targets={self.n_targets_} and "
            f"{self.n_neighbors_} neighbour{plural}: {self.best_score_:.1%} of held-out queries are answered "
            f"correctly, the best of {scores[0].size} settings."
        )

    def _choose_mover(
        self, classes: Array, labeled: Labeled, parts: Any, movers: list[Mover], given_targets: bool
    ) -> None:
        or_none(check_positive)("max_seconds", self.max_seconds)
        shuffle = check_random_state(self.random_state).permutation
        validation = CrossValidation(
            labeled,
            int(classes.shape[0]),
            [(train, shuffle(test)) for train, test in parts],
            self._ks(parts, MAX_NEIGHBORS),
            self.weights == "distance",
            given_targets,
        )
        race = Race(validation, self.lift and self.weights == "uniform", self.max_seconds)
        choice = race.run(movers)
        results, why = table(race, choice), explain(race, choice)
        self._store(classes, labeled, clone(choice.mover))
        self.n_neighbors_, self.best_score_ = choice.n_neighbors, choice.score
        self.cv_results_, self._why = results, why
        self._calibrate(validation, choice.mover)
        for name in GRID_ATTRIBUTES:  # those of an earlier fit
            self.__dict__.pop(name, None)

    def _calibrate(self, validation: CrossValidation, mover: Mover) -> None:
        """Learn probabilities from queries of the folds, answered by the choice and by objects of others."""
        held_out = validation.held_out(mover, self.n_neighbors_, *queries_wanted(validation.n_classes))
        self.calibration_ = calibrate(held_out)

    def explain(self) -> str:
        """Return what was chosen, and why, in a few sentences."""
        check_is_fitted(self)
        return self._why

    def _n_neighbors(self) -> int:
        return self.n_neighbors_


def plain_neighbors(model: MoveLabeledClassifierCV, X: Any, y: Any) -> int:
    """Return the number of neighbours that is best without moving the objects that a model was fitted to."""
    movers = model.cv_results_.get("mover", np.array([], dtype=str))
    rows = np.flatnonzero(movers == name_of(Stay()))
    if len(rows):
        return int(model.cv_results_["n_neighbors"][rows[0]])
    tried = model.grid_["n_neighbors"] if hasattr(model, "grid_") else model.n_neighbors
    plain = MoveLabeledClassifierCV(
        tried, mover=Stay(), weights=model.weights, cv=model.cv, random_state=model.random_state
    )
    return int(plain.fit(X, y, sample_weight=model.weights_).n_neighbors_)
