"""ITML: information-theoretic metric learning (Davis, Kulis, Jain, Sra & Dhillon, ICML 2007).

The metric nearest to the Euclidean one, in LogDet divergence, that keeps sampled pairs of one class closer
than one bound and pairs of two classes farther than another, with slack. The metric is projected onto one
constraint after another, in several sweeps; each projection is an update of rank one.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dsymv, dsyr
from sklearn.utils import check_random_state

from ..arrays import Array, convert, to_numpy
from ..arrays.inputs import check_count, check_positive, or_none
from .mahalanobis import LearnedMetric, MahalanobisLearner

MAX_CONSTRAINTS = 20_000
SAMPLE = 10_000  # pairs that the percentiles of distances are taken from


class Constraints(NamedTuple):
    """Pairs with the bound of each: δ = 1, no farther than the bound; δ = −1, no closer."""

    differences: np.ndarray  # (m, d): x_i − x_j, no row all zero
    signs: np.ndarray  # (m,): δ
    bounds: np.ndarray  # (m,): of the squared distance


class Projection(NamedTuple):
    """The metric with the dual variables and slack bounds that certify it."""

    M: np.ndarray  # (d, d)
    duals: np.ndarray  # (m,), λ ≥ 0
    slacks: np.ndarray  # (m,), ξ
    changes: list[float]  # relative change of λ in each sweep


def sample_constraints(X: np.ndarray, codes: np.ndarray, n_constraints: int, seed: Any) -> Constraints:
    """Draw pairs of objects, with the 5th or the 95th percentile of squared distances as their bound.

    Half of the pairs are of one class, the others of two; pairs of identical objects are left out.
    """
    rng, n = check_random_state(seed), len(X)
    probe = _differences(X, rng.randint(n, size=SAMPLE), rng.randint(n, size=SAMPLE))
    lower, upper = np.percentile(np.einsum("ij,ij->i", probe, probe), [5, 95])
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    half = n_constraints // 2
    first = rng.choice(np.flatnonzero(sizes[codes] > 1), size=half)
    partner = starts[codes[first]] + rng.randint(sizes[codes[first]])
    similar = _differences(X, first, order[partner])
    a, b = rng.randint(n, size=(2, 4 * half))
    apart = np.flatnonzero(codes[a] != codes[b])[: n_constraints - half]
    a, b = a[apart], b[apart]
    if len(a) < n_constraints - half:  # one class has nearly all objects: take partners from the others
        more = rng.randint(n, size=n_constraints - half - len(a))
        skipped = starts[codes[more]] + sizes[codes[more]] + rng.randint(n - sizes[codes[more]])
        a, b = np.concatenate([a, more]), np.concatenate([b, order[skipped % n]])
    differences = np.concatenate([similar, _differences(X, a, b)])
    signs = np.repeat([1.0, -1.0], [len(similar), len(differences) - len(similar)])
    mixed = rng.permutation(len(signs))
    return Constraints(differences[mixed], signs[mixed], np.where(signs > 0, lower, upper)[mixed])


def _differences(X: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return rows x_a − x_b in float64, without those of identical objects."""
    rows = X[a].astype(np.float64) - X[b]
    return rows[np.any(rows != 0, axis=1)]


# min D_ld(M, I) + γ D_ld(diag ξ, diag ξ₀)  subject to  δ vᵀMv ≤ δ ξ for each pair's v = x_i − x_j, with
# D_ld(A, B) = tr AB⁻¹ − log det AB⁻¹ − d and ξ₀ the bounds. The projection onto one pair, with p = vᵀMv:
#   α = min(λ, δ (1/p − 1/ξ) γ / (γ + 1)),  β = δα / (1 − δαp),
#   ξ ← γξ / (γ + δαξ),  λ ← λ − α,  M ← M + β Mv vᵀM
# This α makes vᵀMv = ξ after the step, as in the authors' code; the article's Algorithm 1 has another, which
# does so for γ = 1 alone.
def itml(constraints: Constraints, gamma: float, max_iter: int, tol: float) -> Projection:
    """Project onto the pairs in turn (Bregman), until a sweep changes λ by less than the share `tol`."""
    vectors, signs, bounds = constraints
    M = np.asfortranarray(np.eye(vectors.shape[1]))  # its lower triangle is kept up to date
    duals, slacks, changes = [0.0] * len(signs), bounds.tolist(), []
    share = gamma / (gamma + 1)
    for _ in range(max_iter):
        before = np.array(duals)
        for i, (v, sign) in enumerate(zip(vectors, signs.tolist(), strict=True)):
            Mv = dsymv(1.0, M, v, lower=1)
            p = float(v @ Mv)
            xi = slacks[i]
            alpha = min(duals[i], sign * (1 / p - 1 / xi) * share)
            if alpha != 0.0:
                duals[i] -= alpha
                slacks[i] = gamma * xi / (gamma + sign * alpha * xi)
                M = dsyr(sign * alpha / (1 - sign * alpha * p), Mv, a=M, lower=1, overwrite_a=1)
        after = np.array(duals)
        changes.append(float(np.abs(after - before).sum() / max(after.sum() + before.sum(), 1e-300)))
        if changes[-1] < tol:
            break
    M = np.tril(M) + np.tril(M, -1).T
    return Projection(M, np.array(duals), np.array(slacks), changes)


class ITML(MahalanobisLearner):
    """Information-theoretic metric learning: LogDet-nearest metric that meets constraints on pairs.

    Parameters
    ----------
    gamma : float, default=1.0
        γ: how much the constraints weigh against staying near the Euclidean metric.
    n_constraints : int or None, default=None
        Sampled pairs, half of one class and half of two; None takes 40 c (c − 1) for c classes, as the
        authors' code does, but at most 20,000.
    max_iter : int, default=50
        Sweeps over the pairs.
    tol : float, default=1e-3
        Stop when a sweep changes the dual variables by less than this share.
    random_state : int, RandomState or None, default=None
        Draws the pairs.

    Attributes
    ----------
    components_ : array of shape (d, d)
        L, the upper Cholesky factor of M.
    n_iter_ : int
        Sweeps.
    history_ : list of float
        Relative change of the dual variables in each sweep.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra and I. S. Dhillon, Information-theoretic metric learning,
    ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.baselines import ITML
    >>> X, y = load_wine(return_X_y=True)
    >>> plain = cross_val_score(KNeighborsClassifier(3), X, y).mean()
    >>> model = make_pipeline(ITML(random_state=0), KNeighborsClassifier(3))
    >>> bool(cross_val_score(model, X, y).mean() > plain + 0.1)
    True
    """

    _checks: ClassVar = {
        **MahalanobisLearner._checks,
        "gamma": check_positive,
        "n_constraints": or_none(check_count),
        "random_state": lambda _, value: check_random_state(value),
    }

    def __init__(
        self,
        gamma: float = 1.0,
        n_constraints: int | None = None,
        *,
        max_iter: int = 50,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.gamma = gamma
        self.n_constraints = n_constraints
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _learn(self, X: Array, codes: Array) -> LearnedMetric:
        host, classes = to_numpy(X), to_numpy(codes)  # one pair after another is too little for a device
        n_classes = int(classes.max()) + 1
        n_constraints = min(40 * n_classes * (n_classes - 1), MAX_CONSTRAINTS)
        if self.n_constraints is not None:
            n_constraints = self.n_constraints
        constraints = sample_constraints(host, classes, n_constraints, self.random_state)
        solution = itml(constraints, float(self.gamma), self.max_iter, self.tol)
        return LearnedMetric(convert(cholesky(solution.M), X), len(solution.changes), solution.changes)
