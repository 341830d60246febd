"""Fitted classifiers, MoveQuery and the baselines as plain data, and back: what `state` is for movers."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .arrays import is_dask, place, to_numpy
from .baselines import ITML, LMNN, NCA, DMLeig
from .classifier import VOTES, MovedNeighbors, MoveLabeledClassifier
from .classifier_cv import MoveLabeledClassifierCV
from .inputs import check_alpha, check_alphas, check_choice, check_count, check_counts, check_positive
from .movers import MoveLabeled
from .plain import (
    array_of,
    check_names,
    check_number,
    check_size,
    made,
    plain,
    plain_parameters,
    short,
    value_of,
)
from .state import (
    KEYS,
    NAMED,
    check_array,
    check_known,
    check_learned,
    classes_of,
    column_major,
    describe,
    placed,
    plain_named,
    restore,
    set_named,
    sizes_of,
    told,
)
from .transformer import MoveQuery

ESTIMATOR_KEYS = ("estimator", "numbers", *NAMED, "column_major", "mover", "choice")

# What each class learns, by its shape, as in state.LEARNED; m are the columns of moved objects.
MOVED = {"moved_": "nm", "codes_": "n"}
METRIC = {"components_": "dd", "n_iter_": "", "history_": "h"}
LEARNS: dict[type[Any], dict[str, str]] = {
    MoveLabeledClassifier: MOVED,
    MoveLabeledClassifierCV: MOVED | {"n_neighbors_": "", "best_score_": ""},
    MoveQuery: {"W_": "dd", "mean_": "d", "alpha_": ""},
    LMNN: METRIC,
    ITML: METRIC,
    DMLeig: METRIC | {"gap_": ""},
    NCA: METRIC,
}
KINDS = {
    **dict.fromkeys((MoveLabeledClassifier, MoveLabeledClassifierCV), "classifier"),
    **dict.fromkeys((LMNN, ITML, DMLeig, NCA), "metric"),
    MoveQuery: "transformer",
}
ESTIMATORS = {kind.__name__: kind for kind in LEARNS}
OR_NONE = ("scale", "n_constraints", "random_state")  # of the baselines
COUNTS = ("n_neighbors_", "n_iter_")
OF_MOVER = ("W_", "mean_", "alpha_")  # which a classifier has too, where its mover is the paper's
CHOSEN = ("n_targets_", "scores_", "grid_", "cv_results_")
CHOICE = ("why", "n_targets_", "grid_", "cv_results_")
GRID = {"n_targets": "t", "alpha": "a", "n_neighbors": "k"}  # the last three axes of scores_


def describe_estimator(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What JSON can hold of a fitted estimator, under ESTIMATOR_KEYS, and the learned arrays."""
    check_is_fitted(model)
    if is_dask(getattr(model, "moved_", None)):
        raise ValueError(
            "the moved objects of this classifier are on Dask, and are not brought here. Save its mover_, "
            "and write moved_ where it belongs, as by moved_.to_zarr."
        )
    _check_refitted_by(model)
    shapes = LEARNS[type(model)]
    known = {*shapes, *NAMED, *OF_MOVER, *CHOSEN, "mover_", "weights_"}
    check_known(model, known, "LEARNS in estimators.py")
    if getattr(model, "weights_", None) is not None:
        shapes = shapes | {"weights_": "n"}
    numbers, arrays = told({name: getattr(model, name) for name in shapes}, shapes)
    config = {
        "estimator": {"class": type(model).__name__, "parameters": plain_parameters(model)},
        "numbers": numbers,
        **plain_named(model),
        "column_major": column_major(arrays),
        "mover": None,
        "choice": None,
    }
    if isinstance(model, MovedNeighbors):
        config["mover"], own = describe(model.mover_)
        arrays |= {f"mover_.{name}": array for name, array in own.items()}
    if isinstance(model, MoveLabeledClassifierCV):
        config["choice"], own = _describe_choice(model)
        arrays |= own
    return config, arrays


def restore_estimator(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> Any:
    """The estimator that `describe_estimator` was given, on a device; ValueError for what describes none."""
    model = _made(config["estimator"])
    parts = _parts(arrays)
    classes = classes_of(config["classes_"])
    sizes = sizes_of(config, classes)
    shapes = LEARNS[type(model)]
    if isinstance(model, MovedNeighbors):
        _restore_mover(model, config, parts.pop("mover_", {}), device)
        sizes["m"] = sizes["d"] + (model.mover_.exit_.floor is not None)
        if "weights_" in parts[""]:
            shapes = shapes | {"weights_": "n"}
    elif config["mover"] is not None:
        raise ValueError(f"mover is {short(config['mover'])}; {type(model).__name__} has none.")
    _restore_choice(model, config["choice"], parts, device)
    check_names(parts, [""], "the arrays")
    check_learned(config, parts[""], shapes, sizes)
    learned = {name: value_of(number) for name, number in config["numbers"].items()}
    learned |= placed(parts[""], config["column_major"], device)
    for name in COUNTS:
        if name in learned:
            check_count(name, learned[name])
    for name, value in learned.items():
        setattr(model, name, to_numpy(value).tolist() if name == "history_" else value)
    set_named(model, config, classes, device)
    if isinstance(model, MovedNeighbors):
        _check_votes(model)
    return model


def _parts(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Arrays by what their names begin with, up to the first point; "" for those without one."""
    parts: dict[str, dict[str, np.ndarray]] = {"": {}}
    for name, array in arrays.items():
        owner, point, own = name.partition(".")
        parts.setdefault(owner if point else "", {})[own if point else name] = array
    return parts


def _check_refitted_by(model: Any) -> None:
    """Refuse splitters, splits and generators: they have no plain form, or a large one."""
    for name in {"cv", "random_state"} & vars(model).keys():
        if not _is_whole_or_none(getattr(model, name)):
            raise TypeError(
                f"{name}={short(getattr(model, name))} cannot be saved, and what was fitted does not need "
                f"it: put a number in its place, with set_params({name}=5), and save again."
            )


def _is_whole_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool))


def _made(found: Any) -> Any:
    """An estimator with its parameters, which are checked as far as they decide what it answers."""
    check_size(found)
    check_names(found, ("class", "parameters"), "estimator")
    if found["class"] not in ESTIMATORS:
        raise ValueError(f"it names the class {short(found['class'])}; allowed are {', '.join(ESTIMATORS)}.")
    model = made(ESTIMATORS[found["class"]], found["parameters"])
    if isinstance(model, MovedNeighbors):
        check_choice("weights", model.weights, VOTES)
    if isinstance(model, MoveLabeledClassifier):
        check_count("n_neighbors", model.n_neighbors)
        check_count("n_targets", model.n_targets)
        check_alpha(model.alpha)
        model._check_mover()
    elif isinstance(model, MoveLabeledClassifierCV):
        _check_search(model)
    elif isinstance(model, MoveQuery):
        check_alpha(model.alpha)
        check_count("n_targets", model.n_targets)
    else:
        for name, value in model.get_params().items():
            if value is not None or name not in OR_NONE:
                check_number(name, value)
    return model


def _check_search(model: MoveLabeledClassifierCV) -> None:
    model._check_movers()
    check_counts("n_targets", model.n_targets)
    if model.n_neighbors is not None:
        check_counts("n_neighbors", model.n_neighbors)
    if model.alphas is not None:
        check_alphas(model.alphas)
    if model.max_seconds is not None:
        check_positive("max_seconds", model.max_seconds)
    for name in ("cv", "random_state"):
        if not _is_whole_or_none(getattr(model, name)):
            raise ValueError(f"{name} is {short(getattr(model, name))}; expected a number.")


def _restore_mover(model: Any, config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> None:
    own = config["mover"]
    check_names(own, KEYS, "mover")
    for name in NAMED:  # a classifier and its mover have these in common
        if own[name] != config[name]:
            raise ValueError(f"{name} of the classifier and of its mover differ.")
    if own["classes_"] is None:
        raise ValueError("classes_ are missing, and a classifier answers by them.")
    model.mover_ = restore(own, arrays, device)
    if isinstance(model.mover_, MoveLabeled):
        for name in OF_MOVER:
            setattr(model, name, getattr(model.mover_, name))


def _check_votes(model: Any) -> None:
    """Whether the moved objects can vote."""
    n, k = model.moved_.shape[0], model._n_neighbors()
    if k > n:
        raise ValueError(f"{k} neighbours vote, and there are {n} objects.")
    if not hasattr(model, "weights_"):
        model.weights_ = None
    elif not (to_numpy(model.weights_) > 0).all():
        raise ValueError("weights_ must be above 0.")


def _describe_choice(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Why a classifier chose what it chose: columns of texts as JSON, those of numbers as arrays."""
    columns, grid = model.cv_results_, getattr(model, "grid_", None)
    texts = {name: column.tolist() if column.dtype.kind == "U" else None for name, column in columns.items()}
    arrays = {f"cv_results_.{name}": columns[name] for name, text in texts.items() if text is None}
    if grid is not None:
        arrays["scores_"] = to_numpy(model.scores_)
    return {
        "why": model._why,
        "n_targets_": getattr(model, "n_targets_", None),
        "grid_": None if grid is None else {name: plain(list(values)) for name, values in grid.items()},
        "cv_results_": texts,
    }, arrays


def _restore_choice(model: Any, found: Any, parts: dict[str, dict[str, np.ndarray]], device: str) -> None:
    """What `_describe_choice` told, taken out of `parts`; there is none but for a classifier that chose."""
    if not isinstance(model, MoveLabeledClassifierCV):
        if found is not None:
            raise ValueError(f"choice is {short(found)}; {type(model).__name__} chooses nothing.")
        return
    check_names(found, CHOICE, "choice")
    if not isinstance(found["why"], str):
        raise ValueError(f"why is {short(found['why'])}; expected a text.")
    model._why = found["why"]
    model.cv_results_ = _columns(found["cv_results_"], parts.pop("cv_results_", {}))
    if found["grid_"] is None and found["n_targets_"] is None:  # a race has neither
        return
    check_names(found["grid_"], GRID, "grid_")
    sizes = {}
    for name, values in found["grid_"].items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{name} of grid_ is {short(values)}; expected a list of numbers.")
        for value in values:
            check_number(f"{name} of grid_", value)
        sizes[GRID[name]] = len(values)
    model.grid_ = {name: tuple(values) for name, values in found["grid_"].items()}
    model.n_targets_ = check_count("n_targets_", found["n_targets_"])
    scores = parts[""].pop("scores_", np.empty(0))
    check_array("scores_", scores, "ftak", sizes, finite=False)  # a fold without two of a class has NaN
    model.scores_ = place(scores, device)


def _columns(told_columns: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """cv_results_: its columns in their order."""
    if not isinstance(told_columns, dict) or not told_columns:
        raise ValueError(f"cv_results_ is {short(told_columns)}; expected columns by name.")
    check_names(arrays, [name for name, text in told_columns.items() if text is None], "cv_results_")
    columns = {
        name: arrays[name]
        if text is None
        else array_of({"dtype": "str", "values": text}, f"{name} of cv_results_")
        for name, text in told_columns.items()
    }
    n = len(next(iter(columns.values())))
    for name, column in columns.items():
        is_known = column.dtype.kind == "U" or column.dtype.name in ("int64", "float64")
        if not is_known or column.shape != (n,):
            raise ValueError(
                f"{name} of cv_results_ is {column.dtype} of shape {column.shape}; expected numbers or texts "
                f"of shape ({n},)."
            )
    return columns
