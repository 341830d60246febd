"""Where arrays are computed: on the processor, on an accelerator, or by an engine such as Dask.

An engine is a module with a function for each function and method that is `dispatched`, of the same name and
with the same arguments. It is imported with the first array of its library.
"""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from .library import COPIED, Array, Streamed, convert, describe, device_of, is_foreign, is_on_cpu, to_numpy

ENGINES = {"dask": "hubless.outofcore.dask"}  # by the package of the type of an array

F = TypeVar("F", bound=Callable[..., Any])


def is_on_engine(value: object) -> bool:
    """Return True for an array, data frame or series of an engine, without importing the engine."""
    return type(value).__module__.partition(".")[0] in ENGINES


def dispatched(function: F) -> F:
    """Let an engine run a function if an argument, or `moved_` of the model, is one of its arrays.

    When a model is fitted again, its old `moved_` does not count. Only the signature is shared: arrays that
    the engine returns are mostly its own, computed when they are needed.
    """
    is_fit = function.__name__.startswith("fit")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        stored = getattr(args[0], "moved_", None) if args and not is_fit else None
        for value in (*args, *kwargs.values(), stored):
            if is_on_engine(value):
                engine = import_module(ENGINES[type(value).__module__.partition(".")[0]])
                return getattr(engine, function.__name__)(*args, **kwargs)
        return function(*args, **kwargs)

    return cast(F, call)


# --- devices ---------------------------------------------------------------------------------------------


def to_device(X: Any, device: str | None, *, whole: bool = False) -> Any:
    """Return X on the device that computes it; None leaves it where it is, and None for X stays None.

    A NumPy array is sent to the device whole if it fits there, else it is read from the host in blocks;
    `whole` refuses what does not fit.
    """
    if device is None or X is None:
        return X
    if is_foreign(X):
        raise ValueError(
            f"device={device!r} is for arrays on the host; got {describe(X)}, which is computed where it is. "
            f"Use device=None, and X.to({device!r}) to move it."
        )
    if not isinstance(device, str):
        raise ValueError(f'device must be a name such as "cuda" or "cuda:1", or None; got {device!r}.')
    return on_device(X, device, whole=whole)


def to_host(learned: Any) -> Any:
    """Return what was learned as NumPy arrays: arrays, tuples and lists of them, attributes of estimators."""
    if isinstance(learned, BaseEstimator):
        for name, value in vars(learned).items():
            if name.endswith("_"):
                setattr(learned, name, to_host(value))
        return learned
    if isinstance(learned, tuple) and hasattr(learned, "_fields"):
        return type(learned)(*map(to_host, learned))
    if isinstance(learned, list | tuple):
        return type(learned)(map(to_host, learned))
    return to_numpy(learned) if is_foreign(learned) else learned


def host_like(result: Any, device: str | None) -> Any:
    """Return a result where its input was: on the host, if a device was given."""
    return result if device is None else to_host(result)


def place(array: np.ndarray, device: str) -> Array:
    """Return a NumPy array for "cpu", else a torch tensor on the device, for example "cuda"."""
    if device == "cpu":
        return array
    return _torch().asarray(np.ascontiguousarray(array), device=device)


def on_device(array: np.ndarray, device: str, *, whole: bool = False) -> Array:
    """Return a NumPy array as a tensor on a device, or as rows that are sent there when they are needed."""
    torch = _torch()
    try:
        anchor = torch.empty(0, dtype=getattr(torch, array.dtype.name), device=device)
    except (RuntimeError, AssertionError) as error:  # torch raises either for a missing device
        raise ValueError(f"torch has no device {device!r} here ({error}); use device=None.") from error
    is_whole = fits(array, anchor)
    if is_whole and (array.nbytes < COPIED or is_on_cpu(anchor)):
        return convert(array, anchor)
    if whole and not is_whole:
        raise ValueError(
            f"an array of {array.nbytes / 2**30:.1f} GiB does not fit on {device!r} with room to compute. "
            "Use device=None, or MoveLabeledClassifier with mover=None, which reads such data block by block."
        )
    stream = None if is_on_cpu(anchor) else torch.cuda.current_stream(anchor.device)
    streamed = Streamed(array, anchor, stream)
    if not is_whole:
        return streamed
    copied = anchor.new_empty(array.shape)
    for part, sent in streamed.blocks(max(1, COPIED // (array.nbytes // len(array)))):
        copied[part] = sent
    return copied


def fits(array: np.ndarray, anchor: Array) -> bool:
    """Return whether a device has room for an array, and three times as much for what is computed from it."""
    return is_on_cpu(anchor) or bool(4 * array.nbytes <= _torch().cuda.mem_get_info(anchor.device)[0])


def device_numbers(array: Array) -> int:
    """Return how many numbers a step may hold on the accelerator of `array`: a small part of its memory."""
    return 1 << 27 if is_on_cpu(array) else int(_torch().cuda.mem_get_info(device_of(array))[1] // 128)


def synchronize(array: Array) -> None:
    """Wait until the device of `array` has finished, so that its time can be measured."""
    if not is_on_cpu(array):
        _torch().cuda.synchronize(array.device)


def kernels(array: Array) -> Any | None:
    """Return the module of kernels for the device of an array; None where torch or NumPy has to do."""
    return None if is_on_cpu(array) else compiled_for("cuda")


@cache
def compiled_for(device: str) -> Any | None:
    """Import the kernels, and run one: Triton may be missing, or the compiler that it calls."""
    try:
        module = import_module("hubless.arrays.kernels")
        one = _torch().ones((1, 1), device=device)
        row = _torch().zeros(1, dtype=_torch().int64, device=device)
        works = float(module.pair_distances(one, 3 * one, row, row, 1.0, one.dtype)) == 4.0
    except Exception:  # whatever is missing, torch does the same with more memory and time
        return None
    return module if works else None


def device_name(device: str) -> str:
    """Return the name of an accelerator."""
    return str(_torch().cuda.get_device_name(device)) if device.startswith("cuda") else device


def _torch() -> Any:
    try:
        from array_api_compat import torch
    except ImportError as error:
        raise ImportError(
            "devices other than the CPU need torch: install it with pip install 'hubless[torch]'."
        ) from error
    return torch
