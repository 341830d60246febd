"""The array library of the arguments: NumPy, torch, or any other that follows the array API standard.

Every formula of hubless starts with `xp = namespace(...)` and then speaks the standard alone. What the
standard lacks and the hot loops need is here, and in `products`, once per library: no other file names torch.
"""

from collections.abc import Iterator
from typing import Any

import array_api_compat as compat
import numpy as np

from .streams import Streamed, copy_rows
from .threads import blocks

Array = Any

COPIED = 1 << 28  # bytes copied at once between the host and an accelerator


def is_foreign(value: object) -> bool:
    """True for an array of another library than NumPy (a torch tensor, say); false for lists and frames."""
    return bool(compat.is_array_api_obj(value)) and not compat.is_numpy_array(value)


def float_type(dtype: Any) -> np.dtype:
    """What numbers of a type are computed with: float32 stays, float16 becomes it, all else is float64."""
    return np.dtype(np.float32 if dtype in (np.float16, np.float32) else np.float64)


def is_dask(value: object) -> bool:
    """True for an array, a data frame or a series of Dask, which is not imported for that."""
    return type(value).__module__.partition(".")[0] == "dask"


def _anchor(array: Array) -> Array:
    """An array of the library and on the device that `array` is computed with: itself, unless streamed."""
    return array.anchor if isinstance(array, Streamed) else array


def namespace(*arrays: Array) -> Any:
    """The one array library of all arguments; mixtures of libraries or of devices are refused."""
    arrays = tuple(map(_anchor, arrays))
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
    a, b = _anchor(a), _anchor(b)
    return compat.array_namespace(a) is compat.array_namespace(b) and compat.device(a) == compat.device(b)


def device_of(array: Array) -> Any:
    """Where an array is computed."""
    return compat.device(_anchor(array))


def to_numpy(array: Array) -> np.ndarray:
    """A NumPy view or copy on the host."""
    if compat.is_torch_array(array):
        return np.asarray(array.detach().cpu()) if is_on_cpu(array) else _received(array.detach())
    return np.from_dlpack(array, device="cpu") if is_foreign(array) else np.asarray(array)


def _received(array: Array) -> np.ndarray:
    """A tensor of an accelerator on the host; a large one through memory that the accelerator writes fast."""
    if array.ndim != 2 or array.nbytes < COPIED:
        return np.asarray(array.cpu())
    size = max(1, COPIED // (array.nbytes // array.shape[0]))
    buffer = array.new_empty((size, array.shape[1]), device="cpu", pin_memory=True)
    host = np.empty(array.shape, dtype=np.asarray(buffer).dtype)
    for part in blocks(array.shape[0], size):
        piece = buffer[: part.stop - part.start]
        piece.copy_(array[part])
        copy_rows(np.asarray(piece), host[part])
    return host


def convert(array: Array, like: Array) -> Array:
    """`array` in the library and on the device of `like`; untouched where it is there already."""
    like = _anchor(like)
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


def on_device(array: np.ndarray, device: str, *, whole: bool = False) -> Array:
    """A NumPy array as a tensor on a device, or as rows that are sent there when they are asked for."""
    torch = _torch()
    try:
        anchor = torch.empty(0, dtype=getattr(torch, array.dtype.name), device=device)
    except (RuntimeError, AssertionError) as error:  # torch has both for a device that is not there
        raise ValueError(f"torch has no device {device!r} here ({error}); use device=None.") from error
    is_whole = fits(array, anchor)
    if is_whole and (array.nbytes < COPIED or is_on_cpu(anchor)):
        return convert(array, anchor)
    if whole and not is_whole:
        raise ValueError(
            f"{array.nbytes / 2**30:.1f} GiB are more than fit on {device!r} beside what is computed there. "
            "Use device=None, or MoveLabeledClassifier, which reads such data block by block."
        )

    def buffer(shape: tuple[int, int]) -> Array:
        return torch.empty(shape, dtype=anchor.dtype, pin_memory=not is_on_cpu(anchor))

    # rows may be sent by another thread, which would not know of a current device or stream
    stream = None if is_on_cpu(anchor) else torch.cuda.current_stream(anchor.device)

    def send(sent: Array) -> Array:
        with torch.cuda.stream(stream):
            return sent.to(anchor.device, non_blocking=True)

    streamed = Streamed(array, anchor, buffer, send)
    if not is_whole:
        return streamed
    there = anchor.new_empty(array.shape)
    for part, rows_there in streamed.blocks(max(1, COPIED // (array.nbytes // len(array)))):
        there[part] = rows_there
    return there


def fits(array: np.ndarray, anchor: Array) -> bool:
    """Whether a device has room for an array, and three times as much for what is computed from it."""
    return is_on_cpu(anchor) or bool(4 * array.nbytes <= _torch().cuda.mem_get_info(anchor.device)[0])


def is_on_cpu(array: Array) -> bool:
    """Whether the processor itself computes with `array`."""
    array = _anchor(array)
    return not (compat.is_torch_array(array) and array.is_cuda)


def device_numbers(array: Array) -> int:
    """How many numbers one step may hold on the accelerator of `array`: a small part of its memory."""
    return 1 << 27 if is_on_cpu(array) else int(_torch().cuda.mem_get_info(device_of(array))[1] // 128)


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


def rows(X: Array, part: slice) -> Array:
    """Some rows of X, as an array."""
    return X.rows(part) if isinstance(X, Streamed) else X[part, :]


def row_blocks(X: Array, size: int) -> Iterator[tuple[slice, Array]]:
    """All rows of X, so many at a time, each with its place."""
    if isinstance(X, Streamed):
        return X.blocks(size)
    return ((part, rows(X, part)) for part in blocks(X.shape[0], size))


def take_rows(X: Array, index: Array) -> Array:
    """The rows of X with these numbers, none of them negative, as an array; X of any number of axes."""
    xp = namespace(X, index)
    if isinstance(X, Streamed):
        return X.take(to_numpy(index))
    if compat.is_torch_namespace(xp):
        return X.index_select(0, index)  # the standard's `take` also looks for negative numbers
    return xp.take(X, index, axis=0)


def subset(X: Array, index: Array) -> Array:
    """X reduced to some of its rows, held as X is."""
    return X.subset(to_numpy(index)) if isinstance(X, Streamed) else take_rows(X, index)


def count(index: Array, size: int, weights: Array | None = None) -> Array:
    """How often each of 0 … size − 1 occurs in `index` (1-D), or its sum of weights; −1 is ignored."""
    present = index >= 0
    return tally(index[present], size, None if weights is None else weights[present])


def tally(index: Array, size: int, weights: Array | None = None) -> Array:
    """`count` where there is no −1, which costs less."""
    xp = namespace(index)
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        return xp.bincount(index, weights=weights, minlength=size)
    host = None if weights is None else to_numpy(weights)
    return convert(np.bincount(to_numpy(index), weights=host, minlength=size), index)


def input_rounding(array: Array) -> float:
    """Relative rounding of factors before a float32 product: 0 unless torch may use TF32 or bfloat16."""
    xp = namespace(array)
    if not compat.is_torch_namespace(xp) or array.dtype != xp.float32:
        return 0.0
    try:
        return {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-7}[xp.get_float32_matmul_precision()]
    except RuntimeError:
        return 2.0**-7  # set through torch's newer interface, which this one does not read: assume the worst
