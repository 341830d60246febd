"""What is refused before any row is read: stores, queries and models that do not go together.

A store tells its width, its number of rows, its metric and its columns at once; reading rows, learning and
searching take long. So each function of this room that takes a store begins with a check from here.
"""

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..stores.checks import check_columns, columns_in
from ..stores.opening import open_store
from ..stores.store import Facts, Store, StoreError
from ..support.machine import machine_memory
from .defaults import TEXT_COLUMNS
from .repair import Repair

# How a store compares → the spaces in which its items may be moved; which one, their lengths tell
SPACES = {"l2": ("l2", "cosine"), "cosine": ("cosine",), "ip": ("cosine", "ip")}


def check_items(store: Store, columns: Sequence[str] = ()) -> Facts:
    """Return the facts of a store that items are learned from; StoreError where they cannot be."""
    return check_facts(store, store.facts(), columns)


def check_facts(store: Store, facts: Facts, columns: Sequence[str] = ()) -> Facts:
    """Refuse a store that was moved, is quantised, is empty, or lacks a column."""
    check_original(store, facts)
    check_filled(store, facts.count)
    check_named(store, facts, columns)
    return facts


def check_model(model: Repair, store: Store, columns: Sequence[str] = ()) -> Facts:
    """Return the facts of a store whose items a model moves; StoreError where it cannot."""
    facts = check_items(store, [*columns, *model.columns])
    check_dimension(model, facts.dimension, store.name)
    compares = facts.metric or "l2"
    if model.metric not in SPACES[compares]:
        raise other_metric(store.name, compares, model.metric)
    return facts


def check_original(store: Store, facts: Facts) -> str:
    """Return the metric of a store; StoreError where it was moved already or is not exact."""
    mark = store.mark()
    if mark is not None:
        since = ""
        if mark.changed:
            since = f", and changed since (if rebuilt from the originals, remove {store.name}.hubless.json)"
        promoted = "" if mark.original is None else "roll back first, or "
        raise StoreError(
            f"{store.name} is already moved, by model {mark.model[:12]}{since}. Nothing is moved twice: "
            f"{promoted}give the original, {mark.original or mark.source}."
        )
    if not facts.is_exact:
        raise StoreError(
            f"{store.name} ({facts.kind}) {facts.why_inexact}. Learn from the file of original vectors, move "
            "that, and build the index again from it."
        )
    return facts.metric or "l2"


def check_filled(store: Store, count: int) -> None:
    """Refuse a store without rows."""
    if not count:
        raise StoreError(f"{store.name} is empty. Give one that has vectors.")


def check_fits(store: Store, facts: Facts) -> None:
    """Refuse a store whose vectors take more than the memory of this machine: a small file may claim many."""
    needed, memory = facts.count * facts.dimension * facts.itemsize, machine_memory()
    if needed > memory:
        raise StoreError(
            f"{store.name} has {facts.count:,} vectors of {facts.dimension:,} numbers, "
            f"{needed / 1e9:,.0f} GB; this machine has {memory / 1e9:,.0f} GB. Give a part of it; or learn "
            "from files in parts, with --memory."
        )


def check_named(store: Store, facts: Facts, columns: Sequence[str]) -> None:
    """Refuse columns that a store does not have, as far as it knows them without reading rows."""
    if store.has_fixed_columns:
        check_columns(columns_in(store), columns, facts.columns)


def other_metric(name: str, compares: str, metric: str) -> StoreError:
    """Return the error for a model of another metric than that of a store."""
    return StoreError(f"{name} compares by {compares}, the model is for {metric}. Fit one for this metric.")


def text_column(store: Store, name: str | None = None) -> str | None:
    """Return the column of a store to show: the one that is named, else the first of TEXT_COLUMNS, if any."""
    columns = store.facts().columns
    check_columns(columns_in(store), [] if name is None else [name], columns)
    return name or next((column for column in TEXT_COLUMNS if column in columns), None)


# --- widths -------------------------------------------------------------------------------------------------


def check_dimension(model: Repair, dimension: int, name: str) -> None:
    """Raise a StoreError where items have another dimension than those that a model moves."""
    if dimension != model.dimension:
        raise StoreError(
            f"{name} has vectors of {dimension} columns, the model is for {model.dimension}. Give the items "
            "that it was learned from, or fit a model for these."
        )


def check_queries(width: int, dimension: int, name: str) -> None:
    """Raise a StoreError where queries have another width than items."""
    if width != dimension:
        raise StoreError(
            f"queries have {width} columns, the items of {name} have {dimension}. Give queries of "
            f"{dimension} columns."
        )


def check_queries_of(model: Repair, width: int, name: str) -> None:
    """Raise a StoreError where queries are not those that the items of a model are moved for."""
    if not model.is_between_spaces:
        check_queries(width, model.dimension, name)
    elif width != model.query_width:
        raise StoreError(
            f"queries have {width} columns, and the model moves the items of {name} into the space of "
            f"queries of {model.query_width}. Give such queries."
        )


# --- queries ------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """How many queries there are, and of what width."""

    n: int
    width: int


def last_part(name: str) -> str:
    """Return the last part of the name of a store: a file without its folders, a table without its server."""
    return re.split(r"[/\\#]", name.rstrip("/"))[-1] or name


def opened_queries(queries: Any) -> Any:
    """Return queries as a Store, opened by its name; or as an array of shape (n, d)."""
    if isinstance(queries, str | os.PathLike):
        return open_store(queries)
    return queries if isinstance(queries, Store) else np.asarray(queries)


def check_asked(queries: Any, columns: Sequence[str] = ()) -> Shape:
    """Return the shape of queries, a Store or an array; StoreError where there are none or lack a column."""
    if not isinstance(queries, Store):
        if queries.ndim != 2:
            raise ValueError(f"queries must be an array of shape (n, d); got shape {queries.shape}.")
        return Shape(*queries.shape)
    facts = queries.facts()
    check_filled(queries, facts.count)
    check_named(queries, facts, columns)
    return Shape(facts.count, facts.dimension)
