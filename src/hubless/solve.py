"""From pairs to the map: W = A (K + λI)⁻¹, for one λ or for a whole grid.

λ > 0 is the ridge solution of Eq. 6, which minimises Eq. 5; λ = 0 is least squares, and where K is singular
the least-squares solution of smallest norm.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from .arrays import Array, namespace, rows, take_rows
from .arrays.inputs import as_list, check_squares, is_number
from .arrays.products import solve_positive
from .moments import Moments, moments_of_pairs, moments_of_targets
from .targets import pairs

# --- λ ------------------------------------------------------------------------------------------------------


# λ₀ = Tr(K) / d: the unit in which λ is chosen, since the best λ grows with the data as K does
def mean_eigenvalue(K: Array) -> float:
    """Return the mean eigenvalue of K.

    Examples
    --------
    >>> import numpy as np
    >>> mean_eigenvalue(np.diag([1.0, 3.0]))
    2.0
    """
    xp = namespace(K)
    return float(xp.linalg.trace(K)) / K.shape[0]


class Penalty(NamedTuple):
    """λ, as a number or as a multiple of the mean eigenvalue of K.

    Examples
    --------
    >>> Penalty(0.1, relative=True).absolute(50.0), Penalty(2.0, relative=False).absolute(50.0)
    (5.0, 2.0)
    """

    value: float
    relative: bool

    def absolute(self, unit: float) -> float:
        """Return λ where the mean eigenvalue is `unit`."""
        return self.value * unit if self.relative else self.value

    def __str__(self) -> str:
        return f"λ = {self.value:.3g}{' × mean eigenvalue' if self.relative else ''}"


Alpha = float | str | Penalty  # λ, or "scale", which takes it from the data


def relative_penalties(*values: float) -> tuple[Penalty, ...]:
    """Return penalties that are multiples of the mean eigenvalue of K, which is computed for each K.

    Examples
    --------
    >>> [str(penalty) for penalty in relative_penalties(0.1, 1)]
    ['λ = 0.1 × mean eigenvalue', 'λ = 1 × mean eigenvalue']
    """
    return tuple(Penalty(float(value), relative=True) for value in values)


def check_alpha(name: str, alpha: Any) -> Penalty:
    """Return the penalty of a number ≥ 0, of "scale" (the mean eigenvalue), or a Penalty as it is."""
    if isinstance(alpha, Penalty):
        return alpha
    if isinstance(alpha, str) and alpha == "scale":
        return Penalty(1.0, relative=True)
    if not is_number(alpha) or not 0 <= float(alpha) < np.inf:
        raise ValueError(
            f'{name} must be a number of at least 0, or "scale"; got {alpha!r}. A multiple of "scale" is '
            "hubless.solve.Penalty(0.3, relative=True)."
        )
    return Penalty(float(alpha), relative=False)


def check_alphas(name: str, alphas: Any) -> tuple[Penalty, ...]:
    """Return several penalties, sorted and without duplicates."""
    penalties = tuple(sorted({check_alpha("alpha", alpha) for alpha in as_list(alphas)}))
    if not penalties:
        raise ValueError(f"{name} must be a sequence of numbers of at least 0; got none.")
    return penalties


# --- W from moments, or from few pairs ----------------------------------------------------------------------


# min_W Σ ‖x − Wz‖² + λ ‖W‖² over the pairs  (Eq. 5) is reached at W = A (K + λI)⁻¹  (Eq. 6)
def ridge(A: Array, K: Array, alpha: float) -> Array:
    """Return W for one λ = alpha ≥ 0: one linear solve, or eigenvalues where K + λI is nearly singular.

    Examples
    --------
    >>> import numpy as np
    >>> A, K = np.diag([8.0, 16.0]), np.diag([1.0, 13.0])
    >>> ridge(A, K, alpha=3.0).tolist()  # 8 / (1 + 3) and 16 / (13 + 3)
    [[2.0, 0.0], [0.0, 1.0]]
    """
    xp, d = namespace(A, K), K.shape[0]
    if alpha <= 10 * d * float(xp.finfo(K.dtype).eps) * float(xp.linalg.trace(K)):
        return ridge_path(A, K).at(alpha)
    identity = xp.eye(d, dtype=K.dtype, device=compat.device(K))
    return solve_positive(K + alpha * identity, A.T).T


class RidgePath(NamedTuple):
    """Every W(λ) at the cost of one eigendecomposition: W(λ) = left · diag(1 / (values + λ)) · right."""

    left: Array  # (d, r), or (e, r) where queries have e columns
    values: Array  # (r,), eigenvalues ≥ 0 of K, all or those above 0
    right: Array  # (r, d), orthonormal rows: eigenvectors

    def at(self, alpha: float) -> Array:
        """Return W(alpha), of shape (d, d) or (e, d)."""
        return (self.left * self.gains(alpha)) @ self.right

    def gains(self, alpha: float) -> Array:
        """Return 1 / (values + alpha); 0 where that sum is 0 up to rounding, which gives the least norm."""
        xp = namespace(self.values)
        size = max(self.left.shape[0], self.values.shape[0])
        floor = size * float(xp.finfo(self.values.dtype).eps) * float(xp.max(self.values))
        shifted = xp.where(self.values > floor, self.values, 0.0) + alpha
        regular = shifted > floor
        return xp.where(regular, 1 / xp.where(regular, shifted, 1.0), 0.0)


# K = V diag(v) Vᵀ, so W(λ) = (A V) diag(1 / (v + λ)) Vᵀ
def ridge_path(A: Array, K: Array) -> RidgePath:
    """Return all W(λ) from the moments: one eigendecomposition in d dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> path = ridge_path(np.diag([2.0, 4.0]), np.diag([1.0, 3.0]))
    >>> path.at(1.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    xp = namespace(A, K)
    values, V = xp.linalg.eigh(K)
    return RidgePath(A @ V, xp.clip(values, min=0.0), V.T)


# X (d × p) and Z (d × p) hold the pairs: W = X Zᵀ (Z Zᵀ + λI)⁻¹ = X (Zᵀ Z + λI)⁻¹ Zᵀ,
# and ZᵀZ = U diag(u) Uᵀ, so W(λ) = (X U √u) diag(1 / (u + λ)) (√u⁻¹ Uᵀ Zᵀ), the right factor orthonormal
def ridge_path_of_pairs(X: Array, Z: Array) -> RidgePath:
    """Return all W(λ) from p pairs, rows of X and Z: one eigendecomposition in p dimensions, for p < d.

    Examples
    --------
    >>> import numpy as np
    >>> X, Z = np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]])  # one pair in two dimensions
    >>> ridge_path_of_pairs(X, Z).at(1.0).tolist()  # 2 · 1 / (1 + 1)
    [[1.0, 0.0], [0.0, 0.0]]
    """
    xp = namespace(X, Z)
    values, U = xp.linalg.eigh(Z @ Z.T)
    roots = xp.sqrt(xp.clip(values, min=0.0))
    right = (U.T @ Z) / xp.where(roots > 0, roots, 1.0)[:, None]
    return RidgePath((X.T @ U) * roots, roots**2, right)


# --- the problem --------------------------------------------------------------------------------------------


class LinearMap(NamedTuple):
    """z ↦ μ + W (z − μ), and the λ it was learned with; for queries of e columns, z ↦ μ_x + W (z − μ)."""

    W: Array  # (d, d), or (e, d)
    mean: Array  # (d,)
    alpha: float


# min_W Σ w ‖x − Wz‖² + λ‖W‖² (Eq. 5), or + λ‖W − I‖²: with W = I + V the latter is min_V Σ w ‖(x − z) − Vz‖²
# + λ‖V‖², the same problem with the difference x − z in the place of x, so that V = (A − K)(K + λI)⁻¹
class RidgeProblem(NamedTuple):
    """The ridge regression from z to x over pairs about a centre μ, ready to be solved for any λ.

    It holds the moments of the pairs or, where there are fewer pairs than dimensions, the pairs themselves.
    Where x is in another space than z, of e columns, it has a centre of its own.

    Examples
    --------
    >>> import numpy as np
    >>> X, Z = np.array([[2.0], [4.0]]), np.array([[1.0], [2.0]])
    >>> problem = problem_of_pairs(X, Z, None, np.zeros(1))
    >>> problem.mean_eigenvalue(), problem.solve(0.0).tolist()  # without λ, least squares: x = 2 z
    (5.0, [[2.0]])
    """

    mean: Array  # (d,), μ
    moments: Moments | None
    x: Array = None  # (pairs, e), centred and multiplied by √w, as is z; None where there are moments
    z: Array = None
    columns: int | None = None  # that eigenvalues go over, where pairs are in the span of the objects
    query_mean: Array = None  # (e,), μ_x; None where it is μ, and e = d

    def mean_eigenvalue(self) -> float:
        """Return the mean eigenvalue of XKXᵀ."""
        xp, columns = namespace(self.mean), self.columns or self.mean.shape[0]
        if self.moments is not None:
            return float(xp.linalg.trace(self.moments.K)) / columns
        return float(xp.sum(self.z**2)) / columns

    def solve(self, alpha: float, toward: str = "zero") -> Array:
        """Return W, (d, d) or (e, d), for λ = alpha, which pulls W toward "zero" or the "identity"."""
        if toward == "identity":
            if self.query_mean is not None:
                check_toward(toward, self.query_mean.shape[0], self.mean.shape[0])
            V = self._with_differences().solve(alpha)
            return V + namespace(V).eye(V.shape[0], dtype=V.dtype, device=compat.device(V))
        if self.moments is not None:
            return ridge(self.moments.A, self.moments.K, alpha)
        return self.path().at(alpha)

    def best_map(self, penalty: Penalty, dtype: Any, toward: str = "zero") -> LinearMap:
        """Return the map that solves the problem, as arrays of type `dtype`."""
        xp, alpha = namespace(self.mean), penalty.absolute(self.mean_eigenvalue())
        return LinearMap(xp.astype(self.solve(alpha, toward), dtype), xp.astype(self.mean, dtype), alpha)

    def _with_differences(self) -> "RidgeProblem":
        """Return the same problem with x − z in the place of x."""
        if self.moments is None:
            return self._replace(x=self.x - self.z)
        return self._replace(moments=replace(self.moments, A=self.moments.A - self.moments.K))

    def path(self) -> RidgePath:
        """Return W for every λ."""
        if self.moments is not None:
            return ridge_path(self.moments.A, self.moments.K)
        return ridge_path_of_pairs(self.x, self.z)


def problem_of_pairs(
    X: Array, Z: Array, weights: Array | None, mean: Array, query_mean: Array | None = None
) -> RidgeProblem:
    """Return the problem of moving each Z[i] toward X[i]; Z has shape (pairs, d), and so has X.

    With `query_mean`, (e,), X has shape (pairs, e): it is in another space, of which that is the centre.
    """
    xp = namespace(X, Z, mean)
    if Z.shape[0] >= Z.shape[1]:
        moments = moments_of_pairs(X, Z, weights, mean, query_mean)
        return _finite(RidgeProblem(mean, moments, query_mean=query_mean))
    x, z = (xp.astype(rows(array, slice(None)), xp.float64) for array in (X, Z))
    x, z = x - (mean if query_mean is None else query_mean), z - mean
    if weights is not None:
        root = xp.sqrt(xp.astype(weights, xp.float64))[:, None]
        x, z = x * root, z * root
    return _finite(RidgeProblem(mean, None, x, z, query_mean=query_mean))


def problem_of_targets(
    X: Array,
    targets: Array,
    weights: Array | None,
    mean: Array,
    *,
    Z: Array | None = None,
    reverse: bool = False,
) -> RidgeProblem:
    """Return the problem of moving targets toward their object (Eq. 5).

    With `reverse`, the object moves toward its targets instead (Eq. 9). Z is where the objects are now, by
    default X.

    Examples
    --------
    >>> import numpy as np
    >>> X, targets = np.array([[1.0], [2.0]]), np.array([[1], [0]])
    >>> problem_of_targets(X, targets, None, np.zeros(1)).solve(3.0).tolist()  # 4 / (5 + 3)
    [[0.5]]
    """
    xp = namespace(X, targets, mean)
    n_pairs = int(xp.sum(xp.astype(targets >= 0, xp.int64)))
    check_pairs(n_pairs)
    if n_pairs >= X.shape[1]:
        moments = moments_of_targets(X, targets, weights, mean, Z=Z, reverse=reverse)
        return _finite(RidgeProblem(mean, moments))
    source, target = pairs(targets)
    x, z = take_rows(X, source), take_rows(X if Z is None else Z, target)
    w = None if weights is None else xp.take(weights, source)
    return problem_of_pairs(z, x, w, mean) if reverse else problem_of_pairs(x, z, w, mean)


def problem_of_moments(moments: Moments, n_pairs: int) -> RidgeProblem:
    """Return the problem of pairs whose moments are known."""
    check_pairs(n_pairs)
    return _finite(RidgeProblem(moments.origin, moments))


def check_pairs(n_pairs: int) -> None:
    """Refuse to learn from nothing."""
    if n_pairs == 0:
        raise ValueError(
            "there is no pair to learn from: every object is alone in its class, or has no precomputed "
            "target. Give more objects per class, or pairs to MoveLabeled.fit_pairs; for plain k-NN, use "
            "MoveLabeledClassifier(mover=Stay()), or MoveLabeledClassifierCV, which then does not move."
        )


def check_toward(toward: str, query_columns: int, columns: int) -> None:
    """Refuse to pull W toward the identity between spaces of different width."""
    if toward == "identity" and query_columns != columns:
        raise ValueError(
            'toward="identity" needs queries and objects of one width; got queries of '
            f'{query_columns} columns and objects of {columns}. Use MoveLabeled(toward="zero").'
        )


def _finite(problem: RidgeProblem) -> RidgeProblem:
    check_squares(problem.mean_eigenvalue())
    return problem
