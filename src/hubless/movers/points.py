"""Points: labeled objects while they are moved, with where they were and where they are now.

A mover takes points and returns them moved; the next mover of a chain continues from there. At the end
`to_query_space` turns them into what a k-NN stores.
"""

from typing import Any, NamedTuple

import array_api_compat as compat

from ..arrays import Array, convert, count, is_on_cpu, namespace, rows
from ..arrays.inputs import check_squares
from ..arrays.library import blocks
from ..arrays.products import product_rows, rows_at_once, sparse_rows, sum_blocks
from ..moments import as_origin, as_weights, scatter
from ..targets import Labeled

ROWS = 8192  # rows lifted to float64 at once


class Raised(NamedTuple):
    """How all objects were moved along a direction in which queries hardly differ, in place of a column."""

    direction: Array  # (d,), of length 1
    floor: float  # what their squared distances lack


class Points(NamedTuple):
    """Labeled objects before and after a move.

    Queries are compared with Z by ‖L'x − z‖² + bias − 2 pushᵀ(x − μ), where L' is the transpose of L, or the
    identity, and μ the mean of the objects.
    """

    X: Array  # (n, r): where the objects were, in the space of the comparison; they represent queries
    Z: Array  # (n, r): where they are now
    codes: Array  # (n,): class numbers; None where no mover uses them
    n_classes: int
    weights: Array | None = None  # (n,)
    targets: Array | None = None  # (n, width): nearest same-class objects, in the space of the input
    bias: Array | None = None  # (n,), float64, of squared distances
    L: Array | None = None  # (d, r): from the space of the queries to that of the comparison
    inputs: Array | None = None  # (n, d): where the objects were, in the space of the queries
    push: Array | None = None  # (n, d), float64: a direction that queries are preferred in
    columns: int | None = None  # of the input, where X is in the span of the objects and has fewer
    queries: Array | None = None  # (m, d): queries without labels, which then represent queries
    raised: Raised | None = None

    @staticmethod
    def of(labeled: Labeled, n_classes: int, columns: int | None = None) -> "Points":
        """Return objects that have not moved yet."""
        X, codes, weights, targets, queries = labeled
        return Points(X, X, codes, n_classes, weights, targets, inputs=X, columns=columns, queries=queries)

    @property
    def n_columns(self) -> int:
        """The columns that means go over, by which penalties have their units: those of the input."""
        return self.columns or int(self.X.shape[1])

    def with_bias(self, bias: Array) -> "Points":
        """Return the same points with this bias added."""
        return self._replace(bias=bias if self.bias is None else self.bias + bias)

    def with_push(self, push: Array) -> "Points":
        """Return the same points with this push added."""
        return self._replace(push=push if self.push is None else self.push + push)

    def rows_of(self, by_class: Array) -> Array:
        """Return the row of each object's class, in the precision of Z; shapes (n_classes, r) → (n, r)."""
        xp = namespace(self.Z)
        return xp.take(xp.astype(by_class, self.Z.dtype), self.codes, axis=0)


# --- means and scatters -------------------------------------------------------------------------------------


# μ = Σ w x / Σ w
def weighted_mean(X: Array, weights: Array | None = None) -> Array:
    """Return the mean of the rows of X in float64; shape (d,)."""
    xp, w = namespace(X), as_weights(X, weights)
    dtype = xp.float64 if is_on_cpu(w) else X.dtype  # an accelerator sums a block with little rounding

    def batch(part: slice) -> Array:
        x = xp.astype(rows(X, part), dtype, copy=False)
        return xp.astype(xp.astype(w[part], dtype, copy=False) @ x, xp.float64)

    return sum_blocks(xp, batch, X.shape[0], rows_at_once(X)) / xp.sum(w)


def centre(X: Array, weights: Array | None, center: bool) -> Array:
    """Return μ: the mean of the objects, or the origin; (d,) in float64."""
    return weighted_mean(X, weights) if center else as_origin(X)


# m_c = Σ_{y_i = c} w_i x_i / Σ_{y_i = c} w_i
def class_means(X: Array, codes: Array, n_classes: int, weights: Array | None = None) -> tuple[Array, Array]:
    """Return the mean (n_classes, d) and the weight (n_classes,) of each class, in float64.

    A class without objects, for example because all of them have the weight 0, has the mean of all.
    """
    xp, w = namespace(X, codes), as_weights(X, weights)
    sums = xp.zeros((n_classes, X.shape[1]), dtype=xp.float64, device=compat.device(X))
    for part in blocks(X.shape[0], max(ROWS, n_classes)):  # a sum has a row per class
        x = xp.astype(X[part, :], xp.float64)
        sums = sums + sparse_rows(codes[part], None, w[part], n_classes, x)
    totals = count(codes, n_classes, w)
    has_objects = totals > 0
    means = sums / xp.where(has_objects, totals, 1.0)[:, None]
    return xp.where(has_objects[:, None], means, xp.sum(sums, axis=0) / xp.sum(totals)), totals


# u = Σ w ‖x − μ‖² / Σ w
def mean_square(X: Array, weights: Array | None = None) -> float:
    """Return the mean squared distance of the rows of X to their mean."""
    xp, w = namespace(X), as_weights(X, weights)
    return float(xp.sum(w * squared_norms(centred(X, weighted_mean(X, weights)))) / xp.sum(w))


def centred(X: Array, mean: Array) -> Array:
    """Return X − mean in the precision of X, subtracted in float64: data may lie far from 0."""
    xp = namespace(X)
    parts = (xp.astype(X[part, :], xp.float64) - mean for part in blocks(X.shape[0], ROWS))
    return xp.concat([xp.astype(part, X.dtype) for part in parts])


# S = Σ w (x − m_y)(x − m_y)ᵀ = T − Σ_c w_c (m_c − μ)(m_c − μ)ᵀ
def within_scatter(
    X: Array, codes: Array, n_classes: int, mean: Array, weights: Array | None
) -> tuple[Array, float]:
    """Return S, the scatter about the means of the classes, (d, d), and the trace of T, that about μ."""
    xp = namespace(X, mean)
    means, totals = class_means(X, codes, n_classes, weights)
    between = (means - mean) * xp.sqrt(totals)[:, None]
    total = scatter(X, mean, weights)
    return total - between.T @ between, float(xp.linalg.trace(total))


def squared_norms(X: Array) -> Array:
    """Return ‖x‖² of each row in float64; shape (n,)."""
    xp = namespace(X)
    parts = (xp.astype(X[part, :], xp.float64) for part in blocks(X.shape[0], ROWS))
    return xp.concat([xp.vecdot(part, part, axis=-1) for part in parts])


# --- the space of the queries -------------------------------------------------------------------------------


class QuerySpace(NamedTuple):
    """What brings moved points back to the space of the queries, where ‖x − z'‖² orders them as they compare.

    Some movers compare by ‖L'x − z‖² + b − 2 pᵀ(x − μ) instead of ‖x − z‖². The stored side can carry that
    alone, in one more column in which queries have a 0, so queries do not change.
    """

    mean: Array  # (d,), float64
    gain: float = 1.0  # t below; 1 for movers that compare by ‖x − z‖²
    floor: float | None = None  # the least b' of the objects learned from, where the column is 0


def to_query_space(
    points: Points, space: QuerySpace | None, mean: Array | None = None
) -> tuple[Array, QuerySpace]:
    """Return points in the space of the queries, with the column where they need it: (n, d) or (n, d + 1).

    Without a `space`, it is learned from these points, whose `mean` is given.
    """
    xp = namespace(points.Z)
    gain, mean = (None, mean) if space is None else (space.gain, space.mean)
    Z, bias, gain = with_bias_alone(points, mean, gain)
    if bias is None:
        return Z, QuerySpace(mean, gain) if space is None else space
    if space is None:
        space = QuerySpace(mean, gain, float(xp.min(bias)))
    column = xp.sqrt(xp.clip(bias - space.floor, min=0.0))
    check_squares(float(xp.sum(column)))
    return xp.concat([Z, xp.astype(column, Z.dtype)[:, None]], axis=1), space


# With P = z − L'μ, t > 0 and z' = μ + t L P:
#   t (‖L'x − z‖² + b) = ‖x − z'‖² + b' + (what is the same for every z),   b' = t (‖P‖² + b) − t² ‖LP‖²
# and ‖(x, 0) − (z', √(b' − floor))‖² orders objects as that does. t is free: the slope of ‖P‖² + b over ‖LP‖²
# leaves to the column what the norms of the moved objects do not show. A push p moves z' by t p (`_pushed`).
def with_bias_alone(points: Points, mean: Any, gain: float | None) -> tuple[Array, Array | None, float]:
    """Return points in the space of the queries, z', with b', where there is one, and t, where none is given.

    Queries are compared with them by ‖x − z'‖² + b'.
    """
    xp = namespace(points.Z)
    Z, bias, t = points.Z, points.bias, 1.0 if gain is None else gain
    if points.L is not None:
        L, centre = points.L, xp.astype(mean, Z.dtype)
        P = Z - centre @ L
        back = product_rows(P, L.T)
        heights, squares = squared_norms(P), squared_norms(back)
        heights = heights if bias is None else heights + bias
        if gain is None:
            t = _slope(xp, heights, squares, 100 * float(xp.finfo(Z.dtype).eps))
        Z, bias = centre + t * back, t * heights - t**2 * squares
    if points.push is not None:
        Z, bias = _pushed(Z, bias, t * points.push, mean)
    return Z, bias, t


# ‖x − z‖² + b − 2 pᵀ(x − μ) = ‖x − (z + p)‖² + b − 2 pᵀ(z − μ) − ‖p‖²
def _pushed(Z: Array, bias: Array | None, push: Array, mean: Any) -> tuple[Array, Array]:
    """Return points moved by their push, and the bias that this needs."""
    xp = namespace(Z)
    change = -2 * xp.vecdot(push, xp.astype(Z, xp.float64) - mean, axis=-1) - xp.vecdot(push, push, axis=-1)
    return Z + xp.astype(push, Z.dtype), change if bias is None else bias + change


def as_compared(queries: Array, points: Points) -> Array:
    """Return queries in the space in which points are compared, L'x."""
    return queries if points.L is None else queries @ convert(points.L, queries)


def as_queries(X: Array, space: QuerySpace) -> Array:
    """Return queries unchanged, with a 0 in the column where stored objects have one."""
    if space.floor is None:
        return X
    xp = namespace(X)
    return xp.concat([X, xp.zeros((X.shape[0], 1), dtype=X.dtype, device=compat.device(X))], axis=1)


def _slope(xp: Any, heights: Array, squares: Array, rounding: float) -> float:
    """Return the slope of `heights` over `squares`; their ratio where that is not positive or not defined."""
    unit = float(xp.max(squares)) or 1.0  # so that squares of squares neither overflow nor vanish
    heights, squares = heights / unit, squares / unit
    centred = squares - xp.mean(squares)
    variance = float(xp.sum(centred * centred))
    is_flat = variance <= squares.shape[0] * rounding**2
    slope = 0.0 if is_flat else float(xp.sum(centred * heights)) / variance
    fallback = float(xp.sum(heights)) / (float(xp.sum(squares)) or 1.0)
    return slope if slope > 0 else abs(fallback) or 1.0
