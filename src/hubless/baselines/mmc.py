"""MMC: distance metric learning with side information (Xing, Ng, Jordan & Russell, NIPS 2002).

Make the mean distance between objects of two classes as large as a mean squared distance of 1 within classes
allows. Distances within classes are summed over all pairs in closed form; of the pairs between classes a
sample is taken where there are many. The problem is convex, and every step certifies how near its end is.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh, eigvalsh
from sklearn.utils import check_random_state

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.inputs import check_choice, check_count, check_fraction
from ..movers.points import class_means
from .dml_eig import pair_differences, weighted_spread
from .mahalanobis import LearnedMetric, MahalanobisLearner

RIDGE = 1e-5  # share of the mean variance within classes that is added to each
NEAREST = 1e-6  # share of the mean distance below which distances are not told apart


class Separation(NamedTuple):
    """The solution N = BᵀB with a certificate: no N has a mean distance above value + gap."""

    B: np.ndarray  # (d, d), of Frobenius norm 1
    values: list[float]  # the mean distance between classes at the start and after each step
    gap: float


def pairs_between_classes(codes: np.ndarray, n_pairs: int, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of objects of two classes, or `n_pairs` of them, drawn with replacement, if more."""
    n, sizes = len(codes), np.bincount(codes)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(sizes)[codes]  # (n,): where the class of each object ends in this order
    n_others = n - sizes[codes]
    if n_others.sum() > 2 * n_pairs:  # each pair twice
        rng = check_random_state(seed)
        first = rng.choice(n, size=n_pairs, p=n_others / n_others.sum())
        return first, order[(ends[first] + rng.randint(n_others[first])) % n]
    after = n - ends[order]  # (n,): objects of later classes
    steps = np.arange(after.sum()) - np.repeat(np.cumsum(after) - after, after)
    return np.repeat(order, after), order[np.repeat(ends[order], after) + steps]


# S = mean of (x_i − x_j)(x_i − x_j)ᵀ over pairs i ≠ j of one class
#   = 2 Σ_i n_y(i) (x_i − m_y(i))(x_i − m_y(i))ᵀ / Σ_c n_c (n_c − 1)
def similar_spread(X: Array, codes: Array) -> np.ndarray:
    """Return the mean spread of all pairs of objects of one class; shape (d, d)."""
    xp, n_classes = namespace(X, codes), int(namespace(codes).max(codes)) + 1
    means, totals = class_means(X, codes, n_classes)
    centred = xp.astype(xp.astype(X, xp.float64) - xp.take(means, codes, axis=0), X.dtype)
    sizes = to_numpy(totals)
    return 2 * weighted_spread(centred, sizes[to_numpy(codes)]) / np.sum(sizes * (sizes - 1))


# max mean_τ s_τ  with  s_τ² = c b_τ + (1 − c) w_τᵀNw_τ  over  N ⪰ 0, tr N = 1: here w_τ are whitened
# differences of pairs, b_τ squared distances that no N changes, and c their share. With N = BᵀB every s_τ is
# convex in B, so it is above its tangent, which B ← BG / ‖BG‖ makes largest, where G = mean_τ w_τw_τᵀ / s_τ:
# no step lowers the mean. And as s ≤ (s² / t + t) / 2 for every t > 0,
#   max mean s ≤ √((c mean b_τ / s_τ + (1 − c) λ_max(G)) · mean s)
def separate(W: Array, kept: np.ndarray, c: float, diagonal: bool, max_iter: int, tol: float) -> Separation:
    """Take such steps until the mean distance is certified to be within the share `tol` of its maximum."""
    d = W.shape[1]
    B = np.eye(d) / np.sqrt(d)
    s = _distances(W, kept, c, B)
    values, gap = [float(s.mean())], 0.0
    while values[-1] > 0:
        s = np.maximum(s, NEAREST * values[-1])
        G = weighted_spread(W, values[-1] / s) / (values[-1] * len(s))
        if diagonal:
            G = np.diag(np.diag(G))
        most = c * float(np.mean(kept / s)) + (1 - c) * float(eigvalsh(G, subset_by_index=[d - 1, d - 1])[0])
        gap = float(np.sqrt(most * s.mean())) - values[-1]
        if gap <= tol * values[-1] or len(values) > max_iter:
            break
        B = B @ G
        B /= np.linalg.norm(B)
        s = _distances(W, kept, c, B)
        values.append(float(s.mean()))
    return Separation(B, values, gap)


# s_τ = √(c b_τ + (1 − c) ‖Bw_τ‖²)
def _distances(W: Array, kept: np.ndarray, c: float, B: np.ndarray) -> np.ndarray:
    xp = namespace(W)
    moved = W @ xp.astype(convert(B, W), W.dtype).T
    return np.sqrt(c * kept + (1 - c) * to_numpy(xp.vecdot(moved, moved, axis=-1)).astype(np.float64))


class MMC(MahalanobisLearner):
    """Mahalanobis metric for clustering: the largest distances between classes for those within.

    The problem as Xing et al. pose it is that of `keep=0`. Its solution often has few directions, fewer than
    k-NN needs to tell many classes apart.

    Parameters
    ----------
    keep : float from 0 to 1, default=0.0
        c, the share of the Euclidean metric in the learned one: M = c I / tr S + (1 − c) M', with S the mean
        spread of pairs within classes. M' is learned for this c.
    diagonal : bool, default=False
        Learn a weight of each column instead of a full matrix M'.
    n_pairs : int, default=20_000
        Sampled pairs of objects of two classes; all pairs where there are no more than that.
    max_iter : int, default=100
        Steps.
    tol : float, default=1e-2
        Stop when the objective is certified to be within this share of its maximum.
    random_state : int, RandomState or None, default=None
        Draws the pairs.

    Attributes
    ----------
    components_ : array of shape (d, d)
        L, upper triangular, in units of the distances within classes: their mean square is 1.
    n_iter_ : int
    history_ : list of float
        The mean distance of the pairs of two classes, at the start and after every step; it rises.
    gap_ : float
        How far the mean distance may be below its maximum, certified.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    References
    ----------
    E. P. Xing, A. Y. Ng, M. I. Jordan and S. Russell, Distance metric learning, with application to
    clustering with side-information, NIPS 15, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.baselines import MMC
    >>> X, y = load_wine(return_X_y=True)
    >>> plain = cross_val_score(KNeighborsClassifier(3), X, y).mean()
    >>> bool(cross_val_score(make_pipeline(MMC(), KNeighborsClassifier(3)), X, y).mean() > plain + 0.2)
    True
    """

    _learned: ClassVar = {**MahalanobisLearner._learned, "gap_": "number"}
    _checks: ClassVar = {
        **MahalanobisLearner._checks,
        "keep": check_fraction,
        "diagonal": lambda name, value: check_choice(name, value, (False, True)),
        "n_pairs": check_count,
        "random_state": lambda _, value: check_random_state(value),
    }

    def __init__(
        self,
        keep: float = 0.0,
        diagonal: bool = False,
        n_pairs: int = 20_000,
        *,
        max_iter: int = 100,
        tol: float = 1e-2,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.keep = keep
        self.diagonal = diagonal
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _learn(self, X: Array, codes: Array) -> LearnedMetric:
        xp, (_, d), c = namespace(X), X.shape, float(self.keep)
        S = similar_spread(X, codes)
        if self.diagonal:
            S = np.diag(np.diag(S))
        # Without a spread that is certainly not rounding, a direction would be stretched without limit.
        rounding = float(xp.finfo(X.dtype).eps * xp.mean(xp.vecdot(X, X, axis=-1))) / d
        S += (RIDGE * np.trace(S) / d + rounding) * np.eye(d)
        widths, axes = eigh(S)
        A = (axes / np.sqrt(widths)) @ axes.T  # S^(−½): after it, M' has the trace 1
        rows, columns = pairs_between_classes(to_numpy(codes), self.n_pairs, self.random_state)
        V = pair_differences(X, convert(rows, X), convert(columns, X))
        kept = to_numpy(xp.vecdot(V, V, axis=-1)).astype(np.float64) / np.trace(S)
        W = V @ xp.astype(convert(A, X), X.dtype)
        solution = separate(W, kept, c, bool(self.diagonal), self.max_iter, self.tol)
        self.gap_ = solution.gap
        both = np.concatenate([np.sqrt(1 - c) * solution.B @ A, np.sqrt(c / np.trace(S)) * np.eye(d)])
        L = np.linalg.qr(both, mode="r")  # LᵀL = M
        return LearnedMetric(convert(L, X), max(1, len(solution.values) - 1), solution.values)
