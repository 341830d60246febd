"""The array library of the arguments: NumPy, torch, or any other that follows the array API standard.

Every formula of hubless starts with `xp = namespace(...)` and then speaks the standard alone. What the
standard lacks and the hot loops need is here, once per library. This is the only file that names torch.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse
from threadpoolctl import ThreadpoolController

Array = Any

WORKERS = 4  # blocks worked on side by side


def is_foreign(value: object) -> bool:
    """True for an array of another library than NumPy (a torch tensor, say); false for lists and frames."""
    return bool(compat.is_array_api_obj(value)) and not compat.is_numpy_array(value)


def namespace(*arrays: Array) -> Any:
    """The one array library of all arguments; mixtures of libraries or of devices are refused."""
    try:
        xp = compat.array_namespace(*arrays)
    except TypeError as error:
        kinds = " and ".join(sorted(map(describe, arrays)))
        raise TypeError(
            f"all arrays must come from one array library; got {kinds}. Convert one side, "
            "for example with torch.as_tensor(array) or tensor.cpu().numpy()."
        ) from error
    devices = sorted({str(compat.device(a)) for a in arrays})
    if len(devices) > 1:
        raise ValueError(
            f"all arrays must be on one device; got {' and '.join(devices)}. Move one side first."
        )
    return xp


def describe(array: Array) -> str:
    """Library, type and device of an array, for messages."""
    return f"{type(array).__module__.split('.')[0]}.{type(array).__name__} on {compat.device(array)}"


def same_place(a: Array, b: Array) -> bool:
    """Whether two arrays are of one library and on one device."""
    return compat.array_namespace(a) is compat.array_namespace(b) and compat.device(a) == compat.device(b)


def to_numpy(array: Array) -> np.ndarray:
    """A NumPy view or copy on the host."""
    if compat.is_torch_array(array):
        return np.asarray(array.detach().cpu())
    return np.from_dlpack(array, device="cpu") if is_foreign(array) else np.asarray(array)


def convert(array: Array, like: Array) -> Array:
    """`array` in the library and on the device of `like`; untouched where it is there already."""
    xp, device = compat.array_namespace(like), compat.device(like)
    if compat.is_array_api_obj(array) and same_place(array, like):
        return array
    host = to_numpy(array)
    if not (host.flags.c_contiguous and host.flags.writeable):  # torch wants both
        host = host.copy()
    return xp.asarray(host, device=device)


def place(array: np.ndarray, device: str) -> Array:
    """A NumPy array for "cpu", else a torch tensor on the device, "cuda" say."""
    if device == "cpu":
        return array
    return _torch().asarray(np.ascontiguousarray(array), device=device)


def is_on_cpu(array: Array) -> bool:
    """Whether the processor itself holds and computes `array`."""
    return not (compat.is_torch_array(array) and array.is_cuda)


def synchronize(array: Array) -> None:
    """Wait until the device of `array` has done what it was told: the clock may be read then."""
    if not is_on_cpu(array):
        _torch().cuda.synchronize(array.device)


def device_name(device: str) -> str:
    """What an accelerator calls itself."""
    return str(_torch().cuda.get_device_name(device)) if device.startswith("cuda") else device


def _torch() -> Any:
    try:
        from array_api_compat import torch
    except ImportError as error:
        raise ImportError(
            "devices other than the CPU need torch: install it with pip install 'hubless[torch]'."
        ) from error
    return torch


def lift(array: Array) -> Array:
    """Floats of 32 and 64 bits as they are, shorter floats as float32, integers and booleans as float64."""
    xp = namespace(array)
    if array.dtype in (xp.float32, xp.float64):
        return array
    return xp.astype(array, xp.float32 if is_short_float(xp, array.dtype) else xp.float64)


def is_short_float(xp: Any, dtype: Any) -> bool:
    """True for float16 and bfloat16, which the standard does not know."""
    return dtype in {getattr(xp, name) for name in ("float16", "bfloat16") if hasattr(xp, name)}


def is_sparse(value: object) -> bool:
    """True for a sparse tensor."""
    return bool(compat.is_torch_array(value)) and "strided" not in str(getattr(value, "layout", ""))


def detach(array: Array) -> Array:
    """`array` without a gradient: nothing here is differentiated."""
    return array.detach() if compat.is_torch_array(array) else array


def kth_smallest(values: Array, k: int) -> Array:
    """The k-th smallest of each row, k counted from 1; shape (rows,)."""
    xp = namespace(values)
    if compat.is_numpy_namespace(xp):
        return np.partition(values, k - 1, axis=1)[:, k - 1]
    if compat.is_torch_namespace(xp):
        return xp.amax(values.topk(k, dim=1, largest=False, sorted=False).values, dim=1)
    return xp.sort(values, axis=1)[:, k - 1]


def true_positions(mask: Array) -> tuple[Array, Array]:
    """Row and column of every true cell, in row-major order."""
    xp, width = namespace(mask), mask.shape[1]
    if compat.is_numpy_namespace(xp):
        flat = np.flatnonzero(mask)  # several times faster than nonzero on two axes
        return np.divmod(flat, width)
    return xp.nonzero(mask)


def count(index: Array, size: int, weights: Array | None = None) -> Array:
    """How often each of 0 … size − 1 occurs in `index` (1-D), or its sum of weights; −1 is ignored."""
    xp = namespace(index)
    present = index >= 0
    index = index[present]
    weights = None if weights is None else weights[present]
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        return xp.bincount(index, weights=weights, minlength=size)
    host = None if weights is None else to_numpy(weights)
    return convert(np.bincount(to_numpy(index), weights=host, minlength=size), index)


def sparse_rows(rows: Array, columns: Array, weights: Array, n_rows: int, X: Array) -> Array:
    """Σ over the places (row, column) of weight · X[column], gathered by row; shape (n_rows, d)."""
    if compat.is_torch_namespace(namespace(X)):
        gathered = weights[:, None] * X[columns]
        return X.new_zeros((n_rows, X.shape[1])).index_add_(0, rows, gathered)
    places = (to_numpy(rows), to_numpy(columns))
    matrix = scipy.sparse.csr_array((to_numpy(weights), places), shape=(n_rows, X.shape[0]))
    return convert(matrix @ to_numpy(X), X)


def input_rounding(array: Array) -> float:
    """Relative rounding of factors before a float32 product: 0 unless torch may use TF32 or bfloat16."""
    xp = namespace(array)
    if not compat.is_torch_namespace(xp) or array.dtype != xp.float32:
        return 0.0
    try:
        return {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-7}[xp.get_float32_matmul_precision()]
    except RuntimeError:
        return 2.0**-7  # set through torch's newer interface, which this one does not read: assume the worst


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")  # looking for libraries takes milliseconds: once


_limiting = RLock()  # limits that overlap, unless one is inside the other, would restore each other's numbers


def blas_threads() -> int:
    """How many threads a product on the processor may use."""
    return max((library["num_threads"] for library in _blas().info()), default=1)


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


def map_blocks(xp: Any, function: Callable[[slice], Any], n: int, size: int) -> list[Any]:
    """[function(block) for block in blocks(n, size)], for NumPy on several threads."""
    return map_threads(xp, function, list(blocks(n, size)))


def map_threads(xp: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """[function(item) for item in items], for NumPy on several threads.

    A NumPy pass that is not a matrix product runs on one core, so up to WORKERS items run side by side (more
    would need more memory) and share the threads of BLAS. torch spreads every operation itself, and so does a
    caller that has threads of its own.
    """
    if not compat.is_numpy_namespace(xp) or len(items) < 2 or not _limiting.acquire(blocking=False):
        return [function(item) for item in items]
    try:
        threads = blas_threads()
        workers = min(threads, WORKERS)
        with _blas().limit(limits=threads // workers), ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))
    finally:
        _limiting.release()
