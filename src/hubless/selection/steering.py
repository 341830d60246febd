"""Nearest neighbours for many settings of Steer from one search: Steer changes no order inside a class.

For one query, Steer adds the same number to all objects of a class. So the nearest object of each class,
found once, has the nearest neighbour for every strength and for every classifier among them.
"""

import array_api_compat as compat

from ..arrays import Array, namespace
from ..arrays.products import map_blocks
from ..movers.points import Points, centred, squared_norms, weighted_mean

NUMBERS = 1 << 21  # distances held at once, by each thread


# min_{z of class c} ‖x − z‖² + b − ‖x‖² = min ‖z‖² + b − 2 zᵀx, about the mean: points may lie far from 0
def nearest_of_each_class(queries: Array, points: Points) -> Array:
    """Return how far the nearest point of each class is from queries, which are in the same space.

    Returns
    -------
    near : array of shape (queries, c)
        Squared distances up to a number per query, infinite for a class without points.
    """
    xp, mean = namespace(queries, points.Z), weighted_mean(points.Z)
    queries, Z = centred(queries, mean), centred(points.Z, mean)
    heights = squared_norms(Z) if points.bias is None else squared_norms(Z) + points.bias
    heights = xp.astype(heights - xp.min(heights), Z.dtype)
    order = xp.argsort(points.codes, stable=True)
    Z, heights = xp.take(Z, order, axis=0), xp.take(heights, order)
    ends = [int(end) for end in _class_ends(points)]

    def of(part: slice) -> Array:
        table = heights[:, None] - 2 * (Z @ queries[part, :].T)  # (points, queries): a class is whole rows
        none = xp.full((table.shape[1],), xp.inf, dtype=Z.dtype, device=compat.device(Z))
        near = [
            xp.min(table[start:end, :], axis=0) if end > start else none
            for start, end in zip([0, *ends], ends, strict=False)
        ]
        return xp.stack(near, axis=1)

    return xp.concat(map_blocks(xp, of, queries.shape[0], max(1, NUMBERS // Z.shape[0])))


def _class_ends(points: Points) -> Array:
    """Return where each class ends among objects sorted by class; (c,)."""
    xp = namespace(points.codes)
    classes = xp.arange(points.n_classes, dtype=points.codes.dtype, device=compat.device(points.codes))
    return xp.searchsorted(xp.sort(points.codes), classes, side="right")


# argmin_c min_{z of class c} ‖x − z‖² − strength · ℓ_c(x)
def steered_classes(near: Array, scores: Array, strength: float) -> Array:
    """Return the class of each query's nearest neighbour by ‖x − z‖² − strength · score of the class of z.

    Parameters
    ----------
    near : as `nearest_of_each_class` returns it
    scores : of each query for each class; (queries, c)
    strength : float
    """
    xp = namespace(near)
    return xp.argmin(near - xp.astype(strength * scores, near.dtype), axis=1)
