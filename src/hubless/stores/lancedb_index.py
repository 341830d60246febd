"""Indices of a LanceDB table: what LanceDB tells of them, and how to build others like them."""

import re
from dataclasses import fields
from typing import Any

import numpy as np

from .store import StoreError, need


def vector_index(table: Any, vector: str) -> Any:
    """The index of a column of vectors, or None."""
    found = (index for index in table.list_indices() if index.columns == [vector])
    return next((index for index in found if index.index_type.startswith("Ivf")), None)


def build(table: Any, source: Any) -> None:
    """Build the indices of another table; those that are there and cover all rows stay."""
    there = {index.name: index for index in table.list_indices()}
    for index in source.list_indices():
        mine = there.get(index.name)
        if mine is not None and mine.index_type == index.index_type and not mine.num_unindexed_rows:
            continue
        try:
            table.create_index(index.columns[0], config=recipe(source, index), name=index.name, replace=True)
        except RuntimeError as error:  # others build one at the same time, as a rule
            raise StoreError(f"the index {index.name!r} could not be built, run again: {error}") from error


def recipe(table: Any, index: Any) -> Any:
    """How to build an index like this one, as far as LanceDB tells; StoreError for an unknown kind."""
    kind = getattr(need("lancedb.index", "lancedb"), index.index_type, None)
    if kind is None or len(index.columns) != 1:
        raise StoreError(
            f"the index {index.name!r} ({index.index_type} of {', '.join(index.columns)}) is of a kind that "
            "hubless cannot build again. Drop it, and build it again when the moved table serves."
        )
    told = dict(index.index_details or {})
    options = {**told, **told.get("compression", {})}
    for name, given in _renamed(told).items():
        options.update({} if given is None else {name: given})
    if index.index_type.startswith("Ivf"):
        options["distance_type"] = table.index_stats(index.name).distance_type
        options["num_partitions"] = partitions(table, index.columns[0])
    taken = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in options.items() if name in taken})


def partitions(table: Any, vector: str) -> int | None:
    """How many parts an index has; LanceDB tells it in the account of a search only, 1024 as "1.02 K"."""
    query = np.ones(table.schema.field(vector).type.list_size, dtype=np.float32)
    plan = table.search(query, vector_column_name=vector).limit(1).analyze_plan()
    found = re.search(r"partitions_ranked=([\d.]+) ?([KM]?)", plan)
    return None if found is None else round(float(found[1]) * {"": 1, "K": 1e3, "M": 1e6}[found[2]])


def _renamed(told: dict[str, Any]) -> dict[str, Any]:
    """What LanceDB tells by other names than those it asks by."""
    graph, hints = told.get("hnsw", {}), told.get("runtime_hints", {})
    rounds, sampled = hints.get("lance.ivf.max_iters"), hints.get("lance.ivf.sample_rate")
    return {
        "m": graph.get("max_connections"),
        "ef_construction": graph.get("construction_ef"),
        "max_iterations": rounds and int(rounds),
        "sample_rate": sampled and int(sampled),
        "ngram_min_length": told.get("min_ngram_length"),
        "ngram_max_length": told.get("max_ngram_length"),
    }
