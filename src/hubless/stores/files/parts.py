"""Vectors in a folder of files of one kind."""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import switch
from ..kinds import SUFFIXES
from ..opening import class_of
from ..store import Batch, Columns, StoreError
from .file_rows import FileRows, Reader, Where, numbers_of
from .file_store import Append, FileStore


class Parts(FileStore):
    """A folder of .npy, .npz, Parquet, Arrow or HDF5 files of one kind, one after the other by name.

    Ids are the column "id" of the parts (or the one that is named), else row numbers through all parts.
    """

    may_be_part = keeps_suffix = False

    def parts(self) -> list[FileStore]:
        """Return the files, in order; of a link, what it leads to."""
        options = {"vector": self.vector, "id": self.id, "metric": self.metric}
        return [class_of(file.suffix.lower())(file, **options) for file in self._files()]

    def _files(self) -> list[Path]:
        """Return the paths of the parts in the folder, in order: of a link, its own."""
        kinds = [suffix for suffix in SUFFIXES if class_of(suffix).may_be_part]
        files = [file for file in sorted(self.path.iterdir()) if file.suffix.lower() in kinds]
        suffixes = {file.suffix.lower() for file in files}
        if len(suffixes) != 1:
            raise StoreError(
                f"{self.path} must contain parts of one kind ({', '.join(kinds)}); it has "
                f"{sorted(suffixes) or 'none'}."
            )
        return files

    def _open(self) -> FileRows:
        parts = self.parts()
        opened = [part._opened for part in parts]
        widths = [rows.facts.dimension for rows in opened]
        if len(set(widths)) != 1:
            odd = min(range(len(parts)), key=lambda i: widths.count(widths[i]))
            raise StoreError(
                f"the parts in {self.path} have vectors of {sorted(set(widths))} columns; "
                f"{parts[odd].path.name} has {widths[odd]}. Repair or remove it."
            )
        return _joined(opened)

    def _blocks(self, columns: Sequence[str], size: int) -> Iterator[tuple[np.ndarray, Columns]]:
        for part in self.parts():
            yield from part.blocks(columns, size)

    def pieces(self) -> Sequence[FileStore]:
        """Return the parts; or this store where their columns are in a table beside them."""
        return self.parts() if self.items is None else [self]

    def copy_others(self, target: Path) -> None:
        """Copy what is in the folder besides the parts, so that it is there after a switch too."""
        parts = {file.name for file in self._files()}
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.copytree(entry, target / entry.name, symlinks=True, copy_function=_copy)
            elif entry.name not in parts:
                _copy(entry, target / entry.name)

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        part.mkdir()
        blue.copy_others(part)
        old_parts, rows_left = list(zip(blue.parts(), blue._files(), strict=True)), 0
        with ExitStack() as current:  # the writer of the part whose rows come now
            write: Append

            def begin_next() -> None:
                nonlocal rows_left, write
                current.close()
                old, file = old_parts.pop(0)
                old.build_mark, rows_left = self.build_mark, old.facts().count
                write = current.enter_context(old.writer(old, part / file.name))

            def append(batch: Batch, moved: np.ndarray) -> None:
                nonlocal rows_left
                while not rows_left:
                    begin_next()
                rows_left -= len(moved)
                write(batch, moved)

            yield append
            while old_parts:  # parts without rows
                begin_next()


def _copy(source: str | Path, target: str | Path) -> None:
    """Copy a link as a link, a file with its time and its rights; refuse what would have to be waited for."""
    about = os.lstat(source)
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
        raise StoreError(f"{source} is a pipe, a socket or a device: it cannot be copied. Remove it.")
    shutil.copyfile(source, target, follow_symlinks=False)
    if stat.S_ISREG(about.st_mode):
        switch.set_rights(Path(target), about)
        os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))


def _joined(opened: list[FileRows]) -> FileRows:
    """Return the rows of all parts, one after the other, with the columns that all parts have."""
    first, ends = opened[0].facts, np.cumsum([0] + [rows.facts.count for rows in opened])
    facts = replace(first, kind=f"{len(opened)} parts, {first.kind}", count=int(ends[-1]))

    def gather(readers: list[Reader], shape: tuple[int, ...], dtype: Any) -> Reader:
        """Return a function from a slice or row numbers to values, from the parts that they are in."""

        def values(where: Where) -> np.ndarray:
            rows = numbers_of(where)
            part_of = np.searchsorted(ends, rows, side="right") - 1
            gathered = np.empty((len(rows), *shape), dtype)
            for i in np.unique(part_of):
                places = np.flatnonzero(part_of == i)
                for place, value in zip(places, readers[i](rows[places] - ends[i]), strict=True):
                    gathered[place] = value
            return gathered

        return values

    shared = [name for name in opened[0].columns if all(name in rows.columns for rows in opened)]
    columns = {name: gather([rows.columns[name] for rows in opened], (), object) for name in shared}
    vectors = gather([rows.vectors for rows in opened], (first.dimension,), first.dtype)
    return FileRows(facts, vectors, columns)
