"""DML-eig: distance metric learning with eigenvalue optimisation (Ying & Li, JMLR 2012).

Make the least distance between objects of two classes as large as the mean distance within classes allows.
That is an eigenvalue problem, smoothed and solved by steps of Frank-Wolfe type: each adds the one direction
that helps most, the leading eigenvector of the gradient.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from ..arrays import Array, convert, namespace, to_numpy
from ..inputs import check_count
from ..targets import labeled_objects, pairs
from ..threads import blocks
from ..topk import search
from .mahalanobis import Learned, MahalanobisLearner

ROWS = 1 << 15  # pairs whose scaled copies are held at once


class Eigen(NamedTuple):
    """The solution S with a certificate: f_μ is concave, so no S has f_μ above value + gap."""

    S: np.ndarray  # (d, d), positive semidefinite, trace 1
    values: list[float]  # f_μ after each step
    gap: float


def similar_pairs(X: Array, codes: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Each object with its nearest objects of the same class."""
    return pairs(labeled_objects(X, codes, n_targets=n_neighbors).targets)


def dissimilar_pairs(X: Array, codes: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Each object with its nearest objects of other classes."""
    xp = namespace(X, codes)
    rows, columns = [], []
    for code in xp.unique_values(codes):
        own, others = xp.nonzero(codes == code)[0], xp.nonzero(codes != code)[0]
        k = min(n_neighbors, others.shape[0])
        found = search(xp.take(X, own, axis=0), xp.take(X, others, axis=0), k, return_distance=False)
        columns.append(xp.take(others, xp.reshape(found, (-1,))))
        rows.append(xp.reshape(xp.broadcast_to(own[:, None], (own.shape[0], k)), (-1,)))
    return xp.concat(rows), xp.concat(columns)


def differences(X: Array, ends: tuple[Array, Array]) -> Array:
    """x_i − x_j for each pair; shape (pairs, d)."""
    xp = namespace(X)
    return xp.take(X, ends[0], axis=0) - xp.take(X, ends[1], axis=0)


# A = (mean over similar pairs of (x_i − x_j)(x_i − x_j)ᵀ)^(−1/2)
def whitening(similar: Array, ridge: float = 1e-5) -> np.ndarray:
    """The map after which similar pairs spread equally in all directions, with a trace of `ridge` added."""
    spread = to_numpy(similar.T @ similar).astype(np.float64) / similar.shape[0]
    if not spread.any():  # similar objects are identical: any metric keeps them together
        return np.eye(len(spread))
    values, vectors = eigh(spread)
    values = np.clip(values, 0, None) + ridge * values.mean()
    return (vectors / np.sqrt(values)) @ vectors.T


# max f_μ(S) = −μ log mean_τ exp(−⟨S, v_τ v_τᵀ⟩ / μ)  over  S ⪰ 0, tr S = 1, with v_τ the whitened dissimilar
# pairs (Eq. 13): for μ → 0 the least distance. Its gradient is G = Σ_τ u_τ v_τ v_τᵀ with u the softmin of the
# distances, and S ← (1 − a) S + a ggᵀ with g the leading eigenvector of G and the best a in [0, 1].
def smoothed_eigenvalue(V: Array, mu: float, max_iter: int, tol: float) -> Eigen:
    """Frank-Wolfe steps until the certified distance from the maximum is below the share `tol` of it."""
    xp, d = namespace(V), V.shape[1]
    S = np.eye(d) / d
    distances = to_numpy(xp.vecdot(V, V, axis=-1)).astype(np.float64) / d
    values, gap = [_softmin(distances, mu)], np.inf
    for _ in range(max_iter):
        G = weighted_spread(V, softmin_weights(distances, mu))
        top, g = _leading(G)
        gap = float(top - np.sum(S * G))
        if gap <= tol * values[-1]:
            break
        along = to_numpy(V @ xp.astype(convert(g, V), V.dtype)).astype(np.float64) ** 2
        a = _best_step(distances, along, mu)
        S = (1 - a) * S + a * np.outer(g, g)
        distances = (1 - a) * distances + a * along
        values.append(_softmin(distances, mu))
    return Eigen(S, values, gap)


def _leading(G: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest eigenvalue and its eigenvector."""
    if len(G) < 32 or not G.sum(axis=1).any():  # too small for Lanczos steps to pay, or without a start
        values, vectors = eigh(G)
    else:
        values, vectors = eigsh(G, k=1, which="LA", v0=G.sum(axis=1), tol=1e-9)
    return float(values[-1]), vectors[:, -1]


def _softmin(distances: np.ndarray, mu: float) -> float:
    least = distances.min()
    return float(least - mu * np.log(np.mean(np.exp((least - distances) / mu))))


def softmin_weights(distances: np.ndarray, mu: float) -> np.ndarray:
    weights = np.exp((distances.min() - distances) / mu)
    return weights / weights.sum()


def _best_step(here: np.ndarray, there: np.ndarray, mu: float) -> float:
    """The a in [0, 1] that maximises f_μ along the segment, where it is concave: bisection of its slope."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        weights = softmin_weights((1 - middle) * here + middle * there, mu)
        low, high = (middle, high) if np.sum(weights * (there - here)) > 0 else (low, middle)
    return low


def weighted_spread(V: Array, weights: np.ndarray) -> np.ndarray:
    """Σ u_τ v_τ v_τᵀ; pairs whose weight rounds to nothing beside the others are left out."""
    xp, total = namespace(V), np.zeros((V.shape[1], V.shape[1]))
    kept = np.flatnonzero(weights > 1e-9 / len(weights))
    for part in blocks(len(kept), ROWS):
        rows = kept[part]
        own = V[part, :] if len(kept) == V.shape[0] else xp.take(V, convert(rows, V), axis=0)
        scaled = own * xp.astype(convert(np.sqrt(weights[rows]), V), V.dtype)[:, None]
        total += to_numpy(scaled.T @ scaled)
    return total


class DMLeig(MahalanobisLearner):
    """Distance metric learning with eigenvalue optimisation.

    Parameters
    ----------
    mu : float, default=0.1
        μ, the smoothing of the minimum, in units of the mean squared distance of similar pairs.
    n_neighbors : int, default=3
        Each object is paired with as many nearest objects of its class (similar) and of other classes
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

    def __init__(
        self, mu: float = 0.1, n_neighbors: int = 3, *, max_iter: int = 300, tol: float = 1e-2
    ) -> None:
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.tol = tol

    def _learn(self, X: Array, codes: Array) -> Learned:
        if not 0 < self.mu < np.inf:
            raise ValueError(f"mu must be a finite number above 0; got {self.mu!r}.")
        k, max_iter = check_count("n_neighbors", self.n_neighbors), check_count("max_iter", self.max_iter)
        xp = namespace(X)
        A = whitening(differences(X, similar_pairs(X, codes, k)))
        V = differences(X, dissimilar_pairs(X, codes, k)) @ xp.astype(convert(A, X), X.dtype)
        found = smoothed_eigenvalue(V, float(self.mu), max_iter, self.tol)
        self.gap_ = found.gap
        values, vectors = eigh(found.S)
        L = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T @ A
        return Learned(convert(L, X), len(found.values) - 1, found.values)
