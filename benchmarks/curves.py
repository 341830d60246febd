"""Few labels, and data with faults: auto beside what it chooses among, and linear classifiers.

Two parts. "labels": a few objects of each class, drawn from the training part, a learning curve. "faults":
wrong labels, classes of very unequal sizes, a column that dwarfs the others, every object twice. A draw has
its own random 70 : 30 split, the one of that number in the standings. What fails is recorded and shown.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_info

from hubless import MoveLabeledClassifierCV, ScaleWarning
from hubless.paper.experiment import Split, measure, split_at_random
from hubless.paper.raw import this_machine
from hubless.paper.reproduce import loaded
from hubless.selection.candidates import name
from hubless.support.progress import step

from .curve_cells import Cells, Key
from .linear import linear

TITLES = {
    "euclidean": "Euclidean",
    "ridge": "Move-labeled",
    "auto": "auto",
    "lda": "LDA",
    "logistic": "logistic regression",
}
DATASETS = {"banking77": "banking77", "news": "News", "cub": "CUB"}
MADE = "blobs"  # for a quick look
ALL = "all"
DRAWS = {"1": 5, "2": 5, "3": 5, "5": 5, "10": 2, ALL: 2}  # objects per class → draws
FAULT_DRAWS = 2
N_OBJECTS, N_QUERIES = 4000, 3000  # at most, of data with faults and of every test part
WRONG, FACTOR = 0.2, 1e4


# --- a part of the objects, and the faults


def few(split: Split, per_class: str, rng: np.random.Generator) -> Split:
    """Keep that many labeled objects of each class, at random; all where it has fewer."""
    if per_class == ALL:
        return split
    order = rng.permutation(len(split.y))
    rank = ranks(split.y[order])
    return _rows(split, np.sort(order[rank < int(per_class)]))


def ranks(y: np.ndarray) -> np.ndarray:
    """Return how many objects of its class are before each object: 0, 0, 1, 2, 1 for a, b, a, a, b."""
    order = np.argsort(y, kind="stable")
    _, first, counts = np.unique(y[order], return_index=True, return_counts=True)
    result = np.empty(len(y), dtype=int)
    result[order] = np.arange(len(y)) - np.repeat(first, counts)
    return result


def mislabel(split: Split, rng: np.random.Generator) -> Split:
    """Give a share of the labeled objects another class, each other one equally often."""
    classes, codes = np.unique(split.y, return_inverse=True)
    is_wrong = rng.random(len(codes)) < WRONG
    shift = rng.integers(1, len(classes), len(codes))
    return split._replace(y=classes[np.where(is_wrong, codes + shift, codes) % len(classes)])


# The class of rank r keeps a share 1 / r of its objects, one at least, in both parts.
def zipf(split: Split, rng: np.random.Generator) -> Split:
    """Make classes of very unequal sizes, in random order; queries are as unequal."""
    classes = np.unique(split.y)
    share = dict(zip(classes, 1 / rng.permutation(np.arange(1, len(classes) + 1)), strict=True))

    def kept(y: np.ndarray) -> np.ndarray:
        order = rng.permutation(len(y))
        sizes = {c: max(1, round(share.get(c, 0) * count)) for c, count in zip(*_counts(y), strict=True)}
        return np.sort(order[ranks(y[order]) < [sizes[c] for c in y[order]]])

    queries = kept(split.truth)
    part = _rows(split, kept(split.y))
    return part._replace(queries=split.queries[queries], truth=split.truth[queries])


def stretch(split: Split, rng: np.random.Generator) -> Split:
    """Multiply one column of objects and queries by a large factor."""
    factors = np.ones(split.X.shape[1], dtype=split.X.dtype)
    factors[rng.integers(len(factors))] = FACTOR
    return split._replace(X=split.X * factors, queries=split.queries * factors)


def double(split: Split, rng: np.random.Generator) -> Split:
    """Store every labeled object of one half twice."""
    order = rng.permutation(len(split.y))[: len(split.y) // 2]
    return _rows(split, rng.permutation(np.concatenate([order, order])))


def _counts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(y, return_counts=True)


def _rows(split: Split, rows: np.ndarray) -> Split:
    return split._replace(X=split.X[rows], y=split.y[rows])


def _at_most(split: Split, rng: np.random.Generator) -> Split:
    return _rows(split, np.sort(rng.permutation(len(split.y))[:N_OBJECTS]))


class Fault(NamedTuple):
    """What is wrong with the data, as tables say it."""

    title: str
    make: Callable[[Split, np.random.Generator], Split]
    of_all: bool = False  # whether it is made of all objects, not of N_OBJECTS


FAULTS = {
    "none": Fault("as they are", lambda split, rng: split),
    "wrong": Fault(f"{WRONG:.0%} of labels wrong".replace("%", " %"), mislabel),
    "zipf": Fault("Zipf-sized classes", zipf, of_all=True),
    "stretched": Fault("one column × 10⁴", stretch),
    "twice": Fault("every object twice", double),
}


# --- cells


def _euclidean(split: Split, seed: int) -> dict[str, Any]:
    return measure("original-metric", split, seed)


def _classifier(build: Callable[[int], Any], split: Split, seed: int) -> dict[str, Any]:
    with warnings.catch_warnings():  # a column that dwarfs the others is what one fault is about
        warnings.simplefilter("ignore", ScaleWarning)
        model = build(seed).fit(split.X, split.y)
    accuracy = float(np.mean(model.predict(split.queries) == split.truth))
    if hasattr(model, "mover_"):
        chosen = {"n_neighbors": int(model.n_neighbors_), "mover": name(model.mover_)}
        return {"accuracy": accuracy, "chosen": chosen}
    return {"accuracy": accuracy, "chosen": model[-1].best_params_}


METHODS: dict[str, Callable[[Split, int], dict[str, Any]]] = {
    "euclidean": _euclidean,
    "ridge": partial(_classifier, lambda seed: MoveLabeledClassifierCV(random_state=seed)),
    "auto": partial(_classifier, lambda seed: MoveLabeledClassifierCV(mover="auto", random_state=seed)),
    "lda": partial(_classifier, lambda seed: linear("lda", 0, seed)),
    "logistic": partial(_classifier, lambda seed: linear("logistic", 0, seed)),
}


def plan(methods: Iterable[str], quick: bool = False) -> list[Key]:
    """Return the cells, those of a data set after each other; a quick look has one draw of made data."""
    methods = list(methods)
    if unknown := [method for method in methods if method not in METHODS]:
        raise ValueError(f"methods are {', '.join(METHODS)}; got {unknown[0]!r}.")
    draws = {"1": 1, ALL: 1} if quick else DRAWS
    keys = []
    for dataset in [MADE] if quick else DATASETS:
        labels = [("labels", size, draw) for size, n in draws.items() for draw in range(n)]
        faults = [("faults", fault, draw) for fault in FAULTS for draw in range(1 if quick else FAULT_DRAWS)]
        keys += [Key(dataset, *cell, method) for cell in [*labels, *faults] for method in methods]
    return keys


def split_for(key: Key, X: np.ndarray, y: np.ndarray) -> Split:
    """Return the objects and queries of a cell, the same for every method."""
    split = split_at_random(X, y, key.draw)
    rng = np.random.default_rng(key.draw)
    if key.part == "labels":
        split = few(split, key.setting, rng)
    else:
        fault = FAULTS[key.setting]
        split = fault.make(split if fault.of_all else _at_most(split, rng), rng)
    rows = np.sort(rng.permutation(len(split.truth))[:N_QUERIES])
    return split._replace(queries=split.queries[rows], truth=split.truth[rows])


def run(keys: list[Key], cells: Cells, again: bool = False) -> None:
    """Measure the cells that are missing or failed, or all of them, and save each at once."""
    missing = [key for key in keys if again or cells.entries.get(key, {}).get("status") != "done"]
    with step("measuring", len(missing), "cells") as bar:
        for key in missing:
            bar.note = " ".join(map(str, key))
            cells.add(key, _cell(key))
            bar.update()


def _cell(key: Key) -> dict[str, Any]:
    split = split_for(key, *_load(key.dataset))
    entry: dict[str, Any] = {"n_train": len(split.y), "n_test": len(split.truth)}
    entry |= {"n_classes": len(np.unique(split.y)), "n_features": split.X.shape[1]}
    entry["threads"] = max((library["num_threads"] for library in threadpool_info()), default=1)
    start = perf_counter()
    try:
        measured: Mapping[str, Any] = METHODS[key.method](split, key.draw)
        entry |= {"status": "done", "accuracy": measured["accuracy"], "chosen": measured["chosen"]}
    except Exception as error:  # a method that cannot answer is a result too
        entry |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    return entry | {"seconds": perf_counter() - start, "device": "cpu", "machine": this_machine()}


def _load(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    if dataset != MADE:
        data = loaded(dataset, 300, None, None)
        return np.asarray(data.X), data.y
    return make_blobs(120, 12, centers=6, cluster_std=6.0, random_state=0)
