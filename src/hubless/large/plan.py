"""How classes are spread over tasks: small ones packed together by their work, large ones cut into chunks."""

import heapq
from typing import NamedTuple

import numpy as np

TASKS = 64  # no task has more than this part of the work, unless that is little
LITTLE = 1 << 30  # comparisons of an object with another that are not worth a task of their own
READ = 64  # what reading an object costs, in comparisons


class Bins(NamedTuple):
    """Which task has which classes."""

    first: np.ndarray  # (classes,), int64: the bin of a class, or of its first chunk
    chunks: np.ndarray  # (classes,), int64: chunks that it is cut into, each in a bin of its own
    groups: np.ndarray  # (classes,), int64: groups of its sources, each of which meets each chunk in a task
    n: int  # bins in all; those of whole classes come first

    @property
    def cut(self) -> np.ndarray:
        """The classes that are cut into chunks."""
        return np.flatnonzero(self.chunks > 1)

    @property
    def n_whole(self) -> int:
        return self.n - int(self.chunks[self.chunks > 1].sum())

    def chunk_rows(self, sizes: np.ndarray) -> np.ndarray:
        """Objects of a chunk of each class; int64 (classes,)."""
        return -(-sizes // self.chunks)


def work_of(sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Comparisons that the classes cost, n_c s_c, and reading them; float64."""
    return sizes.astype(np.float64) * (counts + READ)


# Longest first, each into the bin with the least: no bin has more than the mean and one class together.
def pack(sizes: np.ndarray, counts: np.ndarray, at_once: int, most: float | None = None) -> Bins:
    """Bins of at most `at_once` objects, alike in work.

    Parameters
    ----------
    sizes, counts : int64 arrays of shape (classes,): objects and sources of each class
    at_once : objects that a task may hold
    most : work of a task, in comparisons; by default 1/64 of all

    Notes
    -----
    A class that exceeds a task is cut into m chunks, and its sources into g groups of whole chunks: each
    group meets each chunk, in g · m tasks. Of a sample there is one group; of all objects there are as many
    as chunks.
    """
    work = work_of(sizes, counts)
    most = max(LITTLE, work.sum() / TASKS) if most is None else most
    chunks, groups = -(-sizes // at_once), -(-counts // at_once)
    chunks, groups = np.maximum(1, chunks), np.maximum(1, groups)
    # a task has s_c / g sources and n_c / m objects; where that is too much work, cut finer what is larger
    finer = np.ceil(work / (chunks * groups * most)).astype(np.int64)
    by_both = (sizes / chunks <= counts / groups * 2) & (finer > 1)
    root = np.ceil(np.sqrt(finer)).astype(np.int64)
    chunks = chunks * np.where(by_both, root, np.maximum(1, finer))
    chunks = np.minimum(chunks, np.maximum(1, sizes))
    groups = np.minimum(groups * np.where(by_both, root, 1), chunks)
    whole = np.flatnonzero(chunks == 1)
    first = np.zeros(len(sizes), dtype=np.int64)
    n = max(1, int(np.ceil(max(sizes[whole].sum() / at_once, work[whole].sum() / most)))) if len(whole) else 0
    bins = [(0.0, number, 0) for number in range(n)]  # work, number, objects
    for code in whole[np.argsort(-work[whole], kind="stable")].tolist():
        load, number, held = heapq.heappop(bins)
        if held and held + sizes[code] > at_once:
            heapq.heappush(bins, (load, number, held))
            load, number, held, n = 0.0, n, 0, n + 1
        heapq.heappush(bins, (load + work[code], number, held + int(sizes[code])))
        first[code] = number
    cut = np.flatnonzero(chunks > 1)
    first[cut] = n + np.cumsum(chunks[cut]) - chunks[cut]
    return Bins(first, chunks, groups, n + int(chunks[cut].sum()))
