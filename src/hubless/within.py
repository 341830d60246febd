"""Nearest neighbours inside groups: each object among the others of its group, many groups in one product.

Groups of like size are stacked, so that thousands of tiny ones cost a few products and no loop; a group too
large to be compared with itself at once goes through `search`, block by block.
"""

from collections.abc import Iterator
from typing import Any

import array_api_compat as compat
import numpy as np

from .arrays import (
    Array,
    convert,
    device_numbers,
    is_on_cpu,
    kth_smallest,
    namespace,
    rows,
    subset,
    take_rows,
)
from .products import minus_gram
from .ranking import Minima, cells_within, differences, ranked, too_many
from .threads import map_threads
from .topk import SAMPLE, Frame, overflow_is_handled, scale_of, search, squared_lengths

CELLS = 1 << 22  # values of one stack: (groups) × (size of the largest)²
NUMBERS = 1 << 20  # coordinates of one stack
ALIGNED = 8  # sizes of stacks on an accelerator: products of others are much slower
TINY = 64  # groups up to this size are stacked whatever their sizes
LIKE = 0.5  # on an accelerator, others too if the smallest is that part of the largest


def nearest_within(X: Array, order: Array, sizes: np.ndarray, k: int) -> Array:
    """The k nearest objects of each object inside its group, in Euclidean distance.

    Parameters
    ----------
    X : array of shape (n, d)
    order : int array of shape (n,): the numbers of the objects, group by group, rising inside a group
    sizes : NumPy array of shape (groups,)
    k : int

    Returns
    -------
    index : int64 array of shape (n, k): row numbers of X, nearest first, ties to the lower; −1 where a group
        has fewer others
    """
    xp = namespace(X, order)
    scale = scale_of(rows(X, slice(None, None, max(1, X.shape[0] // SAMPLE))))
    frame = Frame(X.dtype, order, scale, recentre=True, offset=0.0)  # each stack has a shift of its own
    starts = np.cumsum(sizes) - sizes
    on_cpu = is_on_cpu(order)
    limits = (CELLS, NUMBERS) if on_cpu else (device_numbers(order) // 2, device_numbers(order))
    stacks = list(_stacks(sizes, X.shape[1], limits, 1.0 if on_cpu else LIKE))
    fits = [len(stack) > 1 or sizes[stack[0]] ** 2 <= limits[0] for stack in stacks]

    def of_stack(stack: np.ndarray) -> tuple[Array, Array]:
        return _of_stack(xp, X, order, starts[stack], sizes[stack], k, frame)

    # A large group is worth all threads; others run side by side.
    side_by_side = [stack for stack, fit in zip(stacks, fits, strict=True) if fit]
    found = map_threads(xp, of_stack, side_by_side)
    for stack, fit in zip(stacks, fits, strict=True):
        if not fit:
            found.append(_by_itself(xp, X, order, int(starts[stack[0]]), int(sizes[stack[0]]), k))
    members, index = (xp.concat(part) for part in zip(*found, strict=True))
    return take_rows(index, xp.argsort(members))


def _stacks(sizes: np.ndarray, d: int, limits: tuple[int, int], like: float) -> Iterator[np.ndarray]:
    """Numbers of groups to be stacked: of like size, and as many as memory allows, at least one."""
    cells, numbers = limits
    groups = np.argsort(-sizes, kind="stable")
    groups = groups[sizes[groups] > 0]
    start = 0
    while start < len(groups):
        size = int(sizes[groups[start]])  # the largest of what is left
        room = max(1, min(cells // size**2, numbers // (size * d)))
        least = 0.0 if size <= TINY else like * size
        alike = int(np.count_nonzero(sizes[groups[start : start + room]] >= least))
        yield groups[start : start + alike]
        start += alike


# Inside a group, ½‖z − s‖² − (x − s)ᵀ(z − s) orders objects as ‖x − z‖² does; s is the mean of the group.
# Selection and rounding are those of `search`, at half the values.
def _of_stack(
    xp: Any, X: Array, order: Array, starts: np.ndarray, sizes: np.ndarray, k: int, frame: Frame
) -> tuple[Array, Array]:
    """Members of the groups of one stack and the neighbours of each, of shapes (members,), (members, k)."""
    size = int(sizes.max())
    size = size if is_on_cpu(order) else -(-size // ALIGNED) * ALIGNED
    # a group shorter than the stack repeats its last object
    places = starts[:, None] + np.minimum(np.arange(size), sizes[:, None] - 1)
    is_member = convert(np.arange(size) < sizes[:, None], order)  # (groups, size)
    members = take_rows(order, convert(np.reshape(places, (-1,)), order))
    stacked = xp.reshape(take_rows(X, members), (len(sizes), size, X.shape[1]))
    with overflow_is_handled():
        frame = frame._replace(shift=xp.mean(stacked, axis=1, keepdims=True))
        own = frame.shifted(stacked)
        index = _nearest_rows(xp, X, own, is_member, members, k, frame)
    if index is None and len(sizes) == 1:
        return _by_itself(xp, X, order, int(starts[0]), int(sizes[0]), k)
    if index is None:  # too many equal distances to hold at once: fewer groups at a time
        half = len(sizes) // 2
        parts = (slice(half), slice(half, None))
        found = [_of_stack(xp, X, order, starts[part], sizes[part], k, frame) for part in parts]
        members, index = (xp.concat(pair) for pair in zip(*found, strict=True))
        return members, index
    kept = xp.reshape(is_member, (-1,))
    return (members, index) if sizes.min() == size else (members[kept], index[kept])


def _nearest_rows(
    xp: Any, X: Array, own: Array, is_member: Array, members: Array, k: int, frame: Frame
) -> Array | None:
    """Neighbours of every row of a stack, as row numbers of X; None if there are too many equal distances."""
    groups, size, _ = own.shape
    m = groups * size
    norms = squared_lengths(own)  # (groups, size)
    value = minus_gram(own, xp.where(is_member, norms / 2, xp.inf))  # (groups, size, size)
    flat = xp.reshape(value, (groups, size * size))
    flat[:, :: size + 1] = xp.inf  # nobody is a neighbour of itself
    value = xp.reshape(flat, (m, size))
    length = xp.sqrt(xp.astype(xp.reshape(norms, (m,)), xp.float64))
    bound = xp.full((m,), xp.inf, dtype=xp.float64, device=compat.device(value))
    minima = Minima.of(xp, value, k)
    if minima.values.shape[1] >= k:
        bound = xp.astype(kth_smallest(minima.values, k), xp.float64)
    reach = length + xp.sqrt(xp.clip(2 * bound + length**2, min=0.0))
    error = frame.error(own.shape[2], length, xp.minimum(reach, xp.max(length))) / 2
    limit = xp.where(xp.reshape(is_member, (m,)), bound + 2 * error, -xp.inf)
    cells = cells_within(xp, value, minima, xp.astype(limit, value.dtype))
    if too_many(cells, cells.row.shape[0]):
        return None

    def place(row: Array, column: Array) -> Array:
        return row - row % size + column  # row of the stack: a group begins at every multiple of its size

    def direct(row: Array, column: Array) -> Array:
        other = take_rows(members, place(row, column))
        return differences(X, X, take_rows(members, row), other, frame.scale)

    other = place(cells.row, cells.column)
    kept = take_rows(xp.reshape(is_member, (m,)), other) & (other != cells.row)
    cells, other = cells.where(kept), other[kept]
    error = frame.error(own.shape[2], take_rows(length, cells.row), take_rows(length, other)) / 2
    column = ranked(xp, cells, m, k, error, direct)
    if column is None:
        return None
    row = xp.arange(m, dtype=xp.int64, device=compat.device(column))
    near = xp.clip(place(row[:, None], column), min=0)
    index = xp.reshape(take_rows(members, xp.reshape(near, (-1,))), (m, k))
    return xp.where(column >= 0, xp.astype(index, xp.int64), -1)


def _by_itself(xp: Any, X: Array, order: Array, start: int, size: int, k: int) -> tuple[Array, Array]:
    """Members of one group and their neighbours, block by block."""
    members, most = order[start : start + size], min(k, size - 1)
    none = xp.full((size, k - most), -1, dtype=xp.int64, device=compat.device(order))
    if most == 0:
        return members, none
    own = subset(X, members)
    local = search(own, own, most, return_distance=False, exclude_self=True)
    index = take_rows(xp.astype(members, xp.int64), xp.reshape(local, (-1,)))
    return members, xp.concat([xp.reshape(index, (size, most)), none], axis=1)
