"""Exact nearest neighbours: the k nearest objects of each query, on any array library.

What the numbers mean
---------------------
- A distance is Euclidean, ‖x − z‖, not squared.
- Each row is sorted: nearest first, and of equally distant objects the one with the lower index first. The
  order is that of distances taken in float64 from direct differences. The matrix product that finds the
  candidates runs in bfloat16 or in the precision of the input, with a bound on its error; wherever its
  rounding could decide an order, the differences decide instead. So `precision` changes the time, and
  neither neighbours nor distances. The bounds are rigorous, for bfloat16 too; only where torch was told to
  shorten float32 products (TF32) and precision="float32", the bound is statistical: 8 standard deviations.
- Indices are int64 row numbers of `objects`; distances have the precision of the input.
- An object equal to a query is an ordinary neighbour at distance 0. `exclude_self` leaves object i out of
  the neighbours of query i by its number, so that an exact duplicate of query i stays in.
- Memory beside input and output is bounded, whatever the numbers of queries and objects: about twice
  QUERY_ROWS × OBJECT_ROWS numbers for all threads together, and one number per object; with bfloat16 also
  a copy of the objects in two bytes a number. Where very many objects are identical, those worth searching
  are copied as well.
"""

from typing import Any

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, is_on_cpu, namespace, take_cells, tally
from ..arrays.devices import dispatched, host_like, to_device
from ..arrays.inputs import check_count, check_matrix, refuse_dask
from ..arrays.library import blocks
from ..arrays.types import ArrayLike
from .precision import check_precision
from .search import search


@dispatched
def nearest(
    queries: ArrayLike,
    objects: ArrayLike,
    k: int,
    *,
    return_distance: bool = True,
    exclude_self: bool = False,
    device: str | None = None,
    precision: str = "auto",
) -> Any:
    """Find the k nearest objects of each query.

    Parameters
    ----------
    queries : array of shape (n_queries, d)
    objects : array of shape (n_objects, d), of the same array library and device
    k : int
        Neighbours per query, at most n_objects (n_objects − 1 with `exclude_self`).
    return_distance : bool, default=True
        False skips the distances, which is faster.
    exclude_self : bool, default=False
        Leave object i out of the neighbours of query i. Where both arrays are the same, each product of two
        objects is computed once, which takes about half the time.
    device : str, optional
        "cuda", for example, searches arrays of the host there (with torch), in blocks if they do not fit;
        results are on the host. None searches where the arrays are.
    precision : {"auto", "bfloat16", "float32"}, default="auto"
        Of the products that find the candidates; the neighbours are the same. "bfloat16" is several times as
        fast on a GPU and on processors with its instructions, and needs torch. "float32" computes in the
        precision of the input, float32 or float64. "auto" takes bfloat16 where it is faster and possible.

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
    are_objects = queries is objects  # then each product serves two pairs
    objects = check_matrix(objects, "objects")
    queries = objects if are_objects else check_matrix(queries, "queries")
    namespace(queries, objects)  # raises for mixtures
    check_search(queries, objects, k, exclude_self)
    objects = to_device(objects, device)
    queries = objects if are_objects else to_device(queries, device)
    check_precision(precision, objects)
    result = search(
        queries, objects, k, return_distance=return_distance, exclude_self=exclude_self, precision=precision
    )
    return host_like(result, device)


def check_search(queries: Array, objects: Array, k: int, exclude_self: bool) -> None:
    """Refuse matrices that cannot be compared, and to search for more objects than there are."""
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


def check_neighbors(indices: Any, n_objects: int, like: Array | None = None) -> Array:
    """Return precomputed neighbours as an integer matrix of row numbers below n_objects; −1 means none."""
    if isinstance(indices, tuple):
        raise ValueError(
            f"neighbours must be a matrix of row numbers; got a tuple of {len(indices)}. Give the indices "
            "alone, as kneighbors(..., return_distance=False) returns them."
        )
    refuse_dask(indices, "this function works in memory", "indices")
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


def check_precomputed(
    neighbors: Any, objects: Array, n_queries: int | None, needs_distances: bool
) -> tuple[Array | None, Array]:
    """Return the distances, where they are needed, and the indices of precomputed neighbours of queries.

    `neighbors` holds indices, or (distances, indices).
    """
    distances, indices = neighbors if isinstance(neighbors, tuple) else (None, neighbors)
    indices = check_neighbors(indices, objects.shape[0], like=objects)
    if bool(namespace(indices).any(indices < 0)):
        raise ValueError(
            "neighbors must hold a row number in every place; got -1. Search for fewer neighbours."
        )
    if n_queries is not None and n_queries != indices.shape[0]:
        raise ValueError(
            f"neighbors must have one row per query; got {indices.shape[0]} for {n_queries} queries."
        )
    if not needs_distances:
        return None, indices
    if distances is None:
        raise ValueError('weights="distance" needs neighbors=(distances, indices); got indices alone.')
    distances = convert(check_matrix(distances, "distances"), objects)
    if tuple(distances.shape) != tuple(indices.shape):
        raise ValueError(
            f"distances and indices must have equal shapes; got {tuple(distances.shape)} "
            f"and {tuple(indices.shape)}."
        )
    return distances, indices


# --- other metrics ------------------------------------------------------------------------------------------


# x / ‖x‖
def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of length 1, in their precision; a row of zeros stays as it is."""
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return (X / np.where(norms > 0, norms, 1.0)[:, None]).astype(X.dtype, copy=False)


def exhaustive(queries: np.ndarray, vectors: np.ndarray, k: int, metric: str) -> np.ndarray:
    """Find the k nearest rows by a metric, among all rows that have a vector; shape (n, at most k)."""
    rows = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    queries, vectors, k = np.asarray(queries, dtype=vectors.dtype), vectors[rows], min(k, len(rows))
    if k == 0:
        return np.empty((len(queries), 0), dtype=np.int64)
    if metric == "l2":
        indices = nearest(queries, vectors, k, return_distance=False)
    else:  # −⟨x, z⟩ = ½‖x − z‖² − ½‖x‖² − ½‖z‖²; one more column gives all stored vectors one norm
        norms = np.linalg.norm(vectors, axis=1)
        if metric == "cosine":
            vectors = vectors / np.where(norms > 0, norms, 1)[:, None]
            norms = np.where(norms > 0, 1.0, 0.0)
        lift = np.sqrt(np.maximum(norms.max() ** 2 - norms**2, 0)).astype(vectors.dtype)
        queries = np.column_stack([queries, np.zeros(len(queries), queries.dtype)])
        indices = nearest(queries, np.column_stack([vectors, lift]), k, return_distance=False)
    return np.asarray(rows[indices])


# --- the vote of the neighbours -----------------------------------------------------------------------------


CELLS = 1 << 22  # votes held at once
DEVICE_CELLS = 1 << 27  # the same on an accelerator


# w_j = d_1 / d_j, which is proportional to 1 / d_j and cannot overflow; at distance 0, w_j = [d_j = 0]
def distance_weights(distances: Array) -> Array:
    """Return weights by the inverse of the distance, 1 for the nearest neighbour; shape (queries, k)."""
    xp = namespace(distances)
    first = xp.min(distances, axis=1, keepdims=True)
    positive = distances > 0
    ratio = first / xp.where(positive, distances, 1.0)
    return xp.where(first > 0, ratio, xp.astype(~positive, distances.dtype))


# v_c = Σ_j w_j [y_j = c]
def _tally(xp: Any, labels: Array, n_classes: int, weights: Array | None) -> Array:
    """Count the votes of each class; shape (queries, n_classes)."""
    m = labels.shape[0]
    row = xp.arange(m, dtype=labels.dtype, device=compat.device(labels))[:, None]
    cell = xp.reshape(row * n_classes + labels, (-1,))
    weights = None if weights is None else xp.reshape(weights, (-1,))
    return xp.reshape(tally(cell, m * n_classes, weights), (m, n_classes))


# ŷ = y_j for the first neighbour j whose class has the most votes, so that a tie goes to the class whose
# nearest member is nearest; for k = 1 the class of the nearest object  (Eq. 1, and Eq. 7 for moved objects)
def vote(labels: Array, weights: Array | None = None, ks: tuple[int, ...] | None = None) -> Any:
    """Return the majority class among the k nearest.

    Parameters
    ----------
    labels : int array of shape (queries, k): classes of the neighbours, nearest first
    weights : array of shape (queries, k), optional
    ks : tuple of int, optional
        Return the winner among the first k neighbours for each of these k.

    Returns
    -------
    winners : int array of shape (queries,), or a list of them, one for each of `ks`
    """
    xp, (m, width) = namespace(labels), labels.shape
    n_classes = int(xp.max(labels)) + 1
    if ks is not None and not is_on_cpu(labels):
        return _votes_at_once(xp, labels, n_classes, weights, ks)
    winners = []
    for k in (width,) if ks is None else ks:
        parts = []
        for rows in blocks(m, max(1, CELLS // (n_classes + k))):
            near = labels[rows, :k]
            votes = _tally(xp, near, n_classes, None if weights is None else weights[rows, :k])
            first = xp.argmax(take_cells(votes, near), axis=1)
            parts.append(take_cells(near, first[:, None])[:, 0])
        winners.append(xp.concat(parts))
    return winners[0] if ks is None else winners


# v_kc = Σ_{j ≤ k} w_j [y_j = c] for all k in one sum, as an accelerator takes few large steps faster
def _votes_at_once(
    xp: Any, labels: Array, n_classes: int, weights: Array | None, ks: tuple[int, ...]
) -> list[Array]:
    """Return the winners among the first k neighbours for each k, as `vote` does."""
    (m, width), device = labels.shape, compat.device(labels)
    classes, place = (xp.arange(number, dtype=labels.dtype, device=device) for number in (n_classes, width))
    last = xp.asarray(ks, dtype=labels.dtype, device=device) - 1
    weights = xp.ones_like(labels) if weights is None else weights
    parts = []
    for rows in blocks(m, max(1, DEVICE_CELLS // (width * max(n_classes, len(ks))))):
        near = labels[rows, :]
        own = xp.where(near[:, :, None] == classes, weights[rows, :, None], 0)
        votes = xp.take(xp.cumulative_sum(own, axis=1), last, axis=1)  # (rows, ks, classes)
        shape = (near.shape[0], len(ks), width)
        got = take_cells(votes, xp.broadcast_to(near[:, None, :], shape), axis=2)
        first = xp.argmax(xp.where(place <= last[:, None], got, -1), axis=2)  # (rows, ks)
        parts.append(take_cells(near, first))
    winners = xp.concat(parts)
    return [winners[:, i] for i in range(len(ks))]


# s_c = v_c / Σ_c v_c
def shares_of_votes(labels: Array, n_classes: int, weights: Array | None) -> Array:
    """Return the share of the votes of each class in float64; shape (queries, n_classes)."""
    xp = namespace(labels)
    votes = xp.astype(_tally(xp, labels, n_classes, weights), xp.float64)
    return votes / xp.sum(votes, axis=1, keepdims=True)


def probabilities(labels: Array, n_classes: int, weights: Array | None, dtype: Any) -> Array:
    """Return the share of the votes of each class, the largest for the class voted for."""
    shares = shares_of_votes(labels, n_classes, weights)
    return with_largest(namespace(labels).astype(shares, dtype), vote(labels, weights))


# Where classes tie, those that lose the vote get the next number below, so that the largest probability is
# that of the class voted for.
def with_largest(shares: Array, winners: Array) -> Array:
    """Return shares in which that of the winner is the only largest one; shapes (m, c) and (m,)."""
    xp = namespace(shares, winners)
    top = xp.max(shares, axis=1, keepdims=True)
    classes = xp.arange(shares.shape[1], dtype=winners.dtype, device=compat.device(winners))
    below = top * (1 - float(xp.finfo(shares.dtype).eps))
    return xp.where(winners[:, None] == classes, top, xp.where(shares > below, below, shares))


def votes_of(
    indices: Array, distances: Array | None, codes: Array, object_weights: Array | None
) -> tuple[Array, Array | None]:
    """Return the class and the weight of each neighbour's vote; both of shape (queries, k).

    `codes` and `object_weights` belong to the objects. With `distances`, nearer neighbours count more.
    """
    xp, flat = namespace(indices, codes), namespace(indices).reshape(indices, (-1,))
    labels = xp.reshape(xp.take(codes, flat), indices.shape)
    weights = None if distances is None else distance_weights(distances)
    if object_weights is not None:
        voters = xp.reshape(xp.take(object_weights, flat), indices.shape)
        weights = voters if weights is None else voters * weights
    return labels, weights
