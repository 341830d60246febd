"""From moments to the map: W = A (K + λI)⁻¹, for one λ or for a whole grid.

λ > 0 is the ridge solution of Eq. 6; λ = 0 is least squares, and of all least-squares solutions the one of
smallest norm where K is singular.
"""

from typing import NamedTuple

import array_api_compat as compat

from .arrays import Array, namespace
from .products import solve_positive


# λ₀ = Tr(K) / d: the unit in which λ is chosen, since the best λ grows with the data as K does
def mean_eigenvalue(K: Array) -> float:
    """Mean eigenvalue of K."""
    xp = namespace(K)
    return float(xp.linalg.trace(K)) / K.shape[0]


class Penalty(NamedTuple):
    """λ, as a number or as a multiple of the mean eigenvalue of K."""

    value: float
    relative: bool

    def absolute(self, unit: float) -> float:
        """λ where the mean eigenvalue is `unit`."""
        return self.value * unit if self.relative else self.value


# W = A (K + λI)⁻¹  (Eq. 6)
def ridge(A: Array, K: Array, alpha: float) -> Array:
    """W for one λ = alpha ≥ 0: one linear solve, or eigenvalues where λ is too small to make K regular."""
    xp, d = namespace(A, K), K.shape[0]
    if alpha <= 10 * d * float(xp.finfo(K.dtype).eps) * float(xp.linalg.trace(K)):
        return ridge_path(A, K).at(alpha)
    identity = xp.eye(d, dtype=K.dtype, device=compat.device(K))
    return solve_positive(K + alpha * identity, A.T).T


class RidgePath(NamedTuple):
    """Every W(λ) at the price of one eigendecomposition: W(λ) = left · diag(1 / (values + λ)) · right."""

    left: Array  # (d, r)
    values: Array  # (r,), eigenvalues ≥ 0 of K, or those of them that are not 0
    right: Array  # (r, d), orthonormal rows: eigenvectors

    def at(self, alpha: float) -> Array:
        """W(alpha), of shape (d, d)."""
        return (self.left * self.gains(alpha)) @ self.right

    def gains(self, alpha: float) -> Array:
        """1 / (values + alpha); 0 where that sum is 0 up to rounding, which gives the least norm."""
        xp = namespace(self.values)
        size = max(self.left.shape[0], self.values.shape[0])
        floor = size * float(xp.finfo(self.values.dtype).eps) * float(xp.max(self.values))
        shifted = xp.where(self.values > floor, self.values, 0.0) + alpha
        regular = shifted > floor
        return xp.where(regular, 1 / xp.where(regular, shifted, 1.0), 0.0)


# K = V diag(v) Vᵀ, so W(λ) = (A V) diag(1 / (v + λ)) Vᵀ
def ridge_path(A: Array, K: Array) -> RidgePath:
    """All W(λ) from the moments: one eigendecomposition in d dimensions."""
    xp = namespace(A, K)
    values, V = xp.linalg.eigh(K)
    return RidgePath(A @ V, xp.clip(values, min=0.0), V.T)


# X (d × p) and Z (d × p) hold the pairs: W = X Zᵀ (Z Zᵀ + λI)⁻¹ = X (Zᵀ Z + λI)⁻¹ Zᵀ,
# and ZᵀZ = U diag(u) Uᵀ, so W(λ) = (X U √u) diag(1 / (u + λ)) (√u⁻¹ Uᵀ Zᵀ), the right factor orthonormal
def ridge_path_of_pairs(X: Array, Z: Array) -> RidgePath:
    """All W(λ) from p pairs, rows of X and Z: one eigendecomposition in p dimensions, for p < d."""
    xp = namespace(X, Z)
    values, U = xp.linalg.eigh(Z @ Z.T)
    roots = xp.sqrt(xp.clip(values, min=0.0))
    right = (U.T @ Z) / xp.where(roots > 0, roots, 1.0)[:, None]
    return RidgePath((X.T @ U) * roots, roots**2, right)
