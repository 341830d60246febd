"""Moments of pairs: all that the map needs from the data, in d × d numbers that add up.

Moments of two batches of pairs, of two processes or of two machines merge with `+`, and `-` removes a batch
again; no data is needed to solve for another λ, or about another centre.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import add, sub
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from .arrays import Array, device_of, input_rounding, is_on_cpu, namespace, rows, take_rows, tally, to_numpy
from .arrays.inputs import check_squares
from .arrays.products import gram, rows_at_once, sparse_rows, sum_blocks
from .targets import pairs

SUMS = ("weight", "x_sum", "z_sum", "A", "K")  # what adds up of moments about one origin


@dataclass(frozen=True)
class Moments:
    """Sums over pairs (x, z) with weights w, taken about an origin o, in float64.

    Where x is in another space than z, of e columns, it has an origin of its own, which then takes the place
    of o beside x.

    Attributes
    ----------
    origin : (d,) array, o
    weight : float, Σ w
    x_sum, z_sum : (e,) and (d,) arrays, Σ w (x − o) and Σ w (z − o)
    A : (e, d) array, Σ w (x − o)(z − o)ᵀ: the paper's XJXᵀ where o is the mean of the data
    K : (d, d) array, Σ w (z − o)(z − o)ᵀ: the paper's XKXᵀ
    x_origin : (e,) array, the origin of x; None where it is o, and e = d

    Examples
    --------
    >>> import numpy as np
    >>> one = moments_of_pairs(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]]))
    >>> one.A.tolist(), (one + one).K.tolist()  # x zᵀ, and z zᵀ twice: batches add up
    ([[3.0, 0.0], [6.0, 0.0]], [[18.0, 0.0], [0.0, 0.0]])
    """

    origin: Array
    weight: float
    x_sum: Array
    z_sum: Array
    A: Array
    K: Array
    x_origin: Array | None = None

    @staticmethod
    def of(origin: Array, weight: float, x: Array, z: Array, w: Array) -> "Moments":
        """Compute the moments of a batch: `w` are the weights of z, which is overwritten; x is weighted."""
        xp = namespace(x, z)
        x_sum = xp.ones_like(w) @ x  # a product, which is faster than a sum along the first axis
        z_sum, A = w @ z, x.T @ z
        z *= xp.sqrt(w)[:, None]
        return Moments(origin, weight, *(xp.astype(s, xp.float64) for s in (x_sum, z_sum, A, gram(z))))

    def __add__(self, other: "Moments") -> "Moments":
        return self._combine(add, other)

    def __sub__(self, other: "Moments") -> "Moments":
        """Remove pairs that were added before; rounding may make K slightly indefinite."""
        return self._combine(sub, other)

    def _combine(self, operator: Callable[[Any, Any], Any], other: "Moments") -> "Moments":
        other = other.about(self.origin, self.x_origin)
        sums = {name: operator(getattr(self, name), getattr(other, name)) for name in SUMS}
        return replace(self, **sums)

    # With δ = o − p on either side:  Σ w (x − p)(z − p)ᵀ = A + x_sum δᵀ + δₓ (z_sum + (Σ w) δ)ᵀ, and K alike
    def about(self, origin: Array, x_origin: Array | None = None) -> "Moments":
        """Return the same moments about another origin p; `x_origin` is that of x where it has its own."""
        if origin is self.origin and x_origin is self.x_origin:
            return self
        delta = x_delta = self.origin - origin
        if x_origin is not None:
            x_delta = self.x_origin - x_origin
        x_sum, z_sum = self.x_sum + self.weight * x_delta, self.z_sum + self.weight * delta
        A = self.A + self.x_sum[:, None] * delta + x_delta[:, None] * z_sum
        K = self.K + self.z_sum[:, None] * delta + delta[:, None] * z_sum
        return Moments(origin, self.weight, x_sum, z_sum, A, K, x_origin)


NEGATIVE = 1e-9  # share of ‖K‖: an eigenvalue of K below −NEGATIVE · ‖K‖ is more than rounding
NOTHING_LEFT = 1e-12  # share of the weight before: a smaller rest is rounding


@dataclass(frozen=True)
class PairSums:
    """Pairs and their objects as sums: all that a linear map needs to learn more, or to forget."""

    moments: Moments  # about the centre of the map
    weight: float  # sum of the weights of the objects
    mean: np.ndarray  # (d,), of the objects; the centre of the map is this, or the origin
    n_singletons: int = 0  # objects that are in no pair

    # μ = (n₁ μ₁ + n₂ μ₂) / (n₁ + n₂); about it, moments add up
    def __add__(self, other: "PairSums") -> "PairSums":
        weight, mean, *centres = self._combine_means(other, 1)
        moments = self.moments.about(*centres) + other.moments
        check_squares(float(np.trace(moments.K)))
        return PairSums(moments, weight, mean, self.n_singletons + other.n_singletons)

    # A − A_b, K − K_b about μ = (n μ − n_b μ_b) / (n − n_b)
    def __sub__(self, other: "PairSums") -> "PairSums":
        """Remove the sums of a batch; ValueError where it was never learned, or nothing would be left."""
        for whole, part in ((self.weight, other.weight), (self.moments.weight, other.moments.weight)):
            if whole - part <= NOTHING_LEFT * whole:
                raise ValueError(
                    f"everything learned has the weight {whole:g}, the batch to forget has {part:g}: "
                    "nothing would be left to learn from. Make a new mover instead."
                )
        weight, mean, *centres = self._combine_means(other, -1)
        moments = _subtract(self.moments.about(*centres), other.moments)
        n_singletons = self.n_singletons - other.n_singletons
        if n_singletons < 0:
            raise _never_learned(
                f"{other.n_singletons} of its objects are alone in their class, but only {self.n_singletons} "
                "of all that were learned"
            )
        return PairSums(moments, weight, mean, n_singletons)

    def _combine_means(self, other: "PairSums", sign: int) -> tuple[float, Any, Any, Any]:
        """Return weight, mean and centres of both together; with sign = -1, of this one without the other."""
        weight, other_weight = self.weight, sign * other.weight
        total = weight + other_weight
        points: Any = zip(self._points(), other._points(), strict=True)
        mean, centre, x_centre = (
            None if first is None else np.asarray((weight * first + other_weight * second) / total)
            for first, second in points
        )
        return total, mean, centre, x_centre

    def _points(self) -> tuple[np.ndarray, Array, Array | None]:
        return self.mean, self.moments.origin, self.moments.x_origin


# Every z is in the range of K = Σ w z zᵀ, so A V₀ = Σ w x (zᵀ V₀) = 0 where K V₀ = 0
def _subtract(before: Moments, batch: Moments) -> Moments:
    """Remove the moments of a batch; directions in which only rounding is left become 0."""
    left = before - batch
    size = float(np.linalg.norm(before.K))
    check_squares(size)
    values, V = np.linalg.eigh((left.K + left.K.T) / 2)
    if values[0] < -NEGATIVE * size:
        raise _never_learned(f"the sum K of their squares would get the eigenvalue {values[0]:.3g}")
    V = V[:, values > 10 * len(values) * np.finfo(np.float64).eps * size]
    P = V @ V.T
    return replace(left, A=left.A @ P, K=P @ left.K @ P)


def _never_learned(reason: str) -> ValueError:
    """Return the error for a batch that cannot be forgotten, as it was never learned."""
    return ValueError(
        f"this batch was not learned in this form: {reason}. Give a batch as it was learned, with the same "
        "labels, weights and n_targets. Nothing was changed."
    )


# A = Σ w x zᵀ and K = Σ w z zᵀ over the pairs, about the origin (Eq. 6, pair by pair)
def moments_of_pairs(
    X: Array,
    Z: Array,
    weights: Array | None = None,
    origin: Array | None = None,
    x_origin: Array | None = None,
) -> Moments:
    """Compute the moments of the pairs (X[i], Z[i]) with weights ≥ 0; shapes (pairs, e) and (pairs, d).

    `origin` is that of z, and of x where e = d, unless `x_origin` is given.
    """
    xp, is_one_space = namespace(X, Z), X.shape[1] == Z.shape[1] and x_origin is None
    origin = as_origin(Z, origin)
    x_origin = None if is_one_space else as_origin(X, x_origin)
    centres = (origin if x_origin is None else x_origin, origin)

    def batch(part: slice) -> Moments:
        x, z = (rows(array, part) - o for array, o in zip((X, Z), centres, strict=True))  # in float64
        root = xp.ones((x.shape[0],), dtype=xp.float64, device=compat.device(x))
        if weights is not None:  # √w on both sides, so that K stays one symmetric product
            root = xp.sqrt(xp.astype(weights[part], xp.float64))
            x, z = x * root[:, None], z * root[:, None]
        return Moments(origin, float(xp.sum(root * root)), root @ x, root @ z, x.T @ z, gram(z), x_origin)

    return sum_blocks(xp, batch, X.shape[0], rows_at_once(X if X.shape[1] >= Z.shape[1] else Z))


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
    """Compute the moments of the pairs (X[i], Z[j]), j in row i of `targets`, with the weight of object i.

    Z is where the objects are now, by default X. `reverse` takes the pairs (X[j], X[i]) instead, for Eq. 9.
    The products run over the objects that are a target, each with the sum of its sources: their cost does not
    grow with the number of targets, and an object that is nobody's target costs nothing (where there are
    hubs, that is true of many).

    Examples
    --------
    >>> import numpy as np
    >>> moments = moments_of_targets(np.array([[1.0], [2.0]]), np.array([[1], [0]]))
    >>> moments.A.tolist(), moments.K.tolist()  # 1 · 2 + 2 · 1, and 2 · 2 + 1 · 1
    ([[4.0]], [[5.0]])
    """
    xp = namespace(X, targets)
    Z = X if Z is None else Z
    requested = as_origin(X, origin)
    origin = xp.astype(xp.astype(requested, X.dtype), xp.float64) if _is_fast(X) else requested
    sources = _Sources.of(targets, weights)

    def batch(part: slice) -> Moments:
        x = sources.sums(X, part, origin)  # rows of JᵀX, about the origin
        z = _centre(take_rows(Z, sources.target[part]), origin)
        weight = sources.weight[part]
        return Moments.of(origin, float(xp.sum(weight)), x, z, xp.astype(weight, z.dtype))

    moments = sum_blocks(xp, batch, sources.target.shape[0], rows_at_once(X))
    if reverse:
        K = scatter(X, origin, tally(sources.source, X.shape[0], sources.share))
        moments = Moments(origin, moments.weight, moments.z_sum, moments.x_sum, moments.A.T, K)
    return moments.about(requested)


class _Sources(NamedTuple):
    """The pairs, target by target."""

    source: Array  # (pairs,), the source of each
    share: Array  # (pairs,), its weight, float64
    target: Array  # (t,), the objects that are a target, ascending
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
        """Return Σ share (x − origin) over the sources of each target of a slice."""
        xp, width = namespace(self.source), part.stop - part.start
        first, last = int(self.ends[part.start]), int(self.ends[part.stop])
        total: Array = None
        step = 2 * rows_at_once(X)
        for start in range(first, last, step):
            pairs = slice(start, min(start + step, last))
            x = _centre(take_rows(X, self.source[pairs]), origin)
            share = None if self.is_plain else xp.astype(self.share[pairs], x.dtype)
            sums = sparse_rows(self.run[pairs] - part.start, None, share, width, x)
            total = sums if total is None else total + sums
        return total


# T = Σ w (x − μ)(x − μ)ᵀ
def scatter(X: Array, mean: Array, weights: Array | None = None) -> Array:
    """Compute the scatter of the rows of X about a point, in float64; shape (d, d)."""
    xp, w = namespace(X, mean), as_weights(X, weights)

    def batch(part: slice) -> Array:
        x = _centre(rows(X, part), mean)
        return xp.astype(gram(x * xp.astype(xp.sqrt(w[part]), x.dtype)[:, None]), xp.float64)

    total = sum_blocks(xp, batch, X.shape[0], rows_at_once(X))
    check_squares(float(xp.linalg.trace(total)))
    return total


def _is_fast(x: Array) -> bool:
    """Return whether the user chose speed: products in short floats, and only sums of blocks in float64."""
    return not is_on_cpu(x) and input_rounding(x) > 0


def _centre(x: Array, origin: Array) -> Array:
    """Return x − origin, in the precision of the products."""
    xp = namespace(x, origin)
    # one step: a copy of x in float64 would take longer than the difference
    return x - xp.astype(origin, x.dtype if _is_fast(x) else xp.float64, copy=False)


def as_weights(X: Array, weights: Array | None) -> Array:
    """Return the weights of the rows of X in float64, or ones; shape (n,)."""
    xp = namespace(X)
    if weights is None:
        return xp.ones((X.shape[0],), dtype=xp.float64, device=device_of(X))
    return xp.astype(weights, xp.float64)


def as_origin(X: Array, origin: Array | None = None) -> Array:
    """Return a point of the space of X in float64, by default zero; shape (d,)."""
    xp = namespace(X)
    if origin is None:
        return xp.zeros((X.shape[1],), dtype=xp.float64, device=device_of(X))
    return xp.astype(origin, xp.float64)
