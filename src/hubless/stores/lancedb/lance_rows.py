"""Rows of a LanceDB table, which are Arrow, as NumPy and back; and where two columns are equal."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...support.imports import need
from ..arrow_columns import as_column, as_matrix, with_width
from ..store import ROWS, Mark, StoreError

MARK, METRIC = b"hubless", b"hubless:metric"  # metadata of the vector column
PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"  # metadata of the id column
PART = 32768  # rows of a query
VECTORS = "vector|embedding"  # names of columns whose lists LanceDB takes for vectors
LARGEST = 2**63 - 1  # id that int64 holds
ID_COLUMNS = ("id", "_id", "key")  # looked for where none is named


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn an error of LanceDB, often a commit or a clean-up of another process, into a StoreError."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition(". Detail:")[0].partition(", /")[0]  # without places in its source code
        raise StoreError(f"{what} failed; run it again: {reason}") from error


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


def check_copyable(store: str, table: Any, id: str, vector: str) -> None:
    """Refuse a table whose copy would lack something, or whose ids are not unique."""
    _check_types(store, table, vector)
    if table.blob_columns() or table.get_lsm_write_spec() is not None:
        raise StoreError(f"{store} has blobs or a write-ahead log (LSM), which hubless cannot copy.")
    ids = table.search().select([id]).to_arrow().column(id)
    n_repeated = len(ids) - ids.null_count - need("pyarrow.compute", "lancedb").count_distinct(ids).as_py()
    if ids.null_count or n_repeated:
        raise StoreError(
            f"{store} has {n_repeated} duplicates and {ids.null_count} nulls in {id!r}: ids must be unique. "
            "Repair these rows, or name another column with --id."
        )


def _check_types(store: str, table: Any, vector: str) -> None:
    """Refuse columns that LanceDB would change, or would not write, when it replaces a table."""
    types = need("pyarrow", "lancedb").types
    for field in table.schema:
        kind, is_list = field.type, types.is_list(field.type) or types.is_large_list(field.type)
        if is_list and _is_numeric(kind.value_type) and re.search(VECTORS, field.name, re.IGNORECASE):
            raise StoreError(
                f"{store} has lists in {field.name!r}, which LanceDB turns into vectors of one length when a "
                "table is replaced, because of that name. Rename the column by `table.alter_columns`."
            )
        is_vector = types.is_fixed_size_list(kind) and types.is_floating(kind.value_type)
        if not is_vector or (field.name == vector and field.nullable):
            continue
        n_spoilt = sum(_n_spoilt(rows.column(field.name)) for rows in scan(table, [field.name]))
        if n_spoilt:
            raise StoreError(
                f"{store} has NaN in {n_spoilt} vectors of {field.name!r}, which LanceDB does not write. Set "
                "these to null by `table.update`; if it may have no nulls, by `table.alter_columns` first."
            )


def _is_numeric(kind: Any) -> bool:
    types = need("pyarrow", "lancedb").types
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _n_spoilt(column: Any) -> int:
    """Return the number of vectors with a NaN in it; null is none."""
    whole = column.drop_null().combine_chunks()
    X = as_matrix(whole, whole.type.list_size, "")
    return int(np.isnan(X).any(axis=1).sum())


def mark_of(table: Any) -> Mark | None:
    """Return the mark that a column carries."""
    texts = (field.metadata[MARK] for field in table.schema if MARK in (field.metadata or {}))
    return Mark.from_json(next(texts, None))


def batch_size(width: int) -> int:
    """Return rows of a batch: more than ROWS where vectors are short, since each batch is a file of green."""
    return max(ROWS, min(PART, 2**21 // width))


def scan(table: Any, columns: list[str], size: int = PART) -> Iterator[Any]:
    """Yield all rows as Arrow tables of at most `size`; in many queries: LanceDB reads each ahead."""
    arrow = need("pyarrow", "lancedb")
    with engine_errors(f"reading {table.name}"):
        for start in range(0, table.count_rows(), PART):
            for rows in table.search().select(columns).offset(start).limit(PART).to_batches(size):
                if rows.num_rows:
                    yield arrow.Table.from_batches([rows])


def ids_of(column: Any) -> np.ndarray:
    """Return the ids of an Arrow column: int64, or an object array of texts or of larger numbers."""
    if column.null_count:
        raise StoreError(f"{column.null_count} ids are null, and every row needs one. Repair these rows.")
    if "string" in str(column.type):
        return column.cast("string").to_numpy(zero_copy_only=False)
    ids = column.to_numpy(zero_copy_only=False)
    return ids.astype(object if ids.max(initial=0) > LARGEST else np.int64)


def as_ids(ids: Sequence[Any]) -> np.ndarray:
    """Return ids as `ids_of` does."""
    values = np.array(list(ids), dtype=object)
    are_texts = len(values) > 0 and isinstance(values[0], str)
    if are_texts or max(map(abs, values), default=0) > LARGEST:
        return values
    return values.astype(np.int64)


def among(id: str, ids: Sequence[Any]) -> Any:
    """Return LanceDB's condition that a row has one of these ids."""
    expr, arrow = need("lancedb.expr", "lancedb"), need("pyarrow", "lancedb")

    def literal(value: Any) -> Any:  # LanceDB would take a number that int64 does not hold for a float
        is_large = not isinstance(value, str) and value > LARGEST
        return expr.lit(str(value)).cast(arrow.uint64()) if is_large else value

    return expr.col(id).isin([literal(value) for value in ids])


def find(table: Any, id: str, ids: Sequence[Any]) -> Any:
    """Return the rows with these ids, in this order, as an Arrow table, without ids that do not exist."""
    wanted = as_ids(ids).tolist()
    with engine_errors(f"reading {table.name}"):
        rows = table.search().where(among(id, wanted)).select(table.schema.names).to_arrow()
    places = {value: place for place, value in enumerate(ids_of(rows.column(id)).tolist())}
    found = [places[value] for value in wanted if value in places]
    return rows.take(need("pyarrow", "lancedb").array(found, "int64"))


def with_vectors(store: str, rows: Any, name: str, X: np.ndarray) -> Any:
    """Return Arrow rows with other vectors, in the type of the column; null for a row with NaN."""
    field = with_width(rows.schema.field(name), X.shape[1])
    has_none = np.isnan(X).any(axis=1, keepdims=True)
    if has_none.any() and not field.nullable:
        raise StoreError(
            f"{store}: {has_none.sum()} rows have no vector after they are moved, and {name!r} may not be "
            "null. Let it be by `table.alter_columns`."
        )
    X = np.where(has_none, np.nan, X) if has_none.any() else X
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
