"""The array library of the arguments: NumPy, torch, or any other that follows the array API standard.

Every formula of hubless starts with `xp = namespace(...)` and then speaks the standard alone. What the
standard lacks and the hot loops need is here, once per library. This is the only file that names torch.
"""

from collections.abc import Iterator
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse

from .threads import blocks

Array = Any


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


def pick_blocks(view: Array, row: Array, block: Array) -> Array:
    """view[row[i], :, block[i]] for each i; `view` of shape (rows, size, blocks), result (picked, size)."""
    xp = namespace(view)
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        return view[row, :, block]
    m, size, width = view.shape
    flat = xp.reshape(xp.permute_dims(view, (0, 2, 1)), (m * width, size))
    return xp.take(flat, row * width + block, axis=0)


def put(array: Array, places: Array, values: Array) -> Array:
    """A copy of a 1-D array with other values in some places."""
    xp = namespace(array)
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        array = xp.asarray(array, copy=True)
        array[places] = values
        return array
    host = to_numpy(array).copy()
    host[to_numpy(places)] = to_numpy(values)
    return convert(host, array)


# X Wᵀ + b
def affine(X: Array, W: Array, b: Array) -> Array:
    """The product with the sum inside it where the library can; shapes (n, d), (e, d), (e,) → (n, e)."""
    xp = namespace(X, W)
    if compat.is_torch_namespace(xp):
        return xp.addmm(b, X, W.T)
    product = X @ W.T
    product += b
    return product


# Xᵀ X
def gram(X: Array) -> Array:
    """The products of all columns; shape (d, d)."""
    d = X.shape[1]
    if is_on_cpu(X) or d < 1024:
        return X.T @ X  # NumPy sees that the factors are one, and computes half of it
    product = X.new_empty((d, d))  # elsewhere: the blocks on and above the diagonal, then their mirror
    for part in blocks(d, d // 4):
        product[part, part.start :] = X[:, part].T @ X[:, part.start :]
        product[part.start :, part] = product[part, part.start :].T
    return product


# b − X Xᵀ, group by group
def minus_gram(X: Array, b: Array) -> Array:
    """All products of the points of each group, subtracted; shapes (g, n, d), (g, n) → (g, n, n)."""
    xp = namespace(X, b)
    if compat.is_torch_namespace(xp):
        return xp.baddbmm(b[:, None, :], X, X.mT, alpha=-1)
    if not compat.is_numpy_namespace(xp):
        return b[:, None, :] - X @ xp.matrix_transpose(X)
    product = X @ X.transpose(0, 2, 1)  # NumPy sees that the factors are one, and computes half of it
    return np.subtract(b[:, None, :], product, out=product)


def rows(X: Array, part: slice) -> Array:
    """Some rows of X, as an array."""
    return X[part, :]


def row_blocks(X: Array, size: int) -> Iterator[tuple[slice, Array]]:
    """All rows of X, so many at a time, each with its place."""
    return ((part, rows(X, part)) for part in blocks(X.shape[0], size))


def take_rows(X: Array, index: Array) -> Array:
    """The rows of X with these numbers, as an array."""
    return namespace(X, index).take(X, index, axis=0)


def subset(X: Array, index: Array) -> Array:
    """X reduced to some of its rows, held as X is."""
    return take_rows(X, index)


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
