"""Host arrays computed on an accelerator: there and back."""

from typing import Any

from sklearn.base import BaseEstimator

from .arrays import Array, describe, is_foreign, on_device, to_numpy


def to_device(X: Array, device: str | None, *, whole: bool = False) -> Array:
    """X where it is to be computed; None leaves it where it is.

    A NumPy array goes to the device whole if it fits there well, else it is read from the host in blocks.
    `whole` refuses what does not fit.
    """
    if device is None:
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
    """Everything learned in NumPy: arrays, tuples and lists of them, and the attributes of estimators."""
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


def host_like(found: Any, device: str | None) -> Any:
    """Results as the input was: in NumPy where a device was asked for."""
    return found if device is None else to_host(found)
