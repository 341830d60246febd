"""Rows of a PostgreSQL table with vectors, from the server and to it."""

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from .pg_catalog import Path, Table, compose, listed, literal, shown
from .store import Batch, StoreError, answers, need

OPERATORS = {"l2": "<->", "cosine": "<=>", "ip": "<#>"}
# Columns of other types are read as text.
AS_THEY_ARE = ("int2", "int4", "int8", "float4", "float8", "numeric", "bool")
TOLERANCE = {"vector": 1e-5, "halfvec": 1e-3}  # of the largest number of a row


def binary_form(type: str, dimension: int) -> np.dtype[Any]:
    """A vector as pgvector sends it."""
    number = ">f4" if type == "vector" else ">f2"
    return np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("numbers", number, (dimension,))])


def unpack(vectors: Sequence[bytes | None], form: np.dtype[Any]) -> np.ndarray:
    """Vectors in their binary form, None for none -> float32 (n, d), NaN for none."""
    found = np.full((len(vectors), *form["numbers"].shape), np.nan, dtype=np.float32)
    there = [vector for vector in vectors if vector is not None]
    if any(len(vector) != form.itemsize for vector in there):
        raise StoreError("the vectors are not all of one dimension: only those that are can be moved.")
    found[[vector is not None for vector in vectors]] = np.frombuffer(b"".join(there), form)["numbers"]
    return found


def pack(vectors: np.ndarray, form: np.dtype[Any]) -> list[bytes | None]:
    """The reverse of `unpack`."""
    there = ~np.isnan(vectors).all(axis=1)
    block = np.zeros(len(vectors), form)
    block["dimension"] = vectors.shape[1]
    with np.errstate(over="ignore"):  # looked for right below
        block["numbers"] = vectors
    if not np.isfinite(block["numbers"][there]).all():
        raise StoreError("some moved vectors have numbers that their column cannot hold: too large, or none.")
    sent, size = block.tobytes(), form.itemsize
    return [sent[i * size : (i + 1) * size] if there[i] else None for i in range(len(vectors))]


def form_of(connection: Any, table: Table) -> np.dtype[Any]:
    """Form of the vectors of a table; a column that names no dimension has that of its first vector."""
    dimension = table.vector.modifier
    if dimension < 1:
        query = compose(
            "SELECT {vector} FROM {table} WHERE {vector} IS NOT NULL LIMIT 1",
            vector=table.vector.name,
            table=table.path,
        )
        first = connection.execute(query, binary=True).fetchone()
        if first is None:
            raise StoreError(f"{shown(table.path)} holds no vector, and its column names no dimension.")
        dimension = int.from_bytes(first[0][:2], "big")
    return binary_form(table.vector.type, dimension)


def select(table: Table, columns: Sequence[str]) -> Any:
    """A query for ids, vectors and some columns of all rows."""
    types = {column.name: column.type for column in table.others}
    unknown = [name for name in columns if name not in types]
    if unknown:
        raise StoreError(f"{shown(table.path)} has no column {', '.join(unknown)}, but {', '.join(types)}.")
    more = [compose("{n}" if types[n] in AS_THEY_ARE else "{n}::text", n=n) for n in columns]
    return compose(
        "SELECT {wanted} FROM {table}",
        wanted=listed("{name}", [table.id_given, table.vector.name, *more]),
        table=table.path,
    )


def batch_of(table: Table, form: np.dtype[Any], rows: Sequence[Any], columns: Sequence[str]) -> Batch:
    """What `select` gave, as a batch."""
    told = {name: [row[place] for row in rows] for place, name in enumerate(columns, 2)}
    return Batch(id_array(table, rows), unpack([row[1] for row in rows], form), told)


def id_array(table: Table, rows: Sequence[Any]) -> np.ndarray:
    """The first of each row; int64 or texts."""
    return np.array([row[0] for row in rows], dtype=np.int64 if table.has_number_ids else object)


def known_ids(table: Table, ids: Any) -> list[Any]:
    """Ids in the one form that the table gives them in, without those that it cannot have."""
    if table.has_number_ids:
        return [int(i) for i in ids if not isinstance(i, str)]
    texts = [i for i in ids if isinstance(i, str)]
    return texts if table.id.type != "uuid" else [found for text in texts for found in _uuids(text)]


def among(table: Table, ids: list[Any]) -> Any:
    """A condition: its id is one of these."""
    return compose("{id} = ANY({ids}::{type}[])", id=table.id.name, ids=literal(ids), type=table.id_type)


def state(connection: Any, path: Path) -> str:
    """What differs whenever a row does: their number and the sum of their hashes, in whatever order."""
    query = "SELECT count(*), sum(hashtextextended((t.*)::text, 0)::numeric) FROM {table} t"
    count, total = connection.execute(compose(query, table=path)).fetchone()
    return f"{count} rows, {total}"


def nearest(connection: Any, table: Table, metric: str, queries: np.ndarray, k: int) -> np.ndarray:
    """Ids of the k nearest, nearest first; (n, k), None for none."""
    sql = need("psycopg.sql", "pgvector")
    # An index may be of an expression, as embedding::halfvec(3072), and answers to that alone.
    index = next((index for index in table.vector_indexes if index.metric == metric), None)
    statement = (
        "SELECT {id} FROM {table} WHERE {vector} IS NOT NULL "
        "ORDER BY {near} OPERATOR({schema}.{operator}) {query}::{type} LIMIT {k}"
    )
    parts = {
        "id": table.id_given,
        "table": table.path,
        "vector": table.vector.name,
        "near": table.vector.name if index is None else sql.SQL(index.expression),
        "schema": table.vector.type_schema,
        "operator": sql.SQL(OPERATORS[metric]),
        "type": table.vector_type if index is None else (table.vector.type_schema, index.operand),
        "k": literal(k),
    }
    found = []
    for query in np.asarray(queries, dtype=np.float32).tolist():
        rows = connection.execute(compose(statement, **parts, query=literal(str(query)))).fetchall()
        found.append([i for (i,) in rows])
    return answers(found, k)


def differing(connection: Any, green: Table, blue: Table, batch: Batch, moved: np.ndarray) -> np.ndarray:
    """Which rows green lacks or has otherwise; bool (n,). Generated columns follow from the others."""
    ids = batch.ids.tolist()
    same = [column.name for column in blue.others if not column.is_generated]
    statement = compose(
        "SELECT {given}, g.{vector} FROM (SELECT * FROM {green} WHERE {among}) g JOIN {blue} b USING ({id}) "
        "WHERE ROW({green_columns})::text = ROW({blue_columns})::text",  # some types, as json, have no =
        given=green.id_given,
        vector=green.vector.name,
        green=green.path,
        among=among(green, ids),
        blue=blue.path,
        id=green.id.name,
        green_columns=listed("g.{name}", same),
        blue_columns=listed("b.{name}", same),
    )
    found = dict(connection.execute(statement, binary=True).fetchall())
    stored = unpack([found.get(i) for i in ids], binary_form(green.vector.type, moved.shape[1]))
    near = TOLERANCE[green.vector.type] * np.abs(moved).max(axis=1, keepdims=True)
    agree = (np.abs(stored - moved) <= near).all(axis=1)
    agree |= np.isnan(stored).all(axis=1) & np.isnan(moved).all(axis=1)  # neither has a vector
    return ~agree | np.array([i not in found for i in ids], dtype=bool)


def write(connection: Any, green: Table, blue: Table, batch: Batch, moved: np.ndarray) -> None:
    """Put rows of blue, as they are now, with moved vectors in the place of those that green has."""
    sent = "int8" if green.has_number_ids else "text"
    kept = [column.name for column in blue.columns if column != blue.vector and not column.is_generated]
    parts: dict[str, Any] = {
        "sent": ("pg_catalog", sent),
        "id_type": green.id_type,
        "vector_type": green.vector_type,
        "green": green.path,
        "blue": blue.path,
        "id": green.id.name,
        "vector": green.vector.name,
        "kept": listed("{name}", kept),
        "values": listed("b.{name}", kept),
    }
    make = "CREATE TEMP TABLE hubless_moved (id {sent}, vector {vector_type}) ON COMMIT DROP"
    # Away and in again: an update could not set an identity column, nor swap values that are unique.
    away = "DELETE FROM {green} g USING pg_temp.hubless_moved m WHERE g.{id} = m.id::{id_type}"
    fill = (
        "INSERT INTO {green} ({vector}, {kept}) OVERRIDING SYSTEM VALUE SELECT m.vector, {values} "
        "FROM pg_temp.hubless_moved m JOIN {blue} b ON b.{id} = m.id::{id_type}"
    )
    vectors = pack(moved, binary_form(green.vector.type, moved.shape[1]))
    connection.execute(compose(make, **parts))
    with connection.cursor().copy("COPY pg_temp.hubless_moved FROM STDIN (FORMAT binary)") as copy:
        copy.set_types([sent, "bytea"])  # bytes go as they are, whatever the column is
        for row in zip(batch.ids.tolist(), vectors, strict=True):
            copy.write_row(row)
    connection.execute(compose(away, **parts))
    connection.execute(compose(fill, **parts))


def _uuids(text: str) -> list[str]:
    try:
        return [str(uuid.UUID(text))]
    except ValueError:
        return []
