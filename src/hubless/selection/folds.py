"""Folds of labeled objects and of queries, and scores on what is held out, with their standard errors."""

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from ..arrays import Array, convert, to_numpy
from ..arrays.inputs import check_counts
from ..neighbors.knn import vote, votes_of
from ..neighbors.search import search
from ..targets import Labeled, restrict, same_class_targets

NEIGHBORS = (1, 3, 5, 7, 10, 15, 20, 30, 50)  # k that are tried by default; a race stops at 30


def folds(codes: np.ndarray, kept: np.ndarray, cv: Any, random_state: Any) -> list[tuple[np.ndarray, ...]]:
    """Return (train, test) as sorted places in `kept`; stratified and shuffled where `cv` is a number.

    `codes` are the classes of all rows, which a splitter or given folds refer to; `kept` are the rows that
    are used.
    """
    if not isinstance(cv, int | np.integer):
        rows = np.arange(len(codes))  # rows[part] reads numbers and masks alike
        parts = check_cv(cv, codes, classifier=True).split(codes, codes)
        return [tuple(np.flatnonzero(np.isin(kept, rows[part])) for part in pair) for pair in parts]
    codes = codes[kept]
    n = len(codes)
    if not 2 <= cv <= n:
        raise ValueError(f"cv must be from 2 to the number of labeled objects, {n}; got {cv}.")
    # Members of a class, shuffled, are dealt to the folds one after another, and the next class continues
    # where the last stopped: folds are equally large, and a class of any size is spread as evenly as it can.
    shuffled = check_random_state(random_state).permutation(n)
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(n, dtype=int)
    fold[dealt] = np.arange(n) % cv
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(cv)]


def query_folds(n: int, n_folds: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (train, test) of queries without classes, shuffled."""
    return [(np.setdiff1d(np.arange(n), test), test) for test in np.array_split(rng.permutation(n), n_folds)]


def training_part(labeled: Labeled, train: np.ndarray, width: int, given_targets: bool) -> Labeled:
    """Return the labeled objects of a training part, with up to `width` targets among them.

    `given_targets` takes the targets of `labeled` that are in the part; else they are searched for.
    """
    rows = convert(train, labeled.X)
    part = labeled.take(rows)
    if given_targets:
        return part._replace(targets=restrict(labeled.targets, rows, width))
    return part._replace(targets=same_class_targets(part.X, part.codes, width)) if width else part


def feasible_neighbors(n_neighbors: Any, smallest: int, most: int | None = None) -> tuple[int, ...]:
    """Return the numbers of neighbours to try where the smallest training part has `smallest` objects.

    By default those of NEIGHBORS up to `most`.
    """
    if n_neighbors is None:
        return tuple(k for k in NEIGHBORS if k <= smallest and (most is None or k <= most))
    ks = check_counts("n_neighbors", n_neighbors)
    if max(ks) > smallest:
        raise ValueError(
            f"n_neighbors may be at most {smallest}, the objects in the smallest training part of "
            f"the cross-validation; got {max(ks)}. Ask for fewer neighbours or more folds."
        )
    return ks


# --- how good a setting is on held-out queries, and how sure that is ----------------------------------------


TIE = 1e-12  # scores this close are equal: means of equal counts may differ by rounding


def predict_by_ks(
    queries: Array, stored: Array, codes: Array, weights: Array | None, ks: tuple[int, ...], by_distance: bool
) -> list[Array]:
    """Return the class numbers of queries, an array for each number of neighbours, from one search."""
    result = search(queries, stored, max(ks), return_distance=by_distance)
    distances, indices = result if by_distance else (None, result)
    return list(vote(*votes_of(indices, distances, codes, weights), ks=ks))


# Σ w [ŷ = y] / Σ w
def accuracy(predicted: Array, truth: Array, weights: Array | None = None) -> float:
    """Return the share of queries that are answered correctly."""
    is_right = to_numpy(predicted == truth)
    return float(np.average(is_right, weights=None if weights is None else to_numpy(weights)))


# d̄ = mean(d) and its standard error s / √n; with weights w that sum to 1, √(Σ w² (d − d̄)²)
def mean_and_error(differences: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Return the mean of one number per query, such as the gain over another setting, and its error."""
    if weights is None:
        if len(differences) < 2:  # too few to say anything
            return 0.0, 0.0
        return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    w = weights / weights.sum()
    mean = float(w @ differences)
    return mean, float(np.sqrt(w**2 @ (differences - mean) ** 2))


# √(p (1 − p) / n)
def share_error(share: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the standard error of a share of n queries."""
    return np.asarray(np.sqrt(share * (1 - share) / np.maximum(n, 1)))


def tried_row(
    name: str,
    score: float,
    error: float,
    queries: int | None,
    *,
    chosen: bool,
    k: int | None = None,
    seconds: float | None = None,
    why_not: str = "",
) -> dict[str, Any]:
    """Return a setting that was tried as plain data for a page; null for what is not finite."""
    return {
        "name": name,
        "k": k,
        "score": float(score) if np.isfinite(score) else None,
        "error": float(error) if np.isfinite(error) else None,
        "queries": None if queries is None else int(queries),
        "seconds": seconds,
        "chosen": chosen,
        "why_not": why_not,
    }
