"""The data of the benchmarks: synthetic, of a realistic structure, or News where it is available."""

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from hubless.paper import datasets
from hubless.paper.reproduce import split_of

ROWS = 4096  # made at a time, so that making the data needs little memory beside it
NEWS = (13_192, 300, 20)  # objects, dimensions and classes of its training part


class Labeled(NamedTuple):
    """Labeled objects and where they are from."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    source: str


def evenly(n: int, n_classes: int) -> list[int]:
    """Return the sizes of classes, as equal as can be, of n objects."""
    return [n // n_classes + (i < n % n_classes) for i in range(n_classes)]


def clustered(sizes: Sequence[int], d: int, dtype: Any = np.float32, seed: int = 0) -> Labeled:
    """Make objects sorted by class: a centre per class, a few directions in which all vary much, and noise.

    Centres and directions depend only on the number of classes and on d: another seed gives other objects of
    the same kind, which can be queries.
    """
    shared, rng = np.random.default_rng(0), np.random.default_rng([seed, 1])
    rank = max(1, d // 8)
    fading = (0.5 / np.sqrt(np.arange(1, rank + 1)))[:, None]  # as the spectra of embeddings do
    directions = (fading * shared.standard_normal((rank, d))).astype(dtype)
    centres = shared.standard_normal((len(sizes), d)).astype(dtype)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.empty((len(y), d), dtype=dtype)
    for start in range(0, len(y), ROWS):
        batch = y[start : start + ROWS]
        X[start : start + ROWS] = rng.standard_normal((len(batch), rank), dtype=dtype) @ directions
        X[start : start + ROWS] += centres[batch]
        X[start : start + ROWS] += rng.standard_normal((len(batch), d), dtype=dtype)
    return Labeled(X, y, "synthetic")


@cache
def news(quick: bool) -> Labeled:
    """Return the training part of News' first split, in 300 dimensions, or data of its shape."""
    if quick:
        return clustered(evenly(240, 4), 16)
    if os.environ.get("HUBLESS_DATA"):
        split = split_of(datasets.load("news", NEWS[1]), 0)
        return Labeled(np.ascontiguousarray(split.X), split.y, "20 Newsgroups, training part of split 0")
    n, d, n_classes = NEWS
    return clustered(evenly(n, n_classes), d)


@cache
def digits(quick: bool) -> Labeled:
    """Return scikit-learn's digits, on which every learner finishes; a few of them for a quick look."""
    X, y = load_digits(return_X_y=True)
    kept = np.flatnonzero(y < 3)[:45] if quick else np.arange(len(y))
    return Labeled(X[kept] / 16, y[kept], "scikit-learn's load_digits")


LABELED = {"news": news, "digits": digits}
