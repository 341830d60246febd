"""Equal rows of a matrix, which must not be in a training part and among its queries at the same time."""

import numpy as np

from ..arrays import Array, convert, take_rows, to_numpy
from ..arrays.library import row_blocks

NUMBERS = 1 << 19  # numbers hashed at once


def equal_rows(X: Array) -> np.ndarray | None:
    """Number the rows of X so that equal rows, and no others, have one number; None where all differ.

    Parameters
    ----------
    X : array of shape (n, d), of finite float32 or float64

    Returns
    -------
    numbers : int array of shape (n,), or None
    """
    keys = np.concatenate([_keys(to_numpy(block)) for _, block in row_blocks(X, 1 + NUMBERS // X.shape[1])])
    order = np.argsort(keys, kind="stable")
    is_new = np.diff(keys[order], prepend=~keys[order[0]]) != 0  # whether a key differs from that before it
    if is_new.all():
        return None
    numbers = np.empty(len(keys), dtype=int)
    numbers[order] = np.cumsum(is_new)
    later = np.flatnonzero(~is_new)
    if not np.array_equal(_rows(X, order[later - 1]), _rows(X, order[later])):  # different rows have one key
        alike = np.flatnonzero(np.bincount(numbers)[numbers] > 1)
        _, inside = np.unique(_rows(X, alike), axis=0, return_inverse=True)
        numbers[alike] = numbers.max() + 1 + inside.ravel()
    return numbers


def _rows(X: Array, index: np.ndarray) -> np.ndarray:
    return to_numpy(take_rows(X, convert(index, X))) + 0.0  # -0.0 becomes 0.0


# h(x) = Σ_j a_j b_j mod 2⁶⁴ over the 32-bit words b of x, with random odd a_j. Sums of whole numbers do not
# round, so equal rows have equal sums wherever they are.
def _keys(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row, equal for equal rows; shape (n,)."""
    words = np.ascontiguousarray(rows + 0.0).view(np.uint32)  # 0.0 has two forms, and -0.0 + 0.0 is 0.0
    words ^= words >> 16  # round numbers end with zeros, which would leave few bits to the sum
    odd = np.random.default_rng(0).integers(1 << 63, size=words.shape[1], dtype=np.uint64) * 2 + 1
    return words.astype(np.uint64) @ odd
