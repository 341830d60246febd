"""Cells of matrices: the smallest of each row, where a mask is true, those at given places."""

import array_api_compat as compat
import numpy as np

from .library import Array, blocks, namespace

NUMBERS = 1 << 18  # numbers halved at once: they should fit into the cache


def kth_smallest(values: Array, k: int) -> Array:
    """Return the k-th smallest value of each row, k counted from 1; shape (rows,)."""
    xp = namespace(values)
    if compat.is_numpy_namespace(xp):
        return np.partition(values, k - 1, axis=1)[:, k - 1]
    if compat.is_torch_namespace(xp):
        return xp.amax(values.topk(k, dim=1, largest=False, sorted=False).values, dim=1)
    return xp.sort(values, axis=1)[:, k - 1]


def k_smallest(values: Array, k: int) -> Array:
    """Return the k smallest values of each row, in any order; all of them, where there are fewer."""
    xp = namespace(values)
    if values.shape[1] <= k:
        return values
    if compat.is_numpy_namespace(xp):
        return np.partition(values, k - 1, axis=1)[:, :k]
    if compat.is_torch_namespace(xp):
        return values.topk(k, dim=1, largest=False, sorted=False).values
    return xp.sort(values, axis=1)[:, :k]


def smallest(values: Array, k: int) -> tuple[Array, Array]:
    """Return the k smallest values of each row, ascending, and their columns; shapes (rows, k)."""
    xp = namespace(values)
    if compat.is_torch_namespace(xp):
        return tuple(values.topk(k, dim=1, largest=False))
    order = xp.argsort(values, axis=1)[:, :k]
    return take_cells(values, order), order


def largest(values: Array, k: int) -> Array:
    """Return the k largest values of each row, in any order; shape (rows, k)."""
    xp, start = namespace(values), values.shape[1] - k
    if compat.is_numpy_namespace(xp):
        return np.partition(values, start, axis=1)[:, start:]
    if compat.is_torch_namespace(xp):
        return values.topk(k, dim=1, sorted=False).values
    return xp.sort(values, axis=1)[:, start:]


# NumPy takes the minimum of an axis in runs of the last one, which are short; halves are long.
def smallest_of_blocks(view: Array) -> Array:
    """Return the smallest value of every block; shapes (rows, size, blocks) → (rows, blocks)."""
    xp = namespace(view)
    if not compat.is_numpy_namespace(xp):
        return xp.min(view, axis=1)
    (m, size, width), parts = view.shape, [view[:0, 0]]
    for part in blocks(m, max(1, NUMBERS // (size * width))):
        left, rest = view[part], size
        while rest > 1:
            half = rest // 2
            last = left[:, rest - 1 : rest]
            left = np.minimum(left[:, :half], left[:, half : 2 * half])
            if rest % 2:
                np.minimum(left[:, :1], last, out=left[:, :1])
            rest = half
        parts.append(left[:, 0])
    return np.concatenate(parts)


def true_positions(mask: Array) -> tuple[Array, Array]:
    """Return the row and the column of every true cell, in row-major order."""
    xp, width = namespace(mask), mask.shape[1]
    if compat.is_numpy_namespace(xp):
        flat = np.flatnonzero(mask)  # several times faster than nonzero on two axes
        return np.divmod(flat, width)
    return xp.nonzero(mask)


def take_cells(values: Array, index: Array, axis: int = 1) -> Array:
    """Return the values at these places of an axis, which are not negative; of as many axes as `values`."""
    xp = namespace(values, index)
    if compat.is_torch_namespace(xp):
        return values.gather(axis, index)  # that of the standard would also check for negative numbers
    return xp.take_along_axis(values, index, axis=axis)


def pick_blocks(view: Array, row: Array, block: Array) -> Array:
    """Return view[row[i], :, block[i]] for each i; shapes (rows, size, blocks) → (picked, size)."""
    xp = namespace(view)
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        return view[row, :, block]
    m, size, width = view.shape
    flat = xp.reshape(xp.permute_dims(view, (0, 2, 1)), (m * width, size))
    return xp.take(flat, row * width + block, axis=0)
