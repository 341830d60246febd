"""The paper's protocol for one method on one split: choose on the training part, measure on the test part.

Every method is a scikit-learn transformer: `fit_transform(X, y)` gives the labeled objects as a k-NN stores
them, `transform` gives the queries that it is asked. What a method leaves open, and k, are chosen by
cross-validation on the training part, in 5 folds, or 3 where there are more than 5,000 objects. Accuracy is
that of the k-NN vote on the test part, N_10 skewness counts the training objects over the test queries, and
the training time is that of one `fit_transform` with everything chosen.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer

from ..arrays import Array, convert, namespace, to_numpy
from ..baselines import ITML, LMNN, NCA, DMLeig
from ..hubness import k_occurrence, skewness
from ..movers import MoveLabeled, Scale
from ..selection import Grid, best_setting, feasible_neighbors, folds
from ..targets import same_class_targets
from ..topk import search
from ..transformer import MoveQuery
from ..vote import vote, votes_of

Setting = dict[str, Any]  # parameters of a transformer

LARGE = 5000  # objects, of which 3 folds tell as much as 5 of fewer
PENALTIES = tuple({"alpha": penalty} for penalty in Grid.default_penalties())


class Method(NamedTuple):
    """A row of the tables; `results` has the names that they show."""

    build: Callable[..., Any]  # parameters → transformer
    settings: tuple[Setting, ...] = ({},)  # what cross-validation compares; of equal ones, the last wins
    takes_targets: bool = False  # whether `fit` takes the targets, which all settings share
    is_random: bool = False


METHODS = {
    "original-metric": Method(FunctionTransformer),
    "lmnn": Method(LMNN),
    "itml": Method(ITML, tuple({"gamma": 10.0**e} for e in (0, -1, -2, -3)), is_random=True),
    "dml-eig": Method(DMLeig, tuple({"mu": mu} for mu in (0.1, 0.3, 1.0, 3.0))),
    "move-labeled": Method(MoveLabeled, PENALTIES, takes_targets=True),
    "move-query": Method(MoveQuery, PENALTIES, takes_targets=True),
    "nca": Method(NCA, tuple({"scale": scale} for scale in (0.3, 1.0, 3.0, 10.0))),
    "scale": Method(Scale, tuple({"g": g / 20} for g in range(1, 21))),
}


class Split(NamedTuple):
    """Labeled objects and queries, about the mean of the labeled objects."""

    X: Array  # (n, d)
    y: Array  # (n,), class numbers
    queries: Array
    truth: Array


def split_at_random(X: np.ndarray, y: np.ndarray, seed: int, standardize: bool = False) -> Split:
    """70 : 30, about the mean of the training part, and in its z-scores where asked."""
    X, queries, y, truth = train_test_split(X, y, test_size=0.3, random_state=seed)
    mean = X.mean(axis=0)
    scale = X.std(axis=0) if standardize else np.ones_like(mean)
    return Split((X - mean) / scale, y, (queries - mean) / scale, truth)


class Choice(NamedTuple):
    """What cross-validation chose."""

    n_neighbors: int
    setting: Setting
    accuracy: float  # mean over the folds


class Result(NamedTuple):
    """One cell of the tables."""

    accuracy: float
    skewness: float  # of N_10, or of N_n where there are only n < 10 training objects
    choice_seconds: float  # of the cross-validation
    fit_seconds: float  # with everything chosen
    cv_accuracy: float
    n_neighbors: int
    setting: dict[str, float]  # a penalty in absolute terms


def run(method: str, split: Split, seed: int = 0) -> Result:
    """Choose, fit and measure one of METHODS."""
    start = perf_counter()
    k, setting, cv_accuracy = choose(method, split.X, split.y, seed)
    chosen = perf_counter()
    stored, model = fitted(method, setting, split.X, split.y, seed)
    seconds = perf_counter() - chosen
    wide = min(10, stored.shape[0])
    found = search(model.transform(split.queries), stored, max(k, wide), return_distance=False)
    accuracy = _accuracies(found, split.y, split.truth, (k,))[0]
    skew = skewness(k_occurrence(found[:, :wide], stored.shape[0]))
    used = {name: float(vars(model).get(f"{name}_", value)) for name, value in setting.items()}
    return Result(accuracy, skew, chosen - start, seconds, cv_accuracy, k, used)


def fitted(
    method: str, setting: Setting, X: Array, y: Array, seed: int, targets: Array | None = None
) -> tuple[Array, Any]:
    """The stored objects and the fitted transformer, which queries pass."""
    recipe = METHODS[method]
    model = recipe.build(**setting, **({"random_state": seed} if recipe.is_random else {}))
    shared = {} if targets is None else {"targets": targets}
    return model.fit_transform(X, y, **shared), model


def choose(method: str, X: Array, y: Array, seed: int) -> Choice:
    """The setting and k of the highest accuracy in cross-validation; of equal ones, the last and smallest."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    codes = to_numpy(y)
    parts = folds(codes, np.arange(len(codes)), 5 if len(codes) <= LARGE else 3, seed)
    ks = feasible_neighbors(None, min(len(train) for train, _ in parts))
    settings = METHODS[method].settings
    scores = np.empty((len(parts), 1, len(settings), len(ks)))
    for i, (train, test) in enumerate(parts):
        own, own_y = _rows(X, train), _rows(y, train)
        queries, truth = _rows(X, test), _rows(y, test)
        targets = same_class_targets(own, own_y) if METHODS[method].takes_targets else None
        for j, setting in enumerate(settings):
            stored, model = fitted(method, setting, own, own_y, seed, targets)
            found = search(model.transform(queries), stored, max(ks), return_distance=False)
            scores[i, 0, j] = _accuracies(found, own_y, truth, ks)
    (_, setting, k), accuracy = best_setting(scores, Grid((1,), settings, ks))
    return Choice(k, setting, accuracy)


def _rows(array: Array, rows: np.ndarray) -> Array:
    return namespace(array).take(array, convert(rows, array), axis=0)


def _accuracies(found: Array, y: Array, truth: Array, ks: tuple[int, ...]) -> list[float]:
    """Share of right votes among the first k neighbours, for each k."""
    labels, _ = votes_of(found, None, y, None)
    return [float(np.mean(to_numpy(winner == truth))) for winner in vote(labels, ks=ks)]
