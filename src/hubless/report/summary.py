"""The head of a page: one sentence, the verdict, and tiles: figures before and after, beside chance."""

from dataclasses import asdict
from typing import Any

import numpy as np

from ..evaluation import Change, Evaluation
from .verdict import (
    PageVerdict,
    beside,
    capital,
    deciding,
    interval,
    is_unmoved,
    judge,
    judge_hubs,
    name,
    seen_beside,
    signed,
    verdict,
)

SAYS = {  # of a score, whose items it is about
    "all": "",
    "unseen": " Queries for items of no training pair, as new items are: the verdict rests on these.",
    "seen": " Queries for an item of a training pair.",
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
    joint = "and" if judge(evaluation, first) == "worse" else "but"
    others = [f", {joint} {name(change)} falls{_span(change)}" for change in beside(evaluation, "worse")]
    if judge(evaluation, first) != "better":
        others += [f", while {name(change)} rises{_span(change)}" for change in beside(evaluation, "better")]
    head = _class_words(evaluation, first) if first.measure == "accuracy" else _rank_words(evaluation, first)
    return f"{head} ({_sure(first)}){''.join(others)}: {said.advice}."


def _span(change: Change) -> str:
    return f" from {change.before:.3f} to {change.after:.3f}"


def _class_words(evaluation: Evaluation, first: Change) -> str:
    before, after = percent(first.before), percent(first.after)
    judgement = judge(evaluation, first)
    if judgement == "better":
        return f"After the move, {after} of the queries get the right class instead of {before}"
    if judgement == "worse":
        return f"After the move, only {after} of the queries get the right class instead of {before}"
    return (
        "Moving does not measurably change how many queries get the right class, "
        f"{before} before and {after} after"
    )


def _rank_words(evaluation: Evaluation, first: Change) -> str:
    whose = {"all": "", "seen": " of training pairs", "unseen": " of no training pair"}[first.part]
    measured = f"{first.measure} {first.before:.3f} before and {first.after:.3f} after"
    judgement = judge(evaluation, first)
    if judgement in ("better", "worse"):
        where = "higher" if judgement == "better" else "lower"
        return f"After the move, relevant items{whose} rank {where}, {measured}"
    return f"Moving does not measurably change how high relevant items{whose} rank, {measured}"


def _sure(first: Change) -> str:
    if first.measure != "accuracy" or not np.isfinite(first.high):
        return interval(first)
    low, high = (signed(100 * bound, 1) for bound in (first.low, first.high))
    return f"95 % interval of the change {low} to {high} points, {first.n:,} queries"


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.1f} %"


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
    return f"{says} {places} leave at least {percent(least)} out."


def _score_tile(evaluation: Evaluation, key: str, change: Change) -> dict[str, Any]:
    k = evaluation.answers.ks.after
    form, says = "fraction", f"How high the relevant items rank among the first {k}; 1 is perfect."
    if change.measure == "accuracy":
        form, says = "percent", f"Queries whose class is {evaluation.answered}."
    part = "" if change.part == "all" else f", {change.part} items"
    return {
        "key": key,
        "title": capital(change.measure) + part,
        "before": change.before,
        "after": change.after,
        "low": change.low,
        "high": change.high,
        "form": form,
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
