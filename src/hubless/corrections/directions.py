"""A bias per stored object without a column: written onto a direction along which all queries are alike.

Queries are compared with a corrected object by g s(q, z) − b. Its vector alone can say so:

    inner product   z' = g z − b u, where uᵀq ≈ 1 for all queries, so that qᵀz' ≈ g qᵀz − b
    cosine          the same, and as far along n, where nᵀq ≈ 0, as gives all z' one length
    Euclidean       z' further along n, where nᵀ(q − μ) ≈ 0: to the distance that adds 2b to its square

How nearly queries are alike along u and n decides how exact that is; `Correction.agreement` measures it.
"""

from typing import Any, NamedTuple

import array_api_compat as compat

from ..arrays import Array, namespace, put, take_rows
from ..arrays.products import map_blocks, solve_positive
from ..movers.points import ROWS, mean_square, squared_norms, weighted_mean
from ..movers.without_column import floor_of, heights_over, least_direction, raised

RIDGE = 1e-2  # δ, in mean eigenvalues of Σ q qᵀ
LEAST = 0.5  # mean of vᵀq that is brought to 1: below, queries have no direction in common
LIFT = 1.0  # of squared length, in that of an object: room for the lengths of all corrected objects


class QueryDirections(NamedTuple):
    """QueryDirections along which the queries are alike, and where they are."""

    u: Array  # (d,), float64: uᵀq ≈ 1
    n: Array  # (d,), float64, of length 1: nᵀ(q − centre) ≈ 0
    centre: Array  # (d,), float64: the mean of the queries under L2, else 0
    square: float  # mean of ‖q − centre‖²
    level: float = 0.0  # mean of b over the objects: all share it, so it need not be written
    floor: float | None = None  # under L2, the least height that can be shown; None where b is mostly 0


# v = (QᵀQ + δI)⁻¹ Qᵀ1, which minimises Σ (vᵀq − 1)² + δ‖v‖², δ in mean eigenvalues of QᵀQ
def ridge_direction(queries: Array, ridge: float) -> Array:
    """Return v, along which queries are alike, and the nearer to 1 the smaller the ridge; (d,) in float64."""
    xp = namespace(queries)
    Q = xp.astype(queries, xp.float64)
    G, d = Q.T @ Q, Q.shape[1]
    eye = xp.eye(d, dtype=Q.dtype, device=compat.device(Q))
    delta = ridge * float(xp.linalg.trace(G)) / d or 1.0  # all queries may be 0
    return solve_positive(G + delta * eye, xp.sum(Q, axis=0)[:, None])[:, 0]


# u = v / mean(vᵀq)
def direction_of_one(queries: Array) -> Array:
    """Return u, along which queries are near 1; (d,) in float64."""
    xp, v = namespace(queries), ridge_direction(queries, RIDGE)
    return v / max(float(xp.mean(xp.astype(queries, xp.float64) @ v)), LEAST)


def find_directions(queries: Array, metric: str) -> QueryDirections:
    """Find the directions along which queries are alike."""
    xp = namespace(queries)
    mean = weighted_mean(queries)
    centre = mean if metric == "l2" else xp.zeros_like(mean)
    ones = xp.ones((queries.shape[0],), dtype=xp.float64, device=compat.device(queries))
    n = least_direction(queries, centre, ones)
    return QueryDirections(direction_of_one(queries), n, centre, mean_square(queries))


def write(
    Z: Array, gain: Array | None, bias: Array, where: QueryDirections, metric: str, spares: bool
) -> Array:
    """Return objects that carry their correction, (n, d), in their precision.

    With `spares`, b is 0 for most objects and never below 0, and objects without a correction stay exactly
    where they are.
    """
    xp = namespace(Z)
    if spares:
        (held,) = xp.nonzero(bias > 0)
        if held.shape[0] == 0:
            return xp.asarray(Z, copy=True)
        return put(Z, held, _held_back(take_rows(Z, held), take_rows(bias, held), where, metric))
    if metric == "l2":
        Z, squares = as_squared_bias(Z, gain, bias, where)
        return raised(Z, heights_over(Z, squares, where.n, where.centre), where.n, where.floor or 0.0)

    def block(part: slice) -> Array:
        scaled = xp.astype(Z[part, :], xp.float64)
        scaled = scaled if gain is None else gain[part, None] * scaled
        moved = scaled - (bias[part] - where.level)[:, None] * where.u
        moved = _at_length(moved, where.n, 1.0 + LIFT, 1.0) if metric == "cosine" else moved
        return xp.astype(moved, Z.dtype)

    return xp.concat(map_blocks(xp, block, Z.shape[0], ROWS))


# Away from the queries along n, on the side where the object is; or along u
def _held_back(Z: Array, bias: Array, where: QueryDirections, metric: str) -> Array:
    xp = namespace(Z)
    heights = heights_over(Z, 2 * bias, where.n, where.centre)
    side = xp.where(heights.along < 0, -xp.ones_like(bias), xp.ones_like(bias))
    moved = xp.astype(Z, xp.float64)
    if metric == "l2":
        moved = moved + (side * xp.sqrt(heights.wanted) - heights.along)[:, None] * where.n
    else:
        moved = moved - bias[:, None] * where.u
        moved = _at_length(moved, where.n, 1.0, side) if metric == "cosine" else moved
    return xp.astype(moved, Z.dtype)


# ‖w + h n‖² = l, by the root h that ends on a side of n where w is short enough; then to length 1
def _at_length(w: Array, n: Array, square: float, side: Any) -> Array:
    xp = namespace(w)
    along = w @ n
    room = along**2 + square - xp.vecdot(w, w, axis=-1)
    lifted = w + (side * xp.sqrt(xp.clip(room, min=0.0)) - along)[:, None] * n
    lengths = xp.sqrt(xp.vecdot(lifted, lifted, axis=-1))
    return lifted / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]


# About the centre, with ρ the mean of ‖x‖²:  −½ g ‖x − z‖² − b = −½ (‖x − g z‖² + b') + (the same for all z),
# b' = 2b + g (1 − g) ‖z‖² + g ρ − ρ
def as_squared_bias(Z: Array, gain: Array | None, bias: Array, where: QueryDirections) -> tuple[Array, Array]:
    """Return objects and what is added to the squared Euclidean distances of queries to them."""
    if gain is None:
        return Z, 2 * bias
    xp = namespace(Z)
    apart = xp.astype(Z, xp.float64) - where.centre
    squares = 2 * bias + gain * (1 - gain) * squared_norms(apart) + (gain - 1) * where.square
    return xp.astype(where.centre + gain[:, None] * apart, Z.dtype), squares


def floor_under(Z: Array, gain: Array | None, bias: Array, where: QueryDirections) -> float:
    """Return a height that is well below those of all objects, under L2."""
    Z, squares = as_squared_bias(Z, gain, bias, where)
    return floor_of(heights_over(Z, squares, where.n, where.centre))


# −½ ‖(q, 0) − (g z, h)‖² = g qᵀz − ½ (g² ‖z‖² + h²) − ½ ‖q‖²
def with_column(
    Z: Array, gain: Array | None, bias: Array, where: QueryDirections, metric: str, floor: float | None = None
) -> tuple[Array, float]:
    """Return objects with one more column, (n, d + 1), and its floor: exact by L2 for queries with a 0 there.

    Without a floor, it is below what these objects need: a root near 0 would show the rounding of its
    square, and objects that come later may need less.
    """
    xp = namespace(Z)
    if metric == "l2":
        Z, squares = as_squared_bias(Z, gain, bias, where)
    else:
        Z = Z if gain is None else xp.astype(gain[:, None] * xp.astype(Z, xp.float64), Z.dtype)
        squares = 2 * bias - squared_norms(Z)
    floor = float(xp.min(squares) - xp.std(squares)) if floor is None else floor
    column = xp.astype(xp.sqrt(xp.clip(squares - floor, min=0.0)), Z.dtype)
    return xp.concat([Z, column[:, None]], axis=1), floor
