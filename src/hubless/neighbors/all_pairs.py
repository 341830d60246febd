"""The neighbours of objects among themselves: each product is taken once, for its rows and its columns."""

from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol

import array_api_compat as compat

from ..arrays import Array, device_of, namespace, rows, take_rows
from ..arrays.bfloat16 import HIGHEST, as_queries, distance_codes
from ..arrays.library import blocks
from ..arrays.products import even_size, map_items
from .bfloat16_pass import FEW, WORTH, Bfloat16Pass
from .differences import close_distances, squared_distances
from .frame import ignore_overflow
from .full_pass import FullPass
from .kept_cells import KeptCells
from .ranking import Candidates, Cells, most_cells, rank


class Pairs(Protocol):
    """A first pass whose values of two objects are the same in either order, but for rounding."""

    def keep(self, xp: Any, part: slice, k: int) -> KeptCells:
        """Return room for the cells of some objects that may be neighbours."""

    def values(self, xp: Any, part: slice, other: slice) -> Array:
        """Return the values of the pairs of two blocks of objects."""

    def settle(self, xp: Any, part: slice, cells: Cells) -> Candidates:
        """Return the cells of some objects with values, and what these may be off by, for `rank`."""


# d(x, z) = d(z, x): a block of values above the diagonal holds those of its mirror image below
def search_all_pairs(first: FullPass | Bfloat16Pass, k: int, size: int) -> list[Array] | None:
    """Return the k nearest other objects of each object, in blocks of about `size` rows.

    None if too many objects may be near, so that `search` has to look at fewer of them at a time.
    """
    xp, n = namespace(first.norms), first.norms.shape[0]
    pairs: Pairs = FullPairs.of(first) if isinstance(first, FullPass) else Bfloat16Pairs(first)
    parts = list(blocks(n, even_size(n, size)))
    with ignore_overflow():
        kept = [pairs.keep(xp, part, k) for part in parts]
    locks = [Lock() for _ in parts]

    def add(i: int, values: Array, start: int) -> bool:
        with locks[i]:
            return kept[i].add(values, start)

    def compare(place: tuple[int, int]) -> bool:
        i, j = place
        if kept[i].is_full or kept[j].is_full:
            return False
        with ignore_overflow():  # here, as each thread has its own state
            values = pairs.values(xp, parts[i], parts[j])
            if i == j:
                return add(i, _without_diagonal(xp, values), parts[j].start)
            mirrored = xp.matrix_transpose(values)
            return add(i, values, parts[j].start) and add(j, mirrored, parts[i].start)

    grid = [(i, j) for i in range(len(parts)) for j in range(i, len(parts))]
    if not all(list(map_items(xp, compare, grid))):
        return None

    def settle(i: int) -> Array | None:
        batch, scale = rows(first.objects, parts[i]), first.frame.scale

        def direct(row: Array, column: Array) -> Array:
            return squared_distances(batch, first.objects, row, column, scale)

        with ignore_overflow():
            found = pairs.settle(xp, parts[i], kept[i].cells())
            return rank(xp, found.cells, batch.shape[0], k, found.error, direct)

    ranked = list(map_items(xp, settle, range(len(parts))))
    return None if any(index is None for index in ranked) else ranked


def _without_diagonal(xp: Any, values: Array) -> Array:
    """Put every object at the largest distance from itself."""
    m = values.shape[0]
    is_code = not xp.isdtype(values.dtype, "real floating")
    flat = xp.reshape(values, (m * m,))
    flat[:: m + 1] = HIGHEST if is_code else xp.inf
    return xp.reshape(flat, (m, m))


class FullPairs(NamedTuple):
    """Squared distances in the precision of the objects."""

    first: FullPass  # about the origin s of its frame

    @staticmethod
    def of(first: FullPass) -> "FullPairs":
        """Take both sides of each pair about the same origin."""
        return FullPairs(first._replace(frame=first.frame._replace(recentre=True, offset=0.0)))

    # d² = t at most, and ‖z − s‖ ≤ ‖x − s‖ + √t, so the values of x and of its neighbours err as little as
    # those of products of two numbers of the size of 2 ‖x − s‖ + √t, or of that plus the longest object
    def keep(self, xp: Any, part: slice, k: int) -> KeptCells:
        """Return room for the cells of some objects that may be neighbours."""
        d, frame = self.first.objects.shape[1], self.first.frame
        length = self._lengths(xp, self.first.norms[part])
        longest = self._lengths(xp, xp.max(self.first.norms))

        def limit_of(best: Array) -> Array:
            bound = xp.astype(best, xp.float64)
            both = length + xp.minimum(length + xp.sqrt(xp.clip(bound, min=0.0)), longest)
            return xp.astype(bound + 2 * frame.error(d, both, both), frame.dtype)

        everything = xp.full(length.shape, xp.inf, dtype=frame.dtype, device=compat.device(length))
        return KeptCells(xp, k, everything, limit_of, most_cells(length))

    # ‖x − z‖² = (−2 (x − s), 1, ‖x − s‖²) (z − s, ‖z − s‖², 1)ᵀ
    def values(self, xp: Any, part: slice, other: slice) -> Array:
        """Return the squared distances of the pairs of two blocks of objects."""
        (x, x_norms), (z, z_norms) = (
            (self.first.frame.shifted(self.first.objects[block, :]), self.first.norms[block, None])
            for block in (part, other)
        )
        left = xp.concat([-2 * x, xp.ones_like(x_norms), x_norms], axis=1)
        right = xp.concat([z, z_norms, xp.ones_like(z_norms)], axis=1)
        return left @ xp.matrix_transpose(right)

    def settle(self, xp: Any, part: slice, cells: Cells) -> Candidates:
        """Return the cells as they are, and how far their squared distances may be off."""
        length = self._lengths(xp, self.first.norms)
        both = take_rows(length[part], cells.row) + take_rows(length, cells.column)
        return Candidates(cells, self.first.frame.error(self.first.objects.shape[1], both, both))

    @staticmethod
    def _lengths(xp: Any, norms: Array) -> Array:
        return xp.sqrt(xp.astype(norms, xp.float64))


class Bfloat16Pairs(NamedTuple):
    """Codes of squared distances of the rounded objects."""

    first: Bfloat16Pass

    def keep(self, xp: Any, part: slice, k: int) -> KeptCells:
        """Return room for the cells of some objects that may be neighbours."""
        first, (n, _) = self.first, self.first.objects.shape
        squared, moved = (xp.astype(array[part], xp.float64) for array in (first.norms, first.residual))
        how = {"constant": squared, "length": xp.sqrt(squared), "moved": moved}
        everything = xp.full(squared.shape, HIGHEST, dtype=xp.int16, device=device_of(squared))
        most = min(squared.shape[0] * max(FEW, n // WORTH), most_cells(squared))
        return KeptCells(xp, k, everything, partial(first.rounding.limit, xp, **how), most)

    def values(self, xp: Any, part: slice, other: slice) -> Array:
        """Return the codes of the pairs of two blocks of objects."""
        first = self.first
        left = as_queries(first.factor[part], first.objects.shape[1])
        return distance_codes(left, first.factor[other], first.norms)

    def settle(self, xp: Any, part: slice, cells: Cells) -> Candidates:
        """Compare the cells by differences in the precision of the objects."""
        objects = self.first.objects
        return close_distances(xp, objects[part, :], objects, cells, self.first.frame.scale)
