"""Choose a mover by cross-validation, in one race: many settings on few queries, few settings on many.

    simple movers → the best, each with Balance → three movers, each with Steer → finals → the surest gain

Every setting answers the same queries in the same order, each query by objects of the other folds, so that
two settings are compared query by query. A setting that falls far behind is given up. Which queries a setting
answers depends on the data and the seed alone, not on the speed of the machine, unless a limit of seconds is
given. Queries are answered fold by fold, and folds are opened until there are ENOUGH queries: where a fold
has that many, one split decides, and the standard error of the choice is that of its queries.
"""

from collections.abc import Iterable
from time import perf_counter

from ..movers import Mover, Stay
from ..support.progress import Step, step
from .candidates import (
    MAX_SCORES,
    balanced,
    movers_for,
    name,
    simple_movers,
    steered,
    to_steer,
    unchosen,
    with_column,
    without_column,
)
from .trial import Trial
from .validation import CrossValidation

MAX_NEIGHBORS = 30  # the largest k that is tried
FIRST_ROUND = 600  # queries of the first comparison
ENOUGH = 1500  # queries after which no other fold is opened
LAST_ROUND = 2500  # queries of the last comparison, at most
EXTENDED = 2  # settings that are extended by Balance; one more goes to the finals
MIN_QUERIES = 20  # below which not even a mover that is known to be good is taken unseen
CAUTION = 1.5  # standard errors by which a gain over not moving is discounted


class Race:
    """Trials of a race, its clock and its choice."""

    def __init__(self, folds: CrossValidation, lift: bool = True, max_seconds: float | None = None) -> None:
        """`lift` allows a column, or movers do without; `max_seconds` ends the race."""
        self.folds, self.lift, self.max_seconds = folds, lift, max_seconds
        self.trials: list[Trial] = []
        self.step = Step("choosing")
        self.is_thin = False  # whether there is too little to choose by
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
        final = min(self.folds.queries_of_folds(ENOUGH), LAST_ROUND)
        self.first_round = self.compared = min(FIRST_ROUND, -(-3 * final // 5))
        self.is_thin = not movers and self.folds.is_thin()
        if self.is_thin:
            movers = [unchosen(), Stay()] if n >= MIN_QUERIES else [Stay()]
        how_many = f"{len(movers)} settings" if movers else "movers and their settings"
        with step(f"choosing among {how_many}", len(movers) or None, "settings") as self.step:
            self._try(movers or [*simple_movers(), *movers_for(self.folds.labeled.X)])
            if not movers:
                best = _best_of_each_kind(self.trials, EXTENDED)
                self._try([new for trial in best for new in balanced(trial.mover)])
                self._try_steered(final)
            self.step.note = "comparing the best"
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
            if mover._gives_order_alone and self.folds.by_distance:
                continue
            allowed = mover if self.lift else without_column(mover)
            trial = self.folds.new_trial(allowed, len(self.trials))
            self.step.note = f"trying {name(allowed)}"
            self.folds.extend(trial, self.first_round, self.leader)
            self._keep([trial])

    def _try_steered(self, n_queries: int) -> None:
        """Try Steer in all its settings behind a few movers, by one neighbour, then the best by every k."""
        folds, n = self.folds, self.folds.labeled.X.shape[0]
        if folds.by_distance or self.leader is None or n * folds.n_classes > MAX_SCORES:
            return
        tried: list[Trial] = []
        for base in to_steer(with_column(self.leader.mover), n / folds.n_classes):
            if self.is_out_of_time():
                return
            self.step.note = f"trying {name(base)} + Steer(…)"
            movers = steered(base)
            trials = [folds.new_trial(mover, len(self.trials) + i, ks=(1,)) for i, mover in enumerate(movers)]
            folds.extend_steered(trials, n_queries)
            if self._may_win_by_one():
                self._keep(trials)
            tried += [trial for trial in trials if not trial.error]
        if tried and not self.is_out_of_time():
            best = max(tried, key=lambda trial: (trial.score, -trial.number))
            self._try_by_every_k(best, n_queries)

    def _try_by_every_k(self, best: Trial, n_queries: int) -> None:
        """Let the best of the settings that answered by one neighbour answer by every number of them."""
        if self._may_win_by_one():
            again = self.trials[best.number] = self.folds.new_trial(best.mover, best.number)
        else:
            mover = best.mover if self.lift else without_column(best.mover)
            again = self.folds.new_trial(mover, len(self.trials))
            self.trials.append(again)
        self.folds.extend(again, n_queries)
        again.seconds += best.seconds

    def _may_win_by_one(self) -> bool:
        """Return whether a setting that answers by one neighbour, in a column, may be chosen as it is.

        Otherwise such settings only tell which to try without a column, or by the numbers asked for.
        """
        return self.lift and 1 in self.folds.ks

    def _keep(self, trials: list[Trial]) -> None:
        """Add trials, and look for a new leader among them."""
        self.trials += trials
        for trial in trials:
            # one that was given up may score as high as the leader, by fewer queries
            if trial.error or trial.is_far_behind(self.leader):
                continue
            if self.leader is None or trial.score > self.leader.score:
                self.leader = trial
        self.step.update(len(trials))

    def _finalists(self, allow_same_kind: bool) -> list[Trial]:
        """Return the best settings, and not moving at all, unless they are far behind."""
        ranked = sorted(self.trials, key=lambda trial: (-trial.score, trial.number))
        ranked = [trial for trial in ranked if not trial.error]
        best = ranked[: EXTENDED + 1] if allow_same_kind else _best_of_each_kind(ranked, EXTENDED + 1)
        plain = [trial for trial in ranked if not trial.steps][:1]
        chosen = {trial.number: trial for trial in (*best, *plain)}
        return [chosen[number] for number in sorted(chosen) if not chosen[number].is_far_behind(self.leader)]

    # score − CAUTION · (standard error of the gain over not moving)
    def choice(self) -> Trial:
        """Return the setting whose score is the highest after its gain over not moving is discounted.

        The best of many settings is often ahead by chance, the more so the fewer queries there are. Of equal
        ones it is not moving, then the simplest.
        """
        last, plain = self.compared_trials(), self.plain()

        def surest(trial: Trial) -> tuple[float, ...]:
            _, error = trial.behind(plain)
            # not moving may have answered fewer queries, if it fell far behind
            error *= (min(plain.n_queries, trial.n_queries) / max(trial.n_queries, 1)) ** 0.5
            sure = round(trial.score - CAUTION * error, 12)
            return (sure, trial.number == plain.number, *(-value for value in _simplicity(trial)))

        return max(last, key=surest)

    def plain(self) -> Trial:
        """Return the setting that gains are measured over: not moving, or the simplest that was tried.

        Where folds are too thin to choose by, it is the mover that is known to be good.
        """
        learned = [trial for trial in self.trials if not trial.error]
        return learned[0] if self.is_thin else min(learned, key=_simplicity)

    def best(self) -> Trial:
        """Return the most accurate of the last comparison."""
        return max(self.compared_trials(), key=lambda trial: (trial.score, -trial.number))

    def compared_trials(self) -> list[Trial]:
        """Return the settings that answered all queries of the last comparison that was finished."""
        learned = [trial for trial in self.trials if not trial.error]
        if not learned:
            no_lift = 'each gives the order of distances alone, and weights="distance" needs distances.'
            why = self.trials[0].error if self.trials else no_lift
            raise ValueError(f"no mover could learn from these objects: {why}")
        enough = min(self.compared, max(trial.n_queries for trial in learned))
        return [trial.first(enough) for trial in learned if trial.n_queries >= enough]


def _simplicity(trial: Trial) -> tuple[float, ...]:
    """Return a key by which simpler settings come first: fewer steps, no column, tried earlier."""
    return len(trial.steps), trial.mover._adds_column, trial.number


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
