"""Work in blocks: bounded memory, and for NumPy several blocks side by side."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, reduce
from operator import add
from threading import RLock
from typing import Any

import array_api_compat as compat
from threadpoolctl import ThreadpoolController

WORKERS = 4  # blocks worked on side by side


@cache
def _blas() -> ThreadpoolController:
    """The libraries behind NumPy's products: others, as that of faiss, may count by thread. Found once: it
    takes milliseconds.
    """
    found = ThreadpoolController().select(user_api="blas")
    paths = [library["filepath"] for library in found.info()]
    own = [path for path in paths if "numpy" in path or "scipy" in path]
    return found.select(filepath=own) if own else found


_limiting = RLock()  # limits that overlap, unless one is inside the other, would restore each other's numbers


def blas_threads() -> int:
    """How many threads a product on the processor may use."""
    return max((library["num_threads"] for library in _blas().info()), default=1)


def workers() -> int:
    """How many blocks are worked on side by side."""
    return max(1, min(blas_threads(), WORKERS))


@contextmanager
def limit_blas(threads: int) -> Iterator[None]:
    """Products on so many threads for a while; no change where another thread of the caller limits them."""
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=threads):
            yield
    finally:
        _limiting.release()


def blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover 0 … n − 1."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def even_size(n: int, size: int) -> int:
    """At most `size`, such that all threads get as many blocks of n rows."""
    rounds = -(-n // (size * workers()))
    return -(-n // (rounds * workers()))


def map_blocks(xp: Any, function: Callable[[slice], Any], n: int, size: int) -> list[Any]:
    """[function(block) for block in blocks(n, size)], for NumPy on several threads."""
    return map_threads(xp, function, list(blocks(n, size)))


def sum_blocks(xp: Any, function: Callable[[slice], Any], n: int, size: int) -> Any:
    """Σ function(block) over blocks(n, size), for NumPy on several threads; the same for any number of them.

    Only a few results are held at once: adding one up takes less time than finding one.
    """
    return reduce(add, each(xp, function, list(blocks(n, size))))


def map_threads(xp: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """[function(item) for item in items], for NumPy on several threads."""
    return list(each(xp, function, items))


def each(xp: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """function(item) for item in items, in their order, for NumPy on several threads.

    A NumPy pass that is not a matrix product runs on one core, so up to WORKERS items run side by side (more
    would need more memory) and share the threads of BLAS. torch spreads every operation itself, and so does a
    caller that has threads of its own.
    """
    if not compat.is_numpy_namespace(xp) or len(items) < 2 or not _limiting.acquire(blocking=False):
        yield from map(function, items)
        return
    try:
        threads, side_by_side = blas_threads(), workers()
        with _blas().limit(limits=threads // side_by_side), ThreadPoolExecutor(side_by_side) as pool:
            yield from pool.map(function, items)
    finally:
        _limiting.release()
