"""Rows of a LanceDB table, which are Arrow, as NumPy and back; and where two of them agree."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .store import Mark, StoreError, need

MARK, METRIC = b"hubless", b"hubless:metric"  # metadata of the vector column
PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"  # metadata of the id column
PART = 32768  # rows that are read ahead
USUAL = ("id", "_id", "key")


def id_type(field: Any) -> str:
    """Arrow's name of the type that ids are taken in: "string" or "int64"."""
    return "string" if "string" in str(field.type) else "int64"


def id_column(store: str, schema: Any, asked: str | None) -> str:
    """Name of the column of ids: the one that was asked for, or a usual one."""
    wanted = r"u?int\d+|(large_)?string(_view)?"
    can_be = [field.name for field in schema if re.fullmatch(wanted, str(field.type))]
    for name in USUAL if asked is None else (asked,):
        if name in can_be:
            return name
    told = f"no column {' or '.join(USUAL)}" if asked is None else f"no column {asked!r} that can be one"
    raise StoreError(f"{store} has {told} for ids. Name one with --id: {', '.join(can_be) or 'none can'}.")


def vector_column(store: str, schema: Any, asked: str | None) -> str:
    """Name of the column of vectors: the one that was asked for, or the only one that can be."""
    wanted = r"fixed_size_list<.*: (halffloat|float|double)( not null)?>\[\d+\]"
    can_be = [field.name for field in schema if re.fullmatch(wanted, str(field.type))]
    if asked in can_be or (asked is None and len(can_be) == 1):
        return asked or can_be[0]
    told = f"no column {asked!r} of vectors" if asked else f"{len(can_be)} columns of vectors"
    raise StoreError(f"{store} has {told}. Name one with --vector: {', '.join(can_be) or 'there is none'}.")


def check_copyable(store: str, table: Any, id: str) -> None:
    """StoreError where a copy would lack something, or ids do not tell rows apart."""
    if table.blob_columns() or table.get_lsm_write_spec() is not None:
        raise StoreError(f"{store} has blobs or a write-ahead log (LSM), which hubless cannot copy.")
    ids = table.search().select([id]).to_arrow().column(id)
    twice = len(ids) - ids.null_count - need("pyarrow.compute", "lancedb").count_distinct(ids).as_py()
    if ids.null_count or twice:
        raise StoreError(
            f"{store} has {twice} duplicates and {ids.null_count} nulls in {id!r}: ids must tell rows apart. "
            "Repair these rows, or name another column with --id."
        )


def types_of(table: Any) -> dict[str, str]:
    """Arrow's names of the types of all columns."""
    return {field.name: str(field.type) for field in table.schema}


def mark_of(table: Any) -> Mark | None:
    """The mark that a column carries."""
    told = (field.metadata[MARK] for field in table.schema if MARK in (field.metadata or {}))
    return Mark.from_json(next(told, None))


def scan(table: Any, columns: list[str], size: int) -> Iterator[Any]:
    """All rows, as Arrow tables of at most `size`; in parts, for LanceDB reads ahead all it is asked for."""
    arrow = need("pyarrow", "lancedb")
    for start in range(0, table.count_rows(), PART):
        for rows in table.search().select(columns).offset(start).limit(PART).to_batches(size):
            if rows.num_rows:
                yield arrow.Table.from_batches([rows])


def ids_of(column: Any) -> np.ndarray:
    """Ids of an Arrow column: int64, or texts as an object array."""
    if column.null_count:
        raise StoreError(f"{column.null_count} ids are null, and every row needs one. Repair these rows.")
    column = column.cast(id_type(column))
    return column.to_numpy(zero_copy_only=False)


def matrix(column: Any) -> np.ndarray:
    """Vectors of an Arrow column; float32 or float64 (n, d), NaN where there is none."""
    array = column.combine_chunks()
    kind = np.float64 if str(array.type.value_type) == "double" else np.float32
    X = np.full((len(array), array.type.list_size), np.nan, dtype=kind)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    X[there] = array.flatten().to_numpy(zero_copy_only=False).reshape(-1, X.shape[1])  # leaves nulls out
    return X


def with_vectors(rows: Any, name: str, X: np.ndarray) -> Any:
    """Arrow rows with other vectors, in the type of the column; null for a row with NaN."""
    arrow = need("pyarrow", "lancedb")
    field = rows.schema.field(name)
    stored = field.type.value_type
    values = arrow.array(X.astype(stored.to_pandas_dtype()).ravel(), stored)
    missing = arrow.array(np.isnan(X).any(axis=1))
    array = arrow.FixedSizeListArray.from_arrays(values, type=field.type, mask=missing)
    return rows.set_column(rows.schema.get_field_index(name), field, array)


def close(X: np.ndarray, moved: np.ndarray, stored: Any) -> np.ndarray:
    """Which rows agree up to rounding, relative to the largest number of the row; bool (n,)."""
    wanted = moved.astype(stored).astype(X.dtype)
    largest = np.abs(wanted).max(axis=1, keepdims=True)  # (n, 1); NaN for a row without a vector
    near = np.abs(X - wanted) <= (1e-3 if stored == np.float16 else 1e-5) * largest
    return (near | (np.isnan(X) & np.isnan(wanted))).all(axis=1)


def alike(column: Any, other: Any) -> np.ndarray:
    """Where two Arrow columns of any type agree, a NaN with a NaN too; bool (n,)."""
    if column.equals(other):
        return np.ones(len(column), dtype=bool)
    pairs = zip(column, other, strict=True)
    return np.array([a.equals(b) or repr(a) == repr(b) for a, b in pairs], dtype=bool)


def marked(schema: Any, vector: str, mark: Mark, metric: str) -> Any:
    """A schema whose vector column carries a mark."""
    field = schema.field(vector)
    told = {**(field.metadata or {}), MARK: mark.to_json().encode(), METRIC: metric.encode()}
    return schema.set(schema.get_field_index(vector), field.with_metadata(told))


def keyed(schema: Any, id: str) -> Any:
    """The schema of a table that only hubless writes to: with ids as its primary key, and nothing computed.

    Two that write the same new id at once would both add it to a table without a primary key.
    """
    kept = [field.with_metadata(_without(field.metadata, b"lance-schema:unenforced")) for field in schema]
    place = schema.get_field_index(id)
    kept[place] = kept[place].with_nullable(False)
    kept[place] = kept[place].with_metadata({**(kept[place].metadata or {}), PRIMARY_KEY: b"1"})
    return need("pyarrow", "lancedb").schema(kept, metadata=_without(schema.metadata, b"embedding_functions"))


def _without(metadata: dict[bytes, bytes] | None, start: bytes) -> dict[bytes, bytes]:
    return {name: value for name, value in (metadata or {}).items() if not name.startswith(start)}
