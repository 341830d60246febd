"""Answers of many settings of Steer from one search: Steer never changes the order inside a class.

For one query, Steer adds the same number to all objects of a class. So the k nearest objects of each class,
found once, hold the k nearest for every strength and for every classifier.
"""

import array_api_compat as compat

from ..arrays import Array, convert, namespace
from ..arrays.library import blocks, smallest, smallest_places
from ..movers.points import Points, centred, squared_norms, weighted_mean
from ..neighbors.knn import vote

NUMBERS = 1 << 23  # distances held at once


def query_blocks(n_queries: int, points: Points, k: int) -> list[slice]:
    """Return blocks of queries whose distances fit in memory."""
    width = max(points.Z.shape[0], points.n_classes * k)
    return list(blocks(n_queries, max(1, NUMBERS // width)))


# ‖x − z‖² + b − ‖x‖² = ‖z‖² + b − 2 xᵀz, about the mean of the points: they may lie far from 0
def nearest_of_each_class(queries: Array, points: Points, k: int) -> Array:
    """Return how far the k nearest points of each class are from queries, which are in the same space.

    Returns
    -------
    near : array of shape (queries, c, k)
        Squared distances up to a number per query, ascending, infinite where a class has fewer points.
    """
    xp, mean = namespace(queries, points.Z), weighted_mean(points.Z)
    queries, Z = centred(queries, mean), centred(points.Z, mean)
    order = xp.argsort(points.codes, stable=True)
    heights = squared_norms(Z) if points.bias is None else squared_norms(Z) + points.bias
    heights = xp.astype(heights - xp.min(heights), Z.dtype)
    Z, heights = xp.take(Z, order, axis=0), xp.take(heights, order)
    table = heights - 2 * (queries @ Z.T)
    ends = [int(end) for end in _class_ends(points)]
    k = min(k, max(end - start for start, end in zip([0, *ends], ends, strict=False)))
    shape = (queries.shape[0], points.n_classes, k)
    near = xp.full(shape, xp.inf, dtype=Z.dtype, device=compat.device(Z))
    for c, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        m = min(k, end - start)
        if m:
            near[:, c, :m] = smallest(table[:, start:end], m)
    return near


def _class_ends(points: Points) -> Array:
    """Return where each class ends among objects sorted by class; (c,)."""
    xp = namespace(points.codes)
    classes = xp.arange(points.n_classes, dtype=points.codes.dtype, device=compat.device(points.codes))
    return xp.searchsorted(xp.sort(points.codes), classes, side="right")


# the k nearest are of the k classes whose nearest object is nearest, so others need not be looked at
def steered_classes(near: Array, scores: Array, strength: float, ks: tuple[int, ...]) -> list[Array]:
    """Return the class of each query by ‖x − z‖² − strength · score of the class of z, for each k.

    Parameters
    ----------
    near : as `nearest_of_each_class` returns it
    scores : of each query for each class; (queries, c)
    strength : float
    ks : numbers of neighbours

    Returns
    -------
    classes : an array of shape (queries,) for each k
    """
    xp, k = namespace(near), max(ks)
    add = xp.astype(-strength * scores, near.dtype)
    first = near[:, :, 0] + add
    classes = smallest_places(first, min(k, first.shape[1]))
    rows = xp.take_along_axis(near, classes[:, :, None], axis=1)
    table = rows + xp.take_along_axis(add, classes, axis=1)[:, :, None]
    places = smallest_places(xp.reshape(table, (table.shape[0], -1)), k) // table.shape[2]
    labels = xp.take_along_axis(classes, places, axis=1)
    return list(vote(labels, None, ks=ks))


def as_compared(queries: Array, points: Points) -> Array:
    """Return queries in the space in which points are compared, L'x."""
    return queries if points.L is None else queries @ convert(points.L, queries)
