"""LanceDB: a table of a database, with its versions.

Green is another table of the same database. LanceDB cannot rename a table, but every commit makes a version
of it: `promote` overwrites the served table with the rows of green in one commit, `rollback` restores the
version from before in one commit. What is no longer served is kept by a branch of the table and read as
`table@branch`: a branch keeps its files when old versions are cleaned up, where a tag would make every such
clean-up fail. To free the space, delete the branch: `table.branches.delete(branch)`.

The mark is metadata of the vector column, which is written by the same commit as the rows.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...support.imports import need
from ..arrow_columns import as_matrix, vector_column
from ..checks import as_float, changed_since, check_columns, check_promoted, pad_ids, path_lock
from ..database import Database
from ..store import ROWS, Batch, Facts, Mark, StoreError
from . import lance_rows
from .lance_index import build, committing, index_settings, vector_index
from .lance_rows import ids_of, mark_of, marked, scan

DISTANCES = {"l2": "l2", "cosine": "cosine", "ip": "dot"}


class LanceTable(Database):
    """A table of a LanceDB database; or a version of it, `table@branch`, which can only be read.

    The address is a folder, or one such as s3://bucket/folder. Ids are by default in a column "id", "_id" or
    "key"; without an index that says so, the metric is by default "l2", as in LanceDB.
    """

    schemes = ("lancedb:",)

    def place(self, address: str) -> str:
        address = super().place(address)
        if address.startswith("db://"):
            raise StoreError(
                f"{address}: LanceDB Cloud is not supported. Give a folder, or s3://BUCKET/FOLDER."
            )
        return address

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        try:
            self._open()
        except StoreError:
            return False
        return True

    def facts(self) -> Facts:
        table = self._open()
        id, vector = self._columns(table)
        kind = table.schema.field(vector).type
        index, search = vector_index(table, vector), "exhaustive"
        if index is not None:
            late = f", {index.num_unindexed_rows} rows not in it" if index.num_unindexed_rows else ""
            search = table.index_stats(index.name).index_type + late
        return Facts(
            kind="LanceDB table",
            metric=self._metric(table),
            dimension=kind.list_size,
            count=table.count_rows(),
            dtype=np.dtype(kind.value_type.to_pandas_dtype()).name,
            index=search,
            columns=tuple(name for name in table.schema.names if name not in (id, vector)),
        )

    def mark(self) -> Mark | None:
        return mark_of(self._open())

    def state(self) -> str:
        return state_of(self._open())

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        table = self._open()
        check_columns(self.name, columns, table.schema.names)
        for rows in scan(table, table.schema.names, size):
            yield self._batch(rows, columns)

    def ids(self) -> Iterator[np.ndarray]:
        table = self._open()
        id, _ = self._columns(table)
        for rows in scan(table, [id], ROWS):
            yield ids_of(rows.column(id))

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        table = self._open()
        check_columns(self.name, columns, table.schema.names)
        rows, places = self._find(table, ids, table.schema.names)
        return self._batch(rows.take(places.drop_null()), columns)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        table = self._open()
        _, places = self._find(table, ids, self._columns(table)[:1])
        return places.is_valid().to_numpy(zero_copy_only=False)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        table = self._open()
        id, vector = self._columns(table)
        distance = DISTANCES[self._metric(table)]
        nearest = []
        for query in np.asarray(queries, dtype=np.float32):
            search = table.search(query, vector_column_name=vector).distance_type(distance).limit(k)
            nearest.append(ids_of(search.select([id, "_distance"]).to_arrow().column(id)).tolist())
        return pad_ids(nearest, k)

    @cached_property
    def _folder(self) -> Path | None:
        """The folder of the database; None where it is not on this machine."""
        if "://" in self.address and not self.address.startswith("file://"):
            return None
        return Path(self.address.removeprefix("file://")).expanduser()

    @cached_property
    def _database(self) -> Any:
        if self._folder is not None and not self._folder.is_dir():  # LanceDB would create it
            raise StoreError(f"{self.address} does not exist: give the folder of a LanceDB database.")
        return need("lancedb", "lancedb").connect(self.address)

    def _open(self, version: int | None = None) -> Any:
        """Open the table as it is now, or a version of it; what others write later is not seen."""
        table_name, _, branch = self.table.partition("@")
        try:
            table = self._database.open_table(table_name, version=version)
        except ValueError as error:
            raise StoreError(f"{self.name} does not exist: {str(error).rstrip('.')}.") from error
        if branch:
            details = table.branches.list().get(branch)
            if details is None:
                raise StoreError(f"{self.name} does not exist: {table_name} has no branch {branch!r}.")
            table.checkout(details["parent_version"])
        return table

    def _open_to_write(self) -> Any:
        if "@" in self.table:
            raise StoreError(f"{self.name} is an old version, which can only be read.")
        return self._open()

    def _columns(self, table: Any) -> tuple[str, str]:
        """Return the names of the columns of ids and of vectors, of a table or of Arrow rows."""
        id = lance_rows.id_column(self.name, table.schema, self.id)
        return id, vector_column(table.schema, self.vector, self.name, fixed=True)

    def _metric(self, table: Any) -> str:
        """Return the metric of its index; without one, the given metric, else blue's, else LanceDB's."""
        _, vector = self._columns(table)
        index = vector_index(table, vector)
        if index is None:
            of_blue = (table.schema.field(vector).metadata or {}).get(lance_rows.METRIC, b"l2").decode()
            return str(self.metric or of_blue)
        distance = table.index_stats(index.name).distance_type
        return next(metric for metric, known in DISTANCES.items() if known == distance)

    def _batch(self, rows: Any, columns: Sequence[str]) -> Batch:
        id, vector = self._columns(rows)
        values = {name: rows.column(name).to_pylist() for name in columns}
        dimension = rows.schema.field(vector).type.list_size
        vectors = as_float(as_matrix(rows.column(vector), dimension, self.name))
        return Batch(ids_of(rows.column(id)), vectors, values, rows)

    def _find(self, table: Any, ids: Any, columns: Sequence[str]) -> tuple[Any, Any]:
        """Return the rows with these ids, in any order, and the place of each id in them, null for none."""
        id, _ = self._columns(table)
        wanted = need("pyarrow", "lancedb").array(list(ids), lance_rows.id_type(table.schema.field(id)))
        condition = need("lancedb.expr", "lancedb").col(id).isin(wanted.to_pylist())
        rows = table.search().where(condition).select(list(columns)).to_arrow()
        known = rows.column(id).cast(wanted.type)
        return rows, need("pyarrow.compute", "lancedb").index_in(wanted, value_set=known)

    # --- building green ------------------------------------------------------------------------------------

    def lock(self) -> AbstractContextManager[None]:
        if self._folder is None:  # green has a primary key: two writers do not add an id twice
            return nullcontext()
        return path_lock(self._folder / self.table)

    def begin(self, blue: Any, mark: Mark) -> None:
        source = blue._open()
        id, vector = blue._columns(source)
        lance_rows.check_copyable(blue.name, source, id)
        for index in source.list_indices():
            index_settings(source, index)  # an unknown kind is refused now, not only in `finish`
        schema = partial(marked, lance_rows.keyed(source.schema, id), vector, mark, blue._metric(source))
        if not self.exists():
            with suppress(ValueError):  # another was faster, or the name is invalid: both are seen below
                self._database.create_table(self.table, schema=schema())
        green = self._open_to_write()
        self.check_resumable(blue, mark)
        types = [{field.name: str(field.type) for field in columns} for columns in (green.schema, schema())]
        if types[0] != types[1]:
            raise StoreError(
                f"{blue.name} and {self.name} have different columns now. Drop {self.table} and apply again."
            )

    def have_same_rows(self, stored: Batch, wanted: Batch) -> np.ndarray:
        _, vector = self._columns(wanted.rows)
        others = (name for name in wanted.rows.schema.names if name != vector)
        return np.all(
            [lance_rows.equal(stored.rows.column(name), wanted.rows.column(name)) for name in others], axis=0
        )

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        table = self._open_to_write()
        id, vector = self._columns(table)
        rows = lance_rows.with_vectors(batch.rows, vector, moved).select(table.schema.names)
        upsert = table.merge_insert(id).when_matched_update_all().when_not_matched_insert_all()
        upsert.execute(rows.cast(table.schema))

    def remove(self, ids: np.ndarray) -> None:
        table = self._open_to_write()
        table.delete(need("lancedb.expr", "lancedb").col(self._columns(table)[0]).isin(ids.tolist()))

    def finish(self, blue: Any, mark: Mark) -> None:
        build(self._open_to_write(), blue._open())
        self.set_mark(mark)

    def set_mark(self, mark: Mark) -> None:
        table = self._open_to_write()
        _, vector = self._columns(table)
        update = {"path": vector, "metadata": {lance_rows.MARK.decode(): mark.to_json()}}
        with committing(f"setting the mark of {self.name}"):
            table.update_field_metadata(update)

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green: Any) -> str:
        """Serve green. Run again, it completes a promote that was killed before the indexes were built."""
        with green.lock():
            served, mark = mark_of(self._open_to_write()) or self._overwrite(green), green.mark()
            if served.done or served.original is None or mark is None or served.model != mark.model:
                raise StoreError(f"{self.name} is moved already; roll back first.")
            original = self.sibling(served.original)
            before = original._open()
            self._check_replaced(before.version, served)
            build(self._open(), before)
            self.set_mark(replace(served, done=True))
            return original.name

    def rollback(self) -> str:
        mark = check_promoted(self.name, mark_of(self._open_to_write()))
        version = self.sibling(str(mark.original))._open().version
        return f"{self.name}@{serve_again(self._open(), version)}"

    def _overwrite(self, green: Any) -> Mark:
        """Serve the rows of green, without an index; return the mark that they carry, which is not done."""
        arrow = need("pyarrow", "lancedb")
        table, source = self._open(), green._open()
        mark = mark_of(source)
        if mark is None or mark.state != state_of(table):
            raise changed_since(self.name, green.name)
        served = replace(mark, done=False, original=f"{self.table}@{keep(table, 'original', table.version)}")
        schema = marked(table.schema, self._columns(table)[1], served, self._metric(table))
        parts = (rows.cast(schema) for rows in scan(source, schema.names, ROWS))
        batches = (batch for part in parts for batch in part.to_batches())
        reader = arrow.RecordBatchReader.from_batches(schema, batches)
        table.add(reader, mode="overwrite", write_parallelism=1)  # one writer: in the order of green
        return served

    def _check_replaced(self, version: int, served: Mark) -> None:
        """Refuse, and restore the rows of others, where they wrote between our comparison and our commit."""
        table = self._open()
        existing = sorted(details["version"] for details in table.list_versions())
        ours = next((v for v in existing if v > version and mark_of(self._open(v)) == served), 0)
        if ours == version + 1:
            return
        if ours - 1 not in existing:  # cleaned up, after a kill
            raise StoreError(f"{self.name} may have changed meanwhile. Roll back, and apply again.")
        serve_again(table, ours - 1)
        raise StoreError(f"{self.name} changed while it was promoted, so this was undone. Apply again.")


def state_of(table: Any) -> str:
    """Return the version and when it was made: versions of a table that is made again start from 1."""
    made = {version["version"]: version["timestamp"] for version in table.list_versions()}
    return f"version {table.version} of {made[table.version].timestamp():.6f}"


def keep(table: Any, word: str, version: int) -> str:
    """Return the branch that keeps a version, and create it where there is none."""
    for branch, details in table.branches.list().items():
        if branch.startswith(f"hubless-{word}-") and details["parent_version"] == version:
            return str(branch)
    # never a name twice: a branch whose creation was killed can neither be used nor be created again
    branch = f"hubless-{word}-{version}-{secrets.token_hex(3)}"
    table.branches.create(branch, from_version=version)
    return branch


def serve_again(table: Any, version: int) -> str:
    """Restore an old version in one commit; return the branch that keeps the one that was served."""
    before = table.version
    branch = keep(table, "moved", before)
    table.restore(version)
    if table.version != before + 1:  # others wrote to it until the last moment
        branch = keep(table, "moved", table.version - 1)
    return branch
