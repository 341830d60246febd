"""NCA: neighbourhood components analysis (Goldberger, Roweis, Hinton & Salakhutdinov, NIPS 2004).

Each object draws one neighbour at random, near ones more often, and takes its class: maximise the expected
number of objects that get the right class. All n² pairs count, a block of rows at a time: no n × n matrix is
held.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..arrays import Array, convert, is_on_cpu, namespace, to_numpy
from ..arrays.inputs import is_number, or_none
from ..arrays.products import blas_threads, limit_blas, map_blocks
from ..targets import same_class_targets
from .lmnn import squared_distances_to_targets
from .mahalanobis import LearnedMetric, MahalanobisLearner

CPU_CELLS = 1 << 21  # pairs that a thread of the CPU holds at once
DEVICE_CELLS = 1 << 28  # pairs held at once by a device, where few large steps are fast
BLUR = 1e-3  # error of a squared distance at the start that needs more than float32


class _DrawSums(NamedTuple):
    """Sums over a block of rows."""

    right: Array  # (): Σ p_i, in float64
    columns: Array  # (n,): column sums of V
    partners: Array  # (rows, d): VX


# p_i = Σ P_ij over j of i's class, with P_ij = exp(s_ij) / Σ_l exp(s_il), s_ij = −‖z_i − z_j‖² and s_ii = −∞
# V_ij = ∂p_i/∂s_ij = P_ij (1 − p_i) within a class, −P_ij p_i between classes
def _draw_sums(X: Array, codes: Array, Z: Array, norms: Array, rows: slice) -> _DrawSums:
    xp, (n, _) = namespace(Z), Z.shape
    scores = (2 * Z[rows, :]) @ Z.T  # (rows, n)
    scores -= norms[None, :]  # this is s but for ‖z_i‖², which changes no share of a row
    flat = xp.reshape(scores, (-1,))
    flat[rows.start :: n + 1] = -xp.inf  # the diagonal: no object draws itself
    scores = xp.reshape(flat, scores.shape)
    scores -= xp.max(scores, axis=1)[:, None]  # the largest exponential of a row is 1: no overflow, no 0 / 0
    V = xp.exp(scores)
    same = codes[rows][:, None] == codes[None, :]
    # Two sums, as 1 − p_i by subtraction would lose its digits where p_i is near 1.
    within, between = (xp.sum(part, axis=1) for part in (xp.where(same, V, 0.0), xp.where(same, 0.0, V)))
    total = within + between
    V *= xp.where(same, (between / total**2)[:, None], (-within / total**2)[:, None])
    right = xp.sum(xp.astype(within / total, xp.float64))
    return _DrawSums(right, xp.astype(xp.sum(V, axis=0), xp.float64), V @ X)


# f(L) = Σ_i p_i with z = Lx. As ∂s_ij/∂L = −2 L (x_i − x_j)(x_i − x_j)ᵀ,
# ∂f/∂L = −2 L Σ_ij V_ij (x_i − x_j)(x_i − x_j)ᵀ = −2 L (Xᵀ diag(c) X − XᵀVX − (XᵀVX)ᵀ)
# with c the column sums of V; its row sums are p_i (1 − p_i) − (1 − p_i) p_i = 0.
def nca_objective(X: Array, codes: Array, L: np.ndarray) -> tuple[float, np.ndarray]:
    """Return f(L), a number from 0 to n, and its gradient."""
    xp, (n, d) = namespace(X, codes), X.shape
    Z = X @ xp.astype(convert(L, X), X.dtype).T
    norms = xp.vecdot(Z, Z, axis=-1)
    height = max(1, (CPU_CELLS if is_on_cpu(X) else DEVICE_CELLS) // n)
    sums = map_blocks(xp, lambda rows: _draw_sums(X, codes, Z, norms, rows), n, height)
    right, columns, partners = zip(*sums, strict=True)
    half = X.T @ (0.5 * xp.astype(sum(columns), X.dtype)[:, None] * X - xp.concat(partners))
    spread = xp.reshape(xp.astype(half + half.T, xp.float64), (-1,))
    host = to_numpy(xp.concat([xp.stack(right), spread]))  # in one piece, so as to wait for a device once
    return float(host[: -d * d].sum()), -2 * L @ host[-d * d :].reshape(d, d)


# r² = mean_i ‖x_i − x_t(i)‖² with t(i) the nearest other object of i's class, where there is one
def target_distance(X: Array, codes: Array) -> float:
    """Return r, or the root mean squared norm of X where every object has a duplicate and r vanishes."""
    xp = namespace(X, codes)
    squared = squared_distances_to_targets(X, same_class_targets(X, codes))
    near = float(xp.mean(squared[xp.isfinite(squared)]))
    spread = float(xp.mean(xp.astype(xp.vecdot(X, X, axis=-1), xp.float64)))
    return float(np.sqrt(near if near > float(xp.finfo(X.dtype).eps) * spread else spread))


def nca(X: Array, codes: Array, start: float, max_iter: int, tol: float) -> LearnedMetric:
    """Maximise f by L-BFGS from start · I."""
    xp, d = namespace(X, codes), X.shape[1]
    largest = start**2 * float(xp.max(xp.vecdot(X, X, axis=-1)))
    if largest * float(xp.finfo(X.dtype).eps) > BLUR:
        X = xp.astype(X, xp.float64)
    history: list[float] = []
    threads = blas_threads()

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        with limit_blas(threads):
            value, gradient = nca_objective(X, codes, flat.reshape(d, d))
        if not history:
            history.append(value)
        return -value, -gradient.ravel()

    def step(intermediate_result: OptimizeResult) -> None:  # SciPy needs this name
        history.append(-float(intermediate_result.fun))

    options = {"maxiter": max_iter, "ftol": tol, "gtol": 0.0}
    first = (start * np.eye(d)).ravel()
    with limit_blas(1):  # sums of SciPy over d² numbers are many times slower on several threads
        end = minimize(loss, first, jac=True, method="L-BFGS-B", callback=step, options=options)
    return LearnedMetric(convert(end.x.reshape(d, d), X), max(1, end.nit), history)


def check_scale(name: str, value: Any) -> None:
    """Refuse all but numbers that float32 can hold and square, in any unit of X."""
    if not is_number(value) or not 1e-10 <= value <= 1e10:
        raise ValueError(f"{name} must be None or a number from 1e-10 to 1e10; got {value!r}.")


class NCA(MahalanobisLearner):
    """Neighbourhood components analysis: the metric under which a random near neighbour is most often right.

    Parameters
    ----------
    scale : float or None, default=1.0
        The start is L = scale · I / r, with r the root mean squared distance of an object to its nearest
        object of the same class. With a small scale all objects are neighbours at the start; with a large
        one, only the nearest, and f may be so flat that L hardly changes. None starts at the identity.
    max_iter : int, default=50
        Steps of L-BFGS.
    tol : float, default=1e-5
        Stop when a step raises the objective by less than this share.

    Attributes
    ----------
    components_ : array of shape (d, d)
        L.
    n_iter_ : int
    history_ : list of float
        The objective Σ p_i at the start and after every step; it rises.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, Neighbourhood components analysis, NIPS 17,
    2004.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.baselines import NCA
    >>> X, y = load_wine(return_X_y=True)
    >>> plain = cross_val_score(KNeighborsClassifier(3), X, y).mean()
    >>> bool(cross_val_score(make_pipeline(NCA(3.0), KNeighborsClassifier(3)), X, y).mean() > plain + 0.1)
    True
    """

    _checks: ClassVar = {**MahalanobisLearner._checks, "scale": or_none(check_scale)}

    def __init__(self, scale: float | None = 1.0, *, max_iter: int = 50, tol: float = 1e-5) -> None:
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def _learn(self, X: Array, codes: Array) -> LearnedMetric:
        if self.scale is None:
            return nca(X, codes, 1.0, self.max_iter, self.tol)
        r = target_distance(X, codes)
        # In units of r, as the first step of L-BFGS has length 1 in any unit.
        learned = nca(X / r, codes, float(self.scale), self.max_iter, self.tol)
        return learned._replace(L=learned.L / r)
