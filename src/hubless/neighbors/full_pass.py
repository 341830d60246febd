"""The first pass of a search in the precision of the input: a product of all pairs, and who may be near."""

from typing import Any, NamedTuple

import array_api_compat as compat

from ..arrays import Array, is_on_cpu, k_smallest, row_blocks, rows, subset, take_rows
from ..arrays.products import affine, map_blocks
from .frame import Frame, ignore_overflow, squared_lengths
from .ranking import Candidates, Cells, Minima, cells_within, too_many

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
    # Selection. Take the smallest value of each block of columns. The k-th smallest of these minima, t, is at
    # least the k-th smallest value, so every neighbour has a value ≤ t, and few others have: one pass for the
    # minima and a look into about k blocks replace a sort of whole rows. Objects up to t + 2 · error are kept
    # as candidates, so no neighbour is lost to rounding: it is within r = √(t as a squared distance) of x, so
    # ‖z − s‖ ≤ ‖x − s‖ + r, and it is no longer than the longest object.
    def candidates(self, xp: Any, queries: Array, k: int, at_once: int) -> Candidates | None:
        """Return all cells that may be neighbours, by products with `at_once` objects; None if too many."""
        frame, m = self.frame, queries.shape[0]
        x = frame.shifted(queries)
        length = xp.astype(xp.linalg.vector_norm(x, axis=1), xp.float64)  # (m,)
        constant = length**2
        if not frame.recentre:
            constant = constant + 2 * xp.astype(x @ frame.shift, xp.float64)
        twice = -2 * x
        best = xp.full((m, 0), xp.inf, dtype=frame.dtype, device=compat.device(x))  # (m, up to k) minima
        bound = xp.full((m,), xp.inf, dtype=xp.float64, device=compat.device(x))  # t, falling block by block
        longest = xp.sqrt(xp.astype(xp.max(self.norms), xp.float64))
        kept, held = [], 0
        for part, z in row_blocks(self.objects, at_once):
            z = frame.shifted(z) if frame.recentre else xp.astype(z, frame.dtype, copy=False)
            value = affine(twice, z, self.norms[part])  # (m, objects of this block)
            minima = Minima.of(xp, value, k)
            best = k_smallest(xp.concat([best, k_smallest(minima.values, k)], axis=1), k)
            if best.shape[1] == k:
                bound = xp.astype(xp.max(best, axis=1), xp.float64)
            reach = length + xp.sqrt(xp.clip(bound + constant, min=0.0))
            error = frame.error(x.shape[1], length, xp.minimum(reach, longest))
            cells = cells_within(xp, value, minima, xp.astype(bound + 2 * error, frame.dtype))
            held += cells.row.shape[0]
            if m > 1 and too_many(cells, held):
                return None
            kept.append(cells._replace(column=cells.column + part.start))
        cells = Cells.joined(xp, kept)
        norm = xp.sqrt(xp.astype(take_rows(self.norms, cells.column), xp.float64))
        return Candidates(cells, frame.error(x.shape[1], take_rows(length, cells.row), norm))
