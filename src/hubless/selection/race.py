"""Choose a mover by cross-validation, in one race: many settings on few queries, few settings on many.

    simple movers → the best, each with Balance → the best, each with Steer → finals → one-standard-error rule

Every setting answers the same queries in the same order, each query by objects of the other folds, so that
two settings are compared query by query. A setting that falls far behind is given up. Which queries a setting
answers depends on the data and the seed alone, not on the speed of the machine, unless a limit of seconds is
given. Queries are answered fold by fold, and no more than LAST_ROUND of them: where a fold has that many, one
split decides, which costs a fifth of all folds and whose standard error is that of the queries.
"""

from collections.abc import Iterable
from time import perf_counter

from ..movers import Mover
from .candidates import MIN_OBJECTS, balanced, simple_movers, steered
from .folds import TIE
from .trial import Trial
from .validation import CrossValidation

MAX_NEIGHBORS = 30  # the largest k that is tried
FIRST_ROUND = 1000  # queries of the first comparison
LAST_ROUND = 4000  # queries of the last one
EXTENDED = 3  # settings that are extended by Balance; one more goes to the finals
STEERED = 4  # settings that are extended by Steer
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
            best = _best_of_each_kind(self.trials, EXTENDED)
            self._try([new for trial in best for new in balanced(trial.mover)])
            self._try_steered(_best_of_each_kind(self.trials, STEERED))
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

    def _try_steered(self, best: list[Trial]) -> None:
        """Try the best settings so far with Steer, all of its settings at once."""
        folds = self.folds
        if not self.lift or folds.labeled.X.shape[0] < MIN_OBJECTS * folds.n_classes:
            return
        for base in best:
            if self.is_out_of_time():
                return
            trials = [folds.new_trial(m, len(self.trials) + i) for i, m in enumerate(steered(base.mover))]
            if folds.labeled.weights is None:
                folds.extend_steered(trials, self.first_round)
            else:  # votes are weighted, and go by object
                for trial in trials:
                    folds.extend(trial, self.first_round, self.leader)
            self.trials += trials
            leader = max(trials, key=lambda trial: trial.score)
            if not leader.error and (self.leader is None or leader.score > self.leader.score):
                self.leader = leader

    def _finalists(self, allow_same_kind: bool) -> list[Trial]:
        """Return the best settings, and the best of each number of steps, down to not moving at all."""
        ranked = sorted(self.trials, key=lambda trial: (-trial.score, trial.number))
        best = ranked[: EXTENDED + 1] if allow_same_kind else _best_of_each_kind(ranked, EXTENDED + 1)
        by_steps: dict[int, Trial] = {}
        for trial in ranked:
            by_steps.setdefault(len(trial.steps), trial)
        chosen = {trial.number: trial for trial in (*best, *by_steps.values())}
        learned = [chosen[number] for number in sorted(chosen) if not chosen[number].error]
        if allow_same_kind or self.leader is None:
            return [trial for trial in learned if not trial.is_far_behind(self.leader)]
        return [trial for trial in learned if _is_near(trial, self.leader, TO_MOVE)]

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
