"""Vectors in Parquet and Arrow files: a column of lists, fixed in size or not, beside columns of any kind."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ...support.imports import need
from ...support.text import reason
from ..arrow_columns import as_column, as_list, as_matrix, holds_texts, vector_column, with_width
from ..checks import as_float, check_columns, columns_in, readable
from ..store import ROWS, Batch, Columns, Facts, Mark, StoreError
from .arrow_format import Regrouped, batch_rows, group_rows, parquet_options
from .arrow_ipc import IpcFile
from .file_rows import FileRows, Reader, Where, numbers_of
from .file_store import Append, FileStore

FIRST = 64  # rows that are read to find the length of a vector
PAGE = 1 << 20  # bytes of a Parquet file that are read at once
MARK = "hubless"  # key of the mark in the metadata of a schema


class ArrowFile(FileStore):
    """A Parquet (.parquet), Arrow (.arrow, .ipc) or Feather file with a column of vectors."""

    @property
    def _is_parquet(self) -> bool:
        return self.path.suffix.lower() == ".parquet"

    def _open(self) -> FileRows:
        pa, dataset = need("pyarrow", "files"), need("pyarrow.dataset", "files")
        kind = "parquet" if self._is_parquet else "ipc"
        try:
            table = dataset.dataset(self.path, format=kind) if self._is_parquet else IpcFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{self.path} is not a {kind} file: {reason(error)}") from error
        name = vector_column(table.schema, self.vector, self.name)
        self._table, self._column = table, name
        facts = Facts(
            kind=f"{kind} file",
            metric=None,
            dimension=self._dimension(),
            count=table.count_rows(),
            dtype=str(np.dtype(table.schema.field(name).type.value_type.to_pandas_dtype())),
            index="exhaustive: every vector is compared",
        )

        def vectors(where: Where) -> np.ndarray:
            rows = table.take(numbers_of(where), columns=[name])
            return as_matrix(rows[name], facts.dimension, self.name)

        columns = {other: _reader(table, other, self.path) for other in table.schema.names if other != name}
        return FileRows(facts, vectors, columns)

    def _blocks(self, columns: Sequence[str], size: int) -> Iterator[tuple[np.ndarray, Columns]]:
        schema, is_large = self._table.schema, size > ROWS  # then equal texts should take memory once
        coded = [name for name in columns if is_large and holds_texts(schema.field(name).type)]
        batches = self._stream([self._column, *columns], size, coded=coded)
        for rows in _tables(batches, size) if coded else batches:
            yield self._read(rows, columns)

    def spans(self, size: int) -> list[tuple[int, int]]:
        """Return ranges of rows; of Parquet, whole row groups: no smaller part can be read on its own."""
        if not self._is_parquet:
            return super().spans(size)
        ranges, start, end = [], 0, 0
        for length in self._group_lengths():
            if end > start and end + length - start > size:
                ranges.append((start, end))
                start = end
            end += length
        return [*ranges, (start, end)] if end > start else ranges

    def read_span(self, start: int, last: int, columns: Sequence[str] = ()) -> tuple[np.ndarray, Columns]:
        if not self._is_parquet or self.items is not None:
            return super().read_span(start, last, columns)
        check_columns(columns_in(self), columns, self.facts().columns)
        lengths = self._group_lengths()
        ends = np.cumsum(lengths)
        groups = np.flatnonzero((ends > start) & (ends - lengths < last)).tolist()
        pa, names = need("pyarrow", "files"), [self._column, *columns]
        schema = pa.schema([self._table.schema.field(name) for name in names])
        return self._read(pa.Table.from_batches(self._stream(names, ROWS, groups), schema), columns)

    def _read(self, rows: Any, columns: Sequence[str]) -> tuple[np.ndarray, Columns]:
        listed = as_list if rows.num_rows > ROWS else _plain_list
        with readable(self.path):
            vectors = as_matrix(rows.column(self._column), self.facts().dimension, self.name)
            return as_float(vectors), {name: listed(rows.column(name)) for name in columns}

    def _stream(
        self, columns: list[str] | None, size: int, groups: Any = None, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield batches front to back. A scanner would read row groups ahead, without a limit.

        Columns `coded` of texts may come as numbers of their different texts, as Parquet stores them.
        """
        options: dict[str, Any] = {"batch_size": size, "columns": columns}
        with readable(self.path):
            if self._is_parquet:
                with self._parquet(coded) as file:
                    yield from file.iter_batches(**options, row_groups=groups, use_threads=False)
                return
            yield from self._table.to_batches(**options)

    def _group_lengths(self) -> list[int]:
        with self._parquet() as file:
            return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]

    def _parquet(self, coded: Sequence[str] = ()) -> Any:
        parquet = need("pyarrow.parquet", "files")
        options = {"pre_buffer": False, "buffer_size": PAGE, "read_dictionary": list(coded)}
        if "arrow_extensions_enabled" in signature(parquet.ParquetFile).parameters:
            options["arrow_extensions_enabled"] = True  # or UUIDs would be moved as plain bytes
        return parquet.ParquetFile(self.path, **options)

    def _schema(self) -> Any:
        """Return the schema of the batches of `_stream`; a data set's may differ, by extension types."""
        if not self._is_parquet:
            return self._table.schema
        with self._parquet() as file:
            return file.schema_arrow

    def _dimension(self) -> int:
        """Return the length of the vectors: of the type, or of the first one."""
        kind = self._table.schema.field(self._column).type
        if hasattr(kind, "list_size"):
            return int(kind.list_size)
        for batch in self._stream([self._column], FIRST):
            lengths = batch.column(0).drop_null().value_lengths()
            if len(lengths):
                return int(lengths[0].as_py())
        raise StoreError(f"{self.path} has no vector, so the dimension is unknown. Leave the file out.")

    def _mark_inside(self) -> Mark | None:
        self.facts()  # opens the file
        return mark_in(self._table.schema, self.name)

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        pa, _ = need("pyarrow", "files"), blue.facts()  # opens the file
        stream, column, schema = blue._stream(None, ROWS), blue._column, blue._schema()
        ahead, place = (
            schema.empty_table(),
            schema.names.index(column),
        )  # rows that were read, not yet written
        schema = marked(schema, self.build_mark)
        if self.build_mark.width is not None:
            schema = schema.set(place, with_width(schema.field(column), self.build_mark.width))
        with open(part, "wb") as file, blue._sink(file, schema) as (write, lengths):
            groups = Regrouped(lengths, write)

            def append(batch: Batch, moved: np.ndarray) -> None:
                nonlocal ahead
                while ahead.num_rows < len(moved):
                    ahead = pa.concat_tables([ahead, pa.Table.from_batches([next(stream)], ahead.schema)])
                rows, ahead = ahead.slice(0, len(moved)), ahead.slice(len(moved))
                field = schema.field(column)
                rows = rows.set_column(place, field, as_column(moved, field.type))
                groups.add(rows.replace_schema_metadata(schema.metadata))

            yield append
            groups.close()

    @contextmanager
    def _sink(self, file: Any, schema: Any) -> Iterator[tuple[Any, Iterable[int]]]:
        """Write a file like this one; yield what writes a group of rows, and the lengths of the groups."""
        if self._is_parquet:
            facts, parquet = self.facts(), need("pyarrow.parquet", "files")
            with self._parquet() as old:
                options = parquet_options(old, self.path)
                lengths = [*group_rows(old.metadata, facts.dimension * facts.itemsize)]
            with parquet.ParquetWriter(file, schema, **options) as sink:
                yield lambda rows: sink.write_table(rows, max(1, rows.num_rows)), lengths
            return
        ipc = need("pyarrow", "files").ipc
        lengths, codec = batch_rows(self.path)
        with ipc.new_file(file, schema, options=ipc.IpcWriteOptions(compression=codec)) as sink:
            yield lambda rows: sink.write_table(rows.combine_chunks()), lengths


def _tables(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Join batches to tables of `size` rows: coded texts come in one batch per group of rows, at most."""
    table = need("pyarrow", "files").Table
    held: list[Any] = []
    for batch in batches:
        if held and sum(one.num_rows for one in held) + batch.num_rows > size:
            yield table.from_batches(held)
            held = []
        held.append(batch)
    if held:
        yield table.from_batches(held)


def _plain_list(column: Any) -> list[Any]:
    return list(column.to_pylist())


def _reader(table: Any, name: str, path: Path) -> Reader:
    """Return a function from a slice or row numbers to values of a column, which is read once as a whole."""

    @cache
    def column() -> Any:
        with readable(path):
            values = table.to_table(columns=[name])[name]
            values.validate(full=True)
            return values.combine_chunks()

    def values(where: Where) -> Any:
        if isinstance(where, slice):
            return column().slice(where.start, where.stop - where.start).to_pylist()
        return column().take(need("pyarrow", "files").array(where, "int64")).to_pylist()

    return values


def marked(schema: Any, mark: Mark) -> Any:
    """Return a schema with a mark."""
    return schema.with_metadata({**(schema.metadata or {}), MARK: mark.to_json()})


def mark_in(schema: Any, name: str) -> Mark | None:
    """Return the mark of a schema; the mark of a moved stream is only the start of the model's hash."""
    text = (schema.metadata or {}).get(MARK.encode())
    if text is None:
        return None
    return Mark.from_json(text) or Mark(text.decode(errors="replace"), name, "", done=True)
