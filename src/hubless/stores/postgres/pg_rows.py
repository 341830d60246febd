"""Rows of a PostgreSQL table with vectors, from the server and to it."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..checks import check_columns, pad_ids
from ..store import ROWS, Batch, StoreError, agree
from .pg_catalog import Table, as_reported, compose, listed, literal, shown

OPERATORS = {"l2": "<->", "cosine": "<=>", "ip": "<#>"}
# Types of columns that are read as they are; others are read as text.
AS_THEY_ARE = ("int2", "int4", "int8", "float4", "float8", "numeric", "bool")


def binary_form(type: str, dimension: int) -> np.dtype[Any]:
    """Return the layout of a vector as pgvector sends it."""
    number = ">f4" if type == "vector" else ">f2"
    return np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("numbers", number, (dimension,))])


def unpack(encoded: Sequence[bytes | None], form: np.dtype[Any]) -> np.ndarray:
    """Return vectors from their binary form as float32 (n, d); a row without one (None) becomes NaN."""
    vectors = np.full((len(encoded), *form["numbers"].shape), np.nan, dtype=np.float32)
    present = [vector for vector in encoded if vector is not None]
    if any(len(vector) != form.itemsize for vector in present):
        raise StoreError("the vectors have different dimensions; to be moved, all must have the same one.")
    vectors[[vector is not None for vector in encoded]] = np.frombuffer(b"".join(present), form)["numbers"]
    return vectors


def pack(vectors: np.ndarray, form: np.dtype[Any]) -> list[bytes | None]:
    """Return the binary form of vectors; the reverse of `unpack`."""
    is_present = ~np.isnan(vectors).all(axis=1)
    block = np.zeros(len(vectors), form)
    block["dimension"] = vectors.shape[1]
    with np.errstate(over="ignore"):  # checked right below
        block["numbers"] = vectors
    if not np.isfinite(block["numbers"][is_present]).all():
        raise StoreError("some moved vectors have numbers that their column cannot hold: too large, or NaN.")
    encoded, size = block.tobytes(), form.itemsize
    return [encoded[i * size : (i + 1) * size] if is_present[i] else None for i in range(len(vectors))]


def form_of(table: Table) -> np.dtype[Any]:
    """Return the layout of the vectors of a table; without a dimension in its type, that of the first one."""
    dimension = table.vector.modifier
    if dimension < 1:
        query = "SELECT {vector} FROM {table} WHERE {vector} IS NOT NULL LIMIT 1"
        first = table.run(query, binary=True).fetchone()
        if first is None:
            raise StoreError(
                f"{shown(table.path)} has no vectors, and its column has no fixed dimension. Add a row."
            )
        dimension = int.from_bytes(first[0][:2], "big")
    return binary_form(table.vector.type, dimension)


def select(table: Table, columns: Sequence[str]) -> Any:
    """Return a query for ids, vectors and other columns of all rows."""
    types = {column.name: column.type for column in table.others}
    check_columns(shown(table.path), columns, list(types))
    more = [compose("{n}" if types[n] in AS_THEY_ARE else "{n}::text", n=n) for n in columns]
    return table.compose(
        "SELECT {wanted} FROM {table}", wanted=listed("{name}", [table.id_read, table.vector.name, *more])
    )


def batch_of(table: Table, form: np.dtype[Any], rows: Sequence[Any], columns: Sequence[str]) -> Batch:
    """Return the result of `select` as a batch."""
    values = {name: [row[place] for row in rows] for place, name in enumerate(columns, 2)}
    return Batch(id_array(table, rows), unpack([row[1] for row in rows], form), values)


def id_array(table: Table, rows: Sequence[Any]) -> np.ndarray:
    """Return the first value of each row; int64 or texts."""
    return np.array([row[0] for row in rows], dtype=np.int64 if table.has_number_ids else object)


def known_ids(table: Table, ids: Any) -> list[Any]:
    """Return ids as the table has them, without those that it cannot have."""
    if table.has_number_ids:
        return [int(i) for i in ids if not isinstance(i, str)]
    texts = [i for i in ids if isinstance(i, str)]
    return texts if table.id.type != "uuid" else [id for text in texts for id in _uuids(text)]


def among(table: Table, ids: list[Any]) -> Any:
    """Return the SQL condition that the id is one of these."""
    return table.compose("{id} = ANY({ids}::{id_type}[])", ids=ids)


def pages(table: Table, query: Any, size: int) -> Iterator[list[Any]]:
    """Yield the rows of a query, at most `size` at a time, which the server keeps until then."""
    with table.connection.cursor("hubless", binary=True) as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(size):
            yield rows


def fetch(table: Table, ids: Sequence[Any], columns: Sequence[str]) -> Batch:
    """Return the rows with these ids, in this order, without those that do not exist."""
    wanted = known_ids(table, ids)
    rows = table.run(
        "{every} WHERE {among}", binary=True, every=select(table, columns), among=among(table, wanted)
    )
    by_id = {row[0]: row for row in rows}
    return batch_of(table, form_of(table), [by_id[i] for i in wanted if i in by_id], columns)


def remove(table: Table, ids: Sequence[Any]) -> None:
    """Delete the rows with these ids."""
    for start in range(0, len(ids), ROWS):
        table.run("DELETE FROM {table} WHERE {among}", among=among(table, list(ids[start : start + ROWS])))


def state(table: Table) -> str:
    """Return the number of rows and the sum of their hashes, in any order: any change of a row changes it.

    A hash is that of the id and the transaction that wrote the row; of the whole row where the server does
    not know that transaction, such as in a view.
    """
    row = table.compose("concat({id}, ' ', t.xmin) COLLATE \"C\"" if table.is_heap else "(t.*)::text")
    query = "SELECT count(*), sum(hashtextextended({row}, 0)::numeric) FROM {table} t"
    count, total = table.run(query, row=row).fetchone()
    return f"{count} rows, {total}"


def nearest(table: Table, metric: str, queries: np.ndarray, k: int) -> np.ndarray:
    """Return ids of the k nearest, nearest first; (n, k), None where there are fewer."""
    # An index may be of an expression, such as embedding::halfvec(3072), and serves that expression only.
    index = next((index for index in table.vector_indexes if index.metric == metric), None)
    parts: dict[str, Any] = {"near": table.vector.name, "schema": table.vector.type_schema, "k": k}
    parts["operator"] = as_reported(OPERATORS[metric])
    if index is not None:
        parts |= {"near": as_reported(index.expression), "vector_type": (parts["schema"], index.operand)}
    statement = (
        "SELECT {id_read} FROM {table} WHERE {vector} IS NOT NULL "
        "ORDER BY {near} OPERATOR({schema}.{operator}) {query}::{vector_type} LIMIT {k}"
    )
    nearest_ids = []
    for query in np.asarray(queries, dtype=np.float32).tolist():
        nearest_ids.append([i for (i,) in table.run(statement, **parts, query=literal(str(query)))])
    return pad_ids(nearest_ids, k)


def differing(green: Table, blue: Table, batch: Batch, moved: np.ndarray) -> np.ndarray:
    """Say which rows green lacks or has with other values; bool (n,). Generated columns are not compared."""
    ids = batch.ids.tolist()
    same = [column.name for column in blue.others if not column.is_generated]
    rows = green.run(
        "SELECT {id_read}, g.{vector} "
        "FROM (SELECT * FROM {table} WHERE {among}) g JOIN {blue} b USING ({id}) "
        "WHERE ROW({green_columns})::text = ROW({blue_columns})::text",  # some types, such as json, have no =
        binary=True,
        among=among(green, ids),
        blue=blue.path,
        green_columns=listed("g.{name}", same),
        blue_columns=listed("b.{name}", same),
    )
    encoded = dict(rows.fetchall())
    stored = unpack([encoded.get(i) for i in ids], binary_form(green.vector.type, moved.shape[1]))
    is_missing = np.array([i not in encoded for i in ids], dtype=bool)
    return is_missing | ~agree(stored, moved, green.dtype)


def write(green: Table, blue: Table, batch: Batch, moved: np.ndarray) -> None:
    """Write rows of blue, as they are now, with moved vectors; rows that green has are replaced."""
    id_type = "int8" if green.has_number_ids else "text"  # as it is sent
    kept = [column.name for column in blue.columns if column != blue.vector and not column.is_generated]
    vectors = pack(moved, binary_form(green.vector.type, moved.shape[1]))
    create = "CREATE TEMP TABLE hubless_moved (id {sent}, vector {vector_type}) ON COMMIT DROP"
    green.run(create, sent=("pg_catalog", id_type))
    with green.connection.cursor().copy("COPY pg_temp.hubless_moved FROM STDIN (FORMAT binary)") as copy:
        copy.set_types([id_type, "bytea"])  # bytes are sent as they are, whatever the column is
        for row in zip(batch.ids.tolist(), vectors, strict=True):
            copy.write_row(row)
    # Else the server takes it for a large table, and reads all of the others for each batch.
    green.run("ANALYZE pg_temp.hubless_moved (id)")
    # Deleted and inserted: an update could not set an identity column, nor swap values that are unique.
    green.run("DELETE FROM {table} g USING pg_temp.hubless_moved m WHERE g.{id} = m.id::{id_type}")
    green.run(
        "INSERT INTO {table} ({vector}, {kept}) OVERRIDING SYSTEM VALUE SELECT m.vector, {values} "
        "FROM pg_temp.hubless_moved m JOIN {blue} b ON b.{id} = m.id::{id_type}",
        kept=listed("{name}", kept),
        values=listed("b.{name}", kept),
        blue=blue.path,
    )
    green.run("DROP TABLE pg_temp.hubless_moved")


def _uuids(text: str) -> list[str]:
    try:
        return [str(uuid.UUID(text))]
    except ValueError:
        return []
