"""From rounded values to exact neighbours: which cells may be among the k smallest of a row, in which order.

A value is a squared distance up to a constant of its row, as a matrix product gives it: fast, and rounded.
Here the cells whose order rounding leaves open are found, and settled by differences in float64.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import array_api_compat as compat

from ..arrays import (
    Array,
    is_on_cpu,
    kth_smallest,
    namespace,
    pick_blocks,
    put,
    smallest_of_blocks,
    take_cells,
    take_rows,
    tally,
    true_positions,
)

CROWDED = 8  # times the mean number of cells of a row: more are ranked apart, if needed
WIDE = 2  # times k cells are worth a look before they are sorted
BLOCK = 32  # columns that share one minimum
MAX_CANDIDATES = 1 << 20  # (query, object) candidates held at once, by each thread
DEVICE_CANDIDATES = 1 << 24  # the same on an accelerator


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
        return Minima(smallest_of_blocks(_in_blocks(xp, value, size)) if size > 1 else value, size)


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
        (places,) = namespace(kept).nonzero(kept)  # once for all three: the host waits for an accelerator
        return Cells(*(take_rows(part, places) for part in self))

    @staticmethod
    def concatenated(xp: Any, parts: list["Cells"]) -> "Cells":
        """Return the cells of several parts of a matrix, part by part."""
        return parts[0] if len(parts) == 1 else Cells(*map(xp.concat, zip(*parts, strict=True)))

    @staticmethod
    def joined(xp: Any, parts: list["Cells"]) -> "Cells":
        """Merge the cells of several parts of a matrix, row by row again."""
        return parts[0] if len(parts) == 1 else Cells.concatenated(xp, parts).in_order(xp)

    def in_order(self, xp: Any) -> "Cells":
        """Return the cells row by row, each row's in the order that they have here."""
        order = xp.argsort(self.row, stable=True)
        return Cells(*(take_rows(part, order) for part in self))


class Candidates(NamedTuple):
    """The cells that may be among the k smallest of their row, or more."""

    cells: Cells
    error: Array  # how far the value of each cell may be from the truth


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


def most_cells(like: Array) -> int:
    """Return how many cells may be held at once, on the device of an array."""
    return MAX_CANDIDATES if is_on_cpu(like) else DEVICE_CANDIDATES


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
    if m > 1 and cells.row.shape[0] > most_cells(cells.row):
        return None
    if m > 1 and m * width // 4 > most_cells(cells.row):  # a few rows may have very many
        is_wide = sizes > CROWDED * max(k, cells.row.shape[0] // m)
        n_wide = int(xp.sum(xp.astype(is_wide, xp.int64)))
        return _rank_apart(xp, cells, is_wide, k, error, direct) if 0 < n_wide < m else None
    if widest == 0:
        return xp.full((m, k), -1, dtype=xp.int64, device=compat.device(sizes))
    if widest > WIDE * k:
        cells, error = _nearest_cells(xp, cells, error, _Padding.of(xp, sizes, widest), k)
        sizes = tally(cells.row, m)
        width = max(int(xp.max(sizes)), k)
    # the cells of each row in order of value; the rest of a row is filled with columns −1 at infinity
    padding = _Padding.of(xp, sizes, width)
    value = padding.spread(xp, xp.astype(cells.value, xp.float64), xp.inf)
    value = xp.where(xp.isnan(value), xp.inf, value)
    order = xp.argsort(value, axis=1, stable=True)
    value = take_cells(value, order)
    column = take_cells(padding.spread(xp, cells.column, -1), order)
    # one error for all cells of a row: if each cell had its error, comparing adjacent places would not be
    # enough to find all that may be in the wrong order
    error = xp.max(padding.spread(xp, error, 0.0), axis=1)
    close = _find_close(xp, value, error, k) & padding.is_cell[:, 1:]
    if bool(xp.any(close)):
        column = _settle(xp, column, close, direct)
    return column[:, :k]


def _rank_apart(
    xp: Any, cells: Cells, is_wide: Array, k: int, error: Array, direct: Callable[[Array, Array], Array]
) -> Array | None:
    """Do as `rank` does, for rows with very many cells apart from all others."""
    results, numbers = [], []
    for chosen in (~is_wide, is_wide):
        (rows,) = xp.nonzero(chosen)
        place = xp.cumulative_sum(xp.astype(chosen, xp.int64)) - 1  # of each row among the chosen
        kept = take_rows(chosen, cells.row)
        part = cells.where(kept)
        part = part._replace(row=take_rows(place, part.row))

        def direct_of_rows(row: Array, column: Array, rows: Array = rows) -> Array:
            return direct(take_rows(rows, row), column)

        columns = rank(xp, part, rows.shape[0], k, error[kept], direct_of_rows)
        if columns is None:
            return None
        results.append(columns)
        numbers.append(rows)
    return take_rows(xp.concat(results), xp.argsort(xp.concat(numbers)))


class _Padding(NamedTuple):
    """Where the cells of each row go, in rows of one width."""

    is_cell: Array  # (m, width)
    source: Array  # (m · width,), the cell of each place, or any

    @staticmethod
    def of(xp: Any, sizes: Array, width: int) -> "_Padding":
        step = xp.arange(width, dtype=xp.int64, device=compat.device(sizes))
        starts = xp.cumulative_sum(sizes, include_initial=True)[:-1]
        is_cell = step[None, :] < sizes[:, None]
        return _Padding(is_cell, xp.reshape(xp.where(is_cell, starts[:, None] + step[None, :], 0), (-1,)))

    def spread(self, xp: Any, numbers: Array, rest: float) -> Array:
        """Return the number of each cell at its place, and `rest` where there is no cell."""
        return xp.where(self.is_cell, xp.reshape(take_rows(numbers, self.source), self.is_cell.shape), rest)


# Of k cells the true values are at most t, the k-th smallest of value + error, so a neighbour's is, too.
def _nearest_cells(xp: Any, cells: Cells, error: Array, padding: _Padding, k: int) -> tuple[Cells, Array]:
    """Leave out the cells that cannot be among the k smallest of their row; return the others, and errors."""
    value = xp.astype(cells.value, xp.float64)
    limit = kth_smallest(padding.spread(xp, value + error, xp.inf), k)
    kept = ~(value - error > take_rows(limit, cells.row))
    return cells.where(kept), error[kept]


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


def drop_self(xp: Any, values: Array, numbers: Array, itself: Array) -> Array:
    """Drop one value of each row: the one whose number is that of the query itself, else the last."""
    m, width = values.shape
    drop = numbers == itself[:, None]
    last = xp.arange(width, device=compat.device(numbers)) == width - 1
    drop = drop | (~xp.any(drop, axis=1)[:, None] & last[None, :])
    return xp.reshape(values[~drop], (m, width - 1))
