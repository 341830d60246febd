"""From rounded values to exact neighbours: which cells may be among the k smallest of a row, in which order.

A value is a squared distance up to a constant of its row, as a matrix product gives it: fast, and rounded.
Here the cells whose order rounding leaves open are found, and settled by differences in float64.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import Array, is_on_cpu, namespace, pick_blocks, put, take_rows, tally, true_positions
from ..arrays.library import blocks

BLOCK = 32  # columns that share one minimum
MAX_CANDIDATES = 1 << 20  # (query, object) candidates held at once, by each thread
DEVICE_CANDIDATES = 1 << 24  # the same on an accelerator
PAIR_NUMBERS = 1 << 17  # numbers gathered at once for direct differences: they should fit into the cache
DEVICE_PAIR_NUMBERS = 1 << 27  # the same on an accelerator, where many small steps are slow


class Minima(NamedTuple):
    """The smallest value of every block of columns; column j is in block j mod `count`.

    Blocks interleave, because stored objects are often sorted by class and the neighbours of a query are then
    adjacent. The last columns, too few for a block, are in none.
    """

    values: Array  # (m, count)
    size: int  # columns of a block

    @staticmethod
    def of(xp: Any, value: Array, k: int) -> "Minima":
        """Take the minima of at least 8k blocks, or the values themselves."""
        size = max(1, min(BLOCK, value.shape[1] // (8 * k)))
        return Minima(xp.min(_in_blocks(xp, value, size), axis=1) if size > 1 else value, size)


def _in_blocks(xp: Any, value: Array, size: int) -> Array:
    """Return the columns that fill blocks; shape (m, size, count)."""
    m, count = value.shape[0], value.shape[1] // size
    return xp.reshape(value[:, : count * size], (m, size, count))


class Cells(NamedTuple):
    """Selected cells of a matrix of values, row by row."""

    row: Array
    column: Array
    value: Array

    def where(self, kept: Array) -> "Cells":
        """Return the cells that a mask keeps."""
        return Cells(self.row[kept], self.column[kept], self.value[kept])

    @staticmethod
    def joined(xp: Any, parts: list["Cells"]) -> "Cells":
        """Merge the cells of several parts of a matrix, row by row again."""
        if len(parts) == 1:
            return parts[0]
        row, column, value = (xp.concat(pieces) for pieces in zip(*parts, strict=True))
        order = xp.argsort(row, stable=True)
        return Cells(take_rows(row, order), take_rows(column, order), take_rows(value, order))


# `~(a > b)` keeps values that overflowed
def cells_within(xp: Any, value: Array, minima: Minima, limit: Array) -> Cells:
    """Find the cells whose value is not above the limit of their row; only in blocks that have such cells."""
    if minima.size == 1:
        row, column = true_positions(~(value > limit[:, None]))
        return Cells(row, column, value[row, column])
    width = minima.values.shape[1]
    row, block = true_positions(~(minima.values > limit[:, None]))
    picked = pick_blocks(_in_blocks(xp, value, minima.size), row, block)  # (blocks picked, size)
    pick, place = true_positions(~(picked > take_rows(limit, row)[:, None]))
    inside = Cells(take_rows(row, pick), place * width + take_rows(block, pick), picked[pick, place])
    whole = width * minima.size
    if whole == value.shape[1]:
        return inside
    row, column = true_positions(~(value[:, whole:] > limit[:, None]))
    return Cells.joined(xp, [inside, Cells(row, column + whole, value[row, column + whole])])


def too_many(cells: Cells, number: int) -> bool:
    """Return whether `number` cells are more than should be held at once."""
    return number > (MAX_CANDIDATES if is_on_cpu(cells.value) else DEVICE_CANDIDATES)


def rank(
    xp: Any, cells: Cells, m: int, k: int, error: Array, direct: Callable[[Array, Array], Array]
) -> Array | None:
    """Return the columns of the k nearest of each of m rows, nearest first, ties to the lower column.

    Parameters
    ----------
    cells : all cells that may be among the k smallest of their row, or more; row by row
    error : how far the value of each cell may be from the truth
    direct : (rows, columns) → their exact squared distances

    Returns
    -------
    columns : int64 array of shape (m, k), −1 where a row has fewer cells; None if they do not fit in memory
    """
    sizes = tally(cells.row, m)
    widest = int(xp.max(sizes))
    width = max(widest, k)
    if m > 1 and (too_many(cells, cells.row.shape[0]) or too_many(cells, m * width // 4)):
        return None
    if widest == 0:
        return xp.full((m, k), -1, dtype=xp.int64, device=compat.device(sizes))
    # the cells of each row in order of value; the rest of a row is filled with columns −1 at infinity
    step = xp.arange(width, dtype=xp.int64, device=compat.device(sizes))
    starts = xp.cumulative_sum(sizes, include_initial=True)[:-1]
    is_cell = step[None, :] < sizes[:, None]
    flat = xp.reshape(xp.where(is_cell, starts[:, None] + step[None, :], 0), (-1,))
    value = xp.reshape(take_rows(xp.astype(cells.value, xp.float64), flat), (m, width))
    value = xp.where(is_cell, value, xp.inf)
    value = xp.where(xp.isnan(value), xp.inf, value)
    order = xp.argsort(value, axis=1, stable=True)
    value = xp.take_along_axis(value, order, axis=1)
    column = xp.where(is_cell, xp.reshape(take_rows(cells.column, flat), (m, width)), -1)
    column = xp.take_along_axis(column, order, axis=1)
    # one error for all cells of a row: if each cell had its error, comparing adjacent places would not be
    # enough to find all that may be in the wrong order
    error = xp.max(xp.where(is_cell, xp.reshape(take_rows(error, flat), (m, width)), 0.0), axis=1)
    close = _find_close(xp, value, error, k) & is_cell[:, 1:]
    if bool(xp.any(close)):
        column = _settle(xp, column, close, direct)
    return column[:, :k]


def _find_close(xp: Any, value: Array, error: Array, k: int) -> Array:
    """Find the places whose value the product cannot tell from that of the next place; (m, width − 1).

    Beyond the first k places only those count that an unbroken run connects with the k-th.
    """
    close = ~(value[:, 1:] - value[:, :-1] > 2 * error[:, None])
    connected = xp.cumulative_sum(xp.astype(~close[:, k - 1 :], xp.int64), axis=1) == 0
    return xp.concat([close[:, : k - 1], connected], axis=1)


def _settle(xp: Any, column: Array, close: Array, direct: Callable[[Array, Array], Array]) -> Array:
    """Sort each run of close values by direct differences, ties by column; return the columns."""
    m, width = column.shape
    last = xp.zeros_like(close[:, :1])
    inside = xp.reshape(xp.concat([close, last], axis=1) | xp.concat([last, close], axis=1), (-1,))
    opens = xp.reshape(xp.concat([~last, ~close], axis=1), (-1,))  # where a run begins
    (places,) = xp.nonzero(inside)
    run = take_rows(xp.cumulative_sum(xp.astype(opens, xp.int64)), places)
    flat = xp.reshape(column, (-1,))
    candidates = take_rows(flat, places)
    order = xp.argsort(candidates, stable=True)
    for key in (direct(places // width, candidates), run):
        order = take_rows(order, xp.argsort(take_rows(key, order), stable=True))
    return xp.reshape(put(flat, places, take_rows(candidates, order)), (m, width))


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


def _row_sums(terms: Array) -> Array:
    """Sum each row by halves, an order that every array library keeps, so that all see the same ties.

    `terms` is overwritten.
    """
    width = terms.shape[1]
    while width > 1:
        half = width // 2
        terms[:, :half] += terms[:, half : 2 * half]
        if width % 2:
            terms[:, half] = terms[:, width - 1]
        width -= half
    return terms[:, 0]


def drop_self(xp: Any, values: Array, numbers: Array, itself: Array) -> Array:
    """Drop one value of each row: the one whose number is that of the query itself, else the last."""
    m, width = values.shape
    drop = numbers == itself[:, None]
    last = xp.arange(width, device=compat.device(numbers)) == width - 1
    drop = drop | (~xp.any(drop, axis=1)[:, None] & last[None, :])
    return xp.reshape(values[~drop], (m, width - 1))
