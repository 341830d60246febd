"""The array library of the arguments: NumPy, torch, or any other that follows the array API standard.

Every formula of hubless starts with `xp = namespace(...)` and then uses the standard alone. What the standard
lacks and the hot loops need is here, and in `products`, once per library: no other file names torch.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import array_api_compat as compat
import numpy as np

Array = Any
COPIED = 1 << 28  # bytes copied at once between the host and an accelerator


def is_foreign(value: object) -> bool:
    """Return True for an array of a library other than NumPy, such as torch; False for lists and frames."""
    return bool(compat.is_array_api_obj(value)) and not compat.is_numpy_array(value)


def float_type(dtype: Any) -> np.dtype:
    """Return what numbers of a type are computed in: float32 for float16 and float32, float64 for others."""
    return np.dtype(np.float32 if dtype in (np.float16, np.float32) else np.float64)


def _anchor(array: Array) -> Array:
    """Return an array of the library and device that compute with `array`: itself, unless streamed."""
    return array.anchor if isinstance(array, Streamed) else array


def namespace(*arrays: Array) -> Any:
    """Return the array library of all arguments; refuse mixtures of libraries or of devices."""
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
    """Return the library, type and device of an array, for messages."""
    return f"{type(array).__module__.split('.')[0]}.{type(array).__name__} on {compat.device(array)}"


def same_place(a: Array, b: Array) -> bool:
    """Return whether two arrays are of one library and on one device."""
    a, b = _anchor(a), _anchor(b)
    return compat.array_namespace(a) is compat.array_namespace(b) and compat.device(a) == compat.device(b)


def device_of(array: Array) -> Any:
    """Return the device that an array is computed on."""
    return compat.device(_anchor(array))


def to_numpy(array: Array) -> np.ndarray:
    """Return a NumPy view or copy on the host."""
    if compat.is_torch_array(array):
        return np.asarray(array.detach().cpu()) if is_on_cpu(array) else _fetch(array.detach())
    return np.from_dlpack(array, device="cpu") if is_foreign(array) else np.asarray(array)


def _fetch(array: Array) -> np.ndarray:
    """Copy a tensor from an accelerator; a large one through pinned memory, which is faster."""
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
    """Return `array` in the library and on the device of `like`; as it is, if it is there already."""
    like = _anchor(like)
    xp, device = compat.array_namespace(like), compat.device(like)
    if compat.is_array_api_obj(array) and same_place(array, like):
        return array
    host = to_numpy(array)
    if not (host.flags.c_contiguous and host.flags.writeable):  # torch needs both
        host = host.copy()
    return xp.asarray(host, device=device)


def is_on_cpu(array: Array) -> bool:
    """Return whether `array` is computed on the CPU."""
    array = _anchor(array)
    return not (compat.is_torch_array(array) and array.is_cuda)


def lift(array: Array) -> Array:
    """Return float32 and float64 as they are, shorter floats as float32, integers and booleans as float64."""
    xp = namespace(array)
    if array.dtype in (xp.float32, xp.float64):
        return array
    return xp.astype(array, xp.float32 if is_short_float(xp, array.dtype) else xp.float64)


def is_short_float(xp: Any, dtype: Any) -> bool:
    """Return True for float16 and bfloat16, which the standard does not have."""
    return dtype in {getattr(xp, name) for name in ("float16", "bfloat16") if hasattr(xp, name)}


def is_sparse(value: object) -> bool:
    """Return True for a sparse tensor."""
    return bool(compat.is_torch_array(value)) and "strided" not in str(getattr(value, "layout", ""))


def put(array: Array, places: Array, values: Array) -> Array:
    """Return a copy of an array with new values, or rows, at `places`."""
    xp = namespace(array)
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        array = xp.asarray(array, copy=True)
        array[places] = values
        return array
    host = to_numpy(array).copy()
    host[to_numpy(places)] = to_numpy(values)
    return convert(host, array)


def rows(X: Array, part: slice) -> Array:
    """Return a slice of the rows of X, as an array."""
    return X.rows(part) if isinstance(X, Streamed) else X[part, :]


def row_blocks(X: Array, size: int) -> Iterator[tuple[slice, Array]]:
    """Return all rows of X, `size` at a time: pairs of a slice and its rows."""
    if isinstance(X, Streamed):
        return X.blocks(size)
    return ((part, rows(X, part)) for part in blocks(X.shape[0], size))


def take_rows(X: Array, index: Array) -> Array:
    """Return the rows of X with these numbers, which are not negative; X may have any number of axes."""
    xp = namespace(X, index)
    if isinstance(X, Streamed):
        return X.take(to_numpy(index))
    if compat.is_torch_namespace(xp):
        return X.index_select(0, index)  # `take` of the standard would also check for negative numbers
    return xp.take(X, index, axis=0)


def subset(X: Array, index: Array) -> Array:
    """Return the rows of X with these numbers, stored as X is: an array, or streamed."""
    return X.subset(to_numpy(index)) if isinstance(X, Streamed) else take_rows(X, index)


def count(index: Array, size: int, weights: Array | None = None) -> Array:
    """Count how often each of 0 … size − 1 occurs in `index` (1-D), or sum its weights; −1 is ignored."""
    present = index >= 0
    return tally(index[present], size, None if weights is None else weights[present])


def tally(index: Array, size: int, weights: Array | None = None) -> Array:
    """Count as `count` does, but faster, for an index without −1."""
    xp = namespace(index)
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        return xp.bincount(index, weights=weights, minlength=size)
    host = None if weights is None else to_numpy(weights)
    return convert(np.bincount(to_numpy(index), weights=host, minlength=size), index)


def input_rounding(array: Array) -> float:
    """Return the relative rounding of factors before a float32 product: 0 unless torch may shorten them."""
    xp = namespace(array)
    if not compat.is_torch_namespace(xp) or array.dtype != xp.float32:
        return 0.0
    try:
        return {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-7}[xp.get_float32_matmul_precision()]
    except RuntimeError:
        return 2.0**-7  # set by torch's newer interface, which this one cannot read: assume the worst


# --- rows of a host array that an accelerator works on in blocks: data larger than its memory -------------


THREADS = 8  # that copy rows at the same time: one cannot keep an accelerator busy


class Streamed:
    """A matrix on the host whose rows are read as tensors on the device.

    Parameters
    ----------
    host : NumPy array of shape (n, d)
    anchor : an empty tensor on the device, of the type that rows have there
    stream : the CUDA stream that uses the rows; threads that send rows would otherwise use another one
    """

    def __init__(self, host: np.ndarray, anchor: Any, stream: Any) -> None:
        self.host, self.anchor, self.stream = host, anchor, stream
        self.shape, self.dtype, self.ndim = host.shape, anchor.dtype, 2

    def rows(self, part: slice) -> Any:
        """Return a slice of the rows, on the device."""
        source = self.host[part]
        return self._copy_to_device(len(source), lambda piece, out: np.copyto(out, source[piece]))

    def take(self, index: np.ndarray) -> Any:
        """Return the rows with these numbers, on the device."""

        def gather(piece: slice, out: np.ndarray) -> None:
            np.take(self.host, index[piece], axis=0, out=out, mode="clip")  # "raise" would copy once more

        return self._copy_to_device(len(index), gather)

    def subset(self, index: np.ndarray) -> "Streamed":
        """Return a streamed matrix of the rows with these numbers."""
        return Streamed(self.host[index], self.anchor, self.stream)

    def blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Yield all rows, `size` at a time, on the device; the next ones are sent meanwhile."""
        parts = list(blocks(self.shape[0], size))
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(self.rows, parts[0])
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                sent = ahead.result()
                if following is not None:
                    ahead = pool.submit(self.rows, following)
                yield part, sent

    def _copy_to_device(self, n: int, copy: Callable[[slice, np.ndarray], None]) -> Any:
        """Return n rows on the device, which `copy` writes on the host, a slice at a time."""
        torch, anchor = compat.array_namespace(self.anchor), self.anchor
        # a device reads pinned memory faster
        buffer = anchor.new_empty((n, self.shape[1]), device="cpu", pin_memory=anchor.is_cuda)
        _copy_on_threads(copy, np.asarray(buffer))
        with torch.cuda.stream(self.stream):
            return buffer.to(anchor.device, non_blocking=True)


def _copy_on_threads(copy: Callable[[slice, np.ndarray], None], out: np.ndarray) -> None:
    """Call copy(piece, out[piece]) for slices that cover `out`, on several threads."""
    pieces = blocks(len(out), max(1, -(-len(out) // THREADS)))
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda piece: copy(piece, out[piece]), pieces))


def copy_rows(source: np.ndarray, out: np.ndarray) -> None:
    """Copy all rows of `source` into `out`, on several threads."""
    _copy_on_threads(lambda piece, rows: np.copyto(rows, source[piece]), out)


def blocks(n: int, size: int) -> Iterator[slice]:
    """Return slices of at most `size` that cover 0 … n − 1."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
