"""Classes of very different sizes, spread over workers: a simulation of the longest a worker is busy.

Nothing is measured here. Sizes follow Zipf's law. The tasks of a search are the blocks of the objects, and
each goes to the worker that is free first, as Dask gives them out. Objects are sorted by class, and the
heaviest tasks are last: the worst order.
"""

import heapq
from typing import Any

import numpy as np

from hubless.outofcore.dask.dask_files import BLOCK
from hubless.outofcore.dask.dask_objects import ROOM
from hubless.outofcore.pair_sums import group_size
from hubless.outofcore.sampling import READING, n_sources

from .record import Options

OBJECTS, D, ITEM = 1_000_000_000, 768, 4  # float32
CLASSES, EXPONENTS, WORKERS = (1_000, 100_000), (0.0, 0.5, 1.0, 1.5), 256
READ = READING / 2  # comparisons, of 2 d operations each, that take as long as reading and checking an object


def measure(options: Options) -> dict[str, Any]:
    """Return the work of the busiest worker over the mean, for every skew."""
    n = OBJECTS // 1000 if options.quick else OBJECTS
    classes = (100,) if options.quick else CLASSES
    rows = [
        of_sizes(zipf_sizes(n, n_classes, exponent), exponent)
        for n_classes in classes
        for exponent in EXPONENTS
    ]
    return {"zipf": {"settings": {"objects": n, "d": D, "workers": WORKERS}, "rows": rows}}


def zipf_sizes(n: int, n_classes: int, exponent: float) -> np.ndarray:
    """Return sizes n_c ∝ c^(−exponent), at least 2, n in all."""
    share = np.arange(1, n_classes + 1) ** -exponent
    sizes = np.maximum(2, np.floor(n * share / share.sum())).astype(np.int64)
    sizes[0] += n - sizes.sum()
    return sizes


def of_sizes(sizes: np.ndarray, exponent: float) -> dict[str, Any]:
    """Return how evenly workers are busy with the sources of one group."""
    n, m = int(sizes.sum()), n_sources(sizes, D, 1, "auto")
    group = min(m, group_size(ROOM, D, ITEM, 1))
    tasks = work_of_blocks(sizes, group / n * sizes, BLOCK // (D * ITEM))
    return {
        "classes": len(sizes),
        "exponent": exponent,
        "largest class": int(sizes.max()),
        "sources": m,
        "groups": -(-m // group),
        "tasks": len(tasks),
        "heaviest task over mean": float(tasks.max() / tasks.mean()),
        "busiest over mean": busiest(np.sort(tasks), WORKERS),
    }


# Σ_c n_cb (s_c + READ): each object of a block is read, and compared with the sources of its class
def work_of_blocks(sizes: np.ndarray, sources: np.ndarray, size: int) -> np.ndarray:
    """Return the work of each block of `size` objects, sorted by class, in comparisons.

    Parameters
    ----------
    sizes, sources : objects and sources of each class
    """
    ends = np.append(np.arange(size, sizes.sum(), size), sizes.sum())
    until = np.interp(ends, np.cumsum([0, *sizes]), np.cumsum([0, *sizes * (sources + READ)]))
    return np.diff(until, prepend=0.0)


def busiest(tasks: np.ndarray, workers: int) -> float:
    """Return the work of the busiest worker over the mean, when each task goes to the one that is free."""
    free = [0.0] * workers
    for work in tasks.tolist():
        heapq.heappush(free, heapq.heappop(free) + work)
    return max(free) / (float(tasks.sum()) / workers)
