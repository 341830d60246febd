"""Products, and what is solved or gathered with them, once per array library; work in blocks, on threads."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache, reduce
from operator import add
from threading import RLock, local
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np
import scipy.linalg
import scipy.sparse
from threadpoolctl import ThreadpoolController

from .devices import device_numbers
from .library import Array, blocks, convert, device_of, input_rounding, is_on_cpu, namespace, to_numpy

MIN_ROWS = 1024  # rows worked on at once, at least: then adding up d × d results costs little in comparison
SMALL = 600  # dimensions below which one thread solves a linear system
NUMBERS = 1 << 19  # numbers lifted to float64 at once, by each thread


# X Wᵀ + b
def affine(X: Array, W: Array, b: Array) -> Array:
    """Return the product and the sum in one step where the library can; (n, d), (e, d), (e,) → (n, e)."""
    xp = namespace(X, W)
    if compat.is_torch_namespace(xp):
        return xp.addmm(b, X, W.T)
    product = X @ W.T
    product += b
    return product


# (X − m) Wᵀ + b
def affine_rows(X: Array, W: Array, b: Array, m: Array) -> Array:
    """Return the product for many rows, in blocks; NumPy uses our threads, as those of BLAS keep spinning."""
    xp = namespace(X, W, b, m)
    moved = xp.empty((X.shape[0], W.shape[0]), dtype=X.dtype, device=device_of(X))

    def block(part: slice) -> None:
        if compat.is_numpy_namespace(xp):  # without a copy of the product
            np.matmul(X[part, :] - m, W.T, out=moved[part, :])
            moved[part, :] += b
        else:
            moved[part, :] = affine(X[part, :] - m, W, b)

    map_blocks(xp, block, X.shape[0], rows_at_once(X))
    return moved


# X M
def product_rows(X: Array, M: Array) -> Array:
    """Return the product for many rows, in blocks, as `affine_rows` does."""
    xp = namespace(X, M)
    return xp.concat(map_blocks(xp, lambda part: X[part, :] @ M, X.shape[0], rows_at_once(X)))


def rows_at_once(X: Array) -> int:
    """Return how many rows of X to work on at once."""
    return max(MIN_ROWS, (NUMBERS if is_on_cpu(X) else device_numbers(X) // 4) // X.shape[1])


# Xᵀ X
def gram(X: Array) -> Array:
    """Return the products of all columns; shape (d, d)."""
    d = X.shape[1]
    if is_on_cpu(X) or d < 1024:
        return X.T @ X  # NumPy sees that both factors are the same, and computes half of it
    product = X.new_empty((d, d))  # elsewhere: the blocks on and above the diagonal, then their mirror
    for part in blocks(d, d // 4):
        product[part, part.start :] = X[:, part].T @ X[:, part.start :]
        product[part.stop :, part] = product[part, part.stop :].T
    return product


# M⁻¹ B by the Cholesky factor of M: half the work of a general solve, and no pivots for a device to wait for
def solve_positive(M: Array, B: Array) -> Array:
    """Return the solution of M X = B where M is symmetric and positive definite."""
    xp = namespace(M, B)
    if compat.is_numpy_namespace(xp):
        # Threads of BLAS keep spinning for a while after a product and disturb the threads of what follows: a
        # small system is not worth them.
        with limit_blas(1) if len(M) < SMALL else nullcontext():
            try:
                return scipy.linalg.solve(M, B, assume_a="pos", check_finite=False)
            except scipy.linalg.LinAlgError:  # rounding made M indefinite
                return xp.linalg.solve(M, B)
    if compat.is_torch_namespace(xp):
        factor, failed = xp.linalg.cholesky_ex(M)
        return xp.linalg.solve(M, B) if failed else xp.cholesky_solve(B, factor)
    return xp.linalg.solve(M, B)


# b − X Xᵀ, group by group
def minus_gram(X: Array, b: Array) -> Array:
    """Subtract all products of the points of each group; shapes (g, n, d), (g, n) → (g, n, n)."""
    xp = namespace(X, b)
    if compat.is_torch_namespace(xp):
        product = X @ X.mT if is_on_cpu(X) or input_rounding(X) else _symmetric(X)
        return xp.subtract(b[:, None, :], product, out=product)
    if not compat.is_numpy_namespace(xp):
        return b[:, None, :] - X @ xp.matrix_transpose(X)
    product = X @ X.transpose(0, 2, 1)  # NumPy sees that both factors are the same, and computes half of it
    return np.subtract(b[:, None, :], product, out=product)


def _symmetric(X: Array) -> Array:
    """Return X Xᵀ of each group, a quarter of it copied: for devices that copy faster than they multiply."""
    half, product = X.shape[1] // 2, X.new_empty((*X.shape[:2], X.shape[1]))
    above, below = X[:, :half], X[:, half:]
    product[:, :half] = above @ X.mT
    product[:, half:, half:] = below @ below.mT
    product[:, half:, :half] = product[:, :half, half:].mT
    return product


def sparse_rows(rows: Array, columns: Array | None, weights: Array | None, n_rows: int, X: Array) -> Array:
    """Return Σ weight · X[column] over the entries (row, column) of each row; shape (n_rows, d).

    Without columns, entry i is that of X[i]; without weights, all are 1.
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


# --- work in blocks: bounded memory, and for NumPy several blocks at the same time -------------------------


WORKERS = 4  # blocks worked on at the same time


@cache
def _blas() -> ThreadpoolController:
    """Find the libraries behind the products of NumPy and SciPy; once, as it takes milliseconds.

    Others are left out: that of faiss keeps a limit for each thread.
    """
    libraries = ThreadpoolController().select(user_api="blas")
    paths = [library["filepath"] for library in libraries.info()]
    ours = [path for path in paths if "numpy" in path or "scipy" in path]
    return libraries.select(filepath=ours) if ours else libraries


_limiting = RLock()  # limits of two threads at the same time would restore each other's numbers


def blas_threads() -> int:
    """Return how many threads a product on the processor may use."""
    return max((library["num_threads"] for library in _blas().info()), default=1)


def workers() -> int:
    """Return how many blocks are worked on at the same time: by the threads that are kept, if any are."""
    return _kept[-1].size if _kept else max(1, min(blas_threads(), WORKERS))


@contextmanager
def limit_blas(threads: int) -> Iterator[None]:
    """Limit the threads of products for a while; do nothing if another thread limits them already."""
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=threads):
            yield
    finally:
        _limiting.release()


class _Threads(NamedTuple):
    """Threads that blocks run on."""

    pool: ThreadPoolExecutor
    size: int


_kept: list[_Threads] = []  # by the thread that has `_limiting`
_of_block = local()  # `threads`, in the threads that blocks run on


def threads_of_block() -> int | None:
    """Return how many threads a product may use in the thread of a block; None elsewhere."""
    return getattr(_of_block, "threads", None)


def _begin_blocks(threads: int) -> None:
    _of_block.threads = threads


@contextmanager
def keep_threads(blas: int | None = None) -> Iterator[ThreadPoolExecutor | None]:
    """Yield the threads that blocks run on, which calls inside share; None where another thread has them.

    Parameters
    ----------
    blas : int, optional
        Threads of BLAS for each of them; by default they share all. 1 is best for many small products: those
        of BLAS keep spinning in between.
    """
    if not _limiting.acquire(blocking=False):
        yield None
        return
    try:
        if _kept:
            yield _kept[-1].pool
            return
        at_once = workers()
        threads = blas or blas_threads() // at_once
        pool = ThreadPoolExecutor(at_once, initializer=_begin_blocks, initargs=(threads,))
        with _blas().limit(limits=threads), pool:
            _kept.append(_Threads(pool, at_once))
            try:
                yield pool
            finally:
                _kept.pop()
    finally:
        _limiting.release()


def even_size(n: int, size: int) -> int:
    """Return a size of blocks, at most `size`, that gives all threads equally many blocks of n rows."""
    rounds = -(-n // (size * workers()))
    return -(-n // (rounds * workers()))


def map_blocks(xp: Any, function: Callable[[slice], Any], n: int, size: int) -> list[Any]:
    """Return [function(block) for block in blocks(n, size)], for NumPy on several threads."""
    return list(map_items(xp, function, list(blocks(n, size))))


def sum_blocks(xp: Any, function: Callable[[slice], Any], n: int, size: int) -> Any:
    """Return Σ function(block) over blocks(n, size), for NumPy on several threads.

    The sum is the same for any number of threads. Only a few results are held at once: adding one takes less
    time than computing one.
    """
    return reduce(add, map_items(xp, function, list(blocks(n, size))))


def map_items(xp: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield function(item) for each item, in order, for NumPy on several threads.

    A NumPy step that is not a matrix product runs on one core, so up to WORKERS items run at the same time
    (more would need more memory) and share the threads of BLAS. torch spreads every operation itself, and a
    caller that already uses threads is left alone.
    """
    if not compat.is_numpy_namespace(xp) or len(items) < 2:
        yield from map(function, items)
        return
    with keep_threads() as pool:
        yield from map(function, items) if pool is None else pool.map(function, items)
