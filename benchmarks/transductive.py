"""Balance from queries without labels: does it help to learn from queries instead of labeled objects?

Half of the test part is asked, the other half is a log of earlier queries. Objects that represent queries in
Balance are, at equal settings, labeled objects, the log, or the queries asked. Parts: "labels", with few or
all objects of each class, and "shift", with queries of another distribution than the labeled objects. Draws
are random splits that no table of movers uses. Answers are by one neighbour, except those of auto.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.hubness import k_occurrence, skewness
from hubless.movers import Balance, Chain, Mover, Shrink, Stay, Steer, Whiten
from hubless.paper.experiment import Split, split_at_random
from hubless.paper.raw import this_machine
from hubless.paper.reproduce import loaded
from hubless.selection.candidates import name
from hubless.support.progress import step

from .curve_cells import Cells, Key
from .curves import ALL, MADE, few, zipf

FOLDER = Path(__file__).parent / "results" / "transductive"
DATASETS = {
    "rcv": "RCV",
    "news": "News",
    "reuters": "Reuters",
    "tdt": "TDT",
    "awa": "AwA",
    "cub": "CUB",
    "sun": "SUN",
    "apy": "aPY",
    "banking77": "banking77",
}
MOVERS: dict[str, Mover] = {
    "balance": Balance(0.5),
    "wide": Balance(0.5, n_neighbors=20),
    "shrink": Chain([Shrink(0.5), Balance(0.3)]),
    "whiten": Chain([Whiten(3.0), Shrink(0.4), Balance(0.3)]),
    "steer": Chain([Shrink(0.5), Balance(0.3), Steer(0.3, 0.01, max_iter=30)]),
}
AUTO = "auto"
OBJECTS, LOG, ASKED, NONE = "objects", "log", "asked", "none"  # what represents queries; none: no Balance
PROXIES = {OBJECTS: "labeled objects", LOG: "a log", ASKED: "the queries asked"}
DRAWS, AUTO_DRAWS, FIRST_DRAW = 4, 2, 100  # the tables of movers have splits below 40
N_OBJECTS, N_QUERIES = 4000, 2000  # at most; half of the queries are asked


# --- queries of another distribution than the labeled objects


# a side of a class is where its objects are above or below its median along the first principal axis of all
# objects about the means of their classes
def one_side(split: Split, rng: np.random.Generator) -> Split:
    """Keep labeled objects of one side of their class, and queries of the other side."""
    means = {c: split.X[split.y == c].mean(axis=0) for c in np.unique(split.y)}
    within = split.X - np.stack([means[c] for c in split.y])
    axis = PCA(1, random_state=0).fit(within).components_[0]
    along = split.X @ axis
    middle = {c: np.median(along[split.y == c]) for c in means}
    objects = along <= [middle[c] for c in split.y]
    queries = split.queries @ axis > [middle.get(c, np.inf) for c in split.truth]
    return Split(split.X[objects], split.y[objects], split.queries[queries], split.truth[queries])


def other_shares(split: Split, rng: np.random.Generator) -> Split:
    """Keep queries of some classes much more often than of others; labeled objects stay."""
    return zipf(split, rng)._replace(X=split.X, y=split.y)


SHIFTS: dict[str, Callable[[Split, np.random.Generator], Split]] = {
    "side": one_side,
    "shares": other_shares,
}
SETTINGS = [("labels", size) for size in ("2", "5", "10", ALL)] + [("shift", shift) for shift in SHIFTS]


# --- cells


class Asked(NamedTuple):
    """A split whose queries are divided."""

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray
    truth: np.ndarray
    log: np.ndarray

    def proxies(self, kind: str) -> np.ndarray | None:
        """Return the queries to learn from; None for labeled objects."""
        return {LOG: self.log, ASKED: self.queries}.get(kind)


def plan(datasets: Iterable[str] | None = None, quick: bool = False) -> list[Key]:
    """Return the cells, those of a split after each other; a quick look has one draw of made data."""
    keys = []
    for dataset in [MADE] if quick else datasets or DATASETS:
        if dataset not in (MADE, *DATASETS):
            raise ValueError(f"data sets are {', '.join(DATASETS)}; got {dataset!r}.")
        for part, setting in SETTINGS:
            for draw in range(FIRST_DRAW, FIRST_DRAW + (1 if quick else DRAWS)):
                of = [f"{mover} {kind}" for mover in MOVERS for kind in (NONE, *PROXIES)]
                if draw < FIRST_DRAW + AUTO_DRAWS and setting in ("5", ALL, "side"):
                    of += [f"{AUTO} {kind}" for kind in (OBJECTS, ASKED)]
                keys += [Key(dataset, part, setting, draw, method) for method in of]
    return keys


def split_for(key: Key, X: np.ndarray, y: np.ndarray) -> Asked:
    """Return the objects, queries and log of a cell, the same for every method."""
    rng = np.random.default_rng(key.draw)
    split = split_at_random(X, y, key.draw)
    rows = np.sort(rng.permutation(len(split.y))[:N_OBJECTS])
    split = split._replace(X=split.X[rows], y=split.y[rows])
    split = few(split, key.setting, rng) if key.part == "labels" else SHIFTS[key.setting](split, rng)
    rows = rng.permutation(len(split.truth))[:N_QUERIES]
    asked, log = np.sort(rows[: len(rows) // 2]), np.sort(rows[len(rows) // 2 :])
    return Asked(split.X, split.y, split.queries[asked], split.truth[asked], split.queries[log])


def run(keys: list[Key], cells: Cells, seconds: float = float("inf")) -> bool:
    """Measure the cells that are missing, a split at a time, and save them; return whether all are there."""
    missing = [key for key in keys if key not in cells.entries]
    start, machine = perf_counter(), this_machine()
    with step("measuring", len(missing), "cells") as bar:
        for split in dict.fromkeys(key[:4] for key in missing):
            if perf_counter() - start > seconds:
                return False
            alike = [key for key in missing if key[:4] == split]
            data = split_for(alike[0], *_load(alike[0].dataset))
            cells.add_all({key: measure(key.method, data, key.draw) | {"machine": machine} for key in alike})
            bar.update(len(alike))
    return True


def measure(method: str, data: Asked, seed: int) -> dict[str, Any]:
    """Fit and measure one method on one split."""
    mover, kind = method.split()
    queries = data.proxies(kind)
    if mover == AUTO:
        model: Any = MoveLabeledClassifierCV(mover=AUTO, random_state=seed)
    else:
        chain = without_balance(MOVERS[mover]) if kind == NONE else MOVERS[mover]
        model = MoveLabeledClassifier(1, mover=chain)
    start = perf_counter()
    model.fit(data.X, data.y, queries=queries)
    seconds = perf_counter() - start
    width, predicted = min(10, len(data.y)), model.predict(data.queries)
    neighbors = model.kneighbors(data.queries, width, return_distance=False)
    entry: dict[str, Any] = {
        "status": "done",
        "n_train": len(data.y),
        "n_test": len(data.truth),
        "accuracy": float(np.mean(predicted == data.truth)),
        "class_accuracy": class_accuracy(data.truth, predicted),
        "skewness": float(skewness(k_occurrence(neighbors, len(data.y)))),
        "seconds": seconds,
    }
    if mover == AUTO:
        entry["chosen"] = {"n_neighbors": model.n_neighbors_, "mover": name(model.mover_)}
    return entry


def class_accuracy(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean over the classes of their accuracy, in which rare classes count as much as others."""
    return float(np.mean([np.mean(predicted[truth == c] == c) for c in np.unique(truth)]))


def without_balance(mover: Mover) -> Mover:
    """Return the steps of a mover other than Balance."""
    steps = [step for step in getattr(mover, "movers", [mover]) if not isinstance(step, Balance)]
    return Chain(steps) if steps else Stay()


def _load(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    if dataset != MADE:
        data = loaded(dataset, 300, None, None)
        return np.asarray(data.X), data.y
    return make_blobs(200, 12, centers=5, cluster_std=6.0, random_state=0)
