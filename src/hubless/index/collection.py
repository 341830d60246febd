"""The items of a store in memory, in the space that the store compares in."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..inputs import label_text
from ..progress import bar_of
from ..stores.store import Facts, Store, StoreError
from .repair import Repair, unit

UNIT = 1e-2  # how far lengths may be from 1, that half precision rounds, for vectors of length 1


@dataclass(frozen=True)
class Collection:
    """Items with a vector each."""

    name: str
    facts: Facts
    metric: str  # "l2" or "cosine": how items are compared, once `vectors` are what they are
    ids: np.ndarray  # (n,)
    vectors: np.ndarray  # (n, d); of length 1 under cosine
    columns: dict[str, list[Any]]
    missing: int  # rows without a vector, which are not here

    def rows_of(self, ids: Sequence[Any]) -> np.ndarray:
        """Row numbers of ids, all of which are here."""
        return np.array([self.places[value] for value in ids], dtype=np.int64)

    @cached_property
    def places(self) -> dict[Any, int]:
        """Row numbers by id."""
        return {value: place for place, value in enumerate(self.ids.tolist())}

    def take(self, mask: np.ndarray) -> "Collection":
        """Some of the items."""
        columns = {
            name: [value for value, kept in zip(values, mask, strict=True) if kept]
            for name, values in self.columns.items()
        }
        return replace(self, ids=self.ids[mask], vectors=self.vectors[mask], columns=columns)

    def labeled(self, label: str) -> "Collection":
        """The items that have a class."""
        known = are_known(self.columns[label])
        if not known.any():
            raise StoreError(f"no item of {self.name} has a {label}.")
        return self if known.all() else self.take(known)

    def comparable(self, queries: np.ndarray) -> np.ndarray:
        """Queries in the space and precision of the items."""
        check_queries(queries, self.vectors.shape[1], self.name)
        queries = np.asarray(queries, dtype=self.vectors.dtype)
        return unit(queries) if self.metric == "cosine" else queries

    # ‖x − z‖² = ‖x‖² + 1 − 2 ⟨x, z⟩ where ‖z‖ = 1: by L2 such items have the order that they have by cosine
    def in_space(self, metric: str) -> "Collection":
        """The same items, compared by another metric, where that gives the same answers; else StoreError."""
        if metric == self.metric:
            return self
        if metric != "cosine" or not are_unit(self.vectors):
            raise StoreError(f"{self.name} compares by {self.metric}, the model is for {metric}.")
        return replace(self, metric=metric, vectors=unit(self.vectors))

    def moved(self, model: Repair) -> np.ndarray:
        """Vectors where a model moves them, in its space; StoreError where it was learned for others."""
        if model.dimension != self.vectors.shape[1]:
            raise StoreError(
                f"{self.name} has vectors of {self.vectors.shape[1]} columns, the model moves "
                f"{model.dimension}."
            )
        labels = None if model.label is None else self.columns[model.label]
        return model.move(self.in_space(model.metric).vectors, self.ids.tolist(), labels)

    def about(self) -> dict[str, Any]:
        """What a model keeps of it: enough to tell later whether data is the same."""
        every = self.vectors[:: max(1, len(self.vectors) // 1000)]
        return {
            "source": self.name,
            "count": len(self.ids),
            "dimension": int(self.vectors.shape[1]),
            "metric": self.metric,
            "fingerprint": fingerprint_of(len(self.vectors), every),
        }


def fingerprint_of(n: int, every: np.ndarray) -> str:
    """What stands for n vectors, of which each (n // 1000)th is given."""
    digest = hashlib.sha256(str((n, every.shape[1])).encode())
    digest.update(np.ascontiguousarray(every).tobytes())
    return digest.hexdigest()


def collect(
    store: Store, columns: Sequence[str] = (), *, progress: bool | None = False, may_harm: bool = False
) -> Collection:
    """Read a whole store; StoreError where it was moved, or would be harmed by moving.

    With `may_harm`, items that are compared by inner product are taken as if by L2: to show the harm.
    """
    facts = store.facts()
    check_original(store, facts)
    ids, vectors = [], []
    values: dict[str, list[Any]] = {name: [] for name in columns}
    with bar_of(progress, facts.count, unit=" rows", desc="read") as bar:
        for batch in store.batches(columns):
            ids.append(batch.ids)
            vectors.append(batch.vectors)
            for name in columns:
                values[name].extend(batch.columns[name])
            bar.update(len(batch.ids))
    if not vectors:
        raise StoreError(f"{store.name} is empty.")
    X, names = np.concatenate(vectors), np.concatenate(ids)
    there = ~np.isnan(X).any(axis=1)
    if not np.isfinite(X[there]).all():
        raise StoreError(f"{store.name} has vectors with infinite numbers. Repair or remove these rows.")
    metric = "l2" if may_harm and is_harmed(facts.metric, X[there]) else None
    metric = metric or space_of(facts.metric, X[there], store.name)
    if metric == "cosine":
        there &= X.any(axis=1)  # a zero has no direction, and is nobody's neighbour
        X = unit(X)
    whole = Collection(store.name, facts, metric, names, X, values, 0)
    return whole if there.all() else replace(whole.take(there), missing=int((~there).sum()))


def check_original(store: Store, facts: Facts) -> str:
    """The metric of a store that can be learned from; StoreError where it was moved, or is not exact."""
    mark = store.mark()
    if mark is not None:
        raise StoreError(
            f"{store.name} is already moved, by model {mark.model[:12]}, and nothing is moved twice. Give "
            f"the original: {mark.original or mark.source}."
        )
    if not facts.is_exact:
        raise StoreError(
            f"{store.name} ({facts.kind}) keeps its vectors quantised: what it gives back is not what was "
            "put in, and nothing should be learned from it. Give the file of original vectors."
        )
    return facts.metric or "l2"


def read_all(store: Store) -> tuple[np.ndarray, np.ndarray]:
    """All ids (n,) and vectors (n, d) of a store, whatever they are."""
    batches = [(batch.ids, batch.vectors) for batch in store.batches()]
    if not batches:
        raise StoreError(f"{store.name} is empty.")
    return np.concatenate([ids for ids, _ in batches]), np.concatenate([vectors for _, vectors in batches])


def columns_for(model: Repair, *names: str) -> list[str]:
    """Columns to read: those named, and that which a model moves items by."""
    asked = [*names] if model.label is None else [*names, model.label]
    return list(dict.fromkeys(asked))


def check_queries(queries: np.ndarray, dimension: int, name: str) -> None:
    """StoreError where queries are of another dimension than items."""
    if queries.shape[1] != dimension:
        raise StoreError(f"queries have {queries.shape[1]} columns, the items of {name} {dimension}.")


def are_known(labels: Sequence[Any]) -> np.ndarray:
    """Whether each label is one; bool (n,)."""
    return np.array(
        [value is not None and value != "" and value == value for value in labels],  # nan is not itself
        dtype=bool,
    )


def as_texts(labels: Sequence[Any]) -> np.ndarray:
    """Labels as texts, so that the 7 of a table is the "7" of a file; (n,) of objects, of any length."""
    texts = np.empty(len(labels), dtype=object)
    texts[:] = ["" if value is None else label_text(value) for value in labels]
    return texts


def are_unit(X: np.ndarray) -> bool:
    """Whether all rows have length 1, up to the rounding of half precision."""
    return bool((np.abs(np.linalg.norm(X, axis=1) - 1) <= UNIT).all())


def is_harmed(metric: str | None, X: np.ndarray) -> bool:
    """Whether moving would lose answers: by inner product, of vectors of different lengths."""
    return metric == "ip" and not are_unit(X)


def space_of(metric: str | None, X: np.ndarray, name: str) -> str:
    """Where items can be moved under a metric: l2, or cosine, which inner product is for unit vectors."""
    if metric != "ip":
        return metric or "l2"
    if is_harmed(metric, X):
        norms = np.linalg.norm(X, axis=1)
        raise StoreError(
            f"{name} compares by inner product, and its vectors have lengths from {norms.min():.3g} to "
            f"{norms.max():.3g}. Moved vectors are shorter and would lose answers. Use an index by L2 or "
            "cosine, or bring the vectors to length 1."
        )
    return "cosine"
