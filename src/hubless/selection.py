"""Cross-validation of (targets, λ, k) in one pass over the folds.

In each fold: one search for targets, one eigendecomposition per number of targets, one search for neighbours
per λ, and every k from the neighbours of the largest.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from .arrays import Array, convert, namespace, to_numpy
from .inputs import check_counts
from .movers.linear import centre, problem_of_targets
from .products import affine_rows
from .solve import Penalty, RidgePath
from .targets import Labeled, first_targets, restrict, same_class_targets
from .topk import search
from .vote import vote, votes_of

NEIGHBORS = (1, 3, 5, 7, 10, 15, 20, 30, 50)


class Grid(NamedTuple):
    """The settings to compare, each axis rising."""

    n_targets: tuple[int, ...]
    penalties: tuple[Any, ...]  # of Penalty; other methods put their own settings here
    n_neighbors: tuple[int, ...]

    @staticmethod
    def default_penalties() -> tuple[Penalty, ...]:
        """13 multiples of the mean eigenvalue of XKXᵀ, from 1e-4 to 100."""
        return tuple(Penalty(float(value), relative=True) for value in np.logspace(-4, 2, 13))

    def as_dict(self) -> dict[str, tuple[Any, ...]]:
        """The values along the axes of a score array; relative penalties as multiples."""
        alphas = tuple(penalty.value for penalty in self.penalties)
        return {"n_targets": self.n_targets, "alpha": alphas, "n_neighbors": self.n_neighbors}


def folds(codes: np.ndarray, kept: np.ndarray, cv: Any, random_state: Any) -> list[tuple[np.ndarray, ...]]:
    """(train, test) as places in `kept`, rising; stratified and shuffled where `cv` is a number.

    `codes` are the classes of all rows, which a splitter or given folds refer to; `kept` are the rows that
    take part.
    """
    if not isinstance(cv, int | np.integer):
        rows = np.arange(len(codes))  # rows[part] reads numbers and masks alike
        parts = check_cv(cv, codes, classifier=True).split(codes, codes)
        return [tuple(np.flatnonzero(np.isin(kept, rows[part])) for part in pair) for pair in parts]
    codes = codes[kept]
    n = len(codes)
    if not 2 <= cv <= n:
        raise ValueError(f"cv must be from 2 to the number of labeled objects, {n}; got {cv}.")
    # Members of a class, shuffled, are dealt to the folds one after another, and the next class goes on where
    # the last stopped: folds are equally large, and a class of any size is spread as evenly as it can be.
    shuffled = check_random_state(random_state).permutation(n)
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(n, dtype=int)
    fold[dealt] = np.arange(n) % cv
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(cv)]


def feasible_neighbors(
    n_neighbors: Any, smallest: int, default: tuple[int, ...] = NEIGHBORS
) -> tuple[int, ...]:
    """Numbers of neighbours to try where the smallest training part has `smallest` objects."""
    if n_neighbors is None:
        return tuple(k for k in default if k <= smallest)
    ks = check_counts("n_neighbors", n_neighbors)
    if max(ks) > smallest:
        raise ValueError(
            f"n_neighbors may be at most {smallest}, the objects in the smallest training part of "
            f"the cross-validation; got {max(ks)}. Ask for fewer neighbours or more folds."
        )
    return ks


def score_fold(
    labeled: Labeled,
    train: np.ndarray,
    test: np.ndarray,
    grid: Grid,
    weights: str,
    center: bool,
    given_targets: bool,
) -> np.ndarray:
    """Accuracy on `test` of every setting learned on `train`; shape (n_targets, penalties, n_neighbors).

    nan where `train` has no pair to learn from, or `test` is empty.
    `given_targets` restricts the targets of `labeled` to the training part; else they are searched in it.
    """
    xp = namespace(labeled.X)
    fit, ask = convert(train, labeled.X), convert(test, labeled.X)
    X, codes = (xp.take(array, fit, axis=0) for array in (labeled.X, labeled.codes))
    queries, truth = (xp.take(array, ask, axis=0) for array in (labeled.X, labeled.codes))
    object_weights, query_weights = (
        None if labeled.weights is None else xp.take(labeled.weights, rows) for rows in (fit, ask)
    )
    width = min(max(grid.n_targets), labeled.targets.shape[1])
    targets = restrict(labeled.targets, fit, width) if given_targets else same_class_targets(X, codes, width)
    shape = (len(grid.n_targets), len(grid.penalties), len(grid.n_neighbors))
    # Tiny classes: no two objects of a class may be in the training part; objects of weight 0: no query left.
    if not bool(xp.any(targets >= 0)) or len(test) == 0:
        return np.full(shape, np.nan)
    mean = centre(X, object_weights, center)
    scores = []
    for count in grid.n_targets:
        problem = problem_of_targets(X, first_targets(targets, count), object_weights, mean)
        unit = problem.mean_eigenvalue()
        moves = _MovedAlongPath(X, mean, problem.path())
        for penalty in grid.penalties:
            moved = moves.at(penalty.absolute(unit))
            found = search(queries, moved, max(grid.n_neighbors), return_distance=weights == "distance")
            distances, indices = found if weights == "distance" else (None, found)
            winners = vote(*votes_of(indices, distances, codes, object_weights), ks=grid.n_neighbors)
            scores.append([_accuracy(winner, truth, query_weights) for winner in winners])
    return np.reshape(scores, shape)


# μ + W(λ)(z − μ) with W(λ) = left · diag(gains) · right: right (z − μ) is the same for every λ
class _MovedAlongPath:
    def __init__(self, X: Array, mean: Array, path: RidgePath) -> None:
        xp = namespace(X)
        self.path, self.mean = path, xp.astype(mean, X.dtype)
        right = xp.astype(path.right, X.dtype)
        self.none = xp.zeros_like(right[:, 0])
        self.projected = affine_rows(X, right, self.none, self.mean)

    def at(self, alpha: float) -> Array:
        left = self.path.left * self.path.gains(alpha)  # in float64: each factor alone may exceed float32
        left = namespace(left).astype(left, self.mean.dtype)
        return affine_rows(self.projected, left, self.mean, self.none)


def _accuracy(winners: Array, truth: Array, weights: Array | None) -> float:
    right = to_numpy(winners == truth)
    return float(np.average(right, weights=None if weights is None else to_numpy(weights)))


def best_setting(scores: np.ndarray, grid: Grid) -> tuple[tuple[int, Any, int], float]:
    """The setting of the highest mean score; equal ones go to fewer targets, larger λ, fewer neighbours."""
    if np.isnan(scores).all():
        raise ValueError(
            "no training part of the cross-validation has two objects of one class, so there is nothing to "
            "learn from; use more folds, give more objects per class, or use MoveLabeledClassifier."
        )
    mean = np.nanmean(scores, axis=0)
    near = np.argwhere(mean >= mean.max() - 1e-12)  # means of equal counts may differ by rounding
    t, a, k = min(near.tolist(), key=lambda place: (place[0], -place[1], place[2]))
    return (grid.n_targets[t], grid.penalties[a], grid.n_neighbors[k]), float(mean[t, a, k])


def results(scores: np.ndarray, grid: Grid) -> dict[str, np.ndarray]:
    """The score array as columns, one row per setting, named as GridSearchCV names them."""
    flat = scores.reshape(len(scores), -1)
    settings = np.array(list(product(*grid.as_dict().values())), dtype=object)
    table = {f"param_{name}": np.array(settings[:, i].tolist()) for i, name in enumerate(grid.as_dict())}
    table |= {f"split{i}_test_score": row for i, row in enumerate(flat)}
    table |= {"mean_test_score": np.nanmean(flat, axis=0), "std_test_score": np.nanstd(flat, axis=0)}
    table["rank_test_score"] = rankdata(-table["mean_test_score"], method="min").astype(int)
    return table
