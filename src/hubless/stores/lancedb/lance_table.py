"""LanceDB: a table of a database, with its versions.

Green is another table of the same database. LanceDB cannot rename a table, but every commit makes a version
of it: `promote` overwrites the served table with the rows of green in one commit, `rollback` restores the
version from before in one commit. What is no longer served is kept by a branch of the table and read as
`table@branch`: a branch keeps its files when old versions are cleaned up, where a tag would make every such
clean-up fail. To free the space, delete the branch: `table.branches.delete(branch)`.

The mark is metadata of the vector column, which is written by the same commit as the rows.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...support.credentials import secrets_in
from ...support.imports import need
from ...support.nearest import MOST, did_you_mean, files_near
from ...support.outputs import check_output
from ..arrow_columns import as_matrix, vector_column
from ..checks import as_float, check_columns, check_promoted, pad_ids, path_lock
from ..database import Database
from ..kinds import METRICS
from ..store import ROWS, Batch, Facts, Mark, StoreError
from . import lance_rows, lance_versions
from .lance_index import build, index_settings, vector_index
from .lance_places import Places
from .lance_rows import engine_errors, ids_of, marked, scan
from .lance_versions import overwrite, own_original, state_of

DISTANCES = {"l2": "l2", "cosine": "cosine", "ip": "dot"}


class LanceTable(Database):
    """A table of a LanceDB database; or a version of it, `table@branch`, which can only be read.

    The address is a folder, or one such as s3://bucket/folder. Ids are by default in a column "id", "_id" or
    "key"; without an index that says so, the metric is by default "l2", as in LanceDB.
    """

    schemes = ("lancedb:",)
    _in_pass: Places | None = None  # the rows of green when the pass over blue began
    _looked_at: Places | None = None  # the rows of the version that `contains` last read

    def rename(self, table: str) -> None:
        super().rename(table)
        self._in_pass = self._looked_at = None

    def place(self, address: str) -> str:
        address = super().place(address)
        if secrets_in(address):
            raise StoreError(
                "leave the password or key out of the address; LanceDB takes it from the environment, for S3 "
                "from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
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
        return self._mark_of(self._open())

    def state(self) -> str:
        return state_of(self._open())

    def batches(self, columns: Sequence[str] = (), size: int | None = None) -> Iterator[Batch]:
        table = self._open()
        check_columns(self.name, columns, table.schema.names)
        width = table.schema.field(self._columns(table)[1]).type.list_size
        for rows in scan(table, table.schema.names, size or lance_rows.batch_size(width)):
            yield self._batch(rows, columns)

    def ids(self) -> Iterator[np.ndarray]:
        table = self._open()
        id, _ = self._columns(table)
        for rows in scan(table, [id], ROWS):
            yield ids_of(rows.column(id))

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        table = self._open() if self._in_pass is None else self._in_pass.table
        check_columns(self.name, columns, table.schema.names)
        if self._in_pass is None:
            rows = lance_rows.find(table, self._columns(table)[0], list(ids))
        else:
            _, rows = self._in_pass.take(lance_rows.as_ids(ids), table.schema.names)
        return self._batch(rows, columns)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        table = self._open()
        if self._looked_at is None or self._looked_at.table.version != table.version:
            self._looked_at = Places(table, self._columns(table)[0])
        return self._looked_at.contain(ids)

    def refresh(self) -> None:
        super().refresh()
        self._in_pass = self._looked_at = None

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
        return Path(os.path.expanduser(self.address.removeprefix("file://")))

    @cached_property
    def _database(self) -> Any:
        if self._folder is not None and not self._folder.is_dir():  # LanceDB would create it
            near = files_near(self._folder)
            raise StoreError(f"{self.address} does not exist: give the folder of a LanceDB database.{near}")
        with engine_errors(f"opening {self.name}"):
            return need("lancedb", "lancedb").connect(self.address)

    def _open(self, version: int | None = None) -> Any:
        """Open the table as it is now, or a version of it; what others write later is not seen."""
        table_name, is_old, branch = self.table.partition("@")
        try:
            table = self._database.open_table(table_name, version=version)
        except ValueError as error:
            near = did_you_mean(table_name, self._database.list_tables(limit=MOST).tables)
            raise StoreError(f"{self.name} does not exist: {str(error).rstrip('.')}.{near}") from error
        if is_old:
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
            of_blue = (table.schema.field(vector).metadata or {}).get(lance_rows.METRIC, b"l2")
            metric = self.metric or of_blue[:20].decode(errors="replace")
        else:
            distance = table.index_stats(index.name).distance_type
            metric = {known: metric for metric, known in DISTANCES.items()}.get(distance, str(distance))
        if metric not in METRICS:
            raise StoreError(
                f"{self.name} compares by {metric!r}, which hubless does not know. Name a metric with "
                f"--metric ({', '.join(METRICS)}), and drop the index if there is one."
            )
        return metric

    def _mark_of(self, table: Any) -> Mark | None:
        return own_original(lance_rows.mark_of(table), self.table)

    def _batch(self, rows: Any, columns: Sequence[str]) -> Batch:
        id, vector = self._columns(rows)
        values = {name: rows.column(name).to_pylist() for name in columns}
        dimension = rows.schema.field(vector).type.list_size
        vectors = as_float(as_matrix(rows.column(vector), dimension, self.name))
        has_none = np.isnan(vectors).any(axis=1)  # LanceDB writes no NaN: such a row gets no vector
        if has_none.any():
            vectors = np.where(has_none[:, None], np.nan, vectors).astype(vectors.dtype)
        return Batch(ids_of(rows.column(id)), vectors, values, rows)

    # --- building green ------------------------------------------------------------------------------------

    def lock(self) -> AbstractContextManager[None]:
        self._check_name()  # or the lock is elsewhere
        if self._folder is None:  # green has a primary key: two writers do not add an id twice
            return nullcontext()
        return path_lock(self._folder / self.table)

    def _check_name(self) -> None:
        if not re.fullmatch(r"(?!\.\.?$)[\w.-]{1,200}", self.table, re.ASCII):
            raise StoreError(
                f"{self.table!r} cannot be a new table: names have letters, digits, '_', '-' and '.' only."
            )

    def check_target(self, blue: Any, mark: Mark) -> None:
        self._check_name()
        if self._folder is not None:
            check_output(self._folder / f"{self.table}.lance")
        super().check_target(blue, mark)

    def begin(self, blue: Any, mark: Mark) -> None:
        source = blue._open()
        id, vector = blue._columns(source)
        lance_rows.check_copyable(blue.name, source, id, vector)
        for index in source.list_indices():
            index_settings(source, index)  # an unknown kind is refused now, not only in `finish`
        schema = partial(marked, lance_rows.keyed(source.schema, id), vector, mark, blue._metric(source))
        if not self.exists():
            with engine_errors(f"creating {self.name}"), suppress(ValueError):  # another was faster
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

    def begin_pass(self) -> None:
        table = self._open_to_write()
        self._in_pass = Places(table, self._columns(table)[0])
        repeated = self._in_pass.repeated()
        if len(repeated):  # blue had these ids twice meanwhile, or others wrote to green: write them again
            self.remove(repeated)
            self._in_pass = Places(self._open(), self._in_pass.id)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        """Write rows; those that are new are appended where a lock keeps others out, which is faster."""
        table = self._open_to_write()
        id, vector = self._columns(table)
        rows = lance_rows.with_vectors(self.name, batch.rows, vector, moved).select(table.schema.names)
        rows = rows.cast(table.schema)
        is_new = self._in_pass is not None and self._in_pass.contain_none(batch.ids)
        with engine_errors(f"writing to {self.name}"):
            if is_new and self._folder is not None:
                table.add(rows, write_parallelism=1)
            else:
                upsert = table.merge_insert(id).when_matched_update_all().when_not_matched_insert_all()
                upsert.execute(rows, on_bad_vectors="null")

    def remove(self, ids: np.ndarray) -> None:
        table = self._open_to_write()
        with engine_errors(f"removing rows of {self.name}"):
            table.delete(lance_rows.among(self._columns(table)[0], ids.tolist()))

    def finish(self, blue: Any, mark: Mark) -> None:
        self._in_pass = None
        build(self._open_to_write(), blue._open())
        self.set_mark(mark)

    def set_mark(self, mark: Mark) -> None:
        table = self._open_to_write()
        _, vector = self._columns(table)
        update = {"path": vector, "metadata": {lance_rows.MARK.decode(): mark.to_json()}}
        with engine_errors(f"setting the mark of {self.name}"):
            table.update_field_metadata(update)

    # --- switching -----------------------------------------------------------------------------------------

    def promote(self, green: Any) -> str:
        """Serve green. Run again, it completes a promote that was killed before the indexes were built."""
        with green.lock():
            served, mark = self._mark_of(self._open_to_write()) or overwrite(self, green), green.mark()
            if served.done or served.original is None or mark is None or served.model != mark.model:
                raise StoreError(f"{self.name} is moved already; roll back first.")
            original = self.sibling(served.original)
            before = original._open()
            lance_versions.check_replaced(self, before.version, served)
            build(self._open(), before)
            self.set_mark(replace(served, done=True))
            return original.name

    def rollback(self) -> str:
        mark = check_promoted(self.name, self._mark_of(self._open_to_write()))
        version = self.sibling(str(mark.original))._open().version
        with engine_errors(f"rolling back {self.name}"):
            return f"{self.name}@{lance_versions.serve_again(self._open(), version)}"
