"""Cross-validation of (targets, λ, k) in one pass over the folds.

In each fold: one search for targets, one eigendecomposition per number of targets, one search for neighbours
per λ, and every k from the neighbours of the largest.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from ..arrays import Array, convert, namespace
from ..arrays.products import affine_rows
from ..movers.points import centre
from ..solve import RidgePath, problem_of_targets, relative_penalties
from ..support.progress import step
from ..targets import Labeled, first_targets
from .folds import TIE, accuracy, predict_by_ks, training_part

# λ that are compared, in multiples of the mean eigenvalue of XKXᵀ
GRID = relative_penalties(*np.logspace(-4, 2, 13))  # covers the best λ of every data set that was measured
MIDDLE = GRID[4:12]  # 0.01 to 30: has the best λ of every index that was measured
PAIR_ALPHAS = (0.25, 1.0, 4.0, 16.0, 64.0)  # toward the identity; the best grows as pairs get fewer


class Grid(NamedTuple):
    """The settings to compare, each axis in ascending order."""

    n_targets: tuple[int, ...]
    penalties: tuple[Any, ...]  # of Penalty; other methods put their settings here
    n_neighbors: tuple[int, ...]

    def as_dict(self) -> dict[str, tuple[Any, ...]]:
        """Return the values along the axes of a score array; relative penalties as multiples."""
        alphas = tuple(penalty.value for penalty in self.penalties)
        return {"n_targets": self.n_targets, "alpha": alphas, "n_neighbors": self.n_neighbors}


def score_folds(
    labeled: Labeled, parts: Sequence[Sequence[np.ndarray]], grid: Grid, *options: Any
) -> np.ndarray:
    """Measure the accuracy of every setting in every fold; the options are those of `score_fold`."""
    n_settings = len(grid.n_targets) * len(grid.penalties) * len(grid.n_neighbors)
    with step(f"choosing among {n_settings} settings", len(parts), "folds") as choosing:
        return np.stack(
            [choosing.counted(score_fold(labeled, train, test, grid, *options)) for train, test in parts]
        )


def score_fold(
    labeled: Labeled,
    train: np.ndarray,
    test: np.ndarray,
    grid: Grid,
    weights: str,
    center: bool,
    given_targets: bool,
) -> np.ndarray:
    """Measure the accuracy on `test` of every setting learned on `train`.

    The result has the shape (n_targets, penalties, n_neighbors); it is nan where `train` has no pair to learn
    from, or `test` is empty. `given_targets` is that of `training_part`.
    """
    width = min(max(grid.n_targets), labeled.targets.shape[1])
    X, codes, object_weights, targets, _ = training_part(labeled, train, width, given_targets)
    queries, truth, query_weights, *_ = labeled.take(convert(test, labeled.X))
    shape = (len(grid.n_targets), len(grid.penalties), len(grid.n_neighbors))
    # No two objects of a tiny class may be in the training part; objects of weight 0 may leave no query.
    if not bool(namespace(targets).any(targets >= 0)) or len(test) == 0:
        return np.full(shape, np.nan)
    mean = centre(X, object_weights, center)
    scores = []
    for count in grid.n_targets:
        problem = problem_of_targets(X, first_targets(targets, count), object_weights, mean)
        unit = problem.mean_eigenvalue()
        moves = _MovedAlongPath(X, mean, problem.path())
        for penalty in grid.penalties:
            moved = moves.at(penalty.absolute(unit))
            predicted = predict_by_ks(
                queries, moved, codes, object_weights, grid.n_neighbors, weights == "distance"
            )
            scores.append([accuracy(classes, truth, query_weights) for classes in predicted])
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


def best_setting(scores: np.ndarray, grid: Grid) -> tuple[tuple[int, Any, int], float]:
    """Return the setting of the highest mean score; ties go to fewer targets, larger λ, fewer neighbours."""
    if np.isnan(scores).all():
        raise ValueError(
            "no training part of the cross-validation has two objects of one class, or an object and its "
            "precomputed target, so there is nothing to learn from: use more folds, or give more objects per "
            "class."
        )
    mean = np.nanmean(scores, axis=0)
    near = np.argwhere(mean >= mean.max() - TIE)
    t, a, k = min(near.tolist(), key=lambda place: (place[0], -place[1], place[2]))
    return (grid.n_targets[t], grid.penalties[a], grid.n_neighbors[k]), float(mean[t, a, k])


def check_grid(grid: dict[str, tuple[Any, ...]], scores: Array) -> None:
    """Refuse the axes and scores of a saved model that do not belong together."""
    if [*grid] != ["n_targets", "alpha", "n_neighbors"]:
        raise ValueError("n_targets_, grid_ and scores_ belong together, and one is missing.")
    lengths, got = tuple(len(values) for values in grid.values()), tuple(scores.shape)
    if got[1:] != lengths:
        raise ValueError(f"scores_ has the shape {got}; expected (any, *{lengths}).")


def cv_results(scores: np.ndarray, grid: Grid) -> dict[str, np.ndarray]:
    """Return the score array as columns, one row per setting, named as GridSearchCV names them."""
    flat = scores.reshape(len(scores), -1)
    settings = np.array(list(product(*grid.as_dict().values())), dtype=object)
    table = {f"param_{name}": np.array(settings[:, i].tolist()) for i, name in enumerate(grid.as_dict())}
    table |= {f"split{i}_test_score": row for i, row in enumerate(flat)}
    table |= {"mean_test_score": np.nanmean(flat, axis=0), "std_test_score": np.nanstd(flat, axis=0)}
    table["rank_test_score"] = rankdata(-table["mean_test_score"], method="min").astype(int)
    return table
