"""PostgreSQL: a table with vectors of pgvector.

Every method is one transaction in a session of its own, so nothing is left half done. Green is another table
of the same schema; its mark is the comment of its vector column, which stays when the table is renamed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ...support.imports import need
from ..checks import changed_since
from ..database import Database
from ..kinds import METRICS
from ..reconcile import Reconcile
from ..store import ROWS, Batch, Facts, Mark, StoreError
from . import pg_checks, pg_rows, pg_switch
from .pg_catalog import Path, Table, compose, ending, literal, oid_of, path_of, read_catalog, shown
from .pg_locking import Clock, lock_readers_out, while_writers_wait
from .pg_reconcile import catch_up, changed_rows, difference, moment, move_again, too_many_rows
from .pg_session import SCHEMES, Server
from .pg_switch import PgMark, read_mark, set_mark

FEW, PASSES = 100, 5  # rows that are left for the switch itself; passes to get there while others write
REMAKE = "Drop the moved one and apply again."


class PgTable(Database):
    """A table with a column of type vector or halfvec.

    The address is postgresql://user:password@host:port/database; the password is never shown. A table is, for
    example, items, app.items, or has parts in double quotes as in SQL; a bare name is in the schema public.
    By default ids are the primary key, and without an index that says so, the metric is L2.
    """

    schemes = SCHEMES
    can_reconcile = True
    _source: "PgTable"  # of a moved table that is being built
    _path: Path = ("public", "")  # the schema of bare names

    def __init__(self, address: str, table: str, **options: Any) -> None:
        self._server = Server(address)
        super().__init__(address, table, **options)

    def place(self, address: str) -> str:
        return Server(address).place

    def rename(self, table: str) -> None:
        self._path = path_of(table, self._path[0])
        self.name = f"{self.address}#{shown(self._path)}"

    @property
    def moved_name(self) -> str:
        return shown((ending(self._path[1], "_moved"),))

    def _session(self, **options: bool) -> AbstractContextManager[Any]:
        return self._server.session(self.name, **options)

    @contextmanager
    def _opened(self, **options: bool) -> Iterator[Table]:
        """Open a session on the table."""
        with self._session(**options) as connection:
            yield self._read_catalog(connection)

    def _reading(self) -> AbstractContextManager[Table]:
        return self._opened(read_only=True)

    def _read_catalog(self, connection: Any) -> Table:
        return read_catalog(connection, self._path, self.id, self.vector)

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        with self._session(read_only=True) as connection:
            return oid_of(connection, self._path) is not None

    def facts(self) -> Facts:
        with self._reading() as table:
            (count,) = table.run("SELECT count(*) FROM {table}").fetchone()
            indexes = [", ".join([index.method.upper(), *index.options]) for index in table.vector_indexes]
            return Facts(
                kind="pgvector table",
                metric=self._metric(table),
                dimension=pg_rows.form_of(table)["numbers"].shape[0],
                count=count,
                dtype=table.dtype,
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
        with self._reading() as table:
            return self._mark(table)

    def _mark(self, table: Table) -> PgMark | None:
        return read_mark(table, self.address)

    def state(self) -> str:
        with self._reading() as table:
            return pg_rows.state(table)

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        with self._opened(is_snapshot=True, read_only=True) as table:
            form = pg_rows.form_of(table)
            for rows in pg_rows.pages(table, pg_rows.select(table, columns), size):
                yield pg_rows.batch_of(table, form, rows, columns)

    def ids(self) -> Iterator[np.ndarray]:
        with self._opened(is_snapshot=True, read_only=True) as table:
            for rows in pg_rows.pages(table, table.compose("SELECT {id_read} FROM {table}"), ROWS):
                yield pg_rows.id_array(table, rows)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        with self._reading() as table:
            return pg_rows.fetch(table, ids, columns)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        with self._reading() as table:
            among = pg_rows.among(table, pg_rows.known_ids(table, ids.tolist()))
            known = {i for (i,) in table.run("SELECT {id_read} FROM {table} WHERE {among}", among=among)}
        return np.array([i in known for i in ids.tolist()], dtype=bool)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        with self._reading() as table:
            return pg_rows.nearest(table, self._metric(table), queries, k)

    # --- building green ------------------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[None]:
        with self._session(autocommit=True) as connection:
            self._claim(connection, "pg_try_advisory_lock")
            try:
                yield
            finally:  # the server would free it too, some time after the connection is closed
                with suppress(need("psycopg", "pgvector").Error):
                    self._on_lock(connection, "pg_advisory_unlock")

    def _on_lock(self, connection: Any, function: str) -> bool:
        key = literal(f"hubless {shown(self._path)}")
        query = "SELECT {function}(pg_catalog.hashtextextended({key}, 0::bigint))"
        query = compose(query, function=("pg_catalog", function), key=key)
        return bool(connection.execute(query).fetchone()[0])

    def _claim(self, connection: Any, function: str) -> None:
        if not self._on_lock(connection, function):
            raise StoreError(f"another process is building {self.name}. Wait until it has finished.")

    def begin(self, blue: "PgTable", mark: Mark) -> None:
        if self._path[0] != blue._path[0]:
            raise StoreError(f"{self.name} must be in the schema of {blue.name}: a switch renames tables.")
        self._source = blue
        with blue._opened() as source:
            since = moment(source)
            pg_checks.check_switchable(source)
            pg_checks.check_indexable(source, mark.width)
            if oid_of(source.connection, self._path) is None:
                green = pg_switch.make_twin(source, self._path, mark.width)
            else:
                self.check_resumable(blue, mark)
                green = self._read_catalog(source.connection)
                pg_checks.check_pair(source, green, REMAKE, mark.width)
                self._check_unchanged(green)
                pg_switch.drop_unique_indexes(green)
            set_mark(green, PgMark(**vars(mark), former=self._path[1], since=since))

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
        with self._opened() as green:
            pg_rows.remove(green, ids.tolist())

    def catch_up(self, blue: "PgTable", mark: Mark, reconcile: Reconcile) -> tuple[str, int]:
        with self._session(is_snapshot=True) as connection:
            source, green = blue._read_catalog(connection), self._read_catalog(connection)
            begun = self._begun(green)
            rows = catch_up(source, green, replace(begun, state=mark.state), reconcile)
            return rows.state, len(rows)

    def finish(self, blue: "PgTable", mark: Mark) -> None:
        with self._pair() as (green, source):
            missing = pg_switch.missing_indexes(source, green)
        for index in missing:  # one by one: what is built stays built
            with self._opened() as green:
                pg_switch.build_index(green, index)
        with self._opened() as green:
            green.run("ANALYZE {table}")
            finished = pg_rows.state(green)
            set_mark(green, replace(self._begun(green), **vars(mark), finished_state=finished))

    def _begun(self, green: Table) -> PgMark:
        mark = self._mark(green)
        if mark is None:
            raise StoreError(f"{self.name} lost its mark. Remove it, and apply again.")
        return mark

    @contextmanager
    def _pair(self) -> Iterator[tuple[Table, Table]]:
        """Open a session on green, which this is, and on blue: the table of `begin`, whatever marks say."""
        with self._opened() as green:
            yield green, self._source._read_catalog(green.connection)

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green: "PgTable", reconcile: Reconcile | None = None) -> str:
        seen: dict[Any, str] = {}
        for _ in range(PASSES):
            if reconcile is None or self._catch_up(green, reconcile, seen) <= FEW:
                break

        def work(blue: Table, moved: Table, clock: Clock) -> tuple[Path, list[str]]:
            mark = self._check_promotable(green, blue, moved)
            clock.check()
            rows = difference(blue, moved, mark, seen)
            if rows and reconcile is None:
                raise changed_rows(self.name, green.name, len(rows))
            if rows and reconcile is not None:
                if len(rows) > reconcile.rows:
                    raise too_many_rows(self.name, len(rows), reconcile.rows)
                mark = move_again(blue, moved, mark, rows, reconcile, clock.check)
            clock.check()
            lock_readers_out(self.name, blue, moved)
            kept, unchecked = pg_switch.switch(blue, f"{self._path[1]}_original", moved, REMAKE, mark.width)
            set_mark(replace(moved, path=self._path), replace(mark, original=shown(kept)))
            return kept, unchecked

        return self._switch(green, work, None if reconcile is None else reconcile.seconds)

    def _catch_up(self, green: "PgTable", reconcile: Reconcile, seen: dict[Any, str]) -> int:
        """Move what changed since green was made, while others write; return the number of rows."""
        with self._session(is_snapshot=True) as connection:
            blue, moved = self._read_catalog(connection), green._read_catalog(connection)
            mark = self._check_promotable(green, blue, moved)
            rows = catch_up(blue, moved, mark, reconcile, seen)
        seen.update(rows.changed)
        return len(rows)

    def _check_promotable(self, green: "PgTable", blue: Table, moved: Table) -> PgMark:
        """Return the mark of green; StoreError unless it is finished and as it was then."""
        green._claim(blue.connection, "pg_try_advisory_xact_lock")
        mark = self._mark(moved)
        is_mine = mark is not None and mark.done and green.is_made_from(self, mark)
        if mark is None or not is_mine or self._mark(blue) is not None:
            raise changed_since(self.name, green.name)
        pg_checks.check_pair(blue, moved, REMAKE, mark.width)
        if pg_switch.missing_indexes(blue, moved):
            raise changed_since(self.name, green.name)
        green._check_unchanged(moved)
        return mark

    def rollback(self) -> str:
        original = self._original()

        def work(moved: Table, blue: Table, clock: Clock) -> tuple[Path, list[str]]:
            mark = self._mark(moved)
            if mark is None or mark.original != shown(original._path):
                raise StoreError(f"{self.name} was switched by another process just now: check its status.")
            lock_readers_out(self.name, moved, blue)
            advice, wanted = "Make them alike first.", mark.former or f"{self._path[1]}_moved"
            kept, unchecked = pg_switch.switch(moved, wanted, blue, advice, mark.width)
            set_mark(replace(moved, path=kept), replace(mark, original=None, former=kept[1]))
            return kept, unchecked

        return self._switch(original, work)

    def _original(self) -> "PgTable":
        """Return the original of a promoted table."""
        mark = self.mark()
        if mark is None or mark.original is None or mark.source != self.name:
            raise StoreError(f"{self.name} was not promoted under this name: there is nothing to roll back.")
        return self.sibling(mark.original)

    def _switch(
        self,
        other: "PgTable",
        work: Callable[[Table, Table, Clock], tuple[Path, list[str]]],
        seconds: float | None = None,
    ) -> str:
        """Let `work` switch from this table to the other; return the name of what is kept."""

        def catalogued(connection: Any, clock: Clock) -> tuple[Path, list[str]]:
            return work(self._read_catalog(connection), other._read_catalog(connection), clock)

        paths = [self._path, other._path]
        kept, unchecked = while_writers_wait(self._session, self.name, paths, catalogued, seconds)
        # Rows that the new ones refer to may be gone after a rollback; such a key stays, for new rows.
        for name in unchecked:
            with self._opened() as table, suppress(need("psycopg", "pgvector").IntegrityError):
                table.run("ALTER TABLE {table} VALIDATE CONSTRAINT {name}", name=name)
        return shown(kept)
