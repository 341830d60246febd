"""Objects on disk, class by class: written in the order in which they come, read class after class."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..download import replacing
from ..stores.rows import write_at

PREFIX = "hubless-"  # of all files in a scratch, which may be a folder of the user's
ROWS = f"{PREFIX}rows.bin"
DONE = f"{PREFIX}partition.json"  # written last: what is in the folder, once it is whole


class Partition:
    """A file of rows, class by class; inside a class, objects are in the order in which they came."""

    def __init__(self, folder: Path, sizes: np.ndarray, n_columns: int, dtype: Any) -> None:
        self.folder, self.sizes = folder, sizes
        self.n_columns, self.dtype = n_columns, np.dtype(dtype)
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        self._row = n_columns * self.dtype.itemsize
        self._file: int | None = None

    @property
    def path(self) -> Path:
        return self.folder / ROWS

    @property
    def n_bytes(self) -> int:
        return int(self.sizes.sum()) * self._row

    def holds(self, digest: str) -> bool:
        """Whether it is there, whole, and of this content."""
        try:
            told = json.loads((self.folder / DONE).read_text())
            return bool(told == self._told(digest)) and self.path.stat().st_size == self.n_bytes
        except (OSError, ValueError):
            return False

    def _told(self, digest: str) -> dict[str, Any]:
        return {"digest": digest, "dtype": self.dtype.str, "n_columns": self.n_columns, "version": 1}

    # --- to write ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make the file, empty; OSError that says how much room it needs where there is none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / DONE).unlink(missing_ok=True)
        self._next = self.starts.copy()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        with self._room():
            if self.n_bytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file, 0, self.n_bytes)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Tell a full disk, and leave nothing on it."""
        try:
            yield
        except OSError as error:
            self.remove()
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                f"{self.folder} has no room for the {self.n_bytes / 1e9:.1f} GB of objects by class; name "
                "another folder (scratch=, --scratch)."
            ) from error

    def add(self, X: np.ndarray, codes: np.ndarray) -> None:
        """Write some rows behind those of their classes."""
        order = np.argsort(codes, kind="stable")
        X = np.ascontiguousarray(X[order], dtype=self.dtype)
        classes, counts = np.unique(codes, return_counts=True)
        first = 0
        for code, count in zip(classes.tolist(), counts.tolist(), strict=True):
            place = int(self._next[code])
            if place + count > self.ends[code]:
                raise OSError("the objects changed while they were read: there are more now. Start again.")
            with self._room():
                write_at(self._opened(), X[first : first + count].data.cast("B"), place * self._row)
            self._next[code] += count
            first += count

    def finish(self, digest: str) -> None:
        """Say that all rows are there."""
        if (self._next != self.ends).any():
            raise OSError("the objects changed while they were read: there are fewer now. Start again.")
        os.fsync(self._opened())
        with replacing(self.folder / DONE) as file:
            file.write(json.dumps(self._told(digest)).encode())

    # --- to read -------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows by number, (stop − start, d)."""
        rows = np.empty((stop - start, self.n_columns), self.dtype)
        view, place = rows.data.cast("B") if rows.size else memoryview(b""), start * self._row
        while len(view):
            got = os.preadv(self._opened(), [view], place)
            if not got:
                raise OSError(f"{self.path} is shorter than it was. Remove {self.folder} and start again.")
            view, place = view[got:], place + got
        return rows

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Remove the rows."""
        self.close()
        (self.folder / DONE).unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
