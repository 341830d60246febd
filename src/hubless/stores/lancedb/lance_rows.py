"""Rows of a LanceDB table, which are Arrow, as NumPy and back; and where two columns are equal."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...support.imports import need
from ..arrow_columns import as_column, with_width
from ..store import Mark, StoreError

MARK, METRIC = b"hubless", b"hubless:metric"  # metadata of the vector column
PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"  # metadata of the id column
PART = 32768  # rows of a query
ID_COLUMNS = ("id", "_id", "key")  # looked for where none is named


def id_type(field: Any) -> str:
    """Return Arrow's name of the type that ids are read as: "string" or "int64"."""
    return "string" if "string" in str(field.type) else "int64"


def id_column(store: str, schema: Any, requested: str | None) -> str:
    """Return the name of the column of ids: the requested one, or the first of ID_COLUMNS."""
    wanted = r"u?int\d+|(large_)?string(_view)?"
    usable = [field.name for field in schema if re.fullmatch(wanted, str(field.type))]
    for name in ID_COLUMNS if requested is None else (requested,):
        if name in usable:
            return name
    names = f"{requested!r} of whole numbers or texts" if requested else " or ".join(ID_COLUMNS)
    known = ", ".join(usable) or "it has none of whole numbers or texts"
    raise StoreError(f"{store} has no column {names} for ids. Name one with --id: {known}.")


def check_copyable(store: str, table: Any, id: str) -> None:
    """Refuse a table whose copy would lack something, or whose ids are not unique."""
    if table.blob_columns() or table.get_lsm_write_spec() is not None:
        raise StoreError(f"{store} has blobs or a write-ahead log (LSM), which hubless cannot copy.")
    ids = table.search().select([id]).to_arrow().column(id)
    n_repeated = len(ids) - ids.null_count - need("pyarrow.compute", "lancedb").count_distinct(ids).as_py()
    if ids.null_count or n_repeated:
        raise StoreError(
            f"{store} has {n_repeated} duplicates and {ids.null_count} nulls in {id!r}: ids must be unique. "
            "Repair these rows, or name another column with --id."
        )


def mark_of(table: Any) -> Mark | None:
    """Return the mark that a column carries."""
    texts = (field.metadata[MARK] for field in table.schema if MARK in (field.metadata or {}))
    return Mark.from_json(next(texts, None))


def scan(table: Any, columns: list[str], size: int) -> Iterator[Any]:
    """Yield all rows as Arrow tables of at most `size`; in many queries: LanceDB reads each ahead."""
    arrow = need("pyarrow", "lancedb")
    for start in range(0, table.count_rows(), PART):
        for rows in table.search().select(columns).offset(start).limit(PART).to_batches(size):
            if rows.num_rows:
                yield arrow.Table.from_batches([rows])


def ids_of(column: Any) -> np.ndarray:
    """Return the ids of an Arrow column: int64, or texts as an object array."""
    if column.null_count:
        raise StoreError(f"{column.null_count} ids are null, and every row needs one. Repair these rows.")
    return column.cast(id_type(column)).to_numpy(zero_copy_only=False)


def with_vectors(rows: Any, name: str, X: np.ndarray) -> Any:
    """Return Arrow rows with other vectors, in the type of the column; null for a row with NaN."""
    field = with_width(rows.schema.field(name), X.shape[1])
    X = np.where(np.isnan(X).any(axis=1, keepdims=True), np.nan, X)
    return rows.set_column(rows.schema.get_field_index(name), field, as_column(X, field.type))


def equal(column: Any, other: Any) -> np.ndarray:
    """Say where two Arrow columns of any type are equal, a NaN to a NaN too; bool (n,)."""
    if column.equals(other):
        return np.ones(len(column), dtype=bool)
    pairs = zip(column, other, strict=True)
    return np.array([a.equals(b) or repr(a) == repr(b) for a, b in pairs], dtype=bool)


def marked(schema: Any, vector: str, mark: Mark, metric: str) -> Any:
    """Return a schema whose vector column carries a mark, and has the width that the mark says."""
    field = schema.field(vector) if mark.width is None else with_width(schema.field(vector), mark.width)
    metadata = {**(field.metadata or {}), MARK: mark.to_json().encode(), METRIC: metric.encode()}
    return schema.set(schema.get_field_index(vector), field.with_metadata(metadata))


def keyed(schema: Any, id: str) -> Any:
    """Return the schema of a table that only hubless writes to: ids are its primary key, nothing is computed.

    Without a primary key, two processes that write the same new id at once would both add it.
    """
    kept = [field.with_metadata(_without(field.metadata, b"lance-schema:unenforced")) for field in schema]
    place = schema.get_field_index(id)
    kept[place] = kept[place].with_nullable(False)
    kept[place] = kept[place].with_metadata({**(kept[place].metadata or {}), PRIMARY_KEY: b"1"})
    return need("pyarrow", "lancedb").schema(kept, metadata=_without(schema.metadata, b"embedding_functions"))


def _without(metadata: dict[bytes, bytes] | None, start: bytes) -> dict[bytes, bytes]:
    return {name: value for name, value in (metadata or {}).items() if not name.startswith(start)}
