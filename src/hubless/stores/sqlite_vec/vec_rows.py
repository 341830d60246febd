"""Rows of a vec0 table as NumPy and back.

Vectors are read by chunks, as sqlite-vec keeps them: row by row, it would look each one up. All else is read
and written by statements on the table itself.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..checks import check_columns
from ..sql.sql_names import listed, quoted
from ..store import Batch, StoreError
from .vec_layout import METRICS, Column, VecLayout

NEAREST = 4096  # that sqlite-vec finds by its own search, at most
DISTANCES = {"l2": "vec_distance_L2", "cosine": "vec_distance_cosine", "hamming": "vec_distance_hamming"}


def as_ids(layout: VecLayout, ids: Sequence[Any]) -> np.ndarray:
    """Return ids as a batch has them."""
    return np.array(ids, dtype=object if layout.has_text_ids else np.int64)


def known_ids(layout: VecLayout, ids: Sequence[Any]) -> list[Any]:
    """Return ids as the table has them, without those that it cannot have."""
    if layout.has_text_ids:
        return [str(i) for i in ids if isinstance(i, str)]
    whole = [int(i) for i in ids if isinstance(i, int | np.integer)]
    return [i for i in whole if -(2**63) <= i < 2**63]


def unpack(vector: Column, encoded: bytes) -> np.ndarray:
    """Return vectors that are stored one after the other as float32 (n, d); bits are 0 and 1."""
    if vector.type == "bit":
        bits = np.unpackbits(np.frombuffer(encoded, np.uint8), bitorder="little")
        return bits.reshape(-1, vector.width).astype(np.float32)
    kind = np.float32 if vector.type == "float" else np.int8
    return np.frombuffer(encoded, kind).reshape(-1, vector.width).astype(np.float32)


def pack(vector: Column, X: np.ndarray) -> list[bytes]:
    """Return the stored form of each vector; the reverse of `unpack`, rounded where it is not of floats."""
    if vector.type == "bit":
        return [row.tobytes() for row in np.packbits(X > 0.5, axis=1, bitorder="little")]
    if vector.type == "int8":
        X = np.clip(np.rint(X), -128, 127).astype(np.int8)
    return [
        row.tobytes() for row in np.ascontiguousarray(X, np.int8 if vector.type == "int8" else np.float32)
    ]


def pages(
    connection: Any, name: str, layout: VecLayout, after: int, size: int
) -> tuple[list[Any], np.ndarray, int]:
    """Return ids and vectors of the chunks after one of them, about `size` rows; and the last chunk."""
    rowids: list[np.ndarray] = []
    vectors: list[np.ndarray] = []
    query = (
        "SELECT c.chunk_id, c.size, c.validity, c.rowids, v.vectors "
        f"FROM {layout.shadow('chunks')} c LEFT JOIN {layout.vectors} v ON v.rowid = c.chunk_id "
        "WHERE c.chunk_id > ? ORDER BY c.chunk_id"
    )
    for chunk, slots, validity, ids, encoded in connection.execute(query, [after]):
        after = chunk
        is_used = _used_slots(name, layout, (slots, validity, ids, encoded))
        rowids.append(np.frombuffer(ids, np.int64)[is_used])
        vectors.append(unpack(layout.vector, encoded)[is_used])
        if sum(map(len, rowids)) >= size:
            break
    if not rowids:
        return [], np.empty((0, layout.vector.width), np.float32), after
    return _ids_of(connection, layout, np.concatenate(rowids)), np.concatenate(vectors), after


def _used_slots(name: str, layout: VecLayout, chunk: Any) -> np.ndarray:
    """Return which slots of a chunk have a row; bool (size,). StoreError for a damaged chunk."""
    slots, validity, ids, encoded = chunk
    sizes = {"validity": slots // 8, "rowids": slots * 8, "vectors": slots * layout.vector.itemsize()}
    for (part, wanted), got in zip(sizes.items(), (validity, ids, encoded), strict=True):
        if not isinstance(got, bytes) or len(got) != wanted:
            has = len(got) if isinstance(got, bytes) else 0
            raise StoreError(f"{name} is damaged: a chunk has {has} bytes of {part}; expected {wanted}.")
    return np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)


def _ids_of(connection: Any, layout: VecLayout, rowids: np.ndarray) -> list[Any]:
    if not layout.has_text_ids:
        return list(rowids.tolist())
    wanted = json.dumps(rowids.tolist())
    query = f"SELECT r.id FROM json_each(?) j JOIN {layout.shadow('rowids')} r ON r.rowid = j.value"
    ids = [row[0] for row in connection.execute(f"{query} ORDER BY j.key", [wanted])]
    if len(ids) != len(rowids):
        raise StoreError(f"{layout.table} is damaged: {len(rowids) - len(ids)} rows have no id.")
    return ids


def every_id(connection: Any, layout: VecLayout) -> list[Any]:
    """Return all ids."""
    id = "id" if layout.has_text_ids else "rowid"
    query = f"SELECT {id} FROM {layout.shadow('rowids')} ORDER BY rowid"
    return [row[0] for row in connection.execute(query)]


def are_there(connection: Any, layout: VecLayout, ids: Sequence[Any]) -> list[Any]:
    """Return those of some ids that the table has."""
    id = "id" if layout.has_text_ids else "rowid"
    query = f"SELECT j.value FROM json_each(?) j CROSS JOIN {layout.shadow('rowids')} r ON r.{id} = j.value"
    return [row[0] for row in connection.execute(query, [json.dumps(known_ids(layout, ids))])]


def others_of(connection: Any, layout: VecLayout, ids: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the other columns of rows that exist, in the order of the ids."""
    if not layout.others:
        return [()] * len(ids)
    names = [column.name for column in layout.others]
    query = f"SELECT {listed(names, 't.')} FROM {_by_id(layout)}"
    return list(connection.execute(query, [json.dumps(list(ids))]))


def fetch(connection: Any, layout: VecLayout, ids: Sequence[Any], columns: Sequence[str]) -> Batch:
    """Return the rows with these ids, in this order, without those that do not exist."""
    names = [layout.id, layout.vector.name, *(column.name for column in layout.others)]
    query = f"SELECT {listed(names, 't.')} FROM {_by_id(layout)}"
    rows = connection.execute(query, [json.dumps(known_ids(layout, ids))]).fetchall()
    vectors = unpack(layout.vector, b"".join(row[1] for row in rows))
    return batch_of(layout, [row[0] for row in rows], vectors, [row[2:] for row in rows], columns)


def _by_id(layout: VecLayout) -> str:
    """Return the rows of the table whose ids are in a JSON array, in its order; each is looked up."""
    same = f"t.{quoted(layout.id)} = j.value"
    return f"json_each(?) j CROSS JOIN {quoted(layout.table)} t ON {same} ORDER BY j.key"


def batch_of(
    layout: VecLayout, ids: Sequence[Any], vectors: np.ndarray, rows: list[Any], columns: Sequence[str]
) -> Batch:
    """Return rows as a batch."""
    names = [column.name for column in layout.others]
    check_columns(layout.table, columns, names)
    values = {name: [row[names.index(name)] for row in rows] for name in columns}
    return Batch(as_ids(layout, ids), vectors, values, rows)


def batches(
    connection: Any, layout: VecLayout, whole: Any, columns: Sequence[str], size: int
) -> Iterator[Batch]:
    """Yield ids and vectors of some chunks, with the other columns, at most `size` rows at a time."""
    ids, vectors = whole
    for start in range(0, len(ids), size):
        part = slice(start, start + size)
        yield batch_of(layout, ids[part], vectors[part], others_of(connection, layout, ids[part]), columns)


def write(connection: Any, layout: VecLayout, batch: Batch, moved: np.ndarray) -> None:
    """Write rows with moved vectors; those that exist are removed first, since vec0 replaces none."""
    remove(connection, layout, are_there(connection, layout, batch.ids.tolist()))
    names = [layout.id, layout.vector.name, *(column.name for column in layout.others)]
    values = ", ".join(["?", layout.vector.value(), *(column.value() for column in layout.others)])
    statement = f"INSERT INTO {quoted(layout.table)} ({listed(names)}) VALUES ({values})"
    vectors = pack(layout.vector, moved)
    rows = zip(batch.ids.tolist(), vectors, batch.rows, strict=True)
    connection.executemany(statement, ((id, vector, *row) for id, vector, row in rows))


def remove(connection: Any, layout: VecLayout, ids: Sequence[Any]) -> None:
    """Delete the rows with these ids."""
    statement = f"DELETE FROM {quoted(layout.table)} WHERE {quoted(layout.id)} = ?"
    connection.executemany(statement, ([id] for id in ids))


def state(connection: Any, layout: VecLayout) -> str:
    """Return a hash of all that the table is kept in: any change of a row changes it."""
    digest = hashlib.blake2b(digest_size=16)
    for suffix in layout.suffixes()[1:]:  # all but the version of sqlite-vec
        for row in connection.execute(f"SELECT * FROM {layout.shadow(suffix)} ORDER BY 1"):
            for value in row:
                digest.update(value if isinstance(value, bytes) else repr(value).encode(errors="replace"))
                digest.update(b"\x1f")
    return digest.hexdigest()


def nearest(connection: Any, layout: VecLayout, queries: np.ndarray, k: int) -> list[list[Any]]:
    """Return ids of the k nearest of each query, nearest first, by sqlite-vec's own search."""
    table, id, near = quoted(layout.table), quoted(layout.id), quoted(layout.vector.name)
    value = layout.vector.value()
    query = f"SELECT {id} FROM {table} WHERE {near} MATCH {value} AND k = {int(k)} ORDER BY distance"
    if k > NEAREST:
        distance = f"{DISTANCES[layout.vector.metric]}({near}, {value})"
        query = f"SELECT {id} FROM {table} ORDER BY {distance} LIMIT {int(k)}"
    encoded = pack(layout.vector, np.asarray(queries))
    return [[row[0] for row in connection.execute(query, [vector])] for vector in encoded]


def metric_of(layout: VecLayout) -> str:
    """Return the metric, as hubless calls it."""
    return METRICS[layout.vector.metric]
