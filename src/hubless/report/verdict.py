"""The verdict: is moving worth it? One figure decides; others that change measurably are named beside it."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from scipy.stats import binomtest

from ..evaluation import Answers, Change, Evaluation
from .numerals import in_form
from .scores_in_words import FOR_PART, capital, from_to, interval, name, plain_name, score

ROUNDING = 16  # units in the last place that bringing vectors to length 1 may cost
FEW = 20  # with fewer queries, an interval of nDCG says little
UNIT_FIRST = "Normalise all vectors to length 1 first, or search by L2, and measure again."
NOT_ADVISED = "The figures give no reason to move: leave the items as they are."
ONLY_SEEN = "move the items only if your queries ask for items in the training pairs"
MOVE, STAY = "move the items", "leave the items as they are"

Judgement = Literal["better", "worse", "same", "unknown"]


@dataclass(frozen=True)
class PageVerdict:
    """What the figures say, and what to do."""

    kind: str  # "move", "no gain", "harmful", or "mixed": a gain here, and none or a loss there
    title: str
    words: str
    advice: str  # what to do with the items, as a part of a sentence: "move the items"

    def as_dict(self) -> dict[str, str]:
        """Return it as plain data."""
        return asdict(self)


def advises_moving(evaluation: Evaluation) -> bool:
    """Return whether there is a reason to move, for some uses at least."""
    return verdict(evaluation).kind in ("move", "mixed")


def condition(evaluation: Evaluation) -> list[str]:
    """Return the condition under which moving is advised, as a sentence; none where it is without one."""
    said = verdict(evaluation)
    return [f"{capital(said.advice)}."] if said.kind == "mixed" else []


def deciding(evaluation: Evaluation) -> Change:
    """Return the figure that the verdict rests on: the first one, of unseen items where some are seen.

    Items that are added later are unseen, and a gain of seen ones says nothing of them.
    """
    figures = _by_part(evaluation)
    return figures.get("unseen") or figures.get("seen") or figures["all"]


def seen_beside(evaluation: Evaluation) -> Change | None:
    """Return the first figure of seen items, where the verdict rests on unseen ones; else None."""
    figures = _by_part(evaluation)
    return figures.get("seen") if "unseen" in figures else None


def _by_part(evaluation: Evaluation) -> dict[str, Change]:
    measure = evaluation.figures[0].measure
    return {change.part: change for change in evaluation.figures if change.measure == measure}


def judge(evaluation: Evaluation, change: Change) -> Judgement:
    """Return what a change is by its 95 % interval; for accuracy, the exact sign test must agree.

    The interval alone means little where few queries changed.
    """
    if np.isnan(change.before) or not np.isfinite(change.high):
        return "unknown"
    if change.low <= 0 <= change.high:
        return "same"
    if change.measure == "accuracy":
        is_sure = binomtest(evaluation.fixed, evaluation.fixed + evaluation.broken).pvalue < 0.05
    else:
        is_sure = change.n >= FEW
    if not is_sure:
        return "unknown"
    return "better" if change.low > 0 else "worse"


def judge_hubs(evaluation: Evaluation, measure: str) -> Judgement:
    """Return what the change of a measure of hubness is, by its 95 % interval."""
    low, high = evaluation.hubness_intervals()[measure]
    if low <= 0 <= high:
        return "same"
    if evaluation.hubness.after.n_queries < FEW:
        return "unknown"
    return "better" if high < 0 else "worse"


def beside(evaluation: Evaluation, judgement: Judgement) -> list[Change]:
    """Return other figures that change so: of the queries that decide, and the first one of seen items."""
    first, seen = deciding(evaluation), seen_beside(evaluation)
    others = [c for c in evaluation.figures if c.part == first.part and c is not first and c.n >= FEW]
    return [c for c in [*others, *([seen] if seen else [])] if judge(evaluation, c) == judgement]


def verdict(evaluation: Evaluation) -> PageVerdict:
    """Return the verdict of an evaluation."""
    answers, first = evaluation.answers, deciding(evaluation)
    if is_unmoved(answers):
        return PageVerdict("no gain", "No measurable gain", "The items were not moved.", STAY)
    judgement = judge(evaluation, first)
    rises, falls = beside(evaluation, "better"), beside(evaluation, "worse")
    words = _words(evaluation, judgement, rises, falls)
    is_shortened = answers.metric == "ip" and not answers.is_corrected
    if judgement == "worse" or (falls and judgement != "better" and not rises):
        words += f" {UNIT_FIRST}" if is_shortened else ""
        return PageVerdict("harmful", _harm(evaluation, judgement, falls), words, STAY)
    if is_shortened and (judgement == "better" or rises):
        why = "Moving shortens vectors, and by inner product short ones lose to long ones."
        title = "A gain here, but not a reliable one under this metric (inner product)"
        return PageVerdict("no gain", title, f"{words} {why} {UNIT_FIRST}", STAY)
    if falls:
        gains = [first] if judgement == "better" else rises
        title = f"{_names(gains)} {_verb(gains, 'rise')}, but {_names(falls)} {_verb(falls, 'fall')}"
        return PageVerdict(
            "mixed",
            capital(title),
            words,
            f"move the items only if {_names(gains)} {_verb(gains, 'matter')} more",
        )
    if judgement == "better":
        return _gain(first, words)
    return _no_clear_change(evaluation, judgement, rises, words)


def _gain(first: Change, words: str) -> PageVerdict:
    if first.part != "seen":
        return PageVerdict("move", "Move", words, MOVE)
    words = f"{words} Every query has a relevant item in a training pair, so nothing is known of other items."
    return PageVerdict(
        "mixed", "Better for items in training pairs; no others were asked for", words, ONLY_SEEN
    )


def _no_clear_change(
    evaluation: Evaluation, judgement: Judgement, rises: list[Change], words: str
) -> PageVerdict:
    """Return the verdict where the deciding figure does not change measurably; another may rise."""
    first, seen = deciding(evaluation), seen_beside(evaluation)
    if seen is not None and seen in rises:
        rest = "too few queries to tell" if judgement == "unknown" else "no measurable gain"
        return PageVerdict(
            "mixed", f"Better for items in training pairs, {rest} for others", words, ONLY_SEEN
        )
    if rises:
        title = f"No measurable gain in {first.measure}, but {_names(rises)} {_verb(rises, 'rise')}"
        return PageVerdict(
            "mixed", title, words, f"move the items only if {_names(rises)} {_verb(rises, 'matter')} to you"
        )
    title = "Too few queries to tell" if judgement == "unknown" else "No measurable gain"
    return PageVerdict("no gain", title, words, STAY)


def _harm(evaluation: Evaluation, judgement: Judgement, falls: list[Change]) -> str:
    """Return the title of a verdict that moving harms; another metric helps only where lengths count."""
    if judgement != "worse":
        return f"Worse: {_names(falls)} {_verb(falls, 'fall')}"
    is_unseen = deciding(evaluation).part == "unseen"
    if evaluation.answers.metric == "ip" and not evaluation.answers.is_corrected:
        return f"Harmful{' to items in no training pair' * is_unseen} under this metric (inner product)"
    return f"Worse{' for items in no training pair' * is_unseen}: do not move the items"


# --- in words -----------------------------------------------------------------------------------------------


def _words(evaluation: Evaluation, judgement: Judgement, rises: list[Change], falls: list[Change]) -> str:
    """Return what happens to the deciding figure, to others that change measurably, and to hubs."""
    seen = seen_beside(evaluation)
    others = [change for change in falls if judgement != "worse" or change is seen]
    others += [change for change in rises if judgement != "better" or change is seen]
    told = [
        f"{capital(plain_name(change))} {'rises' if change.low > 0 else 'falls'} measurably, "
        f"{' '.join(filter(None, [from_to(change), FOR_PART[change.part]]))} ({interval(change)})."
        for change in others
    ]
    return " ".join([_first_words(evaluation, judgement), *told, _hub_words(evaluation)])


def _first_words(evaluation: Evaluation, judgement: Judgement) -> str:
    first = deciding(evaluation)
    goes = (
        f"goes {from_to(first)}"
        if first.before != first.after
        else f"stays at {score(first.after, first.measure)}"
    )
    words = " ".join(filter(None, [capital(first.measure), goes, FOR_PART[first.part]]))
    if judgement == "unknown" and first.measure == "accuracy":
        counts = f"{evaluation.fixed:,} fixed, {evaluation.broken:,} broken"
        return f"{words}, but too few queries changed to tell ({counts})."
    if judgement == "unknown":
        return f"{words}, but {first.n:,} queries are too few to tell."
    chance = ", which may be chance" if judgement == "same" and first.before != first.after else ""
    return f"{words}{chance} ({interval(first)})."


def _hub_words(evaluation: Evaluation) -> str:
    before, after = evaluation.hubness
    start, end, chance = (
        in_form(measured.skewness, "number") for measured in (before, after, evaluation.chance)
    )
    return f"N{before.k} skewness goes from {start} to {end} (by chance {chance})."


def _names(changes: list[Change]) -> str:
    return " and ".join(map(name, changes))


def _verb(changes: list[Change], verb: str) -> str:
    return f"{verb}s" if len(changes) == 1 else verb


def is_unmoved(answers: Answers) -> bool:
    """Return whether no object was moved, up to rounding."""
    before, after = answers.stored
    if before.shape != after.shape:
        return False
    return bool(np.abs(after - before).max() <= ROUNDING * np.finfo(before.dtype).eps * np.abs(before).max())
