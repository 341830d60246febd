"""Neighbours among objects in blocks: find the nearest of each block, and merge them.

Distances are squared, in float64 from direct differences: blocks of any size give the same neighbours.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import float_type
from .differences import squared_distances
from .ranking import drop_self
from .search import search


class Nearest(NamedTuple):
    """The nearest objects of each of m queries, nearest first."""

    squared: np.ndarray  # (m, k), float64, inf where there is none
    rows: np.ndarray  # (m, k), int64, their numbers, -1 where there is none
    codes: np.ndarray | None = None  # (m, k), their classes


def nearest_in_block(
    queries: Any, objects: Any, codes: Any, first: int, k: int, precision: str | None = None
) -> Nearest:
    """Find the k nearest of one block of objects, whose first has the number `first`."""
    queries, objects = _finite(queries, "queries"), _finite(objects, "objects")
    width = min(k, len(objects))
    if not width or not len(queries):
        none = np.full((len(queries), k), -1, dtype=np.int64)
        return Nearest(np.full(none.shape, np.inf), none, None if codes is None else none)
    indices = search(queries, objects, width, return_distance=False, precision=precision)
    query = np.repeat(np.arange(len(queries)), width)
    squared = squared_distances(queries, objects, query, indices.reshape(-1)).reshape(indices.shape)
    empty = ((0, 0), (0, k - width))
    return Nearest(
        np.pad(squared, empty, constant_values=np.inf),
        np.pad(indices + first, empty, constant_values=-1),
        None if codes is None else np.pad(np.asarray(codes)[indices], empty, constant_values=-1),
    )


def nearest_of_blocks(blocks: Sequence[Nearest]) -> Nearest:
    """Merge the nearest of several blocks; of equal distances, the object of the lower number is first."""
    k = blocks[0].squared.shape[1]
    fields = zip(*([field for field in block if field is not None] for block in blocks), strict=True)
    joined = [np.concatenate(field, axis=1) for field in fields]
    order = np.lexsort((joined[1], joined[0]), axis=1)[:, :k]
    squared, rows, *codes = (np.take_along_axis(field, order, axis=1) for field in joined)
    return Nearest(squared, rows, codes[0] if codes else None)


def without_self(nearest: Nearest, first: int) -> Nearest:
    """Return one neighbour fewer for each query: query i is object first + i, which is left out."""
    itself = first + np.arange(len(nearest.rows))
    return Nearest(*(drop_self(np, field, nearest.rows, itself) for field in nearest if field is not None))


def floats(X: Any) -> np.ndarray:
    """Return numbers in the precision that they are computed in; ValueError for anything else."""
    X = np.asarray(X)
    if X.dtype.kind not in "fiubO":
        raise ValueError(f"vectors are real numbers; got {X.dtype}.")
    try:
        return X.astype(float_type(X.dtype), copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"vectors are real numbers; {error}.") from error


def _finite(X: Any, name: str) -> np.ndarray:
    """Return finite numbers; ValueError for others."""
    X = floats(X)
    if not np.isfinite(X).all():
        raise ValueError(f"{name} contain NaN or infinity; drop or repair such rows.")
    return X
