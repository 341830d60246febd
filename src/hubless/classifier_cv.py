"""MoveLabeledClassifier with its mover and parameters chosen by cross-validation, as RidgeCV is to Ridge."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, device_of, namespace, to_numpy
from .arrays.devices import dispatched, to_device
from .arrays.inputs import (
    check_choice,
    check_counts,
    check_labels,
    check_points,
    check_positive,
    check_queries,
    check_weights,
    or_none,
)
from .arrays.products import keep_threads
from .arrays.types import ArrayLike, ArrayOrNone
from .calibration.calibrate import calibrate, queries_wanted
from .moved_neighbors import VOTES, MovedNeighbors
from .movers import MoveLabeled, Mover, Stay
from .movers.mover import check_used
from .movers.span import in_span
from .neighbors.search import check_enough
from .selection.candidates import check_movers
from .selection.columns import hint_to_scale
from .selection.copies import copied_rows
from .selection.explain import explain, explain_grid, table, without_column_words, without_comparison
from .selection.folds import can_compare, feasible_neighbors, folds
from .selection.grid import GRID, Grid, best_setting, check_grid, cv_results, score_folds
from .selection.race import MAX_NEIGHBORS, Race, n_targets_of
from .selection.validation import Comparison, CrossValidation
from .solve import Alpha, check_alphas
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
        The paper's mover; the best of about 70 combinations (`selection.candidates`), including not moving
        at all; or the best of the given movers, which must be of `hubless.movers`.
    weights : "uniform" or "distance", default="uniform"
        Neighbours vote equally, or by the inverse of their distance.
    center : bool, default=True
        "ridge" moves about the mean of the labeled objects, as the paper does, or about the origin.
    lift : bool, default=True
        Whether moved objects may have one more column (see `moved_`). False for an index that cannot have
        one: movers that need it are then followed by `WithoutColumn`. weights="distance" leaves out both, as
        they give the order of distances alone.
    max_seconds : float or None, default=None
        Stop trying after this many seconds and take the best so far, which depends on the machine's speed.
    cv : int, splitter or iterable of (train, test), default=None
        A number of at least 2 gives that many stratified folds, shuffled by `random_state`; a class smaller
        than that is spread over as many folds as it has objects. None takes 5 folds, 3 with more than 5,000
        objects, leave-one-out with fewer than 10, and in a race 2 with two objects per class. Equal rows stay
        in one fold, as a copy would answer its query, unless values are so coarse that different objects are
        equal by chance. Rows that are nearly equal can be divided: for these, give a splitter, whose folds
        are used as they are. A race takes folds until there are 1,500 queries: of many objects, one or two.
    random_state : int, RandomState or None, default=0
        Seed of the folds where `cv` is a number or None, and of the order of the queries in a race.
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

    Notes
    -----
    With one object per class, or too few objects to hold some out and learn from the others, "ridge" and
    "auto" have nothing to compare, and answer as plain k-NN: `mover_` is Stay, `n_neighbors_` is 1 or the
    smallest number given, `best_score_` is NaN, `cv_results_` has one row, and `explain` says so. For
    "ridge", `W_` is then the identity, `mean_` 0 and `alpha_` NaN; there are no n_targets_, scores_, grid_.

    Where one column has more than 99% of the variance of all, `explain` advises to scale the columns; beyond
    99.9%, `fit` issues a `hubless.ScaleWarning` too.

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
        "best_score_": "number nan",
        "_why": "text",
        "cv_results_": "table",
        "n_targets_": "count optional",
        "grid_": "grid optional",
        "scores_": "ftak nan optional",  # a fold without two objects of a class has no score
    }

    def __init__(
        self,
        n_neighbors: int | Sequence[int] | None = None,
        alphas: Alpha | Sequence[Alpha] | None = None,
        n_targets: int | Sequence[int] = (1,),
        *,
        mover: str | Mover | Sequence[Mover] = "ridge",
        weights: str = "uniform",
        center: bool = True,
        lift: bool = True,
        max_seconds: float | None = None,
        cv: Any = None,
        random_state: int | np.random.RandomState | None = 0,
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
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
        queries: ArrayOrNone = None,
    ) -> Self:
        """Choose by cross-validation, then learn from all labeled objects and move them.

        Parameters
        ----------
        X, y, sample_weight : as in MoveLabeledClassifier; weights also weigh the accuracy. With Dask arrays,
            the choice uses a sample of about 20,000 objects, and all are learned from.
        targets : int array of shape (n, width), optional
            Precomputed targets. A fold takes the first ones that are in its training part, so give more
            columns than are used.
        queries : array of shape (m, d), optional
            Queries without labels, such as those to be predicted. In every fold, and at the end, `Balance`
            learns from them in the place of objects; settings are still compared by held-out objects.
        """
        movers = self._check_fit()
        check_used(queries, [MoveLabeled()] if movers is None else movers)
        # a race finds the targets of each fold, and then those that the chosen mover needs
        n_targets = check_counts("n_targets", self.n_targets) if movers is None else (0,)
        penalties = or_none(check_alphas)("alphas", self.alphas)
        objects = check_points(self, X, min_rows=2)
        queries = check_queries(self, queries, objects)
        objects, queries = (to_device(x, self.device, whole=True) for x in (objects, queries))
        classes, codes = check_labels(y, objects)
        # All precomputed targets are kept: which of them a fold can use is not known yet.
        width = max(n_targets) if targets is None else objects.shape[0]
        weights = check_weights(sample_weight, objects)
        labeled = labeled_objects(objects, codes, weights, targets, width, queries)
        kept = np.flatnonzero(np.ones(objects.shape[0]) if weights is None else to_numpy(weights))
        copies = copied_rows(labeled.X)
        parts = folds(to_numpy(codes), kept, self.cv, self.random_state, copies, needs_pair=movers is None)
        if not movers and not can_compare(to_numpy(labeled.codes), parts, movers is None, self.cv):
            self._stay(classes, labeled)
        elif movers is None:
            grid = Grid(n_targets, penalties or GRID, self._ks(parts))
            self._choose_ridge(Comparison(classes, labeled, parts, targets is not None), grid)
        else:
            self._choose_mover(Comparison(classes, labeled, parts, targets is not None), movers)
        self._why += hint_to_scale(labeled.X, getattr(self, "feature_names_in_", None))
        return self

    def _check_fit(self) -> list[Mover] | None:
        """Return the movers to race, before any data is read: an empty list for all, None for "ridge"."""
        check_choice("weights", self.weights, VOTES)
        return check_movers(self.mover)

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
        if not all(has_grid):
            raise ValueError("n_targets_, grid_ and scores_ belong together, and one is missing.")
        check_grid(self.grid_, self.scores_)

    def _ks(self, parts: Any, most: int | None = None) -> tuple[int, ...]:
        return feasible_neighbors(self.n_neighbors, min(len(train) for train, _ in parts), most)

    def _stay(self, classes: Array, labeled: Labeled) -> None:
        """Answer as plain k-NN, as nothing can be compared."""
        k = 1 if self.n_neighbors is None else min(check_counts("n_neighbors", self.n_neighbors))
        check_enough(k, labeled.X.shape[0])
        self._store(classes, labeled, Stay())
        has_pair = bool(np.bincount(to_numpy(labeled.codes)).max() > 1)
        self._keep_choice(k, float("nan"), *without_comparison(k, has_pair))

    def _copy_map(self) -> None:
        """Copy the map of the paper's mover; the identity where there was nothing to learn it from."""
        super()._copy_map()
        if isinstance(self.mover_, Stay) and self._check_fit() is None:
            d, xp = self.moved_.shape[1], namespace(self.mover_.space_.mean)
            like = {"dtype": self.moved_.dtype, "device": device_of(self.mover_.space_.mean)}
            self.W_, self.mean_, self.alpha_ = xp.eye(d, **like), xp.zeros(d, **like), float("nan")

    def _choose_ridge(self, given: Comparison, grid: Grid) -> None:
        labeled, options = given.labeled, (grid, self.weights, self.center, given.given_targets)
        scores = score_folds(labeled, given.parts, *options)
        (self.n_targets_, penalty, self.n_neighbors_), self.best_score_ = best_setting(scores, grid)
        self.grid_, self.cv_results_ = grid.as_dict(), cv_results(scores, grid)
        self.scores_ = convert(scores, labeled.X)
        chosen = labeled._replace(targets=first_targets(labeled.targets, self.n_targets_))
        mover = MoveLabeled(penalty, self.n_targets_, center=self.center)
        self._store(given.classes, chosen, clone(mover))
        self._calibrate(self._validation(given, chosen, (self.n_neighbors_,), self.n_targets_), mover)
        setting = (penalty, self.n_targets_, self.n_neighbors_)
        self._why = explain_grid(*setting, self.best_score_, scores[0].size, given.classes.shape[0])

    def _choose_mover(self, given: Comparison, movers: list[Mover]) -> None:
        or_none(check_positive)("max_seconds", self.max_seconds)
        labeled, ks = given.labeled, self._ks(given.parts, MAX_NEIGHBORS)
        validation = self._validation(given, in_span(labeled, movers), ks, n_targets_of(movers))
        race = Race(validation, self.lift, self.max_seconds)
        with keep_threads(blas=1):  # a race is many small products
            choice = race.run(movers)
            results, why = table(race, choice), explain(race, choice)
            if not given.given_targets:
                labeled = labeled_objects(*labeled[:3], None, choice.mover._n_targets(), labeled.queries)
            self._store(given.classes, labeled, clone(choice.mover))
            self._keep_choice(choice.n_neighbors, choice.score, results, why)
            self._calibrate(validation, choice.mover)
        self._why += without_column_words(self.mover_)

    def _validation(
        self, given: Comparison, labeled: Labeled, ks: tuple[int, ...], n_targets: int
    ) -> CrossValidation:
        """Return the folds, with queries in random order: otherwise they go by their row."""
        shuffle = check_random_state(self.random_state).permutation
        parts = [(train, shuffle(test)) for train, test in given.parts]
        votes = (ks, self.weights == "distance", given.given_targets, n_targets, given.labeled.X.shape[1])
        return CrossValidation(labeled, int(given.classes.shape[0]), parts, *votes)

    def _keep_choice(self, k: int, score: float, results: dict[str, np.ndarray], why: str) -> None:
        self.n_neighbors_, self.best_score_, self.cv_results_, self._why = k, score, results, why
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
