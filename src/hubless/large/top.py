"""Neighbours among objects in blocks: the nearest of each block, and of these the nearest."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..hubness import Hubness, of_occurrence
from ..neighbors import check_neighbors
from ..ranking import differences, without
from ..topk import search
from ..vote import distance_weights, probabilities, vote
from .lesson import nearest_of_all
from .tasks import floats


class Top(NamedTuple):
    """The nearest objects of each of m queries, nearest first."""

    squared: np.ndarray  # (m, k), float64, inf where there is none
    rows: np.ndarray  # (m, k), int64, their numbers, -1 where there is none
    codes: np.ndarray | None  # (m, k), their classes


def top_of_block(queries: Any, objects: Any, codes: Any, first: int, k: int) -> Top:
    """The k nearest of one block of objects, whose first has the number `first`."""
    queries, objects = _finite(queries, "queries"), _finite(objects, "objects")
    wanted = min(k, len(objects))
    if not wanted or not len(queries):
        none = np.full((len(queries), k), -1, dtype=np.int64)
        return Top(np.full(none.shape, np.inf), none, None if codes is None else none)
    found = search(queries, objects, wanted, return_distance=False)
    rows = np.repeat(np.arange(len(queries)), wanted)
    squared = differences(queries, objects, rows, found.reshape(-1)).reshape(found.shape)
    spare = ((0, 0), (0, k - wanted))
    return Top(
        np.pad(squared, spare, constant_values=np.inf),
        np.pad(found + first, spare, constant_values=-1),
        None if codes is None else np.pad(np.asarray(codes)[found], spare, constant_values=-1),
    )


def _finite(X: Any, name: str) -> np.ndarray:
    """Numbers that can be compared; ValueError where one is none."""
    X = floats(X)
    if not np.isfinite(X).all():
        raise ValueError(f"{name} have NaN or an infinite number; drop or repair such rows.")
    return X


def top_of_all(found: Sequence[Top]) -> Top:
    """The nearest of several blocks; of equal ones that of the lower number."""
    squared, rows, *codes = nearest_of_all([[part for part in top if part is not None] for top in found])
    return Top(squared, rows, codes[0] if codes else None)


def without_self(top: Top, first: int) -> Top:
    """One neighbour less of each query: itself, an object with its number, or else the last."""
    own = first + np.arange(len(top.rows))
    squared, rows = (without(np, part, top.rows, own) for part in (top.squared, top.rows))
    return Top(squared, rows, None if top.codes is None else without(np, top.codes, top.rows, own))


def distances_of(top: Top, dtype: Any) -> np.ndarray:
    """‖x − z‖ of queries and their neighbours."""
    return np.sqrt(top.squared).astype(dtype)


def rows_of(top: Top) -> np.ndarray:
    return top.rows


def winners_of(top: Top, classes: np.ndarray, far: Any) -> np.ndarray:
    """Classes that the neighbours vote for; by distances of the type `far`, or equally."""
    return np.asarray(classes[vote(*_votes(top, far))]) if len(top.rows) else classes[:0]


def shares_of(top: Top, n_classes: int, far: Any, dtype: Any) -> np.ndarray:
    """Shares of the votes of each class; (m, classes)."""
    if not len(top.rows):
        return np.zeros((0, n_classes), dtype)
    labels, weights = _votes(top, far)
    return np.asarray(probabilities(labels, n_classes, weights, dtype=dtype))


def _votes(top: Top, far: Any) -> tuple[Any, Any]:
    assert top.codes is not None
    return top.codes, None if far is None else distance_weights(distances_of(top, far))


def n_right(found: np.ndarray, y: Any) -> int:
    """How many classes were found."""
    if len(found) != len(y):
        raise ValueError(f"a block of X has {len(found):,} rows, that of y {len(y):,}: they do not pair up.")
    return int((found == np.asarray(y)).sum())


# --- how often objects are found ---------------------------------------------------------------------------


def occurrence_in(index: np.ndarray, first: int, last: int, n_objects: int) -> np.ndarray:
    """N_k of the objects first … last − 1 over some queries; int64."""
    if len(index):
        check_neighbors(index, n_objects)
    here = index[(index >= first) & (index < last)] - first
    return np.bincount(here, minlength=last - first)


def sum_of_arrays(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.sum(arrays, axis=0)


def measures_of(occurrences: Sequence[np.ndarray], k: int, n_queries: int) -> Hubness:
    """Every measure of hubness, without the numbers of each object, which are many."""
    found = of_occurrence(np.concatenate(occurrences), None, k, n_queries)
    return replace(found, occurrence=None)
