"""Move and search on Dask: each block of queries meets each block of objects, and the best are merged."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import float_type
from ..hubness import Hubness
from ..inputs import check_count
from ..large import tasks, top
from ..stores.store import need
from .engine import (
    as_array,
    as_fitted,
    as_labels,
    as_rows,
    compute,
    delayed_blocks,
    n_rows,
    shared,
    sized,
    tree,
)

RANGE = 1 << 24  # objects whose occurrences are counted at once


def moved(mover: Any, X: Any, y: Any = None) -> Any:
    """Objects where a fitted mover moves them, as a Dask array."""
    array, X = need("dask.array", "dask"), as_fitted(mover, X)
    labels, mover = () if y is None else (as_labels(y, X), "i"), shared(mover)
    none = np.empty((0, 0), float_type(X.dtype))
    return array.blockwise(
        tasks.move_block, "ij", X, "ij", *labels, mover=mover, dtype=none.dtype, meta=none, concatenate=True
    )


def asked(mover: Any, X: Any) -> Any:
    """Queries as they are, as a Dask array of floats."""
    X = as_fitted(mover, X)
    return X.astype(float_type(X.dtype))


def tops(queries: Any, objects: Any, k: int, codes: Any = None, *, exclude_self: bool = False) -> list[Any]:
    """The k nearest objects of each block of queries, exactly; Delayed Tops."""
    delayed = need("dask", "dask").delayed
    objects, wanted = sized(objects), k + exclude_self
    starts = np.cumsum([0, *objects.chunks[0]]).tolist()
    stored = delayed_blocks(objects)
    own = [None] * len(stored) if codes is None else delayed_blocks(codes)
    found = []
    for x in delayed_blocks(queries):
        here = [
            delayed(top.top_of_block)(x, z, c, start, wanted)
            for z, c, start in zip(stored, own, starts, strict=False)
        ]
        found.append(tree(top.top_of_all, here))
    if exclude_self:
        firsts = np.cumsum([0, *sized(queries).chunks[0]]).tolist()
        found = [delayed(top.without_self)(one, first) for one, first in zip(found, firsts, strict=False)]
    return found


def nearest(
    queries: Any, objects: Any, k: int, *, return_distance: bool = True, exclude_self: bool = False
) -> Any:
    """`hubless.nearest` on Dask: each block of queries meets each block of objects, and the best are merged.

    Parameters
    ----------
    queries, objects : Dask arrays or data frames with the same columns
    k, return_distance, exclude_self : as in `hubless.nearest`

    Returns
    -------
    distances, indices : Dask arrays of shape (n_queries, k), to be computed; with `return_distance=False`
        indices alone
    """
    queries, objects = as_array(queries), sized(as_array(objects))
    if queries.shape[1] != objects.shape[1]:
        raise ValueError(
            f"queries have {queries.shape[1]} columns, objects {objects.shape[1]}; they must be alike."
        )
    if exclude_self and sized(queries).shape[0] != objects.shape[0]:
        raise ValueError(
            "exclude_self needs the objects themselves as queries, row for row; "
            f"got {sized(queries).shape[0]:,} queries and {objects.shape[0]:,} objects."
        )
    most = objects.shape[0] - exclude_self
    if not 1 <= check_count("k", k) <= most:
        raise ValueError(f"k must be from 1 to the {most:,} objects; got {k}.")
    dtype = np.result_type(float_type(queries.dtype), float_type(objects.dtype))
    found = tops(queries, objects, k, exclude_self=exclude_self)
    return found_by(found, queries, k, dtype if return_distance else None)


def found_by(found: list[Any], queries: Any, k: int, dtype: Any) -> Any:
    """Distances of a type and indices from Tops; indices alone without a type."""
    delayed = need("dask", "dask").delayed
    index = as_rows([delayed(top.rows_of)(one) for one in found], queries, k, np.dtype(np.int64))
    if dtype is None:
        return index
    far = [delayed(top.distances_of)(one, dtype) for one in found]
    return as_rows(far, queries, k, dtype), index


def measure_hubness(neighbors: Any, n_objects: int) -> Hubness:
    """`hubless.measure_hubness` of neighbours on Dask; its `occurrence` is a Dask array.

    Parameters
    ----------
    neighbors : Dask array of shape (n_queries, k), as `nearest` gives
    n_objects : int

    Notes
    -----
    The measures are computed by one worker, which holds N_k of all objects, 8 bytes each.
    """
    delayed, array, neighbors = need("dask", "dask").delayed, need("dask.array", "dask"), as_array(neighbors)
    blocks, counted = delayed_blocks(neighbors), []
    ranges = [(first, min(first + RANGE, n_objects)) for first in range(0, n_objects, RANGE)]
    for first, last in ranges:
        parts = [delayed(top.occurrence_in)(block, first, last, n_objects) for block in blocks]
        counted.append(tree(top.sum_of_arrays, parts))
    found: Hubness = compute(delayed(top.measures_of)(counted, neighbors.shape[1], n_rows(neighbors)))
    sizes = zip(counted, ranges, strict=True)
    pieces = [array.from_delayed(one, (last - first,), np.int64) for one, (first, last) in sizes]
    return replace(found, occurrence=array.concatenate(pieces))
