"""A fitted mover as plain data, texts, numbers and named arrays, and back.

Plain data cannot run: of all classes there are, only those in LEARNED are ever made of it.
"""

from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .arrays import place, to_numpy
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
    Whiten,
)
from .movers.mover import Exit
from .solve import Penalty

KEYS = (
    "mover",
    "numbers",
    "classes_",
    "n_features_in_",
    "n_singletons_",
    "feature_names_in_",
    "column_major",
)
NUMBERS = {np.dtype(code).name for code in "?bhilqBHILQefd"}
NOT_SAVED = ("device",)  # parameters that belong to a machine, not to a mover
INTEGERS = ("codes_",)  # all other arrays are of floats
OF_ALL = {"exit_", "classes_", "n_features_in_", "n_singletons_", "feature_names_in_", "movers_"}

# What each class learns, by its shape: d columns, c classes, n rows of its own; "" is a number.
LEARNED: dict[type[Mover], dict[str, str]] = {
    Stay: {},
    Scale: {"mean_": "d"},
    Shrink: {"means_": "cd"},
    Smooth: {"objects_": "nd", "codes_": "n"},
    MoveLabeled: {"W_": "dd", "mean_": "d", "alpha_": ""},
    LabelRidge: {"W_": "dd", "mean_": "d", "means_": "cd", "alpha_": ""},
    Balance: {"proxies_": "nd", "cap_": ""},
    Steer: {"coef_": "cd", "intercept_": "c", "mean_": "d", "shift_": ""},
    Whiten: {"L_": "dd"},
    Denoise: {"L_": "dd", "correlations_": "d"},
    KernelMove: {"landmarks_": "nd", "B_": "dn", "width_": ""},
    Chain: {},  # what it learned is in its `movers_`
}
CLASSES = {kind.__name__: kind for kind in LEARNED}


def describe(mover: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """All there is to know of a fitted mover: what JSON can hold, under KEYS, and the learned arrays."""
    node = plain(mover)
    check_is_fitted(mover, "exit_")  # those inside a chain have none: they move in its space, not alone
    learned: dict[str, Any] = {f"exit_.{name}": value for name, value in mover.exit_._asdict().items()}
    for prefix, part in _members(mover):
        _check_current(part)
        learned |= {prefix + name: getattr(part, name) for name in LEARNED[type(part)]}
    shapes = _shapes(mover)
    arrays = {name: to_numpy(value) for name, value in learned.items() if shapes[name]}
    classes, names = getattr(mover, "classes_", None), getattr(mover, "feature_names_in_", None)
    return {
        "mover": node,
        "numbers": {name: plain(value) for name, value in learned.items() if not shapes[name]},
        "classes_": None if classes is None else _plain_classes(to_numpy(classes)),
        "n_features_in_": int(mover.n_features_in_),
        "n_singletons_": getattr(mover, "n_singletons_", None),
        "feature_names_in_": None if names is None else [str(name) for name in names],
        # a product rounds by the order of its factors in memory, and positions are to be the same bits
        "column_major": sorted(name for name, array in arrays.items() if _is_column_major(array)),
    }, arrays


def restore(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Mover:
    """The mover that `describe` was given, on a device; ValueError for what describes none."""
    mover, classes = value_of(config["mover"]), _classes(config["classes_"])
    if not isinstance(mover, Mover):
        raise ValueError(f"it describes {mover!r}; expected a mover.")
    mover._check()
    _prepare(mover)
    if classes is None and mover._uses_labels:
        raise ValueError(f"classes_ are missing, and {type(mover).__name__} moves objects by their class.")
    _check_learned(config, arrays, _shapes(mover), classes)
    learned = {name: value_of(number) for name, number in config["numbers"].items()}
    for name, array in arrays.items():
        turned = name in config["column_major"]
        learned[name] = place(np.ascontiguousarray(array.T), device).T if turned else place(array, device)
    for prefix, part in _members(mover):
        for name in LEARNED[type(part)]:
            setattr(part, name, learned[prefix + name])
    names = config["feature_names_in_"]
    known = {
        "exit_": Exit(*(learned[f"exit_.{name}"] for name in Exit._fields)),
        "n_features_in_": config["n_features_in_"],
        "n_singletons_": config["n_singletons_"],
        "feature_names_in_": None if names is None else np.asarray(names, dtype=object),
        "classes_": classes if classes is None or classes.dtype.kind in "UO" else place(classes, device),
    }
    for name, value in known.items():
        if value is not None:
            setattr(mover, name, value)
    return mover


def _members(mover: Mover, prefix: str = "") -> Iterator[tuple[str, Mover]]:
    """A fitted mover and all movers inside it, each with what the names of its arrays begin with."""
    yield prefix, mover
    for i, inside in enumerate(getattr(mover, "movers_", ())):
        yield from _members(inside, f"{prefix}movers_.{i}.")


def _shapes(mover: Mover) -> dict[str, str]:
    """Shapes of all that a mover and those inside it learn, by name."""
    shapes = {"exit_.mean": "d", "exit_.gain": "", "exit_.floor": ""}
    for prefix, part in _members(mover):
        shapes |= {prefix + name: shape for name, shape in LEARNED[type(part)].items()}
    return shapes


def _prepare(mover: Mover) -> None:
    """Chains get the movers that learn; what these have learned is to come."""
    if isinstance(mover, Chain):
        mover.movers_ = [clone(inside) for inside in mover.movers]
        for inside in mover.movers_:
            _prepare(inside)


def _check_current(mover: Mover) -> None:
    """Refuse what would come back as something else than it is."""
    strange = {name for name in vars(mover) if name.endswith("_")} - {*LEARNED[type(mover)], *OF_ALL}
    if strange:
        raise TypeError(f"{type(mover).__name__} has {sorted(strange)}, which LEARNED in state.py lacks.")
    if isinstance(mover, Chain) and plain(list(mover.movers)) != plain(list(mover.movers_)):
        raise ValueError(f"{mover!r} was fitted with other movers than it has now. Fit it again, then save.")


def _is_column_major(array: np.ndarray) -> bool:
    return array.ndim == 2 and not array.flags.c_contiguous and array.strides[0] < array.strides[1]


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON does not know becomes {"class": …, "parameters": …}."""
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    kind, inside = type(value).__name__, cast(Any, None)
    if type(value) in LEARNED:
        parameters = value.get_params(deep=False).items()
        inside = {name: plain(item) for name, item in parameters if name not in NOT_SAVED}
    elif type(value) in (tuple, Penalty):
        inside = [plain(item) for item in value]
    elif isinstance(value, np.generic) and value.dtype.name in NUMBERS:  # computes otherwise than a float
        kind, inside = value.dtype.name, value.item()
    elif isinstance(value, Regress):
        raise TypeError(
            "Regress cannot be saved: a regressor has no format that is free of pickle. Use KernelMove or "
            "MoveLabeled, which are such regressions, or keep the objects and fit again."
        )
    else:
        raise TypeError(
            f"what can be saved is a fitted {', '.join(CLASSES)}, with numbers and texts as parameters; got "
            f"{value!r}. Of a classifier save its mover_."
        )
    return {"class": kind, "parameters": inside}


def value_of(found: Any) -> Any:
    """What `plain` was given: of the classes there are, only ours are ever made."""
    if isinstance(found, list):
        return [value_of(item) for item in found]
    if not isinstance(found, dict):
        return found
    check_names(found, ("class", "parameters"), "a value")
    kind, inside = found["class"], found["parameters"]
    if kind in ("tuple", "Penalty"):
        return tuple(value_of(inside)) if kind == "tuple" else Penalty(*value_of(inside))
    if kind in NUMBERS:
        return np.dtype(kind).type(inside)
    if kind not in CLASSES:
        raise ValueError(f"it names the class {kind!r}; allowed are {', '.join(CLASSES)}.")
    names = [name for name in CLASSES[kind]._get_param_names() if name not in NOT_SAVED]
    check_names(inside, names, f"the parameters of {kind}")
    return CLASSES[kind](**{name: value_of(item) for name, item in inside.items()})


def _plain_classes(classes: np.ndarray) -> dict[str, Any]:
    # names by their kind alone: how long the longest may be is found again
    kind = {"U": "str", "O": "object"}.get(classes.dtype.kind, classes.dtype.name)
    return {"dtype": kind, "values": classes.tolist()}


def _classes(found: Any) -> np.ndarray | None:
    """Classes in NumPy, of the type they had."""
    if found is None:
        return None
    check_names(found, ("dtype", "values"), "classes_")
    kind, values = found["dtype"], found["values"]
    if kind not in {"str", "object", *NUMBERS}:
        raise ValueError(f"classes_ are of type {kind!r}; allowed are str, object and numbers.")
    classes = np.asarray(values, dtype=kind)
    is_text = kind not in NUMBERS
    if classes.ndim != 1 or classes.tolist() != values or any(isinstance(v, str) != is_text for v in values):
        raise ValueError(f"classes_ are a list of {kind}; got {values!r}.")
    return classes


def _check_learned(
    config: dict[str, Any], arrays: dict[str, np.ndarray], shapes: dict[str, str], classes: np.ndarray | None
) -> None:
    """Whether numbers and arrays are those that a mover learns."""
    check_names(config["numbers"], [name for name, shape in shapes.items() if not shape], "numbers")
    check_names(arrays, [name for name, shape in shapes.items() if shape], "the arrays")
    for name, found in config["numbers"].items():
        number = value_of(found)
        none = number is None and name == "exit_.floor"
        if not none and (isinstance(number, bool) or not isinstance(number, Real)):
            raise ValueError(f"{name} is {number!r}; expected a number.")
    sizes = {"d": config["n_features_in_"]} | ({} if classes is None else {"c": len(classes)})
    for name, array in arrays.items():
        _check_array(name, array, shapes[name], sizes)
    names = config["feature_names_in_"]
    if names is not None and (len(names) != sizes["d"] or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names_in_ is {names!r}; expected {sizes['d']} names.")
    flat = [name for name in config["column_major"] if len(shapes.get(name, "")) != 2]
    if flat:
        raise ValueError(f"column_major has {flat}; expected names of matrices.")


def _check_array(name: str, array: np.ndarray, shape: str, sizes: dict[str, int]) -> None:
    """Whether an array has the type and the lengths it should; a length of its own is kept in `sizes`."""
    owner, _, own = name.rpartition(".")
    keys = [letter if letter in "dc" else owner + letter for letter in shape]
    allowed = ("int64",) if own in INTEGERS else ("float32", "float64")
    fits = array.dtype.name in allowed and array.ndim == len(keys)
    if not fits or any(sizes.setdefault(key, n) != n for key, n in zip(keys, array.shape, strict=True)):
        expected = ", ".join(str(sizes.get(key, "any")) for key in keys)
        raise ValueError(
            f"{name} is {array.dtype} of shape {array.shape}; expected {' or '.join(allowed)} of shape "
            f"({expected})."
        )


def check_names(found: Any, allowed: Iterable[str], where: str) -> None:
    """Whether a mapping has these keys and no others."""
    got = sorted(found) if isinstance(found, dict) else found
    if got != sorted(allowed):
        raise ValueError(f"{where} must have {sorted(allowed)}; got {got!r}.")
