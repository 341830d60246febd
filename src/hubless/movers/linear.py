"""The paper's map, linear about the mean μ of the labeled objects: z' = μ + W (z − μ).

Centring belongs to the map, so raw queries stay valid in the original space.
"""

from dataclasses import replace
from typing import NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import Array, is_on_cpu, namespace, row_blocks, rows, take_rows, to_numpy
from ..inputs import check_squares
from ..moments import (
    Moments,
    as_origin,
    as_weights,
    moments_of_pairs,
    moments_of_targets,
)
from ..products import affine, affine_rows, rows_at_once
from ..solve import Penalty, RidgePath, mean_eigenvalue, ridge, ridge_path, ridge_path_of_pairs
from ..streams import Streamed
from ..targets import Labeled, pairs
from ..threads import sum_blocks


# μ = Σ w x / Σ w
def weighted_mean(X: Array, weights: Array | None = None) -> Array:
    """Mean of the rows of X in float64; shape (d,)."""
    xp, w = namespace(X), as_weights(X, weights)
    dtype = xp.float64 if is_on_cpu(w) else X.dtype  # an accelerator sums a block with little rounding

    def batch(part: slice) -> Array:
        x = xp.astype(rows(X, part), dtype, copy=False)
        return xp.astype(xp.astype(w[part], dtype, copy=False) @ x, xp.float64)

    return sum_blocks(xp, batch, X.shape[0], rows_at_once(X)) / xp.sum(w)


# z' = μ + W (z − μ)
def move(Z: Array, W: Array, mean: Array) -> Array:
    """Move the rows of Z; the result has their precision, and is on the host where they come from there."""
    xp = namespace(Z, W, mean)
    W, mean = xp.astype(W, Z.dtype, copy=False), xp.astype(mean, Z.dtype, copy=False)
    if isinstance(Z, Streamed):
        host = np.empty_like(Z.host)
        for part, z in row_blocks(Z, rows_at_once(Z)):
            host[part] = to_numpy(affine(z - mean, W, mean))
        return host
    return affine_rows(Z, W, mean, mean)


# min_W Σ w ‖x − Wz‖² + λ‖W‖² (Eq. 5), or + λ‖W − I‖²: with W = I + V the latter is min_V Σ w ‖(x − z) − Vz‖²
# + λ‖V‖², the same problem with what is missing, x − z, in the place of x, so that V = (A − K)(K + λI)⁻¹
class RidgeProblem(NamedTuple):
    """The ridge regression from z to x over pairs about a centre, ready to be solved for any λ.

    It holds the moments of the pairs or, where there are fewer pairs than dimensions, the pairs themselves.
    """

    moments: Moments | None
    x: Array  # (pairs, d), centred and multiplied by √w, as is z; None where there are moments
    z: Array

    def mean_eigenvalue(self) -> float:
        """Mean eigenvalue of XKXᵀ."""
        if self.moments is not None:
            return mean_eigenvalue(self.moments.K)
        return float(namespace(self.z).sum(self.z**2)) / self.z.shape[1]

    def solve(self, alpha: float, toward: str = "zero") -> Array:
        """W of shape (d, d) for λ = alpha, which pulls toward "zero" or the "identity"."""
        if toward == "identity":
            V = self._missing().solve(alpha)
            return V + namespace(V).eye(V.shape[0], dtype=V.dtype, device=compat.device(V))
        if self.moments is not None:
            return ridge(self.moments.A, self.moments.K, alpha)
        return self.path().at(alpha)

    def _missing(self) -> "RidgeProblem":
        """The same problem with x − z in the place of x."""
        if self.moments is None:
            return RidgeProblem(None, self.x - self.z, self.z)
        return RidgeProblem(replace(self.moments, A=self.moments.A - self.moments.K), None, None)

    def path(self) -> RidgePath:
        """W for every λ."""
        if self.moments is not None:
            return ridge_path(self.moments.A, self.moments.K)
        return ridge_path_of_pairs(self.x, self.z)


def problem_of_pairs(X: Array, Z: Array, weights: Array | None, mean: Array) -> RidgeProblem:
    """The problem of moving each Z[i] toward X[i]; X and Z of shape (pairs, d)."""
    xp = namespace(X, Z, mean)
    if X.shape[0] >= X.shape[1]:
        return _finite(RidgeProblem(moments_of_pairs(X, Z, weights, mean), None, None))
    x, z = (xp.astype(rows(array, slice(None)), xp.float64) - mean for array in (X, Z))
    if weights is not None:
        root = xp.sqrt(xp.astype(weights, xp.float64))[:, None]
        x, z = x * root, z * root
    return _finite(RidgeProblem(None, x, z))


def problem_of_moments(moments: Moments, n_pairs: int) -> RidgeProblem:
    """The problem of pairs of which the moments are left."""
    check_pairs(n_pairs)
    return _finite(RidgeProblem(moments, None, None))


def check_pairs(n_pairs: int) -> None:
    """Refuse to learn from nothing."""
    if n_pairs == 0:
        raise ValueError(
            "there is no pair to learn from: every object is alone in its class, or has no precomputed "
            "target. Give more objects per class, or pairs of your own to MoveLabeled.fit_pairs."
        )


def problem_of_targets(
    X: Array,
    targets: Array,
    weights: Array | None,
    mean: Array,
    *,
    Z: Array | None = None,
    reverse: bool = False,
) -> RidgeProblem:
    """The problem of moving targets toward their object (Eq. 5), or with `reverse` it to them (Eq. 9).

    Z is where the objects are now, by default X.
    """
    xp = namespace(X, targets, mean)
    n_pairs = int(xp.sum(xp.astype(targets >= 0, xp.int64)))
    check_pairs(n_pairs)
    if n_pairs >= X.shape[1]:
        found = moments_of_targets(X, targets, weights, mean, Z=Z, reverse=reverse)
        return _finite(RidgeProblem(found, None, None))
    source, target = pairs(targets)
    x, z = take_rows(X, source), take_rows(X if Z is None else Z, target)
    w = None if weights is None else xp.take(weights, source)
    return problem_of_pairs(z, x, w, mean) if reverse else problem_of_pairs(x, z, w, mean)


def _finite(problem: RidgeProblem) -> RidgeProblem:
    check_squares(problem.mean_eigenvalue())
    return problem


class LinearMap(NamedTuple):
    """z ↦ μ + W (z − μ), and the λ it was learned with."""

    W: Array  # (d, d)
    mean: Array  # (d,)
    alpha: float


def centre(X: Array, weights: Array | None, center: bool) -> Array:
    """μ: the mean of the objects, or the origin; (d,) in float64."""
    return weighted_mean(X, weights) if center else as_origin(X)


def learn_from_labels(
    labeled: Labeled, penalty: Penalty, center: bool, *, reverse: bool = False
) -> LinearMap:
    """The map that solves Eq. 5, or with `reverse` Eq. 9."""
    mean = centre(labeled.X, labeled.weights, center)
    problem = problem_of_targets(labeled.X, labeled.targets, labeled.weights, mean, reverse=reverse)
    return learned(problem, mean, penalty, labeled.X)


def learned(
    problem: RidgeProblem, mean: Array, penalty: Penalty, like: Array, toward: str = "zero"
) -> LinearMap:
    """The solution of a problem, in the precision of the array `like`."""
    xp = namespace(mean)
    alpha = penalty.absolute(problem.mean_eigenvalue())
    return LinearMap(xp.astype(problem.solve(alpha, toward), like.dtype), xp.astype(mean, like.dtype), alpha)
