"""Labeled objects on their way: where they were, where they are now, and what they are known by."""

from typing import NamedTuple

import array_api_compat as compat

from ..arrays import Array, count, namespace
from ..moments import as_weights, scatter
from ..products import sparse_rows
from ..targets import Labeled
from ..threads import blocks

ROWS = 8192  # rows lifted to float64 at once


class Points(NamedTuple):
    """What one mover hands to the next.

    Queries are compared with Z by ‖L'x − z‖² + bias, where L' is the transpose of L, or the identity.
    """

    X: Array  # (n, r): where the objects were, in the space of the comparison: they stand for queries
    Z: Array  # (n, r): where they are now
    codes: Array  # (n,): class numbers; None where no mover asks for them
    n_classes: int
    weights: Array | None = None  # (n,)
    targets: Array | None = None  # (n, width): nearest same-class objects, in the space of the input
    bias: Array | None = None  # (n,), float64, of squared distances
    L: Array | None = None  # (d, r): from the space of the queries to that of the comparison

    @staticmethod
    def start(labeled: Labeled, n_classes: int) -> "Points":
        """Objects that have not moved yet."""
        X, codes, weights, targets = labeled
        return Points(X, X, codes, n_classes, weights, targets)

    def raised(self, bias: Array) -> "Points":
        """The same points with more bias."""
        return self._replace(bias=bias if self.bias is None else self.bias + bias)


# m_c = Σ_{y_i = c} w_i x_i / Σ_{y_i = c} w_i
def class_means(X: Array, codes: Array, n_classes: int, weights: Array | None = None) -> tuple[Array, Array]:
    """Mean (n_classes, d) and weight (n_classes,) of each class, in float64; a class without objects, all of
    whose objects have the weight 0, say, has the mean of all.
    """
    xp, w = namespace(X, codes), as_weights(X, weights)
    sums = xp.zeros((n_classes, X.shape[1]), dtype=xp.float64, device=compat.device(X))
    for rows in blocks(X.shape[0], max(ROWS, n_classes)):  # a sum has a row per class
        x = xp.astype(X[rows, :], xp.float64)
        sums = sums + sparse_rows(codes[rows], None, w[rows], n_classes, x)
    totals = count(codes, n_classes, w)
    there = totals > 0
    means = sums / xp.where(there, totals, 1.0)[:, None]
    return xp.where(there[:, None], means, xp.sum(sums, axis=0) / xp.sum(totals)), totals


# S = Σ w (x − m_y)(x − m_y)ᵀ = T − Σ_c w_c (m_c − μ)(m_c − μ)ᵀ
def within_scatter(
    X: Array, codes: Array, n_classes: int, mean: Array, weights: Array | None
) -> tuple[Array, Array]:
    """S, the scatter of the objects about the means of their classes, and T about μ; both (d, d)."""
    xp = namespace(X, mean)
    means, totals = class_means(X, codes, n_classes, weights)
    between = (means - mean) * xp.sqrt(totals)[:, None]
    total = scatter(X, mean, weights)
    return total - between.T @ between, total


def squared_norms(X: Array) -> Array:
    """‖x‖² of each row in float64; shape (n,)."""
    xp = namespace(X)
    parts = (xp.astype(X[rows, :], xp.float64) for rows in blocks(X.shape[0], ROWS))
    return xp.concat([xp.vecdot(part, part, axis=-1) for part in parts])
