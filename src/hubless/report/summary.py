"""The head of a page: one sentence, the verdict, and tiles: figures before and after, beside chance."""

from dataclasses import asdict
from typing import Any

from ..evaluation import Change, Evaluation
from .numerals import form_of, in_form
from .scores_in_words import FOR_PART, arrow, capital, from_to, interval, plain_name, score
from .verdict import (
    Judgement,
    PageVerdict,
    beside,
    deciding,
    is_unmoved,
    judge,
    judge_hubs,
    seen_beside,
    verdict,
)

SAYS = {  # of a score, whose items it is about
    "all": "",
    "unseen": " Queries whose relevant items were in no training pair, like new items: they decide.",
    "seen": " Queries with a relevant item in a training pair.",
}


def summary(evaluation: Evaluation, mover: str) -> dict[str, Any]:
    """Return the sentence, the mover behind it, the verdict, the tiles, all measures and the notes."""
    said = verdict(evaluation)
    return {
        "sentence": _sentence(evaluation, said),
        "mover": mover,
        "verdict": said.as_dict(),
        "figures": _tiles(evaluation),
        "more": [asdict(change) for change in evaluation.figures],
        "notes": evaluation.notes,
    }


# --- the sentence -------------------------------------------------------------------------------------------


def _sentence(evaluation: Evaluation, said: PageVerdict) -> str:
    """Return what happens to whom, how sure that is, and what to do."""
    if is_unmoved(evaluation.answers):
        return "The items were not moved, so queries find the same before and after."
    first = deciding(evaluation)
    judgement = judge(evaluation, first)
    joint = "and" if judgement == "worse" else "but"
    others = [f", {joint} {_beside(first, change)}" for change in beside(evaluation, "worse")]
    if judgement != "better":
        others += [f", while {_beside(first, change)}" for change in beside(evaluation, "better")]
    head = _class_words(judgement, first) if first.measure == "accuracy" else _rank_words(judgement, first)
    return f"{head}{''.join(others)}: {said.advice}."


def _class_words(judgement: Judgement, first: Change) -> str:
    before, after = (score(value, first.measure) for value in (first.before, first.after))
    if judgement in ("better", "worse"):
        only = "only " if judgement == "worse" else ""
        words = f"After the move, {only}{after} of the queries get the right class instead of {before}"
        return f"{words} ({interval(first)})"
    measured = f"({arrow(first)}, {interval(first)})"
    if judgement == "unknown":
        return f"There are too few queries to tell whether more get the right class {measured}"
    return f"The share of queries that get the right class does not measurably change {measured}"


def _rank_words(judgement: Judgement, first: Change) -> str:
    measured = f"({first.measure} {arrow(first)}, {interval(first)})"
    if judgement == "unknown":
        words = "there are too few queries to tell whether the ranking changes"
    elif judgement == "same":
        words = "the ranking does not measurably change"
    else:
        words = f"relevant items rank {'higher' if judgement == 'better' else 'lower'} after the move"
    return capital(", ".join(filter(None, [FOR_PART[first.part], f"{words} {measured}"])))


def _beside(first: Change, change: Change) -> str:
    """Say how another figure changes, after what was said of the `first`."""
    if change.measure != first.measure:
        return f"{plain_name(change)} {'rises' if change.low > 0 else 'falls'} {from_to(change)}"
    where = "higher" if change.low > 0 else "lower"
    return f"{FOR_PART[change.part]}, relevant items rank {where} ({change.measure} {arrow(change)})"


# --- the tiles ----------------------------------------------------------------------------------------------


def _tiles(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the score, of unseen and of seen items where both were asked for, and measures of hubness."""
    before, k = evaluation.hubness.before, evaluation.hubness.before.k
    seen, n_busiest = seen_beside(evaluation), -(-before.n_objects // 100)
    uneven = "How unevenly items are returned. Below 1, hardly any hubs; above 3, a few items are everywhere."
    share = f"Share of all places among the {k} nearest that the {n_busiest:,} busiest items take."
    return [
        _score_tile(evaluation, "score", deciding(evaluation)),
        *([] if seen is None else [_score_tile(evaluation, "score_seen", seen)]),
        _hub_tile(evaluation, "skewness", "skewness", f"N{k} skewness", "number", uneven),
        _hub_tile(evaluation, "busiest", "busiest_share", "Answers from the busiest 1 %", "percent", share),
        _hub_tile(evaluation, "never", "antihub_share", "Never returned", "percent", _never(evaluation)),
    ]


def _never(evaluation: Evaluation) -> str:
    """Say what never returned means, and how many items cannot be returned whatever the answers are."""
    hubness, least = evaluation.hubness.after, evaluation.chance.least_antihub_share
    says = f"Items that are among the {hubness.k} nearest of no query."
    if not least:
        return says
    places = f"{hubness.n_queries:,} × {hubness.k} answers for {hubness.n_objects:,} items"
    return f"{says} {places} leave at least {in_form(least, 'percent')} out."


def _score_tile(evaluation: Evaluation, key: str, change: Change) -> dict[str, Any]:
    k = evaluation.answers.ks.after
    says = f"How high the relevant items rank among the first {k}; 1 is perfect."
    if change.measure == "accuracy":
        says = f"Queries whose class is {evaluation.answered}."
    part = "" if change.part == "all" else f", {change.part} items"
    return {
        "key": key,
        "title": capital(change.measure) + part,
        "before": change.before,
        "after": change.after,
        "low": change.low,
        "high": change.high,
        "form": form_of(change.measure),
        "better": "higher",
        "says": says + SAYS[change.part],
        "chance": None,
        "judgement": judge(evaluation, change),
        "part": change.part,
    }


def _hub_tile(
    evaluation: Evaluation, key: str, measure: str, title: str, form: str, says: str
) -> dict[str, Any]:
    before, after = (getattr(hubness, measure) for hubness in evaluation.hubness)
    low, high = evaluation.hubness_intervals()[measure]
    return {
        "key": key,
        "title": title,
        "before": before,
        "after": after,
        "low": low,
        "high": high,
        "form": form,
        "better": "lower",
        "says": says,
        "chance": getattr(evaluation.chance, measure),
        "judgement": judge_hubs(evaluation, measure),
        "part": "all",
    }
