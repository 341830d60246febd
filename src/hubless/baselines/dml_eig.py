"""DML-eig: distance metric learning with eigenvalue optimisation (Ying & Li, JMLR 2012).

Make the least distance between objects of two classes as large as the mean distance within classes allows.
That is an eigenvalue problem, smoothed and solved by steps of Frank-Wolfe type: each adds the one direction
that helps most, the leading eigenvector of the gradient.
"""

from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.inputs import check_count, check_positive
from ..arrays.library import blocks
from ..neighbors.search import search
from ..targets import labeled_objects, pairs
from .mahalanobis import LearnedMetric, MahalanobisLearner

ROWS = 1 << 15  # pairs whose scaled copies are held at once


class EigenSolution(NamedTuple):
    """The solution S with a certificate: f_μ is concave, so no S has f_μ above value + gap."""

    S: np.ndarray  # (d, d), positive semidefinite, trace 1
    values: list[float]  # f_μ after each step
    gap: float


def dissimilar_pairs(X: Array, codes: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Pair each object with its nearest objects of other classes."""
    xp = namespace(X, codes)
    rows, columns = [], []
    for code in xp.unique_values(codes):
        members, others = xp.nonzero(codes == code)[0], xp.nonzero(codes != code)[0]
        k = min(n_neighbors, others.shape[0])
        indices = search(xp.take(X, members, axis=0), xp.take(X, others, axis=0), k, return_distance=False)
        columns.append(xp.take(others, xp.reshape(indices, (-1,))))
        rows.append(xp.reshape(xp.broadcast_to(members[:, None], (members.shape[0], k)), (-1,)))
    return xp.concat(rows), xp.concat(columns)


def pair_differences(X: Array, rows: Array, columns: Array) -> Array:
    """Return x_i − x_j for each pair (row i, column j); shape (pairs, d)."""
    xp = namespace(X)
    return xp.take(X, rows, axis=0) - xp.take(X, columns, axis=0)


# A = (mean over similar pairs of (x_i − x_j)(x_i − x_j)ᵀ)^(−1/2)
def whitening(similar: Array, ridge: float = 1e-5) -> np.ndarray:
    """Return the map after which similar pairs spread equally in all directions; `ridge` keeps it finite."""
    spread = to_numpy(similar.T @ similar).astype(np.float64) / similar.shape[0]
    if not spread.any():  # similar objects are identical: any metric keeps them together
        return np.eye(len(spread))
    values, vectors = eigh(spread)
    values = np.clip(values, 0, None) + ridge * values.mean()
    return (vectors / np.sqrt(values)) @ vectors.T


# max f_μ(S) = −μ log mean_τ exp(−⟨S, v_τ v_τᵀ⟩ / μ)  over  S ⪰ 0, tr S = 1, with v_τ the whitened dissimilar
# pairs (Eq. 13 of Ying & Li): for μ → 0 the least distance. Its gradient is G = Σ_τ u_τ v_τ v_τᵀ with u the
# softmin of the distances, and S ← (1 − a) S + a ggᵀ with g the leading eigenvector of G and the best a in
# [0, 1].
def smoothed_eigenvalue(V: Array, mu: float, max_iter: int, tol: float) -> EigenSolution:
    """Take Frank-Wolfe steps until the objective is certified to be within the share `tol` of its maximum."""
    xp, d = namespace(V), V.shape[1]
    S = np.eye(d) / d
    distances = to_numpy(xp.vecdot(V, V, axis=-1)).astype(np.float64) / d
    values, gap = [_softmin(distances, mu)], np.inf
    for _ in range(max_iter):
        G = weighted_spread(V, softmin_weights(distances, mu))
        top, g = _leading_eigenvector(G)
        gap = float(top - np.sum(S * G))
        if gap <= tol * values[-1]:
            break
        along = to_numpy(V @ xp.astype(convert(g, V), V.dtype)).astype(np.float64) ** 2
        a = _best_step(distances, along, mu)
        S = (1 - a) * S + a * np.outer(g, g)
        distances = (1 - a) * distances + a * along
        values.append(_softmin(distances, mu))
    return EigenSolution(S, values, gap)


def _leading_eigenvector(G: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest eigenvalue and its eigenvector."""
    if len(G) < 32 or not G.sum(axis=1).any():  # too small for Lanczos steps, or without a start for them
        values, vectors = eigh(G)
    else:
        values, vectors = eigsh(G, k=1, which="LA", v0=G.sum(axis=1), tol=1e-9)
    return float(values[-1]), vectors[:, -1]


# −μ log mean_τ exp(−d_τ / μ)
def _softmin(distances: np.ndarray, mu: float) -> float:
    least = distances.min()
    return float(least - mu * np.log(np.mean(np.exp((least - distances) / mu))))


# u_τ = exp(−d_τ / μ) / Σ exp(−d / μ)
def softmin_weights(distances: np.ndarray, mu: float) -> np.ndarray:
    """Return the weights of the pairs in the gradient of f_μ: the nearest pairs count most."""
    weights = np.exp((distances.min() - distances) / mu)
    return weights / weights.sum()


def _best_step(before: np.ndarray, after: np.ndarray, mu: float) -> float:
    """Return the a in [0, 1] that maximises f_μ on the segment, where it is concave, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        weights = softmin_weights((1 - middle) * before + middle * after, mu)
        low, high = (middle, high) if np.sum(weights * (after - before)) > 0 else (low, middle)
    return low


def weighted_spread(V: Array, weights: np.ndarray) -> np.ndarray:
    """Return Σ u_τ v_τ v_τᵀ; pairs of negligible weight are left out."""
    xp, total = namespace(V), np.zeros((V.shape[1], V.shape[1]))
    kept = np.flatnonzero(weights > 1e-9 / len(weights))
    for part in blocks(len(kept), ROWS):
        rows = kept[part]
        batch = V[part, :] if len(kept) == V.shape[0] else xp.take(V, convert(rows, V), axis=0)
        scaled = batch * xp.astype(convert(np.sqrt(weights[rows]), V), V.dtype)[:, None]
        total += to_numpy(scaled.T @ scaled)
    return total


class DMLeig(MahalanobisLearner):
    """Distance metric learning with eigenvalue optimisation.

    Parameters
    ----------
    mu : float, default=0.1
        μ, the smoothing of the minimum, in units of the mean squared distance of similar pairs.
    n_neighbors : int, default=3
        Each object is paired with this many nearest objects of its class (similar) and of other classes
        (dissimilar), in Euclidean distance.
    max_iter : int, default=300
        Frank-Wolfe steps.
    tol : float, default=1e-2
        Stop when the objective is certified to be within this share of its maximum.

    Attributes
    ----------
    components_ : array of shape (d, d)
        L = S^½ A, with A the whitening of similar pairs and S the solution.
    n_iter_ : int
    history_ : list of float
        The objective f_μ at the start and after every step; it rises.
    gap_ : float
        How far the objective may be below its maximum, certified.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    References
    ----------
    Y. Ying and P. Li, Distance metric learning with eigenvalue optimization, JMLR 13, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.baselines import DMLeig
    >>> X, y = load_wine(return_X_y=True)
    >>> plain = cross_val_score(KNeighborsClassifier(3), X, y).mean()
    >>> bool(cross_val_score(make_pipeline(DMLeig(), KNeighborsClassifier(3)), X, y).mean() > plain + 0.1)
    True
    """

    _learned: ClassVar = {**MahalanobisLearner._learned, "gap_": "number"}
    _checks: ClassVar = {**MahalanobisLearner._checks, "mu": check_positive, "n_neighbors": check_count}

    def __init__(
        self, mu: float = 0.1, n_neighbors: int = 3, *, max_iter: int = 300, tol: float = 1e-2
    ) -> None:
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.tol = tol

    def _learn(self, X: Array, codes: Array) -> LearnedMetric:
        xp, k = namespace(X), self.n_neighbors
        similar = pairs(labeled_objects(X, codes, n_targets=k).targets)
        A = whitening(pair_differences(X, *similar))
        V = pair_differences(X, *dissimilar_pairs(X, codes, k)) @ xp.astype(convert(A, X), X.dtype)
        solution = smoothed_eigenvalue(V, float(self.mu), self.max_iter, self.tol)
        self.gap_ = solution.gap
        values, vectors = eigh(solution.S)
        L = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T @ A
        return LearnedMetric(convert(L, X), len(solution.values) - 1, solution.values)
