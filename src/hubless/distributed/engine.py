"""Dask in a few words: objects in blocks, results added up in a tree, a scheduler that may be lost."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from ..stores.store import need

CONNECT = 20  # seconds to wait for a scheduler
TOGETHER = 8  # results that are added up at a time
LOST = {"CommClosedError", "FutureCancelledError", "CancelledError"}  # errors of a client without a scheduler


def as_array(X: Any) -> Any:
    """A Dask array of a Dask array or data frame, with all columns in one block."""
    array = need("dask.array", "dask")
    if not isinstance(X, array.Array):
        X = X.to_dask_array() if hasattr(X, "to_dask_array") else array.from_array(np.asarray(X))
    if X.ndim != 2:
        raise ValueError(f"X must have one row per object and one column per number; got {X.ndim} axes.")
    return X.rechunk({1: X.shape[1]}) if X.numblocks[1] > 1 else X


def as_labels(y: Any, X: Any) -> Any:
    """Labels as a Dask array in the blocks of X; ValueError where they do not pair up."""
    array = need("dask.array", "dask")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give the class of each object.")
    if not isinstance(y, array.Array):
        y = _values(y) if hasattr(y, "to_delayed") else array.from_array(np.asarray(y))
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ValueError(f"y must have one label per object, along one axis; got {y.ndim} axes.")
    if not np.isnan([*X.chunks[0], *y.chunks[0]]).any():
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]:,} rows, y {y.shape[0]:,}: give one label per object.")
        return y.rechunk((X.chunks[0],))
    if y.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} blocks and y {y.numblocks[0]}, of unknown length: they do not pair up. "
            "Call compute_chunk_sizes() on both first."
        )
    return y


def _values(y: Any) -> Any:
    """A column of a data frame as a Dask array of blocks of unknown length."""
    delayed, array = need("dask", "dask").delayed, need("dask.array", "dask")
    blocks = [delayed(_labels)(part) for part in y.to_delayed()]
    shape = (np.nan, *y.shape[1:])
    return array.concatenate([array.from_delayed(block, shape, dtype=object) for block in blocks])


def _labels(part: Any) -> np.ndarray:
    """Labels of a block of a data frame, None for those that are missing."""
    found = np.asarray(part)
    return found if found.dtype.kind != "O" else np.asarray(part.to_numpy(dtype=object, na_value=None))


def delayed_blocks(X: Any) -> list[Any]:
    """The blocks of rows of a Dask array."""
    return list(X.to_delayed().reshape(-1))


def sized(X: Any) -> Any:
    """A Dask array whose blocks have a known length; nothing but the lengths is computed."""
    if np.isnan(X.chunks[0]).any():
        X = X.copy()
        X.compute_chunk_sizes()
    return X


def as_rows(blocks: list[Any], like: Any, n_columns: int | None, dtype: Any) -> Any:
    """A Dask array of Delayed blocks that have the rows of the blocks of another."""
    array, tail = need("dask.array", "dask"), () if n_columns is None else (n_columns,)
    sizes = zip(blocks, like.chunks[0], strict=True)
    return array.concatenate([array.from_delayed(one, (n, *tail), dtype=dtype) for one, n in sizes])


def as_fitted(model: Any, X: Any) -> Any:
    """Queries or objects as a Dask array, refused with other columns than those a model was fitted to."""
    names, columns = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is not None and columns is not None and list(columns) != list(names):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"got {list(columns)[:3]} …, fitted with {list(names)[:3]} …."
        )
    X = as_array(X)
    if X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    return X


def shared(model: Any) -> Any:
    """A fitted model that is sent to a worker once, not with every block; blocks have no names of columns."""
    model = copy(model)
    model.__dict__.pop("feature_names_in_", None)
    return need("dask", "dask").delayed(model, pure=False)


def tree(join: Callable[[Any], Any], results: Sequence[Any], *others: Any) -> Any:
    """One result of many, a few at a time, always in the same order."""
    delayed = need("dask", "dask").delayed
    while len(results) > 1:
        groups = (list(results[i : i + TOGETHER]) for i in range(0, len(results), TOGETHER))
        results = [delayed(join)(group, *others) for group in groups]
    return results[0]


def compute(result: Any, parts: Sequence[Any] = (), bar: Any = None) -> Any:
    """A result on the client, by the cluster it is connected to, else by threads; a lost one is told.

    `bar` is moved on as each of `parts`, which the result is made of, is there.
    """
    try:
        client = None if bar is None or bar.disable else current_client()
        if client is None:
            return need("dask", "dask").compute(result)[0]
        futures = client.compute([*parts, result])
        last, finished = futures.pop(), need("distributed", "dask").as_completed(futures)
        del futures  # or workers would keep the result of every part until the end
        for _ in finished:
            bar.update()
        return last.result()
    except Exception as error:
        if not {kind.__name__ for kind in type(error).__mro__} & LOST:
            raise
        raise ConnectionError(
            "the Dask scheduler was lost. Nothing is half done: what parts had taught is kept in the scratch "
            "folder, where one was given. Connect to a cluster and run the same again; it goes on there."
        ) from error


def current_client() -> Any:
    """The client that computes, or None."""
    try:
        return need("distributed", "dask").get_client()
    except ValueError:
        return None


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """A client of a running cluster, or of one that is started on this machine, a worker per core."""
    distributed = need("distributed", "dask")
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what is lost, is told by us
    if address:
        try:
            client = distributed.Client(address, timeout=CONNECT)
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionError(f"there is no Dask scheduler at {address}: {error}") from error
        with client:
            try:
                client.wait_for_workers(1, timeout=CONNECT)
            except TimeoutError as error:
                raise ConnectionError(
                    f"the cluster at {address} has no workers; start some: dask worker {address}"
                ) from error
            yield client
        return
    local = distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR)
    with local, distributed.Client(local) as client:
        yield client


def n_rows(X: Any) -> Any:
    """Rows of a Dask array, known or to be computed."""
    if not np.isnan(X.shape[0]):
        return X.shape[0]
    delayed = need("dask", "dask").delayed
    return delayed(sum)([delayed(len)(block) for block in delayed_blocks(X)])
