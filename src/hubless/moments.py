"""Moments of pairs: all that the map needs to know of the data, in d × d numbers that add up.

Moments of two batches of pairs, of two processes or of two machines merge with `+`; no data is needed to
solve for another λ, or about another centre.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

import array_api_compat as compat

from .arrays import Array, blocks, count, namespace
from .targets import pairs

ROWS = 8192  # rows lifted to float64 at once


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
        x, z = (xp.astype(array[part, :], xp.float64) - origin for array in (X, Z))
        root = xp.ones((x.shape[0],), dtype=xp.float64, device=compat.device(x))
        if weights is not None:  # √w on both sides, so that K stays one symmetric product
            root = xp.sqrt(xp.astype(weights[part], xp.float64))
            x, z = x * root[:, None], z * root[:, None]
        return Moments(origin, float(xp.sum(root * root)), root @ x, root @ z, x.T @ z, z.T @ z)

    return reduce(add, map(batch, blocks(X.shape[0], ROWS)))


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
    The cost does not grow with the number of targets: A needs only the sum of each row's targets, K only how
    often each object is one.
    """
    xp, n = namespace(X, targets), X.shape[0]
    Z = X if Z is None else Z
    origin = as_origin(X, origin)
    weight = as_weights(X, weights)
    source, target = pairs(targets)
    as_source = count(source, n, xp.take(weight, source))  # Σ w of the pairs in which object i is the source
    as_target = count(target, n, xp.take(weight, source))  # diagonal of K = diag(Jᵀe)
    is_plain = weights is None and bool(xp.all(targets >= 0))

    def batch(part: slice) -> Moments:
        x = xp.astype(X[part, :], xp.float64) - origin
        z_total = xp.zeros_like(x)  # row i of JXᵀ: w_i times the sum of its targets
        for column in range(targets.shape[1]):
            index = targets[part, column]
            z, share = xp.take(Z, xp.clip(index, min=0), axis=0), xp.where(index >= 0, weight[part], 0.0)
            z_total += z if is_plain else z * share[:, None]  # in float64; no copy of z where w = 1
        z_total -= as_source[part][:, None] * origin
        A, x_sum, z_sum = x.T @ z_total, as_source[part] @ x, xp.sum(z_total, axis=0)
        own = x if reverse or Z is X else xp.astype(Z[part, :], xp.float64) - origin
        root = own * xp.sqrt((as_source if reverse else as_target)[part])[:, None]
        if reverse:
            A, x_sum, z_sum = A.T, z_sum, x_sum
        return Moments(origin, float(xp.sum(as_source[part])), x_sum, z_sum, A, root.T @ root)

    return reduce(add, map(batch, blocks(n, ROWS)))


def as_weights(X: Array, weights: Array | None) -> Array:
    """Weights of the rows of X in float64, or ones; shape (n,)."""
    xp = namespace(X)
    if weights is None:
        return xp.ones((X.shape[0],), dtype=xp.float64, device=compat.device(X))
    return xp.astype(weights, xp.float64)


def as_origin(X: Array, origin: Array | None = None) -> Array:
    """A point of the space of X in float64, or its origin; shape (d,)."""
    xp = namespace(X)
    if origin is None:
        return xp.zeros((X.shape[1],), dtype=xp.float64, device=compat.device(X))
    return xp.astype(origin, xp.float64)
