"""The exact search behind `nearest`, for arrays that were checked: the only hot loop of the library."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from .arrays import Array, blocks, count, input_rounding, kth_smallest, map_blocks, namespace, true_positions

QUERY_ROWS = 256  # queries of one product: enough for a fast product, few enough to stay in cache
OBJECT_ROWS = 16_384  # objects of one product
BLOCK = 64  # columns that share one minimum
SAMPLE = 256  # objects looked at to choose the origin and the unit of the products
MAX_CANDIDATES = 1 << 20  # (query, object) candidates held at once, by each thread
PAIR_NUMBERS = 1 << 20  # numbers gathered at once for direct differences


def search(
    queries: Array, objects: Array, k: int, *, return_distance: bool = True, exclude_self: bool = False
) -> Any:
    """`nearest` for arrays that were checked before."""
    xp = namespace(queries, objects)
    frame = _frame(xp, queries, objects)
    with _overflow_is_handled():
        norms = _squared_norms(xp, objects, frame)
    wanted = k + 1 if exclude_self else k
    reachable, stored = _reachable(xp, objects, norms, wanted), objects
    if reachable is not None:
        objects, norms = xp.take(objects, reachable, axis=0), xp.take(norms, reachable)

    def search_block(rows: slice) -> tuple[Array, ...]:
        asked = queries[rows, :]
        with _overflow_is_handled():  # here, since each thread has a state of its own
            index = _search(xp, asked, objects, norms, frame, wanted)
            if reachable is not None:
                index = xp.reshape(xp.take(reachable, xp.reshape(index, (-1,))), index.shape)
            if exclude_self:
                own = xp.arange(rows.start, rows.stop, dtype=index.dtype, device=compat.device(index))
                index = without(xp, index, index, own)
            return (index, _distances(xp, asked, stored, index, frame)) if return_distance else (index,)

    found = [
        xp.concat(part)
        for part in zip(*map_blocks(xp, search_block, queries.shape[0], QUERY_ROWS), strict=True)
    ]
    return (found[1], found[0]) if return_distance else found[0]


def _overflow_is_handled() -> np.errstate:
    """No warnings: a value that overflows stays a candidate, and float64 differences decide."""
    return np.errstate(over="ignore", invalid="ignore")


class _Frame(NamedTuple):
    """Origin and unit of the products. Any choice is right; a good one rounds little and never overflows."""

    dtype: Any
    shift: Array  # (d,), subtracted from queries, and from objects where `recentre`
    scale: float  # power of two that multiplies differences
    recentre: bool  # whether the products need shifted copies of the objects
    offset: float  # ‖shift‖ left in the objects: 0 where they are recentred


def _frame(xp: Any, queries: Array, objects: Array) -> _Frame:
    dtype = xp.result_type(queries.dtype, objects.dtype)
    step = max(1, objects.shape[0] // SAMPLE)
    sample = xp.astype(objects[::step, :], xp.float64)
    peak = float(xp.max(xp.abs(sample)))
    scale = 1.0
    if peak > 0 and not 1e-6 < peak < 1e6:  # squares must neither overflow nor vanish
        scale = 2.0 ** -round(min(max(math.log2(peak), -1000), 1000))
    shift = xp.mean(sample * scale, axis=0)
    spread = float(xp.sum(xp.var(sample * scale, axis=0)))
    length = float(xp.sum(shift * shift))
    recentre = scale != 1.0 or length > 4 * spread
    offset = 0.0 if recentre else length**0.5
    return _Frame(dtype, xp.astype(shift / scale, dtype), scale, recentre, offset)


def _shifted(xp: Any, points: Array, frame: _Frame) -> Array:
    points = xp.astype(points, frame.dtype, copy=False) - frame.shift
    return points if frame.scale == 1.0 else points * frame.scale


def _squared_norms(xp: Any, objects: Array, frame: _Frame) -> Array:
    shifted = (_shifted(xp, objects[rows, :], frame) for rows in blocks(objects.shape[0], OBJECT_ROWS))
    return xp.concat([xp.vecdot(block, block, axis=-1) for block in shifted])


# An object with as many identical objects before it as neighbours are wanted is nobody's neighbour.
def _reachable(xp: Any, objects: Array, norms: Array, wanted: int) -> Array | None:
    """Rows worth searching, or None for all: leaves out the surplus of objects that occur very often.

    Without it, a query near thousands of identical objects (empty documents, say) compares them all by
    differences. Equal norms, which are cheap to find, tell whether to look.
    """
    n = objects.shape[0]
    if n <= wanted or _equal_neighbours(xp, xp.sort(norms)).shape[0] < max(wanted, n // 256):
        return None
    direction = np.random.default_rng(0).standard_normal(objects.shape[1])
    direction = xp.asarray(direction, dtype=objects.dtype, device=compat.device(objects))
    parts = blocks(n, OBJECT_ROWS)
    key = xp.concat([xp.vecdot(objects[rows, :], direction[None, :], axis=-1) for rows in parts])
    order = xp.argsort(key, stable=True)  # identical objects side by side, by index
    places = _equal_neighbours(xp, xp.take(key, order))  # places that may be followed by an identical object
    same = [places[:0]]
    for part in blocks(places.shape[0], QUERY_ROWS):
        here = places[part]
        pair = [xp.take(objects, xp.take(order, place), axis=0) for place in (here, here + 1)]
        same.append(here[xp.all(pair[0] == pair[1], axis=1)])
    run = xp.cumulative_sum(count(xp.concat(same), n - 1), include_initial=True)  # (n,)
    surplus = order[wanted:][run[wanted:] - run[:-wanted] == wanted]
    return xp.nonzero(count(surplus, n) == 0)[0] if surplus.shape[0] else None


def _equal_neighbours(xp: Any, ordered: Array) -> Array:
    """Places of a sorted array that are followed by an equal number."""
    return xp.nonzero(ordered[1:] == ordered[:-1])[0]


def _search(xp: Any, queries: Array, objects: Array, norms: Array, frame: _Frame, k: int) -> Array:
    """Indices of the k nearest objects of each query, in order; shape (m, k)."""
    m = queries.shape[0]
    found = _candidates(xp, queries, objects, norms, frame, k)
    if found is None:  # too many equal distances to hold at once: fewer queries at a time
        halves = (queries[: m // 2, :], queries[m // 2 :, :])
        return xp.concat([_search(xp, half, objects, norms, frame, k) for half in halves])
    row, column, value, error = found
    starts = xp.cumulative_sum(count(row, m), include_initial=True)[:-1]  # of each row in the order
    order = _sorted_by(xp, value, row)
    close = _close(xp, xp.take(row, order), xp.take(value, order), error)
    if bool(xp.any(close)):

        def direct(some: Array) -> Array:
            return _direct(xp, queries, objects, xp.take(row, some), xp.take(column, some), frame)

        order = _settled(xp, order, close, direct)
    places = starts[:, None] + xp.arange(k, dtype=starts.dtype, device=compat.device(starts))[None, :]
    return xp.reshape(xp.take(column, xp.take(order, xp.reshape(places, (-1,)))), (m, k))


# value(x, z) = ‖z − s‖² − 2 (x − s)ᵀz, which orders objects as ‖x − z‖² does: they differ by
# ‖x − s‖² + 2 (x − s)ᵀs, the same for every z (the second term vanishes where z is recentred to z − s).
#
# Selection. Take the smallest value of each block of columns. The k-th smallest of these minima, t, is at
# least the k-th smallest value, so every neighbour has a value ≤ t, and few others have: one pass for the
# minima and one comparison replace a sort of whole rows. Blocks interleave (column j is in block j mod b),
# because stored objects often come sorted by class and the neighbours of a query are then adjacent.
#
# Rounding. A neighbour lies within r = √t' of x (t' as a squared distance), so it and x have norms of at
# most R = ‖x − s‖ + r + ‖s‖, and its computed value errs by at most
# R² ((3d + 4) u + 2 v) with u the unit roundoff and v the rounding of the factors (TF32). The code allows a
# little more, for the rounding of r itself, and for squares that vanish. Objects up to
# t + 2 · error are kept as candidates, so no neighbour is lost to rounding. `~(a > b)` keeps overflows in.
def _candidates(xp: Any, queries: Array, objects: Array, norms: Array, frame: _Frame, k: int) -> Any:
    m, d = queries.shape
    x = _shifted(xp, queries, frame)
    length = xp.astype(xp.linalg.vector_norm(x, axis=1), xp.float64)  # (m,)
    constant = length**2
    if not frame.recentre:
        constant = constant + 2 * xp.astype(x @ frame.shift, xp.float64)
    rounding = (2 * d + 4) * float(xp.finfo(frame.dtype).eps) + 4 * input_rounding(x)
    underflow = (3 * d + 4) * float(xp.finfo(frame.dtype).smallest_normal)
    twice = -2 * x
    bound = xp.full((m,), xp.inf, dtype=xp.float64, device=compat.device(x))  # t, falling block by block
    rows, columns, values, held = [], [], [], 0
    for part in blocks(objects.shape[0], OBJECT_ROWS):
        z = objects[part, :]
        z = _shifted(xp, z, frame) if frame.recentre else xp.astype(z, frame.dtype, copy=False)
        value = twice @ z.T
        value += norms[part]  # (m, objects of this block)
        minima = _block_minima(xp, value, k)
        if minima.shape[1] >= k:
            bound = xp.minimum(bound, xp.astype(kth_smallest(minima, k), xp.float64))
        radius = length + xp.sqrt(xp.clip(bound + constant, min=0.0)) + frame.offset
        error = radius**2 * rounding + underflow  # (m,)
        limit = xp.astype(bound + 2 * error, frame.dtype)
        row, column = true_positions(~(value > limit[:, None]))
        held += row.shape[0]
        if held > MAX_CANDIDATES and m > 1:
            return None
        rows.append(row)
        columns.append(column + part.start)
        values.append(xp.astype(value[row, column], xp.float64))
    return xp.concat(rows), xp.concat(columns), xp.concat(values), error


def _block_minima(xp: Any, value: Array, k: int) -> Array:
    """Minimum of every block of columns, of at least 4k blocks; columns left over stand for themselves."""
    m, n = value.shape
    size = max(1, min(BLOCK, n // (4 * k)))
    whole = n // size * size  # columns that fill blocks
    minima = xp.min(xp.reshape(value[:, :whole], (m, size, n // size)), axis=1) if size > 1 else value
    return xp.concat([minima, value[:, whole:]], axis=1) if whole < n else minima


def _sorted_by(xp: Any, *keys: Array) -> Array:
    """Order by the last key, then the one before it, and so on; equal ones keep their order."""
    order = xp.argsort(keys[0], stable=True)
    for key in keys[1:]:
        order = xp.take(order, xp.argsort(xp.take(key, order), stable=True))
    return order


def _close(xp: Any, row: Array, value: Array, error: Array) -> Array:
    """Places in the order whose value the product cannot tell from that of the next place."""
    left = row[:-1]
    return ~(value[1:] - value[:-1] > 2 * xp.take(error, left)) & (row[1:] == left)


def _settled(xp: Any, order: Array, close: Array, direct: Callable[[Array], Array]) -> Array:
    """The order, with each run of close values in that of direct differences (candidates rise by column)."""
    last = xp.zeros_like(close[:1])
    inside = xp.concat([close, last]) | xp.concat([last, close])
    run = xp.cumulative_sum(xp.astype(~close, xp.int64), include_initial=True)
    places, others = xp.nonzero(inside)[0], xp.nonzero(~inside)[0]
    some = xp.take(order, places)
    some = xp.take(some, _sorted_by(xp, some, xp.take(run, places)))  # by run, and by column within it
    some = xp.take(some, _sorted_by(xp, direct(some), xp.take(run, places)))
    mixed = xp.concat([some, xp.take(order, others)])
    return xp.take(mixed, xp.argsort(xp.concat([places, others])))


def _distances(xp: Any, queries: Array, objects: Array, index: Array, frame: _Frame) -> Array:
    """‖x − z‖ of each query and its neighbours; shape (m, k)."""
    m, k = index.shape
    row = xp.arange(m * k, dtype=index.dtype, device=compat.device(index)) // k
    squared = _direct(xp, queries, objects, row, xp.reshape(index, (-1,)), frame)
    return xp.reshape(xp.astype(xp.sqrt(squared) / frame.scale, frame.dtype), (m, k))


def _direct(xp: Any, queries: Array, objects: Array, row: Array, column: Array, frame: _Frame) -> Array:
    """Σ (x − z)² of each pair, from differences in float64, a slice of pairs at a time; times scale²."""
    squared = []
    for part in blocks(row.shape[0], max(1, PAIR_NUMBERS // queries.shape[1])):
        x, z = xp.take(queries, row[part], axis=0), xp.take(objects, column[part], axis=0)
        difference = xp.astype(x, xp.float64) - xp.astype(z, xp.float64)
        if frame.scale != 1.0:
            difference = difference * frame.scale
        squared.append(_row_sums(xp, difference * difference))
    return xp.concat(squared)


def _row_sums(xp: Any, terms: Array) -> Array:
    """Sum of each row by halves, an order that every array library keeps, so that all see the same ties."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        odd = terms[:, 2 * half :]  # one column or none
        terms = xp.concat([terms[:, :half] + terms[:, half : 2 * half], odd], axis=1)
    return terms[:, 0]


def without(xp: Any, values: Array, numbers: Array, own: Array) -> Array:
    """Values less one in each row: where the number is the row's own, else the last."""
    m, wide = values.shape
    drop = numbers == own[:, None]
    last = xp.arange(wide, device=compat.device(numbers)) == wide - 1
    drop = drop | (~xp.any(drop, axis=1)[:, None] & last[None, :])
    return xp.reshape(values[~drop], (m, wide - 1))
