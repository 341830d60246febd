"""Exact search of the k nearest: hubless, the bare product, and the exact search of other packages."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

import hubless
from hubless.arrays.bfloat16 import has_bfloat16
from hubless.neighbors.bfloat16_pass import Bfloat16Pass
from hubless.neighbors.frame import Frame
from hubless.neighbors.full_pass import FullPass
from hubless.paper.raw import cores

from .record import Options
from .search_data import CASES, Question
from .timing import Contender, Seconds, race, ready

ROWS = 256  # queries of one product, for contenders that take them in chunks
SOME = 512  # queries whose candidates are counted


def bare_product(question: Question) -> Contender:
    """The roofline: the product that any search by products needs, thrown away."""
    out = np.empty((ROWS, len(question.objects)), dtype=question.objects.dtype)

    def multiply() -> None:
        for start in range(0, len(question.queries), ROWS):
            block = question.queries[start : start + ROWS]
            np.matmul(block, question.objects.T, out=out[: len(block)])

    return multiply


def hubless_search(question: Question) -> Contender:
    return lambda: hubless.nearest(*question[:3], return_distance=False)


def hubless_float32(question: Question) -> Contender:
    """Without bfloat16, as on a processor that has no instructions for it."""
    return lambda: hubless.nearest(*question[:3], return_distance=False, precision="float32")


def hubless_with_distances(question: Question) -> Contender:
    return lambda: hubless.nearest(*question[:3])[1]


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
    "hubless, float32": hubless_float32,
    "hubless with distances": hubless_with_distances,
    "scikit-learn brute": scikit_learn,
    "faiss IndexFlatL2": faiss_flat,
    "usearch exact": usearch_exact,
    "torch topk": torch_topk,
    "numpy argpartition": numpy_argpartition,
}

SLOW = ("usearch exact",)  # 14 times the bare product: once, or it takes most of the time of all


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


def outcome(
    question: Question,
    builders: Mapping[str, Callable[[Question], Contender]],
    ours: str,
    measure: Callable[[Mapping[str, Contender]], Seconds],
) -> dict[str, Any]:
    """Return the raw results of a case: seconds, and whether each contender finds what `ours` does."""
    contenders, errors = ready(builders, question)
    seconds = measure(contenders)
    found = contenders[ours]()
    agreements = {
        rival: agreement(question, found, contenders[rival]())
        for rival in contenders
        if rival not in ("bare product", ours) and isinstance(seconds[rival], list)
    }
    return {
        "settings": question.settings(),
        "source": question.source,
        "reference": "bare product",
        "seconds": {rival: {**seconds, **errors}[rival] for rival in builders},
        "neighbors": agreements,
    }


def candidates(question: Question) -> dict[str, float]:
    """Return how many objects each first pass leaves to be settled: the mean over some queries.

    A pass that gives up, as it cannot tell the points apart, has none.
    """
    queries, objects = question.queries[:SOME], question.objects
    frame, left = Frame.of(np, queries, objects), {}
    passes: dict[str, Any] = {"float32" if objects.dtype == np.float32 else "float64": FullPass}
    if has_bfloat16(objects):
        passes["bfloat16"] = Bfloat16Pass
    for name, kind in passes.items():
        found = kind.of(np, objects, frame).candidates(np, queries, question.k, len(objects))
        if found is not None:
            left[name] = found.cells.row.shape[0] / len(queries)
    return left


def measure(options: Options) -> dict[str, Any]:
    """Measure the seconds of every contender in every case, and whether they find the same."""
    cases = {}
    for name, make in CASES.items():
        question = make(options.quick)
        how = {"once": SLOW, "title": f"search {name}", "pause": options.pause}
        measured = outcome(question, CONTENDERS, "hubless", partial(race, repeats=options.repeats, **how))
        cases[name] = {**measured, "candidates": candidates(question)}
    return cases
