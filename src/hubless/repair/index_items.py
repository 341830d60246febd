"""The items of an index in memory, in the space that the index compares in."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..arrays.inputs import label_text
from ..movers import Mover
from ..neighbors.knn import unit
from ..saving import load
from ..stores.opening import open_store
from ..stores.store import Batch, Facts, Store, StoreError
from ..support.progress import step
from .before_reading import (
    check_dimension,
    check_filled,
    check_fits,
    check_items,
    check_queries,
    check_queries_of,
    last_part,
    opened_queries,
    other_metric,
)
from .repair import Repair

UNIT = 1e-2  # how far from 1 the length of a unit vector may be, which half precision rounds


@dataclass(frozen=True)
class IndexItems:
    """The items of an index, with a vector each."""

    name: str
    facts: Facts
    metric: str  # "l2" or "cosine": the space of `vectors`
    ids: np.ndarray  # (n,)
    vectors: np.ndarray  # (n, d); of length 1 under cosine
    columns: dict[str, list[Any]]
    missing: int  # rows that are not here: without a vector or, under cosine, with a zero one

    @cached_property
    def places(self) -> dict[Any, int]:
        """Row numbers by id."""
        return {value: place for place, value in enumerate(self.ids.tolist())}

    @property
    def search_metric(self) -> str:
        """The metric of searches; "ip" for items that `read_items` took as L2 with `may_harm`."""
        return "ip" if self.facts.metric == "ip" and self.metric == "l2" else self.metric

    def take(self, mask: np.ndarray) -> "IndexItems":
        """Return the items where a mask is true."""
        ids, vectors, columns, _ = Batch(self.ids, self.vectors, self.columns).take(mask)
        return replace(self, ids=ids, vectors=vectors, columns=columns)

    def labeled(self, label: str) -> "IndexItems":
        """Return the items that have a class."""
        known = labeled_rows(self.columns[label], f"item of {self.name}", label)
        return self if known.all() else self.take(known)

    def comparable(self, queries: np.ndarray, model: Repair | None = None) -> np.ndarray:
        """Return queries in the space and precision of the items; of items moved by a model, its space."""
        width = queries.shape[1]
        if model is None:
            check_queries(width, self.vectors.shape[1], self.name)
        else:
            check_queries_of(model, width, self.name)
        queries = np.asarray(queries, dtype=self.vectors.dtype)
        return unit(queries) if self.metric == "cosine" else queries

    # ‖x − z‖² = ‖x‖² + 1 − 2 ⟨x, z⟩ where ‖z‖ = 1: by L2 such items have the order that they have by cosine
    def in_space(self, metric: str) -> "IndexItems":
        """Return the items in the space of another metric that gives the same answers; else StoreError."""
        if metric == self.metric:
            return self
        if metric != "cosine" or not are_unit(self.vectors):
            raise other_metric(self.name, self.metric, metric)
        return replace(self, metric=metric, vectors=unit(self.vectors))

    def moved(self, model: Repair) -> np.ndarray:
        """Return the vectors moved by a model, in its space; StoreError where it is for other vectors."""
        check_dimension(model, self.vectors.shape[1], self.name)
        labels = None if model.label is None else self.columns[model.label]
        return model.move(self.in_space(model.metric).vectors, self.ids.tolist(), labels)

    def about(self) -> dict[str, Any]:
        """Return what a model keeps of its data: enough to recognise the same data later."""
        sample = self.vectors[:: max(1, len(self.vectors) // 1000)]
        return {
            "source": self.name,
            "count": len(self.ids),
            "dimension": int(self.vectors.shape[1]),
            "metric": self.metric,
            "fingerprint": fingerprint_of(len(self.vectors), sample),
        }


def fingerprint_of(n: int, sample: np.ndarray) -> str:
    """Return a hash that identifies n vectors, of which every (n // 1000)th is given."""
    digest = hashlib.sha256(str((n, sample.shape[1])).encode())
    digest.update(np.ascontiguousarray(sample).tobytes())
    return digest.hexdigest()


def read_items(store: Store, columns: Sequence[str] = (), *, may_harm: bool = False) -> IndexItems:
    """Read all items of a store; StoreError where it was moved, or where moving would harm.

    With `may_harm`, inner product of any vectors is allowed: they are moved as under L2, to show the harm.
    """
    facts = check_items(store, columns)
    check_fits(store, facts)
    ids, X, values, _ = read_rows(store, columns, count=facts.count)
    has_vector = ~np.isnan(X).any(axis=1)
    if not np.isfinite(X[has_vector]).all():
        raise StoreError(f"{store.name} has vectors with infinite numbers. Repair or remove these rows.")
    metric = space_of(facts.metric, X[has_vector], store.name, may_harm)
    if metric == "cosine":
        has_vector &= X.any(axis=1)  # a zero vector has no direction
        X = unit(X)
    whole = IndexItems(store.name, facts, metric, ids, X, values, 0)
    return whole if has_vector.all() else replace(whole.take(has_vector), missing=int((~has_vector).sum()))


def read_items_to_correct(store: Store, columns: Sequence[str] = ()) -> IndexItems:
    """Read the items of an index; inner products of vectors of any length can be corrected, too."""
    items = read_items(store, columns, may_harm=True)
    return replace(items, metric="ip") if items.search_metric == "ip" else items


def items_for(model: Repair, store: Store, columns: Sequence[str] = ()) -> IndexItems:
    """Read all items of a store for a model; one for inner products takes vectors of any length."""
    read = read_items_to_correct if model.metric == "ip" else read_items
    return read(store, columns)


def read_rows(store: Store, columns: Sequence[str] = (), *, count: int | None = None) -> Batch:
    """Read all rows of a store as one batch; StoreError where there are none. `count` is their number."""
    batches = all_batches(store, columns, count)
    check_filled(store, len(batches))
    return Batch(
        np.concatenate([batch.ids for batch in batches]),
        np.concatenate([batch.vectors for batch in batches]),
        {name: [value for batch in batches for value in batch.columns[name]] for name in columns},
    )


def all_batches(store: Store, columns: Sequence[str] = (), count: int | None = None) -> list[Batch]:
    """Read the ids, vectors and columns of all rows of a store, batch by batch."""
    batches, how_many = [], "" if count is None else f"{count:,} rows of "
    with step(f"reading {how_many}{last_part(store.name)}", count, "rows") as reading:
        for batch in store.batches(columns):
            batches.append(batch._replace(rows=None))  # which may be large
            reading.update(len(batch.ids))
    return batches


def has_label(labels: Sequence[Any]) -> np.ndarray:
    """Return whether each value is a label, and not None, "" or NaN; bool (n,)."""
    return np.array(
        [value is not None and value != "" and value == value for value in labels],  # nan is not itself
        dtype=bool,
    )


def labeled_rows(labels: Sequence[Any], what: str, column: str) -> np.ndarray:
    """Return which rows have a label, bool (n,); StoreError where none has."""
    known = has_label(labels)
    if not known.any():
        raise StoreError(f"no {what} has a value in the column {column!r}. Name the column of classes.")
    return known


def as_texts(labels: Sequence[Any]) -> np.ndarray:
    """Return labels as texts, so that the 7 of a table equals the "7" of a file; (n,), objects."""
    texts = np.empty(len(labels), dtype=object)
    texts[:] = ["" if value is None else label_text(value) for value in labels]
    return texts


def are_unit(X: np.ndarray) -> bool:
    """Return whether all rows have length 1, up to the rounding of half precision."""
    return bool((np.abs(np.linalg.norm(X, axis=1) - 1) <= UNIT).all())


def space_of(metric: str | None, X: np.ndarray, name: str, may_harm: bool = False) -> str:
    """Return the space that items are moved in: "l2" or "cosine", also for inner products of unit vectors.

    StoreError for those of other lengths, as moving would lose answers; "l2" with `may_harm`.
    """
    if metric != "ip":
        return metric or "l2"
    if are_unit(X):
        return "cosine"
    if not may_harm:
        norms = np.linalg.norm(X, axis=1)
        raise StoreError(
            f"{name} compares by inner product, and has lengths from {norms.min():.3g} to {norms.max():.3g}. "
            "Moved vectors are shorter and lose answers: use L2 or cosine, or bring them to length 1. "
            "They can be corrected as they are, by queries alone: hubless fit INDEX --queries LOG."
        )
    return "l2"


# --- arguments: stores and models by name or as objects; queries; the name of the moved copy ----------------


Source: TypeAlias = str | os.PathLike[str] | Store
Model: TypeAlias = str | os.PathLike[str] | Repair | Mover


def as_store(source: Source) -> Store:
    """Return a store: as given, or opened by its name."""
    return source if isinstance(source, Store) else open_store(source)


def as_model(model: Any) -> Any:
    """Return a model of any kind: as given, or loaded from its folder."""
    return load(model) if isinstance(model, str | os.PathLike) else model


def as_repair(model: Model) -> Repair:
    """Return a model for an index: as given, loaded from its folder, or made of a mover."""
    loaded = as_model(model)
    if isinstance(loaded, Mover):
        return Repair(loaded)
    if not isinstance(loaded, Repair):
        start = "got" if loaded is model else f"{model} contains"
        raise StoreError(f"{start} a {type(loaded).__name__}; a model for an index is made by `hubless fit`.")
    return loaded


def read_queries(queries: Any, columns: Sequence[str] = ()) -> Batch:
    """Return the queries of an array of shape (n, d), or of a store; StoreError where a vector is missing."""
    store = opened_queries(queries)
    if not isinstance(store, Store):
        return Batch(np.arange(len(store)), store, {})
    batch = read_rows(store, columns)
    if np.isnan(batch.vectors).any():
        raise StoreError(f"{store.name} has rows without a vector; queries must all have one.")
    return batch
