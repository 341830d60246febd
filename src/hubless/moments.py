"""Moments of pairs: all that the map needs to know of the data, in d × d numbers that add up.

Moments of two batches of pairs, of two processes or of two machines merge with `+`, and `-` takes a batch
away again; no data is needed to solve for another λ, or about another centre.
"""

from dataclasses import dataclass
from typing import NamedTuple

import array_api_compat as compat
import numpy as np

from .arrays import (
    Array,
    device_of,
    input_rounding,
    is_on_cpu,
    namespace,
    rows,
    take_rows,
    tally,
    to_numpy,
)
from .inputs import check_squares
from .products import gram, rows_at_once, sparse_rows
from .targets import pairs
from .threads import sum_blocks


@dataclass(frozen=True)
class Moments:
    """Sums over pairs (x, z) with weights w, taken about an origin o, in float64.

    Attributes
    ----------
    origin : (d,) array, o
    weight : float, Σ w
    x_sum, z_sum : (d,) arrays, Σ w (x − o) and Σ w (z − o)
    A : (d, d) array, Σ w (x − o)(z − o)ᵀ: the paper's XJXᵀ where o is the mean of the data
    K : (d, d) array, Σ w (z − o)(z − o)ᵀ: the paper's XKXᵀ
    """

    origin: Array
    weight: float
    x_sum: Array
    z_sum: Array
    A: Array
    K: Array

    @staticmethod
    def of(origin: Array, weight: float, x: Array, z: Array, w: Array, K: Array) -> "Moments":
        """Moments of a batch: `w` are the weights of z, and are in x already."""
        xp = namespace(x, z)
        x_sum = xp.ones_like(w) @ x  # a product, which is faster than a sum along the first axis
        return Moments(origin, weight, *(xp.astype(sums, xp.float64) for sums in (x_sum, w @ z, x.T @ z, K)))

    def __add__(self, other: "Moments") -> "Moments":
        other = other.about(self.origin)
        return Moments(
            self.origin,
            self.weight + other.weight,
            self.x_sum + other.x_sum,
            self.z_sum + other.z_sum,
            self.A + other.A,
            self.K + other.K,
        )

    def __sub__(self, other: "Moments") -> "Moments":
        """The moments without those of pairs that were added before: K may become a little indefinite."""
        other = other.about(self.origin)
        return Moments(
            self.origin,
            self.weight - other.weight,
            self.x_sum - other.x_sum,
            self.z_sum - other.z_sum,
            self.A - other.A,
            self.K - other.K,
        )

    # With δ = o − p:  Σ w (x − p)(z − p)ᵀ = A + x_sum δᵀ + δ (z_sum + (Σ w) δ)ᵀ, and K alike
    def about(self, origin: Array) -> "Moments":
        """The same moments about another origin p."""
        if origin is self.origin:
            return self
        delta = self.origin - origin
        x_sum, z_sum = self.x_sum + self.weight * delta, self.z_sum + self.weight * delta
        A = self.A + self.x_sum[:, None] * delta + delta[:, None] * z_sum
        K = self.K + self.z_sum[:, None] * delta + delta[:, None] * z_sum
        return Moments(origin, self.weight, x_sum, z_sum, A, K)


# A = Σ w x zᵀ and K = Σ w z zᵀ over the pairs, about the origin (Eq. 6, pair by pair)
def moments_of_pairs(
    X: Array, Z: Array, weights: Array | None = None, origin: Array | None = None
) -> Moments:
    """Moments of the pairs (X[i], Z[i]); X and Z of shape (pairs, d), weights of shape (pairs,) and ≥ 0."""
    xp = namespace(X, Z)
    origin = as_origin(X, origin)

    def batch(part: slice) -> Moments:
        x, z = (xp.astype(rows(array, part), xp.float64) - origin for array in (X, Z))
        root = xp.ones((x.shape[0],), dtype=xp.float64, device=compat.device(x))
        if weights is not None:  # √w on both sides, so that K stays one symmetric product
            root = xp.sqrt(xp.astype(weights[part], xp.float64))
            x, z = x * root[:, None], z * root[:, None]
        return Moments(origin, float(xp.sum(root * root)), root @ x, root @ z, x.T @ z, gram(z))

    return sum_blocks(xp, batch, X.shape[0], rows_at_once(X))


# A = XJXᵀ and K = X diag(Jᵀe) Xᵀ with J the indicator of targets (Eq. 6, as corrected after PAKDD '17)
def moments_of_targets(
    X: Array,
    targets: Array,
    weights: Array | None = None,
    origin: Array | None = None,
    *,
    Z: Array | None = None,
    reverse: bool = False,
) -> Moments:
    """Moments of the pairs (X[i], Z[j]), j in row i of `targets`; a pair has the weight of its source i.

    Z is where the objects are now, by default X. `reverse` takes the pairs (X[j], X[i]) instead, for Eq. 9.
    The products run over the objects that are a target, each with the sum of its sources: their cost does not
    grow with the number of targets, and an object that is nobody's target, as many are where there are hubs,
    costs nothing.
    """
    xp = namespace(X, targets)
    Z = X if Z is None else Z
    asked = as_origin(X, origin)
    origin = xp.astype(xp.astype(asked, X.dtype), xp.float64) if _is_fast(X) else asked
    sources = _Sources.of(targets, weights)

    def batch(part: slice) -> Moments:
        x = sources.sums(X, part, origin)  # rows of JᵀX, about the origin
        z = _lifted(take_rows(Z, sources.target[part]), origin)
        weight = xp.astype(sources.weight[part], z.dtype)
        root = z * xp.sqrt(weight)[:, None]
        return Moments.of(origin, float(xp.sum(sources.weight[part])), x, z, weight, gram(root))

    found = sum_blocks(xp, batch, sources.target.shape[0], rows_at_once(X))
    if reverse:
        K = scatter(X, origin, tally(sources.source, X.shape[0], sources.share))
        found = Moments(origin, found.weight, found.z_sum, found.x_sum, found.A.T, K)
    return found.about(asked)


class _Sources(NamedTuple):
    """The pairs, target by target."""

    source: Array  # (pairs,), the source of each
    share: Array  # (pairs,), its weight, float64
    target: Array  # (t,), the objects that are a target, rising
    weight: Array  # (t,), Σ of the shares of each: the diagonal of K = diag(Jᵀe) where it is not 0
    run: Array  # (pairs,), which of the targets each belongs to
    ends: np.ndarray  # (t + 1,), pairs ends[j] … ends[j + 1] are those of target j
    is_plain: bool  # whether every share is 1

    @staticmethod
    def of(targets: Array, weights: Array | None) -> "_Sources":
        xp, n = namespace(targets), targets.shape[0]
        source, target = pairs(targets)
        order = xp.argsort(target, stable=True)
        source, target = take_rows(source, order), take_rows(target, order)
        share = as_weights(source, None if weights is None else take_rows(weights, source))
        sizes = tally(target, n)
        (is_target,) = xp.nonzero(sizes > 0)
        run = take_rows(xp.cumulative_sum(xp.astype(sizes > 0, xp.int64)) - 1, target)
        ends = to_numpy(xp.cumulative_sum(take_rows(sizes, is_target), include_initial=True))
        weight = tally(run, is_target.shape[0], share)
        return _Sources(source, share, is_target, weight, run, ends, weights is None)

    def sums(self, X: Array, part: slice, origin: Array) -> Array:
        """Σ share (x − origin) over the sources of some targets, a slice of pairs at a time."""
        xp, width = namespace(self.source), part.stop - part.start
        first, last = int(self.ends[part.start]), int(self.ends[part.stop])
        total: Array = None
        step = 2 * rows_at_once(X)
        for start in range(first, last, step):
            some = slice(start, min(start + step, last))
            x = _lifted(take_rows(X, self.source[some]), origin)
            share = None if self.is_plain else xp.astype(self.share[some], x.dtype)
            piece = sparse_rows(self.run[some] - part.start, None, share, width, x)
            total = piece if total is None else total + piece
        return total


# T = Σ w (x − μ)(x − μ)ᵀ
def scatter(X: Array, mean: Array, weights: Array | None = None) -> Array:
    """Scatter of the rows of X about a point, in float64; shape (d, d)."""
    xp, w = namespace(X, mean), as_weights(X, weights)

    def batch(part: slice) -> Array:
        x = _lifted(rows(X, part), mean)
        return xp.astype(gram(x * xp.astype(xp.sqrt(w[part]), x.dtype)[:, None]), xp.float64)

    total = sum_blocks(xp, batch, X.shape[0], rows_at_once(X))
    check_squares(float(xp.linalg.trace(total)))
    return total


def _is_fast(x: Array) -> bool:
    """Whether the user chose speed: products as they are, and only sums of blocks added up in float64."""
    return not is_on_cpu(x) and input_rounding(x) > 0


def _lifted(x: Array, origin: Array) -> Array:
    """x − origin, in the precision of the products."""
    xp = namespace(x, origin)
    dtype = x.dtype if _is_fast(x) else xp.float64
    return xp.astype(x, dtype, copy=False) - xp.astype(origin, dtype, copy=False)


def as_weights(X: Array, weights: Array | None) -> Array:
    """Weights of the rows of X in float64, or ones; shape (n,)."""
    xp = namespace(X)
    if weights is None:
        return xp.ones((X.shape[0],), dtype=xp.float64, device=device_of(X))
    return xp.astype(weights, xp.float64)


def as_origin(X: Array, origin: Array | None = None) -> Array:
    """A point of the space of X in float64, or its origin; shape (d,)."""
    xp = namespace(X)
    if origin is None:
        return xp.zeros((X.shape[1],), dtype=xp.float64, device=device_of(X))
    return xp.astype(origin, xp.float64)
