"""MoveLabeledClassifier with its mover and parameters chosen by cross-validation, as RidgeCV is to Ridge."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, is_dask, to_numpy
from .candidates import learned_in_parts
from .candidates import name as name_of
from .classifier import VOTES, MovedNeighbors
from .devices import to_device
from .distributed.classify import stored
from .distributed.learn import Ways, blocks_of, learn_seen, some, survey
from .inputs import (
    check_alphas,
    check_choice,
    check_counts,
    check_labels,
    check_points,
    check_positive,
    check_weights,
)
from .large.sampling import Drawn, check_max_pairs
from .movers import MoveLabeled, Mover, Stay
from .movers.mover import refuse_on_dask
from .race import NEIGHBORS as RACED_NEIGHBORS
from .race import Arena, Race, explain, n_targets_of, table
from .selection import NEIGHBORS, Grid, best_setting, feasible_neighbors, folds, results, score_fold
from .targets import Labeled, first_targets, labeled_objects

CHOSEN_ON = 20_000  # objects on Dask that a choice is made on


class MoveLabeledClassifierCV(MovedNeighbors):
    """MoveLabeledClassifier that chooses its parameters, or its mover too, by cross-validated accuracy.

    With mover="ridge", the paper's, it chooses n_neighbors, alpha and n_targets in one pass: per fold one
    search for targets, per fold and number of targets one eigendecomposition, per λ one search for
    neighbours, and every number of neighbours from those. With mover="auto" it chooses among movers and their
    combinations in a race: many settings on few held-out queries, few on many (see `hubless.race`).

    Parameters
    ----------
    n_neighbors : sequence of int, default=None
        Numbers of neighbours to try; by default 1, 3, 5, 7, 10, 15, 20, 30 and, for "ridge", 50, as far as
        there are objects enough.
    alphas : sequence of float, default=None
        Penalties λ of "ridge" to try. By default 13 values from 1e-4 to 100 times the mean eigenvalue of
        XKXᵀ, which is taken anew in each fold.
    n_targets : sequence of int, default=(1,)
        Numbers of targets of "ridge" to try.
    mover : "ridge", "auto", mover or sequence of movers, default="ridge"
        The paper's mover; the best of some 50 combinations (`hubless.candidates`), not to move included; or
        the best of those given, which must be of `hubless.movers`.
    weights : "uniform" or "distance", default="uniform"
        Neighbours vote equally, or by the inverse of their distance.
    center : bool, default=True
        "ridge" moves about the mean of the labeled objects, as the paper does, or about the origin.
    lift : bool, default=True
        Whether movers that need one more column (see `moved_`) take part. False for an index that cannot have
        one; weights="distance" leaves them out too, as they give the order of distances alone.
    max_seconds : float or None, default=None
        Stop trying after so long and take the best so far. With a limit the choice may depend on the speed
        of the machine.
    cv : int, splitter or iterable of (train, test), default=5
        A number of at least 2 gives that many stratified folds, shuffled by `random_state`; a class smaller
        than that is spread over as many folds as it has objects. A race asks the queries of the first fold
        first and stops at 6,000, so of many objects it sees one or a few folds alone.
    random_state : int, RandomState or None, default=0
        Seed of the folds where `cv` is a number, and of the order in which "auto" asks queries.
    device : str, default=None
        "cuda", say, computes arrays of the host there (with torch), if they fit; results are on the host.

    Attributes
    ----------
    mover_ : the chosen mover, fitted to all labeled objects
    n_neighbors_ : the chosen number of neighbours
    best_score_ : float
        Accuracy of the choice on held-out queries. As it was chosen for it, expect a little less.
    cv_results_ : dict of arrays
        One row per setting; pandas.DataFrame(cv_results_). For "ridge" as GridSearchCV has it. Else, the most
        asked and then the best first: mover, n_neighbors, n_steps, n_queries (held-out queries answered
        before it was given up), mean_test_score, behind_choice and standard_error (of the difference, over
        the queries that both answered), seconds, and error, why a setting could not be learned.
    alpha_, n_targets_, scores_, grid_ : only with "ridge"
        The choice, where `alpha_` is the λ used on all the data; the accuracy of every setting in every fold,
        of shape (n_folds, n_targets, alphas, n_neighbors); and the values along its last three axes, where
        "alpha" holds multiples of the mean eigenvalue unless `alphas` was given. Equal scores go to fewer
        targets, then the larger λ, then fewer neighbours.
    W_, mean_, moved_, classes_, codes_, weights_, n_singletons_ : as in MoveLabeledClassifier

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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, targets: Any = None
    ) -> "MoveLabeledClassifierCV":
        """Choose by cross-validation, then learn from all labeled objects and move them.

        Parameters
        ----------
        X, y, sample_weight : as in MoveLabeledClassifier; weights also weigh the accuracy. Of objects on
            Dask, some 20,000 are chosen on, and all are learned from.
        targets : int array of shape (n, width), optional
            Precomputed targets. A fold takes the first ones that are in its training part, so give more
            columns than are used.
        """
        check_choice("weights", self.weights, VOTES)
        movers = self._check_movers()
        if is_dask(X):
            return self._fit_dask(X, y, sample_weight, targets, movers)
        n_targets = check_counts("n_targets", self.n_targets) if movers is None else (n_targets_of(movers),)
        penalties = None if self.alphas is None else check_alphas(self.alphas)
        X = to_device(check_points(self, X, min_rows=2), self.device, whole=True)
        classes, codes = check_labels(y, X)
        # Precomputed targets are kept whole: which of them a fold can use is not known before.
        width = max(n_targets) if targets is None else X.shape[0]
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, width)
        kept = np.flatnonzero(np.ones(X.shape[0]) if weights is None else to_numpy(weights))
        parts = folds(to_numpy(codes), kept, self.cv, self.random_state)
        given = targets is not None
        if movers is None:
            grid = Grid(
                n_targets,
                Grid.default_penalties() if penalties is None else penalties,
                self._ks(parts, NEIGHBORS),
            )
            self._choose_ridge(classes, labeled, parts, grid, given)
        else:
            self._choose_mover(classes, labeled, parts, movers, given)
        return self

    def _fit_dask(
        self, X: Any, y: Any, sample_weight: Any, targets: Any, movers: list[Mover] | None
    ) -> "MoveLabeledClassifierCV":
        """Choose on a sample, which one worker does, and learn from all objects on Dask."""
        refuse_on_dask(
            sample_weight=sample_weight, targets=targets, device=self.device, alphas=self.alphas
        )  # a given λ is for all objects, and the best one on a sample would be too small for them
        objects = blocks_of(X, y)
        seen, chooser = survey(objects), clone(self)
        if movers == []:
            chooser.set_params(mover=[Stay(), *learned_in_parts()], lift=False)
        chosen = some(objects, seen, CHOSEN_ON, 0, fitted_to, chooser)
        mover = clone(chosen.mover_)
        ways = Ways(check_max_pairs("auto", objects.n_columns))
        mover._fit_sums(seen, learn_seen(objects, seen, mover._lesson(seen.mean), ways))
        mover._keep_names(X)
        self._take_from(mover)
        self._keep(mover, seen.classes, None, *stored(X, y, mover, seen))
        for name in ("n_neighbors_", "best_score_", "cv_results_", "_why", "n_targets_", "scores_", "grid_"):
            self.__dict__.pop(name, None)
            if hasattr(chosen, name):
                setattr(self, name, getattr(chosen, name))
        self._why += f" It was chosen on {chosen.codes_.shape[0]:,} of {seen.n:,} objects."
        return self

    def _check_movers(self) -> list[Mover] | None:
        """The movers to race, all of them for an empty list; None for "ridge"."""
        if isinstance(self.mover, str):
            check_choice("mover", self.mover, ("ridge", "auto"))
            return None if self.mover == "ridge" else []
        movers = [*self.mover] if np.iterable(self.mover) else [self.mover]
        if not movers or not all(isinstance(mover, Mover) for mover in movers):
            raise ValueError(
                'mover must be "ridge", "auto", or movers of hubless.movers, as Shrink(0.3) or '
                f"[Stay(), Shrink(0.3)]; got {self.mover!r}."
            )
        for mover in movers:
            mover._check_inside("a classifier")
        return movers

    def _ks(self, parts: Any, default: tuple[int, ...]) -> tuple[int, ...]:
        return feasible_neighbors(self.n_neighbors, min(len(train) for train, _ in parts), default)

    def _choose_ridge(
        self, classes: Array, labeled: Labeled, parts: Any, grid: Grid, given_targets: bool
    ) -> None:
        how = (grid, self.weights, self.center, given_targets)
        scores = np.stack([score_fold(labeled, train, test, *how) for train, test in parts])
        (self.n_targets_, penalty, self.n_neighbors_), self.best_score_ = best_setting(scores, grid)
        self.grid_, self.cv_results_ = grid.as_dict(), results(scores, grid)
        self.scores_ = convert(scores, labeled.X)
        own = labeled._replace(targets=first_targets(labeled.targets, self.n_targets_))
        self._store(classes, own, MoveLabeled(penalty, self.n_targets_, center=self.center))
        self._why = (
            f"MoveLabeled with alpha={self.alpha_:.3g}, n_targets={self.n_targets_} and "
            f"{self.n_neighbors_} neighbours: {self.best_score_:.1%} right on held-out queries, the best of "
            f"{scores[0].size} settings."
        )

    def _choose_mover(
        self,
        classes: Array,
        labeled: Labeled,
        parts: Any,
        movers: list[Mover],
        given_targets: bool,
    ) -> None:
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        shuffle = check_random_state(self.random_state).permutation
        arena = Arena(
            labeled,
            int(classes.shape[0]),
            [(train, shuffle(test)) for train, test in parts],
            self._ks(parts, RACED_NEIGHBORS),
            self.weights == "distance",
            given_targets,
        )
        race = Race(arena, self.lift and self.weights == "uniform", self.max_seconds)
        choice = race.run(movers)
        found = table(race, choice), explain(race, choice)
        self._store(classes, labeled, clone(choice.mover))
        self.n_neighbors_, self.best_score_ = choice.n_neighbors, choice.score
        self.cv_results_, self._why = found
        for name in ("n_targets_", "scores_", "grid_"):  # those of an earlier fit go
            self.__dict__.pop(name, None)

    def explain(self) -> str:
        """What was chosen, and why, in a few sentences."""
        check_is_fitted(self)
        return self._why

    def _n_neighbors(self) -> int:
        return self.n_neighbors_


def fitted_to(sample: Any, model: MoveLabeledClassifierCV) -> MoveLabeledClassifierCV:
    """A classifier that chose on objects that were drawn."""
    X, y, _ = Drawn.joined(sample)
    return model.fit(X, y.astype(str) if y.dtype == object else y)


def plain_neighbors(model: MoveLabeledClassifierCV) -> int | None:
    """The number of neighbours that was best where objects were not moved; None where that was not tried."""
    movers = model.cv_results_.get("mover", np.array([], dtype=str))
    rows = np.flatnonzero(movers == name_of(Stay()))
    return int(model.cv_results_["n_neighbors"][rows[0]]) if len(rows) else None
