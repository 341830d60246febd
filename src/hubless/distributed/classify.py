"""k-NN classification on Dask: objects in blocks on workers, or in memory and queries in blocks."""

from typing import Any

import numpy as np

from ..arrays import is_dask
from ..large import tasks, top
from ..large.survey import Survey
from ..stores.store import need
from .engine import as_array, as_labels, as_rows, compute, n_rows
from .search import found_by, moved, tops

QUERIES = 4096  # queries of NumPy that are asked at once


def stored(X: Any, y: Any, mover: Any, seen: Survey) -> tuple[Any, Any]:
    """Moved objects and their class numbers, as Dask arrays with blocks of known length."""
    X = as_array(X)
    labels = as_labels(y, X)
    codes = labels.map_blocks(tasks.codes_in, classes=seen.classes, dtype=np.int64)
    there = moved(mover, X, labels if mover._uses_labels else None)
    there._chunks, codes._chunks = (tuple(seen.lengths), (X.shape[1],)), (tuple(seen.lengths),)
    return there, codes


def kneighbors(model: Any, X: Any, k: int, return_distance: bool) -> Any:
    """The nearest moved objects: Dask arrays for queries on Dask, else NumPy arrays."""
    X, is_host = _queries(model, X)
    if not is_dask(model.moved_):
        return _mapped(model, "kneighbors", X, [k, k] if return_distance else [k], k, return_distance)
    told = found_by(tops(X, model.moved_, k), X, k, return_distance)
    return compute(told) if is_host else told


def predict(model: Any, X: Any, k: int, *, shares: bool) -> Any:
    """Classes that neighbours vote for, or their shares: a Dask array for queries on Dask, else of NumPy."""
    delayed, (X, is_host) = need("dask", "dask").delayed, _queries(model, X)
    n_classes = len(model.classes_)
    if not is_dask(model.moved_):
        name = "predict_proba" if shares else "predict"
        return _mapped(model, name, X, [n_classes if shares else None])
    by_distance, dtype = model.weights == "distance", model.moved_.dtype
    found = tops(X, model.moved_, k, model.codes_)
    if shares:
        blocks = [delayed(top.shares_of)(one, n_classes, by_distance, dtype) for one in found]
        told = as_rows(blocks, X, n_classes, dtype)
    else:
        blocks = [delayed(top.winners_of)(one, model.classes_, by_distance, dtype) for one in found]
        told = as_rows(blocks, X, None, model.classes_.dtype)
    return compute(told) if is_host else told


def accuracy(found: Any, y: Any) -> float:
    """Share of queries whose class was found; on Dask both, or one of them."""
    array = need("dask.array", "dask")
    found = found if is_dask(found) else array.from_array(np.asarray(found))
    return float(compute((found == as_labels(y, found)).sum() / n_rows(found)))


def _queries(model: Any, X: Any) -> tuple[Any, bool]:
    """Queries in blocks, and whether they came in NumPy."""
    is_host = not is_dask(X)
    if is_host:
        X = need("dask.array", "dask").from_array(np.asarray(X), chunks=(QUERIES, -1))
    X = as_array(X)
    if X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    return X, is_host


def _mapped(model: Any, method: str, X: Any, widths: list[int | None], *options: Any) -> Any:
    """What a method of a classifier in memory says of each block of queries."""
    dask = need("dask", "dask")
    shared = dask.delayed(model, pure=False)
    blocks = [dask.delayed(_ask)(shared, method, x, options) for x in X.to_delayed().reshape(-1)]
    kinds = [part.dtype for part in _ask(model, method, np.zeros((1, X.shape[1]), X.dtype), options)]
    told = [
        as_rows([dask.delayed(lambda parts, i=i: parts[i])(block) for block in blocks], X, width, kind)
        for i, (width, kind) in enumerate(zip(widths, kinds, strict=True))
    ]
    return told[0] if len(told) == 1 else tuple(told)


def _ask(model: Any, method: str, X: Any, options: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    found = getattr(model, method)(X, *options)
    return found if isinstance(found, tuple) else (found,)
