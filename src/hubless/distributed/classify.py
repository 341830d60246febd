"""k-NN classification on Dask: objects in blocks on workers, or in memory and queries in blocks."""

from typing import Any

import numpy as np

from ..arrays import float_type, is_dask
from ..inputs import check_matrix
from ..large import tasks, top
from ..large.survey import Survey
from ..stores.store import need
from .engine import (
    as_array,
    as_fitted,
    as_labels,
    as_rows,
    compute,
    delayed_blocks,
    n_rows,
    shared,
)
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
    dtype = np.result_type(float_type(X.dtype), model.moved_.dtype)
    told = found_by(tops(X, model.moved_, k), X, k, dtype if return_distance else None)
    return compute(told) if is_host else told


def predict(model: Any, X: Any, k: int, *, shares: bool) -> Any:
    """Classes that neighbours vote for, or their shares: a Dask array for queries on Dask, else of NumPy."""
    delayed, (X, is_host) = need("dask", "dask").delayed, _queries(model, X)
    n_classes = len(model.classes_)
    if not is_dask(model.moved_):
        name = "predict_proba" if shares else "predict"
        return _mapped(model, name, X, [n_classes if shares else None])
    dtype = model.moved_.dtype
    far = np.result_type(float_type(X.dtype), dtype) if model.weights == "distance" else None
    found = tops(X, model.moved_, k, model.codes_)
    if shares:
        blocks = [delayed(top.shares_of)(one, n_classes, far, dtype) for one in found]
        told = as_rows(blocks, X, n_classes, dtype)
    else:
        blocks = [delayed(top.winners_of)(one, model.classes_, far) for one in found]
        told = as_rows(blocks, X, None, model.classes_.dtype)
    return compute(told) if is_host else told


def accuracy(found: Any, y: Any) -> float:
    """Share of queries whose class was found; on Dask both, or one of them."""
    delayed, array = need("dask", "dask").delayed, need("dask.array", "dask")
    found = found if is_dask(found) else array.from_array(np.asarray(found))
    pairs = zip(delayed_blocks(found), delayed_blocks(as_labels(y, found)), strict=True)
    right = delayed(sum)([delayed(top.n_right)(block, own) for block, own in pairs])
    n_right, n = compute((right, n_rows(found)))
    return float(n_right / n)


def _queries(model: Any, X: Any) -> tuple[Any, bool]:
    """Queries in blocks, and whether they came in NumPy."""
    is_host = not is_dask(X)
    if is_host:
        X = check_matrix(X, "X")
        X = need("dask.array", "dask").from_array(X, chunks=(QUERIES, -1))
    return as_fitted(model, X), is_host


def _mapped(model: Any, method: str, X: Any, widths: list[int | None], *options: Any) -> Any:
    """What a method of a classifier in memory says of each block of queries."""
    delayed, on_workers = need("dask", "dask").delayed, shared(model)
    blocks = [delayed(_ask)(on_workers, method, x, options) for x in delayed_blocks(X)]
    kinds = [model.moved_.dtype, np.dtype(np.int64)][-len(widths) :]  # of distances and row numbers
    if method != "kneighbors":
        kinds = [model.classes_.dtype if method == "predict" else model.moved_.dtype]
    told = [
        as_rows([delayed(lambda parts, i=i: parts[i])(block) for block in blocks], X, width, kind)
        for i, (width, kind) in enumerate(zip(widths, kinds, strict=True))
    ]
    return told[0] if len(told) == 1 else tuple(told)


def _ask(model: Any, method: str, X: Any, options: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    if not len(X):  # what it says of one query, without its row
        return tuple(part[:0] for part in _ask(model, method, np.zeros((1, X.shape[1]), X.dtype), options))
    found = getattr(model, method)(X, *options)
    return found if isinstance(found, tuple) else (found,)
