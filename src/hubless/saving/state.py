"""A fitted estimator as plain data, JSON and named arrays, and back with every check.

An estimator declares what it learns in `_learned`, by name, and saving knows nothing else of any class:

    "nd", "c", …       an array of this shape: d columns, c classes, m columns of moved objects; any other
                       letter is a length of this estimator. It holds finite floats unless a word follows:
                       "int", "bytes", "codes" (class numbers) or "nan" (NaN is allowed, also of a number);
                       "dd host" stays in NumPy on every device
    "number", "count"  a finite number; a whole number of at least 1
    "text", "list"     a text; a list of numbers
    "grid", "table"    lists of numbers by name; columns by name, of numbers or texts
    "mover", "movers"  a fitted mover; those of a chain

followed by "optional" where the attribute may be missing, or "none" where it may be None. A name with a dot
in it is a field of a tuple or dataclass, whose class is in `_learned_types`.
"""

from collections.abc import Collection, Iterator
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..arrays.devices import place
from ..arrays.inputs import check_count
from ..movers import Mover
from ..support.text import short
from .values import (
    NAMED,
    array_of,
    check_class,
    check_names,
    check_number,
    check_size,
    check_texts,
    estimator_of,
    expect,
    names_of,
    plain,
    plain_estimator,
    plain_names,
    value_of,
)

VALUES = ("number", "count", "text", "list", "grid", "table")  # kinds that JSON holds; others are arrays
FLOATS = ("float32", "float64")
TYPES = {"int": ("int64",), "codes": ("int64",), "bytes": ("uint8",)}  # of arrays, by the word that follows


def is_array(entry: str) -> bool:
    """Return whether what an entry of `_learned` describes is held as an array, not by JSON."""
    return entry.split()[0] not in VALUES


def _may_be_missing(entry: str) -> bool:
    return entry.endswith(("optional", "none"))


# The rounding of a product depends on the memory layout of its factors, and a loaded model must give the
# same bits.
def is_column_major(array: np.ndarray) -> bool:
    """Return whether a matrix is held column by column."""
    return array.ndim == 2 and not array.flags.c_contiguous and array.strides[0] < array.strides[1]


def plain_learned(name: str, entry: str, value: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Return what JSON holds of a learned value, None for an array, and its arrays by name."""
    kind = entry.split()[0]
    if value is None:
        if not _may_be_missing(entry):
            raise ValueError(f"{name} is missing. Fit the model again, then save it.")
        return None, {}
    if is_array(entry):
        return None, {name: to_numpy(value)}
    if kind == "table":
        texts = {key: column.tolist() if column.dtype.kind == "U" else None for key, column in value.items()}
        return texts, {f"{name}.{key}": value[key] for key, text in texts.items() if text is None}
    if entry == "number nan" and np.isnan(value):  # which JSON does not have
        return None, {}
    if kind == "grid":
        return {axis: plain(list(values)) for axis, values in value.items()}, {}
    return ([plain(float(item)) for item in value] if kind == "list" else plain(value)), {}


class SavedValues:
    """What was saved of a model: values by name and arrays by name, each of which is taken once."""

    def __init__(
        self,
        values: Any,
        arrays: dict[str, np.ndarray],
        column_major: Any,
        sizes: dict[str, int],
        device: str,
    ) -> None:
        """`sizes` has the lengths d, c and m that shapes refer to."""
        are_matrices = isinstance(column_major, list) and all(
            getattr(arrays.get(name), "ndim", 0) == 2 for name in column_major
        )
        expect(are_matrices, "column_major", column_major, "names of matrices")
        self.values, self.arrays, self.column_major = values, dict(arrays), column_major
        self.sizes, self.device = sizes, device

    def take(self, name: str, entry: str) -> Any:
        """Return a learned value, checked; None where there is none and none is needed."""
        kind, *words = entry.split()
        is_there = name in self.arrays if is_array(entry) else self.values[name] is not None
        if not is_there and _may_be_missing(entry):
            return None
        if not is_there and entry == "number nan":
            return float("nan")
        if not is_array(entry):
            return self._value(name, kind, self.values[name])
        if not is_there:
            raise ValueError(f"the array {name} is missing.")
        array = self.arrays.pop(name)
        check_array(name, array, kind, self.sizes, words)
        if array.size == 0:
            raise ValueError(f"{name} is empty.")
        device = "cpu" if "host" in words else self.device
        if name in self.column_major:
            return place(np.ascontiguousarray(array.T), device).T
        return place(array, device)

    def _value(self, name: str, kind: str, node: Any) -> Any:
        """Return what `plain_learned` was given."""
        if kind == "table":
            return self._table(name, node)
        if kind == "text":
            expect(isinstance(node, str), name, node, "a text")
            return node
        if kind == "grid":
            expect(isinstance(node, dict) and all(node.values()), name, node, "lists of numbers by name")
            return {axis: tuple(_numbers(f"{axis} of {name}", values)) for axis, values in node.items()}
        if kind == "list":
            return _numbers(name, node)
        value = value_of(node)
        check_number(name, value)
        return check_count(name, value) if kind == "count" else value

    def _table(self, name: str, texts: Any) -> dict[str, np.ndarray]:
        """Return the columns of a table in their order: texts from JSON, numbers from arrays."""
        expect(isinstance(texts, dict) and bool(texts), name, texts, "columns by name")
        arrays = {full: self.arrays.pop(full) for full in [*self.arrays] if full.startswith(f"{name}.")}
        check_names(arrays, [f"{name}.{column}" for column, text in texts.items() if text is None], name)
        check_texts([*texts.values()], name)
        columns = {}
        for column, text in texts.items():
            where, values = f"{column} of {name}", arrays.get(f"{name}.{column}")
            columns[column] = array_of({"dtype": "str", "values": text}, where) if values is None else values
        length = len(next(iter(columns.values())))
        for column, values in columns.items():
            is_known = values.dtype.kind == "U" or values.dtype.name in ("int64", "float64")
            if not is_known or values.shape != (length,):
                got = f"{column} of {name} is {values.dtype} of shape {values.shape}"
                raise ValueError(f"{got}; expected numbers or texts of shape ({length},).")
        return columns


def _numbers(name: str, values: Any) -> list[Any]:
    expect(isinstance(values, list), name, values, "a list of numbers")
    for value in values:
        check_number(name, value)
    return values


def check_array(
    name: str, array: np.ndarray, shape: str, sizes: dict[str, int], words: Collection[str] = ()
) -> None:
    """Refuse an array of another type or length than it should have, or with numbers that cannot be.

    Lengths other than d, c and m are added to `sizes`, under the estimator that `name` belongs to.
    """
    owner = name.rpartition(".")[0]
    keys = [letter if letter in "dcm" else owner + letter for letter in shape]
    allowed = next((TYPES[word] for word in words if word in TYPES), FLOATS)
    fits = array.dtype.name in allowed and array.ndim == len(keys)
    if not fits or any(sizes.setdefault(key, n) != n for key, n in zip(keys, array.shape, strict=True)):
        lengths = ", ".join(str(sizes.get(key, "any")) for key in keys)
        raise ValueError(
            f"{name} is {array.dtype} of shape {array.shape}; expected {' or '.join(allowed)} of shape "
            f"({lengths})."
        )
    if array.size == 0:
        return
    low, high = array.min(), array.max()
    if allowed == FLOATS and "nan" not in words and not np.isfinite([low, high]).all():
        raise ValueError(f"{name} holds NaN or infinity; learned numbers are finite.")
    if "codes" in words and not (low >= 0 and high < sizes.get("c", 0)):
        raise ValueError(f"{name} has class numbers from {low} to {high}, of {sizes.get('c', 0)} classes.")


# --- estimators --------------------------------------------------------------------------------------------


KEYS = ("class", "parameters", "mover_", "learned", *NAMED, "column_major")


def describe(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a fitted estimator as what JSON can hold, under KEYS, and its arrays."""
    check_class(model)
    check_is_fitted(model, "space_" if isinstance(model, Mover) else None)
    learned: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for prefix, part, entries in _parts(model):
        _check_savable(part)
        for name, entry in entries.items():
            value = reduce(lambda owner, field: getattr(owner, field, None), name.split("."), part)
            node, more = plain_learned(prefix + name, entry, value)
            arrays |= more
            if not is_array(entry):
                learned[prefix + name] = node
    mover = getattr(model, "mover_", None)
    return {
        **plain_estimator(model),
        "mover_": None if mover is None else plain_estimator(mover),
        "learned": learned,
        **plain_names(model),
        "column_major": sorted(name for name, array in arrays.items() if is_column_major(array)),
    }, arrays


def restore(config: Any, arrays: dict[str, np.ndarray], device: str) -> Any:
    """Return the estimator that `describe` was given, on a device; ValueError where that is not one."""
    check_names(config, KEYS, "a model")
    model = _new({name: config[name] for name in ("class", "parameters")})
    if "mover_" in model._learned:
        model.mover_ = _new(config["mover_"])
    elif config["mover_"] is not None:
        raise ValueError(f"mover_ is {short(config['mover_'])}; {type(model).__name__} has none.")
    mover, named = getattr(model, "mover_", model), names_of(config)
    d, classes = named["n_features_in_"], named.get("classes_")
    sizes = {"d": d, "m": d + bool(getattr(mover, "_adds_column", False))}
    if classes is not None:
        sizes["c"] = len(classes)
        named["classes_"] = classes if classes.dtype.kind in "UO" else place(classes, device)
    for part in (model, mover):
        vars(part).update(named)
    _set_learned(model, SavedValues(config["learned"], arrays, config["column_major"], sizes, device))
    for _, part, _ in _parts(model):
        if hasattr(part, "_check_loaded"):
            part._check_loaded()
    return model


# --- estimators and the movers inside them -----------------------------------------------------------------


def _parts(model: Any, prefix: str = "") -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Yield an estimator and all movers inside it: the prefix of its names, itself, and what it learns."""
    is_alone = isinstance(model, Mover) and "movers_." not in prefix  # others move in the space of a chain
    entries = {**(Mover._learned_alone if is_alone else {}), **model._learned}
    yield prefix, model, {name: entry for name, entry in entries.items() if entry not in ("mover", "movers")}
    if "mover_" in model._learned:
        yield from _parts(model.mover_, f"{prefix}mover_.")
    for i, inside in enumerate(getattr(model, "movers_", ())):
        yield from _parts(inside, f"{prefix}movers_.{i}.")


def _check_savable(part: Any) -> None:
    """Refuse an estimator that would not be the same after loading."""
    check_class(part)
    if hasattr(part, "_check_savable"):
        part._check_savable()
    names = {*Mover._learned_alone, *part._learned, *NAMED, *getattr(part, "_unsaved", ())}
    unknown = {name for name in vars(part) if name.endswith("_")} - {name.partition(".")[0] for name in names}
    if unknown:
        raise TypeError(f"{type(part).__name__} has {sorted(unknown)}, which its _learned does not declare.")
    if "movers_" in part._learned and plain(list(part.movers)) != plain(list(part.movers_)):
        raise ValueError(f"{part!r} was fitted with other movers than it has now. Fit it again, then save.")


def _new(node: Any) -> Any:
    """Return an estimator with its parameters, checked; a chain has its `movers_` already, not fitted."""
    check_size(node)
    model = estimator_of(node)
    model._check_parameters()
    _add_movers(model)
    return model


def _add_movers(model: Any) -> None:
    if "movers_" in model._learned:
        model.movers_ = [clone(inside) for inside in model.movers]
        for inside in model.movers_:
            _add_movers(inside)


def _set_learned(model: Any, saved: SavedValues) -> None:
    """Set everything learned, which must be all that was saved."""
    parts = [*_parts(model)]
    names = [prefix + name for prefix, _, entries in parts for name in entries if not is_array(entries[name])]
    check_names(saved.values, names, "learned")
    for prefix, part, entries in parts:
        fields: dict[str, dict[str, Any]] = {}
        for name, entry in entries.items():
            value = saved.take(prefix + name, entry)
            owner, _, field = name.partition(".")
            if field:
                fields.setdefault(owner, {})[field] = value
            elif value is not None or entry.endswith("none"):
                setattr(part, name, value)
        for owner, values in fields.items():
            setattr(part, owner, part._learned_types[owner](**values))
    if saved.arrays:
        raise ValueError(
            f"it has the arrays {short(sorted(saved.arrays))}, which {type(model).__name__} does not."
        )
