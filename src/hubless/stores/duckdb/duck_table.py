"""DuckDB: a table of a file, with a column of vectors.

Green is another table of the file, with the same columns, checks and defaults. Its indexes, besides those of
keys, are made when it is promoted: an index goes with the served name.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..checks import pad_ids
from ..sql.sql_marks import MARKS
from ..sql.sql_names import quoted
from ..sql.sql_table import SqlTable
from ..store import ROWS, Batch, Facts, Mark, StoreError
from . import duck_rows
from .duck_catalog import HERE, DuckLayout, check_movable, check_triggers, read_catalog
from .duck_session import DuckFile


class DuckTable(SqlTable):
    """A table of a DuckDB file, `duckdb:FILE#TABLE`, in the schema main.

    Vectors are a column of type FLOAT[n], DOUBLE[n] or lists of these. Ids are by default the primary key, or
    else a column `id`. DuckDB keeps no metric with a table; by default it is L2.
    """

    schemes = ("duckdb:",)
    switch_note = "DuckDB lets one program write to a file, alone: programs that use it open it again now."
    _source: "DuckTable"  # of a moved table that is being built

    def __init__(self, address: str, table: str, **options: Any) -> None:
        super().__init__(address, table, **options)
        self._opened = DuckFile(self.file)

    @contextmanager
    def _session(self, *, writes: bool = False) -> Iterator[Any]:
        with self._opened.session(self.name, writes=writes) as connection:
            if writes:
                check_triggers(connection, MARKS, MARKS)
            yield connection

    def _layout(self, connection: Any) -> DuckLayout:
        return read_catalog(connection, self.name, self.table, self.id, self.vector)

    def _has(self, connection: Any, name: str) -> bool:
        query = (
            f"SELECT table_name FROM duckdb_tables() WHERE {HERE} AND lower(table_name) = lower($1) "
            f"UNION ALL SELECT view_name FROM duckdb_views() WHERE {HERE} AND lower(view_name) = lower($1)"
        )
        return bool(connection.execute(query, [name]).fetchall())

    # --- reading -------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        with self._session() as connection:
            layout = self._layout(connection)
            (count,) = connection.execute(f"SELECT count(*) FROM {layout.place}").fetchall()[0]
            is_indexed = any(index.is_hnsw for index in layout.indexes)
            return Facts(
                kind="DuckDB table",
                metric=self._metric(layout),
                dimension=duck_rows.width_of(connection, layout),
                count=count,
                dtype="float64" if layout.number == "DOUBLE" else "float32",
                index="HNSW" if is_indexed else "exhaustive",
                columns=tuple(column.name for column in layout.others),
            )

    def _metric(self, layout: DuckLayout) -> str:
        if self.metric is None and any(index.is_hnsw for index in layout.indexes):
            raise StoreError(
                f"{self.name} has an HNSW index, and DuckDB does not say by which metric: give it (--metric)."
            )
        return self.metric or "l2"

    def _state(self, connection: Any) -> str:
        return duck_rows.state(connection, self._layout(connection))

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        with self._session() as connection:
            yield from duck_rows.batches(connection, self._layout(connection), columns, size)

    def ids(self) -> Iterator[np.ndarray]:
        with self._session() as connection:
            yield from duck_rows.every_id(connection, self._layout(connection), ROWS)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        with self._session() as connection:
            return duck_rows.fetch(connection, self._layout(connection), ids, columns)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        with self._session() as connection:
            known = duck_rows.are_there(connection, self._layout(connection), ids.tolist())
        return np.array([id in known for id in ids.tolist()], dtype=bool)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        with self._session() as connection:
            layout = self._layout(connection)
            return pad_ids(duck_rows.nearest(connection, layout, self._metric(layout), queries, k), k)

    # --- building green ------------------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[None]:
        with super().lock(), self._opened.held(self.name):
            yield

    def begin(self, blue: "DuckTable", mark: Mark) -> None:
        self._source = blue
        super().begin(blue, mark)

    def outdated(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        with self._session() as connection:
            blue = self._source._layout(connection)
            return duck_rows.differing(connection, self._layout(connection), blue, batch, moved)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        with self._session(writes=True) as connection:
            blue = self._source._layout(connection)
            duck_rows.write(connection, self._layout(connection), blue, batch, moved)

    def remove(self, ids: np.ndarray) -> None:
        with self._session(writes=True) as connection:
            duck_rows.remove(connection, self._layout(connection), ids.tolist())

    def _check_movable(self, connection: Any) -> None:
        check_movable(connection, self.name, self._layout(connection))

    def _check_alike(self, connection: Any, other: Any, width: int | None) -> None:
        layout = other._layout(connection)
        if not self._layout(connection).is_like(layout, width):
            raise StoreError(
                f"{self.name} and {other.name} have different columns or checks now. Drop the moved one and "
                "apply again."
            )
        check_triggers(connection, other.name, layout.table)

    def _make_twin(self, connection: Any, blue: Any, width: int | None) -> None:
        layout = blue._layout(connection)
        place = f"main.{quoted(self.table)}"
        connection.execute(layout.sql_of(self.table))
        if width is not None and layout.width is not None:
            vector = quoted(layout.vector.name)
            connection.execute(f"ALTER TABLE {place} ALTER {vector} TYPE {layout.number}[{width}]")
        comments = [("TABLE", place, layout.comment)]
        comments += [("COLUMN", f"{place}.{quoted(c.name)}", c.comment) for c in layout.columns]
        for kind, what, comment in comments:
            if comment is not None:
                text = "'" + comment.replace("'", "''") + "'"
                connection.execute(f"COMMENT ON {kind} {what} IS {text}")

    def _switch(self, connection: Any, kept: str, comes: Any) -> None:
        served, coming = self._layout(connection), comes._layout(connection)
        if coming.indexes:
            raise StoreError(
                f"{comes.name} has the index {coming.indexes[0].name}, which hubless did not make. Drop it."
            )
        for index in served.indexes:  # DuckDB renames no table that has one
            connection.execute(f"DROP INDEX main.{quoted(index.name)}")
        connection.execute(f"ALTER TABLE {served.place} RENAME TO {quoted(kept)}")
        connection.execute(f"ALTER TABLE {coming.place} RENAME TO {quoted(served.table)}")
        for index in served.indexes:
            connection.execute(index.sql)
