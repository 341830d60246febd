"""Arrow files, read one batch of rows at a time, checked, and in one thread.

Arrow's own data sets read ahead in other threads, which a damaged file can crash.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...support.imports import need
from ..store import ROWS


class IpcFile:
    """The rows of an Arrow file, by the methods of a data set of Arrow that `ArrowFile` uses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._reader() as reader:
            self.schema = reader.schema

    @contextmanager
    def _reader(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Open the file; only the buffers of these columns are read."""
        pa = need("pyarrow", "files")
        fields = None if columns is None else [self.schema.names.index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        with pa.OSFile(str(self.path)) as file, pa.ipc.open_file(file, options=options) as reader:
            yield reader

    def count_rows(self) -> int:
        """Return the number of rows."""
        with self._reader() as reader:
            if hasattr(reader, "count_rows"):
                return int(reader.count_rows())
            return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))

    def to_batches(self, columns: Sequence[str] | None = None, batch_size: int = ROWS) -> Iterator[Any]:
        """Yield the rows front to back."""
        with self._reader(columns) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)  # or offsets in a damaged file would lead out of it
                batch = batch if columns is None else batch.select(list(columns))
                for start in range(0, batch.num_rows, batch_size):
                    yield batch.slice(start, batch_size)

    def to_table(self, columns: Sequence[str]) -> Any:
        """Return whole columns."""
        schema = need("pyarrow", "files").schema([self.schema.field(name) for name in columns])
        return need("pyarrow", "files").Table.from_batches(self.to_batches(columns), schema)

    def take(self, rows: np.ndarray, columns: Sequence[str]) -> Any:
        """Return rows by their number, in any order and as often as they are named."""
        pa, first = need("pyarrow", "files"), 0
        schema = pa.schema([self.schema.field(name) for name in columns])
        order = np.argsort(rows, kind="stable")
        ascending, found = np.asarray(rows)[order], [schema.empty_table()]
        for batch in self.to_batches(columns):
            start, last = np.searchsorted(ascending, [first, first + batch.num_rows])
            found.append(pa.Table.from_batches([batch.take(pa.array(ascending[start:last] - first))], schema))
            first += batch.num_rows
        return pa.concat_tables(found).take(pa.array(np.argsort(order, kind="stable")))
