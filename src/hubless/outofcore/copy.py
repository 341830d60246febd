"""A copy of checked objects in order of class, in a file without a name: gone with the process.

Sources are compared with the objects of their class alone, so blocks of few classes mean few reads and large
products. Objects have new numbers in the copy: their places in it. Those of one class keep their order, so
equal distances are decided as they would be without a copy.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from .block_steps import Rows, Work, all_rows
from .objects import LocalObjects, changed
from .survey import Survey


class CopiedObjects(LocalObjects):
    """The objects of others, which are read once, by `write`.

    Blocks are `Rows`: they have been checked, and their class numbers are known. They are as long as those of
    the others, and the classes of a block are no smaller than those of the blocks before it; inside a block,
    objects are as they came.

    Parameters
    ----------
    objects : the others, which were looked at
    seen, work : what was seen of them
    drawn : the numbers of some of them, ascending; None for all
    """

    def __init__(self, objects: LocalObjects, seen: Survey, work: Work, drawn: np.ndarray | None) -> None:
        self.objects, self.filled, self.drawn = objects, seen.filled, drawn
        self.name, self.look = objects.name, objects.look
        self.memory, self.room, self.itemsize = objects.memory, objects.room, work.dtype.itemsize
        self.size, self.n_blocks = objects.size, -(-seen.n // objects.size)
        self.read_work = work
        self.work = work._replace(starts=np.minimum(np.arange(self.n_blocks + 1) * self.size, seen.n))
        self.class_starts = np.cumsum([0, *seen.sizes])  # (c + 1,)
        self.next_of_class, self.next_of_block = self.class_starts[:-1].copy(), self.work.starts[:-1].copy()
        self.sources: np.ndarray | None = None  # the new numbers of those drawn, ascending
        self.file: Any = None

    def state(self) -> str:
        return self.objects.state()

    def write(self, folder: Path | None) -> bool:
        """Read the objects and write the copy; False where the disk has no room for it."""
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            folder = folder or _folder_on_disk()
            self.file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 closed by `close`
        except OSError:
            return False
        try:
            numbers = self.objects.map(
                self._write,
                np.concatenate,
                self.read_work,
                wanted=self.filled,
                title="copying to a temporary file",
            )
        except _NoRoom:
            return False
        self.sources = None if self.drawn is None else np.sort(numbers)
        return True

    def close(self) -> None:
        """Give the room on the disk back."""
        if self.file is not None:
            self.file.close()

    def blocks(self, wanted: set[int] | None = None) -> Iterator[tuple[int, Any]]:
        for number in range(self.n_blocks):
            if wanted is None or number in wanted:
                yield number, self._read(number)

    def blocks_of_classes(self, rows: Rows) -> list[int]:
        """Return the blocks that may have objects of the classes of these."""
        codes, steps = np.unique(rows.codes), np.zeros(self.n_blocks + 1, np.int64)
        np.add.at(steps, self.class_starts[codes] // self.size, 1)
        np.add.at(steps, (self.class_starts[codes + 1] - 1) // self.size + 1, -1)
        return np.flatnonzero(np.cumsum(steps)).tolist()

    def _write(self, block: Any, number: int, work: Work) -> np.ndarray:
        """Write the objects of a block to those of the copy; return the new numbers of those drawn."""
        rows = all_rows(block, number, work)
        target, numbers = self._places(rows.codes) // self.size, np.empty(len(rows.codes), np.int64)
        order = np.argsort(target, kind="stable")
        for run in np.split(order, np.flatnonzero(np.diff(target[order])) + 1):  # of one block of the copy
            first = int(self.next_of_block[target[run[0]]])
            self.next_of_block[target[run[0]]] += len(run)
            numbers[run] = first + np.arange(len(run))
            for place, array in zip(self._offsets(first), (rows.X, rows.codes), strict=True):
                self._put(place, array[run])
        if self.drawn is None:
            return numbers[:0]
        start, stop = np.searchsorted(self.drawn, work.starts[number : number + 2])
        return numbers[self.drawn[start:stop] - work.starts[number]]

    def _places(self, codes: np.ndarray) -> np.ndarray:
        """Return the places of these objects in order of class; OSError for more than were seen."""
        order = np.argsort(codes, kind="stable")
        known, firsts, counts = np.unique(codes[order], return_index=True, return_counts=True)
        places = np.empty(len(codes), np.int64)
        places[order] = np.arange(len(codes)) + np.repeat(self.next_of_class[known] - firsts, counts)
        self.next_of_class[known] += counts
        if (self.next_of_class > self.class_starts[1:]).any():
            raise changed(self.name)
        return places

    def _offsets(self, number: int) -> tuple[int, int]:
        """Return where the vector and the class number of an object are in the file."""
        row, n = self.itemsize * self.look.n_columns, int(self.class_starts[-1])
        return number * row, n * row + number * np.dtype(np.int64).itemsize

    def _put(self, place: int, array: np.ndarray) -> None:
        data = array.reshape(-1).view(np.uint8).data
        try:
            self.file.seek(place)
            while data:
                data = data[self.file.write(data) :]
        except OSError as error:
            raise _NoRoom from error

    def _read(self, number: int) -> Rows:
        first, last = (int(start) for start in self.work.starts[number : number + 2])
        X = np.empty((last - first, self.look.n_columns), self.work.dtype)
        codes = np.empty(last - first, np.int64)
        for place, array in zip(self._offsets(first), (X, codes), strict=True):
            self.file.seek(place)
            data = array.reshape(-1).view(np.uint8).data
            while data:
                count = self.file.readinto(data)
                if not count:
                    raise OSError(f"the temporary copy of {self.name} was cut off. Run it again.")
                data = data[count:]
        return Rows(np.arange(first, last), X, codes)


def _folder_on_disk() -> Path | None:
    """Return where temporary files do not take memory, as those in /tmp do on many systems."""
    # the file in it has no name that anybody could take
    folder = Path("/var/tmp")  # nosec B108
    return folder if "TMPDIR" not in os.environ and folder.is_dir() else None


class _NoRoom(Exception):
    """The copy cannot be written."""
