"""What the newest slice says: keep what serves, promote a candidate, or roll back.

Everything here is computed; nothing is written or switched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays.inputs import distinct
from ..hubness_change import change_intervals
from ..repair.index_items import IndexItems
from ..repair.repair import Repair
from .loop_state import ORIGINAL, Doubt, LoopState
from .questions import Questions
from .slice_score import FEWEST, LEVEL, Answered, Differences, answer, compare, look_level

KEEP, PROMOTE, ROLL_BACK = "keep", "promote", "roll back"
# from numbers of slices, with settings that are chosen, or those of a model; None where they are too few
Learn = Callable[[Sequence[int], Repair | None], Repair | None]


@dataclass
class SliceAnswers:
    """The newest slice, and what the states of the index answer to its questions."""

    items: IndexItems
    questions: Questions
    models: dict[int, Repair]  # of versions, by number
    answered: dict[int, Answered] = field(default_factory=dict)

    def at(self, version: int) -> Answered:
        """Return what a version answers, or the original."""
        if version not in self.answered:
            model = None if version == ORIGINAL else self.models[version]
            self.answered[version] = self.by(model)
        return self.answered[version]

    def by(self, model: Repair | None) -> Answered:
        """Return what the items moved by a model answer."""
        return answer(self.questions, self.items.vectors if model is None else self.items.moved(model))

    def over(self, before: int, after: Answered) -> Differences:
        """Return how far answers are ahead of those of a version."""
        return compare(self.at(before).scores, after.scores)


@dataclass
class Decision:
    """What to do, why, and the figures that say so."""

    what: str
    why: str
    state: LoopState  # once it is done
    candidate: Repair | None = None
    learned: tuple[int, ...] = ()  # slices that the candidate learned from
    figures: list[dict[str, Any]] = field(default_factory=list)
    guards: list[dict[str, Any]] = field(default_factory=list)


def decide(state: LoopState, look: SliceAnswers, learn: Learn) -> Decision:
    """Return the decision for the last slice of a state, on whose questions a look is taken."""
    newest, figures = state.slices[-1].number, list[dict[str, Any]]()
    if len(look.questions) < FEWEST:
        words = f"slice {newest} has {len(look.questions)} questions, fewer than {FEWEST}"
        return Decision(KEEP, f"{words}: too few to decide by.", state)
    back = _way_back(state, look, figures)
    if back is not None:
        return back
    state = _settle_doubt(state, look, figures)
    decision = _try_candidate(state, look, learn)
    decision.figures = figures + decision.figures
    return decision


# --- the way back -------------------------------------------------------------------------------------------


def _way_back(state: LoopState, look: SliceAnswers, figures: list[dict[str, Any]]) -> Decision | None:
    """Return the decision to roll back, where what serves is visibly worse than what came before it."""
    serving, newest = state.version(state.serving), state.slices[-1].number
    if serving is None:
        return None
    worse: dict[int, float] = {}
    for other in dict.fromkeys([serving.before, ORIGINAL]):
        if other != ORIGINAL and other not in look.models:
            continue
        gain = look.over(other, look.at(state.serving))
        figures.append(_figure(f"version {serving.number} over {named(other)}", gain, LEVEL))
        if gain.is_below():
            worse[other] = gain.mean
    if not worse:
        return None
    other = min(worse, key=lambda number: worse[number])
    why = (
        f"On slice {newest}, version {serving.number} is worse than {named(other)} "
        f"({worse[other]:+.3f}), so {named(other)} serves again. The next slice says whether the version or "
        "this slice was wrong."
    )
    looks = Differences(looks=state.over_original.looks)  # what was confirmed is not believed any longer
    after = replace(state, serving=other, doubt=Doubt(serving.number, newest), over_original=looks)
    return Decision(ROLL_BACK, why, replace(after, over_serving=Differences()), figures=figures)


def _settle_doubt(state: LoopState, look: SliceAnswers, figures: list[dict[str, Any]]) -> LoopState:
    """Return the state with slices left out, as the slice after a way back says."""
    doubt = state.doubt
    if doubt is None or doubt.version not in look.models:
        return replace(state, doubt=None)
    version = state.version(doubt.version)
    gain = look.over(state.serving, look.at(doubt.version))
    figures.append(_figure(f"version {doubt.version} over {named(state.serving)}", gain, LEVEL))
    if gain.mean <= 0 and version is not None:
        # what it learned from, and what spoke for it until the slice that spoke against it
        suspects = {*version.learned, *range(max(version.learned) + 1, doubt.slice)}
        state = state.without(suspects - set(_learned_by(state)))
    elif gain.interval(LEVEL)[0] > 0:
        state = state.without([doubt.slice])
    return replace(state, doubt=None)


# --- a candidate --------------------------------------------------------------------------------------------


def _try_candidate(state: LoopState, look: SliceAnswers, learn: Learn) -> Decision:
    newest, serving = state.slices[-1].number, state.version(state.serving)
    learned = tuple(state.trusted(newest))
    if serving is not None and set(state.trusted(newest + 1)) == set(serving.learned):
        return Decision(
            KEEP, f"{_named(serving.number)} has learned from all slices but those left out.", state
        )
    model = learn(learned, None)
    if model is None:
        return Decision(KEEP, "There are too few questions before this slice to learn from.", state)
    if model.moves_nothing:
        words = "What was learned is not to move: no setting is ahead by more than chance"
        return Decision(KEEP, f"{words} on queries that were held out of learning.", state)
    answers, rival = look.by(model), _rival(state, look, learned)
    gains = {number: look.over(number, answers) for number in (rival, state.serving, ORIGINAL)}
    state = replace(state, over_original=state.over_original + gains[ORIGINAL])
    if rival == state.serving:
        state = replace(state, over_serving=state.over_serving + gains[rival])
    decision = Decision(KEEP, "", state, model, learned)
    decision.figures = _figures_of(state, rival, gains)
    decision.guards = _guards(rival, look, model, answers)
    _conclude(decision, rival, gains)
    return _learn_with_newest(decision, learn) if decision.what == PROMOTE else decision


def _rival(state: LoopState, look: SliceAnswers, learned: Sequence[int]) -> int:
    """Return what a candidate is to be ahead of: the last version that had learned from other slices."""
    serving = state.version(state.serving)
    if serving is None or set(learned) != set(serving.learned):
        return state.serving
    return serving.before if serving.before in look.models else ORIGINAL


def _learn_with_newest(decision: Decision, learn: Learn) -> Decision:
    """Return a promotion with the candidate learned again: its settings, and the newest slice as well."""
    state = decision.state
    newest, everything = state.slices[-1].number, state.trusted(state.slices[-1].number + 1)
    if newest not in everything:  # it was left out by hand
        return decision
    why = f"{decision.why} Version {state.made + 1} has its settings, and learns from slice {newest} as well."
    model = learn(everything, decision.candidate)
    return replace(decision, why=why, candidate=model, learned=tuple(everything))


def _conclude(decision: Decision, rival: int, gains: Mapping[int, Differences]) -> None:
    """Say what a candidate's figures mean, and what follows for the state."""
    state, fallen = decision.state, [guard["what"] for guard in decision.guards if guard["falls"]]
    worse = [number for number in (state.serving, rival) if gains[number].is_below()]
    if worse:
        suspects = set(decision.learned) - set(_learned_by(state)) - set(state.accepted)
        decision.state = replace(
            state.without(suspects),
            over_original=Differences(looks=state.over_original.looks),
            over_serving=Differences(),
        )
        left = f" Slice {_listed(suspects)} will not be learned from." if suspects else ""
        mean = _signed(gains[worse[0]].mean)
        decision.why = f"The candidate is worse than {named(worse[0])} on this slice ({mean}).{left}"
        return
    decision.state = state = replace(state, accepted=decision.learned)
    newest = gains[rival]
    since = state.over_serving if rival == state.serving else newest
    low, high = state.over_original.interval(look_level(state.over_original.looks))
    if fallen:
        decision.why = f"The candidate is held back by a guard: {'; '.join(fallen)}."
    elif not state.over_original.is_above():
        decision.why = (
            f"The gain over the original is not sure yet: {_signed(state.over_original.mean)} on "
            f"{_counted(state.over_original.n)}, and plausibly {_signed(low)}."
        )
    elif min(newest.mean, since.mean) <= 0:
        decision.why = f"The candidate is not ahead of {named(rival)}: {newest.mean:+.3f} on this slice."
    else:
        ahead = f", and on average ahead of {named(rival)} by {since.mean:.3f}" if rival != ORIGINAL else ""
        decision.what = PROMOTE
        decision.why = (
            f"The candidate is ahead of the original by {_signed(low)} to {_signed(high)}, on "
            f"{_counted(state.over_original.n)} that were not learned from{ahead}."
        )


def _learned_by(state: LoopState) -> tuple[int, ...]:
    serving = state.version(state.serving)
    return () if serving is None else serving.learned


def _figures_of(state: LoopState, rival: int, gains: Mapping[int, Differences]) -> list[dict[str, Any]]:
    """Return the figures of a candidate: on the newest slice, and on all since it counts."""
    level = look_level(state.over_original.looks)
    figures = [
        _figure("candidate over the original, this slice", gains[ORIGINAL], LEVEL),
        _figure("candidate over the original, all slices", state.over_original, level),
    ]
    for number in (each for each in gains if each != ORIGINAL):
        figures.append(_figure(f"candidate over {named(number)}, this slice", gains[number], LEVEL))
    if rival == state.serving != ORIGINAL:
        what = f"candidate over {named(rival)}, since it serves"
        figures.append(_figure(what, state.over_serving, LEVEL))
    return figures


# --- guards -------------------------------------------------------------------------------------------------

HUBS = {"skewness": "hubness (N10 skewness)", "busiest_share": "answers from the busiest 1 % of items"}


def _guards(rival: int, look: SliceAnswers, model: Repair, after: Answered) -> list[dict[str, Any]]:
    """Return what must not visibly fall, with intervals: against the rival, and against the original."""
    guards = []
    seen = {look.items.places[item] for item in model.learned.get("seen", [])}
    unseen = np.array([seen.isdisjoint(worth) for worth in look.questions.relevant], dtype=bool)
    different = distinct(look.questions.vectors)
    for number in dict.fromkeys([rival, ORIGINAL]):
        before = look.at(number)
        if unseen.sum() >= FEWEST:
            gain = compare(before.scores[unseen], after.scores[unseen])
            entry = _figure(f"queries with unseen items, against {named(number)}", gain, LEVEL)
            guards.append({**entry, "falls": gain.is_below()})
        near = [state.neighbors[different] for state in (before, after)]
        rises = change_intervals(near[0], near[1], len(look.items.ids))
        for measure, words in HUBS.items():
            low, high = rises[measure]
            guards.append(
                {"what": f"{words}, against {named(number)}", "n": len(different), "mean": (low + high) / 2}
                | {"low": low, "high": high, "level": LEVEL, "falls": low > 0}
            )
    return guards


def _figure(what: str, gain: Differences, level: float) -> dict[str, Any]:
    low, high = gain.interval(level)
    return {"what": what, "n": gain.n, "mean": gain.mean, "low": low, "high": high, "level": level}


def named(number: int) -> str:
    """Return a version in words."""
    return "the original" if number == ORIGINAL else f"version {number}"


def _named(number: int) -> str:
    return named(number).capitalize()


def _listed(numbers: Any) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _signed(value: float) -> str:
    return f"{value:+.3f}"


def _counted(n: int) -> str:
    return f"{n:,} questions"
