"""Choose a mover by cross-validation, in one race: many settings on few queries, few settings on many.

    simple movers → the best, each with Balance → the best, each with Steer → finals → one-standard-error rule

Every setting answers the same queries in the same order, each query by objects of the other folds, so that
two settings are compared query by query. A setting that falls far behind is given up. Which queries a setting
answers depends on the data and the seed alone, not on the speed of the machine, unless a limit of seconds is
given. Queries are answered fold by fold, and no more than LAST_ROUND of them: where a fold has that many, one
split decides, which costs a fifth of all folds and whose standard error is that of the queries.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from ..arrays import Array, convert, to_numpy
from ..movers import Mover
from ..movers.points import Points, QuerySpace, as_queries, to_query_space, weighted_mean
from ..targets import Labeled
from .candidates import balanced, simple_movers, steered, steps
from .folds import TIE, mean_and_error, predict_by_ks, training_part

EARLIEST = 250  # queries after which a setting may be given up
FAR_BEHIND = 3.0  # standard errors behind the leader


@dataclass(eq=False)
class Trial:
    """One setting and its answers."""

    mover: Mover
    number: int  # in the order in which settings were tried
    ks: tuple[int, ...]
    weights: np.ndarray = field(repr=False)  # of all queries
    correct: np.ndarray = field(repr=False)  # (queries so far, ks), bool
    score: float = -np.inf  # accuracy with the best k
    column: int = 0  # of the best k; the smallest of equal ones
    seconds: float = 0.0
    error: str = ""  # why it could not be fitted

    def __post_init__(self) -> None:
        self.steps = steps(self.mover)
        self.keys = [(type(step), *step.get_params(deep=False).values()) for step in self.steps]

    @property
    def n_neighbors(self) -> int:
        """The best number of neighbours."""
        return self.ks[self.column]

    @property
    def n_queries(self) -> int:
        """How many queries it has answered."""
        return len(self.correct)

    def add(self, correct: np.ndarray) -> None:
        """Add whether further queries were answered correctly; shape (queries, ks)."""
        self.correct = np.concatenate([self.correct, correct])
        w = self.weights[: self.n_queries]
        means = (w @ self.correct) / w.sum()
        self.column = int(np.argmax(means > means.max() - TIE))
        self.score = float(means[self.column])

    def first(self, n_queries: int) -> "Trial":
        """Return the same trial as it was after its first n queries."""
        if self.n_queries == n_queries:
            return self
        before = replace(self, correct=self.correct[:0])
        before.add(self.correct[:n_queries])
        return before

    def behind(self, other: "Trial") -> tuple[float, float]:
        """Return by how much the other is more accurate on the queries that both answered, and its error."""
        m = min(self.n_queries, other.n_queries)
        if m == 0:
            return np.inf, 0.0
        apart = other.correct[:m, other.column].astype(float) - self.correct[:m, self.column]
        return mean_and_error(apart, self.weights[:m])

    def is_far_behind(self, leader: "Trial | None") -> bool:
        """Return whether it has answered enough queries to say that it will not catch up."""
        if leader is None or self.n_queries < max(1, min(EARLIEST, leader.n_queries // 3)):
            return False
        behind, error = self.behind(leader)
        return behind > max(FAR_BEHIND * error, 0.01)


# --- where settings are tried -------------------------------------------------------------------------------


CACHED = 1 << 28  # numbers of moved objects that are kept, for chains that begin alike


@dataclass
class CrossValidation:
    """Folds of labeled objects, and the queries in the order in which every setting answers them."""

    labeled: Labeled
    n_classes: int
    folds: list[tuple[np.ndarray, np.ndarray]]
    ks: tuple[int, ...]
    by_distance: bool = False
    given_targets: bool = False

    def __post_init__(self) -> None:
        order, weights = np.concatenate([test for _, test in self.folds]), self.labeled.weights
        self.n_queries = len(order)
        self.query_weights = np.ones(len(order)) if weights is None else to_numpy(weights)[order]
        self.unmoved: dict[int, Points] = {}  # by fold
        self.cache: dict[tuple[Any, ...], Points] = {}  # moved points by fold and movers

    def new_trial(self, mover: Mover, number: int) -> Trial:
        """Return a setting that has answered no query yet."""
        none = np.zeros((0, len(self.ks)), dtype=bool)
        return Trial(mover, number, self.ks, self.query_weights, none)

    def extend(self, trial: Trial, n_queries: int, leader: Trial | None = None) -> None:
        """Continue a trial until it has answered n queries, or is far behind the leader."""
        start, first = perf_counter(), 0
        for i, (_, test) in enumerate(self.folds):
            done, wanted = (min(max(m - first, 0), len(test)) for m in (trial.n_queries, n_queries))
            if wanted > done and not trial.is_far_behind(leader):
                try:
                    points = self._moved(trial, len(trial.steps), i)
                    mean = weighted_mean(self._start(i).X, points.weights)
                    moved, space = to_query_space(points, None, mean)
                except ValueError as error:  # for example, no two objects of a class are in this fold
                    trial.error, trial.score = str(error), -np.inf
                    break
                pause = min(done + EARLIEST, wanted)
                for part in (test[done:pause], test[pause:wanted]):
                    if len(part) and not trial.is_far_behind(leader):
                        trial.add(self._answer(moved, space, points, part))
            first += len(test)
        trial.seconds += perf_counter() - start

    def _moved(self, trial: Trial, n_steps: int, fold: int) -> Points:
        """Return the objects of a fold after n steps; chains that begin alike learn their beginning once."""
        if n_steps == 0:
            return self._start(fold)
        key = (fold, *trial.keys[:n_steps])
        points = self.cache.pop(key, None)
        if points is None:
            before = self._moved(trial, n_steps - 1, fold)
            points = clone(trial.steps[n_steps - 1])._learn(before)
        self.cache[key] = points  # the last one used goes last
        while sum(2 * math.prod(kept.Z.shape) for kept in self.cache.values()) > CACHED:
            self.cache.pop(next(iter(self.cache)))
        return points

    def _answer(self, moved: Array, space: QuerySpace, points: Points, test: np.ndarray) -> np.ndarray:
        """Return whether each query gets its class, for each k; shape (queries, ks)."""
        held_out = self.labeled.take(convert(test, self.labeled.X))
        queries = as_queries(held_out.X, space)
        predicted = predict_by_ks(queries, moved, points.codes, points.weights, self.ks, self.by_distance)
        return np.stack([to_numpy(classes == held_out.codes) for classes in predicted], axis=1)

    def _start(self, fold: int) -> Points:
        """Return the objects of a fold before any move, with their targets."""
        if fold not in self.unmoved:
            width = self.labeled.targets.shape[1]
            part = training_part(self.labeled, self.folds[fold][0], width, self.given_targets)
            self.unmoved[fold] = Points.of(part, self.n_classes)
        return self.unmoved[fold]


# --- the race -----------------------------------------------------------------------------------------------


MAX_NEIGHBORS = 30  # the largest k that is tried
FIRST_ROUND = 1000  # queries of the first comparison
LAST_ROUND = 6000  # queries of the last one
EXTENDED = 3  # settings that are extended by further steps; one more goes to the finals
TO_MOVE = 2.0  # standard errors by which the best must be ahead of Stay


class Race:
    """Trials of a race, its clock and its choice."""

    def __init__(self, folds: CrossValidation, lift: bool = True, max_seconds: float | None = None) -> None:
        """`lift` allows movers with a column; `max_seconds` ends the race."""
        self.folds, self.lift, self.max_seconds = folds, lift, max_seconds
        self.trials: list[Trial] = []
        self.leader: Trial | None = None
        self.first_round = self.compared = 0  # queries of the first comparison, and of the one that decides
        self.started = perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return perf_counter() - self.started

    def is_out_of_time(self) -> bool:
        """Return whether nothing more may be tried; the first setting always is."""
        return bool(self.trials) and self.max_seconds is not None and self.seconds > self.max_seconds

    def run(self, movers: list[Mover]) -> Trial:
        """Choose among given movers or, with none given, simple ones and what they can be extended to."""
        n = self.folds.n_queries
        if n == 0:
            raise ValueError("every test part of cv is empty: there is no query to compare movers by.")
        final, few = min(LAST_ROUND, n), -(-3 * n // 5)  # with few objects, three of five folds
        self.first_round = self.compared = min(FIRST_ROUND, few)
        self._try(movers or simple_movers())
        if not movers:
            for extend in (balanced, steered):
                best = _best_of_each_kind(self.trials, EXTENDED)
                self._try([new for trial in best for new in extend(trial.mover)])
        for trial in self._finalists(allow_same_kind=bool(movers)):
            if self.is_out_of_time():
                break
            self.folds.extend(trial, final)
        else:
            self.compared = final
        return self.choice()

    def _try(self, movers: Iterable[Mover]) -> None:
        """Try movers on the queries of the first round."""
        for mover in movers:
            if self.is_out_of_time():
                return
            if mover._adds_column and not self.lift:
                continue
            trial = self.folds.new_trial(mover, len(self.trials))
            self.folds.extend(trial, self.first_round, self.leader)
            self.trials.append(trial)
            # one that was given up may score as high as the leader, by fewer queries
            if trial.error or trial.is_far_behind(self.leader):
                continue
            if self.leader is None or trial.score > self.leader.score:
                self.leader = trial

    def _finalists(self, allow_same_kind: bool) -> list[Trial]:
        """Return the best settings, and the best of each number of steps, down to not moving at all."""
        ranked = sorted(self.trials, key=lambda trial: (-trial.score, trial.number))
        best = ranked[: EXTENDED + 1] if allow_same_kind else _best_of_each_kind(ranked, EXTENDED + 1)
        by_steps: dict[int, Trial] = {}
        for trial in ranked:
            by_steps.setdefault(len(trial.steps), trial)
        chosen = {trial.number: trial for trial in (*best, *by_steps.values())}
        learned = [chosen[number] for number in sorted(chosen) if not chosen[number].error]
        return [trial for trial in learned if not trial.is_far_behind(self.leader)]

    def choice(self) -> Trial:
        """Return the simplest of the settings that are within one standard error of the best.

        It is Stay, where that was tried, unless the best is ahead of it by more than TO_MOVE standard errors:
        the best of many settings is often ahead by one by chance.
        """
        last, best = self.compared_trials(), self.best()
        near = [trial for trial in last if _is_near(trial, best, 1.0 if trial.steps else TO_MOVE)]
        return min(
            near, key=lambda trial: (len(trial.steps), trial.mover._adds_column, -trial.score, trial.number)
        )

    def best(self) -> Trial:
        """Return the most accurate of the last comparison."""
        return max(self.compared_trials(), key=lambda trial: (trial.score, -trial.number))

    def compared_trials(self) -> list[Trial]:
        """Return the settings that answered all queries of the last comparison that was finished."""
        learned = [trial for trial in self.trials if not trial.error]
        if not learned:
            no_lift = 'each adds a column, which lift=False and weights="distance" exclude.'
            why = self.trials[0].error if self.trials else no_lift
            raise ValueError(f"no mover could learn from these objects: {why}")
        enough = min(self.compared, max(trial.n_queries for trial in learned))
        return [trial.first(enough) for trial in learned if trial.n_queries >= enough]


def _is_near(trial: Trial, best: Trial, n_errors: float) -> bool:
    behind, error = trial.behind(best)
    return behind <= n_errors * error + TIE


def _best_of_each_kind(trials: list[Trial], most: int) -> list[Trial]:
    """Return the best trials, no two of which differ in their parameters alone."""
    kinds: dict[tuple[str, ...], Trial] = {}
    for trial in sorted(trials, key=lambda trial: (-trial.score, trial.number)):
        if not trial.error:
            kinds.setdefault(tuple(type(step).__name__ for step in trial.steps), trial)
    return list(kinds.values())[:most]


def n_targets_of(movers: list[Mover]) -> int:
    """Return the targets per object that a race over the movers needs."""
    return max(mover._n_targets() for mover in movers or simple_movers())
