"""A table of PostgreSQL with a vector column of pgvector.

Every verb has a session of its own and is one transaction, so nothing is left half done. Green is a table
beside blue; its mark is the comment of its vector column, which goes with it through every renaming.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from . import pg_rows, pg_switch
from .pg_catalog import VECTOR_TYPES, Path, Table, compose, literal, look, oid_of, path_of, shown
from .pg_session import SCHEMES, Server
from .pg_switch import Note
from .store import METRICS, ROWS, Batch, Facts, Mark, Store, StoreError, need

PATIENCE = 10  # seconds that a switch waits for those who use the table
REMAKE = "Drop the moved one and apply again."


class PgTable(Store):
    """A table with a column of type vector or halfvec.

    Parameters
    ----------
    address : str
        postgresql://user:password@host:port/database. The password is never shown.
    table : str
        As items, app.items, or with parts in double quotes as in SQL. A bare name is of the schema public.
    vector : str, optional
        The vector column, where there are several.
    id : str, optional
        The column of ids, where the primary key is not one column; its values must be unique.
    metric : "l2", "cosine" or "ip", optional
        How queries compare, where no index tells it; L2 where nothing does.
    """

    def __init__(
        self,
        address: str,
        table: str,
        *,
        vector: str | None = None,
        id: str | None = None,
        metric: str | None = None,
    ) -> None:
        if metric not in (None, *METRICS):
            raise StoreError(f"metric is {metric!r}: expected one of {', '.join(METRICS)}.")
        self._server = Server(address)
        self._path = path_of(table)
        self._given = {"vector": vector, "id": id, "metric": metric}
        self.name = f"{self._server.place}#{shown(self._path)}"

    def __repr__(self) -> str:
        return f"PgTable({self.name!r})"

    # --- to read -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        with self._session() as connection:
            return oid_of(connection, self._path) is not None

    def facts(self) -> Facts:
        with self._session() as connection:
            table = self._look(connection)
            (count,) = connection.execute(compose("SELECT count(*) FROM {t}", t=table.path)).fetchone()
            indexes = [", ".join([index.method.upper(), *index.options]) for index in table.vector_indexes]
            return Facts(
                kind="pgvector table",
                metric=self._metric(table),
                dimension=pg_rows.form_of(connection, table)["numbers"].shape[0],
                count=count,
                dtype=VECTOR_TYPES[table.vector.type],
                index="; ".join(indexes) or "exhaustive",
                columns=tuple(column.name for column in table.others),
            )

    def mark(self) -> Mark | None:
        with self._session() as connection:
            note = self._note(self._look(connection))
            return None if note is None else note.mark

    def state(self) -> str:
        with self._session() as connection:
            return pg_rows.state(connection, self._path)

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        with self._session(is_snapshot=True) as connection:
            table = self._look(connection)
            form = pg_rows.form_of(connection, table)
            with connection.cursor("hubless", binary=True) as cursor:
                cursor.execute(pg_rows.select(table, columns))
                while rows := cursor.fetchmany(size):
                    yield pg_rows.batch_of(table, form, rows, columns)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        with self._session() as connection:
            table = self._look(connection)
            asked = pg_rows.known_ids(table, ids)
            every, among = pg_rows.select(table, columns), pg_rows.among(table, asked)
            query = compose("{every} WHERE {among}", every=every, among=among)
            found = {row[0]: row for row in connection.execute(query, binary=True)}
            rows = [found[i] for i in asked if i in found]
            return pg_rows.batch_of(table, pg_rows.form_of(connection, table), rows, columns)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        with self._session() as connection:
            table = self._look(connection)
            return pg_rows.nearest(connection, table, self._metric(table), queries, k)

    def holds(self, ids: np.ndarray) -> np.ndarray:
        with self._session() as connection:
            table = self._look(connection)
            among = pg_rows.among(table, pg_rows.known_ids(table, ids.tolist()))
            parts = {"id": table.id_given, "table": table.path, "among": among}
            query = compose("SELECT {id} FROM {table} WHERE {among}", **parts)
            found = {i for (i,) in connection.execute(query)}
        return np.array([i in found for i in ids.tolist()], dtype=bool)

    def ids(self) -> Iterator[np.ndarray]:
        with self._session(is_snapshot=True) as connection:
            table = self._look(connection)
            with connection.cursor("hubless", binary=True) as cursor:
                cursor.execute(compose("SELECT {id} FROM {table}", id=table.id_given, table=table.path))
                while rows := cursor.fetchmany(ROWS):
                    yield pg_rows.id_array(table, rows)

    # --- to build beside it --------------------------------------------------------------------------------

    def beside(self, name: str) -> "PgTable":
        if name.startswith(SCHEMES):
            address, _, name = name.partition("#")
            place = Server(address).place
            if place != self._server.place:
                raise StoreError(f"{place}#{name} is in another database than {self.name}.")
        table = copy(self)
        table._path = path_of(name, self._path[0])
        table.name = f"{self._server.place}#{shown(table._path)}"
        return table

    @contextmanager
    def lock(self) -> Iterator[None]:
        with self._session(autocommit=True) as connection:
            self._claim(connection, "pg_try_advisory_lock")
            yield

    def begin(self, blue: "PgTable", mark: Mark) -> None:
        with self._session() as connection:
            source = blue._look(connection)
            pg_switch.refuse_ties(connection, source)
            if self._path[0] != source.path[0]:
                raise StoreError(f"{self.name} must be in the schema of {blue.name}: a switch is a renaming.")
            if oid_of(connection, self._path) is None:
                pg_switch.make_twin(connection, source, self._path)
            else:
                self._go_on(connection, source, mark)
            pg_switch.set_note(connection, self._look(connection), Note(mark, self._path[1], ""))

    def stale(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        with self._session() as connection:
            return pg_rows.differing(connection, *self._pair(connection), batch, moved)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        with self._session() as connection:
            pg_rows.write(connection, *self._pair(connection), batch, moved)

    def remove(self, ids: np.ndarray) -> None:
        with self._session() as connection:
            green, _ = self._pair(connection)
            among = pg_rows.among(green, ids.tolist())
            connection.execute(compose("DELETE FROM {green} WHERE {among}", green=green.path, among=among))

    def finish(self, blue: "PgTable", mark: Mark) -> None:
        with self._session() as connection:
            green, source = self._pair(connection)
        for index in pg_switch.missing_indexes(source, green):  # one by one: what is built stays built
            with self._session() as connection:
                pg_switch.build_index(connection, index, green.path)
        with self._session() as connection:
            connection.execute(compose("ANALYZE {green}", green=green.path))
            own = pg_rows.state(connection, green.path)
            pg_switch.set_note(connection, green, Note(mark, self._path[1], own))

    # --- to switch -----------------------------------------------------------------------------------------

    def promote(self, green: "PgTable") -> str:
        with self._switching(green._path) as connection:
            green._claim(connection, "pg_try_advisory_xact_lock")
            blue, moved = self._look(connection), green._look(connection)
            note = self._note(moved)
            pg_switch.refuse_ties(connection, blue)
            pg_switch.refuse_other_shape(connection, blue, moved, REMAKE)
            lacks = pg_switch.missing_indexes(blue, moved)
            if note is None or lacks or note.mark.state != pg_rows.state(connection, self._path):
                raise StoreError(f"{self.name} changed since {green.name} was made: apply again.")
            kept = pg_switch.free_name(connection, self._path[0], f"{self._path[1]}_original")
            unchecked = pg_switch.switch(connection, blue, kept, moved)
            original = shown((self._path[0], kept))
            note = note._replace(mark=replace(note.mark, original=original))
            pg_switch.set_note(connection, self._look(connection), note)
        self._validate(unchecked)
        return original

    def rollback(self) -> str:
        with self._session() as connection:
            original = self._promoted(self._look(connection))
        with self._switching(original) as connection:
            moved, blue = self._look(connection), self.beside(shown(original))._look(connection)
            note = self._note(moved)
            if note is None or self._promoted(moved) != original:
                raise StoreError(f"{self.name} was switched by somebody else just now: look again.")
            pg_switch.refuse_ties(connection, moved)
            pg_switch.refuse_other_shape(connection, moved, blue, "Make them the same first.")
            kept = pg_switch.free_name(connection, original[0], note.former)
            unchecked = pg_switch.switch(connection, moved, kept, blue)
            back = self.beside(shown((original[0], kept)))
            note = note._replace(mark=replace(note.mark, original=None), former=kept)
            pg_switch.set_note(connection, back._look(connection), note)
        self._validate(unchecked)
        return shown(back._path)

    # --- sessions ------------------------------------------------------------------------------------------

    def _session(self, **options: bool) -> Any:
        return self._server.session(self.name, **options)

    @contextmanager
    def _switching(self, other: Path) -> Iterator[Any]:
        """A transaction in which nobody else writes to this table or the other one; they can be read."""
        with self._session() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{PATIENCE}s"])
            connection.execute(
                compose("LOCK TABLE {one}, {other} IN SHARE ROW EXCLUSIVE MODE", one=self._path, other=other)
            )
            yield connection

    def _claim(self, connection: Any, function: str) -> None:
        key = literal(f"hubless {shown(self._path)}")
        query = compose("SELECT {function}(hashtextextended({key}, 0))", function=function, key=key)
        if not connection.execute(query).fetchone()[0]:
            raise StoreError(f"{self.name} is being built by somebody else. Wait for that to end.")

    def _validate(self, foreign_keys: list[str]) -> None:
        # Rows that the new ones may refer to can be gone after a rollback; such a key stays, for new rows.
        for name in foreign_keys:
            with self._session() as connection, suppress(need("psycopg", "pgvector").IntegrityError):
                statement = compose("ALTER TABLE {t} VALIDATE CONSTRAINT {name}", t=self._path, name=name)
                connection.execute(statement)

    # --- what is known of it -------------------------------------------------------------------------------

    def _look(self, connection: Any) -> Table:
        return look(connection, self._path, self._given["id"], self._given["vector"])

    def _pair(self, connection: Any) -> tuple[Table, Table]:
        """Green, which this is, and blue."""
        green = self._look(connection)
        note = self._note(green)
        if note is None:
            raise StoreError(f"{self.name} was not made by hubless.")
        return green, self.beside(note.mark.source)._look(connection)

    def _metric(self, table: Table) -> str:
        found = {index.metric or index.operators for index in table.vector_indexes}
        asked = self._given["metric"]
        if not found or asked in found:
            return asked or "l2"
        if asked is None and len(found) == 1 and found <= set(METRICS):
            return found.pop()
        raise StoreError(
            f"{self.name} has an index for {' and for '.join(sorted(found))}, the metric given is {asked}: "
            f"expected one of {', '.join(METRICS)} that there is an index for."
        )

    def _note(self, table: Table) -> Note | None:
        return pg_switch.read_note(table, self._server.place)

    def _go_on(self, connection: Any, blue: Table, mark: Mark) -> None:
        """Make ready what an apply before left; StoreError where that was of another model or source."""
        green = self._look(connection)
        note = self._note(green)
        told = None
        if note is None:
            told = "not made by hubless"
        elif (note.mark.model, note.mark.source) != (mark.model, mark.source):
            told = f"{note.mark.source} moved by {note.mark.model[:12]}"
        elif note.mark.done and note.own != pg_rows.state(connection, self._path):
            told = "with rows that somebody else wrote, as while it served, and that would be lost"
        if told is not None:
            raise StoreError(f"{self.name} is there already, {told}. Choose another name, or drop it.")
        pg_switch.refuse_other_shape(connection, blue, green, REMAKE)
        pg_switch.drop_guards(connection, green)

    def _promoted(self, table: Table) -> Path:
        """Where its original is kept."""
        note = self._note(table)
        if note is None or note.mark.original is None or note.mark.source != self.name:
            raise StoreError(f"{self.name} was not promoted under this name: there is nothing to roll back.")
        return path_of(note.mark.original)
