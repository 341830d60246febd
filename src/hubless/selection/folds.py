"""Folds of labeled objects and of queries, and scores on what is held out, with their standard errors."""

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from ..arrays import Array, convert, to_numpy
from ..arrays.inputs import check_counts
from ..neighbors.knn import vote, votes_of
from ..neighbors.search import search
from ..targets import Labeled, restrict, same_class_targets, useful_targets

NEIGHBORS = (1, 3, 5, 7, 10, 15, 20, 30, 50)  # k that are tried by default; a race stops at 30


FOLDS = 5  # by default; with fewer than two objects in each, objects are left out one at a time
LARGE = 5000  # objects; with more, 3 folds choose as well as 5
FEW_COPIES = 0.05  # of all objects: these go to the folds of what they are copies of


def folds(
    codes: np.ndarray,
    kept: np.ndarray,
    cv: Any,
    random_state: Any,
    copies: np.ndarray | None = None,
    *,
    needs_pair: bool = True,
) -> list[tuple[np.ndarray, ...]]:
    """Return (train, test) as sorted places in `kept`; stratified and shuffled unless folds are given.

    Parameters
    ----------
    codes : int array of shape (n,), the classes of all rows, which a splitter or given folds refer to
    kept : int array of shape (m,), the rows that are used
    cv : number of folds, splitter or folds; None for `_default_folds`
    copies : int array of shape (m,), optional
        Kept rows of the same number stay in one fold (see `copies`), except in given folds.
    """
    if not (cv is None or isinstance(cv, int | np.integer)):
        rows = np.arange(len(codes))  # rows[part] reads numbers and masks alike
        parts = check_cv(cv, codes, classifier=True).split(codes, codes)
        return [tuple(np.flatnonzero(np.isin(kept, rows[part])) for part in pair) for pair in parts]
    codes = codes[kept]
    n = len(codes)
    if cv is None:
        cv = _default_folds(codes, needs_pair)
    elif not 2 <= cv <= n:
        raise ValueError(f"cv must be from 2 to the number of labeled objects, {n}; got {cv}.")
    shuffled = check_random_state(random_state).permutation(n)
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    n_distinct = n if copies is None else len(np.unique(copies))
    if n_distinct == 1:  # no fold is better than another
        copies = None
    cv = min(cv, n if copies is None else n_distinct)
    # Members of a class, shuffled, are dealt to the folds one after another, and the next class continues
    # where the last stopped: folds are equally large, and a class is spread as evenly as it can be.
    fold = np.empty(n, dtype=int)
    fold[dealt] = np.arange(n) % cv
    if copies is not None and n_distinct < n:
        few = n - n_distinct <= FEW_COPIES * n
        fold = _follow_first(fold, copies, dealt) if few else _deal_groups(codes, copies, dealt, cv)
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(cv)]


def _default_folds(codes: np.ndarray, needs_pair: bool) -> int:
    """Return how many folds to make of objects of these classes.

    With two objects per class, more than two folds would leave one object of a query's class and two of every
    other, and what is learned from classes would look worse than it is. Two folds have no pair of a class to
    learn from; `needs_pair` says that there must be one.
    """
    n, is_pairs = len(codes), bool(np.median(np.bincount(codes)[codes]) == 2)
    if n < 2 * FOLDS:
        return n
    return 2 if is_pairs and not needs_pair else FOLDS if n <= LARGE else 3


def _follow_first(fold: np.ndarray, groups: np.ndarray, dealt: np.ndarray) -> np.ndarray:
    """Return folds in which a group is where the first of it was dealt: a few copies change little."""
    _, first, number = np.unique(groups[dealt], return_index=True, return_inverse=True)
    followed = np.empty_like(fold)
    followed[dealt] = fold[dealt][first[number]]
    return followed


def _deal_groups(codes: np.ndarray, groups: np.ndarray, dealt: np.ndarray, n_folds: int) -> np.ndarray:
    """Return the fold of each object, groups undivided: the same as without groups where each is one object.

    The largest group comes first, equal ones in the order `dealt`. Each goes to the fold with the fewest
    objects of its classes; of several, to the smallest fold. Folds with the most groups come first: a race
    that ends early then has seen the most different queries.
    """
    n = len(codes)
    _, first, number, sizes = np.unique(
        groups[dealt], return_index=True, return_inverse=True, return_counts=True
    )
    rows = dealt[np.lexsort((first[number], -sizes[number]))]
    ends = np.flatnonzero(np.diff(groups[rows], append=groups[rows[-1]] + 1)) + 1
    held = [[0] * n_folds for _ in range(int(codes.max()) + 1)]  # objects of each class in each fold
    total, n_groups, fold, start = [0] * n_folds, [0] * n_folds, np.empty(n, dtype=int), 0
    for end in ends.tolist():
        alike = [held[code] for code in codes[rows[start:end]].tolist()]
        i = min(range(n_folds), key=lambda i: (sum(counts[i] for counts in alike), total[i]))
        for counts in alike:
            counts[i] += 1
        total[i] += end - start
        n_groups[i] += 1
        fold[rows[start:end]], start = i, end
    place = np.argsort(np.argsort(-np.array(n_groups), kind="stable"))
    return place[fold]


def can_compare(codes: np.ndarray, parts: Any, needs_pair: bool, cv: Any) -> bool:
    """Return whether settings can differ: a query has an object of its class to find, in one training part.

    With `needs_pair`, a pair of a class must be there too. Folds that were asked for by `cv` are taken to do,
    unless every object is alone in its class.
    """
    if cv is not None:
        return bool(np.bincount(codes).max() > 1)
    for train, test in parts:
        sizes = np.bincount(codes[train], minlength=int(codes.max()) + 1)
        if (sizes[codes[test]] > 0).any() and (sizes.max() > 1 or not needs_pair):
            return True
    return False


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
    if width == 0:
        return part
    return part._replace(targets=same_class_targets(part.X, part.codes, useful_targets(part.codes, width)))


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
    behind: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return a setting that was tried as plain data for a page; null for what is not finite.

    `behind` is by how much the chosen one is ahead of it on the same queries, and the standard error of that.
    """
    return {
        "name": name,
        "k": k,
        "score": float(score) if np.isfinite(score) else None,
        "error": float(error) if np.isfinite(error) else None,
        "queries": None if queries is None else int(queries),
        "seconds": seconds,
        "chosen": chosen,
        "why_not": why_not,
        "behind": None if behind is None or not np.isfinite(behind).all() else [*map(float, behind)],
    }
