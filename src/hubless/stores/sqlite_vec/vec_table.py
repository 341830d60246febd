"""sqlite-vec: a vec0 table of an SQLite file.

Every method is one transaction, or one for each page of rows, in a connection of its own, so other programs
can read and write in between. Green is another vec0 table of the file.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np

from ..checks import check_columns, pad_ids
from ..sql.sql_names import quoted
from ..sql.sql_table import SqlTable
from ..store import ROWS, Batch, Facts, StoreError
from . import vec_rows
from .vec_layout import SUFFIXES, VecLayout, check_shadows, check_triggers, read_layout
from .vec_session import session


class VecTable(SqlTable):
    """A vec0 table of an SQLite file, `sqlite:FILE#TABLE`.

    Ids are its primary key, or else its row numbers; columns are those of metadata, partition keys, auxiliary
    columns and further vectors. The metric is the one that the table is declared with.
    """

    schemes = ("sqlite:",)
    may_lack_vectors = False

    @classmethod
    def from_source(cls, source: str, *, id: str | None = None, **options: Any) -> Self:
        if id is not None:
            raise StoreError("ids of a sqlite-vec table are its primary key already; leave out --id.")
        return super().from_source(source, **options)

    def _session(self, *, writes: bool = False) -> AbstractContextManager[Any]:
        return session(self.name, self.file, writes=writes)

    def _layout(self, connection: Any) -> VecLayout:
        layout = read_layout(connection, self.name, self.table, self.vector)
        check_shadows(connection, self.name, layout)
        return layout

    def _has(self, connection: Any, name: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE lower(name) = lower(?)"
        return connection.execute(query, [name]).fetchone() is not None

    def _names(self, table: str) -> list[str]:
        return [table, *(f"{table}_{suffix}" for suffix in SUFFIXES)]

    # --- reading -------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        with self._session() as connection:
            layout = self._layout(connection)
            (count,) = connection.execute(f"SELECT count(*) FROM {layout.shadow('rowids')}").fetchone()
        vector, metric = layout.vector, vec_rows.metric_of(layout)
        if self.metric not in (None, metric):
            raise StoreError(
                f"{self.name} compares by {metric}; got metric={self.metric!r}. Leave the metric out: the "
                "table is declared with its own."
            )
        is_float = vector.type == "float"
        why = f"keeps vectors of {vector.type}, in which a moved vector would be rounded to nothing of use"
        return Facts(
            kind="sqlite-vec table",
            metric=metric,
            dimension=vector.width,
            count=count,
            dtype="float32" if is_float else vector.type,
            index="exhaustive",
            columns=tuple(column.name for column in layout.others),
            is_exact=is_float,
            **({} if is_float else {"why_inexact": why}),
        )

    def _state(self, connection: Any) -> str:
        return vec_rows.state(connection, self._layout(connection))

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        after, is_first = -1, True
        while True:
            with self._session() as connection:
                layout = self._layout(connection)
                if is_first:
                    check_columns(self.name, columns, [column.name for column in layout.others])
                ids, vectors, after = vec_rows.pages(connection, self.name, layout, after, size)
                found = list(vec_rows.batches(connection, layout, (ids, vectors), columns, size))
            if not ids:
                return
            is_first = False
            yield from found

    def ids(self) -> Iterator[np.ndarray]:
        with self._session() as connection:
            layout = self._layout(connection)
            yield vec_rows.as_ids(layout, vec_rows.every_id(connection, layout))

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        with self._session() as connection:
            return vec_rows.fetch(connection, self._layout(connection), ids, columns)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        with self._session() as connection:
            known = set(vec_rows.are_there(connection, self._layout(connection), ids.tolist()))
        return np.array([id in known for id in ids.tolist()], dtype=bool)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        with self._session() as connection:
            return pad_ids(vec_rows.nearest(connection, self._layout(connection), queries, k), k)

    # --- building green ------------------------------------------------------------------------------------

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        with self._session(writes=True) as connection:
            vec_rows.write(connection, self._layout(connection), batch, moved)

    def remove(self, ids: np.ndarray) -> None:
        with self._session(writes=True) as connection:
            layout = self._layout(connection)
            vec_rows.remove(connection, layout, vec_rows.known_ids(layout, ids.tolist()))

    def _check_movable(self, connection: Any) -> None:
        check_triggers(connection, self.name, self._layout(connection))

    def _check_alike(self, connection: Any, other: Any, width: int | None) -> None:
        if not self._layout(connection).is_like(other._layout(connection), width):
            raise StoreError(
                f"{self.name} and {other.name} have different columns now. Drop the moved one and apply "
                "again."
            )
        check_triggers(connection, other.name, other._layout(connection))

    def _make_twin(self, connection: Any, blue: Any, width: int | None) -> None:
        declaration = blue._layout(connection).declaration(width)
        connection.execute(f"CREATE VIRTUAL TABLE {quoted(self.table)} USING vec0({declaration})")

    def _switch(self, connection: Any, kept: str, comes: Any) -> None:
        served = self._layout(connection)
        for layout, name in ((served, kept), (comes._layout(connection), served.table)):
            for suffix in layout.suffixes():
                if suffix != "info" or self._has(connection, f"{layout.table}_info"):
                    old, new = layout.shadow(suffix), quoted(f"{name}_{suffix}")
                    connection.execute(f"ALTER TABLE {old} RENAME TO {new}")
            connection.execute(f"ALTER TABLE {quoted(layout.table)} RENAME TO {quoted(name)}")
