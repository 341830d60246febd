"""The span of objects: where they are fewer than their columns, they and all that moves them lie in it.

Directions outside of the span are all alike: no object differs from another in them.
"""

import array_api_compat as compat

from ..arrays import Array, namespace
from ..arrays.library import blocks
from ..targets import Labeled
from .mover import Mover
from .points import ROWS


# Xᵀ = QR, so x = Qr with r a column of R: rows of Rᵀ have the distances, angles and lengths of rows of X
def coordinates(X: Array) -> tuple[Array, Array]:
    """Return the rows of X in the span of them all, and an orthonormal basis of it; both in float64.

    Shapes (n, d) → (n, r) and (d, r), with r = min(n, d). The origin stays where it is. By QR: the n × n
    products of the rows are squares, and would lose half of the digits.
    """
    xp = namespace(X)
    Q, R = xp.linalg.qr(xp.astype(X, xp.float64).T)
    return R.T, Q


# L = Q M Qᵀ + g (I − QQᵀ)
def extend_map(M: Array, outside: float, Q: Array) -> Array:
    """Return the map that is M in the span, in the basis Q, and multiplies by a number outside of it; (d, d).

    It is filled in blocks of rows: nothing else here is as large.
    """
    xp, (d, r) = namespace(M, Q), Q.shape
    inside = (M - outside * xp.eye(r, dtype=M.dtype, device=compat.device(M))) @ Q.T
    L = xp.eye(d, dtype=M.dtype, device=compat.device(M))
    for part in blocks(d, ROWS):
        L[part, :] = outside * L[part, :] + Q[part, :] @ inside
    return L


def in_span(labeled: Labeled, movers: list[Mover]) -> Labeled:
    """Return labeled objects in their span, or as they are where it has as many columns.

    Movers that ignore axes do the same there, as distances and means are the same, and as their units go by
    the columns of the input (see `Points.n_columns`). Other movers see objects as they are.
    """
    xp, (n, d) = namespace(labeled.X), labeled.X.shape
    if n >= d or not all(mover._ignores_axes for mover in movers):
        return labeled
    (X, Q), dtype, queries = coordinates(labeled.X), labeled.X.dtype, labeled.queries
    if queries is not None:
        queries = beside_span(queries, Q)
        X = xp.concat([X, xp.zeros_like(X[:, :1])], axis=1)
    # the length of a row may be more than its precision can hold
    largest = max(float(xp.max(xp.abs(rows))) for rows in (X, queries) if rows is not None)
    if not largest < float(xp.finfo(dtype).max):
        return labeled
    queries = None if queries is None else xp.astype(queries, dtype)
    return labeled._replace(X=xp.astype(X, dtype), queries=queries)


# ‖x − q‖² = ‖r − Qᵀq‖² + ‖q − QQᵀq‖² for x = Qr in the span: all that queries have outside of it is a length
def beside_span(queries: Array, Q: Array) -> Array:
    """Return queries in the basis of the span, and in one more column how far they are from it; (m, r + 1).

    Objects, with a 0 in that column, are as far from them as they were, and so they are after a map that
    multiplies by one number outside of the span of the objects.
    """
    xp, parts = namespace(queries, Q), []
    for part in blocks(queries.shape[0], ROWS):
        q = xp.astype(queries[part, :], xp.float64)
        inside = q @ Q
        outside = q - inside @ Q.T
        length = xp.sqrt(xp.vecdot(outside, outside, axis=-1))
        parts.append(xp.concat([inside, length[:, None]], axis=1))
    return xp.concat(parts)
