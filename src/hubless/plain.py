"""Values as JSON has them, and back.

Plain data cannot run: of all classes there are, only those in CLASSES are ever made of it.
"""

import math
import reprlib
from collections.abc import Iterable
from inspect import signature
from numbers import Real
from typing import Any, cast

import numpy as np

from .movers import (
    Balance,
    Chain,
    Denoise,
    KernelMove,
    LabelRidge,
    MoveLabeled,
    Mover,
    Regress,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Unit,
    Whiten,
)
from .solve import Penalty

MOVERS: tuple[type[Mover], ...] = (
    *(Stay, Scale, Shrink, Smooth, MoveLabeled, LabelRidge, Balance, Steer, Whiten, Denoise),
    *(KernelMove, Unit, Chain),
)
CLASSES = {kind.__name__: kind for kind in MOVERS}
NUMBERS = {np.dtype(code).name for code in "?bhilqBHILQefd"}
JSON_NUMBERS = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}  # by the kind of a type
NOT_SAVED = ("device",)  # parameters that belong to a machine, not to a model
ADDED = {"MoveLabeled": {"keep_moments": False}}  # parameters that folders of version 1 do not have
MOST_VALUES = 10_000  # in the parameters of a model: a small file must not become a million movers
MOST_TEXT = 1 << 30  # bytes of an array of texts, each of which takes the room of the longest


def as_json(value: Any) -> Any:
    """A result in what JSON knows, for reading alone; what is not finite is null."""
    if isinstance(value, dict):
        return {str(name): as_json(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(own) for own in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def encodable(text: str) -> str:
    """A text without lone surrogates, which have no bytes."""
    return text.encode("utf-8", "replace").decode()


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON does not know becomes {"class": …, "parameters": …}."""
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is float:
        return _finite(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    kind, inside = type(value).__name__, cast(Any, None)
    if type(value) in MOVERS:
        inside = plain_parameters(value)
    elif type(value) in (tuple, Penalty):
        inside = [plain(item) for item in value]
    elif type(value) is range:
        inside = [value.start, value.stop, value.step]
    elif isinstance(value, np.generic) and value.dtype.name in NUMBERS:  # computes otherwise than a float
        kind, inside = value.dtype.name, _finite(value.item())
    elif isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.name in NUMBERS:
        inside = plain_array(value)
    elif isinstance(value, Regress):
        raise TypeError(
            "Regress cannot be saved: a regressor has no format that is free of pickle. Use KernelMove or "
            "MoveLabeled, which are such regressions, or keep the objects and fit again."
        )
    else:
        raise TypeError(
            f"what can be saved is a fitted {', '.join(CLASSES)}, an estimator of hubless or a Repair, with "
            f"numbers, texts and movers as parameters; got {short(value)}."
        )
    return {"class": kind, "parameters": inside}


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Parameters of one of our estimators, those of a machine left out."""
    parameters = estimator.get_params(deep=False).items()
    return {name: plain(item) for name, item in parameters if name not in NOT_SAVED}


def value_of(found: Any) -> Any:
    """What `plain` was given: of the classes there are, only ours are ever made."""
    if isinstance(found, list):
        return [value_of(item) for item in found]
    if not isinstance(found, dict):
        return found
    check_names(found, ("class", "parameters"), "a value")
    kind, inside = found["class"], found["parameters"]
    if kind in NUMBERS:
        return _number(kind, inside)
    if kind == "ndarray":
        return array_of(inside, "a value")
    if kind in ("tuple", "Penalty", "range"):
        return _sequence(kind, inside)
    if kind not in CLASSES:
        raise ValueError(f"it names the class {short(kind)}; allowed are {', '.join(CLASSES)}.")
    return made(CLASSES[kind], inside)


def made(kind: type[Any], inside: Any) -> Any:
    """An estimator of a class of ours, with parameters as `plain_parameters` gives them."""
    defaults = {name: own.default for name, own in signature(kind).parameters.items()}
    if isinstance(inside, dict):
        inside = {**ADDED.get(kind.__name__, {}), **inside}
    check_names(
        inside, [name for name in defaults if name not in NOT_SAVED], f"the parameters of {kind.__name__}"
    )
    values = {name: value_of(item) for name, item in inside.items()}
    for name, value in values.items():
        is_flag = isinstance(value, bool | int | np.bool | np.integer) and value in (0, 1)
        if isinstance(defaults[name], bool) and not is_flag:
            raise ValueError(f"{name} of {kind.__name__} is {short(value)}; expected true or false.")
    return kind(**values)


def _number(kind: str, inside: Any) -> np.generic:
    if type(inside) not in JSON_NUMBERS[np.dtype(kind).kind]:
        raise ValueError(f"a number is {short(inside)}; expected a {kind}.")
    with np.errstate(all="ignore"):
        value = np.dtype(kind).type(inside)
    if value.item() != inside:
        raise ValueError(f"a number is {short(inside)}, which is no {kind}.")
    return value


def _sequence(kind: str, inside: Any) -> Any:
    if not isinstance(inside, list):
        raise ValueError(f"a {kind} is {short(inside)}; expected a list.")
    values = value_of(inside)
    if kind == "tuple":
        return tuple(values)
    if kind == "range":
        if len(values) != 3 or not all(type(value) is int for value in values):
            raise ValueError(f"a range is {short(values)}; expected its start, stop and step.")
        return range(*values)
    penalty = Penalty(*values)
    check_number("a penalty", penalty.value)
    if penalty.value < 0 or not isinstance(penalty.relative, bool):
        raise ValueError(f"a penalty is {short(values)}; expected a number of at least 0, and true or false.")
    return penalty


def plain_array(array: np.ndarray) -> dict[str, Any]:
    """An array of numbers or texts with its type, (n,)."""
    # texts by their kind alone: how long the longest may be is found again
    kind = {"U": "str", "O": "object"}.get(array.dtype.kind, array.dtype.name)
    return {"dtype": kind, "values": [_finite(value) for value in array.tolist()]}


def array_of(found: Any, where: str) -> np.ndarray:
    """What `plain_array` was given."""
    check_names(found, ("dtype", "values"), where)
    kind, values = found["dtype"], found["values"]
    if kind not in {"str", "object", *NUMBERS}:
        raise ValueError(f"{where} are of type {short(kind)}; allowed are str, object and numbers.")
    kinds: Any = (str,) if kind not in NUMBERS else JSON_NUMBERS[np.dtype(kind).kind]
    if not isinstance(values, list) or any(type(value) not in kinds for value in values):
        raise ValueError(f"{where} are a list of {kind}; got {short(values)}.")
    if kind == "str" and 4 * len(values) * max(map(len, values), default=0) > MOST_TEXT:
        raise ValueError(f"{where} are {len(values)} texts, some of them too long to be held as an array.")
    with np.errstate(all="ignore"):
        array = np.asarray(values, dtype=kind)
    if array.ndim != 1 or array.tolist() != values:
        raise ValueError(f"{where} are a list of {kind}; got {short(values)}.")
    return array


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"what is saved must be finite; got {value!r}.")
    return value


def check_number(name: str, value: Any) -> None:
    """Whether a value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} is {short(value)}; expected a number.")


def check_names(found: Any, allowed: Iterable[str], where: str) -> None:
    """Whether a mapping has these keys and no others."""
    got = sorted(found) if isinstance(found, dict) else found
    if not isinstance(found, dict) or got != sorted(allowed):
        raise ValueError(f"{where} must have {sorted(allowed)}; got {short(got)}.")


def check_size(found: Any) -> None:
    """Refuse a tree of more values than the parameters of a model have."""
    waiting, seen = [found], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            seen += len(value)
            if seen > MOST_VALUES:
                raise ValueError(f"the parameters are more than {MOST_VALUES} values.")
            waiting.extend(value.values() if isinstance(value, dict) else value)


_REPR = reprlib.Repr()
_REPR.maxlist = _REPR.maxdict = _REPR.maxtuple = 40
_REPR.maxstring = _REPR.maxother = 300
_REPR.maxlevel = 4


def short(value: Any) -> str:
    """A value for a message: its beginning, where it is long."""
    return _REPR.repr(value)
