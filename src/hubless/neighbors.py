"""Exact nearest neighbours: the k nearest objects of each query, on any array library.

What the numbers mean
---------------------
- A distance is Euclidean, ‖x − z‖, not squared.
- Each row is sorted: nearest first, and of equally distant objects the one with the lower index first. The
  order is that of distances taken in float64 from direct differences. The matrix product that finds the
  candidates runs in the precision of the input; wherever its rounding could decide an order, the
  differences decide instead.
- Indices are int64 row numbers of `objects`; distances have the precision of the input.
- An object equal to a query is an ordinary neighbour at distance 0. `exclude_self` leaves object i out of
  the neighbours of query i by its number, so that an exact duplicate of query i stays in.
- Memory beside input and output is bounded, whatever the numbers of queries and objects: about twice
  QUERY_ROWS × OBJECT_ROWS numbers for all threads together, and one number per object.
"""

from typing import Any

import array_api_compat as compat
import numpy as np

from .arrays import Array, convert, namespace
from .devices import host_like, to_device
from .inputs import check_count, check_matrix, refuse_dask
from .topk import search


def nearest(
    queries: Any,
    objects: Any,
    k: int,
    *,
    return_distance: bool = True,
    exclude_self: bool = False,
    device: str | None = None,
) -> Any:
    """The k nearest objects of each query.

    Parameters
    ----------
    queries : array of shape (n_queries, d)
    objects : array of shape (n_objects, d), of the same array library and device
    k : int
        Neighbours per query, at most n_objects (n_objects − 1 with `exclude_self`).
    return_distance : bool, default=True
        False skips the distances, which is faster.
    exclude_self : bool, default=False
        Leave object i out of the neighbours of query i.
    device : str, optional
        "cuda", say, searches arrays of the host there (with torch), in blocks if they do not fit; results are
        on the host. None searches where the arrays are.

    Returns
    -------
    distances : array of shape (n_queries, k); only with `return_distance`
    indices : int64 array of shape (n_queries, k)

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import nearest
    >>> objects = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> distances, indices = nearest(np.zeros((1, 2)), objects, k=2)
    >>> distances.tolist(), indices.tolist()
    ([[0.0, 1.0]], [[0, 2]])
    """
    queries, objects = check_matrix(queries, "queries"), check_matrix(objects, "objects")
    namespace(queries, objects)  # refuses mixtures
    if queries.shape[1] != objects.shape[1]:
        raise ValueError(
            "queries and objects must have the same number of columns; "
            f"got shapes {tuple(queries.shape)} and {tuple(objects.shape)}."
        )
    if exclude_self and queries.shape[0] != objects.shape[0]:
        raise ValueError(
            "exclude_self needs the objects themselves as queries, row for row; "
            f"got {queries.shape[0]} queries and {objects.shape[0]} objects."
        )
    most = objects.shape[0] - exclude_self
    if not 1 <= check_count("k", k) <= most:
        raise ValueError(f"cannot return {k} neighbours: there are {most} objects to choose from.")
    queries, objects = to_device(queries, device), to_device(objects, device)
    found = search(queries, objects, k, return_distance=return_distance, exclude_self=exclude_self)
    return host_like(found, device)


def check_neighbors(indices: Any, n_objects: int, like: Array | None = None) -> Array:
    """Precomputed neighbours as an integer matrix of row numbers below n_objects; −1 stands for none."""
    if isinstance(indices, tuple):
        raise ValueError(
            f"neighbours must be a matrix of row numbers; got a tuple of {len(indices)}. Give the indices "
            "alone, as kneighbors(..., return_distance=False) returns them."
        )
    refuse_dask(indices, "what takes neighbours")
    indices = indices if compat.is_array_api_obj(indices) else np.asarray(indices)
    indices = indices if like is None else convert(indices, like)
    xp = namespace(indices)
    if indices.ndim != 2 or not xp.isdtype(indices.dtype, "integral"):
        raise ValueError(
            "neighbours must be a matrix of integers, one row per query; "
            f"got shape {tuple(indices.shape)} and dtype {indices.dtype}."
        )
    if 0 in indices.shape:
        raise ValueError(
            f"neighbours must have at least one row and one column; got shape {tuple(indices.shape)}."
        )
    low, high = int(xp.min(indices)), int(xp.max(indices))
    if low < -1 or high >= n_objects:
        raise ValueError(
            f"neighbours must be row numbers from 0 to {n_objects - 1}, or -1 for none; "
            f"got numbers from {low} to {high}."
        )
    return xp.astype(indices, xp.int64)
