"""The exact search behind `nearest`, for checked arrays: the only hot loop of the library.

A first pass compares all pairs, in bfloat16 or in the precision of the input, and leaves the objects that may
be neighbours; `ranking` then puts them into their exact order. Both passes lead to the same neighbours.
"""

import math
from typing import Any

import array_api_compat as compat
import numpy as np

from ..arrays import Array, is_on_cpu, namespace, row_blocks, rows, take_rows, tally
from ..arrays.library import Streamed, blocks
from ..arrays.products import even_size, map_blocks, workers
from .all_pairs import search_all_pairs
from .bfloat16_pass import Bfloat16Pass
from .differences import squared_distances
from .few_steps import Few, fits_few_steps, search_in_few_steps
from .frame import Frame, ignore_overflow
from .full_pass import FullPass
from .precision import uses_bfloat16
from .ranking import drop_self, rank

QUERY_ROWS = 3072  # queries of the products of all threads in float32, half as many in float64
OBJECT_ROWS = 8192  # objects of one product
DEVICE_ROWS = 4096, 32_768  # the same on an accelerator, where larger products are faster
DEVICE_SHORT_ROWS = 8192, 65_536  # the same in bfloat16


def search(
    queries: Array,
    objects: Array,
    k: int,
    *,
    return_distance: bool = True,
    exclude_self: bool = False,
    precision: str | None = None,
) -> Any:
    """Search as `nearest` does, for arrays that are checked already."""
    xp = namespace(queries, objects)
    wanted = k + 1 if exclude_self else k
    short = uses_bfloat16(precision, queries, objects, wanted)
    if not short and fits_few_steps(queries, objects, wanted):
        few = search_in_few_steps(queries, objects, wanted)
        if few is not None:
            return _result(xp, few, exclude_self, return_distance, queries)
    with ignore_overflow():
        frame = Frame.of(xp, queries, objects)
    stored = StoredObjects(xp, objects, frame, wanted, short)
    m = queries.shape[0]
    size = stored.tile(m)[0]
    paired = stored.search_themselves(k) if exclude_self and queries is objects else None

    def search_block(part: slice) -> Array:
        with ignore_overflow():
            index = stored.search(rows(queries, part), wanted)
            if not exclude_self:
                return index
            itself = xp.arange(part.start, part.stop, dtype=index.dtype, device=compat.device(index))
            return drop_self(xp, index, index, itself)

    def distances_of(part: slice) -> Array:
        with ignore_overflow():
            return _distances(xp, rows(queries, part), objects, index[part, :], frame)

    index = xp.concat(map_blocks(xp, search_block, m, size) if paired is None else paired)
    return (xp.concat(map_blocks(xp, distances_of, m, size)), index) if return_distance else index


def _result(xp: Any, few: Few, exclude_self: bool, return_distance: bool, queries: Array) -> Any:
    """Return what `search` does."""
    index, squared = few
    if exclude_self:
        itself = xp.arange(index.shape[0], dtype=index.dtype, device=compat.device(index))
        squared, index = (drop_self(xp, values, index, itself) for values in (squared, index))
    return (xp.astype(xp.sqrt(squared), queries.dtype), index) if return_distance else index


class StoredObjects:
    """Stored objects, ready to be searched; batches of queries may be searched at the same time.

    Parameters
    ----------
    xp : the array library
    objects : array of shape (n, d)
    frame : origin and unit of the products
    k : the number of neighbours that are searched for
    short : whether the first pass is in bfloat16, as long as it leaves few candidates
    """

    def __init__(self, xp: Any, objects: Array, frame: Frame, k: int, short: bool) -> None:
        self.xp, self.frame, self.reachable = xp, frame, None
        with ignore_overflow():
            made = Bfloat16Pass.of(xp, objects, frame) if short else FullPass.of(xp, objects, frame)
            self.first: FullPass | Bfloat16Pass = made
            self.reachable = _reachable(xp, objects, self.first.norms, k)
            if self.reachable is not None:
                self.first = self.first.subset(self.reachable)
        self.full = self.first if isinstance(self.first, FullPass) else None

    def tile(self, n_queries: int) -> tuple[int, int]:
        """Return the numbers of queries and of objects of one product."""
        norms, short = self.first.norms, isinstance(self.first, Bfloat16Pass)
        if not is_on_cpu(norms):
            m, n = DEVICE_SHORT_ROWS if short else DEVICE_ROWS
            return m * min(8, max(1, n // norms.shape[0])), n  # among few objects more queries fit
        wide = norms.dtype == self.xp.float64 and not short
        return even_size(n_queries, max(1, QUERY_ROWS // (2 * workers() if wide else workers()))), OBJECT_ROWS

    def search_themselves(self, k: int) -> list[Array] | None:
        """Return the k nearest other objects of each object, in blocks; None where `search` has to do it."""
        m, n = self.tile(self.first.norms.shape[0])
        size = math.isqrt(m * n)
        is_worth = self.first.norms.shape[0] > size and not isinstance(self.first.objects, Streamed)
        return search_all_pairs(self.first, k, size) if is_worth and self.reachable is None else None

    def search(self, queries: Array, k: int) -> Array:
        """Return the indices of the k nearest objects of each query, in order; shape (m, k)."""
        index = self._search(queries, k)
        if self.reachable is None:
            return index
        return self.xp.reshape(take_rows(self.reachable, self.xp.reshape(index, (-1,))), index.shape)

    def _search(self, queries: Array, k: int) -> Array:
        xp, m, objects = self.xp, queries.shape[0], self.first.objects

        def direct(row: Array, column: Array) -> Array:
            return squared_distances(queries, objects, row, column, self.frame.scale)

        first = self.full or self.first
        found = first.candidates(xp, queries, k, self.tile(m)[1])
        index = None if found is None else rank(xp, found.cells, m, k, found.error, direct)
        if index is not None:
            return index
        if self.full is None:  # too many candidates: bfloat16 cannot tell these points apart
            self.full = FullPass.of(xp, objects, self.frame)
            return self._search(queries, k)
        halves = (queries[: m // 2, :], queries[m // 2 :, :])  # too many equal distances to hold at once
        return xp.concat([self._search(half, k) for half in halves])


# An object that follows at least `wanted` identical ones is nobody's neighbour: they are preferred to it.
def _reachable(xp: Any, objects: Array, norms: Array, wanted: int) -> Array | None:
    """Return the rows worth searching, or None for all: without the surplus of objects that occur very often.

    Otherwise a query near thousands of identical objects, such as empty documents, compares them all by
    differences. Equal norms, which are cheap to find, show whether it is worth looking.
    """
    n = objects.shape[0]
    if n <= wanted:
        return None
    ordered = xp.sort(norms)
    if int(xp.sum(xp.astype(ordered[wanted:] == ordered[:-wanted], xp.int64))) <= n // 256:
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


def _distances(xp: Any, queries: Array, objects: Array, index: Array, frame: Frame) -> Array:
    """Return ‖x − z‖ of each query and its neighbours; shape (m, k)."""
    m, k = index.shape
    row = xp.arange(m * k, dtype=index.dtype, device=compat.device(index)) // k
    squared = squared_distances(queries, objects, row, xp.reshape(index, (-1,)), frame.scale)
    return xp.reshape(xp.astype(xp.sqrt(squared) / frame.scale, frame.dtype), (m, k))


def check_enough(k: int, n_objects: int) -> None:
    """Refuse to search for more neighbours than there are objects."""
    if k > n_objects:
        raise ValueError(
            f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {n_objects}: "
            "ask for fewer neighbours or give more labeled objects."
        )
