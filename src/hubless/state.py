"""A fitted mover as plain data, texts, numbers and named arrays, and back."""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, place, to_numpy
from .inputs import check_count
from .moments import Moments
from .movers import (
    Balance,
    Chain,
    Denoise,
    KernelMove,
    LabelRidge,
    MoveLabeled,
    Mover,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Unit,
    Whiten,
)
from .movers.mover import Exit
from .plain import array_of, check_names, check_number, check_size, plain, plain_array, short, value_of

NAMED = ("classes_", "n_features_in_", "n_singletons_", "feature_names_in_")  # as all estimators have them
KEYS = ("mover", "numbers", *NAMED, "column_major")
OF_ALL = {"exit_", "movers_", *NAMED}
OF_A_FIT = {"n_pairs_", "skipped_"}  # what a fit part by part tells of itself, and nothing later needs

# What each class learns, by its shape: d columns, c classes, n rows of its own; "" is a number.
LEARNED: dict[type[Mover], dict[str, str]] = {
    Stay: {},
    Unit: {},
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
EXIT = {"exit_.mean": "d", "exit_.gain": "", "exit_.floor": ""}
MOMENTS = {  # what MoveLabeled(keep_moments=True) learns besides; always in NumPy
    **{f"moments_.{name}": "d" for name in ("origin", "x_sum", "z_sum")},
    "moments_.A": "dd",
    "moments_.K": "dd",
    "moments_.weight": "",
    "mean_weight_": "",
}
TYPES = {"codes_": ("int64",), "ids": ("int64",), "ends": ("int64",), "text": ("uint8",)}  # else floats
FLOATS = ("float32", "float64")


def describe(mover: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """All there is to know of a fitted mover: what JSON can hold, under KEYS, and the learned arrays."""
    node = plain(mover)
    check_is_fitted(mover, "exit_")  # those inside a chain have none: they move in its space, not alone
    learned = {name: attrgetter(name)(mover) for name in EXIT}
    for prefix, part in _members(mover):
        _check_current(part)
        learned |= {prefix + name: attrgetter(name)(part) for name in _learns(part)}
    numbers, arrays = told(learned, _shapes(mover))
    return {
        "mover": node,
        "numbers": numbers,
        **plain_named(mover),
        "column_major": column_major(arrays),
    }, arrays


def restore(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Mover:
    """The mover that `describe` was given, on a device; ValueError for what describes none."""
    check_size(config["mover"])
    mover, classes = value_of(config["mover"]), classes_of(config["classes_"])
    if not isinstance(mover, Mover):
        raise ValueError(f"it describes {short(mover)}; expected a mover.")
    mover._check()
    _prepare(mover)
    if classes is None and mover._uses_labels:
        raise ValueError(f"classes_ are missing, and {type(mover).__name__} moves objects by their class.")
    check_learned(config, arrays, _shapes(mover), sizes_of(config, classes))
    if (config["numbers"]["exit_.floor"] is None) == mover._lifts:
        raise ValueError(f"exit_.floor is that of another mover than {type(mover).__name__}.")
    learned = {name: value_of(number) for name, number in config["numbers"].items()}
    learned |= placed(arrays, config["column_major"], device)
    for prefix, part in _members(mover):
        for name in LEARNED[type(part)]:
            setattr(part, name, learned[prefix + name])
        if _keeps_moments(part):
            _set_moments(part, {name: learned[prefix + name] for name in MOMENTS})
    mover.exit_ = Exit(*(learned[name] for name in EXIT))
    set_named(mover, config, classes, device)
    return mover


def told(learned: dict[str, Any], shapes: dict[str, str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What was learned: its numbers, as JSON has them, and its arrays in NumPy."""
    numbers = {name: plain(learned[name]) for name, shape in shapes.items() if not shape}
    return numbers, {name: to_numpy(learned[name]) for name, shape in shapes.items() if shape}


def _members(mover: Mover, prefix: str = "") -> Iterator[tuple[str, Mover]]:
    """A fitted mover and all movers inside it, each with what the names of its arrays begin with."""
    yield prefix, mover
    for i, inside in enumerate(getattr(mover, "movers_", ())):
        yield from _members(inside, f"{prefix}movers_.{i}.")


def _keeps_moments(mover: Mover) -> bool:
    return isinstance(mover, MoveLabeled) and bool(mover.keep_moments)


def _learns(mover: Mover) -> dict[str, str]:
    return LEARNED[type(mover)] | (MOMENTS if _keeps_moments(mover) else {})


def _shapes(mover: Mover) -> dict[str, str]:
    """Shapes of all that a mover and those inside it learn, by name."""
    shapes = dict(EXIT)
    for prefix, part in _members(mover):
        shapes |= {prefix + name: shape for name, shape in _learns(part).items()}
    return shapes


def _prepare(mover: Mover) -> None:
    """Chains get the movers that learn; what these have learned is to come."""
    if isinstance(mover, Chain):
        mover.movers_ = [clone(inside) for inside in mover.movers]
        for inside in mover.movers_:
            _prepare(inside)


def _check_current(mover: Mover) -> None:
    """Refuse what would come back as something else than it is."""
    known = {*LEARNED[type(mover)], *OF_ALL, *OF_A_FIT, "moments_", "mean_weight_"}
    check_known(mover, known, "LEARNED in state.py")
    is_chain = isinstance(mover, Chain)
    if is_chain and plain(list(mover.movers)) != plain(list(mover.movers_)):
        raise ValueError(f"{mover!r} was fitted with other movers than it has now. Fit it again, then save.")
    if _keeps_moments(mover) != hasattr(mover, "moments_"):
        raise ValueError(f"{mover!r} was fitted with another keep_moments. Fit it again, then save.")


def check_known(estimator: Any, known: set[str], table: str) -> None:
    """Refuse to leave out what an estimator has learned."""
    strange = {name for name in vars(estimator) if name.endswith("_")} - known
    if strange:
        raise TypeError(f"{type(estimator).__name__} has {sorted(strange)}, which {table} lacks.")


def _set_moments(mover: Any, learned: dict[str, Any]) -> None:
    for name in ("moments_.weight", "mean_weight_"):
        if not learned[name] > 0:
            raise ValueError(f"{name} is {learned[name]}; expected a number above 0.")
    mover.mean_weight_ = learned.pop("mean_weight_")
    mover.moments_ = Moments(**{name.removeprefix("moments_."): value for name, value in learned.items()})


def plain_named(estimator: Any) -> dict[str, Any]:
    """What estimators are named by, under NAMED; None for what there is not."""
    classes, names = (getattr(estimator, name, None) for name in ("classes_", "feature_names_in_"))
    return {
        "classes_": None if classes is None else plain_array(to_numpy(classes)),
        "n_features_in_": int(estimator.n_features_in_),
        "n_singletons_": getattr(estimator, "n_singletons_", None),
        "feature_names_in_": None if names is None else [str(name) for name in names],
    }


def set_named(estimator: Any, config: dict[str, Any], classes: np.ndarray | None, device: str) -> None:
    """Give an estimator what `plain_named` told."""
    names = config["feature_names_in_"]
    known = {
        "n_features_in_": config["n_features_in_"],
        "n_singletons_": config["n_singletons_"],
        "feature_names_in_": None if names is None else np.asarray(names, dtype=object),
        "classes_": classes if classes is None or classes.dtype.kind in "UO" else place(classes, device),
    }
    for name, value in known.items():
        if value is not None:
            setattr(estimator, name, value)


def classes_of(found: Any) -> np.ndarray | None:
    """Classes in NumPy, of the type they had."""
    if found is None:
        return None
    classes = array_of(found, "classes_")
    if not len(classes) or found["values"] != sorted(set(found["values"])):
        raise ValueError(f"classes_ are {short(found['values'])}; expected them in their order, each once.")
    return classes


def sizes_of(config: dict[str, Any], classes: np.ndarray | None) -> dict[str, int]:
    """Lengths that shapes speak of: d columns and, where there are classes, c of them."""
    d, singletons, names = (config[name] for name in NAMED[1:])
    check_count("n_features_in_", d)
    if singletons is not None and (type(singletons) is not int or singletons < 0):
        raise ValueError(f"n_singletons_ is {short(singletons)}; expected a whole number of at least 0.")
    if names is not None and (
        not isinstance(names, list) or len(names) != d or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"feature_names_in_ is {short(names)}; expected {d} names.")
    return {"d": d} | ({} if classes is None else {"c": len(classes)})


def column_major(arrays: dict[str, np.ndarray]) -> list[str]:
    """Matrices that are held column by column: a product rounds by the order of its factors in memory, and
    positions are to be the same bits.
    """
    return sorted(
        name
        for name, array in arrays.items()
        if array.ndim == 2 and not array.flags.c_contiguous and array.strides[0] < array.strides[1]
    )


def placed(arrays: dict[str, np.ndarray], turned: Iterable[str], device: str) -> dict[str, Array]:
    """Arrays on a device, in the order in memory that they had; moments stay on the host."""
    found = {}
    for name, array in arrays.items():
        where = "cpu" if "moments_." in name else device
        found[name] = place(np.ascontiguousarray(array.T), where).T if name in turned else place(array, where)
    return found


def check_learned(
    config: dict[str, Any], arrays: dict[str, np.ndarray], shapes: dict[str, str], sizes: dict[str, int]
) -> None:
    """Whether numbers and arrays are those that an estimator learns."""
    check_names(config["numbers"], [name for name, shape in shapes.items() if not shape], "numbers")
    check_names(arrays, [name for name, shape in shapes.items() if shape], "the arrays")
    for name, found in config["numbers"].items():
        if found is not None or name != "exit_.floor":
            check_number(name, value_of(found))
    for name, array in arrays.items():
        check_array(name, array, shapes[name], sizes)
        if array.size == 0:
            raise ValueError(f"{name} is empty.")
    turned = config["column_major"]
    if not isinstance(turned, list) or any(len(shapes.get(name, "")) != 2 for name in turned):
        raise ValueError(f"column_major has {short(turned)}; expected names of matrices.")


def check_array(
    name: str, array: np.ndarray, shape: str, sizes: dict[str, int], *, finite: bool = True
) -> None:
    """Whether an array has the type and the lengths it should, and numbers that make sense.

    A length of its own, as n, is kept in `sizes`.
    """
    owner, _, own = name.rpartition(".")
    keys = [letter if letter in "dcm" else owner + letter for letter in shape]
    allowed = TYPES.get(own, FLOATS)
    fits = array.dtype.name in allowed and array.ndim == len(keys)
    if not fits or any(sizes.setdefault(key, n) != n for key, n in zip(keys, array.shape, strict=True)):
        expected = ", ".join(str(sizes.get(key, "any")) for key in keys)
        raise ValueError(
            f"{name} is {array.dtype} of shape {array.shape}; expected {' or '.join(allowed)} of shape "
            f"({expected})."
        )
    if finite and allowed == FLOATS and array.size and not np.isfinite([array.min(), array.max()]).all():
        raise ValueError(f"{name} holds NaN or infinity, which nothing that is learned does.")
    if own == "codes_" and array.size and not (array.min() >= 0 and array.max() < sizes.get("c", 0)):
        raise ValueError(
            f"{name} has class numbers from {array.min()} to {array.max()}, of {sizes.get('c')}."
        )
