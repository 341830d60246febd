"""Parameters as JSON has them, and back.

Plain data cannot run: the only classes that are ever made of it are those that `class_named` knows, Penalty,
and the numbers, arrays, tuples and ranges below.
"""

import math
from collections.abc import Iterable
from importlib import import_module
from inspect import signature
from typing import Any, cast

import numpy as np

from ..arrays import to_numpy
from ..arrays.inputs import check_count, is_number
from ..corrections import CORRECTIONS
from ..movers import MOVERS
from ..solve import Penalty
from ..support.text import short

MODULES = {  # modules of classes that can be saved besides movers, corrections and baselines
    "ItemScores": "hubless.calibration.item_scores",
    "MoveLabeledClassifier": "hubless.classifier",
    "MoveLabeledClassifierCV": "hubless.classifier_cv",
    "MoveQuery": "hubless.move_query",
    "Repair": "hubless.repair.repair",
}
NUMBERS = {np.dtype(code).name for code in "?bhilqBHILQefd"}
JSON_NUMBERS = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}  # by the kind of a type
MACHINE_PARAMETERS = ("device",)  # not saved, as another machine may lack it
FIT_PARAMETERS = ("cv", "random_state")  # only `fit` needs them; saved if a whole number or None
MAX_VALUES = 10_000  # in the parameters of a model: a small file must not become a million movers
MAX_TEXT = 1 << 30  # bytes of an array of texts, each of which takes the room of the longest


def class_named(name: Any) -> type[Any] | None:
    """Return the class of a saved model, or None: a name from a file never imports anything else."""
    if not isinstance(name, str):
        return None
    if name in MODULES:
        kind: Any = getattr(import_module(MODULES[name]), name)
    elif name in MOVERS or name in CORRECTIONS:
        kind = MOVERS.get(name) or CORRECTIONS[name]
    else:
        baselines = import_module("hubless.baselines")
        kind = getattr(baselines, name) if name in baselines.__all__ else None
    return None if getattr(kind, "_why_unsaved", "") else kind


# --- to JSON -----------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON does not know becomes {"class": …, "parameters": …}."""
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if type(value) in MOVERS.values():
        return plain_estimator(value)
    kind, inside = type(value).__name__, cast(Any, None)
    if type(value) in (tuple, Penalty):
        inside = [plain(item) for item in value]
    elif type(value) is range:
        inside = [value.start, value.stop, value.step]
    elif isinstance(value, np.generic) and value.dtype.name in NUMBERS:  # rounds differently than a float
        kind, inside = value.dtype.name, value.item()
    elif isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.name in NUMBERS:
        inside = plain_array(value)
    else:
        raise TypeError(f"parameters are saved as numbers, texts and movers; got {short(value)}.")
    return {"class": kind, "parameters": inside}


def check_class(model: Any) -> None:
    """Refuse a model of a class that cannot be saved."""
    kind = type(model)
    if class_named(kind.__name__) is not kind:
        raise TypeError(
            getattr(kind, "_why_unsaved", "")
            or "what can be saved is a fitted mover, correction, classifier or baseline of hubless, or a "
            f"Repair; got {short(model)}. Save the fitted steps of a Pipeline one by one, or all of it with "
            "joblib, and load such a file only where you trust its author."
        )


def plain_estimator(estimator: Any) -> dict[str, Any]:
    """Return the class and the parameters of an estimator, without those that belong to a machine."""
    check_class(estimator)
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in MACHINE_PARAMETERS:
            continue
        if name in FIT_PARAMETERS and not _is_seed(value):
            raise TypeError(
                f"{name}={short(value)} cannot be saved, and the fitted model does not need it: replace it "
                f"by a number, with set_params({name}=5), and save again."
            )
        try:
            parameters[name] = plain(value)
        except TypeError as error:
            raise TypeError(f"{name}={short(value)} cannot be saved: {error}") from error
    return {"class": type(estimator).__name__, "parameters": parameters}


def plain_array(array: np.ndarray) -> dict[str, Any]:
    """Return an array of numbers or texts, (n,), with its type."""
    # texts by their kind alone: how long the longest may be follows from the texts
    kind = {"U": "str", "O": "object"}.get(array.dtype.kind, array.dtype.name)
    return {"dtype": kind, "values": array.tolist()}


def _is_seed(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return value is None or is_whole


# --- from JSON, which may be untrusted ---------------------------------------------------------------------


def value_of(node: Any) -> Any:
    """Return what `plain` was given; of estimators, only movers are inside another one."""
    if isinstance(node, list):
        return [value_of(item) for item in node]
    if not isinstance(node, dict):
        return node
    check_names(node, ("class", "parameters"), "a value")
    kind, inside = node["class"], node["parameters"]
    if kind in NUMBERS:
        return array_of({"dtype": kind, "values": [inside]}, "numbers")[0]
    if kind == "ndarray":
        return array_of(inside, "a value", NUMBERS)
    if kind in ("tuple", "Penalty", "range"):
        return _sequence(kind, inside)
    if kind not in MOVERS:
        raise ValueError(f"a parameter is of the class {short(kind)}, which cannot be loaded.")
    return estimator_of(node)


def estimator_of(node: Any) -> Any:
    """Return the estimator that `plain_estimator` was given, not fitted."""
    check_names(node, ("class", "parameters"), "an estimator")
    kind, inside = class_named(node["class"]), node["parameters"]
    if kind is None or not hasattr(kind, "get_params"):
        raise ValueError(f"it is of the class {short(node['class'])}, which cannot be loaded.")
    defaults = {name: given.default for name, given in signature(kind).parameters.items()}
    names = [name for name in defaults if name not in MACHINE_PARAMETERS]
    check_names(inside, names, f"the parameters of {kind.__name__}")
    values = {name: value_of(item) for name, item in inside.items()}
    for name, value in values.items():
        is_flag = isinstance(value, bool | int | np.bool | np.integer) and value in (0, 1)
        expect(not isinstance(defaults[name], bool) or is_flag, name, value, "true or false")
        expect(name not in FIT_PARAMETERS or _is_seed(value), name, value, "a number")
    return kind(**values)


def _sequence(kind: str, inside: Any) -> Any:
    expect(isinstance(inside, list), f"a {kind}", inside, "a list")
    values = value_of(inside)
    if kind == "tuple":
        return tuple(values)
    if kind == "range":
        is_range = len(values) == 3 and all(type(value) is int for value in values)
        expect(is_range, "a range", values, "its start, stop and step")
        return range(*values)
    penalty = Penalty(*values)
    check_number("a penalty", penalty.value)
    is_penalty = penalty.value >= 0 and isinstance(penalty.relative, bool)
    expect(is_penalty, "a penalty", values, "a number of at least 0, and true or false")
    return penalty


def array_of(
    node: Any, where: str, allowed: Iterable[str] = frozenset({"str", "object", *NUMBERS})
) -> np.ndarray:
    """Return what `plain_array` was given."""
    check_names(node, ("dtype", "values"), where)
    kind, values = node["dtype"], node["values"]
    if kind not in allowed:
        raise ValueError(f"{where} are of type {short(kind)}; allowed are {', '.join(sorted(allowed))}.")
    kinds: Any = (str,) if kind not in NUMBERS else JSON_NUMBERS[np.dtype(kind).kind]
    if isinstance(values, list) and all(type(value) in kinds for value in values):
        if kind == "str":
            check_texts([values], where)
        with np.errstate(all="ignore"):
            array = np.asarray(values, dtype=kind)
        if array.ndim == 1 and array.tolist() == values:
            return array
    raise ValueError(f"{where} are a list of {kind}; got {short(values)}.")


# --- checks ------------------------------------------------------------------------------------------------


def expect(is_right: bool, name: str, value: Any, expected: str) -> None:
    """Refuse a value that is not what is expected."""
    if not is_right:
        raise ValueError(f"{name} is {short(value)}; expected {expected}.")


def check_number(name: str, value: Any) -> None:
    """Refuse what is not a finite number."""
    expect(is_number(value) and math.isfinite(value), name, value, "a number")


def check_names(node: Any, allowed: Iterable[str], where: str) -> None:
    """Refuse a mapping with keys other than these."""
    got = sorted(node) if isinstance(node, dict) else node
    if not isinstance(node, dict) or got != sorted(allowed):
        raise ValueError(f"{where} must have {sorted(allowed)}; got {short(got)}.")


def check_texts(columns: list[Any], where: str) -> None:
    """Refuse lists of texts that would be far larger as arrays: a few long texts make all others as long."""
    lists = [column for column in columns if isinstance(column, list)]
    longest = [max((len(text) for text in texts if isinstance(text, str)), default=0) for texts in lists]
    size = sum(4 * len(texts) * length for texts, length in zip(lists, longest, strict=True))
    if size > MAX_TEXT:
        raise ValueError(
            f"{where} would take {size} bytes as arrays of texts, some of which are too long; at most "
            f"{MAX_TEXT} are used."
        )


def check_size(node: Any) -> None:
    """Refuse a tree of more values than the parameters of a model have."""
    if _n_values(node) > MAX_VALUES:
        raise ValueError(f"the parameters have more than {MAX_VALUES} values.")


def _n_values(node: Any) -> int:
    inside = [*node.values()] if isinstance(node, dict) else node if isinstance(node, list) else []
    return len(inside) + sum(map(_n_values, inside))


# --- attributes that all estimators have -------------------------------------------------------------------

NAMED = ("classes_", "n_features_in_", "n_singletons_", "feature_names_in_")


def plain_names(model: Any) -> dict[str, Any]:
    """Return the attributes NAMED of a fitted estimator as JSON has them."""
    classes, names = (getattr(model, name, None) for name in ("classes_", "feature_names_in_"))
    return {
        "classes_": None if classes is None else plain_array(to_numpy(classes)),
        "n_features_in_": int(model.n_features_in_),
        "n_singletons_": getattr(model, "n_singletons_", None),
        "feature_names_in_": None if names is None else [str(name) for name in names],
    }


def names_of(config: dict[str, Any]) -> dict[str, Any]:
    """Return what `plain_names` was given, checked, in NumPy; without what is None."""
    named = {name: config[name] for name in NAMED if config[name] is not None}
    d = check_count("n_features_in_", config["n_features_in_"])
    n = named.get("n_singletons_", 0)
    expect(type(n) is int and n >= 0, "n_singletons_", n, "a whole number of at least 0")
    if "feature_names_in_" in named:
        names = named["feature_names_in_"]
        are_texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
        expect(are_texts and len(names) == d, "feature_names_in_", names, f"{d} names")
        named["feature_names_in_"] = np.asarray(names, dtype=object)
    if "classes_" in named:
        named["classes_"] = array_of(named["classes_"], "classes_")
        values = named["classes_"].tolist()
        expect(values == sorted({*values}) != [], "classes_", values, "the classes sorted, each once")
    return named
