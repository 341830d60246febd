"""What stores of all kinds check and refuse in the same way; for the authors of stores."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..support.locks import Locked, locked
from ..support.nearest import did_you_mean
from ..support.outputs import real_path
from ..support.text import reason
from .kinds import METRICS
from .store import Mark, Store, StoreError


def check_metric(metric: str | None) -> None:
    """Refuse a metric that is unknown."""
    if metric not in (None, *METRICS):
        raise StoreError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}.")


def check_path(path: str) -> str:
    """Return the path of a file or a folder; StoreError for an address, which may contain a password.

    The path is in the name of the store, and names are shown.
    """
    is_address = re.match(r"[A-Za-z][A-Za-z0-9+.-]+://|.*:.*@", path, re.DOTALL)
    if is_address and not os.path.lexists(os.path.expanduser(path)):
        raise StoreError(
            "an address stands where a file or a folder is expected, and it may contain a password. Give a "
            "path of this machine; databases start with their kind, as in qdrant:http://HOST:PORT#COLLECTION."
        )
    return path


def columns_in(store: Store) -> str:
    """Return where the columns of a store are, in words: in it, or in a table beside it."""
    items = getattr(store, "items", None)
    return store.name if items is None else f"{store.name} with {items}"


def check_columns(name: str, requested: Iterable[str], known: Sequence[str]) -> None:
    """Refuse columns that a store does not have."""
    for column in requested:
        if column not in known:
            has = ", ".join(known) or (
                "no columns. For a file, give a table that has it (--items, --query-items), or labels in a "
                "file with one per row (--labels, --query-labels)"
            )
            raise StoreError(f"{name} has no column {column!r}; it has {has}.{did_you_mean(column, known)}")


def choose_vectors(name: str, known: Sequence[str], requested: str | None) -> str:
    """Return the column of vectors: the requested one, or the only one; StoreError where there is none."""
    if requested is None and len(known) == 1:
        return known[0]
    if requested is not None and requested in known:
        return requested
    has = f"{len(known) or 'no'} columns" if requested is None else f"no column {requested!r}"
    advice = f"Name one with --vector: {', '.join(known)}"
    if not known:
        advice = "A vector is a row or a list of floating-point numbers, and all have one length"
    elif list(known) == [""]:
        advice = "Its vectors have no name: leave out --vector"
    hint = "" if requested is None else did_you_mean(requested, known)
    raise StoreError(f"{name} has {has} of vectors that can be moved. {advice}.{hint}")


def check_outside(store: Store, path: str | os.PathLike[str]) -> None:
    """Refuse output in the folder of a store: it would be taken for items, and moved with them."""
    folder = getattr(store, "path", None)
    if folder is not None and folder.is_dir() and real_path(path).is_relative_to(folder):
        raise StoreError(f"{path} is among the items of {store.name}. Give a path outside of that folder.")


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Turn whatever a library raises for a damaged file into a StoreError of one line that names the file.

    It may raise anything, and not only what it documents. Errors of the operating system stay what they are.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, StoreError | ImportError) or (isinstance(error, OSError) and error.errno):
            raise
        raise StoreError(f"{path} cannot be read: {reason(error)}. It may be damaged.") from error


@contextmanager
def path_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a path; StoreError where another process does."""
    try:
        with locked(path):
            yield
    except Locked as error:
        raise StoreError(str(error)) from error


def changed_since(blue: str, green: str) -> StoreError:
    """Return the error for a blue store that is not what green was made from."""
    return StoreError(f"{blue} changed since {green} was made. Apply again, then promote.")


def check_unchanged(blue: Store, green: Store) -> Mark:
    """Return the mark of green; StoreError where it was made from another state of blue."""
    mark = green.mark()
    if mark is None or mark.state != blue.state():
        raise changed_since(blue.name, green.name)
    return mark


def check_promoted(name: str, mark: Mark | None) -> Mark:
    """Return the mark of a store that serves a moved copy; StoreError where there is none."""
    if mark is None or mark.original is None:
        raise StoreError(f"{name} does not serve a moved copy: there is nothing to roll back.")
    return mark


def pad_ids(rows: Sequence[Sequence[Any]], k: int) -> np.ndarray:
    """Return the ids for each query as an array of k columns, padded with None; int64 if all are integers."""
    padded = np.full((len(rows), k), None, dtype=object)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = list(row)
    all_integers = all(
        isinstance(value, int | np.integer) and -(2**63) <= value < 2**63 for value in padded.flat
    )
    return padded.astype(np.int64) if all_integers else padded


def as_float(vectors: np.ndarray) -> np.ndarray:
    """Return vectors in the precision to compute with: float64 stays, anything else becomes float32."""
    return np.asarray(vectors, dtype=np.float64 if vectors.dtype == np.float64 else np.float32)
