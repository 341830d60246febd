"""Rows by number: what an open file is, and what can be done with its numbers alone."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..neighbors import nearest
from .items import Items
from .store import Facts, StoreError


@dataclass
class Rows:
    """An open file: rows by number."""

    facts: Facts
    read: Callable[[slice], np.ndarray]  # vectors of some rows, (n, d)
    take: Callable[[np.ndarray], np.ndarray]  # vectors by row number, (n, d)
    # values of a slice, or of row numbers
    columns: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    in_order: bool = True  # whether rows are in the order in which they were put in


def exhaustive(queries: np.ndarray, vectors: np.ndarray, k: int, metric: str) -> np.ndarray:
    """Row numbers of the k nearest by a metric, of all rows that have a vector; (n, at most k)."""
    there = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    queries, vectors, k = np.asarray(queries, dtype=vectors.dtype), vectors[there], min(k, len(there))
    if k == 0:
        return np.empty((len(queries), 0), dtype=np.int64)
    if metric == "l2":
        found = nearest(queries, vectors, k, return_distance=False)
    else:  # −⟨x, z⟩ is ½‖x − z‖² up to −½‖z‖², which one more column of the stored side makes up for
        norms = np.linalg.norm(vectors, axis=1)
        if metric == "cosine":
            vectors = vectors / np.where(norms > 0, norms, 1)[:, None]
            norms = np.where(norms > 0, 1.0, 0.0)
        lift = np.sqrt(np.maximum(norms.max() ** 2 - norms**2, 0)).astype(vectors.dtype)
        queries = np.column_stack([queries, np.zeros(len(queries), queries.dtype)])
        found = nearest(queries, np.column_stack([vectors, lift]), k, return_distance=False)
    return np.asarray(there[found])


def as_ids(values: Sequence[Any], name: str) -> np.ndarray:
    """Ids as an array of int64, or of texts; StoreError where two are alike or one is missing."""
    ids = np.asarray(values, dtype=object)
    if any(value is None for value in values):
        raise StoreError(f"{name} has rows without an id. Name a column in which every row has one.")
    whole = all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values)
    if whole and all(-(2**63) <= value < 2**63 for value in values):
        ids = ids.astype(np.int64)
    else:
        ids = np.array([str(value) for value in values] + [None], dtype=object)[:-1]
    doubled = len(ids) - len(set(ids.tolist()))
    if doubled:
        raise StoreError(
            f"{name} has {doubled} rows whose id another row has too. Name a column of unique ids."
        )
    return ids


def as_float(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors, dtype=np.float64 if vectors.dtype == np.float64 else np.float32)


def write_at(file: int, data: memoryview, place: int) -> None:
    """Write bytes into their place of an open file."""
    while len(data):
        wrote = os.pwrite(file, data, place)
        data, place = data[wrote:], place + wrote


def picker(values: Any) -> Callable[[Any], list[Any]]:
    """What gives the values of a slice, or of row numbers, of a list or of an array."""
    if isinstance(values, np.ndarray):
        return lambda part: values[part].tolist()
    return lambda part: values[part] if isinstance(part, slice) else [values[i] for i in part]


def attach(rows: Rows, table: Items, id: str | None, name: str) -> None:
    """Give rows the columns of a table: by id where both have ids, else row by row."""
    columns, count = dict(table.columns), rows.facts.count
    key = id or "id"
    if "id" in rows.columns and key in columns:
        places = {str(value): place for place, value in enumerate(columns.pop(key))}
        own = [str(value) for value in rows.columns["id"](slice(0, count))]
        missing = [value for value in own if value not in places]
        if missing:
            raise StoreError(
                f"{len(missing)} of {count} ids of {name} are not in the column {key!r} of the items, as "
                f"{missing[0]}."
            )
        order = [places[value] for value in own]
        columns = {other: [values[i] for i in order] for other, values in columns.items()}
        rows.columns[key] = rows.columns["id"]
    else:
        if not rows.in_order:
            raise StoreError(
                f"the order of {name} is not known: give a table of items with a column of its ids."
            )
        table.check_length(count)
    rows.columns |= {other: picker(values) for other, values in columns.items()}
