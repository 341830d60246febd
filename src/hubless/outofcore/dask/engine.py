"""What hubless needs of Dask: arrays in blocks, results joined in a tree, a cluster that may be lost."""

import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from ...support.imports import need
from ...support.progress import Step, end_dry_run, step

CONNECT = 20  # seconds to wait for a scheduler
TOGETHER = 8  # results that are joined at a time
LOST = {"CommClosedError", "FutureCancelledError", "CancelledError"}  # errors of a client without a scheduler


def as_array(X: Any) -> Any:
    """Return a Dask array of a Dask array or data frame, with all columns in one block."""
    array = need("dask.array", "dask")
    if not isinstance(X, array.Array):
        X = X.to_dask_array() if hasattr(X, "to_dask_array") else array.from_array(np.asarray(X))
    if X.ndim != 2:
        raise ValueError(f"X must have one row per object and one column per number; got {X.ndim} axes.")
    return X.rechunk({1: X.shape[1]}) if X.numblocks[1] > 1 else X


def as_labels(y: Any, X: Any) -> Any:
    """Return labels as a Dask array in the blocks of X; ValueError where they do not pair up."""
    array = need("dask.array", "dask")
    if y is None:
        raise ValueError(
            "Learning from classes requires y to be passed, but the target y is None: give the class of each "
            "object."
        )
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
    """Return a column of a data frame as a Dask array, in blocks of unknown length."""
    delayed, array = need("dask", "dask").delayed, need("dask.array", "dask")
    blocks = [delayed(_labels)(part) for part in y.to_delayed()]
    shape = (np.nan, *y.shape[1:])
    return array.concatenate([array.from_delayed(block, shape, dtype=object) for block in blocks])


def _labels(part: Any) -> np.ndarray:
    """Return the labels of a block of a data frame, None for those that are missing."""
    labels = np.asarray(part)
    return labels if labels.dtype.kind != "O" else np.asarray(part.to_numpy(dtype=object, na_value=None))


def delayed_blocks(X: Any) -> list[Any]:
    """Return the blocks of rows of a Dask array."""
    return list(X.to_delayed().reshape(-1))


def sized(X: Any) -> Any:
    """Return a Dask array whose blocks have a known length; nothing but the lengths is computed."""
    if np.isnan(X.chunks[0]).any():
        X = X.copy()
        X.compute_chunk_sizes()
    return X


def as_rows(blocks: list[Any], like: Any, n_columns: int | None, dtype: Any) -> Any:
    """Return a Dask array of Delayed blocks, which have as many rows as those of another array."""
    array, tail = need("dask.array", "dask"), () if n_columns is None else (n_columns,)
    sizes = zip(blocks, like.chunks[0], strict=True)
    return array.concatenate([array.from_delayed(block, (n, *tail), dtype=dtype) for block, n in sizes])


def as_fitted(model: Any, X: Any) -> Any:
    """Return queries or objects as a Dask array; ValueError where a model was fitted to other columns."""
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
    """Return a fitted model that is sent to a worker once, and not with every block."""
    model = copy(model)  # without the names of columns, as blocks have none
    model.__dict__.pop("feature_names_in_", None)
    return need("dask", "dask").delayed(model, pure=False)


def join_tree(join: Callable[[Any], Any], results: Sequence[Any]) -> Any:
    """Return one result of many, joined a few at a time and always in the same order."""
    delayed = need("dask", "dask").delayed
    while len(results) > 1:
        groups = (list(results[i : i + TOGETHER]) for i in range(0, len(results), TOGETHER))
        results = [delayed(join)(group) for group in groups]
    return results[0]


def is_result(value: Any) -> bool:
    """Return whether a value is to be computed, or is on the cluster."""
    return need("dask", "dask").is_dask_collection(value) or _is_future(value)


def _is_future(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "distributed" and hasattr(value, "result")


def compute(
    result: Any, parts: Sequence[Any] = (), computing: Step | None = None, *, stay: bool = False
) -> Any:
    """Compute a result by the cluster that the client is connected to, else by threads of this process.

    Parameters
    ----------
    result : Dask collections, or a result that stayed on the cluster
    parts, computing : a step, which counts the parts of the result as they are computed
    stay : whether the result is left on the cluster, where there is one

    Raises
    ------
    ConnectionError
        Where the scheduler was lost.
    """
    is_shown = computing is not None and computing.is_shown
    with _lost_scheduler():
        if _is_future(result):
            return result.result()
        client = current_client() if stay or is_shown else None
        if client is None:
            return need("dask", "dask").compute(result)[0]
        distributed = need("distributed", "dask")
        futures = client.compute([*(parts if is_shown else ()), result])
        last, finished = futures.pop(), distributed.as_completed(futures)
        del futures  # or workers would keep the result of every part until the end
        for _ in finished:
            if computing is not None:
                computing.update()
        distributed.wait(last)
        return last if stay and last.status == "finished" else last.result()


@contextmanager
def _lost_scheduler() -> Iterator[None]:
    """Say what to do where the scheduler was lost."""
    try:
        yield
    except Exception as error:
        if not {kind.__name__ for kind in type(error).__mro__} & LOST:
            raise
        raise ConnectionError(
            "the Dask scheduler was lost. Results of blocks are kept in the scratch folder, where one was "
            "given. Connect to a cluster and run the same again: it resumes there."
        ) from error


def current_client() -> Any:
    """Return the client that computes, or None."""
    try:
        return need("distributed", "dask").get_client()
    except ValueError:
        return None


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Connect to a running cluster, or start one on this machine, with a worker per core."""
    distributed = need("distributed", "dask")
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # `compute` reports a loss
    # a client that cannot connect would leave itself behind as the one that computes
    with need("dask", "dask").config.set(scheduler=None):
        if address:
            end_dry_run(f"connecting to {address}")
            with _connected(distributed, address) as client:
                yield client
            return
        with step("starting a Dask cluster on this machine"):
            local = distributed.LocalCluster(
                threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
            )
        with local, distributed.Client(local) as client:
            yield client


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    """Connect to a running cluster that has workers."""
    try:
        _wait_for_port(address)
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


def _wait_for_port(address: str) -> None:
    """Wait until something listens at an address: a client that fails to connect cannot be closed cleanly."""
    addresses = need("distributed.comm.addressing", "dask")
    scheme, location = addresses.parse_address(address)
    if scheme not in ("tcp", "tls"):
        return
    place, end = addresses.parse_host_port(location), time.monotonic() + CONNECT
    while True:
        try:
            socket.create_connection(place, timeout=CONNECT).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def n_rows(X: Any) -> Any:
    """Return the number of rows of a Dask array, known or to be computed."""
    if not np.isnan(X.shape[0]):
        return X.shape[0]
    delayed = need("dask", "dask").delayed
    return delayed(sum)([delayed(len)(block) for block in delayed_blocks(X)])
