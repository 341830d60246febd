"""Classes of very different sizes, spread over workers: a simulation of the longest a worker is busy.

Nothing is measured here: sizes follow Zipf's law, tasks are those that `hubless.large.plan.pack` makes of
them, and each goes to the worker that is free first, as Dask gives them out.
"""

import heapq
from typing import Any

import numpy as np

from hubless.distributed.learn import BIN
from hubless.large.plan import READ, Bins, pack, work_of
from hubless.large.sampling import PAIRS, Sample

from .record import Options

OBJECTS, D = 1_000_000_000, 768
CLASSES, EXPONENTS, WORKERS = (1_000, 100_000), (0.0, 0.5, 1.0, 1.5), (64, 256)


def measure(options: Options) -> dict[str, Any]:
    """The busiest worker over the mean, for every skew, with and without cutting classes."""
    n = OBJECTS // 1000 if options.quick else OBJECTS
    rows = []
    for n_classes in CLASSES if not options.quick else (100,):
        for exponent in EXPONENTS:
            sizes = zipf_sizes(n, n_classes, exponent)
            for pairs in (PAIRS * D, None):
                rows += of_sizes(sizes, pairs, exponent)
    return {"zipf": {"settings": {"objects": n, "d": D}, "rows": rows}}


def zipf_sizes(n: int, n_classes: int, exponent: float) -> np.ndarray:
    """Sizes n_c ∝ c^(−exponent), at least 2, n in all."""
    share = np.arange(1, n_classes + 1) ** -exponent
    sizes = np.maximum(2, np.floor(n * share / share.sum())).astype(np.int64)
    sizes[0] += n - sizes.sum()
    return sizes


def of_sizes(sizes: np.ndarray, pairs: int | None, exponent: float) -> list[dict[str, Any]]:
    """How evenly workers are busy with some classes."""
    sample = Sample.of(sizes, pairs, 1, 0)
    at_once = BIN // (4 * D)
    bins = pack(sizes, sample.counts, at_once)
    naive = np.sort(work_of(sizes, sample.counts))[::-1]
    cut = tasks_of(sizes, sample.counts, bins)
    return [
        {
            "classes": len(sizes),
            "exponent": exponent,
            "pairs": "all" if pairs is None else pairs,
            "largest class": int(sizes.max()),
            "workers": workers,
            "tasks": len(cut),
            "work": float(cut.sum()),
            "busiest over mean": busiest(cut, workers),
            "busiest over mean, a class a task": busiest(naive, workers),
        }
        for workers in WORKERS
    ]


def tasks_of(sizes: np.ndarray, counts: np.ndarray, bins: Bins) -> np.ndarray:
    """Work of every task, in the order in which they are given out: that of bins, then of cut classes."""
    work = work_of(sizes, counts)
    whole = bins.chunks == 1
    packed = np.bincount(bins.first[whole], weights=work[whole], minlength=bins.n_whole)
    chunked = []
    for code in np.flatnonzero(~whole).tolist():
        m, g = int(bins.chunks[code]), int(bins.groups[code])
        chunked.append(np.full(m * g, sizes[code] / m * (counts[code] / g + READ / g)))
    return np.concatenate([packed, *chunked])


def busiest(tasks: np.ndarray, workers: int) -> float:
    """Work of the busiest worker over the mean, when each task goes to the one that is free first."""
    free = [0.0] * workers
    for work in tasks.tolist():
        heapq.heappush(free, heapq.heappop(free) + work)
    return max(free) / (float(tasks.sum()) / workers)
