"""Origin and unit of the products that the search compares points by, and how far these products err."""

import math
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, input_rounding, is_on_cpu, namespace, rows

RUN = 16  # squares summed in the precision of the points, where float64 would cost another pass
SAMPLE = 256  # objects looked at to choose the origin and the unit of the products


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


def squared_lengths(points: Array) -> Array:
    """Return ‖z‖² along the last axis, in the precision of the points; long sums are taken in float64."""
    xp, d = namespace(points), points.shape[-1]
    if is_on_cpu(points) or d % RUN:
        wide = xp.astype(points, xp.float64, copy=False)
        return xp.astype(xp.vecdot(wide, wide, axis=-1), points.dtype)
    runs = xp.sum(xp.reshape(points * points, (*points.shape[:-1], RUN, d // RUN)), axis=-2)
    return xp.astype(xp.sum(runs, axis=-1, dtype=xp.float64), points.dtype)
