"""Where a race tries its settings: folds of labeled objects, whose work the settings share."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from ..arrays import Array, convert, to_numpy
from ..calibration.calibrate import HeldOut
from ..calibration.evidence import Stored
from ..movers import Mover, Steer
from ..movers.log_odds import LogisticProblem, LogOdds, log_odds
from ..movers.points import (
    Points,
    QuerySpace,
    as_compared,
    as_queries,
    mean_square,
    to_query_space,
    weighted_mean,
)
from ..targets import Labeled
from .folds import predict_by_ks, training_part
from .kept_points import KeptPoints
from .steering import nearest_of_each_class, steered_classes
from .trial import EARLIEST, Trial

STEPS = 10  # of L-BFGS for each penalty: enough to compare settings, as each starts where the last ended


@dataclass
class SharedOdds:
    """Logistic regressions of one fold, from the largest penalty to the smallest."""

    problem: LogisticProblem
    solved: dict[float, LogOdds] = field(default_factory=dict)  # by penalty

    def at(self, alpha: float) -> LogOdds:
        """Return the log-odds for a penalty, starting from those of the next larger one."""
        if alpha not in self.solved:
            start = self.solved[min(self.solved)] if self.solved else None
            self.solved[alpha] = self.problem.solve(alpha, start, max_iter=STEPS)
        return self.solved[alpha]


def is_logistic(step: Mover) -> bool:
    """Return whether a mover is Steer by logistic regression."""
    return isinstance(step, Steer) and step.classifier == "logistic"


class Comparison(NamedTuple):
    """What settings are compared by."""

    classes: Array
    labeled: Labeled
    parts: list[tuple[np.ndarray, ...]]  # (train, test) of each fold
    given_targets: bool  # whether the targets were precomputed


@dataclass
class CrossValidation:
    """Folds of labeled objects, and the queries in the order in which every setting answers them."""

    labeled: Labeled
    n_classes: int
    folds: list[tuple[np.ndarray, np.ndarray]]
    ks: tuple[int, ...]
    by_distance: bool = False
    given_targets: bool = False
    n_targets: int = 0  # per object, to be found in each fold unless they are given
    columns: int | None = None  # of the input, where the objects are in their span

    def __post_init__(self) -> None:
        order, weights = np.concatenate([test for _, test in self.folds]), self.labeled.weights
        self.n_queries = len(order)
        self.query_weights = np.ones(len(order)) if weights is None else to_numpy(weights)[order]
        self.unmoved: dict[int, Points] = {}  # by fold
        self.odds: dict[int, SharedOdds] = {}  # by fold
        self.kept = KeptPoints(self.labeled.X)  # moved points by fold and movers

    def queries_of_folds(self, enough: int) -> int:
        """Return how many queries the first folds have, as many folds as it takes to have enough."""
        counts = np.cumsum([len(test) for _, test in self.folds])
        return int(counts[min(int(np.searchsorted(counts, enough)), len(counts) - 1)])

    def is_thin(self) -> bool:
        """Return whether most queries have less than two objects of their class to be answered by.

        What is learned from a class then shows little of what it is worth with one object more.
        """
        codes, alike = to_numpy(self.labeled.codes), []
        for train, test in self.folds:
            alike.append(np.bincount(codes[train], minlength=self.n_classes)[codes[test]])
        return bool(np.median(np.concatenate(alike)) < 2)

    def new_trial(self, mover: Mover, number: int, ks: tuple[int, ...] | None = None) -> Trial:
        """Return a setting that has answered no query yet."""
        ks = ks or self.ks
        return Trial(mover, number, ks, self.query_weights, np.zeros((0, len(ks)), dtype=bool))

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

    def extend_steered(self, trials: list[Trial], n_queries: int) -> None:
        """Let trials that differ in their Steer alone answer n queries by one neighbour, from one search."""
        start, first = perf_counter(), 0
        for i, (_, test) in enumerate(self.folds):
            wanted = test[: min(max(n_queries - first, 0), len(test))]
            first += len(test)
            if not len(wanted):
                continue
            try:
                points = self._moved(trials[0], len(trials[0].steps) - 1, i)
            except ValueError as error:  # as in `extend`
                for trial in trials:
                    trial.error, trial.score = str(error), -np.inf
                break
            self._answer_steered(trials, points, i, wanted)
        for trial in trials:
            trial.seconds += (perf_counter() - start) / len(trials)

    def _answer_steered(self, trials: list[Trial], points: Points, fold: int, test: np.ndarray) -> None:
        held_out, unit = (
            self.labeled.take(convert(test, self.labeled.X)),
            mean_square(points.X, points.weights),
        )
        near = nearest_of_each_class(as_compared(held_out.X, points), points)
        for alpha, alike in groupby(trials, key=lambda trial: trial.steps[-1].alpha):
            scores = log_odds(self._log_odds(fold, alpha), held_out.X)
            for trial in alike:
                predicted = steered_classes(near, scores, trial.steps[-1].strength * unit)
                trial.add(_is_right([predicted], held_out.codes))

    def held_out(self, mover: Mover, n_neighbors: int, n_queries: int, enough: int) -> Iterator[HeldOut]:
        """Yield up to n held-out queries with the objects of the other folds, moved; folds until `enough`."""
        trial, done = self.new_trial(mover, 0), 0
        for i, (_, test) in enumerate(self.folds):
            if done >= enough:
                return
            wanted = self.labeled.take(convert(test[: n_queries - done], self.labeled.X))
            try:
                points = self._moved(trial, len(trial.steps), i)
                mean = weighted_mean(self._start(i).X, points.weights)
                moved, space = to_query_space(points, None, mean)
            except ValueError:  # as in `extend`
                continue
            how = (self.n_classes, space, n_neighbors, self.by_distance, points.raised)
            stored = Stored(moved, points.codes, points.weights, *how)
            if len(test):
                yield HeldOut(stored, wanted.X, wanted.codes, wanted.weights)
                done += wanted.X.shape[0]

    def _log_odds(self, fold: int, alpha: float) -> LogOdds:
        """Return the logistic regression of a fold, which all settings share."""
        if fold not in self.odds:
            points = self._start(fold)
            self.odds[fold] = SharedOdds(
                LogisticProblem.of(points.X, points.codes, points.n_classes, points.weights, points.n_columns)
            )
        return self.odds[fold].at(alpha)

    def _moved(self, trial: Trial, n_steps: int, fold: int) -> Points:
        """Return the objects of a fold after n steps; chains that begin alike learn their beginning once."""
        if n_steps == 0:
            return self._start(fold)
        step = clone(trial.steps[n_steps - 1])
        return self.kept.get(
            (fold, *trial.keys[:n_steps]),
            lambda: self._moved(trial, n_steps - 1, fold),
            lambda before: self._steer(step, before, fold) if is_logistic(step) else step._learn(before),
        )

    def _steer(self, step: Steer, before: Points, fold: int) -> Points:
        step._take(self._log_odds(fold, step.alpha), mean_square(before.X, before.weights))
        return step._apply(before)

    def _answer(self, moved: Array, space: QuerySpace, points: Points, test: np.ndarray) -> np.ndarray:
        """Return whether each query gets its class, for each k; shape (queries, ks)."""
        held_out = self.labeled.take(convert(test, self.labeled.X))
        queries = as_queries(held_out.X, space)
        predicted = predict_by_ks(queries, moved, points.codes, points.weights, self.ks, self.by_distance)
        return _is_right(predicted, held_out.codes)

    def _start(self, fold: int) -> Points:
        """Return the objects of a fold before any move, with their targets."""
        if fold not in self.unmoved:
            width = self.labeled.targets.shape[1] if self.given_targets else self.n_targets
            part = training_part(self.labeled, self.folds[fold][0], width, self.given_targets)
            self.unmoved[fold] = Points.of(part, self.n_classes, self.columns)
        return self.unmoved[fold]


def _is_right(predicted: list[Array], codes: Array) -> np.ndarray:
    """Return whether each query gets its class, for each k; shape (queries, ks)."""
    return np.stack([to_numpy(classes == codes) for classes in predicted], axis=1)
