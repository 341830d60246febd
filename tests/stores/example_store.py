"""A store as another package would bring it: a plain table of SQLite, `litetable:FILE#TABLE`.

It is the worked example of CONTRIBUTING, and passes the whole contract. A table has the columns id (a whole
number or a text), vector (float32 as bytes) and any others. The marks of all tables are in a table beside
them. A switch renames tables in one transaction.
"""

import hashlib
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from hubless.neighbors.knn import exhaustive
from hubless.stores.checks import changed_since, check_columns, check_promoted, path_lock
from hubless.stores.database import Database
from hubless.stores.store import ROWS, Batch, Facts, Mark, StoreError

MARKS = "CREATE TABLE IF NOT EXISTS hubless_marks (name TEXT PRIMARY KEY, mark TEXT)"


class LiteTable(Database):
    """A table of an SQLite database."""

    schemes = ("litetable:",)

    @classmethod
    def from_source(cls, source, *, vector=None, id=None, **options):
        if vector or id:
            raise StoreError("the columns are always id and vector; leave --vector and --id out.")
        return super().from_source(source, **options)

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self):
        with self._transaction() as database:
            return self._columns(database) != []

    def facts(self):
        with self._transaction() as database:
            columns = self._columns(database)
            if not columns:
                raise StoreError(f"{self.name} does not exist. Give a table of {self.address}.")
            count, size = database.execute(
                f"SELECT count(*), max(length(vector)) FROM {self.quoted}"
            ).fetchone()
            others = tuple(name for name in columns if name not in ("id", "vector"))
            return Facts(
                "SQLite table", self.metric or "l2", (size or 0) // 4, count, "float32", "exhaustive", others
            )

    def mark(self):
        with self._transaction() as database:
            return self._mark(database)

    def state(self):
        with self._transaction() as database:
            return self._state(database)

    def batches(self, columns=(), size=ROWS):
        last = -1
        while True:  # a transaction for each page: others may write between two of them
            with self._transaction() as database:
                names = self._columns(database)
                check_columns(self.name, columns, names)
                query = f"SELECT rowid, {_listed(names)} FROM {self.quoted} WHERE rowid > ? ORDER BY rowid"
                page = database.execute(f"{query} LIMIT ?", [last, size]).fetchall()
            if not page:
                return
            last = page[-1][0]
            yield _batch([row[1:] for row in page], names, columns)

    def fetch(self, ids, columns=()):
        with self._transaction() as database:
            names = self._columns(database)
            query = f"SELECT {_listed(names)} FROM {self.quoted} WHERE id = ?"
            rows = [database.execute(query, [getattr(i, "item", lambda i=i: i)()]).fetchone() for i in ids]
        return _batch([row for row in rows if row is not None], names, columns)

    def search(self, queries, k):
        with self._transaction() as database:
            rows = database.execute(f"SELECT id, vector FROM {self.quoted} ORDER BY rowid").fetchall()
        batch = _batch(rows, ["id", "vector"], ())
        return batch.ids[exhaustive(queries, batch.vectors, k, self.metric or "l2")]

    # --- building green ------------------------------------------------------------------------------------

    def lock(self):
        return path_lock(Path(f"{self.address}.{self.table}"))

    def create(self, blue, mark):
        with self._transaction() as database:
            columns = [name for name in blue._columns(database) if name != "id"]
            database.execute(f"CREATE TABLE {self.quoted} (id PRIMARY KEY, {_listed(columns)})")
            self._put_mark(database, mark)

    def set_mark(self, mark):
        with self._transaction() as database:
            self._put_mark(database, mark)

    def write(self, batch, moved):
        with self._transaction() as database:
            for row, vector in zip(batch.rows, np.asarray(moved, dtype=np.float32), strict=True):
                values = {**row, "vector": None if np.isnan(vector).all() else vector.tobytes()}
                marks = ", ".join("?" * len(values))
                query = f"INSERT OR REPLACE INTO {self.quoted} ({_listed(values)}) VALUES ({marks})"
                database.execute(query, [*values.values()])

    def remove(self, ids):
        with self._transaction() as database:
            database.executemany(f"DELETE FROM {self.quoted} WHERE id = ?", [[i] for i in ids.tolist()])

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green):
        with self._transaction() as database:
            mark = green._mark(database)
            if mark is None or mark.state != self._state(database):
                raise changed_since(self.name, green.name)
            kept = self.sibling(self._free_name(database, f"{self.table}_original"))
            self._rename(database, kept)
            green._rename(database, self)
            self._put_mark(database, replace(mark, original=kept.table))
        return kept.table

    def rollback(self):
        with self._transaction() as database:
            mark = check_promoted(self.name, self._mark(database))
            kept = self.sibling(self._free_name(database, f"{self.table}_moved_{mark.model[:8]}"))
            self._rename(database, kept)
            self.sibling(mark.original)._rename(database, self)
            kept._put_mark(database, replace(mark, original=None))
        return kept.table

    # --- private -------------------------------------------------------------------------------------------

    @property
    def quoted(self):
        return _listed([self.table])

    @contextmanager
    def _transaction(self):
        """Open the database; all is written at the end, or nothing after an error."""
        with closing(sqlite3.connect(self.address, isolation_level=None, timeout=600)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(MARKS)
            with database:
                yield database

    def _columns(self, database):
        return [row[1] for row in database.execute(f"PRAGMA table_info({self.quoted})")]

    def _state(self, database):
        rows = database.execute(f"SELECT * FROM {self.quoted} ORDER BY id").fetchall()
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    def _mark(self, database):
        query = "SELECT mark FROM hubless_marks WHERE name = ?"
        row = database.execute(query, [self.table]).fetchone()
        return None if row is None else Mark.from_json(row[0])

    def _put_mark(self, database, mark):
        database.execute("INSERT OR REPLACE INTO hubless_marks VALUES (?, ?)", [self.table, mark.to_json()])

    def _rename(self, database, other):
        database.execute(f"ALTER TABLE {self.quoted} RENAME TO {other.quoted}")
        database.execute("UPDATE hubless_marks SET name = ? WHERE name = ?", [other.table, self.table])

    def _free_name(self, database, wanted):
        name, number = wanted, 1
        while self.sibling(name)._columns(database):
            number += 1
            name = f"{wanted}_{number}"
        return name


def _listed(names):
    """Return names for a statement, quoted."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def _batch(page, names, columns):
    rows = [dict(zip(names, row, strict=True)) for row in page]
    ids = [row["id"] for row in rows]
    kind = np.int64 if all(isinstance(i, int) for i in ids) else object
    stored = [row.pop("vector") for row in rows]
    size = max((len(vector) // 4 for vector in stored if vector), default=0)
    vectors = np.full((len(rows), size), np.nan, dtype=np.float32)
    for place, vector in enumerate(stored):
        if vector:
            vectors[place] = np.frombuffer(vector, np.float32)
    values = {name: [row[name] for row in rows] for name in columns}
    return Batch(np.array(ids, dtype=kind), vectors, values, rows)
