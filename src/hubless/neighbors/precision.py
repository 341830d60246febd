"""Which precision the first pass of a search has: bfloat16 where that is faster, else that of the input."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import array_api_compat as compat
import numpy as np

from ..arrays import Array, describe, is_on_cpu
from ..arrays.bfloat16 import has_bfloat16, is_faster_on_cpu, is_loaded
from ..arrays.library import Streamed

PRECISIONS = ("auto", "bfloat16", "float32")
QUERIES = 64  # fewer are not worth rounding the objects for
LARGE = 1 << 27  # multiplications that are worth it on the processor
WIDEST = 10_000  # columns whose sums float32 can bear
GROUP = 128  # objects of a group that is worth it
DEVICE_LARGE = 1 << 36  # the same on an accelerator, where most steps take longer to start than to run
HUGE = 200_000_000_000  # multiplications that are worth importing torch: some seconds of products in float32
ROOM = 16  # objects for each neighbour: otherwise nearly all objects are candidates

_precision: ContextVar[str] = ContextVar("precision", default="auto")


@contextmanager
def use_precision(precision: str) -> Iterator[None]:
    """Set the precision of all searches inside: "auto", "bfloat16" or "float32"; see `nearest`."""
    token = _precision.set(check_precision(precision))
    try:
        yield
    finally:
        _precision.reset(token)


def check_precision(precision: str, objects: Array | None = None) -> str:
    """Return a precision; refuse unknown ones, and one that these objects cannot have."""
    if precision not in PRECISIONS:
        allowed = ", ".join(f'"{name}"' for name in PRECISIONS)
        raise ValueError(f"precision must be one of {allowed}; got {precision!r}.")
    if precision == "bfloat16" and objects is not None and not _is_possible(objects):
        if compat.is_numpy_array(objects):
            raise ImportError(
                "precision=\"bfloat16\" needs torch: install it with pip install 'hubless[torch]', "
                'or use precision="auto".'
            )
        raise ValueError(
            f'precision="bfloat16" is for NumPy arrays and for tensors that fit on their device; got '
            f'{describe(objects)}. Use precision="auto".'
        )
    return precision


def _is_possible(objects: Array) -> bool:
    return not isinstance(objects, Streamed) and has_bfloat16(objects)


def uses_bfloat16(precision: str | None, queries: Array, objects: Array, k: int) -> bool:
    """Return whether the first pass is in bfloat16; None stands for what `use_precision` set.

    "auto" takes bfloat16 for large searches: on a GPU, and on the processor where torch is installed and its
    products in bfloat16 were measured to be faster, once in the process. Very large ones import torch.
    """
    (m, d), n = queries.shape, objects.shape[0]
    is_worth = m >= QUERIES and n >= ROOM * k
    return _decide(precision, objects, is_worth, m * n * d)


def groups_use_bfloat16(X: Array, sizes: np.ndarray, k: int) -> np.ndarray:
    """Return for each group of objects whether its first pass is in bfloat16."""
    is_worth = sizes >= max(GROUP, ROOM * k)
    work = int(np.sum(sizes[is_worth].astype(np.int64) ** 2)) * X.shape[1]
    if _precision.get() == "bfloat16":
        is_worth = sizes > 1
    return is_worth & _decide(None, X, bool(is_worth.any()), work)


def _decide(precision: str | None, objects: Array, is_worth: bool, work: int) -> bool:
    precision = _precision.get() if precision in (None, "auto") else precision
    if precision == "float32" or objects.shape[1] > WIDEST or not _is_possible(objects):
        return False
    if precision == "bfloat16":
        return True
    if not is_worth or not is_on_cpu(objects):
        return is_worth and work >= DEVICE_LARGE
    return work >= LARGE and (is_loaded() or work >= HUGE) and is_faster_on_cpu()
