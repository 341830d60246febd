"""The first pass of a search in bfloat16: distances of rounded points, and who may be near all the same.

The bound is rigorous: no neighbour is lost, whatever the points. It assumes only that products of bfloat16
are summed in float32, in any order and with any rounding of each sum, and rounded to bfloat16 once.
"""

import math
from functools import partial
from typing import Any, NamedTuple

from ..arrays import Array, device_of, take_rows
from ..arrays.bfloat16 import (
    HIGHEST,
    SPLIT,
    Rounded,
    cell_products,
    decode,
    decode_up,
    distance_codes,
    encode_up,
    has_cell_products,
    join_rows,
    make_room,
    pick_rows,
    round_points,
    rows_at_once,
    set_constants,
)
from ..arrays.library import blocks
from ..arrays.products import map_items
from .differences import close_distances
from .frame import SAMPLE, Frame, ignore_overflow
from .full_pass import FullPass
from .kept_cells import KeptCells
from .ranking import Candidates, Cells, most_cells

LARGEST = 1e30  # squared lengths from which sums of products may overflow
COARSEST = 2.0**-7  # share of its length by which a point may be rounded: normal numbers stay far below
SAMPLED = 1024  # objects from which on a sample chooses the constant
BEYOND = 1.3  # times the distance of the k-th smallest of a normal distribution from the mean
WORTH = 16  # at most one of so many objects may be a candidate, else a product in full precision is faster
FEW = 256  # candidates of a query that are never too many


class Rounding(NamedTuple):
    """How far the distances of rounded points may be from those of the points, in the unit of the frame."""

    share: Array  # 0-d: the largest ‖z − z_b‖ / ‖z_b‖ of the objects
    longest: Array  # 0-d: the largest ‖z_b‖
    sums: float  # error of a squared distance, for each unit of (‖x_b‖ + ‖z_b‖)²
    least: float  # error of a squared distance where products vanish

    @staticmethod
    def of(xp: Any, squared: Array, residual: Array, d: int) -> "Rounding":
        """Take the largest error of the objects."""
        share, longest = largest_share(xp, squared, residual), xp.sqrt(xp.max(xp.astype(squared, xp.float64)))
        # Each of 2 (d + 4) roundings, and of d in each squared length, errs by 2⁻²³ at most of the sum of all
        # absolute terms, which is (‖x_b‖ + ‖z_b‖)²: twice the unit roundoff, as some devices cut off.
        sums = 4 * (d + 8) * 2.0**-23 + SPLIT
        return Rounding(share, longest, sums, 4 * d * 2.0**-126)

    # Computed is w = ‖x_b − z_b‖² − ‖x_b‖² + c, c any constant of the query. With δ_x = ‖x − x_b‖ and so on,
    #   w − (‖x − z‖² + constant) = 2 (z − x_b)ᵀ(z − z_b) − ‖z − z_b‖² − 2 (x − x_b)ᵀz,
    # whose last term may be taken about x instead of 0, which adds a constant. So it errs by at most
    #   E = 2 ‖z − x_b‖ δ_z + δ_z² + 2 δ_x min(‖z‖, ‖z − x‖), and by e in the sums.
    # Let t be the k-th smallest w as it was summed, before it became a code. Then k objects have rounded
    # distances of at most f = √(t + e − c + ‖x_b‖²), and true ones of at most f + δ_x + δ_z; so has every
    # neighbour, and its w is at most t + 2 e + 2 E.
    #
    # None of these objects is longer than R = 2 (‖x_b‖ + f): if one were, ‖x_b − z_b‖ > R / 2 + f would put
    # it beyond f by much more than e. So e = sums · (‖x_b‖ + R)², and δ_z ≤ share · R.
    def limit(self, xp: Any, best: Array, constant: Array, length: Array, moved: Array) -> Array:
        """Return the highest code that a neighbour may have; (m,).

        `best` holds the k-th smallest code of each query, `constant` c, `length` ‖x_b‖ and `moved` ‖x − x_b‖.
        """
        t, least = decode_up(best), self.least**0.5
        squared = xp.clip(t - constant + length**2, min=0.0)
        reach = xp.minimum(2 * (length + xp.sqrt(squared)) + 4 * (moved + least), self.longest)
        error = self.sums * (length + reach) ** 2 + self.least
        x_moved, z_moved = 1.001 * moved + 2.0**-23 * length + least, self.share * reach + least
        far = xp.sqrt(squared + error) + 2 * (x_moved + z_moved)
        rounding = (2 * far + z_moved) * z_moved + 2 * x_moved * xp.minimum(reach + z_moved, far)
        limit = encode_up(t + 2 * (error + rounding))
        # where sums may overflow or numbers vanish, everything is a candidate
        is_safe = (xp.maximum(length, self.longest) ** 2 < LARGEST) & (self.share < COARSEST)
        return xp.where(is_safe, limit, xp.full_like(limit, HIGHEST))


def largest_share(xp: Any, squared: Array, residual: Array) -> Array:
    """Return the largest ‖z − z_b‖ / ‖z_b‖, a little more than computed; 0-d, in float64."""
    squared, residual = xp.astype(squared, xp.float64), xp.astype(residual, xp.float64)
    share = residual / xp.sqrt(xp.where(squared > 0, squared, 1.0))
    return xp.max(share) * 1.001 + 2.0**-23  # the points themselves were rounded, where they were shifted


class Bfloat16Pass(NamedTuple):
    """Stored objects, ready for products in bfloat16."""

    objects: Array
    frame: Frame
    norms: Array  # (n,), ‖z_b‖²
    residual: Array  # (n,), ‖z − s − z_b‖
    factor: Any  # (n, columns)
    rounding: Rounding
    lengths: Array | None  # (n,), ‖z − s‖², where candidates are compared by products

    @staticmethod
    def of(xp: Any, objects: Array, frame: Frame) -> "Bfloat16Pass":
        """Round all objects, in blocks."""
        n, d = objects.shape

        def round_block(part: slice) -> Rounded:
            with ignore_overflow():
                return round_points(objects[part, :], frame.shift, frame.scale, right=True)

        rounded = list(map_items(xp, round_block, list(blocks(n, rows_at_once(objects)))))
        squared, residual = (xp.concat([part[place] for part in rounded]) for place in (2, 3))
        factor = join_rows([part.right for part in rounded])
        rounding = Rounding.of(xp, squared, residual, d)
        by_product = not frame.recentre and has_cell_products(frame.shift, objects)
        lengths = FullPass.of(xp, objects, frame).norms if by_product else None
        return Bfloat16Pass(objects, frame, squared, residual, factor, rounding, lengths)

    def subset(self, index: Array) -> "Bfloat16Pass":
        """Return the objects with these numbers."""
        objects, norms, residual = (
            take_rows(array, index) for array in (self.objects, self.norms, self.residual)
        )
        lengths = None if self.lengths is None else take_rows(self.lengths, index)
        factor = pick_rows(self.factor, index)
        return Bfloat16Pass(objects, self.frame, norms, residual, factor, self.rounding, lengths)

    def candidates(self, xp: Any, queries: Array, k: int, at_once: int) -> Candidates | None:
        """Return all cells that may be neighbours, by products with `at_once` objects; None if too many."""
        m, n = queries.shape[0], self.objects.shape[0]
        x = round_points(queries, self.frame.shift, self.frame.scale, left=True)
        squared, moved = (xp.astype(part, xp.float64) for part in (x.squared, x.residual))
        length, constant = xp.sqrt(squared), self._constants(xp, x, k)
        limit_of = partial(self.rounding.limit, xp, constant=constant, length=length, moved=moved)
        everything = xp.full((m,), HIGHEST, dtype=xp.int16, device=device_of(queries))
        kept = KeptCells(xp, k, everything, limit_of, min(m * max(FEW, n // WORTH), most_cells(queries)))
        room = make_room(x.left, min(n, at_once))
        for part in blocks(n, at_once):
            code = distance_codes(x.left, self.factor[part], queries, room)  # (m, objects of this block)
            if not kept.add(code, part.start):
                return None
        return self._close(xp, queries, kept.cells())

    # A code holds 8 binary digits of w, so w should be small where it matters: near the k-th smallest. Where
    # stored objects are short, as moved ones are, ‖x − z‖² is nearly ‖x‖² for all of them. So a sample of
    # objects chooses c: w would be 0 somewhat below the k-th smallest of a normal distribution.
    def _constants(self, xp: Any, x: Rounded, k: int) -> Array:
        """Choose c of each query, from 0 to ‖x_b‖², and put it into the factor; (m,), in float64."""
        n, d = self.objects.shape
        squared = xp.astype(x.squared, xp.float64)
        if n < SAMPLED:
            return squared
        set_constants(x.left, d, x.squared * 0)
        sample = self.factor[:: max(1, n // SAMPLE)]
        w = decode(distance_codes(x.left, sample, x.squared))
        below = (2 * math.log(n / k)) ** 0.5 * BEYOND
        guess = below * xp.std(w, axis=1) - xp.mean(w, axis=1)
        guess = xp.where(guess > 0, guess, 0.0)  # and where it is not a number
        constant = xp.astype(xp.minimum(guess, squared), x.squared.dtype)
        set_constants(x.left, d, constant)
        return xp.astype(constant, xp.float64)

    def _close(self, xp: Any, queries: Array, cells: Cells) -> Candidates:
        """Compare cells in the precision of the input: by products as `FullPass` does, or by differences."""
        frame, d = self.frame, queries.shape[1]
        if self.lengths is None:
            return close_distances(xp, queries, self.objects, cells, frame.scale)
        x = frame.shifted(queries)
        length = xp.astype(xp.linalg.vector_norm(x, axis=1), xp.float64)
        squared = take_rows(self.lengths, cells.column)
        value = squared - 2 * cell_products(x, self.objects, cells.row, cells.column)
        norm = xp.sqrt(xp.astype(squared, xp.float64))
        return Candidates(cells._replace(value=value), frame.error(d, take_rows(length, cells.row), norm))
