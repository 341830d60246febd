"""LMNN: large margin nearest neighbours (Weinberger & Saul, JMLR 2009).

Targets are pulled toward their object, and objects of other classes that come within a margin of 1 beyond a
target (impostors) are pushed away. The sum over impostors has n² terms of which few matter, so each block of
rows keeps a list of the near ones (an active set), which is renewed when the metric has changed.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from ..arrays import Array, convert, count, is_on_cpu, namespace, to_numpy, true_positions
from ..arrays.inputs import check_count, is_number
from ..arrays.library import blocks
from ..arrays.products import map_blocks, sparse_rows
from ..targets import labeled_objects
from .mahalanobis import LearnedMetric, MahalanobisLearner

ROWS = 256  # objects whose distances to all others a thread of the CPU holds at once: they fit its cache
CELLS = 1 << 26  # distances held at once by a device, where few large steps are fast
SPARSE = 1 / 32  # a block of rows keeps a list of impostors if they are at most this share of its pairs
ROUND = 10  # L-BFGS steps between two searches of all pairs
NUMBERS = 1 << 22  # of differences held at once by a thread
SAMPLE = 512  # objects that choose the scale of the start

Pairs = tuple[Array, Array]  # rows, counted from the start of a block, and columns
Active = dict[int, Pairs | None]  # by the first row of each block; None means all pairs


class Problem(NamedTuple):
    """Labeled objects with their targets, and the weight of pushing."""

    X: Array  # (n, d), centred
    codes: Array  # (n,)
    targets: Array  # (n, n_targets), -1 for none
    push: float  # μ

    def map(self, function: Callable[[slice], Any]) -> list[Any]:
        """Return the results of a function for all blocks of rows."""
        n = self.X.shape[0]
        rows = ROWS if is_on_cpu(self.X) else max(ROWS, CELLS // n)
        return map_blocks(namespace(self.X), function, n, rows)


class _ImpostorSums(NamedTuple):
    """Sums over the impostors of a block of rows, each pair counted once per target that it violates."""

    hinge: float
    violations: Array  # (rows, n_targets): impostors of each target
    columns: Array  # (n,): how often each object is an impostor
    partners: Array  # (rows, d): sum of the impostors of each row


def squared_distances_to_targets(Z: Array, targets: Array) -> Array:
    """Return ‖z_i − z_j‖² of each target j of i, in float64, −inf where there is none; (n, n_targets)."""
    xp, columns = namespace(Z, targets), []
    for t in range(targets.shape[1]):
        difference = Z - xp.take(Z, xp.clip(targets[:, t], min=0), axis=0)
        distances = xp.sum(xp.astype(difference * difference, xp.float64), axis=1)
        columns.append(xp.where(targets[:, t] >= 0, distances, -xp.inf))
    return xp.stack(columns, axis=1)


def _distances(xp: Any, problem: Problem, Z: Array, norms: Array, rows: slice) -> Array:
    """Return squared distances from a block of rows to all objects, infinite within a class; (rows, n)."""
    squared = norms[rows][:, None] + norms[None, :] - 2 * (Z[rows, :] @ Z.T)
    return xp.where(problem.codes[rows][:, None] == problem.codes[None, :], xp.inf, squared)


def _dense_terms(problem: Problem, Z: Array, norms: Array, reach: Array, rows: slice) -> _ImpostorSums:
    xp = namespace(Z)
    squared = _distances(xp, problem, Z, norms, rows)
    times, hinge, violations = xp.zeros_like(squared), 0.0, []
    for t in range(reach.shape[1]):
        slack = xp.clip(xp.astype(reach[rows, t], Z.dtype)[:, None] - squared, min=0)
        active = xp.astype(slack > 0, Z.dtype)
        times += active
        violations.append(xp.sum(active, axis=1))
        hinge += float(xp.sum(xp.astype(xp.sum(slack, axis=1), xp.float64)))
    counts = xp.astype(xp.stack(violations, axis=1), xp.float64)
    return _ImpostorSums(hinge, counts, xp.astype(xp.sum(times, axis=0), xp.float64), times @ problem.X)


def _sparse_terms(problem: Problem, Z: Array, reach: Array, rows: slice, pairs: Pairs) -> _ImpostorSums:
    xp, (row, column) = namespace(Z), pairs
    block, height = Z[rows, :], rows.stop - rows.start
    squared = xp.concat([_pair_distances(xp, block, Z, row[part], column[part]) for part in _parts(pairs, Z)])
    times, hinge, violations = xp.zeros_like(squared), 0.0, []
    for t in range(reach.shape[1]):
        slack = xp.clip(xp.take(reach[rows, t], row) - squared, min=0)
        active = xp.astype(slack > 0, xp.float64)
        times += active
        violations.append(count(row, height, active))
        hinge += float(xp.sum(slack))
    partners = sparse_rows(row, column, xp.astype(times, Z.dtype), height, problem.X)
    return _ImpostorSums(hinge, xp.stack(violations, axis=1), count(column, Z.shape[0], times), partners)


def _parts(pairs: Pairs, Z: Array) -> Iterator[slice]:
    """Return slices of the pairs, at least one, whose differences are held at once."""
    n_pairs = pairs[0].shape[0]
    return blocks(n_pairs, max(1, NUMBERS // Z.shape[1])) if n_pairs else iter([slice(0, 0)])


def _pair_distances(xp: Any, block: Array, Z: Array, row: Array, column: Array) -> Array:
    difference = xp.take(block, row, axis=0) - xp.take(Z, column, axis=0)
    return xp.astype(xp.vecdot(difference, difference, axis=-1), xp.float64)


def _moved(problem: Problem, L: np.ndarray) -> tuple[Array, Array, Array]:
    """Return LX, the squared norms of its rows, and 1 + ‖L(x_i − x_j)‖² for each target."""
    xp = namespace(problem.X)
    Z = problem.X @ xp.astype(convert(L, problem.X), problem.X.dtype).T
    return Z, xp.vecdot(Z, Z, axis=-1), 1 + squared_distances_to_targets(Z, problem.targets)


# ε(L) = (1 − μ) Σ_ij ‖L(x_i − x_j)‖² + μ Σ_ijl [1 + ‖L(x_i − x_j)‖² − ‖L(x_i − x_l)‖²]₊
# with j a target of i and l of another class. ∂ε/∂L = 2 L Σ w_ab (x_a − x_b)(x_a − x_b)ᵀ, where a pair
# (i, j) has w = 1 − μ + μ · (its impostors) and a pair (i, l) w = −μ · (targets of i it is an impostor of).
def lmnn_loss(problem: Problem, L: np.ndarray, active: Active) -> tuple[float, np.ndarray]:
    """Return ε(L) over the active pairs of each block of rows (None: all pairs), and its gradient."""
    xp, (X, _, targets, push) = namespace(problem.X), problem
    Z, norms, reach = _moved(problem, L)

    def terms(rows: slice) -> _ImpostorSums:
        pairs = active.get(rows.start)
        if pairs is None:
            return _dense_terms(problem, Z, norms, reach, rows)
        return _sparse_terms(problem, Z, reach, rows, pairs)

    hinges, violations, columns, partners = zip(*problem.map(terms), strict=True)
    pull = xp.where(targets >= 0, 1 - push + push * xp.concat(violations), 0.0)  # weights of the pairs (i, j)
    pushed = xp.concat([xp.sum(part, axis=1) for part in violations])
    # Σ w_ab (x_a − x_b)(x_a − x_b)ᵀ = Xᵀ diag(s) X − XᵀWX − (XᵀWX)ᵀ, s the sums of rows and columns of W
    s = xp.sum(pull, axis=1) - push * (pushed + sum(columns))
    WX = -push * xp.concat(partners)
    for t in range(targets.shape[1]):
        s += count(targets[:, t], X.shape[0], pull[:, t])
        WX += xp.astype(pull[:, t], X.dtype)[:, None] * xp.take(X, xp.clip(targets[:, t], min=0), axis=0)
    half = X.T @ (0.5 * xp.astype(s, X.dtype)[:, None] * X - WX)
    spread = to_numpy(half + half.T).astype(np.float64)
    reached = float(xp.sum(xp.where(targets >= 0, reach - 1, 0.0)))
    return (1 - push) * reached + push * sum(hinges), 2 * L @ spread


def near_pairs(problem: Problem, L: np.ndarray) -> Active:
    """Find pairs of different classes that are impostors under L, or would be with twice the margin."""
    xp = namespace(problem.X)
    Z, norms, reach = _moved(problem, L)
    farthest = xp.astype(xp.max(reach, axis=1) + 1, Z.dtype)  # −inf without a target: no pair is near

    def near(rows: slice) -> tuple[int, Pairs | None]:
        mask = _distances(xp, problem, Z, norms, rows) < farthest[rows][:, None]
        few = int(xp.count_nonzero(mask)) <= SPARSE * mask.shape[0] * mask.shape[1]
        return rows.start, true_positions(mask) if few else None

    return dict(problem.map(near))


def union(a: Active, b: Active, n: int) -> Active:
    """Return the pairs of both, for n objects."""
    merged: Active = {}
    for start, pairs in a.items():
        other = b[start]
        if pairs is None or other is None:
            merged[start] = None
            continue
        xp = namespace(pairs[0])
        code = xp.unique_values(xp.concat([pairs[0] * n + pairs[1], other[0] * n + other[1]]))
        merged[start] = (code // n, code % n)
    return merged


def starting_map(problem: Problem) -> np.ndarray:
    """Return √g · I with the g that minimises ε over a sample of the rows; ε is convex in g."""
    xp, (X, _, targets, push) = namespace(problem.X), problem
    step = max(1, X.shape[0] // SAMPLE)
    pulled = to_numpy(squared_distances_to_targets(X, targets))[::step]
    norms = xp.vecdot(X, X, axis=-1)
    squared = to_numpy(_distances(xp, problem, X, norms, slice(None, None, step)))
    near = np.min(squared, axis=1)[np.isfinite(pulled[:, 0])]
    unit = np.median(near) if len(near) else 0.0  # g is of the order of 1 / unit
    if not unit > 0:
        unit = 1.0

    def loss(log_g: float) -> float:
        g, total = np.exp(log_g) / unit, 0.0
        for distances in pulled.T:  # to the first targets, to the second targets, …
            has_target = np.isfinite(distances)
            hinge = np.clip(1 + g * (distances[has_target, None] - squared[has_target]), 0, None)
            total += (1 - push) * g * distances[has_target].sum() + push * hinge.sum()
        return total

    best = minimize_scalar(loss, bounds=(-7, 7), method="bounded", options={"maxiter": 20})
    return np.sqrt(np.exp(best.x) / unit) * np.eye(X.shape[1])


def lmnn(problem: Problem, max_iter: int, tol: float) -> LearnedMetric:
    """Minimise ε by rounds of L-BFGS over the active pairs, each kept only if ε over all pairs has fallen."""
    n, d = problem.X.shape
    L = starting_map(problem)
    active = near_pairs(problem, L)
    history, n_iter = [lmnn_loss(problem, L, active)[0]], 0

    def over_active(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = lmnn_loss(problem, flat.reshape(d, d), active)
        return value, gradient.ravel()

    while n_iter < max_iter:
        steps = {"maxiter": min(ROUND, max_iter - n_iter), "maxcor": ROUND}
        end = minimize(over_active, L.ravel(), jac=True, method="L-BFGS-B", options=steps)
        n_iter += max(1, end.nit)
        new = end.x.reshape(d, d)
        near = near_pairs(problem, new)
        value = lmnn_loss(problem, new, near)[0]  # over all pairs: those left out add nothing
        if value < history[-1]:
            L, active = new, near
            history.append(value)
            if history[-2] - value <= tol * history[-2]:
                break
        elif end.nit == 0 or value == history[-1]:
            break
        else:  # the round met impostors that were not in its list: repeat it with them
            active = union(active, near, n)
    return LearnedMetric(convert(L, problem.X), n_iter, history)


def ensure_precision(X: Array, targets: Array) -> Array:
    """Return X in float64 if float32 would blur the distances of neighbours, as in distant groups."""
    xp = namespace(X)
    squared = squared_distances_to_targets(X, targets)
    near = float(xp.mean(squared[xp.isfinite(squared)]))
    largest = float(xp.max(xp.vecdot(X, X, axis=-1)))
    return xp.astype(X, xp.float64) if largest * float(xp.finfo(X.dtype).eps) > 1e-3 * near else X


def check_push(name: str, value: Any) -> None:
    """Refuse all but numbers between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}.")


class LMNN(MahalanobisLearner):
    """Large margin nearest neighbours: pull targets, push impostors out of the margin.

    Parameters
    ----------
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class, in Euclidean distance.
    push : float in (0, 1), default=0.5
        μ, the weight of pushing impostors; 1 − μ is that of pulling targets.
    max_iter : int, default=200
        Steps of L-BFGS, in rounds of 10 with a full search for impostors after each.
    tol : float, default=1e-2
        Stop when a round lowers the objective by less than this share.

    Attributes
    ----------
    components_ : array of shape (d, d)
        L.
    n_iter_ : int
    history_ : list of float
        The objective over all pairs at the start and after every round that lowered it.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    References
    ----------
    K. Q. Weinberger and L. K. Saul, Distance metric learning for large margin nearest neighbor
    classification, JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.baselines import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> plain = cross_val_score(KNeighborsClassifier(3), X, y).mean()
    >>> bool(cross_val_score(make_pipeline(LMNN(), KNeighborsClassifier(3)), X, y).mean() > plain + 0.2)
    True
    """

    _checks: ClassVar = {**MahalanobisLearner._checks, "n_targets": check_count, "push": check_push}

    def __init__(
        self, n_targets: int = 1, push: float = 0.5, *, max_iter: int = 200, tol: float = 1e-2
    ) -> None:
        self.n_targets = n_targets
        self.push = push
        self.max_iter = max_iter
        self.tol = tol

    def _learn(self, X: Array, codes: Array) -> LearnedMetric:
        targets = labeled_objects(X, codes, n_targets=self.n_targets).targets
        problem = Problem(ensure_precision(X, targets), codes, targets, self.push)
        return lmnn(problem, self.max_iter, self.tol)
