"""What a sample of pairs costs: accuracy against pairs per column, on noisy data."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from tqdm import tqdm

from hubless import MoveLabeled, fit_large, nearest
from hubless.neighbors.knn import vote
from hubless.solve import Penalty

from .record import Options


class Shape(NamedTuple):
    """The sizes of the data sets, and how they are tested."""

    n: int
    d: int
    informative: int
    flipped: float  # share of the labels that are random
    separation: float  # of the classes, in units of their spread
    queries: int
    k: int  # neighbours that vote
    classes: tuple[int, ...]
    seeds: int
    per_column: tuple[int, ...]


FULL = Shape(120_000, 100, 10, 0.1, 0.5, 3000, 5, (4, 10, 20), 4, (50, 100, 200, 500, 1000))
QUICK = Shape(1500, 20, 6, 0.1, 0.5, 200, 5, (2, 4), 2, (10, 50))
ALPHAS = (1.0, 0.1)  # in units of the mean eigenvalue of XKXᵀ


def measure(options: Options) -> dict[str, Any]:
    """Accuracy of k-NN with movers that learned from samples of pairs, and from all."""
    shape = QUICK if options.quick else FULL
    cells = []
    jobs = [(n_classes, seed) for seed in range(shape.seeds) for n_classes in shape.classes]
    for n_classes, seed in tqdm(jobs, "sampled", leave=False, disable=None):
        cells += of_data(shape, n_classes, seed)
    return {"noisy": {"settings": shape._asdict(), "cells": cells}}


def of_data(shape: Shape, n_classes: int, seed: int) -> list[dict[str, Any]]:
    """Accuracies on one data set: without moving, and with movers of every sample and penalty."""
    X, y = make_classification(
        shape.n + shape.queries,
        shape.d,
        n_informative=shape.informative,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        flip_y=shape.flipped,
        class_sep=shape.separation,
        random_state=seed,
    )
    X = X.astype(np.float32)
    data = X[: shape.n], y[: shape.n], X[shape.n :], y[shape.n :]
    about = {"classes": n_classes, "seed": seed}
    cells = [{**about, "pairs per column": 0, "alpha": None, "accuracy": accuracy(*data, shape.k)}]
    for pairs in (*shape.per_column, "all"):
        max_pairs = None if pairs == "all" else pairs * shape.d
        mover = MoveLabeled(keep_moments=True)
        fit_large(mover, *data[:2], max_pairs=max_pairs, random_state=seed, memory="4GB")
        for alpha in ALPHAS:
            moved = mover.with_alpha(Penalty(alpha, relative=True)).move(data[0])
            score = accuracy(moved, *data[1:], shape.k)
            cells.append({**about, "pairs per column": pairs, "alpha": alpha, "accuracy": score})
    return cells


def accuracy(X: np.ndarray, y: np.ndarray, queries: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Share of the queries whose class their k nearest vote for."""
    index = nearest(queries, X, k, return_distance=False)
    return float((vote(y[index]) == truth).mean())
