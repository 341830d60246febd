"""Choosing a mover by cross-validation, in one race: many settings on few queries, few settings on many.

    simple movers → the best, each with Balance → the best, each with Steer → finals → one-standard-error rule

Every setting answers the same queries in the same order, each query by objects of the other folds, so that
two settings are compared query by query. A setting that falls hopelessly behind is not asked further. Which
queries are asked, and by whom, depends on the data and the seed alone, not on the speed of the machine,
unless a limit of seconds is given. Queries are asked fold by fold, and no more than FINAL of them: where a
fold has so many, one split decides, which costs a fifth and whose standard error is that of the queries.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from .arrays import Array, convert, namespace, to_numpy
from .candidates import balanced, name, simple_movers, steered
from .movers import MoveLabeled, Mover
from .movers.linear import weighted_mean
from .movers.mover import Exit, as_asked, leave
from .movers.points import Points
from .targets import Labeled, restrict, same_class_targets
from .topk import search
from .trial import GLANCE, Trial
from .vote import vote, votes_of

NEIGHBORS = (1, 3, 5, 7, 10, 15, 20, 30)
HEAT = 1000  # queries of the first comparison
FINAL = 6000  # queries of the last one
FRONT = 3  # settings that are carried on
LEAVE = 2.0  # standard errors that the best must be ahead of Stay
CACHED = 1 << 28  # numbers of moved objects that are kept, for chains that begin alike


@dataclass
class Arena:
    """Where settings are tried: folds of labeled objects, and the queries in the order they are asked."""

    labeled: Labeled
    n_classes: int
    folds: list[tuple[np.ndarray, np.ndarray]]
    ks: tuple[int, ...]
    by_distance: bool = False
    given_targets: bool = False

    def __post_init__(self) -> None:
        self.n_queries = sum(len(test) for _, test in self.folds)
        self.starts: dict[int, Points] = {}  # by fold
        self.cache: dict[tuple[Any, ...], Points] = {}  # by fold and movers

    def trial(self, mover: Mover, place: int) -> Trial:
        """A setting that has not been asked yet."""
        order = np.concatenate([test for _, test in self.folds])
        own = self.labeled.weights
        weights = np.ones(len(order)) if own is None else to_numpy(own)[order]
        return Trial(mover, place, self.ks, weights, np.zeros((0, len(self.ks)), dtype=bool))

    def ask(self, trial: Trial, n_queries: int, leader: Trial | None = None) -> None:
        """Go on with a trial until it has answered so many queries, or is hopelessly behind the leader."""
        start, first = perf_counter(), 0
        for i, (_, test) in enumerate(self.folds):
            done, wanted = (min(max(m - first, 0), len(test)) for m in (len(trial.right), n_queries))
            if wanted > done and not trial.is_hopeless(leader):
                try:
                    points = self._moved(trial, len(trial.steps), i)
                    moved, exit = leave(points, None, weighted_mean(self._start(i).X, points.weights))
                except ValueError as error:  # no two objects of a class in this fold, say
                    trial.error, trial.score = str(error), -np.inf
                    break
                glance = min(done + GLANCE, wanted)
                for part in (test[done:glance], test[glance:wanted]):
                    if len(part) and not trial.is_hopeless(leader):
                        trial.add(self._answers(moved, exit, points, part))
            first += len(test)
        trial.seconds += perf_counter() - start

    def _moved(self, trial: Trial, n_steps: int, fold: int) -> Points:
        """The objects of a fold after some steps; chains that begin alike learn their beginning once."""
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

    def _answers(self, moved: Array, exit: Exit, points: Points, test: np.ndarray) -> np.ndarray:
        """Whether each query gets its class, for each k; shape (queries, ks)."""
        xp, X = namespace(points.X), self.labeled.X
        rows = convert(test, X)
        queries = as_asked(xp.take(X, rows, axis=0), exit)
        found = search(queries, moved, max(self.ks), return_distance=self.by_distance)
        distances, indices = found if self.by_distance else (None, found)
        winners = vote(*votes_of(indices, distances, points.codes, points.weights), ks=self.ks)
        truth = xp.take(self.labeled.codes, rows)
        return np.stack([to_numpy(winner == truth) for winner in winners], axis=1)

    def _start(self, fold: int) -> Points:
        """The objects of a fold where they are, with their targets."""
        if fold not in self.starts:
            xp, (X, codes, weights, targets) = namespace(self.labeled.X), self.labeled
            train, width = convert(self.folds[fold][0], X), targets.shape[1]
            X, codes = xp.take(X, train, axis=0), xp.take(codes, train)
            weights = None if weights is None else xp.take(weights, train)
            if self.given_targets:
                own = restrict(targets, train, width)
            else:
                own = same_class_targets(X, codes, width) if width else targets[:0, :]
            self.starts[fold] = Points(X, X, codes, self.n_classes, weights, own)
        return self.starts[fold]


class Race:
    """Trials of a race, its clock and its choice."""

    def __init__(self, arena: Arena, lift: bool = True, max_seconds: float | None = None) -> None:
        self.arena, self.lift, self.max_seconds = arena, lift, max_seconds
        self.trials: list[Trial] = []
        self.leader: Trial | None = None
        self.heat = self.compared = 0  # queries of the first comparison, and of the one that decides
        self.started = perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return perf_counter() - self.started

    def is_out_of_time(self) -> bool:
        """Whether nothing more may be tried; the first setting always is."""
        return bool(self.trials) and self.max_seconds is not None and self.seconds > self.max_seconds

    def run(self, movers: list[Mover]) -> Trial:
        """The choice among given movers or, with none given, simple ones and what they can be extended to."""
        n = self.arena.n_queries
        if n == 0:
            raise ValueError("every test part of cv is empty: there is no query to compare movers by.")
        heat, final = min(HEAT, -(-3 * n // 5)), min(FINAL, n)  # of few objects, three folds of five
        self.heat = self.compared = heat
        self._enter(movers or simple_movers(), heat)
        if not movers:
            for extended in (balanced, steered):
                best = _front(self.trials, FRONT)
                self._enter([new for trial in best for new in extended(trial.mover)], heat)
        for trial in self._finalists(of_one_kind=bool(movers)):
            if self.is_out_of_time():
                break
            self.arena.ask(trial, final)
        else:
            self.compared = final
        return self.choice()

    def _enter(self, movers: Iterable[Mover], n_queries: int) -> None:
        """Try movers on the first queries."""
        for mover in movers:
            if self.is_out_of_time():
                return
            if mover._lifts and not self.lift:
                continue
            trial = self.arena.trial(mover, len(self.trials))
            self.arena.ask(trial, n_queries, self.leader)
            self.trials.append(trial)
            if trial.error or trial.is_hopeless(self.leader):  # as good as the leader by fewer queries, maybe
                continue
            if self.leader is None or trial.score > self.leader.score:
                self.leader = trial

    def _finalists(self, of_one_kind: bool) -> list[Trial]:
        """The best settings, and the best of each number of steps, down to not moving at all."""
        ranked = sorted(self.trials, key=lambda trial: (-trial.score, trial.place))
        front = ranked[: FRONT + 1] if of_one_kind else _front(ranked, FRONT + 1)
        by_steps: dict[int, Trial] = {}
        for trial in ranked:
            by_steps.setdefault(len(trial.steps), trial)
        chosen = {trial.place: trial for trial in (*front, *by_steps.values())}
        good = [chosen[place] for place in sorted(chosen) if not chosen[place].error]
        return [trial for trial in good if not trial.is_hopeless(self.leader)]

    def choice(self) -> Trial:
        """Stay, unless the best is ahead of it by LEAVE standard errors, more than chance lets the best of
        many be; else the simplest of the settings that are within one standard error of the best.
        """
        last, best = self.last(), self.best()
        near = [trial for trial in last if _is_near(trial, best, 1.0 if trial.steps else LEAVE)]
        return min(near, key=lambda trial: (len(trial.steps), trial.mover._lifts, -trial.score, trial.place))

    def best(self) -> Trial:
        """The most accurate of the last."""
        return max(self.last(), key=lambda trial: (trial.score, -trial.place))

    def last(self) -> list[Trial]:
        """The settings that answered the queries of the last comparison that all of its settings finished."""
        good = [trial for trial in self.trials if not trial.error]
        if not good:
            why = self.trials[0].error if self.trials else "each needs one more column, and lift=False."
            raise ValueError(f"no mover could learn from these objects: {why}")
        enough = min(self.compared, max(len(trial.right) for trial in good))
        return [trial.first(enough) for trial in good if len(trial.right) >= enough]


def _is_near(trial: Trial, best: Trial, n_errors: float) -> bool:
    behind, error = trial.behind(best)
    return behind <= n_errors * error + 1e-12


def _front(trials: list[Trial], size: int) -> list[Trial]:
    """The best trials, no two of one kind that differ in their numbers alone."""
    found: dict[tuple[str, ...], Trial] = {}
    for trial in sorted(trials, key=lambda trial: (-trial.score, trial.place)):
        if not trial.error:
            found.setdefault(tuple(type(step).__name__ for step in trial.steps), trial)
    return list(found.values())[:size]


def n_targets_of(movers: list[Mover]) -> int:
    """Targets per object that a race over the movers needs."""
    return max(mover._width() for mover in movers or simple_movers())


def table(race: Race, choice: Trial) -> dict[str, np.ndarray]:
    """The trials as columns, the most asked and then the best first."""
    rows = sorted(race.trials, key=lambda trial: (-len(trial.right), -trial.score, trial.place))
    apart = [trial.behind(choice) for trial in rows]
    return {
        "mover": np.array([name(trial.mover) for trial in rows]),
        "n_neighbors": np.array([trial.n_neighbors for trial in rows]),
        "n_steps": np.array([len(trial.steps) for trial in rows]),
        "n_queries": np.array([len(trial.right) for trial in rows]),
        "mean_test_score": np.array([trial.score if not trial.error else np.nan for trial in rows]),
        "behind_choice": np.array([mean for mean, _ in apart]),
        "standard_error": np.array([error for _, error in apart]),
        "seconds": np.array([trial.seconds for trial in rows]),
        "error": np.array([trial.error for trial in rows]),
    }


def tried(table: dict[str, np.ndarray], chosen: str) -> list[dict[str, Any]]:
    """The rows of such a table as plain data, for a page; the error is that of the score itself."""
    scores = table["mean_test_score"]
    errors = np.sqrt(scores * (1 - scores) / np.maximum(table["n_queries"], 1))
    return [
        {
            "name": str(table["mover"][i]),
            "k": int(table["n_neighbors"][i]),
            "score": float(scores[i]) if np.isfinite(scores[i]) else None,
            "error": float(errors[i]) if np.isfinite(errors[i]) else None,
            "queries": int(table["n_queries"][i]),
            "seconds": float(table["seconds"][i]),
            "chosen": str(table["mover"][i]) == chosen,
            "why_not": str(table["error"][i]),
        }
        for i in range(len(scores))
    ]


def explain(race: Race, choice: Trial) -> str:
    """What was chosen, and why, in a few sentences."""
    best, n = race.best(), len(choice.right)
    told = [
        f"{name(choice.mover)} with {choice.n_neighbors} neighbour{'s' * (choice.n_neighbors > 1)}: "
        f"{choice.score:.1%} of {n} held-out queries right."
    ]
    if choice.place == best.place:
        told.append("It is the most accurate; none that is simpler is within one standard error of it.")
    else:
        behind, error = choice.behind(best)
        near = "one standard error" if choice.steps else f"{LEAVE:g} standard errors"
        told.append(
            f"It is the simplest within {near} (one is {error:.2%}) of the most accurate, "
            f"{name(best.mover)}, which gets {behind:.2%} more."
        )
    for title, kinds in (("Not to move at all", ()), ("The paper's ridge", (MoveLabeled,))):
        own = [trial for trial in race.trials if tuple(type(step) for step in trial.steps) == kinds]
        own = [trial for trial in own if not trial.error]
        if own and choice.place not in {trial.place for trial in own}:
            rival = max(own, key=lambda trial: trial.score)
            told.append(f"{title}: {rival.score:.1%} of {len(rival.right)}.")
    given_up = sum(len(trial.right) < race.heat and not trial.error for trial in race.trials)
    told.append(
        f"{len(race.trials)} settings were tried in {race.seconds:.1f} s; {given_up} were given up early."
    )
    if failed := sum(bool(trial.error) for trial in race.trials):
        told.append(f"{failed} could not be learned; cv_results_ says why.")
    if race.is_out_of_time():
        told.append(f"The limit of {race.max_seconds:g} s ended the race.")
    return " ".join(told)
