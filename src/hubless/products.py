"""Products, and what is solved or gathered with them, once per array library: the standard fuses nothing."""

from contextlib import nullcontext

import array_api_compat as compat
import numpy as np
import scipy.linalg
import scipy.sparse

from .arrays import Array, convert, device_numbers, device_of, input_rounding, is_on_cpu, namespace, to_numpy
from .threads import blocks, limit_blas, map_blocks

LEAST = 1024  # rows worked on at once, at least: adding up d × d numbers must not show
SMALL = 600  # dimensions of what one thread solves
NUMBERS = 1 << 19  # numbers lifted to float64 at once, by each thread


# X Wᵀ + b
def affine(X: Array, W: Array, b: Array) -> Array:
    """The product with the sum inside it where the library can; shapes (n, d), (e, d), (e,) → (n, e)."""
    xp = namespace(X, W)
    if compat.is_torch_namespace(xp):
        return xp.addmm(b, X, W.T)
    product = X @ W.T
    product += b
    return product


# (X − m) Wᵀ + b
def affine_rows(X: Array, W: Array, b: Array, m: Array) -> Array:
    """The same for many rows, in blocks; for NumPy side by side, and with no thread of BLAS that spins on."""
    xp = namespace(X, W, b, m)
    moved = xp.empty((X.shape[0], W.shape[0]), dtype=X.dtype, device=device_of(X))

    def block(part: slice) -> None:
        moved[part, :] = affine(X[part, :] - m, W, b)

    map_blocks(xp, block, X.shape[0], rows_at_once(X))
    return moved


def rows_at_once(X: Array) -> int:
    """How many rows of X to work on at once."""
    return max(LEAST, (NUMBERS if is_on_cpu(X) else device_numbers(X) // 4) // X.shape[1])


# Xᵀ X
def gram(X: Array) -> Array:
    """The products of all columns; shape (d, d)."""
    d = X.shape[1]
    if is_on_cpu(X) or d < 1024:
        return X.T @ X  # NumPy sees that the factors are one, and computes half of it
    product = X.new_empty((d, d))  # elsewhere: the blocks on and above the diagonal, then their mirror
    for part in blocks(d, d // 4):
        product[part, part.start :] = X[:, part].T @ X[:, part.start :]
        product[part.stop :, part] = product[part, part.stop :].T
    return product


# M⁻¹ B, by the Cholesky factor of M: half the work of a general solve, and no pivots that a device waits for
def solve_positive(M: Array, B: Array) -> Array:
    """The solution of M X = B where M is symmetric and positive definite."""
    xp = namespace(M, B)
    if compat.is_numpy_namespace(xp):
        # Threads of BLAS spin for a while after a product, and what follows has threads of its own: a small
        # solution is not worth them.
        with limit_blas(1) if len(M) < SMALL else nullcontext():
            try:
                return scipy.linalg.solve(M, B, assume_a="pos", check_finite=False)
            except scipy.linalg.LinAlgError:  # not positive, by rounding
                return xp.linalg.solve(M, B)
    if compat.is_torch_namespace(xp):
        factor, failed = xp.linalg.cholesky_ex(M)
        return xp.linalg.solve(M, B) if failed else xp.cholesky_solve(B, factor)
    return xp.linalg.solve(M, B)


# b − X Xᵀ, group by group
def minus_gram(X: Array, b: Array) -> Array:
    """All products of the points of each group, subtracted; shapes (g, n, d), (g, n) → (g, n, n)."""
    xp = namespace(X, b)
    if compat.is_torch_namespace(xp):
        product = X @ X.mT if is_on_cpu(X) or input_rounding(X) else _symmetric(X)
        return xp.subtract(b[:, None, :], product, out=product)
    if not compat.is_numpy_namespace(xp):
        return b[:, None, :] - X @ xp.matrix_transpose(X)
    product = X @ X.transpose(0, 2, 1)  # NumPy sees that the factors are one, and computes half of it
    return np.subtract(b[:, None, :], product, out=product)


def _symmetric(X: Array) -> Array:
    """X Xᵀ of each group from three quarters of it: where products are slower than copies."""
    half, product = X.shape[1] // 2, X.new_empty((*X.shape[:2], X.shape[1]))
    above, below = X[:, :half], X[:, half:]
    product[:, :half] = above @ X.mT
    product[:, half:, half:] = below @ below.mT
    product[:, half:, :half] = product[:, :half, half:].mT
    return product


def sparse_rows(rows: Array, columns: Array | None, weights: Array | None, n_rows: int, X: Array) -> Array:
    """Σ over the places (row, column) of weight · X[column], gathered by row; shape (n_rows, d).

    Without columns, place i is that of X[i]; without weights, all are 1.
    """
    if compat.is_torch_namespace(namespace(X)):
        gathered = X if columns is None else X[columns]
        gathered = gathered if weights is None else weights[:, None] * gathered
        return X.new_zeros((n_rows, X.shape[1])).index_add_(0, rows, gathered)
    columns = np.arange(X.shape[0]) if columns is None else to_numpy(columns)
    host = to_numpy(X)
    values = np.ones(len(columns), host.dtype) if weights is None else to_numpy(weights)
    matrix = scipy.sparse.csr_array((values, (to_numpy(rows), columns)), shape=(n_rows, len(host)))
    return convert(matrix @ host, X)
