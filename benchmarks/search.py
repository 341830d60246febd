"""Exact search of the k nearest: hubless, the bare product, and everybody else's exact search."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

import hubless
from hubless.paper.machine import cores

from .data import clustered, evenly
from .record import Options
from .timing import Contender, race, ready

ROWS = 256  # queries of one product, for those who take them in chunks
CLASSES = 20

# name: queries, objects, dimensions, neighbours, precision
CASES = {
    "5,654 × 13,192 × 300": (5_654, 13_192, 300, 10, "float32"),
    "2,000 × 100,000 × 384": (2_000, 100_000, 384, 10, "float32"),
    "5,654 × 13,192 × 300, float64": (5_654, 13_192, 300, 10, "float64"),
    "5,654 × 13,192 × 300, k = 50": (5_654, 13_192, 300, 50, "float32"),
}
QUICK = (300, 900, 16)


class Question(NamedTuple):
    """Queries, and objects sorted by class, as they often are stored."""

    queries: np.ndarray
    objects: np.ndarray
    k: int


def question(n_queries: int, n_objects: int, d: int, k: int, dtype: str) -> Question:
    """Queries and objects of the same classes, the queries in random order."""
    queries = clustered(evenly(n_queries, CLASSES), d, np.dtype(dtype), seed=1).X
    objects = clustered(evenly(n_objects, CLASSES), d, np.dtype(dtype), seed=2).X
    return Question(np.random.default_rng(0).permutation(queries), objects, k)


def bare_product(asked: Question) -> Contender:
    """The roofline: what any search by products has to multiply, thrown away."""
    out = np.empty((ROWS, len(asked.objects)), dtype=asked.objects.dtype)

    def multiply() -> None:
        for start in range(0, len(asked.queries), ROWS):
            block = asked.queries[start : start + ROWS]
            np.matmul(block, asked.objects.T, out=out[: len(block)])

    return multiply


def own(asked: Question) -> Contender:
    return lambda: hubless.nearest(*asked, return_distance=False)


def own_with_distances(asked: Question) -> Contender:
    return lambda: hubless.nearest(*asked)[1]


def scikit_learn(asked: Question) -> Contender:
    index = NearestNeighbors(algorithm="brute").fit(asked.objects)
    return lambda: index.kneighbors(asked.queries, asked.k, return_distance=False)


def faiss_flat(asked: Question) -> Contender:
    import faiss

    if asked.objects.dtype != np.float32:
        raise TypeError("faiss searches in float32 alone")
    index = faiss.IndexFlatL2(asked.objects.shape[1])
    index.add(asked.objects)
    return lambda: index.search(asked.queries, asked.k)[1]


def usearch_exact(asked: Question) -> Contender:
    from usearch.index import MetricKind, search

    how = {"metric": MetricKind.L2sq, "exact": True, "threads": cores()}
    return lambda: search(asked.objects, asked.queries, asked.k, **how).keys.astype(np.int64)


def torch_topk(asked: Question) -> Contender:
    import torch

    queries, objects = torch.from_numpy(asked.queries), torch.from_numpy(asked.objects)

    def search() -> np.ndarray:
        norms = torch.linalg.vecdot(objects, objects)
        parts = [
            torch.topk(torch.addmm(norms, block, objects.T, alpha=-2), asked.k, largest=False).indices
            for block in queries.split(ROWS)
        ]
        return torch.cat(parts).numpy()

    return search


def numpy_argpartition(asked: Question) -> Contender:
    def search() -> np.ndarray:
        norms = np.vecdot(asked.objects, asked.objects)
        parts = []
        for start in range(0, len(asked.queries), ROWS):
            values = asked.queries[start : start + ROWS] @ asked.objects.T
            values *= -2
            values += norms
            near = np.argpartition(values, asked.k - 1, axis=1)[:, : asked.k]
            ranks = np.argsort(np.take_along_axis(values, near, axis=1), axis=1)
            parts.append(np.take_along_axis(near, ranks, axis=1))
        return np.concatenate(parts)

    return search


CONTENDERS = {
    "bare product": bare_product,
    "hubless": own,
    "hubless with distances": own_with_distances,
    "scikit-learn brute": scikit_learn,
    "faiss IndexFlatL2": faiss_flat,
    "usearch exact": usearch_exact,
    "torch topk": torch_topk,
    "numpy argpartition": numpy_argpartition,
}


def agreement(asked: Question, ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Rows of the same neighbours, and how much distances differ, rank by rank, in the other rows.

    Distances are taken in float64 from differences. `nearer` is how much nearer than ours of the same rank a
    contender's neighbour is, at most: 0 where ours are exact.
    """
    differ = np.flatnonzero(np.any(np.sort(ours, axis=1) != np.sort(theirs, axis=1), axis=1))
    largest, nearer = 0.0, 0.0
    for start in range(0, len(differ), ROWS):
        rows = differ[start : start + ROWS]
        own, other = (np.sort(_distances(asked, rows, found), axis=1) for found in (ours, theirs))
        apart = (other - own) / np.maximum(own, np.finfo(np.float64).tiny)
        largest, nearer = max(largest, float(np.abs(apart).max())), max(nearer, float(-apart.min()))
    return {"same_rows": 1 - len(differ) / len(ours), "largest_difference": largest, "nearer": nearer}


def _distances(asked: Question, rows: np.ndarray, found: np.ndarray) -> np.ndarray:
    queries = asked.queries[rows, None].astype(np.float64)
    return np.linalg.norm(queries - asked.objects[found[rows]], axis=2)


def measure(options: Options) -> dict[str, Any]:
    """Seconds of every contender in every case, and whether they find the same."""
    cases = {}
    for name, shape in CASES.items():
        shape = (*QUICK, *shape[3:]) if options.quick else shape
        asked = question(*shape)
        contenders, errors = ready(CONTENDERS, asked)
        seconds = race(contenders, options.repeats, title=f"search {name}", pause=options.pause)
        ours = contenders["hubless"]()
        found = {
            rival: agreement(asked, ours, contenders[rival]())
            for rival in contenders
            if rival not in ("bare product", "hubless") and isinstance(seconds[rival], list)
        }
        labels = ("queries", "objects", "d", "k", "dtype")
        cases[name] = {
            "settings": dict(zip(labels, shape, strict=True)),
            "reference": "bare product",
            "seconds": {rival: {**seconds, **errors}[rival] for rival in CONTENDERS},
            "neighbors": found,
        }
    return cases
