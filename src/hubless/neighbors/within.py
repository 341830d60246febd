"""Nearest neighbours inside groups: each object among the others of its group, many groups in one product.

Groups of similar size are stacked, so that thousands of tiny ones cost a few products and no loop; a group
too large to be compared with itself at once goes through `search`, block by block.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, is_on_cpu, namespace, rows, subset, take_rows, to_numpy
from ..arrays.devices import device_numbers
from ..arrays.products import map_items
from .differences import squared_distances
from .few_steps import nearest_of_rows
from .frame import SAMPLE, Frame, ignore_overflow, scale_of
from .precision import groups_use_bfloat16
from .ranking import Candidates, rank
from .search import search
from .stack import Stack, bfloat16_candidates, full_candidates, full_values

CELLS = 1 << 22  # values of one stack: groups × (size of the largest)²
NUMBERS = 1 << 20  # coordinates of one stack
ALIGNED = 8  # sizes of stacks on an accelerator are multiples of this: other products are much slower
TINY = 64  # groups up to this size are stacked, however different their sizes
SIMILAR = 0.5  # on an accelerator, larger ones too if the smallest has this share of the largest's size


def nearest_within(X: Array, order: Array, sizes: np.ndarray, k: int) -> Array:
    """Find the k nearest objects of each object inside its group, in Euclidean distance.

    Parameters
    ----------
    X : array of shape (n, d)
    order : int array of shape (n,): the numbers of the objects, group by group, ascending within a group
    sizes : NumPy array of shape (groups,)
    k : int

    Returns
    -------
    index : int64 array of shape (n, k): row numbers of X, nearest first, ties to the lower; −1 where a group
        has fewer others
    """
    xp = namespace(X, order)
    scale = scale_of(rows(X, slice(None, None, max(1, X.shape[0] // SAMPLE))))
    frame = Frame(X.dtype, order, scale, recentre=True, offset=0.0)  # each stack sets its shift
    starts = np.cumsum(sizes) - sizes
    on_cpu = is_on_cpu(order)
    limits = (CELLS, NUMBERS) if on_cpu else (device_numbers(order) // 2, device_numbers(order))
    stacks = list(_stacks(sizes, X.shape[1], limits, 1.0 if on_cpu else SIMILAR))
    fits = [len(stack) > 1 or sizes[stack[0]] ** 2 <= limits[0] for stack in stacks]
    short = groups_use_bfloat16(X, sizes, k)

    def search_stack(stack: np.ndarray) -> tuple[Array, Array]:
        first = bfloat16_candidates if short[stack].any() else full_candidates
        return _search_stack(xp, X, order, starts[stack], sizes[stack], k, frame, first)

    # A large group is worth all threads; stacks run at the same time, one thread each.
    small = [stack for stack, fit in zip(stacks, fits, strict=True) if fit]
    results = list(map_items(xp, search_stack, small))
    for stack, fit in zip(stacks, fits, strict=True):
        if not fit:
            results.append(_search_group(xp, X, order, int(starts[stack[0]]), int(sizes[stack[0]]), k))
    members, index = (xp.concat(part) for part in zip(*results, strict=True))
    return take_rows(index, xp.argsort(members))


def _stacks(sizes: np.ndarray, d: int, limits: tuple[int, int], like: float) -> Iterator[np.ndarray]:
    """Yield the numbers of groups to be stacked: of similar size, as many as memory allows, at least one."""
    cells, numbers = limits
    groups = np.argsort(-sizes, kind="stable")
    groups = groups[sizes[groups] > 0]
    start = 0
    while start < len(groups):
        size = int(sizes[groups[start]])  # the largest of the rest
        room = max(1, min(cells // size**2, numbers // (size * d)))
        least = 0.0 if size <= TINY else like * size
        similar = int(np.count_nonzero(sizes[groups[start : start + room]] >= least))
        yield groups[start : start + similar]
        start += similar


def _search_stack(
    xp: Any,
    X: Array,
    order: Array,
    starts: np.ndarray,
    sizes: np.ndarray,
    k: int,
    frame: Frame,
    first: Callable[..., Candidates | None],
) -> tuple[Array, Array]:
    """Return the members of the groups of a stack and their neighbours; shapes (members,), (members, k)."""
    size = int(sizes.max())
    size = size if is_on_cpu(order) else -(-size // ALIGNED) * ALIGNED
    # a group shorter than the stack repeats its last object
    places = starts[:, None] + np.minimum(np.arange(size), sizes[:, None] - 1)
    is_member = convert(np.arange(size) < sizes[:, None], order)  # (groups, size)
    members = take_rows(order, convert(np.reshape(places, (-1,)), order))
    stack = Stack(X, members, is_member, bool(sizes.min() < size))
    with ignore_overflow():
        index = _nearest_rows(xp, stack, k, frame._replace(shift=stack.centres(xp)), first)
    if index is None and first is bfloat16_candidates:  # it cannot tell these points apart
        return _search_stack(xp, X, order, starts, sizes, k, frame, full_candidates)
    if index is None and len(sizes) == 1:
        return _search_group(xp, X, order, int(starts[0]), int(sizes[0]), k)
    if index is None:  # too many equal distances to hold at once: fewer groups at a time
        half = len(sizes) // 2
        parts = (slice(half), slice(half, None))
        results = [_search_stack(xp, X, order, starts[part], sizes[part], k, frame, first) for part in parts]
        members, index = (xp.concat(pair) for pair in zip(*results, strict=True))
        return members, index
    kept = xp.reshape(is_member, (-1,))
    return (members[kept], index[kept]) if stack.is_padded else (members, index)


def _nearest_rows(
    xp: Any, stack: Stack, k: int, frame: Frame, first: Callable[..., Candidates | None]
) -> Array | None:
    """Return the neighbours of each row of a stack, as rows of X; None for too many equal distances."""
    if first is full_candidates and not is_on_cpu(stack.members):
        few = _nearest_in_few_steps(xp, stack, k, frame)
        if few is not None:
            return few
    found = first(xp, stack, k, frame)
    if found is None:
        return None
    direct = partial(stack.distances, scale=frame.scale)
    column = rank(xp, found.cells, stack.members.shape[0], k, found.error, direct)
    return None if column is None else stack.neighbors(xp, column, column >= 0)


def _nearest_in_few_steps(xp: Any, stack: Stack, k: int, frame: Frame) -> Array | None:
    value, _, limit_of = full_values(xp, stack, frame)
    direct = partial(stack.distances, scale=frame.scale)
    few = nearest_of_rows(xp, value, min(k, value.shape[1]), limit_of, direct, stack.n_others(xp))
    if few is None:
        return None
    index = stack.neighbors(xp, few.columns, few.squared < xp.inf)
    none = xp.full((index.shape[0], k - index.shape[1]), -1, dtype=xp.int64, device=compat.device(index))
    return xp.concat([index, none], axis=1)


def _search_group(xp: Any, X: Array, order: Array, start: int, size: int, k: int) -> tuple[Array, Array]:
    """Return the members of one group and their neighbours, searched block by block."""
    members, most = order[start : start + size], min(k, size - 1)
    none = xp.full((size, k - most), -1, dtype=xp.int64, device=compat.device(order))
    if most == 0:
        return members, none
    group = subset(X, members)
    local = search(group, group, most, return_distance=False, exclude_self=True)
    index = take_rows(xp.astype(members, xp.int64), xp.reshape(local, (-1,)))
    return members, xp.concat([xp.reshape(index, (size, most)), none], axis=1)


# --- queries among the objects of their class ---------------------------------------------------------------


SMALL = 4096  # comparisons of a class that are made together with those of other small classes
HELD = 1 << 20  # comparisons of small classes that are held at once


def nearest_of_class(Z: Array, codes: Array, objects: Array, object_codes: Array, k: int) -> Array:
    """Find the k nearest `objects` of the class of each row of Z, in Euclidean distance.

    Returns
    -------
    index : int64 array of shape (n, k): nearest first, ties to the lower number, -1 where there are too few
    """
    xp = namespace(Z, codes, objects, object_codes)
    index = np.full((Z.shape[0], k), -1, dtype=np.int64)
    members = _Members.of(to_numpy(codes), to_numpy(object_codes))
    _, classes, sizes = np.unique(to_numpy(codes), return_inverse=True, return_counts=True)
    has_members, is_small = members.counts > 0, sizes[classes] * members.counts <= SMALL
    is_small &= compat.is_numpy_namespace(xp)  # elsewhere, many small steps are slow
    small = np.flatnonzero(is_small & has_members)
    for run in _runs(small, np.cumsum(members.counts[small]) // HELD):
        _compare_all(Z, objects, run, members, index)
    large = np.flatnonzero(~is_small & has_members)
    large = large[np.argsort(classes[large], kind="stable")]
    for query_rows in _runs(large, classes[large]):
        object_rows = members.objects_for(query_rows[0])
        x, z = (xp.take(X, convert(part, Z), axis=0) for X, part in ((Z, query_rows), (objects, object_rows)))
        width = min(k, len(object_rows))
        index[query_rows, :width] = object_rows[to_numpy(search(x, z, width, return_distance=False))]
    return convert(index, Z)


class _Members(NamedTuple):
    """The objects of the class of each of n rows."""

    order: np.ndarray  # (objects,), their numbers class by class, ascending within a class
    starts: np.ndarray  # (n,), the objects for row i are order[starts[i] : starts[i] + counts[i]]
    counts: np.ndarray  # (n,)

    @staticmethod
    def of(codes: np.ndarray, object_codes: np.ndarray) -> "_Members":
        """Sort the objects once, and look up the class of each row."""
        order = np.argsort(object_codes, kind="stable")
        starts, ends = (np.searchsorted(object_codes[order], codes, side) for side in ("left", "right"))
        return _Members(order, starts, ends - starts)

    def objects_for(self, row: int) -> np.ndarray:
        """Return the numbers of the objects of the class of one row."""
        return self.order[self.starts[row] : self.starts[row] + self.counts[row]]


def _runs(rows: np.ndarray, keys: np.ndarray) -> list[np.ndarray]:
    """Split rows into runs of equal keys, which are sorted."""
    return np.split(rows, np.flatnonzero(np.diff(keys)) + 1) if len(rows) else []


def _compare_all(
    Z: np.ndarray, objects: np.ndarray, rows: np.ndarray, members: _Members, index: np.ndarray
) -> None:
    """Fill `index` for rows of small classes, by the distance of each row to every object of its class."""
    starts, counts = members.starts[rows], members.counts[rows]
    row = np.repeat(rows, counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)  # 0 … count − 1 for each row
    column = members.order[np.repeat(starts, counts) + place]
    with ignore_overflow():
        squared = squared_distances(Z, objects, row, column, scale_of(objects))
    by_distance = np.lexsort((column, squared, row))
    column, kept = column[by_distance], place < index.shape[1]  # rows stay together, so places do not change
    index[row[kept], place[kept]] = column[kept]
