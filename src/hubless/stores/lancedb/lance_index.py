"""Indexes of a LanceDB table: what LanceDB reports of them, and how to build others like them."""

import re
from dataclasses import fields
from typing import Any

import numpy as np

from ...support.imports import need
from ..store import StoreError
from .lance_rows import engine_errors


def vector_index(table: Any, vector: str) -> Any:
    """Return the index of a column of vectors, or None."""
    of_column = (index for index in table.list_indices() if index.columns == [vector])
    return next((index for index in of_column if index.index_type.startswith("Ivf")), None)


def build(table: Any, source: Any) -> None:
    """Build the indexes of another table; those that exist and cover all rows stay."""
    existing = {index.name: index for index in table.list_indices()}
    for index in source.list_indices():
        mine = existing.get(index.name)
        if mine is not None and mine.index_type == index.index_type and not mine.num_unindexed_rows:
            continue
        with engine_errors(f"building the index {index.name!r}"):
            config = index_settings(source, index, table.schema)
            table.create_index(index.columns[0], config=config, name=index.name, replace=True)


def index_settings(table: Any, index: Any, schema: Any = None) -> Any:
    """Return the settings of an index, as far as LanceDB reports them; StoreError for an unknown kind.

    `schema` is that of the table which gets such an index, by default of this one: the width may differ.
    """
    kind = getattr(need("lancedb.index", "lancedb"), index.index_type, None)
    if kind is None or len(index.columns) != 1:
        raise StoreError(
            f"the index {index.name!r} ({index.index_type} of {', '.join(index.columns)}) is of a kind that "
            "hubless cannot build. Drop it, and build it yourself after promoting."
        )
    details = dict(index.index_details or {})
    options = {**details, **details.get("compression", {})}
    for name, value in _renamed(details).items():
        options.update({} if value is None else {name: value})
    if index.index_type.startswith("Ivf"):
        options["distance_type"] = table.index_stats(index.name).distance_type
        options["num_partitions"] = partitions(table, index.columns[0])
        width = (schema or table.schema).field(index.columns[0]).type.list_size
        if width % (options.get("num_sub_vectors") or 1):
            del options["num_sub_vectors"]  # they would have no equal sizes: LanceDB chooses another number
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in options.items() if name in known})


def partitions(table: Any, vector: str) -> int | None:
    """Return how many parts an index has; LanceDB says so in the plan of a search only, 1024 as "1.02 K"."""
    query = np.ones(table.schema.field(vector).type.list_size, dtype=np.float32)
    plan = table.search(query, vector_column_name=vector).limit(1).analyze_plan()
    match = re.search(r"partitions_ranked=([\d.]+) ?([KM]?)", plan)
    return None if match is None else round(float(match[1]) * {"": 1, "K": 1e3, "M": 1e6}[match[2]])


def _renamed(details: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that LanceDB reports by other names than those it takes."""
    graph, hints = details.get("hnsw", {}), details.get("runtime_hints", {})
    iterations, rate = hints.get("lance.ivf.max_iters"), hints.get("lance.ivf.sample_rate")
    return {
        "m": graph.get("max_connections"),
        "ef_construction": graph.get("construction_ef"),
        "max_iterations": iterations and int(iterations),
        "sample_rate": rate and int(rate),
        "ngram_min_length": details.get("min_ngram_length"),
        "ngram_max_length": details.get("max_ngram_length"),
    }
