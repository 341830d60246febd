"""PostgreSQL: a table with vectors of pgvector.

Every method is one transaction in a session of its own, so nothing is left half done. Green is another table
of the same schema; its mark is the comment of its vector column, which stays when the table is renamed.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ...support.imports import need
from ..checks import changed_since
from ..database import Database
from ..kinds import METRICS
from ..store import ROWS, Batch, Facts, Mark, StoreError
from . import pg_rows, pg_switch
from .pg_catalog import VECTOR_TYPES, Path, Table, compose, literal, oid_of, path_of, read_catalog, shown
from .pg_session import SCHEMES, Server
from .pg_switch import PgMark, read_mark, set_mark

LOCK_TIMEOUT = 10  # seconds that a switch waits for other users of the table
REMAKE = "Drop the moved one and apply again."


class PgTable(Database):
    """A table with a column of type vector or halfvec.

    The address is postgresql://user:password@host:port/database; the password is never shown. A table is, for
    example, items, app.items, or has parts in double quotes as in SQL; a bare name is in the schema public.
    By default ids are the primary key, and without an index that says so, the metric is L2.
    """

    schemes = SCHEMES
    _path: Path = ("public", "")  # the schema of bare names

    def __init__(self, address: str, table: str, **options: Any) -> None:
        self._server = Server(address)
        super().__init__(address, table, **options)

    def place(self, address: str) -> str:
        return Server(address).place

    def rename(self, table: str) -> None:
        self._path = path_of(table, self._path[0])
        self.name = f"{self.address}#{shown(self._path)}"

    def _session(self, **options: bool) -> AbstractContextManager[Any]:
        return self._server.session(self.name, **options)

    @contextmanager
    def _opened(self, **options: bool) -> Iterator[Table]:
        """Open a session on the table."""
        with self._session(**options) as connection:
            yield self._read_catalog(connection)

    def _read_catalog(self, connection: Any) -> Table:
        return read_catalog(connection, self._path, self.id, self.vector)

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        with self._session() as connection:
            return oid_of(connection, self._path) is not None

    def facts(self) -> Facts:
        with self._opened() as table:
            (count,) = table.run("SELECT count(*) FROM {table}").fetchone()
            indexes = [", ".join([index.method.upper(), *index.options]) for index in table.vector_indexes]
            return Facts(
                kind="pgvector table",
                metric=self._metric(table),
                dimension=pg_rows.form_of(table)["numbers"].shape[0],
                count=count,
                dtype=VECTOR_TYPES[table.vector.type],
                index="; ".join(indexes) or "exhaustive",
                columns=tuple(column.name for column in table.others),
            )

    def _metric(self, table: Table) -> str:
        indexed = {index.metric or index.operators for index in table.vector_indexes}
        if not indexed or self.metric in indexed:
            return self.metric or "l2"
        if self.metric is None and len(indexed) == 1 and indexed <= set(METRICS):
            return indexed.pop()
        raise StoreError(
            f"{self.name} has an index for {' and for '.join(sorted(indexed))}; got metric={self.metric!r}. "
            f"Give a metric (--metric) that has an index: one of {', '.join(METRICS)}."
        )

    def mark(self) -> Mark | None:
        with self._opened() as table:
            return self._mark(table)

    def _mark(self, table: Table) -> PgMark | None:
        return read_mark(table, self.address)

    def state(self) -> str:
        with self._opened() as table:
            return pg_rows.state(table)

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        with self._opened(is_snapshot=True) as table:
            form = pg_rows.form_of(table)
            for rows in _pages(table, pg_rows.select(table, columns), size):
                yield pg_rows.batch_of(table, form, rows, columns)

    def ids(self) -> Iterator[np.ndarray]:
        with self._opened(is_snapshot=True) as table:
            for rows in _pages(table, table.compose("SELECT {id_read} FROM {table}"), ROWS):
                yield pg_rows.id_array(table, rows)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        with self._opened() as table:
            wanted = pg_rows.known_ids(table, ids)
            every, among = pg_rows.select(table, columns), pg_rows.among(table, wanted)
            rows = table.run("{every} WHERE {among}", binary=True, every=every, among=among)
            by_id = {row[0]: row for row in rows}
            rows = [by_id[i] for i in wanted if i in by_id]
            return pg_rows.batch_of(table, pg_rows.form_of(table), rows, columns)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        with self._opened() as table:
            among = pg_rows.among(table, pg_rows.known_ids(table, ids.tolist()))
            known = {i for (i,) in table.run("SELECT {id_read} FROM {table} WHERE {among}", among=among)}
        return np.array([i in known for i in ids.tolist()], dtype=bool)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        with self._opened() as table:
            return pg_rows.nearest(table, self._metric(table), queries, k)

    # --- building green ------------------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[None]:
        with self._session(autocommit=True) as connection:
            self._claim(connection, "pg_try_advisory_lock")
            yield

    def _claim(self, connection: Any, function: str) -> None:
        key = literal(f"hubless {shown(self._path)}")
        query = compose("SELECT {function}(hashtextextended({key}, 0))", function=function, key=key)
        if not connection.execute(query).fetchone()[0]:
            raise StoreError(f"another process is building {self.name}. Wait until it has finished.")

    def begin(self, blue: "PgTable", mark: Mark) -> None:
        if self._path[0] != blue._path[0]:
            raise StoreError(f"{self.name} must be in the schema of {blue.name}: a switch renames tables.")
        with blue._opened() as source:
            pg_switch.check_switchable(source)
            pg_switch.check_indexable(source, mark.width)
            if oid_of(source.connection, self._path) is None:
                green = pg_switch.make_twin(source, self._path, mark.width)
            else:
                self.check_resumable(blue, mark)
                green = self._read_catalog(source.connection)
                self._check_unchanged(green)
                pg_switch.check_same_columns(source, green, REMAKE, mark.width)
                pg_switch.drop_unique_indexes(green)
            set_mark(green, PgMark(**vars(mark), former=self._path[1]))

    def _check_unchanged(self, green: Table) -> None:
        mark = self._mark(green)
        if mark is not None and mark.done and mark.finished_state != pg_rows.state(green):
            raise StoreError(
                f"{self.name} exists already, with rows that others wrote, for example while it served: they "
                "would be lost. Give another name, or remove it first."
            )

    def outdated(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        with self._pair() as (green, blue):
            return pg_rows.differing(green, blue, batch, moved)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        with self._pair() as (green, blue):
            pg_rows.write(green, blue, batch, moved)

    def remove(self, ids: np.ndarray) -> None:
        with self._pair() as (green, _):
            green.run("DELETE FROM {table} WHERE {among}", among=pg_rows.among(green, ids.tolist()))

    def finish(self, blue: "PgTable", mark: Mark) -> None:
        with self._pair() as (green, source):
            missing = pg_switch.missing_indexes(source, green)
        for index in missing:  # one by one: what is built stays built
            with self._opened() as green:
                pg_switch.build_index(green, index)
        with self._opened() as green:
            green.run("ANALYZE {table}")
            state = pg_rows.state(green)
            set_mark(green, PgMark(**vars(mark), former=self._path[1], finished_state=state))

    @contextmanager
    def _pair(self) -> Iterator[tuple[Table, Table]]:
        """Open a session on green, which this is, and on blue."""
        with self._opened() as green:
            mark = self._mark(green)
            if mark is None:
                raise StoreError(f"{self.name} was not made by hubless.")
            yield green, self.sibling(mark.source)._read_catalog(green.connection)

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green: "PgTable") -> str:
        with self._switching(green) as (blue, moved):
            green._claim(blue.connection, "pg_try_advisory_xact_lock")
            mark, lacks = self._mark(moved), pg_switch.missing_indexes(blue, moved)
            if mark is None or lacks or mark.state != pg_rows.state(blue):
                raise changed_since(self.name, green.name)
            kept, unchecked = pg_switch.switch(blue, f"{self._path[1]}_original", moved, REMAKE, mark.width)
            set_mark(replace(moved, path=self._path), replace(mark, original=shown(kept)))
        self._validate(unchecked)
        return shown(kept)

    def rollback(self) -> str:
        original = self._original()
        with self._switching(original) as (moved, blue):
            mark = self._mark(moved)
            if mark is None or mark.original != shown(original._path):
                raise StoreError(f"{self.name} was switched by another process just now: check its status.")
            advice = "Make them alike first."
            kept, unchecked = pg_switch.switch(moved, mark.former, blue, advice, mark.width)
            set_mark(replace(moved, path=kept), replace(mark, original=None, former=kept[1]))
        self._validate(unchecked)
        return shown(kept)

    def _original(self) -> "PgTable":
        """Return the original of a promoted table."""
        mark = self.mark()
        if mark is None or mark.original is None or mark.source != self.name:
            raise StoreError(f"{self.name} was not promoted under this name: there is nothing to roll back.")
        return self.sibling(mark.original)

    @contextmanager
    def _switching(self, other: "PgTable") -> Iterator[tuple[Table, Table]]:
        """Open a transaction in which nobody else writes to this table or the other; all can read them."""
        with self._session() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_TIMEOUT}s"])
            lock = "LOCK TABLE {one}, {other} IN SHARE ROW EXCLUSIVE MODE"
            connection.execute(compose(lock, one=self._path, other=other._path))
            yield self._read_catalog(connection), other._read_catalog(connection)

    def _validate(self, foreign_keys: list[str]) -> None:
        # Rows that the new ones refer to may be gone after a rollback; such a key stays, for new rows.
        for name in foreign_keys:
            with self._opened() as table, suppress(need("psycopg", "pgvector").IntegrityError):
                table.run("ALTER TABLE {table} VALIDATE CONSTRAINT {name}", name=name)


def _pages(table: Table, query: Any, size: int) -> Iterator[list[Any]]:
    with table.connection.cursor("hubless", binary=True) as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(size):
            yield rows
