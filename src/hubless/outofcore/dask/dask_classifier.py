"""k-NN classification on Dask: objects in blocks on workers, or in memory and queries in blocks."""

from typing import Any

import numpy as np

from ...arrays import float_type
from ...arrays.devices import is_on_engine
from ...arrays.inputs import check_matrix
from ...neighbors.blocks import Nearest
from ...neighbors.knn import distance_weights, probabilities, vote
from ...support.imports import need
from .dask_fit import refuse
from .dask_search import distances_and_indices, distances_of, nearest_in_blocks
from .engine import as_fitted, as_labels, as_rows, compute, delayed_blocks, n_rows, shared

QUERIES = 4096  # rows of a block of queries that came in NumPy


def kneighbors(model: Any, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
    """`kneighbors` of a classifier: Dask arrays for queries on Dask, otherwise NumPy arrays."""
    k = model._check_k(n_neighbors)
    X, is_host = _queries(model, X)
    if not is_on_engine(model.moved_):
        return _mapped(model, "kneighbors", X, [k, k] if return_distance else [k], k, return_distance)
    dtype = np.result_type(float_type(X.dtype), model.moved_.dtype)
    near = nearest_in_blocks(X, model.moved_, k)
    result = distances_and_indices(near, X, k, dtype if return_distance else None)
    return compute(result) if is_host else result


def predict(
    model: Any, X: Any = None, *, neighbors: Any = None, reject: Any = None, unknown: Any = None
) -> Any:
    """`predict` of a classifier: a Dask array for queries on Dask, otherwise a NumPy array."""
    refuse(reject=reject, unknown=unknown)
    return _predict(model, X, neighbors, "predict")


def predict_proba(model: Any, X: Any = None, *, neighbors: Any = None) -> Any:
    """`predict_proba` of a classifier, likewise."""
    return _predict(model, X, neighbors, "predict_proba")


def _predict(model: Any, X: Any, neighbors: Any, method: str) -> Any:
    model._check_votes()
    refuse(neighbors=neighbors)
    k = model._check_k()
    delayed, (X, is_host) = need("dask", "dask").delayed, _queries(model, X)
    n_classes, is_proba = len(model.classes_), method == "predict_proba"
    if not is_on_engine(model.moved_):
        return _mapped(model, method, X, [n_classes if is_proba else None])
    dtype = model.moved_.dtype
    precision = np.result_type(float_type(X.dtype), dtype) if model.weights == "distance" else None
    results = nearest_in_blocks(X, model.moved_, k, model.codes_)
    if is_proba:
        blocks = [delayed(_shares)(near, n_classes, precision, dtype) for near in results]
        result = as_rows(blocks, X, n_classes, dtype)
    else:
        blocks = [delayed(_winners)(near, model.classes_, precision) for near in results]
        result = as_rows(blocks, X, None, model.classes_.dtype)
    return compute(result) if is_host else result


def score(model: Any, X: Any, y: Any, sample_weight: Any = None, *, neighbors: Any = None) -> float:
    """`score` of a classifier: the share of queries whose class is predicted correctly."""
    refuse(sample_weight=sample_weight)
    delayed, array = need("dask", "dask").delayed, need("dask.array", "dask")
    predicted = predict(model, X, neighbors=neighbors)
    predicted = predicted if is_on_engine(predicted) else array.from_array(np.asarray(predicted))
    pairs = zip(delayed_blocks(predicted), delayed_blocks(as_labels(y, predicted)), strict=True)
    right = delayed(sum)([delayed(_n_right)(block, labels) for block, labels in pairs])
    n_right, n = compute(delayed((right, n_rows(predicted))))
    return float(n_right / n)


def _queries(model: Any, X: Any) -> tuple[Any, bool]:
    """Return queries in blocks, and whether they came in NumPy."""
    is_host = not is_on_engine(X)
    if is_host:
        X = check_matrix(X, "X")
        X = need("dask.array", "dask").from_array(X, chunks=(QUERIES, -1))
    return as_fitted(model, X), is_host


def _mapped(model: Any, method: str, X: Any, widths: list[int | None], *options: Any) -> Any:
    """Return what a method of a classifier in memory returns for each block of queries."""
    delayed, on_workers = need("dask", "dask").delayed, shared(model)
    blocks = [delayed(_results)(on_workers, method, x, options) for x in delayed_blocks(X)]
    kinds = [model.moved_.dtype, np.dtype(np.int64)][-len(widths) :]  # of distances and row numbers
    if method != "kneighbors":
        kinds = [model.classes_.dtype if method == "predict" else model.moved_.dtype]
    results = [
        as_rows([delayed(lambda parts, i=i: parts[i])(block) for block in blocks], X, width, kind)
        for i, (width, kind) in enumerate(zip(widths, kinds, strict=True))
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _results(model: Any, method: str, X: Any, options: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    """Return what a method returns for a block of queries, as a tuple."""
    if not len(X):  # the result for one query, without its row
        one = np.zeros((1, X.shape[1]), X.dtype)
        return tuple(part[:0] for part in _results(model, method, one, options))
    result = getattr(model, method)(X, *options)
    return result if isinstance(result, tuple) else (result,)


def _winners(near: Nearest, classes: np.ndarray, precision: Any) -> np.ndarray:
    """Return the classes that the neighbours vote for: by distances in `precision`, or equally for None."""
    return np.asarray(classes[vote(*_votes(near, precision))]) if len(near.rows) else classes[:0]


def _shares(near: Nearest, n_classes: int, precision: Any, dtype: Any) -> np.ndarray:
    """Return the share of the votes of each class; (m, classes)."""
    if not len(near.rows):
        return np.zeros((0, n_classes), dtype)
    labels, weights = _votes(near, precision)
    return np.asarray(probabilities(labels, n_classes, weights, dtype=dtype))


def _votes(near: Nearest, precision: Any) -> tuple[Any, Any]:
    return near.codes, None if precision is None else distance_weights(distances_of(near, precision))


def _n_right(predicted: np.ndarray, y: Any) -> int:
    """Count predicted classes that are right."""
    if len(predicted) != len(y):
        raise ValueError(
            f"a block of X has {len(predicted):,} rows, that of y {len(y):,}: they do not pair up."
        )
    return int((predicted == np.asarray(y)).sum())
