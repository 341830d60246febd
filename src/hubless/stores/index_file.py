"""Search indexes in a file: vectors under numbers, searched and built by the engine that the file is of.

A subclass opens its file (`_open`, which ends with `_numbered`), asks its engine (`_nearest`), and builds a
moved index (`_new`, or its own `writer`). An engine may trust a file; so the subclass checks it first.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .checks import pad_ids
from .files.file_rows import FileRows, Reader, as_ids, picker
from .files.file_store import Append, FileStore
from .store import Batch, Facts, StoreError

PART = 1 << 20  # bytes that are written at once


class NewIndex(Protocol):
    """An index that is built."""

    def add(self, vectors: np.ndarray, numbers: np.ndarray) -> None:
        """Add vectors, (n, d), under numbers, (n,)."""

    def save(self, path: Path) -> None:
        """Write the file; OSError where the disk is full."""


class IndexFile(FileStore):
    """A search index in a file. Ids are row numbers, the numbers of the index, or those of `items`."""

    may_be_part = False
    _numbers: np.ndarray  # (n,): the number that the index has for each row

    def _numbered(
        self, facts: Facts, vectors: Reader, numbers: np.ndarray, *, in_order: bool = False
    ) -> FileRows:
        """Return rows in the order of their numbers, ascending unless they are kept `in_order` of adding."""
        self._numbers, columns = numbers, {}
        are_rows = not in_order and np.array_equal(numbers, np.arange(len(numbers)))
        if not are_rows:
            columns["id"] = picker(as_ids(numbers.tolist(), self.name))
        return FileRows(facts, vectors, columns, in_order or are_rows)

    def ids(self) -> Iterator[np.ndarray]:
        yield self.all_ids  # without vectors, which may need to know more than the file says

    def refresh(self) -> None:
        super().refresh()
        self.__dict__.pop("_engine", None)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Search by the index itself."""
        if self.facts().count == 0:
            return np.empty((len(queries), 0), dtype=np.int64)
        try:
            nearest = self._nearest(np.ascontiguousarray(queries, dtype=np.float32), k)
        except RuntimeError as error:
            raise StoreError(f"{self.path} cannot be searched: {str(error).splitlines()[-1]}") from error
        ids = dict(zip(self._numbers.tolist(), self.all_ids.tolist(), strict=True))
        return pad_ids([[ids[number] for number in row if number in ids] for row in nearest], k)

    @abstractmethod
    def _nearest(self, queries: np.ndarray, k: int) -> Sequence[Sequence[int]]:
        """Return the numbers of the nearest of each query; those that are no row's are left out later."""

    def _new(self, blue: Any, width: int) -> NewIndex:
        """Return an empty index like that of blue, for vectors of a width."""
        raise NotImplementedError

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        index, place = self._new(blue, self.build_mark.width or blue.facts().dimension), 0

        def append(batch: Batch, moved: np.ndarray) -> None:
            nonlocal place
            index.add(np.ascontiguousarray(moved), blue._numbers[place : place + len(moved)])
            place += len(moved)

        yield append
        index.save(part)


def check_written(path: Path, size: int) -> None:
    """Raise the error of the system where an engine did not write all bytes: some do not say so.

    The missing ones are written again, as zeros, until the system says why that is not possible.
    """
    with path.open("ab") as file:
        missing = size - file.tell()
        for start in range(0, missing, PART):
            file.write(bytes(min(PART, missing - start)))
    if missing:
        raise OSError(f"{path} could not be written: {missing:,} of {size:,} bytes are missing")
