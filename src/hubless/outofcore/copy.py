"""A copy of checked objects in a file without a name: read as often as needed, gone with the process."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from .block_steps import Rows, Work, all_rows
from .objects import LocalObjects
from .survey import Survey


class CopiedObjects(LocalObjects):
    """The objects of others, which are read when the first block is wanted, and never again.

    Blocks are `Rows`: they have been checked, and their class numbers are known. Where the disk has no room
    for the copy, the objects are read from where they are.
    """

    def __init__(self, objects: LocalObjects, seen: Survey, work: Work, folder: Path | None) -> None:
        self.objects, self.work, self.filled, self.folder = objects, work, seen.filled, folder
        self.name, self.look, self.progress = objects.name, objects.look, objects.progress
        self.memory, self.room, self.itemsize = objects.memory, objects.room, work.dtype.itemsize
        self.n_blocks = len(self.filled)
        self.file: Any = None
        self.is_refused = False

    def state(self) -> str:
        return self.objects.state()

    def blocks(self, wanted: set[int] | None = None) -> Iterator[tuple[int, Any]]:
        if self.file is None and not self.is_refused:
            self._copy()
        if self.is_refused:
            yield from self.objects.blocks(wanted)
            return
        for number in self.filled:
            if wanted is None or number in wanted:
                yield number, self._read(number)

    def close(self) -> None:
        """Give the room on the disk back."""
        if self.file is not None:
            self.file.close()

    def _copy(self) -> None:
        try:
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
            folder = self.folder or _folder_on_disk()
            self.file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 closed by `close`
        except OSError:
            self.is_refused = True
            return
        try:
            self.objects.map(self._write, list, self.work, wanted=self.filled, title="copy")
        except _NoRoom:
            self.close()
            self.file, self.is_refused = None, True

    def _write(self, block: Any, number: int, work: Work) -> None:
        """Write vectors and then class numbers of a block."""
        rows = all_rows(block, number, work)
        try:
            for array in (rows.X, rows.codes):
                data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
                while data:
                    data = data[self.file.write(data) :]
        except OSError as error:
            raise _NoRoom from error

    def _read(self, number: int) -> Rows:
        first, last = (int(start) for start in self.work.starts[number : number + 2])
        X = np.empty((last - first, self.look.n_columns), self.work.dtype)
        codes = np.empty(last - first, np.int64)
        self.file.seek(first * (X.itemsize * self.look.n_columns + codes.itemsize))
        for array in (X, codes):
            data = array.reshape(-1).view(np.uint8).data
            while data:
                count = self.file.readinto(data)
                if not count:
                    raise OSError(f"the temporary copy of {self.name} was cut off. Run it again.")
                data = data[count:]
        return Rows(np.arange(first, last), X, codes)


def _folder_on_disk() -> str | None:
    """Return where temporary files do not take memory, as those in /tmp do on many systems."""
    # the file in it has no name that anybody could take
    folder = "/var/tmp"  # nosec B108
    return folder if "TMPDIR" not in os.environ and os.path.isdir(folder) else None


class _NoRoom(Exception):
    """The copy cannot be written."""
