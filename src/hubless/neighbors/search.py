"""The exact search behind `nearest`, for checked arrays: the only hot loop of the library."""

import math
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import (
    Array,
    input_rounding,
    is_on_cpu,
    kth_smallest,
    namespace,
    row_blocks,
    rows,
    subset,
    take_rows,
    tally,
)
from ..arrays.library import blocks
from ..arrays.products import affine, even_size, map_blocks, workers
from .ranking import Cells, Minima, cells_within, drop_self, rank, squared_distances, too_many

QUERY_ROWS = 3072  # queries of the products of all threads in float32, half as many in float64
OBJECT_ROWS = 8192  # objects of one product
DEVICE_ROWS = 4096, 32_768  # the same on an accelerator, where larger products are faster
RUN = 16  # squares summed in the precision of the points, where float64 would cost another pass
NORM_ROWS = 2048  # objects converted to float64 at once, for their norms
SAMPLE = 256  # objects looked at to choose the origin and the unit of the products


def search(
    queries: Array, objects: Array, k: int, *, return_distance: bool = True, exclude_self: bool = False
) -> Any:
    """Search as `nearest` does, for arrays that are checked already."""
    xp = namespace(queries, objects)
    wanted, stored = k + 1 if exclude_self else k, objects
    with ignore_overflow():
        frame = Frame.of(xp, queries, objects)
        norms = _squared_norms(xp, objects, frame)
        reachable = _reachable(xp, objects, norms, wanted)
    if reachable is not None:
        objects, norms = subset(objects, reachable), take_rows(norms, reachable)

    def search_block(part: slice) -> tuple[Array, ...]:
        batch = rows(queries, part)
        with ignore_overflow():
            index = _search_batch(xp, batch, objects, norms, frame, wanted)
            if reachable is not None:
                index = xp.reshape(take_rows(reachable, xp.reshape(index, (-1,))), index.shape)
            if exclude_self:
                itself = xp.arange(part.start, part.stop, dtype=index.dtype, device=compat.device(index))
                index = drop_self(xp, index, index, itself)
            return (index, _distances(xp, batch, stored, index, frame)) if return_distance else (index,)

    parts = map_blocks(xp, search_block, queries.shape[0], _tile(queries.shape[0], norms)[0])
    index, *distances = (xp.concat(part) for part in zip(*parts, strict=True))
    return (distances[0], index) if return_distance else index


def _tile(n_queries: int, norms: Array) -> tuple[int, int]:
    """Return the numbers of queries and of objects of one product."""
    if not is_on_cpu(norms):
        m, n = DEVICE_ROWS
        return m * min(8, max(1, n // norms.shape[0])), n  # among few objects more queries fit
    wide = norms.dtype == namespace(norms).float64
    return even_size(n_queries, max(1, QUERY_ROWS // (2 * workers() if wide else workers()))), OBJECT_ROWS


def ignore_overflow() -> np.errstate:
    """Silence warnings: a value that overflows stays a candidate, and differences in float64 decide."""
    return np.errstate(over="ignore", invalid="ignore")


def scale_of(points: Array) -> float:
    """Return a power of two such that squares of the points times it neither overflow nor vanish."""
    xp = namespace(points)
    peak = float(xp.max(xp.abs(points)))
    if peak == 0 or 1e-6 < peak < 1e6:
        return 1.0
    return 2.0 ** -round(min(max(math.log2(peak), -1000), 1000))


class Frame(NamedTuple):
    """Origin and unit of the products. Any choice is right; a good one rounds little and never overflows."""

    dtype: Any
    shift: Array  # (d,), subtracted from queries, and from objects where `recentre`
    scale: float  # power of two that multiplies differences
    recentre: bool  # whether the products need shifted copies of the objects
    offset: float  # ‖shift‖ left in the objects: 0 where they are recentred

    @staticmethod
    def of(xp: Any, queries: Array, objects: Array) -> "Frame":
        """Choose a good frame from a sample of the objects."""
        dtype = xp.result_type(queries.dtype, objects.dtype)
        step = max(1, objects.shape[0] // SAMPLE)
        sample = xp.astype(rows(objects, slice(None, None, step)), xp.float64)
        scale = scale_of(sample)
        shift = xp.mean(sample * scale, axis=0)
        spread = float(xp.sum(xp.var(sample * scale, axis=0)))
        length = float(xp.sum(shift * shift))
        recentre = scale != 1.0 or length > 4 * spread
        offset = 0.0 if recentre else length**0.5
        return Frame(dtype, xp.astype(shift / scale, dtype), scale, recentre, offset)

    def shifted(self, points: Array) -> Array:
        """Return (points − shift) · scale; points may have any number of axes."""
        points = namespace(points).astype(points, self.dtype, copy=False) - self.shift
        return points if self.scale == 1.0 else points * self.scale

    # The computed value of an object of norm R (‖z − s‖ + ‖s‖ at most, where it is not shifted) errs by at
    # most 2 (d + 2) u ‖x − s‖ R in the product, whatever the order of its sum, and by (8 + RUN) u R² in the
    # squared norm, which is summed in float64 (or runs of its terms are), and in the last sum; u is the unit
    # roundoff. The code allows a little more, for the rounding of R itself, and for squares that vanish.
    # Factors rounded by v before the product (TF32) add 4 v ‖x − s‖ R at worst. They are taken as they
    # accumulate, with √d and not with d (a sum of d independent errors exceeds 8 standard deviations once in
    # 10¹⁵): TF32 is the user's choice of speed, and its worst case leaves nearly everything in question.
    def error(self, d: int, length: Array, norm: Array) -> Array:
        """Return how far a value may be from the truth, in float64.

        `length` holds ‖x − s‖ of queries and `norm` holds ‖z − s‖ of objects, arrays of one shape.
        """
        xp = namespace(length)
        eps = float(xp.finfo(self.dtype).eps)  # 2 u
        product = (1.1 * d + 4) * eps + 4 * min(1.0, 8 / d**0.5) * input_rounding(self.shift)
        underflow = (3 * d + 4) * float(xp.finfo(self.dtype).smallest_normal)
        norm = norm + self.offset
        return norm * (product * length + (6 + RUN / 2) * eps * norm) + underflow


def _squared_norms(xp: Any, objects: Array, frame: Frame) -> Array:
    def block_norms(part: slice) -> Array:
        with ignore_overflow():  # here, as each thread has its own state
            return squared_lengths(frame.shifted(rows(objects, part)))

    size = NORM_ROWS if is_on_cpu(frame.shift) else DEVICE_ROWS[1]
    return xp.concat(map_blocks(xp, block_norms, objects.shape[0], size))


def squared_lengths(points: Array) -> Array:
    """Return ‖z‖² along the last axis, in the precision of the points; long sums are taken in float64."""
    xp, d = namespace(points), points.shape[-1]
    if is_on_cpu(points) or d % RUN:
        wide = xp.astype(points, xp.float64, copy=False)
        return xp.astype(xp.vecdot(wide, wide, axis=-1), points.dtype)
    runs = xp.sum(xp.reshape(points * points, (*points.shape[:-1], RUN, d // RUN)), axis=-2)
    return xp.astype(xp.sum(runs, axis=-1, dtype=xp.float64), points.dtype)


# An object that follows at least `wanted` identical ones is nobody's neighbour: they are preferred to it.
def _reachable(xp: Any, objects: Array, norms: Array, wanted: int) -> Array | None:
    """Return the rows worth searching, or None for all: without the surplus of objects that occur very often.

    Otherwise a query near thousands of identical objects, such as empty documents, compares them all by
    differences. Equal norms, which are cheap to find, show whether it is worth looking.
    """
    n = objects.shape[0]
    if n <= wanted or _repeated_places(xp, xp.sort(norms)).shape[0] < max(wanted, n // 256):
        return None
    direction = np.random.default_rng(0).standard_normal(objects.shape[1])
    direction = xp.asarray(direction, dtype=objects.dtype, device=compat.device(norms))
    parts = row_blocks(objects, OBJECT_ROWS)
    key = xp.concat([xp.vecdot(z, direction[None, :], axis=-1) for _, z in parts])
    order = xp.argsort(key, stable=True)  # identical objects become adjacent, by index
    places = _repeated_places(xp, take_rows(key, order))  # they may be followed by an identical object
    same = [places[:0]]
    for part in blocks(places.shape[0], QUERY_ROWS):
        first = places[part]
        pair = [take_rows(objects, take_rows(order, place)) for place in (first, first + 1)]
        same.append(first[xp.all(pair[0] == pair[1], axis=1)])
    run = xp.cumulative_sum(tally(xp.concat(same), n - 1), include_initial=True)  # (n,)
    surplus = order[wanted:][run[wanted:] - run[:-wanted] == wanted]
    return xp.nonzero(tally(surplus, n) == 0)[0] if surplus.shape[0] else None


def _repeated_places(xp: Any, ordered: Array) -> Array:
    """Return the places of a sorted array that are followed by an equal number."""
    return xp.nonzero(ordered[1:] == ordered[:-1])[0]


def _search_batch(xp: Any, queries: Array, objects: Array, norms: Array, frame: Frame, k: int) -> Array:
    """Return the indices of the k nearest objects of each query, in order; shape (m, k)."""
    m = queries.shape[0]
    candidates = _candidates(xp, queries, objects, norms, frame, k)
    index = None
    if candidates is not None:
        cells, length = candidates
        norm = xp.sqrt(xp.astype(take_rows(norms, cells.column), xp.float64))
        error = frame.error(queries.shape[1], take_rows(length, cells.row), norm)

        def direct(row: Array, column: Array) -> Array:
            return squared_distances(queries, objects, row, column, frame.scale)

        index = rank(xp, cells, m, k, error, direct)
    if index is not None:
        return index
    halves = (queries[: m // 2, :], queries[m // 2 :, :])  # too many equal distances to hold at once
    return xp.concat([_search_batch(xp, half, objects, norms, frame, k) for half in halves])


# value(x, z) = ‖z − s‖² − 2 (x − s)ᵀz, which orders objects as ‖x − z‖² does: they differ by
# ‖x − s‖² + 2 (x − s)ᵀs, the same for every z (the second term vanishes where z is recentred to z − s).
#
# Selection. Take the smallest value of each block of columns. The k-th smallest of these minima, t, is at
# least the k-th smallest value, so every neighbour has a value ≤ t, and few others have: one pass for the
# minima and a look into about k blocks replace a sort of whole rows. Objects up to t + 2 · error are kept as
# candidates, so no neighbour is lost to rounding: it is within r = √(t as a squared distance) of x, so
# ‖z − s‖ ≤ ‖x − s‖ + r, and it is no longer than the longest object.
def _candidates(
    xp: Any, queries: Array, objects: Array, norms: Array, frame: Frame, k: int
) -> tuple[Cells, Array] | None:
    """Return all cells that may be neighbours, and ‖x − s‖ of each query; None if too many to hold."""
    m = queries.shape[0]
    x = frame.shifted(queries)
    length = xp.astype(xp.linalg.vector_norm(x, axis=1), xp.float64)  # (m,)
    constant = length**2
    if not frame.recentre:
        constant = constant + 2 * xp.astype(x @ frame.shift, xp.float64)
    twice = -2 * x
    bound = xp.full((m,), xp.inf, dtype=xp.float64, device=compat.device(x))  # t, falling block by block
    longest = xp.sqrt(xp.astype(xp.max(norms), xp.float64))
    kept, held = [], 0
    for part, z in row_blocks(objects, _tile(m, norms)[1]):
        z = frame.shifted(z) if frame.recentre else xp.astype(z, frame.dtype, copy=False)
        value = affine(twice, z, norms[part])  # (m, objects of this block)
        minima = Minima.of(xp, value, k)
        if minima.values.shape[1] >= k:
            bound = xp.minimum(bound, xp.astype(kth_smallest(minima.values, k), xp.float64))
        reach = length + xp.sqrt(xp.clip(bound + constant, min=0.0))
        error = frame.error(x.shape[1], length, xp.minimum(reach, longest))
        cells = cells_within(xp, value, minima, xp.astype(bound + 2 * error, frame.dtype))
        held += cells.row.shape[0]
        if m > 1 and too_many(cells, held):
            return None
        kept.append(cells._replace(column=cells.column + part.start))
    return Cells.joined(xp, kept), length


def _distances(xp: Any, queries: Array, objects: Array, index: Array, frame: Frame) -> Array:
    """Return ‖x − z‖ of each query and its neighbours; shape (m, k)."""
    m, k = index.shape
    row = xp.arange(m * k, dtype=index.dtype, device=compat.device(index)) // k
    squared = squared_distances(queries, objects, row, xp.reshape(index, (-1,)), frame.scale)
    return xp.reshape(xp.astype(xp.sqrt(squared) / frame.scale, frame.dtype), (m, k))
