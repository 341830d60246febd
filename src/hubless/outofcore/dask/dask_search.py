"""Search on Dask: each block of queries is compared with each block of objects, and the nearest are kept."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...arrays import float_type
from ...hubness import Hubness, measure_occurrence
from ...neighbors import check_neighbors
from ...neighbors.blocks import Nearest, nearest_in_block, nearest_of_blocks, without_self
from ...neighbors.knn import check_search
from ...neighbors.precision import check_precision
from ...support.imports import need
from .dask_fit import refuse
from .engine import as_array, as_rows, compute, delayed_blocks, join_tree, n_rows, sized

RANGE = 1 << 24  # objects whose occurrences are counted at once


def nearest_in_blocks(
    queries: Any,
    objects: Any,
    k: int,
    codes: Any = None,
    *,
    exclude_self: bool = False,
    precision: str | None = None,
) -> list[Any]:
    """Find the k nearest objects of each block of queries, exactly; Delayed Nearest."""
    delayed = need("dask", "dask").delayed
    objects, wanted = sized(objects), k + exclude_self
    starts = np.cumsum([0, *objects.chunks[0]]).tolist()
    stored = delayed_blocks(objects)
    classes = [None] * len(stored) if codes is None else delayed_blocks(codes)
    results = []
    for x in delayed_blocks(queries):
        parts = [
            delayed(nearest_in_block)(x, z, c, start, wanted, precision)
            for z, c, start in zip(stored, classes, starts[:-1], strict=True)
        ]
        results.append(join_tree(nearest_of_blocks, parts))
    if exclude_self:
        firsts = np.cumsum([0, *sized(queries).chunks[0]]).tolist()[:-1]
        results = [delayed(without_self)(*pair) for pair in zip(results, firsts, strict=True)]
    return results


def nearest(
    queries: Any,
    objects: Any,
    k: int,
    *,
    return_distance: bool = True,
    exclude_self: bool = False,
    device: str | None = None,
    precision: str = "auto",
) -> Any:
    """`hubless.nearest` of Dask arrays.

    Parameters
    ----------
    queries, objects : Dask arrays or data frames with the same columns
    k, return_distance, exclude_self, precision : as in `hubless.nearest`

    Returns
    -------
    distances, indices : Dask arrays of shape (n_queries, k), to be computed; with `return_distance=False`
        indices alone
    """
    refuse(device=device)
    queries, objects = as_array(queries), sized(as_array(objects))
    queries = sized(queries) if exclude_self else queries
    check_search(queries, objects, k, exclude_self)
    check_precision(precision, np.empty((0, 1)))
    dtype = np.result_type(float_type(queries.dtype), float_type(objects.dtype))
    results = nearest_in_blocks(queries, objects, k, exclude_self=exclude_self, precision=precision)
    return distances_and_indices(results, queries, k, dtype if return_distance else None)


def distances_and_indices(results: list[Any], queries: Any, k: int, dtype: Any) -> Any:
    """Return Dask arrays of distances, of a type, and of indices; of indices alone without a type."""
    delayed = need("dask", "dask").delayed
    indices = as_rows([near.rows for near in results], queries, k, np.dtype(np.int64))
    if dtype is None:
        return indices
    distances = [delayed(distances_of)(near, dtype) for near in results]
    return as_rows(distances, queries, k, dtype), indices


def measure_hubness(
    neighbors: Any,
    n_objects: int,
    *,
    object_labels: Any = None,
    query_labels: Any = None,
    are_queries: bool = False,
) -> Hubness:
    """`hubless.measure_hubness` of neighbours on Dask; its `occurrence` is a Dask array.

    Parameters
    ----------
    neighbors : Dask array of shape (n_queries, k): the indices of `nearest`
    n_objects : int
    are_queries : bool
        Whether the objects themselves were the queries, each without itself.

    Notes
    -----
    The measures are computed by one worker, which holds N_k of all objects, 8 bytes each.
    """
    refuse(object_labels=object_labels, query_labels=query_labels)
    delayed, array, neighbors = need("dask", "dask").delayed, need("dask.array", "dask"), as_array(neighbors)
    blocks, counted = delayed_blocks(neighbors), []
    ranges = [(first, min(first + RANGE, n_objects)) for first in range(0, n_objects, RANGE)]
    for first, last in ranges:
        parts = [delayed(_occurrence)(block, first, last, n_objects) for block in blocks]
        counted.append(join_tree(partial(np.sum, axis=0), parts))
    of = neighbors.shape[1], n_rows(neighbors), are_queries
    hubness: Hubness = compute(delayed(_measures)(counted, *of))
    sizes = zip(counted, ranges, strict=True)
    pieces = [array.from_delayed(counts, (last - first,), np.int64) for counts, (first, last) in sizes]
    return replace(hubness, occurrence=array.concatenate(pieces))


def distances_of(near: Nearest, dtype: Any) -> np.ndarray:
    """Return ‖x − z‖ of queries and their neighbours."""
    return np.sqrt(near.squared).astype(dtype)


def _occurrence(index: np.ndarray, first: int, last: int, n_objects: int) -> np.ndarray:
    """Count N_k of the objects first … last − 1 over a block of queries; int64."""
    if len(index):
        check_neighbors(index, n_objects)
    here = index[(index >= first) & (index < last)] - first
    return np.bincount(here, minlength=last - first)


def _measures(occurrences: Sequence[np.ndarray], k: int, n_queries: int, are_queries: bool) -> Hubness:
    """Return every measure of hubness, without N_k of each object, which are many numbers."""
    measured = measure_occurrence(np.concatenate(occurrences), None, k, n_queries, are_queries)
    return replace(measured, occurrence=None)
