"""The first pass inside groups: all pairs of each group of a stack, in bfloat16 or in the input's precision.

Both return the cells that may be neighbours; a cell is a row of the stack and a column of its group.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import array_api_compat as compat

from ..arrays import Array, kth_smallest, take_rows
from ..arrays.bfloat16 import HIGHEST, distance_codes, leave_out, round_points
from ..arrays.products import minus_gram
from .bfloat16_pass import FEW, WORTH, Rounding
from .differences import close_distances, squared_distances
from .frame import Frame, squared_lengths
from .ranking import Candidates, Cells, Minima, cells_within, most_cells

GROUP_SAMPLE = 64  # objects of a group whose mean is its origin, at most twice as many


class Stack(NamedTuple):
    """Groups of objects, of similar size."""

    X: Array  # (n, d), all objects
    members: Array  # (groups · size,), their row numbers, group by group
    is_member: Array  # (groups, size), False where a shorter group repeats its last object
    is_padded: bool  # whether any is False

    def place(self, row: Array, column: Array) -> Array:
        """Return the rows of the stack that cells compare with; groups begin at multiples of their size."""
        return row - row % self.is_member.shape[1] + column

    def distances(self, row: Array, column: Array, scale: float) -> Array:
        """Return the exact squared distances of cells, times scale²."""
        own, other = take_rows(self.members, row), take_rows(self.members, self.place(row, column))
        return squared_distances(self.X, self.X, own, other, scale)

    def n_others(self, xp: Any) -> Array:
        """Return with how many other objects each row is compared; (m,)."""
        is_member = xp.astype(self.is_member, xp.int64)
        return xp.reshape(xp.sum(is_member, axis=1, keepdims=True) - is_member, (-1,))

    def neighbors(self, xp: Any, column: Array, is_known: Array) -> Array:
        """Return the numbers of the objects in these columns, −1 where they are not known; (m, k)."""
        row = xp.arange(column.shape[0], dtype=xp.int64, device=compat.device(column))
        near = xp.clip(self.place(row[:, None], column), min=0)
        index = xp.reshape(take_rows(self.members, xp.reshape(near, (-1,))), column.shape)
        return xp.where(is_known, xp.astype(index, xp.int64), -1)

    def centres(self, xp: Any) -> Array:
        """Return the mean of a sample of each group, or of all of it; shape (groups, 1, d)."""
        groups, size = self.is_member.shape
        places = xp.reshape(self.members, (groups, size))[:, :: max(1, size // GROUP_SAMPLE)]
        sample = take_rows(self.X, xp.reshape(places, (-1,)))
        return xp.mean(xp.reshape(sample, (groups, -1, self.X.shape[1])), axis=1, keepdims=True)

    def without_self(self, xp: Any, cells: Cells) -> tuple[Cells, Array]:
        """Leave out objects that are no members, and each object as its own neighbour; also return places."""
        other = self.place(cells.row, cells.column)
        kept = take_rows(xp.reshape(self.is_member, (-1,)), other) & (other != cells.row)
        return cells.where(kept), other[kept]


# Inside a group, ½‖z − s‖² − (x − s)ᵀ(z − s) orders objects as ‖x − z‖² does; s is about the mean of the
# group. Selection and rounding are those of `full_pass`, with half its values.
def full_values(xp: Any, stack: Stack, frame: Frame) -> tuple[Array, Array, Callable[[Array], Array]]:
    """Compare all pairs of each group in the precision of X.

    Returns
    -------
    value : array of shape (m, size), inf for an object itself and for what is no member
    length : array of shape (m,), ‖x − s‖
    limit_of : from the k-th smallest values to what no neighbour exceeds
    """
    (groups, size), d = stack.is_member.shape, stack.X.shape[1]
    points = frame.shifted(xp.reshape(take_rows(stack.X, stack.members), (groups, size, d)))
    norms = squared_lengths(points)  # (groups, size)
    value = minus_gram(points, xp.where(stack.is_member, norms / 2, xp.inf))  # (groups, size, size)
    flat = xp.reshape(value, (groups, size * size))
    flat[:, :: size + 1] = xp.inf
    length = xp.sqrt(xp.astype(xp.reshape(norms, (-1,)), xp.float64))

    def limit_of(best: Array) -> Array:
        bound = xp.astype(best, xp.float64)
        reach = length + xp.sqrt(xp.clip(2 * bound + length**2, min=0.0))
        error = frame.error(d, length, xp.minimum(reach, xp.max(length))) / 2
        return xp.astype(bound + 2 * error, value.dtype)

    return xp.reshape(flat, (groups * size, size)), length, limit_of


def full_candidates(xp: Any, stack: Stack, k: int, frame: Frame) -> Candidates | None:
    """Compare all pairs of each group in the precision of X; None if too many may be near."""
    value, length, limit_of = full_values(xp, stack, frame)
    minima = Minima.of(xp, value, k)
    limit = xp.full(length.shape, xp.inf, dtype=value.dtype, device=compat.device(value))
    if minima.values.shape[1] >= k:
        limit = limit_of(kth_smallest(minima.values, k))
    limit = xp.where(xp.reshape(stack.is_member, (-1,)), limit, -xp.inf)
    cells = cells_within(xp, value, minima, limit)
    if cells.row.shape[0] > most_cells(value):
        return None
    cells, other = stack.without_self(xp, cells)
    error = frame.error(stack.X.shape[1], take_rows(length, cells.row), take_rows(length, other)) / 2
    return Candidates(cells, error)


def bfloat16_candidates(xp: Any, stack: Stack, k: int, frame: Frame) -> Candidates | None:
    """Compare all pairs of each group in bfloat16, as `bfloat16_pass` does; None if too many may be near."""
    (groups, size), d = stack.is_member.shape, stack.X.shape[1]
    m = groups * size
    rounded = round_points(stack.X, frame.shift, frame.scale, stack.members, left=True, right=True)
    if stack.is_padded:
        leave_out(rounded.right, d, stack.is_member)
    code = distance_codes(rounded.left, rounded.right, stack.X)  # (groups, size, size)
    flat = xp.reshape(code, (groups, size * size))
    flat[:, :: size + 1] = HIGHEST  # no object is a neighbour of itself
    code = xp.reshape(flat, (m, size))
    squared, moved = (xp.reshape(part, (m,)) for part in (rounded.squared, rounded.residual))
    minima = Minima.of(xp, code, k)
    limit = xp.full((m,), HIGHEST, dtype=xp.int16, device=compat.device(code))
    if minima.values.shape[1] >= k:
        best = kth_smallest(minima.values, k)
        rounding = Rounding.of(xp, squared, moved, d)
        constant = xp.astype(squared, xp.float64)
        limit = rounding.limit(xp, best, constant, xp.sqrt(constant), xp.astype(moved, xp.float64))
    if stack.is_padded:
        limit = xp.where(xp.reshape(stack.is_member, (m,)), limit, xp.full_like(limit, -1))
    cells = cells_within(xp, code, minima, limit)
    if cells.row.shape[0] > min(m * max(FEW, size // WORTH), most_cells(code)):
        return None
    cells, other = stack.without_self(xp, cells)
    row, column = take_rows(stack.members, cells.row), take_rows(stack.members, other)
    close = close_distances(xp, stack.X, stack.X, Cells(row, column, cells.value), frame.scale)
    return Candidates(cells._replace(value=close.cells.value), close.error)
