"""Folding, which hubless leaves out: a lower bound of the distance in few columns, beside low precision.

Points are rotated to the principal axes of a sample of the objects; r of these stay, and the length of the
rest becomes one more column. Distances in the r + 1 columns are never above the true ones, so only objects
that are within the k-th smallest distance known so far have to be compared in all columns.
"""

from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import hubless
from hubless.arrays.library import blocks
from hubless.arrays.products import limit_blas
from hubless.neighbors.differences import close_distances, squared_distances
from hubless.neighbors.frame import ignore_overflow
from hubless.neighbors.ranking import Cells, Minima, cells_within, most_cells, rank

from . import search
from .record import Options
from .search_data import CASES, Question
from .timing import Contender, race

DATA = ("banking77", "SciFact", "News", "CUB")  # real vectors: synthetic ones have no principal axes
COLUMNS = (64, 96, 128)  # r + 1
SAMPLE = 2048  # objects that the axes are learned from
TILE = 1536, 8192  # queries and objects of one product, as in `hubless.neighbors.search`
KNOWN = 3  # times k objects of the smallest bounds, whose distances are computed first
TOO_MANY = "the bound leaves too many objects"
ROUNDING = 1e-5  # share by which sums in float32 may err, generously


class Folded(NamedTuple):
    """Points in the principal columns."""

    z: np.ndarray  # (n, r)
    rest: np.ndarray  # (n,), ‖z − s‖ in all other columns
    squared: np.ndarray  # (n,), ‖z − s‖²


def axes(objects: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of a sample, and its r first principal axes as columns."""
    sample = objects[:: max(1, len(objects) // SAMPLE)]
    mean = sample.mean(axis=0)
    vectors = np.linalg.eigh((sample - mean).T @ (sample - mean))[1]
    return mean, np.ascontiguousarray(vectors[:, : -r - 1 : -1])


def fold(points: np.ndarray, mean: np.ndarray, vectors: np.ndarray) -> Folded:
    """Rotate points, and fold all but the first columns into one length."""
    centred = points - mean
    z = centred @ vectors
    squared = np.vecdot(centred, centred)
    return Folded(z, np.sqrt(np.maximum(squared - np.vecdot(z, z), 0)), squared)


# ‖x − z‖² ≥ ‖x_r − z_r‖² + (x_rest − z_rest)² = ‖x‖² + (−2 x_r, −2 x_rest, 1) (z_r, z_rest, ‖z‖²)ᵀ
def folded_search(question: Question, columns: int) -> np.ndarray:
    """Return the k nearest objects of each query, exactly; everything is done anew, as `nearest` does."""
    queries, objects, k = question.queries, question.objects, question.k
    how = axes(objects, min(columns - 1, objects.shape[1]))
    stored = fold(objects, *how)
    right = np.column_stack([stored.z, stored.rest, stored.squared])

    def search_block(x: np.ndarray) -> np.ndarray:
        m, asked, limit, parts = len(x), fold(x, *how), None, []
        left = np.column_stack([-2 * asked.z, -2 * asked.rest, np.ones(m, np.float32)])
        for part in blocks(len(objects), TILE[1]):
            value = left @ right[part].T
            minima = Minima.of(np, value, k)
            if limit is None:
                reach = _kth_known(x, objects[part], value, minima, k)
                limit = (reach - asked.squared + ROUNDING * (asked.squared + reach)).astype(np.float32)
            cells = cells_within(np, value, minima, limit)
            parts.append(cells._replace(column=cells.column + part.start))
            if sum(len(cells.row) for cells in parts) > most_cells(value):
                raise ValueError(TOO_MANY)
        found = close_distances(np, x, objects, Cells.joined(np, parts))
        with ignore_overflow():
            index = rank(np, found.cells, m, k, found.error, partial(squared_distances, x, objects))
        if index is None:
            raise ValueError(TOO_MANY)
        return index

    return np.concatenate([search_block(queries[part]) for part in blocks(len(queries), TILE[0])])


def _kth_known(x: np.ndarray, objects: np.ndarray, value: np.ndarray, minima: Minima, k: int) -> np.ndarray:
    """Return the k-th smallest distance, squared, of each query from the objects of the smallest bounds."""
    m, count = minima.values.shape
    width = min(KNOWN * k, count)
    block = np.argpartition(minima.values, width - 1, axis=1)[:, :width]
    view = value[:, : count * minima.size].reshape(m, minima.size, count)
    column = view[np.arange(m)[:, None], :, block].argmin(axis=2) * count + block
    cells = Cells(np.repeat(np.arange(m), width), column.reshape(-1), np.zeros(m * width, np.float32))
    known = close_distances(np, x, objects, cells).cells.value.reshape(m, width)
    return np.partition(known, k - 1, axis=1)[:, k - 1]


def hubless_bfloat16(question: Question) -> Contender:
    return lambda: hubless.nearest(*question[:3], return_distance=False, precision="bfloat16")


def folding(question: Question, columns: int) -> Contender:
    return lambda: folded_search(question, columns)


CONTENDERS = {
    "bare product": search.bare_product,
    "hubless, bfloat16": hubless_bfloat16,
    "hubless, float32": search.hubless_float32,
    **{f"folding, {columns} columns": partial(folding, columns=columns) for columns in COLUMNS},
}


def measure(options: Options) -> dict[str, Any]:
    """Measure processor seconds on one thread, which other programs on the machine disturb least."""
    cases = {}
    for name, make in CASES.items():
        if not name.startswith(DATA):
            continue
        question = make(options.quick)
        how = {"title": f"folding {name}", "clock": process_time}
        timed = partial(race, repeats=options.repeats, **how)
        with limit_blas(1):
            cases[name] = search.outcome(question, CONTENDERS, "hubless, float32", timed)
    return cases
