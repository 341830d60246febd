"""The numbers of a page: summary and verdict, skyline, classes that take from each other, why it works."""

from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.stats import binomtest, spearmanr
from sklearn.decomposition import PCA

from ..evaluation import Asked, Evaluation, Figure, Pair
from .shown import name

RANKS = 400  # of the skyline
SHARES = 100  # of the curve of Lorenz
SHOWN = 800  # objects in the chart of centrality
ROUNDING = 16  # units in the last place that bringing to length 1 may cost
FEW = 20  # queries, of which an interval of nDCG says little
NOT_ASKED_FOR = "The figures do not ask for it: keep the items as they are."
UNIT_FIRST = "Bring all vectors to length 1 first, or search by L2, and measure again."


def summary(evaluation: Evaluation, mover: str) -> dict[str, Any]:
    """One sentence, four figures before and after, and a verdict in words."""
    first, (before, after) = evaluation.figures[0], evaluation.hubness
    score = "percent" if first.measure == "accuracy" else "fraction"
    figures = [
        _tile("score", _capital(first.measure), first, score, "higher", _meaning(evaluation)),
        _tile(
            "skewness",
            f"N{before.k} skewness",
            Pair(before.skewness, after.skewness),
            "number",
            "lower",
            "How uneven the answers are spread: below 1, hardly any hubs; above 3, bad ones.",
        ),
        _tile(
            "busiest",
            "Answers from the busiest 1 %",
            Pair(before.busiest_share, after.busiest_share),
            "percent",
            "lower",
            f"Share of all places among the {before.k} nearest that 1 % of the items "
            f"({-(-before.n_objects // 100):,}) take.",
        ),
        _tile(
            "never",
            "Never returned",
            Pair(before.antihub_share, after.antihub_share),
            "percent",
            "lower",
            f"Items that are among the {before.k} nearest of no query.",
        ),
    ]
    return {
        "sentence": _sentence(evaluation, mover),
        "verdict": verdict(evaluation),
        "figures": figures,
        "more": [asdict(entry) for entry in evaluation.figures],
        "notes": evaluation.notes,
    }


def _tile(key: str, title: str, values: Pair | Figure, form: str, better: str, says: str) -> dict[str, Any]:
    low, high = (values.low, values.high) if isinstance(values, Figure) else (None, None)
    return {
        "key": key,
        "title": title,
        "before": values.before,
        "after": values.after,
        "low": low,
        "high": high,
        "form": form,
        "better": better,
        "says": says,
    }


def _meaning(evaluation: Evaluation) -> str:
    if evaluation.figures[0].measure == "accuracy":
        return f"Queries whose class is {evaluation.answered}."
    return f"How high the relevant items rank among the first {evaluation.asked.ks.after}; 1 is perfect."


def _capital(text: str) -> str:
    return text if text.startswith("nDCG") else text[0].upper() + text[1:]


def _sentence(evaluation: Evaluation, mover: str) -> str:
    before, after = evaluation.hubness
    busiest, verb = ("the busiest 1 %", "take") if before.n_objects > 100 else ("the busiest one", "takes")
    told = (
        f"Of {before.n_objects:,} stored items, {busiest} {verb} {percent(before.busiest_share)} of all "
        f"answers to {before.n_queries:,} queries and {percent(before.antihub_share)} are never returned"
    )
    if is_unmoved(evaluation.asked):
        return f"{told}; the items were not moved."
    return (
        f"{told}; after moving them ({mover}), the busiest {verb} {percent(after.busiest_share)} and "
        f"{percent(after.antihub_share)} are never returned."
    )


def percent(share: float) -> str:
    """A share in words, one digit more where it is small."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def is_unmoved(asked: Asked) -> bool:
    """Whether the objects are where they were, up to rounding."""
    before, after = asked.stored
    if before.shape != after.shape:
        return False
    return bool(np.abs(after - before).max() <= ROUNDING * np.finfo(before.dtype).eps * np.abs(before).max())


def verdict(evaluation: Evaluation) -> dict[str, str]:
    """Move, no measurable gain, or harmful.

    By the 95 % interval of the change of the first figure, and for accuracy by the exact sign test of queries
    fixed and broken too: the interval means little where few queries changed.
    """
    first, asked = evaluation.figures[0], evaluation.asked
    before, after = evaluation.hubness
    told = f"{_capital(first.measure)} goes from {first.before:.3f} to {first.after:.3f}"
    span = f"95 % interval of the change {first.low:+.3f} to {first.high:+.3f}"
    span = span if np.isfinite(first.high) else "one query has no interval"
    hubs = f"N{before.k} skewness goes from {before.skewness:.2f} to {after.skewness:.2f}."
    if is_unmoved(asked):
        return {
            "kind": "no gain",
            "title": "No measurable gain",
            "words": "The items were not moved.",
        }
    clear = first.low > 0 or first.high < 0
    if clear and not _is_enough(evaluation):
        changed = f"{evaluation.fixed:,} fixed, {evaluation.broken:,} broken"
        words = f"{told}, but too few queries changed to tell ({changed}). {hubs}"
        return {"kind": "no gain", "title": "No measurable gain", "words": words}
    if first.low > 0 and asked.metric == "ip":
        words = f"{told} ({span}), but moved vectors are shorter and lose by inner product to others."
        title = "A gain here, but none to rely on under this metric (inner product)"
        return {"kind": "no gain", "title": title, "words": f"{words} {UNIT_FIRST}"}
    if first.low > 0:
        return {"kind": "move", "title": "Move", "words": f"{told} ({span}); {hubs}"}
    if first.high < 0:
        why = UNIT_FIRST if asked.metric == "ip" else "Keep the items as they are."
        title = f"Harmful under this metric ({_METRICS[asked.metric]})"
        return {"kind": "harmful", "title": title, "words": f"{told} ({span}). {why}"}
    chance = f"{told}, which may be chance ({span})."
    if first.before == first.after:
        chance = f"{_capital(first.measure)} stays at {first.after:.3f} ({span})."
    others = _risen(evaluation)
    if not others:
        return {"kind": "no gain", "title": "No measurable gain", "words": f"{chance} {hubs}"}
    own = others[0]
    rises = (
        f"But {own.measure} rises measurably, from {own.before:.3f} to {own.after:.3f}: better neighbours."
    )
    title = f"No measurable gain in {first.measure}"
    return {"kind": "no gain", "title": title, "words": f"{chance} {rises} {hubs}"}


def is_asked_for(evaluation: Evaluation) -> bool:
    """Whether moving is for the better: by the first figure, or by another where that is level."""
    kind = verdict(evaluation)["kind"]
    return kind == "move" or (
        kind == "no gain" and bool(_risen(evaluation)) and not is_unmoved(evaluation.asked)
    )


def _risen(evaluation: Evaluation) -> list[Figure]:
    """Figures beside the first, over all queries, that rise measurably."""
    return [own for own in evaluation.figures[1:] if own.low > 0 and own.part == "all" and own.n >= FEW]


def _is_enough(evaluation: Evaluation) -> bool:
    """Whether so many queries changed that it is no chance."""
    if evaluation.figures[0].measure != "accuracy":
        return evaluation.figures[0].n >= FEW
    changed = evaluation.fixed + evaluation.broken
    return changed > 0 and float(binomtest(evaluation.fixed, changed).pvalue) < 0.05


_METRICS = {"l2": "L2", "cosine": "cosine", "ip": "inner product"}


def skyline(occurrence: Pair) -> dict[str, Any]:
    """N_k in falling order, at ranks that are even on a log axis."""
    n = len(occurrence.before)
    rank = np.unique(np.round(np.geomspace(1, n, RANKS)).astype(np.int64))
    falling = [np.sort(own)[::-1][rank - 1] for own in occurrence]
    return {
        "rank": rank,
        "before": falling[0],
        "after": falling[1],
        "mean": float(np.mean(occurrence.before)),
    }


# L(q) = Σ of the q n least N_k / Σ N_k;   Gini = 1 − 2 ∫ L
def lorenz(occurrence: Pair) -> dict[str, Any]:
    """Share of the answers that the least busy share of the objects has, and the Gini coefficient."""
    curves = [np.concatenate([[0], np.cumsum(np.sort(own))]) / max(own.sum(), 1) for own in occurrence]
    places = np.linspace(0, 1, len(curves[0]))
    share = np.linspace(0, 1, SHARES + 1)
    gini = [1 - 2 * float(np.trapezoid(curve, places)) for curve in curves]
    return {
        "share": share,
        "before": np.interp(share, places, curves[0]),
        "after": np.interp(share, places, curves[1]),
        "gini": {"before": gini[0], "after": gini[1]},
    }


def class_names(asked: Asked) -> np.ndarray:
    """All classes of objects and queries, in order; (c,)."""
    return np.unique(np.concatenate([asked.labels, asked.truth]))


def classes(asked: Asked) -> dict[str, Any] | None:
    """For each pair of classes the queries of one that were given the other; None without classes."""
    if asked.labels is None or asked.truth is None or asked.answer is None:
        return None
    names = class_names(asked)
    truth = np.searchsorted(names, asked.truth)
    return {
        "names": _distinct([name(own) for own in names.tolist()]),
        "queries": np.bincount(truth, minlength=len(names)),
        "wrong": {
            state: _wrong(truth, np.asarray(np.searchsorted(names, answer)), len(names))
            for state, answer in asked.answer._asdict().items()
        },
    }


def _distinct(names: list[str]) -> list[str]:
    """Names that differ, also where long ones were cut to the same."""
    seen: dict[str, int] = {}
    found = []
    for own in names:
        seen[own] = seen.get(own, 0) + 1
        found.append(own if seen[own] == 1 else f"{own} ({seen[own]})")
    return found


def _wrong(truth: np.ndarray, answer: np.ndarray, n: int) -> list[list[int]]:
    """[class of the query, class it was given, queries], where these differ."""
    bad = truth != answer
    pairs, counts = np.unique(truth[bad] * n + answer[bad], return_counts=True)
    return [[int(own // n), int(own % n), int(count)] for own, count in zip(pairs, counts, strict=True)]


def changed(evaluation: Evaluation) -> dict[str, int]:
    """How many queries were fixed, broken, and stayed."""
    before, after = evaluation.asked.right
    return {
        "fixed": evaluation.fixed,
        "broken": evaluation.broken,
        "unchanged_right": int((before & after).sum()),
        "unchanged_wrong": int((~before & ~after).sum()),
    }


def why(asked: Asked, occurrence: Pair, axes: PCA, W: np.ndarray | None) -> dict[str, Any]:
    """Distance to the mean against N_k, variances along principal components, singular values of W."""
    before = asked.stored.before
    after = asked.stored.after[:, : before.shape[1]]
    mean = before.mean(axis=0, dtype=np.float64)
    distances = Pair(*(np.linalg.norm(own - mean, axis=1) for own in (before, after)))
    shown = _even(np.maximum(*occurrence), SHOWN)
    projected = [axes.transform(own) for own in (before, after, asked.queries)]
    variances = [own.var(axis=0) for own in projected]
    totals = [float(own.var(axis=0, dtype=np.float64).sum()) for own in (before, after, asked.queries)]
    states = ("before", "after", "queries")
    singular = None if W is None else np.linalg.svd(W, compute_uv=False)
    return {
        "centrality": {
            state: {
                "distance": distance[shown],
                "occurrence": own[shown],
                "correlation": _correlation(distance, own),
            }
            for state, distance, own in zip(states[:2], distances, occurrence, strict=True)
        }
        | {"shown": len(shown), "of": len(before)},
        "variance": {
            "component": np.arange(1, axes.n_components_ + 1),
            **dict(zip(states, variances, strict=True)),
            "total": dict(zip(states, totals, strict=True)),
        },
        "singular_values": singular,
        "singular_words": _singular_words(singular),
    }


def _singular_words(values: np.ndarray | None) -> str:
    if values is None:
        return "This way to move is not one matrix, so it has no singular values."
    return f"The largest is {values[0]:.2f}, the least {values[-1]:.2g}."


def _even(occurrence: np.ndarray, limit: int) -> np.ndarray:
    """Row numbers: all, or an eighth the busiest and the others at even steps through the order of N_k."""
    order = np.argsort(-occurrence, kind="stable")
    if len(order) <= limit:
        return np.sort(order)
    top = limit // 8
    rest = np.linspace(top, len(order) - 1, limit - top).astype(np.int64)
    return np.sort(np.concatenate([order[:top], order[rest]]))


def _correlation(distance: np.ndarray, occurrence: np.ndarray) -> float | None:
    """Spearman's; None where one of the two is the same for all."""
    if np.ptp(distance) == 0 or np.ptp(occurrence) == 0:
        return None
    return float(spearmanr(distance, occurrence).statistic)
