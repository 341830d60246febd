"""The first pass of a search in the precision of the input: a product of all pairs, and who may be near."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import array_api_compat as compat

from ..arrays import Array, is_on_cpu, row_blocks, rows, subset, take_rows
from ..arrays.products import affine, map_blocks
from .frame import Frame, ignore_overflow, squared_lengths
from .kept_cells import KeptCells
from .ranking import Candidates, most_cells

NORM_ROWS = 2048  # objects converted to float64 at once, for their norms
DEVICE_NORM_ROWS = 32_768  # the same on an accelerator


class FullPass(NamedTuple):
    """Stored objects, ready for products in the precision of the input."""

    objects: Array
    frame: Frame
    norms: Array  # (n,), ‖z − s‖²

    @staticmethod
    def of(xp: Any, objects: Array, frame: Frame) -> "FullPass":
        """Compute the squared norms of all objects, in blocks."""

        def block_norms(part: slice) -> Array:
            with ignore_overflow():  # here, as each thread has its own state
                return squared_lengths(frame.shifted(rows(objects, part)))

        size = NORM_ROWS if is_on_cpu(frame.shift) else DEVICE_NORM_ROWS
        return FullPass(objects, frame, xp.concat(map_blocks(xp, block_norms, objects.shape[0], size)))

    def subset(self, index: Array) -> "FullPass":
        """Return the objects with these numbers."""
        return self._replace(objects=subset(self.objects, index), norms=take_rows(self.norms, index))

    # value(x, z) = ‖z − s‖² − 2 (x − s)ᵀz, which orders objects as ‖x − z‖² does: they differ by
    # ‖x − s‖² + 2 (x − s)ᵀs, the same for every z (the second term vanishes where z is recentred to z − s).
    #
    # Objects up to t + 2 · error are candidates, t the k-th smallest minimum (`KeptCells`). A neighbour is
    # within r = √(t as a squared distance) of x, so ‖z − s‖ ≤ ‖x − s‖ + r, and it is no longer than the
    # longest object.
    def prepare(self, xp: Any, queries: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return x − s of queries, and what gives the limits of candidates from the k-th smallest values."""
        frame = self.frame
        x = frame.shifted(queries)
        length = xp.astype(xp.linalg.vector_norm(x, axis=1), xp.float64)  # (m,)
        constant = length**2
        if not frame.recentre:
            constant = constant + 2 * xp.astype(x @ frame.shift, xp.float64)
        longest = xp.sqrt(xp.astype(xp.max(self.norms), xp.float64))

        def limit_of(best: Array) -> Array:
            bound = xp.astype(best, xp.float64)
            reach = length + xp.sqrt(xp.clip(bound + constant, min=0.0))
            error = frame.error(x.shape[1], length, xp.minimum(reach, longest))
            return xp.astype(bound + 2 * error, frame.dtype)

        return x, limit_of

    def candidates(self, xp: Any, queries: Array, k: int, at_once: int) -> Candidates | None:
        """Return all cells that may be neighbours, by products with `at_once` objects; None if too many."""
        frame, m = self.frame, queries.shape[0]
        x, limit_of = self.prepare(xp, queries)
        everything = xp.full((m,), xp.inf, dtype=frame.dtype, device=compat.device(x))
        kept = KeptCells(xp, k, everything, limit_of, most_cells(x) if m > 1 else math.inf)
        twice = -2 * x
        for part, z in row_blocks(self.objects, at_once):
            z = frame.shifted(z) if frame.recentre else xp.astype(z, frame.dtype, copy=False)
            if not kept.add(affine(twice, z, self.norms[part]), part.start):  # (m, objects of this block)
                return None
        cells = kept.cells()
        length = xp.astype(xp.linalg.vector_norm(x, axis=1), xp.float64)
        norm = xp.sqrt(xp.astype(take_rows(self.norms, cells.column), xp.float64))
        return Candidates(cells, frame.error(x.shape[1], take_rows(length, cells.row), norm))
