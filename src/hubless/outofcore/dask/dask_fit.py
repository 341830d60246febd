"""Fit movers and classifiers to Dask arrays, and move such arrays."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ...arrays import float_type
from ...arrays.devices import is_on_engine
from ...arrays.inputs import refuse_dask
from ...classifier_cv import CHOICE_ATTRIBUTES, MoveLabeledClassifierCV
from ...movers import Mover
from ...neighbors.blocks import floats
from ...neighbors.search import check_enough
from ...selection.candidates import movers_in_parts
from ...support.imports import need
from .. import learn
from ..labels import read_labels
from ..learn import Plan, column_names
from ..sampling import Drawn
from ..survey import Survey, survey
from .dask_objects import objects_of_arrays
from .engine import as_array, as_fitted, as_labels, shared

CHOSEN_ON = 20_000  # objects that a mover is chosen on


def refuse(**given: Any) -> None:
    """Refuse arguments that are not supported with Dask arrays."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with Dask arrays; leave it out, or give NumPy arrays.")


def refuse_queries(queries: Any, X: Any) -> None:
    """Refuse queries to learn from: movers that do so need all objects in memory."""
    if not is_on_engine(X):
        refuse_dask(queries, "X is in memory", "queries")
    refuse(queries=queries)


# --- movers ------------------------------------------------------------------------------------------------


def fit(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    targets: Any = None,
    queries: Any = None,
) -> Any:
    """`fit` of a mover or classifier."""
    refuse_queries(queries, X)
    if isinstance(model, Mover):
        _fit_mover(model, X, y, sample_weight, targets)
        return model
    if isinstance(model, MoveLabeledClassifierCV):
        return _fit_chosen(model, X, y, sample_weight, targets)
    k, mover = model._check_fit()
    refuse(sample_weight=sample_weight, targets=targets, device=model.device)
    mover._needs()  # raises for movers that cannot learn in parts, before anything is read
    objects = objects_of_arrays(X, y)
    seen = survey(objects)
    check_enough(k, seen.n)
    learn.fit_seen(mover, objects, seen, Plan(), column_names(X))
    return _keep(model, mover, X, y, seen)


def fit_transform(
    mover: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    targets: Any = None,
    queries: Any = None,
) -> Any:
    """`fit_transform` of a mover: the moved objects, a Dask array."""
    refuse_queries(queries, X)
    _fit_mover(mover, X, y, sample_weight, targets)
    return move(mover, X, y)


def _fit_mover(mover: Mover, X: Any, y: Any, sample_weight: Any, targets: Any) -> None:
    mover._check_parameters()
    refuse(sample_weight=sample_weight, targets=targets, device=mover._device())
    learn.fit(mover, objects_of_arrays(X, y), Plan(), column_names(X))


def transform(mover: Any, X: Any) -> Any:
    """`transform` of a mover: queries unchanged, as a Dask array of floats."""
    check_is_fitted(mover, "space_")
    X = as_fitted(mover, X)
    return X.astype(float_type(X.dtype))


def move(mover: Any, Z: Any, y: Any = None) -> Any:
    """`move` of a mover: a Dask array."""
    check_is_fitted(mover, "space_")
    array, Z = need("dask.array", "dask"), as_fitted(mover, Z)
    labels = (as_labels(y, Z), "i") if mover._uses_labels else ()
    none = np.empty((0, 0), float_type(Z.dtype))
    return array.blockwise(
        _move_block,
        "ij",
        Z,
        "ij",
        *labels,
        mover=shared(mover),
        dtype=none.dtype,
        meta=none,
        concatenate=True,
    )


def _move_block(X: Any, y: Any = None, *, mover: Any) -> np.ndarray:
    """Return the objects of a block, moved."""
    X = floats(X)
    return np.asarray(mover.move(X, y)) if len(X) else X


# --- classifiers -------------------------------------------------------------------------------------------


def _fit_chosen(
    model: MoveLabeledClassifierCV, X: Any, y: Any, sample_weight: Any, targets: Any
) -> MoveLabeledClassifierCV:
    """Choose on a sample, which one worker does, and learn from all objects."""
    movers = model._check_fit()
    # a given λ is for all objects, and the best one for a sample would be too small
    refuse(sample_weight=sample_weight, targets=targets, device=model.device, alphas=model.alphas)
    for mover in movers or ():
        mover._needs()  # raises for movers that cannot learn in parts, before anything is read
    objects, chooser = objects_of_arrays(X, y), clone(model)
    seen = survey(objects)
    if movers == []:
        chooser.set_params(mover=movers_in_parts(), lift=False)
    chosen = learn.with_sample(objects, seen, CHOSEN_ON, 0, partial(_fit_to_sample, chooser))
    mover = clone(chosen.mover_)
    learn.fit_seen(mover, objects, seen, Plan(), column_names(X))
    _keep(model, mover, X, y, seen)
    _take_choice(model, chosen)
    model._why += f" It was chosen on {chosen.codes_.shape[0]:,} of {seen.n:,} objects."
    return model


def _fit_to_sample(model: MoveLabeledClassifierCV, sample: Drawn) -> MoveLabeledClassifierCV:
    return model.fit(sample.X, sample.labels)


def _take_choice(model: MoveLabeledClassifierCV, other: MoveLabeledClassifierCV) -> None:
    """Copy what another classifier chose, and why."""
    for name in CHOICE_ATTRIBUTES:
        model.__dict__.pop(name, None)
        if hasattr(other, name):
            setattr(model, name, getattr(other, name))


def _keep(model: Any, mover: Mover, X: Any, y: Any, seen: Survey) -> Any:
    """Let a classifier hold moved objects and their class numbers as Dask arrays."""
    X = as_array(X)
    labels = as_labels(y, X)
    codes = labels.map_blocks(_codes, classes=seen.classes, dtype=np.int64)
    moved = move(mover, X, labels)
    lengths = tuple(block.length for block in seen.blocks)
    moved._chunks, codes._chunks = (lengths, (X.shape[1],)), (lengths,)
    model._take_columns(mover)
    model._keep(mover, seen.classes, None, moved, codes)
    return model


def _codes(y: Any, *, classes: np.ndarray) -> np.ndarray:
    """Return the class numbers of the labels of a block."""
    return read_labels(y).codes(classes) if len(y) else np.zeros(0, dtype=np.int64)
