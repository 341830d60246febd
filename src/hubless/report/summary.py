"""The head of a page: one sentence, four figures before and after, and the verdict: is moving worth it?"""

from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.stats import binomtest

from ..evaluation import Answers, Change, Evaluation

ROUNDING = 16  # units in the last place that bringing vectors to length 1 may cost
FEW = 20  # with fewer queries, an interval of nDCG says little
KEEP = "Keep the items as they are."
NOT_ADVISED = "The figures give no reason to move: keep the items as they are."
UNIT_FIRST = "Normalise all vectors to length 1 first, or search by L2, and measure again."
METRICS = {"l2": "L2", "cosine": "cosine", "ip": "inner product"}


def summary(evaluation: Evaluation, mover: str) -> dict[str, Any]:
    """Return the sentence, the verdict, four tiles, all measures and the notes."""
    return {
        "sentence": _sentence(evaluation, mover),
        "verdict": verdict(evaluation),
        "figures": _tiles(evaluation),
        "more": [asdict(change) for change in evaluation.figures],
        "notes": evaluation.notes,
    }


def _sentence(evaluation: Evaluation, mover: str) -> str:
    before, after = evaluation.hubness
    busiest, verb = ("the busiest 1 %", "take") if before.n_objects > 100 else ("the busiest one", "takes")
    start = (
        f"Of {before.n_objects:,} stored items, {busiest} {verb} {_percent(before.busiest_share)} of all "
        f"answers to {before.n_queries:,} queries and {_percent(before.antihub_share)} are never returned"
    )
    if is_unmoved(evaluation.answers):
        return f"{start}; the items were not moved."
    return (
        f"{start}; after moving them ({mover}), the busiest {verb} {_percent(after.busiest_share)} and "
        f"{_percent(after.antihub_share)} are never returned."
    )


def _percent(share: float) -> str:
    """Return a share in words, with one more digit where it is small."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def _tiles(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the score with the interval of its change, and three measures of hubness."""
    k, n_busiest = evaluation.hubness[0].k, -(-evaluation.hubness[0].n_objects // 100)
    uneven = "How unevenly items are returned: below 1, hardly any hubs; above 3, bad ones."
    busiest = f"the busiest 1 % of the items ({n_busiest:,})"
    share = f"Share of all places among the {k} nearest that {busiest} take."
    never = f"Items that are among the {k} nearest of no query."
    return [
        _score_tile(evaluation),
        _hub_tile(evaluation, "skewness", "skewness", f"N{k} skewness", "number", uneven),
        _hub_tile(evaluation, "busiest", "busiest_share", "Answers from the busiest 1 %", "percent", share),
        _hub_tile(evaluation, "never", "antihub_share", "Never returned", "percent", never),
    ]


def _score_tile(evaluation: Evaluation) -> dict[str, Any]:
    first, k = evaluation.figures[0], evaluation.answers.ks.after
    form, says = "fraction", f"How high the relevant items rank among the first {k}; 1 is perfect."
    if first.measure == "accuracy":
        form, says = "percent", f"Queries whose class is {evaluation.answered}."
    values = {"before": first.before, "after": first.after, "low": first.low, "high": first.high}
    title = _capital(first.measure)
    return {"key": "score", "title": title, **values, "form": form, "better": "higher", "says": says}


def _hub_tile(
    evaluation: Evaluation, key: str, measure: str, title: str, form: str, says: str
) -> dict[str, Any]:
    before, after = (getattr(hubness, measure) for hubness in evaluation.hubness)
    values = {"before": before, "after": after, "low": None, "high": None}
    return {"key": key, "title": title, **values, "form": form, "better": "lower", "says": says}


def verdict(evaluation: Evaluation) -> dict[str, str]:
    """Return kind ("move", "no gain" or "harmful"), title and words.

    It depends on the 95 % interval of the change of the first figure, and for accuracy also on the exact sign
    test of fixed and broken queries: the interval means little where few queries changed.
    """
    first, metric = evaluation.figures[0], evaluation.answers.metric
    is_shortened = metric == "ip" and not evaluation.answers.is_corrected
    change, hubs = _change_words(first), _hub_words(evaluation)
    if is_unmoved(evaluation.answers):
        return _no_gain("The items were not moved.")
    if (first.low > 0 or first.high < 0) and not _is_significant(evaluation):
        counts = f"{evaluation.fixed:,} fixed, {evaluation.broken:,} broken"
        return _no_gain(f"{change}, but too few queries changed to tell ({counts}). {hubs}")
    if first.low > 0 and is_shortened:
        why = "but moving shortens vectors, and by inner product short ones lose to long ones."
        title = "A gain here, but not a reliable one under this metric (inner product)"
        return _no_gain(f"{change} ({_interval(first)}), {why} {UNIT_FIRST}", title)
    if first.low > 0:
        return {"kind": "move", "title": "Move", "words": f"{change} ({_interval(first)}); {hubs}"}
    if first.high < 0:
        title = f"Harmful under this metric ({METRICS[metric]})"
        words = f"{change} ({_interval(first)}). {UNIT_FIRST if is_shortened else KEEP}"
        return {"kind": "harmful", "title": title, "words": words}
    return _no_clear_change(evaluation)


def _no_clear_change(evaluation: Evaluation) -> dict[str, str]:
    """Return the verdict where the first figure does not change measurably; another figure may."""
    first, hubs = evaluation.figures[0], _hub_words(evaluation)
    words = f"{_change_words(first)}, which may be chance ({_interval(first)})."
    if first.before == first.after:
        words = f"{_capital(first.measure)} stays at {first.after:.3f} ({_interval(first)})."
    other = _other_gain(evaluation)
    if other is None:
        return _no_gain(f"{words} {hubs}")
    gain = f"But {other.measure} rises measurably, from {other.before:.3f} to {other.after:.3f}"
    return _no_gain(f"{words} {gain}: better neighbours. {hubs}", f"No measurable gain in {first.measure}")


def _no_gain(words: str, title: str = "No measurable gain") -> dict[str, str]:
    return {"kind": "no gain", "title": title, "words": words}


def _change_words(change: Change) -> str:
    return f"{_capital(change.measure)} goes from {change.before:.3f} to {change.after:.3f}"


def _interval(change: Change) -> str:
    if not np.isfinite(change.high):
        return "one query has no interval"
    return f"95 % interval of the change {change.low:+.3f} to {change.high:+.3f}"


def _hub_words(evaluation: Evaluation) -> str:
    before, after = evaluation.hubness
    return f"N{before.k} skewness goes from {before.skewness:.2f} to {after.skewness:.2f}."


def _capital(measure: str) -> str:
    """Return the name of a measure as it begins a sentence."""
    return measure if measure.startswith("nDCG") else measure[0].upper() + measure[1:]


def is_unmoved(answers: Answers) -> bool:
    """Return whether no object was moved, up to rounding."""
    before, after = answers.stored
    if before.shape != after.shape:
        return False
    return bool(np.abs(after - before).max() <= ROUNDING * np.finfo(before.dtype).eps * np.abs(before).max())


def advises_moving(evaluation: Evaluation) -> bool:
    """Return whether moving is better: by the first figure, or by another where that one does not change."""
    kind = verdict(evaluation)["kind"]
    has_gain = _other_gain(evaluation) is not None
    return kind == "move" or (kind == "no gain" and has_gain and not is_unmoved(evaluation.answers))


def _other_gain(evaluation: Evaluation) -> Change | None:
    """Return a figure beside the first, over all queries, that rises measurably; None without one."""
    others = [change for change in evaluation.figures[1:] if change.part == "all" and change.n >= FEW]
    return next((change for change in others if change.low > 0), None)


def _is_significant(evaluation: Evaluation) -> bool:
    """Return whether enough queries changed to rule out chance."""
    if evaluation.figures[0].measure != "accuracy":
        return evaluation.figures[0].n >= FEW
    changed = evaluation.fixed + evaluation.broken
    return changed > 0 and float(binomtest(evaluation.fixed, changed).pvalue) < 0.05
