"""Probabilities and queries of classes that are not stored, beside plain k-NN and logistic regression.

Splits are the paper's 70 : 30, on other random seeds than those that the features of `hubless.calibration`
and the numbers of its familiarity were chosen on. Everything is learned on the training part alone.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from hubless import MoveLabeledClassifierCV
from hubless.calibration import log_loss, reliability
from hubless.movers import Stay
from hubless.neighbors.knn import unit
from hubless.paper.datasets import load
from hubless.paper.experiment import Split, split_at_random

from .linear import UnitScale
from .record import Options

PROBABILITIES = ("banking77", "news", "reuters", "cub")
UNKNOWN = ("banking77", "news")
SEEDS = (0, 1)  # of splits, and of the classes that are left out
COSTS = (1.0, 10.0, 100.0)
LEFT_OUT = 0.25  # of the classes
RATE = 0.05  # of false alarms


def split_of(name: str, seed: int) -> tuple[Split, int]:
    """Return a split of a data set and its number of classes; "digits" are those of scikit-learn."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return split_at_random(X[:700], y[:700], seed), 10
    data = load(name)
    return split_at_random(data.X, data.y, seed, data.standardize), len(data.classes)


def logistic_regression(seed: int) -> Any:
    """Logistic regression on features of mean squared norm 1, its C chosen by log-loss on a quarter."""
    how = StratifiedShuffleSplit(1, test_size=0.25, random_state=seed)
    model = LogisticRegression(max_iter=300, tol=1e-4)
    return make_pipeline(UnitScale(), GridSearchCV(model, {"C": COSTS}, cv=how, scoring=_minus_log_loss))


def _minus_log_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Score as scikit-learn's neg_log_loss, which refuses queries that lack a class."""
    return -log_loss(model.predict_proba(X), np.searchsorted(model.classes_, y))


def plain_neighbors(split: Split, seed: int) -> Any:
    """Plain k-NN, its k chosen by cross-validation."""
    chosen = MoveLabeledClassifierCV(mover=[Stay()], random_state=seed).fit(split.X, split.y)
    return KNeighborsClassifier(chosen.n_neighbors_, algorithm="brute").fit(split.X, split.y)


def moved_neighbors(mover: str) -> Callable[[Split, int], Any]:
    """Return k-NN among moved objects, as a function of a split and a seed."""
    return lambda split, seed: MoveLabeledClassifierCV(mover=mover, random_state=seed).fit(split.X, split.y)


def contenders(quick: bool) -> dict[str, Callable[[Split, int], Any]]:
    """Return what is compared, each as a function of a split and a seed that fits a classifier."""
    return {
        "k-NN, shares of votes": plain_neighbors,
        "logistic regression": lambda split, seed: logistic_regression(seed).fit(split.X, split.y),
        "hubless, ridge": moved_neighbors("ridge"),
        "hubless, auto": moved_neighbors("ridge" if quick else "auto"),
    }


# --- probabilities ------------------------------------------------------------------------------------------


def probabilities(options: Options) -> dict[str, Any]:
    """Measure accuracy, log-loss and calibration on test queries: a cell per data set, split and method."""
    return {
        name: {"cells": [cell for seed in seeds(options) for cell in _split_cells(name, seed, options.quick)]}
        for name in (("digits",) if options.quick else PROBABILITIES)
    }


def seeds(options: Options) -> tuple[int, ...]:
    """Return the seeds of the splits."""
    return SEEDS[:1] if options.quick else SEEDS


def _split_cells(name: str, seed: int, quick: bool) -> list[dict[str, Any]]:
    split, _ = split_of(name, seed)
    cells = []
    for method, fit in contenders(quick).items():
        start = perf_counter()
        model = fit(split, seed)
        seconds = perf_counter() - start
        P = model.predict_proba(split.queries)
        cell = {
            "method": method,
            "split": seed,
            "seconds": seconds,
            **_figures(P, model.classes_, split.truth),
        }
        if method.startswith("hubless"):
            cell["calibration"] = model.calibration_.method
            indices = model.kneighbors(split.queries, return_distance=False)
            shares = _shares(model, indices)
            cell["shares"] = _figures(shares, model.classes_, split.truth)
        cells.append(cell)
    return cells


def _shares(model: MoveLabeledClassifierCV, indices: np.ndarray) -> np.ndarray:
    """Return the shares of votes of a calibrated model, as they would be without a calibration."""
    labels = model.codes_[indices]
    return np.stack([(labels == c).mean(axis=1) for c in range(len(model.classes_))], axis=1)


def _figures(P: np.ndarray, classes: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    truth = np.searchsorted(classes, y)
    bars = reliability(P, truth)
    return {
        "accuracy": float((P.argmax(axis=1) == truth).mean()),
        "log_loss": log_loss(P, truth),
        "calibration_error": bars.error,
        "bars": {name: value.tolist() for name, value in bars._asdict().items()},
    }


# --- classes that are not stored ----------------------------------------------------------------------------


def unknown(options: Options) -> dict[str, Any]:
    """Measure how well queries of classes that are not stored are told from others."""
    return {
        name: {"cells": [_unknown_cell(name, seed, options.quick) for seed in seeds(options)]}
        for name in (("digits",) if options.quick else UNKNOWN)
    }


def _unknown_cell(name: str, seed: int, quick: bool) -> dict[str, Any]:
    split, n_classes = split_of(name, seed)
    left_out = np.random.default_rng(seed).permutation(n_classes)[: round(LEFT_OUT * n_classes)]
    is_stored, is_known = ~np.isin(split.y, left_out), ~np.isin(split.truth, left_out)
    stored = split._replace(X=split.X[is_stored], y=split.y[is_stored])
    scores, rates = references(stored, seed), {}
    for method in ("hubless, ridge", "hubless, auto"):
        model = contenders(quick)[method](stored, seed)
        familiarity = scores[method] = model.familiarity(split.queries)
        alarms = familiarity <= RATE
        rates[method] = {
            "false_alarms": float(alarms[is_known].mean()),
            "noticed": float(alarms[~is_known].mean()),
        }
    return {
        "split": seed,
        "left_out": sorted(map(int, left_out)),
        "auroc": {name: float(roc_auc_score(is_known, score)) for name, score in scores.items()},
        "rate": RATE,
        "rates": rates,
    }


def references(split: Split, seed: int) -> dict[str, np.ndarray]:
    """Return the scores that are compared with, larger for queries of known classes."""
    X, queries = (np.asarray(array, dtype=np.float64) for array in (split.X, split.queries))
    model = logistic_regression(seed).fit(split.X, split.y)
    return {
        "cosine distance": -KNeighborsClassifier(1, algorithm="brute")
        .fit(unit(X), split.y)
        .kneighbors(unit(queries))[0][:, 0],
        "maximum of softmax": model.predict_proba(split.queries).max(axis=1),
        "Mahalanobis distance": -mahalanobis(X, split.y, queries),
    }


# min_c (x − m_c)ᵀ S⁻¹ (x − m_c), with the means of the classes and their common covariance, shrunk
def mahalanobis(X: np.ndarray, y: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the squared distance of queries to the nearest mean of a class."""
    classes, codes = np.unique(y, return_inverse=True)
    means = np.stack([X[codes == c].mean(axis=0) for c in range(len(classes))])
    shrunk = LedoitWolf(assume_centered=True).fit(X - means[codes])
    L = np.linalg.cholesky(shrunk.precision_)
    a, b = queries @ L, means @ L
    squares = (a**2).sum(axis=1)[:, None] - 2 * a @ b.T + (b**2).sum(axis=1)
    return np.asarray(squares.min(axis=1))
