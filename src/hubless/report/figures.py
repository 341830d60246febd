"""Figures of a page: how often items are returned, which classes are confused, why hubs come and go."""

from collections import Counter
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from ..arrays import to_numpy
from ..evaluation import Answers, BeforeAfter
from ..movers import Mover, Unit
from ..selection.candidates import steps
from .details import class_names, short_name

RANKS = 400  # of the skyline
SHARES = 100  # of the Lorenz curve
WEAK = 0.05  # a correlation that is as good as none
DOTS = 800  # objects in the chart of centrality


def skyline(occurrence: BeforeAfter) -> dict[str, Any]:
    """Return N_k in falling order, at ranks that are even on a log axis."""
    rank = np.unique(np.round(np.geomspace(1, len(occurrence.before), RANKS)).astype(np.int64))
    before, after = (np.sort(counts)[::-1][rank - 1] for counts in occurrence)
    return {"rank": rank, "before": before, "after": after, "mean": float(np.mean(occurrence.before))}


# L(q) = Σ of the q n least N_k / Σ N_k;   Gini = 1 − 2 ∫ L
def lorenz(occurrence: BeforeAfter) -> dict[str, Any]:
    """Return the share of the answers from the least busy share of the objects, and the Gini coefficient."""
    share, curves, gini = np.linspace(0, 1, SHARES + 1), {}, {}
    for state, counts in occurrence._asdict().items():
        curve = np.concatenate([[0], np.cumsum(np.sort(counts))]) / max(counts.sum(), 1)
        places = np.linspace(0, 1, len(curve))
        curves[state] = np.interp(share, places, curve)
        gini[state] = 1 - 2 * float(np.trapezoid(curve, places))
    return {"share": share, **curves, "gini": gini}


def classes(answers: Answers) -> dict[str, Any] | None:
    """Count for each pair of classes the queries of one that were given the other; None without classes."""
    if answers.truth is None or answers.predicted is None:
        return None
    names = class_names(answers)
    truth = np.searchsorted(names, answers.truth)
    return {
        "names": _distinct([short_name(name) for name in names.tolist()]),
        "queries": np.bincount(truth, minlength=len(names)),
        "wrong": {
            state: _wrong(truth, np.asarray(np.searchsorted(names, predicted)), len(names))
            for state, predicted in answers.predicted._asdict().items()
        },
    }


def _distinct(names: list[str]) -> list[str]:
    """Number names that are equal because long ones were cut."""
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        distinct.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return distinct


def _wrong(truth: np.ndarray, predicted: np.ndarray, n: int) -> list[list[int]]:
    """Return [class of the query, class it was given, queries], where the classes differ."""
    wrong = truth != predicted
    cells, counts = np.unique(truth[wrong] * n + predicted[wrong], return_counts=True)
    return [[int(cell // n), int(cell % n), int(count)] for cell, count in zip(cells, counts, strict=True)]


def why(answers: Answers, occurrence: BeforeAfter, components: PCA, W: np.ndarray | None) -> dict[str, Any]:
    """Return distances to the mean beside N_k, variances along principal components, singular values of W."""
    before = answers.stored.before
    points = {"before": before, "after": answers.stored.after[:, : before.shape[1]]}
    singular = None if W is None else np.linalg.svd(W, compute_uv=False)
    return {
        "centrality": _centrality(points, occurrence),
        "variance": _variance(points | {"queries": answers.queries}, components),
        "singular_values": singular,
        "singular_words": _singular_words(singular),
    }


def _centrality(points: dict[str, np.ndarray], occurrence: BeforeAfter) -> dict[str, Any]:
    """Return distances to the mean of the original objects, with N_k and their correlation."""
    mean = points["before"].mean(axis=0, dtype=np.float64)
    dots = _spread(np.maximum(*occurrence), DOTS)
    charts: dict[str, Any] = {}
    for (state, stored), counts in zip(points.items(), occurrence, strict=True):
        distance = np.linalg.norm(stored - mean, axis=1)
        charts[state] = {
            "distance": distance[dots],
            "occurrence": counts[dots],
            "correlation": _correlation(distance, counts),
        }
    words = _sign_words(*(charts[state]["correlation"] for state in ("before", "after")))
    return charts | {"shown": len(dots), "of": len(points["before"]), "words": words}


def _sign_words(before: float | None, after: float | None) -> str:
    """Explain a correlation that changes its sign; nothing where it does not."""
    if before is None or after is None or min(abs(before), abs(after)) < WEAK or before * after > 0:
        return ""
    first, then = ("near", "far from") if before < 0 else ("far from", "near")
    return (
        f"The correlation changes its sign: before, items {first} the mean are found most often, "
        f"after, those {then} it. The distance to the mean still says who is found; the "
        "skewness says whether few items take most answers."
    )


def _spread(occurrence: np.ndarray, limit: int) -> np.ndarray:
    """Choose rows: all, or an eighth the busiest and the others at even steps through the order of N_k."""
    order = np.argsort(-occurrence, kind="stable")
    if len(order) <= limit:
        return np.sort(order)
    top = limit // 8
    rest = np.linspace(top, len(order) - 1, limit - top).astype(np.int64)
    return np.sort(np.concatenate([order[:top], order[rest]]))


def _correlation(distance: np.ndarray, occurrence: np.ndarray) -> float | None:
    """Return Spearman's correlation; None where one of the two is the same for all."""
    if np.ptp(distance) == 0 or np.ptp(occurrence) == 0:
        return None
    return float(spearmanr(distance, occurrence).statistic)


def _variance(points: dict[str, np.ndarray], components: PCA) -> dict[str, Any]:
    """Return variances along the components, and in total."""
    along = {name: components.transform(part).var(axis=0) for name, part in points.items()}
    total = {name: float(part.var(axis=0, dtype=np.float64).sum()) for name, part in points.items()}
    return {"component": np.arange(1, components.n_components_ + 1), **along, "total": total}


def matrix_of(mover: Mover) -> np.ndarray | None:
    """Return W of a mover that is one matrix, even if vectors get length 1 after it; None for any other."""
    parts = [step for step in steps(mover) if not isinstance(step, Unit)]
    W = getattr(parts[0], "W_", None) if len(parts) == 1 else None
    return None if W is None else np.asarray(to_numpy(W), dtype=np.float64)


def _singular_words(values: np.ndarray | None) -> str:
    if values is None:
        return "This mover is not a single matrix, so it has no singular values."
    return f"The largest is {values[0]:.2f}, the smallest {values[-1]:.2g}."
