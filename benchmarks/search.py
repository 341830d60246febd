"""Exact search of the k nearest: hubless, the bare product, and the exact search of other packages."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

import hubless
from hubless.paper.raw import cores

from .data import clustered, evenly
from .record import Options
from .timing import Contender, race, ready

ROWS = 256  # queries of one product, for contenders that take them in chunks
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


def make_question(n_queries: int, n_objects: int, d: int, k: int, dtype: str) -> Question:
    """Queries and objects of the same classes, the queries in random order."""
    queries = clustered(evenly(n_queries, CLASSES), d, np.dtype(dtype), seed=1).X
    objects = clustered(evenly(n_objects, CLASSES), d, np.dtype(dtype), seed=2).X
    return Question(np.random.default_rng(0).permutation(queries), objects, k)


def bare_product(question: Question) -> Contender:
    """The roofline: the product that any search by products needs, thrown away."""
    out = np.empty((ROWS, len(question.objects)), dtype=question.objects.dtype)

    def multiply() -> None:
        for start in range(0, len(question.queries), ROWS):
            block = question.queries[start : start + ROWS]
            np.matmul(block, question.objects.T, out=out[: len(block)])

    return multiply


def hubless_search(question: Question) -> Contender:
    return lambda: hubless.nearest(*question, return_distance=False)


def hubless_with_distances(question: Question) -> Contender:
    return lambda: hubless.nearest(*question)[1]


def scikit_learn(question: Question) -> Contender:
    index = NearestNeighbors(algorithm="brute").fit(question.objects)
    return lambda: index.kneighbors(question.queries, question.k, return_distance=False)


def faiss_flat(question: Question) -> Contender:
    import faiss

    if question.objects.dtype != np.float32:
        raise TypeError("faiss searches in float32 only")
    index = faiss.IndexFlatL2(question.objects.shape[1])
    index.add(question.objects)
    return lambda: index.search(question.queries, question.k)[1]


def usearch_exact(question: Question) -> Contender:
    from usearch.index import MetricKind, search

    how = {"metric": MetricKind.L2sq, "exact": True, "threads": cores()}
    return lambda: search(question.objects, question.queries, question.k, **how).keys.astype(np.int64)


def torch_topk(question: Question) -> Contender:
    import torch

    queries, objects = torch.from_numpy(question.queries), torch.from_numpy(question.objects)

    def search() -> np.ndarray:
        norms = torch.linalg.vecdot(objects, objects)
        parts = [
            torch.topk(torch.addmm(norms, block, objects.T, alpha=-2), question.k, largest=False).indices
            for block in queries.split(ROWS)
        ]
        return torch.cat(parts).numpy()

    return search


def numpy_argpartition(question: Question) -> Contender:
    def search() -> np.ndarray:
        norms = np.vecdot(question.objects, question.objects)
        parts = []
        for start in range(0, len(question.queries), ROWS):
            values = question.queries[start : start + ROWS] @ question.objects.T
            values *= -2
            values += norms
            near = np.argpartition(values, question.k - 1, axis=1)[:, : question.k]
            ranks = np.argsort(np.take_along_axis(values, near, axis=1), axis=1)
            parts.append(np.take_along_axis(near, ranks, axis=1))
        return np.concatenate(parts)

    return search


CONTENDERS = {
    "bare product": bare_product,
    "hubless": hubless_search,
    "hubless with distances": hubless_with_distances,
    "scikit-learn brute": scikit_learn,
    "faiss IndexFlatL2": faiss_flat,
    "usearch exact": usearch_exact,
    "torch topk": torch_topk,
    "numpy argpartition": numpy_argpartition,
}


def agreement(question: Question, ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Count rows of the same neighbours, and how much distances differ, rank by rank, in the other rows.

    Distances are taken in float64 from differences. `nearer` is how much nearer than ours of the same rank a
    contender's neighbour is, at most: 0 where ours are exact.
    """
    differ = np.flatnonzero(np.any(np.sort(ours, axis=1) != np.sort(theirs, axis=1), axis=1))
    largest, nearer = 0.0, 0.0
    for start in range(0, len(differ), ROWS):
        rows = differ[start : start + ROWS]
        our_distances, their_distances = (
            np.sort(_distances(question, rows, indices), axis=1) for indices in (ours, theirs)
        )
        difference = (their_distances - our_distances) / np.maximum(our_distances, np.finfo(np.float64).tiny)
        largest, nearer = max(largest, float(np.abs(difference).max())), max(nearer, float(-difference.min()))
    return {"same_rows": 1 - len(differ) / len(ours), "largest_difference": largest, "nearer": nearer}


def _distances(question: Question, rows: np.ndarray, indices: np.ndarray) -> np.ndarray:
    queries = question.queries[rows, None].astype(np.float64)
    return np.linalg.norm(queries - question.objects[indices[rows]], axis=2)


def measure(options: Options) -> dict[str, Any]:
    """Measure the seconds of every contender in every case, and whether they find the same."""
    cases = {}
    for name, shape in CASES.items():
        shape = (*QUICK, *shape[3:]) if options.quick else shape
        question = make_question(*shape)
        contenders, errors = ready(CONTENDERS, question)
        seconds = race(contenders, options.repeats, title=f"search {name}", pause=options.pause)
        ours = contenders["hubless"]()
        agreements = {
            rival: agreement(question, ours, contenders[rival]())
            for rival in contenders
            if rival not in ("bare product", "hubless") and isinstance(seconds[rival], list)
        }
        labels = ("queries", "objects", "d", "k", "dtype")
        cases[name] = {
            "settings": dict(zip(labels, shape, strict=True)),
            "reference": "bare product",
            "seconds": {rival: {**seconds, **errors}[rival] for rival in CONTENDERS},
            "neighbors": agreements,
        }
    return cases
