"""LanceDB: a table of a database, with its versions.

Green is another table of the same database. LanceDB cannot rename a table, but every commit makes a version
of it: `promote` overwrites the served table with the rows of green in one commit, `rollback` restores the
version of before in one commit. What is no longer served is kept by a branch of the table and read as
`table@branch`. Whoever needs the space removes it: `table.branches.delete(branch)`.

The mark is metadata of the vector column, which is written by the same commit as the rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import lancedb_rows as arrow_rows
from .lancedb_index import build, recipe, vector_index
from .lancedb_rows import MARK, METRIC, ids_of, mark_of, marked, matrix
from .lancedb_versions import keep, kept, serve_again, state_of
from .store import METRICS, ROWS, Batch, Facts, Mark, Store, StoreError, answers, need
from .switch import locked

DISTANCES = {"l2": "l2", "cosine": "cosine", "ip": "dot"}


class LanceTable(Store):
    """A table of a LanceDB database; or a version of it, `table@branch`, which can only be read.

    Parameters
    ----------
    address : str
        Of the database: a folder, or an address as s3://bucket/folder.
    table : str
    vector : str or None
        Column of the vectors; where None, the only one that can be.
    id : str or None
        Column of the ids, which are unique; where None, "id", "_id" or "key".
    metric : "l2", "cosine", "ip" or None
        How vectors are compared where there is no index to tell it; LanceDB takes "l2".
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
            raise StoreError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
        if address.startswith("db://"):
            raise StoreError(f"{address}: LanceDB Cloud is not supported. Give a folder, or one of a bucket.")
        self.address, self.vector, self.id, self.metric = address, vector, id, metric
        self.name = f"lancedb:{address}#{table}"
        self.table, _, self.branch = table.partition("@")

    # --- to read -------------------------------------------------------------------------------------------

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
        index, told = vector_index(table, vector), "exhaustive"
        if index is not None:
            late = f", {index.num_unindexed_rows} rows not in it" if index.num_unindexed_rows else ""
            told = table.index_stats(index.name).index_type + late
        return Facts(
            kind="LanceDB table",
            metric=self._metric(table),
            dimension=kind.list_size,
            count=table.count_rows(),
            dtype=np.dtype(kind.value_type.to_pandas_dtype()).name,
            index=told,
            columns=tuple(name for name in table.schema.names if name not in (id, vector)),
        )

    def mark(self) -> Mark | None:
        return mark_of(self._open())

    def state(self) -> str:
        return state_of(self._open())

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        table = self._open()
        for name in set(columns) - set(table.schema.names):
            raise StoreError(f"{self.name} has no column {name!r}; it has {table.schema.names}.")
        for rows in arrow_rows.scan(table, table.schema.names, size):
            yield self._batch(table, rows, columns)

    def ids(self) -> Iterator[np.ndarray]:
        table = self._open()
        id, _ = self._columns(table)
        for rows in arrow_rows.scan(table, [id], ROWS):
            yield ids_of(rows.column(id))

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        table = self._open()
        rows, places = self._find(table, ids, [*self._columns(table), *columns])
        return self._batch(table, rows.take(places.drop_null()), columns)

    def holds(self, ids: np.ndarray) -> np.ndarray:
        table = self._open()
        _, places = self._find(table, ids, self._columns(table)[:1])
        return places.is_valid().to_numpy(zero_copy_only=False)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        table = self._open()
        id, vector = self._columns(table)
        distance = DISTANCES[self._metric(table)]
        found = []
        for query in np.asarray(queries, dtype=np.float32):
            asked = table.search(query, vector_column_name=vector).distance_type(distance).limit(k)
            found.append(ids_of(asked.select([id, "_distance"]).to_arrow().column(id)).tolist())
        return answers(found, k)

    # --- to build beside it --------------------------------------------------------------------------------

    def beside(self, name: str) -> "LanceTable":
        if name.startswith("lancedb:"):
            address, _, name = name.removeprefix("lancedb:").rpartition("#")
            if address != self.address:
                raise StoreError(f"lancedb:{address}#{name} is not in the database of {self.name}.")
        return LanceTable(self.address, name, vector=self.vector, id=self.id, metric=self.metric)

    @contextmanager
    def lock(self) -> Iterator[None]:
        if self._folder is None:  # green has a primary key: two that write to it do not add an id twice
            yield
            return
        with locked(self._folder / self.table):
            yield

    def begin(self, blue: Any, mark: Mark) -> None:
        self._check_writable()
        source = blue._open()
        id, vector = blue._columns(source)
        arrow_rows.check_copyable(blue.name, source, id)
        for index in source.list_indices():
            recipe(source, index)  # refused now, rather than by `finish`
        if not self.exists():
            schema = marked(arrow_rows.keyed(source.schema, id), vector, mark, blue._metric(source))
            with suppress(ValueError):  # somebody was faster, or the name is not one: both are seen below
                self._database.create_table(self.table, schema=schema)
        green = self._open()
        found = mark_of(green)
        if found is None or (found.model, found.source) != (mark.model, mark.source):
            told = "not by hubless" if found is None else f"by model {found.model[:12]} from {found.source}"
            raise StoreError(f"{self.name} is there already, made {told}. Choose another name, or drop it.")
        if arrow_rows.types_of(green) != arrow_rows.types_of(source):
            raise StoreError(f"{blue.name} has other columns now than {self.name}. Drop that, apply again.")

    def stale(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        table = self._open()
        _, vector = self._columns(table)
        rows, places = self._find(table, batch.ids, table.schema.names)
        stale = places.is_null().to_numpy(zero_copy_only=False).copy()
        mine, theirs = rows.take(places.drop_null()), batch.rows.filter(~stale)
        stored = table.schema.field(vector).type.value_type.to_pandas_dtype()
        same = arrow_rows.close(matrix(mine.column(vector)), moved[~stale], stored)
        for name in theirs.schema.names:
            if name != vector:
                same &= arrow_rows.alike(mine.column(name), theirs.column(name))
        stale[~stale] = ~same
        return stale

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        self._check_writable()
        table = self._open()
        id, vector = self._columns(table)
        rows = arrow_rows.with_vectors(batch.rows, vector, moved).select(table.schema.names)
        upsert = table.merge_insert(id).when_matched_update_all().when_not_matched_insert_all()
        upsert.execute(rows.cast(table.schema))

    def remove(self, ids: np.ndarray) -> None:
        self._check_writable()
        table = self._open()
        table.delete(need("lancedb.expr", "lancedb").col(self._columns(table)[0]).isin(ids.tolist()))

    def finish(self, blue: Any, mark: Mark) -> None:
        self._check_writable()
        build(self._open(), blue._open())
        self._set(mark)

    # --- to switch -----------------------------------------------------------------------------------------

    def promote(self, green: Any) -> str:
        """As of every store. Run again, it completes one that was killed before the indices were built."""
        self._check_writable()
        with green.lock():
            served, mark = self.mark() or self._overwrite(green), green.mark()
            if served.done or served.original is None or mark is None or served.model != mark.model:
                raise StoreError(f"{self.name} is moved already; roll back first.")
            original = self.beside(served.original)
            before = original._open()
            self._check_replaced(before.version, served)
            build(self._open(), before)
            self._set(replace(served, done=True))
            return original.name

    def rollback(self) -> str:
        self._check_writable()
        mark = self.mark()
        if mark is None or mark.original is None:
            raise StoreError(f"{self.name} was not promoted: there is nothing to roll back.")
        version = self.beside(mark.original)._open().version
        return f"{self.name}@{serve_again(self._open(), version)}"

    # --- private -------------------------------------------------------------------------------------------

    @cached_property
    def _folder(self) -> Path | None:
        """Where the database is; None where it is not on this machine."""
        if "://" in self.address and not self.address.startswith("file://"):
            return None
        return Path(self.address.removeprefix("file://")).expanduser()

    @cached_property
    def _database(self) -> Any:
        if self._folder is not None and not self._folder.is_dir():  # LanceDB would make it
            raise StoreError(f"{self.address} is not there: give the folder of a LanceDB database.")
        return need("lancedb", "lancedb").connect(self.address)

    def _open(self, version: int | None = None) -> Any:
        """The table as it is now, or was; held, it stays so whatever others write."""
        try:
            table = self._database.open_table(self.table, version=version)
        except ValueError as error:
            raise StoreError(f"{self.name} is not there: {str(error).rstrip('.')}.") from error
        if self.branch:
            old = kept(table, self.branch)
            if old is None:
                raise StoreError(f"{self.name} is not there: {self.table} has no branch {self.branch!r}.")
            table.checkout(old)
        return table

    def _check_writable(self) -> None:
        if self.branch:
            raise StoreError(f"{self.name} is an old version, which can only be read.")

    def _columns(self, table: Any) -> tuple[str, str]:
        """Names of the columns of ids and of vectors."""
        id = arrow_rows.id_column(self.name, table.schema, self.id)
        return id, arrow_rows.vector_column(self.name, table.schema, self.vector)

    def _metric(self, table: Any) -> str:
        """How it compares: as its index, else as was said, else as its blue table, else as LanceDB."""
        _, vector = self._columns(table)
        index = vector_index(table, vector)
        if index is None:
            told = (table.schema.field(vector).metadata or {}).get(METRIC, b"l2").decode()
            return str(self.metric or told)
        distance = table.index_stats(index.name).distance_type
        return next(metric for metric, known in DISTANCES.items() if known == distance)

    def _batch(self, table: Any, rows: Any, columns: Sequence[str]) -> Batch:
        id, vector = self._columns(table)
        asked = {name: rows.column(name).to_pylist() for name in columns}
        return Batch(ids_of(rows.column(id)), matrix(rows.column(vector)), asked, rows)

    def _find(self, table: Any, ids: Any, columns: Sequence[str]) -> tuple[Any, Any]:
        """Rows with these ids, in any order, and the place of each id among them, null for none."""
        id, _ = self._columns(table)
        asked = need("pyarrow", "lancedb").array(list(ids), arrow_rows.id_type(table.schema.field(id)))
        wanted = need("lancedb.expr", "lancedb").col(id).isin(asked.to_pylist())
        rows = table.search().where(wanted).select(list(columns)).to_arrow()
        found = rows.column(id).cast(asked.type)
        return rows, need("pyarrow.compute", "lancedb").index_in(asked, value_set=found)

    def _set(self, mark: Mark) -> None:
        table = self._open()
        _, vector = self._columns(table)
        table.update_field_metadata({"path": vector, "metadata": {MARK.decode(): mark.to_json()}})

    def _overwrite(self, green: Any) -> Mark:
        """Serve the rows of green, without an index; the mark that they carry, which is not done."""
        arrow = need("pyarrow", "lancedb")
        table, source = self._open(), green._open()
        mark = mark_of(source)
        if mark is None or not mark.done or mark.state != state_of(table):
            raise StoreError(f"{self.name} changed since {green.name} was made. Apply again, then promote.")
        served = replace(mark, done=False, original=f"{self.table}@{keep(table, 'original', table.version)}")
        schema = marked(table.schema, self._columns(table)[1], served, self._metric(table))
        parts = (rows.cast(schema) for rows in arrow_rows.scan(source, schema.names, ROWS))
        batches = (batch for part in parts for batch in part.to_batches())
        reader = arrow.RecordBatchReader.from_batches(schema, batches)
        table.add(reader, mode="overwrite", write_parallelism=1)  # one writer: in the order of green
        return served

    def _check_replaced(self, version: int, served: Mark) -> None:
        """StoreError, and their rows back, where others wrote between our look at it and our commit."""
        table = self._open()
        there = sorted(told["version"] for told in table.list_versions())
        ours = next((v for v in there if v > version and mark_of(self._open(v)) == served), 0)
        if ours == version + 1:
            return
        if ours - 1 not in there:  # cleaned up, after a kill
            raise StoreError(f"{self.name} may have changed meanwhile. Roll back, and apply again.")
        serve_again(table, ours - 1)
        raise StoreError(f"{self.name} changed while it was promoted, and serves its own rows. Apply again.")
