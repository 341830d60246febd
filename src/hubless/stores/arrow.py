"""Vectors in Parquet and Arrow files: a column of lists, fixed in size or not, beside columns of any kind."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .file_store import FileStore
from .rows import Rows, as_float
from .store import ROWS, Batch, Columns, Facts, Mark, StoreError, need

FIRST = 64  # rows that are looked at for the length of a vector
PAGE = 1 << 20  # bytes of a Parquet file read at once
AHEAD = {"batch_readahead": 2, "fragment_readahead": 1}  # or memory holds what nobody asked for yet
MARK = "hubless"  # what schema metadata tells of a move


class ArrowFile(FileStore):
    """A Parquet (.parquet), Arrow (.arrow, .ipc) or Feather file with a column of vectors."""

    def _open(self) -> Rows:
        pa, dataset = need("pyarrow", "files"), need("pyarrow.dataset", "files")
        kind = "parquet" if self.path.suffix.lower() == ".parquet" else "ipc"
        try:
            table = dataset.dataset(self.path, format=kind)
        except (pa.ArrowInvalid, OSError) as error:
            raise StoreError(f"{self.path} is not a {kind} file: {error}") from error
        name = vector_column(table.schema, self.vector, self.name)
        kept = table.schema.field(name).type.value_type
        self._table, self._column = table, name
        dimension = self._dimension()
        facts = Facts(
            f"{kind} file",
            None,
            dimension,
            table.count_rows(),
            str(np.dtype(kept.to_pandas_dtype())),
            "exhaustive: every vector is compared",
        )

        def rows(where: Any, columns: list[str]) -> Any:
            numbers = np.arange(where.start, where.stop) if isinstance(where, slice) else where
            return table.take(pa.array(numbers, pa.int64()), columns=columns)

        def column(other: str) -> Callable[[Any], list[Any]]:
            whole: list[Any] = []

            def values(where: Any) -> list[Any]:
                if not whole:
                    whole.append(table.to_table(columns=[other])[other].combine_chunks())
                if isinstance(where, slice):
                    return whole[0].slice(where.start, where.stop - where.start).to_pylist()
                return whole[0].take(pa.array(where, pa.int64())).to_pylist()

            return values

        def vectors(where: Any) -> np.ndarray:
            return as_matrix(rows(where, [name])[name], dimension, self.name)

        columns = {other: column(other) for other in table.schema.names if other != name}
        return Rows(facts, vectors, vectors, columns)

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        """Read front to back, without jumping."""
        facts, start = self.facts(), 0
        own = [name for name in columns if name in self._table.schema.names and self.items is None]
        if self._column in own:
            raise StoreError(f"{self.name} has vectors in the column {self._column!r}; name another.")
        for found in self._stream([self._column, *own], size):
            for first in range(0, found.num_rows, size):
                piece = found.slice(first, size)
                part = slice(start, start + piece.num_rows)
                start += piece.num_rows
                vectors = as_matrix(piece.column(self._column), facts.dimension, self.name)
                values = {name: piece.column(name).to_pylist() for name in own}
                others = self._columns([name for name in columns if name not in own], part)
                yield as_float(vectors), {**others, **values}

    def _stream(self, columns: list[str] | None, size: int, groups: Any = None) -> Iterator[Any]:
        """Batches front to back. A scanner would read whole groups of rows ahead, beyond any bound."""
        if self.path.suffix.lower() != ".parquet":
            yield from self._table.to_batches(columns=columns, batch_size=size, **AHEAD)
            return
        with self._parquet() as file:
            yield from file.iter_batches(
                batch_size=size, columns=columns, row_groups=groups, use_threads=False
            )

    def _group_lengths(self) -> list[int]:
        with self._parquet() as file:
            return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]

    def _parquet(self) -> Any:
        parquet = need("pyarrow.parquet", "files")
        return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=PAGE)

    def spans(self, size: int) -> list[tuple[int, int]]:
        """Of Parquet, groups of rows as they were written: less than one cannot be read alone."""
        if self.path.suffix.lower() != ".parquet":
            return super().spans(size)
        found, start, end = [], 0, 0
        for length in self._group_lengths():
            if end > start and end + length - start > size:
                found.append((start, end))
                start = end
            end += length
        return [*found, (start, end)] if end > start else found

    def read_span(self, start: int, last: int, columns: Sequence[str] = ()) -> tuple[np.ndarray, Columns]:
        if self.path.suffix.lower() != ".parquet" or self.items is not None:
            return super().read_span(start, last, columns)
        dimension = self.facts().dimension
        self._columns(columns, slice(0, 0))  # refuses those that are not there
        lengths = self._group_lengths()
        ends = np.cumsum(lengths)
        groups = np.flatnonzero((ends > start) & (ends - lengths < last)).tolist()
        batches = list(self._stream([self._column, *columns], ROWS, groups)) if groups else []
        vectors = [as_matrix(batch.column(self._column), dimension, self.name) for batch in batches]
        values = {
            name: [value for batch in batches for value in batch.column(name).to_pylist()] for name in columns
        }
        return as_float(np.concatenate(vectors or [np.empty((0, dimension), np.float32)])), values

    def _dimension(self) -> int:
        """Length of the vectors: of the type, or of the first one."""
        kind = self._table.schema.field(self._column).type
        if hasattr(kind, "list_size"):
            return int(kind.list_size)
        for batch in self._stream([self._column], FIRST):
            lengths = batch.column(0).drop_null().value_lengths()
            if len(lengths):
                return int(lengths[0].as_py())
        raise StoreError(f"{self.path} holds no vector, so their length is not known.")

    def _mark_inside(self) -> Mark | None:
        self._opened()
        return mark_in(self._table.schema, self.name)

    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Callable[[Batch, np.ndarray], None]]:
        pa = need("pyarrow", "files")
        facts = blue.facts()
        schema, name = marked(blue._table.schema, self._begun), blue._column
        place = schema.names.index(name)
        with open(part, "wb") as file, _sink(file, schema, part) as sink:
            others = _Pieces(blue._stream(None, ROWS), blue._table.schema)

            def append(batch: Batch, moved: np.ndarray) -> None:
                rows = others.take(len(moved))
                column = as_column(pa, moved, schema.field(name).type, facts.dtype)
                rows = rows.set_column(place, schema.field(name), column)
                sink.write_table(rows.replace_schema_metadata(schema.metadata))

            yield append


class _Pieces:
    """The rows of a table front to back, in pieces of any length."""

    def __init__(self, source: Iterator[Any], schema: Any) -> None:
        self.source, self.schema, self.rest = source, schema, None
        self.pa = need("pyarrow", "files")

    def take(self, count: int) -> Any:
        """The next rows, a table."""
        found: list[Any] = [] if self.rest is None else [self.rest]
        while sum(piece.num_rows for piece in found) < count:
            found.append(next(self.source))
        table = self.pa.Table.from_batches(found, self.schema)
        rest = table.slice(count)
        self.rest = rest.combine_chunks().to_batches()[0] if rest.num_rows else None
        return table.slice(0, count)


def _sink(file: Any, schema: Any, part: Path) -> Any:
    if part.suffix.lower() == ".parquet":
        return need("pyarrow.parquet", "files").ParquetWriter(file, schema)
    return need("pyarrow", "files").ipc.new_file(file, schema)


def marked(schema: Any, mark: Mark) -> Any:
    """A schema with a mark."""
    return schema.with_metadata({**(schema.metadata or {}), MARK: mark.to_json()})


def mark_in(schema: Any, name: str) -> Mark | None:
    """The mark of a schema; that of a stream names the model alone."""
    found = (schema.metadata or {}).get(MARK.encode())
    if found is None:
        return None
    return Mark.from_json(found) or Mark(found.decode(errors="replace"), name, "", done=True)


def vector_column(schema: Any, asked: str | None, name: str) -> str:
    """Which column of an Arrow schema holds the vectors."""
    types = need("pyarrow", "files").types
    found = [
        field.name
        for field in schema
        if (
            types.is_fixed_size_list(field.type)
            or types.is_list(field.type)
            or types.is_large_list(field.type)
        )
        and types.is_floating(field.type.value_type)
    ]
    if asked is not None and asked not in found:
        raise StoreError(
            f"{name} has no column of vectors {asked!r}; columns of numbers in lists are {found}."
        )
    if asked is None and len(found) != 1:
        raise StoreError(f"name the column of {name} that holds the vectors (--vector); it could be {found}.")
    return asked or found[0]


def as_matrix(column: Any, dimension: int, name: str) -> np.ndarray:
    """A column of lists as a matrix, without a copy where there is no null; a null is a row of NaN."""
    chunks = [column] if not hasattr(column, "chunks") else column.chunks
    return (
        np.concatenate([_matrix(chunk, dimension, name) for chunk in chunks])
        if chunks
        else np.empty((0, dimension), np.float32)
    )


def _matrix(chunk: Any, dimension: int, name: str) -> np.ndarray:
    there = np.asarray(chunk.is_valid())
    flat = chunk.flatten().to_numpy(zero_copy_only=False)  # without the values of nulls
    if not hasattr(chunk.type, "list_size"):
        lengths = np.asarray(chunk.drop_null().value_lengths())
        if (lengths != dimension).any():
            raise StoreError(
                f"{name} has vectors of {sorted(set(lengths.tolist()))[:5]} numbers; they must be alike."
            )
    if there.all():
        return flat.reshape(-1, dimension)
    matrix = np.full((len(chunk), dimension), np.nan, dtype=flat.dtype)
    matrix[there] = flat.reshape(-1, dimension)
    return matrix


def as_column(pa: Any, moved: np.ndarray, kind: Any, dtype: str) -> Any:
    """A matrix as a column of the type that the original has; rows of NaN are nulls."""
    missing = np.isnan(moved).all(axis=1)
    flat = pa.array(np.ascontiguousarray(moved, dtype=dtype).reshape(-1))
    if hasattr(kind, "list_size"):
        return pa.FixedSizeListArray.from_arrays(
            flat, type=kind, mask=pa.array(missing) if missing.any() else None
        )
    offsets = np.arange(len(moved) + 1) * moved.shape[1]
    large = need("pyarrow", "files").types.is_large_list(kind)
    make, width = (pa.LargeListArray, np.int64) if large else (pa.ListArray, np.int32)
    return make.from_arrays(
        pa.array(offsets.astype(width)), flat, type=kind, mask=pa.array(missing) if missing.any() else None
    )
