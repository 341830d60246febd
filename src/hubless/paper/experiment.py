"""The paper's protocol for one method on one split: choose on the training part, measure on the test part.

Every method of the paper is a scikit-learn transformer: `fit_transform(X, y)` gives the labeled objects as a
k-NN stores them, `transform` gives the queries as it searches for them. Parameters and k are chosen by
cross-validation on the training part, in 5 folds, or 3 where there are more than 5,000 objects. N_10 skewness
counts the training objects over the test queries; the training time is that of one `fit_transform`.

`auto`, the choice among movers, is measured on the same splits; so is any classifier that chooses by
itself, on the training part alone.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer

from ..arrays import Array, convert, take_rows, to_numpy
from ..arrays.devices import synchronize
from ..baselines import ITML, LMNN, MMC, NCA, DMLeig
from ..classifier import MoveLabeledClassifier
from ..classifier_cv import MoveLabeledClassifierCV
from ..hubness import k_occurrence, skewness
from ..move_query import MoveQuery
from ..movers import MoveLabeled, Scale
from ..neighbors.knn import vote, votes_of
from ..neighbors.search import search
from ..selection.candidates import name
from ..selection.folds import LARGE, accuracy, feasible_neighbors, folds, predict_by_ks
from ..selection.grid import GRID, Grid, best_setting
from ..targets import same_class_targets

Setting = dict[str, Any]  # parameters of a transformer
Fields = dict[str, Any]  # of a raw result
Measure: TypeAlias = Callable[["Split", int], Fields]  # of a split and a seed

REPEATS = 3  # of a fit that takes less than REPEAT_BELOW seconds
REPEAT_BELOW = 10.0
PENALTIES = tuple({"alpha": penalty} for penalty in GRID)


class Method(NamedTuple):
    """A row of the tables."""

    build: Callable[..., Any]  # parameters → transformer
    settings: tuple[Setting, ...] = ({},)  # what cross-validation compares; of equal ones, the last wins
    takes_targets: bool = False  # whether `fit` takes the targets, which are the same for all settings
    is_random: bool = False


METHODS = {
    "original-metric": Method(FunctionTransformer),
    "lmnn": Method(LMNN),
    "itml": Method(ITML, tuple({"gamma": 10.0**e} for e in (0, -1, -2, -3)), is_random=True),
    "dml-eig": Method(DMLeig, tuple({"mu": mu} for mu in (0.1, 0.3, 1.0, 3.0))),
    "move-labeled": Method(MoveLabeled, PENALTIES, takes_targets=True),
    "move-query": Method(MoveQuery, PENALTIES, takes_targets=True),
    "mmc": Method(MMC, tuple({"keep": keep} for keep in (0.0, 0.5, 0.8, 0.95, 0.98)), is_random=True),
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
    """Split 70 : 30 and subtract the mean of the training part; with `standardize`, make its z-scores."""
    X, queries, y, truth = train_test_split(X, y, test_size=0.3, random_state=seed)
    mean = X.mean(axis=0)
    scale = X.std(axis=0) if standardize else np.ones_like(mean)
    return Split((X - mean) / scale, y, (queries - mean) / scale, truth)


def measure(method: str, split: Split, seed: int) -> Fields:
    """Choose, fit and measure one of METHODS."""
    start = perf_counter()
    k, setting, cv_accuracy = choose(method, split.X, split.y, seed)
    chosen = perf_counter()
    stored, model = fitted(method, setting, split.X, split.y, seed)
    fit_seconds = perf_counter() - chosen
    width = min(10, stored.shape[0])
    indices = search(model.transform(split.queries), stored, max(k, width), return_distance=False)
    (predicted,) = vote(*votes_of(indices, None, split.y, None), ks=(k,))
    used = {field: float(vars(model).get(f"{field}_", value)) for field, value in setting.items()}
    return {
        "chosen": {"n_neighbors": k, **used},  # a penalty in absolute terms
        "accuracy": accuracy(predicted, split.truth),
        "skewness": skewness(k_occurrence(indices[:, :width], stored.shape[0])),
        "choice_seconds": chosen - start,
        "fit_seconds": fit_seconds,
        "cv_accuracy": cv_accuracy,
    }


def choose(method: str, X: Array, y: Array, seed: int) -> tuple[int, Setting, float]:
    """Return the k and the setting of the best accuracy in cross-validation, and that accuracy.

    Ties go to the last setting and to the smallest k.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    codes = to_numpy(y)
    parts = folds(codes, np.arange(len(codes)), 5 if len(codes) <= LARGE else 3, seed)
    ks = feasible_neighbors(None, min(len(train) for train, _ in parts))
    settings = METHODS[method].settings
    scores = np.empty((len(parts), 1, len(settings), len(ks)))
    for i, (train, test) in enumerate(parts):
        X_train, y_train = _rows(X, train), _rows(y, train)
        queries, truth = _rows(X, test), _rows(y, test)
        targets = same_class_targets(X_train, y_train) if METHODS[method].takes_targets else None
        for j, setting in enumerate(settings):
            stored, model = fitted(method, setting, X_train, y_train, seed, targets)
            predicted = predict_by_ks(model.transform(queries), stored, y_train, None, ks, by_distance=False)
            scores[i, 0, j] = [accuracy(classes, truth) for classes in predicted]
    (_, setting, k), cv_accuracy = best_setting(scores, Grid((1,), settings, ks))
    return k, setting, cv_accuracy


def fitted(
    method: str, setting: Setting, X: Array, y: Array, seed: int, targets: Array | None = None
) -> tuple[Array, Any]:
    """Return the stored objects and the fitted transformer, through which queries go."""
    recipe = METHODS[method]
    model = recipe.build(**setting, **({"random_state": seed} if recipe.is_random else {}))
    shared = {} if targets is None else {"targets": targets}
    return model.fit_transform(X, y, **shared), model


def _rows(array: Array, rows: np.ndarray) -> Array:
    return take_rows(array, convert(rows, array))


def measure_auto(split: Split, seed: int) -> Fields:
    """Choose a mover, fit and measure."""
    return measure_mover(MoveLabeledClassifierCV(mover="auto", random_state=seed), split)


def measure_mover(model: Any, split: Split) -> Fields:
    """Fit and measure a `MoveLabeledClassifierCV`: also N10, and the time of a fit with everything chosen."""
    measured = measure_classifier(model, split)
    width = min(10, split.X.shape[0])
    neighbors = model.kneighbors(split.queries, width, return_distance=False)
    chosen = MoveLabeledClassifier(model.n_neighbors_, mover=model.mover_)
    return measured | {
        "fit_seconds": float(np.median(run_seconds(split, lambda: chosen.fit(split.X, split.y)))),
        "skewness": skewness(k_occurrence(neighbors, split.X.shape[0])),
        "cv_accuracy": model.best_score_,
        "chosen": {"n_neighbors": model.n_neighbors_, "mover": name(model.mover_)},
        "n_settings": len(model.cv_results_["mover"]),
    }


def measure_classifier(model: Any, split: Split) -> Fields:
    """Fit and measure any classifier: its accuracy, and its time beside that of one plain fit and predict."""
    plain = run_seconds(split, lambda: MoveLabeledClassifier().fit(split.X, split.y).predict(split.queries))
    start = perf_counter()
    model.fit(split.X, to_numpy(split.y))
    synchronize(split.X)
    total = perf_counter() - start
    return {
        "accuracy": accuracy(to_numpy(model.predict(split.queries)), to_numpy(split.truth)),
        "skewness": None,
        "total_seconds": total,  # choice and fit; fit_seconds is one fit with everything chosen
        "plain_seconds": float(np.median(plain)),  # without any choice, in the same process
        "chosen": {},
    }


def run_seconds(split: Split, work: Callable[[], Any]) -> list[float]:
    """Return the seconds of three runs of the work, or of one that takes long."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < REPEATS and seconds[0] < REPEAT_BELOW):
        start = perf_counter()
        work()
        synchronize(split.X)
        seconds.append(perf_counter() - start)
    return seconds


MEASURES: dict[str, Measure] = {method: partial(measure, method) for method in METHODS}
MEASURES["auto"] = measure_auto
