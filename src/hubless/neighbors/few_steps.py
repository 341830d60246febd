"""Neighbours in few steps, for little data on an accelerator: there a step takes longer to start than to run.

`ranking` looks for the cells that may be neighbours, however many they are. Here each row has a fixed number
of places, a few more than it has neighbours, and one look at the end tells whether they were enough; nearly
always they are, and else `ranking` has to do it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..arrays import Array, is_on_cpu, namespace, smallest, take_cells
from ..arrays.library import Streamed
from ..arrays.products import affine
from .differences import squared_distances
from .frame import Frame, ignore_overflow
from .full_pass import FullPass
from .ranking import BLOCK

CELLS = 1 << 27  # values of one product
SPARE = 8  # places of a row beside those of its neighbours


class Few(NamedTuple):
    """The k nearest objects of each row, nearest first, ties to the lower column."""

    columns: Array  # (m, k)
    squared: Array  # (m, k), float64, inf where a row has fewer objects


def fits_few_steps(queries: Array, objects: Array, k: int) -> bool:
    """Return whether a search is little enough, on a device that starts steps slowly."""
    if isinstance(objects, Streamed) or is_on_cpu(objects):
        return False
    return queries.shape[0] * objects.shape[0] <= CELLS and k + SPARE <= objects.shape[0]


def search_in_few_steps(queries: Array, objects: Array, k: int) -> Few | None:
    """Return the k nearest objects of each query; None where these steps cannot tell."""
    xp = namespace(queries, objects)
    with ignore_overflow():
        shift = xp.mean(objects, axis=0)
        frame = Frame(shift.dtype, shift, 1.0, recentre=True, offset=0.0)  # what overflows is found out
        first = FullPass.of(xp, objects, frame)
        x, limit_of = first.prepare(xp, queries)
        value = affine(-2 * x, frame.shifted(objects), first.norms)

        def direct(row: Array, column: Array) -> Array:
            return squared_distances(queries, objects, row, column)

        return nearest_of_rows(xp, value, k, limit_of, direct)


def nearest_of_rows(
    xp: Any,
    value: Array,
    k: int,
    limit_of: Callable[[Array], Array],
    direct: Callable[[Array, Array], Array],
    n_others: Array | None = None,
) -> Few | None:
    """Return the k nearest of each row of values; None where the places were too few.

    Parameters
    ----------
    value : array of shape (m, n); inf where a row has no object
    limit_of : from the k-th smallest values to what no neighbour exceeds, as for `KeptCells`
    direct : (rows, columns) → their exact squared distances
    n_others : (m,), how many objects each row has; None for all n
    """
    m, n = value.shape
    width = min(k + SPARE, n)
    near, column, outside = _smallest_of_rows(xp, value, width)
    limit = limit_of(near[:, k - 1])
    # a value that is not a number, or not finite, overflowed, unless the row has no more objects
    numbers = xp.sum(xp.astype(xp.abs(near) < xp.inf, xp.int64), axis=1)
    wanted = width if n_others is None else xp.clip(n_others, max=width)
    if not bool(xp.all((numbers == wanted) & ((outside > limit) | (numbers < width)))):
        return None
    column = xp.sort(column, axis=1)
    row = xp.broadcast_to(xp.arange(m, dtype=column.dtype, device=column.device)[:, None], column.shape)
    squared = xp.reshape(direct(xp.reshape(row, (-1,)), xp.reshape(column, (-1,))), column.shape)
    if n_others is not None:
        squared = xp.where(take_cells(value, column) < xp.inf, squared, xp.inf)
    order = xp.argsort(squared, axis=1, stable=True)[:, :k]  # of equal ones the lower column stays first
    return Few(take_cells(column, order), take_cells(squared, order))


def _smallest_of_rows(xp: Any, value: Array, width: int) -> tuple[Array, Array, Array]:
    """Return the smallest values of each row, ascending, their columns, and a bound of all others."""
    m, n = value.shape
    count = n // BLOCK
    if count < 2 * width:
        near, column = smallest(value, min(width + 1, n))
        return (
            near[:, :width],
            column[:, :width],
            near[:, -1] if n > width else xp.full_like(near[:, 0], xp.inf),
        )
    # the smallest values are in the blocks of the smallest minima, or among the last columns
    blocks = xp.reshape(value[:, : count * BLOCK], (m, BLOCK, count))
    minima, block = smallest(xp.min(blocks, axis=1), width + 1)
    block = block[:, :width]
    inside = take_cells(blocks, xp.broadcast_to(block[:, None, :], (m, BLOCK, width)), axis=2)
    step = xp.arange(BLOCK, dtype=block.dtype, device=block.device) * count
    columns = xp.reshape(step[None, :, None] + block[:, None, :], (m, BLOCK * width))
    inside = xp.reshape(inside, (m, BLOCK * width))
    if count * BLOCK < n:
        rest = xp.arange(count * BLOCK, n, dtype=block.dtype, device=block.device)
        inside = xp.concat([inside, value[:, count * BLOCK :]], axis=1)
        columns = xp.concat([columns, xp.broadcast_to(rest[None, :], (m, rest.shape[0]))], axis=1)
    near, place = smallest(inside, width + 1)
    outside = xp.minimum(minima[:, -1], near[:, -1])
    return near[:, :width], take_cells(columns, place[:, :width]), outside
