"""Squared distances of pairs from direct differences: those that decide, and those that only compare."""

from collections.abc import Iterable
from typing import Any

import array_api_compat as compat
import numpy as np

from ..arrays import Array, is_on_cpu, namespace, take_rows
from ..arrays.devices import kernels
from ..arrays.library import blocks
from .ranking import Candidates, Cells

PAIR_NUMBERS = 1 << 17  # numbers gathered at once for direct differences: they should fit into the cache
DEVICE_PAIR_NUMBERS = 1 << 27  # the same on an accelerator, where many small steps are slow


# Σ (x − z)², times scale²
def squared_distances(queries: Array, objects: Array, row: Array, column: Array, scale: float = 1.0) -> Array:
    """Return the squared distance of each pair (queries[row], objects[column]) in float64."""
    xp = namespace(queries, objects)
    at_once = PAIR_NUMBERS if is_on_cpu(row) else DEVICE_PAIR_NUMBERS
    parts = blocks(row.shape[0], max(1, at_once // queries.shape[1]))
    if compat.is_numpy_namespace(xp):
        return _squared_distances_in_place(queries, objects, row, column, scale, parts)
    squared = []
    for part in parts:
        x, z = take_rows(queries, row[part]), take_rows(objects, column[part])
        difference = (xp.astype(x, xp.float64) - xp.astype(z, xp.float64)) * scale
        squared.append(_row_sums(difference * difference))
    return xp.concat(squared)


# Every block takes the memory of the first. Where freed memory goes back to the system at once, as it does in
# workers of Dask, new arrays for each block cost several times the work itself.
def _squared_distances_in_place(
    queries: np.ndarray,
    objects: np.ndarray,
    row: np.ndarray,
    column: np.ndarray,
    scale: float,
    parts: Iterable[slice],
) -> np.ndarray:
    squared, parts = np.empty(len(row)), list(parts)
    shape = (max((part.stop - part.start for part in parts), default=0), queries.shape[1])
    x, z, terms = np.empty(shape, queries.dtype), np.empty(shape, objects.dtype), np.empty(shape)
    for part in parts:
        here = slice(part.stop - part.start)
        np.take(queries, row[part], axis=0, out=x[here], mode="clip")  # the default mode copies once more
        np.take(objects, column[part], axis=0, out=z[here], mode="clip")
        difference = np.subtract(x[here], z[here], out=terms[here], dtype=np.float64)
        difference *= scale
        difference *= difference
        squared[part] = _row_sums(difference)
    return squared


# Σ (x − z)², times scale², in the precision of the points. Differences err by the unit roundoff u of their
# size, so the sum errs by at most (d + 3) u of itself, whatever the order of its terms.
def close_distances(xp: Any, queries: Array, objects: Array, cells: Cells, scale: float = 1.0) -> Candidates:
    """Replace the values of cells by squared distances from direct differences."""
    dtype = xp.result_type(queries.dtype, objects.dtype)
    squared = _pair_distances(xp, queries, objects, cells, scale, dtype)
    value, limits = xp.astype(squared, xp.float64), xp.finfo(dtype)
    d = queries.shape[1]
    error = 0.6 * (d + 4) * float(limits.eps) * value + (3 * d + 4) * float(limits.smallest_normal)
    return Candidates(cells._replace(value=value), error)


def _pair_distances(xp: Any, queries: Array, objects: Array, cells: Cells, scale: float, dtype: Any) -> Array:
    compiled = kernels(cells.row)
    if compiled is not None:
        return compiled.pair_distances(queries, objects, cells.row, cells.column, scale, dtype)
    d = queries.shape[1]
    at_once = max(1, (PAIR_NUMBERS if is_on_cpu(cells.row) else DEVICE_PAIR_NUMBERS) // d)
    in_place = compat.is_numpy_namespace(xp) and queries.dtype == objects.dtype
    room = np.empty((2, min(at_once, len(cells.row)), d), dtype) if in_place else None  # for x and z
    squared = []
    for part in blocks(cells.row.shape[0], at_once):
        row, column = cells.row[part], cells.column[part]
        if room is None:
            x, z = take_rows(queries, row), take_rows(objects, column)
            difference = xp.astype(x, dtype, copy=False) - xp.astype(z, dtype, copy=False)
        else:  # the memory of the first block serves all
            x, z = room[:, : len(row)]
            np.take(queries, row, axis=0, out=x, mode="clip")
            np.take(objects, column, axis=0, out=z, mode="clip")
            difference = np.subtract(x, z, out=x)
        if scale != 1.0:
            difference *= scale
        squared.append(xp.vecdot(difference, difference))
    return xp.concat([xp.astype(cells.value[:0], dtype), *squared])


def _row_sums(terms: Array) -> Array:
    """Sum each row by halves, an order that every array library keeps, so that all see the same ties.

    `terms` is overwritten.
    """
    width = terms.shape[1]
    while width > 1:
        half = width // 2
        left = terms[:, :half]
        left += terms[:, half : 2 * half]  # `terms[:, :half] += …` would also copy the sums, in torch
        if width % 2:
            terms[:, half] = terms[:, width - 1]
        width -= half
    return terms[:, 0]
