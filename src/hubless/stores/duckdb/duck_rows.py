"""Rows of a DuckDB table, as Arrow and NumPy, and back. Other columns than vectors never leave the engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...support.imports import need
from ..arrow_columns import as_column, as_list, as_matrix
from ..checks import as_float, check_columns
from ..sql.sql_names import listed, quoted
from ..store import Batch, StoreError, agree
from .duck_catalog import LARGE, SMALL, DuckLayout
from .duck_session import EXTRA

DISTANCES = {
    "l2": "array_distance",
    "cosine": "array_cosine_distance",
    "ip": "array_negative_inner_product",
}
SENT = "hubless sent rows"  # the name of what is sent to the engine, which it sees as a view


def width_of(connection: Any, layout: DuckLayout) -> int:
    """Return the width of the vectors: that of the type, or of the first one."""
    if layout.width is not None:
        return layout.width
    vector = f"t.{quoted(layout.vector.name)}"
    query = f"SELECT len({vector}) FROM {layout.place} t WHERE {vector} IS NOT NULL LIMIT 1"
    rows = connection.execute(query).fetchall()
    return int(rows[0][0]) if rows else 0


def known_ids(layout: DuckLayout, ids: Sequence[Any]) -> list[Any]:
    """Return ids as the table has them, without those that it cannot have."""
    if layout.id.type in SMALL:
        whole = [int(i) for i in ids if isinstance(i, int | np.integer)]
        return [i for i in whole if -(2**63) <= i < 2**63]
    if layout.id.type in LARGE:
        return [str(int(i)) for i in ids if isinstance(i, int | np.integer)]
    return [i for i in ids if isinstance(i, str)]


def ids_of(layout: DuckLayout, column: Any) -> np.ndarray:
    """Return the ids of an Arrow column."""
    if column.null_count:
        raise StoreError(f"{column.null_count} ids are null, and every row needs one. Repair these rows.")
    if layout.id.type in SMALL:
        return np.asarray(column.to_numpy(), dtype=np.int64)
    values = column.to_pylist()
    return np.array([int(value) for value in values] if layout.id.type in LARGE else values, dtype=object)


def selected(layout: DuckLayout, columns: Sequence[str]) -> str:
    """Return what is read of a row: id, vector and other columns, of the table t."""
    check_columns(layout.table, columns, [column.name for column in layout.columns])
    more = "".join(f", t.{quoted(name)} AS c{place}" for place, name in enumerate(columns))
    return f"{layout.read_id('t')} AS id, t.{quoted(layout.vector.name)} AS vector{more}"


def batch_of(layout: DuckLayout, width: int, rows: Any, columns: Sequence[str]) -> Batch:
    """Return Arrow rows of `selected` as a batch."""
    vectors = as_float(as_matrix(rows.column("vector"), width, layout.table))
    values = {name: as_list(rows.column(f"c{place}")) for place, name in enumerate(columns)}
    return Batch(ids_of(layout, rows.column("id")), vectors, values)


def batches(connection: Any, layout: DuckLayout, columns: Sequence[str], size: int) -> Iterator[Batch]:
    """Yield all rows, at most `size` at a time, of one moment."""
    arrow, width = need("pyarrow", EXTRA), width_of(connection, layout)
    query = f"SELECT {selected(layout, columns)} FROM {layout.place} t"
    for rows in connection.sql(query).to_arrow_reader(size):
        for start in range(0, rows.num_rows, size):
            yield batch_of(layout, width, arrow.Table.from_batches([rows.slice(start, size)]), columns)


def every_id(connection: Any, layout: DuckLayout, size: int) -> Iterator[np.ndarray]:
    """Yield all ids."""
    reader = connection.sql(f"SELECT {layout.read_id('t')} AS id FROM {layout.place} t")
    for rows in reader.to_arrow_reader(size):
        yield ids_of(layout, rows.column("id"))


@contextmanager
def sent(
    connection: Any, layout: DuckLayout, ids: list[Any], moved: np.ndarray | None = None
) -> Iterator[str]:
    """Send ids, and vectors, to the engine; yield what stands after FROM: they are m, and rows of t join."""
    arrow = need("pyarrow", EXTRA)
    kind = arrow.int64() if layout.id.type in SMALL else arrow.string()
    columns = {"place": arrow.array(np.arange(len(ids))), "id": arrow.array(ids, kind)}
    if moved is not None:
        number = arrow.float64() if layout.number == "DOUBLE" else arrow.float32()
        columns["vector"] = as_column(moved, arrow.list_(number, moved.shape[1]))
    connection.register(SENT, arrow.table(columns))
    try:
        yield f"{quoted(SENT)} m JOIN {layout.place} t ON {same_id(layout, 't')}"
    finally:
        connection.unregister(SENT)


def sent_id(layout: DuckLayout) -> str:
    """Return an id that was sent in the type of the column; null where that type cannot have it."""
    return f"TRY_CAST(m.id AS {layout.id.type})"


def same_id(layout: DuckLayout, table: str) -> str:
    """Return the condition that a row of a table has an id that was sent."""
    return f"{table}.{quoted(layout.id.name)} = {sent_id(layout)}"


def fetch(connection: Any, layout: DuckLayout, ids: Sequence[Any], columns: Sequence[str]) -> Batch:
    """Return the rows with these ids, in this order, without those that do not exist."""
    with sent(connection, layout, known_ids(layout, ids)) as rows:
        query = f"SELECT {selected(layout, columns)} FROM {rows} ORDER BY m.place"
        found = connection.sql(query).to_arrow_table()
    return batch_of(layout, width_of(connection, layout), found, columns)


def are_there(connection: Any, layout: DuckLayout, ids: Sequence[Any]) -> set[Any]:
    """Return those of some ids that the table has."""
    with sent(connection, layout, known_ids(layout, ids)) as rows:
        found = connection.sql(f"SELECT {layout.read_id('t')} AS id FROM {rows}").to_arrow_table()
    return set(ids_of(layout, found.column("id")).tolist())


def differing(
    connection: Any, green: DuckLayout, blue: DuckLayout, batch: Batch, moved: np.ndarray
) -> np.ndarray:
    """Say which rows green lacks or has with other values; bool (n,). Generated columns are not compared."""
    names = [column.name for column in blue.copied]
    # a hash compares every type, and texts without their collation
    alike = f"hash({listed(names, 't.')}) = hash({listed(names, 'b.')})" if names else "true"
    with sent(connection, green, known_ids(green, batch.ids.tolist())) as rows:
        query = (
            f"SELECT m.place, t.{quoted(green.vector.name)} AS vector FROM {rows} "
            f"JOIN {blue.place} b ON {same_id(blue, 'b')} WHERE {alike}"
        )
        found = connection.sql(query).to_arrow_table()
    places = np.asarray(found.column("place").to_numpy())
    stored = as_float(as_matrix(found.column("vector"), moved.shape[1], green.table))
    is_outdated = np.ones(len(batch.ids), dtype=bool)
    is_outdated[places] = ~agree(stored, moved[places], "float32")
    return is_outdated


def write(connection: Any, green: DuckLayout, blue: DuckLayout, batch: Batch, moved: np.ndarray) -> None:
    """Write rows of blue, as they are now, with moved vectors; rows that green has are replaced."""
    ids = known_ids(green, batch.ids.tolist())
    names = [green.id.name, *(column.name for column in blue.copied)]
    type = f"{green.number}[{green.width or ''}]"
    with sent(connection, blue, ids, moved) as rows:
        there = f"SELECT {sent_id(green)} FROM {quoted(SENT)} m"
        connection.execute(f"DELETE FROM {green.place} WHERE {quoted(green.id.name)} IN ({there})")
        connection.execute(
            f"INSERT INTO {green.place} ({quoted(green.vector.name)}, {listed(names)}) "
            f"SELECT m.vector::{type}, {listed(names, 't.')} FROM {rows}"
        )


def remove(connection: Any, layout: DuckLayout, ids: Sequence[Any]) -> None:
    """Delete the rows with these ids."""
    with sent(connection, layout, known_ids(layout, ids)):
        there = f"SELECT {sent_id(layout)} FROM {quoted(SENT)} m"
        connection.execute(f"DELETE FROM {layout.place} WHERE {quoted(layout.id.name)} IN ({there})")


def state(connection: Any, layout: DuckLayout) -> str:
    """Return the number of rows and the sum of their hashes, in any order: any change of a row changes it."""
    query = f"SELECT count(*), sum(hash(t)::HUGEINT) FROM {layout.place} t"
    count, total = connection.execute(query).fetchall()[0]
    return f"{count} rows, {total or 0}"


def nearest(connection: Any, layout: DuckLayout, metric: str, queries: np.ndarray, k: int) -> list[list[Any]]:
    """Return ids of the k nearest of each query, nearest first."""
    type = f"{layout.number}[{width_of(connection, layout)}]"
    column = f"t.{quoted(layout.vector.name)}"
    column = column if layout.width is not None else f"{column}::{type}"
    # ORDER BY a distance to a constant, and LIMIT: what DuckDB answers by an HNSW index, where there is one
    query = (
        f"SELECT {layout.read_id('t')}, {column} IS NULL FROM {layout.place} t "
        f"ORDER BY {DISTANCES[metric]}({column}, ?::{type}) NULLS LAST LIMIT {int(k)}"
    )
    read = int if layout.id.type in LARGE else lambda value: value
    found = [connection.execute(query, [row]).fetchall() for row in np.asarray(queries).tolist()]
    return [[read(id) for id, is_null in rows if not is_null] for rows in found]
