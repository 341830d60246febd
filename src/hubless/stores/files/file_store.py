"""Files of vectors: read by row number, moved into a new file that takes the name of the old one.

A subclass opens its file (`_open`) and says how a moved copy is written (`writer`).
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from ...support.commands import command
from ...support.nearest import files_near
from ...support.outputs import check_output, real_path
from ...support.writing import private_folder, remove, sync_all, sync_folder
from .. import file_marks, switch
from ..checks import as_float, check_columns, check_outside, check_path, columns_in, path_lock, readable
from ..journal import identity_of, was_interrupted
from ..kept_copies import remove_unfinished
from ..store import ROWS, Batch, Columns, Facts, Mark, Store, StoreError
from .file_rows import FileRows, as_ids, attach, guarded, read_table
from .file_switch import promote_file, rollback_file

Append: TypeAlias = Callable[[Batch, np.ndarray], Any]  # adds rows of blue with other vectors


class FileStore(Store):
    """Vectors in a file, or in a folder of files.

    Parameters
    ----------
    path : path
    vector, id, metric, items : optional, as for `open_store`
    """

    is_written_whole = True
    may_be_part = True  # whether folders of such files are stores too
    keeps_suffix = True  # whether its moved copy must have a name with the same suffix
    build_mark: Mark  # of the copy that is being built
    _blue: Any = None
    _done = False
    _append: Append | None = None  # of the writer, once it is open
    _workplace: Path | None = None  # folder in which the copy is built

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        vector: str | None = None,
        id: str | None = None,
        metric: str | None = None,
        items: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = real_path(path)  # a link stays a link: its target is replaced
        self.name = str(self.path)
        self.vector, self.id, self.metric, self.items = vector, id, metric, items
        self._writing = ExitStack()  # the open writer

    @classmethod
    def from_source(cls, source: str, **options: Any) -> Self:
        return cls(check_path(source), **options)

    @abstractmethod
    def _open(self) -> FileRows:
        """Open the file to read it."""

    @abstractmethod
    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        """Open a new file; yield a function that appends rows."""

    # --- reading -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self.path.exists()

    def facts(self) -> Facts:
        facts = self._opened.facts
        check_columns(columns_in(self), [] if self.id is None else [self.id], facts.columns)
        return facts

    def mark(self) -> Mark | None:
        with self.while_it_is_there():
            return file_marks.read_mark(self.path) or (self._mark_inside() if self.exists() else None)

    def _mark_inside(self) -> Mark | None:
        """Return the mark in the file itself, where its format has a place for one: copies have it too."""
        return None

    def state(self) -> str:
        """Return a fingerprint of the content, sampled where a file is large, and its time of change."""
        self._check_exists()
        with self.while_it_is_there():
            files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
            changed = max((file.stat().st_mtime_ns for file in files), default=0)
            return f"{file_marks.fingerprint(self.path)} {changed}"

    @contextmanager
    def while_it_is_there(self) -> Iterator[None]:
        """Say in words that a file is missing, or was taken away in this moment."""
        try:
            yield
        except FileNotFoundError as error:
            raise StoreError(
                f"{self.path} does not exist, or another process replaced it just now. Look with `hubless "
                "status`, and run the command again."
            ) from error

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        start = 0
        for vectors, values in self.blocks(columns, size):
            yield Batch(self.all_ids[start : start + len(vectors)], vectors, values)
            start += len(vectors)

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        check_columns(columns_in(self), columns, self.facts().columns)
        start = 0
        for vectors, values in self._blocks(columns if self.items is None else (), size):
            if self.items is not None:
                values = self._columns(columns, slice(start, start + len(vectors)))
            self._check_same_file()
            yield vectors, values
            start += len(vectors)

    def _check_same_file(self) -> None:
        """Refuse rows of two versions: another process switched or replaced the path since it was opened."""
        if identity_of(self.path) != self._identity:
            raise StoreError(f"{self.path} was replaced by another while it was read. Run the command again.")

    def _blocks(self, columns: Sequence[str], size: int) -> Iterator[tuple[np.ndarray, Columns]]:
        """Read the file itself front to back, without the table of items."""
        for start, last in self.spans(size):
            yield self.read_span(start, last, columns)

    def spans(self, size: int) -> list[tuple[int, int]]:
        """Return ranges of rows, (first, last + 1) of about `size` rows, that can be read on their own."""
        count = self.facts().count
        return [(start, min(start + size, count)) for start in range(0, count, size)]

    def read_span(self, start: int, last: int, columns: Sequence[str] = ()) -> tuple[np.ndarray, Columns]:
        """Return vectors and columns of such a range."""
        part = slice(start, last)
        return as_float(self._opened.vectors(part)), self._columns(columns, part)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        places = self._places_of(ids)
        places = places[places >= 0]
        vectors, values = as_float(self._opened.vectors(places)), self._columns(columns, places)
        self._check_same_file()
        return Batch(self.all_ids[places], vectors, values)

    def contains(self, ids: np.ndarray) -> np.ndarray:
        return self._places_of(ids) >= 0

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Compare with every row."""
        from ...neighbors.knn import exhaustive  # here: it loads scikit-learn, which reading does not need

        vectors, _ = self.read_span(0, self.facts().count)
        self._check_same_file()
        return np.asarray(self.all_ids[exhaustive(queries, vectors, k, self.facts().metric or "l2")])

    def ids_are_row_numbers(self) -> bool:
        return self.id is None and "id" not in self._opened.columns

    def refresh(self) -> None:
        for cached in ("_opened", "all_ids", "_places"):
            self.__dict__.pop(cached, None)

    @cached_property
    def all_ids(self) -> np.ndarray:
        """The ids of all rows; (n,)."""
        every = slice(0, self.facts().count)
        if self.ids_are_row_numbers():
            return np.arange(every.stop, dtype=np.int64)
        column = self.id or "id"
        return as_ids(self._columns([column], every)[column], self.name)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {value: place for place, value in enumerate(self.all_ids.tolist())}

    def _places_of(self, ids: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Return row numbers of ids, -1 for those that do not exist."""
        wanted = np.asarray(ids, dtype=object).tolist()
        return np.array([self._places.get(value, -1) for value in wanted], dtype=np.int64)

    @cached_property
    def _opened(self) -> FileRows:
        self._identity = identity_of(self.path)
        self._check_exists()
        if not (self.path.is_file() or self.path.is_dir()):
            raise StoreError(f"{self.path} is a pipe or a device. Give a file or a folder with vectors.")
        with self.while_it_is_there(), readable(self.path):
            rows = self._open()
            if self.items is not None:
                attach(rows, read_table(self.items), self.id, self.name)
        metric = rows.facts.metric or self.metric
        if self.metric not in (None, metric):
            raise StoreError(f"{self.path} compares by {metric}; got metric={self.metric!r}. Leave it out.")
        facts = replace(rows.facts, metric=metric, columns=tuple(rows.columns))
        return guarded(replace(rows, facts=facts), self.path)

    def _check_exists(self) -> None:
        if not self.path.exists() and was_interrupted(self.path):
            raise StoreError(
                f"a switch of {self.path} is happening, or was interrupted. Try again in a moment; if it was "
                f"interrupted: {command('recover', self.name)}"
            )
        if not self.path.exists():
            raise StoreError(f"{self.path} does not exist. Give a file or a folder.{files_near(self.path)}")

    def _columns(self, names: Sequence[str], where: Any) -> Columns:
        known = self._opened.columns
        check_columns(columns_in(self), names, list(known))
        return {name: list(known[name](where)) for name in names}

    # --- building green ------------------------------------------------------------------------------------

    @property
    def moved_name(self) -> str:
        return f"{self.path.stem}-moved{self.path.suffix}"

    def sibling(self, name: str) -> Self:
        """Return the file of this name in the same folder; a name with a / in it is a path."""
        path = Path(os.path.expanduser(name))
        path = self.path.with_name(name) if path.name == name else path.absolute()
        if self.keeps_suffix and path.suffix != self.path.suffix:
            path = path.with_name(path.name + self.path.suffix)
        return type(self)(path, vector=self.vector, id=self.id, metric=self.metric, items=self.items)

    def check_target(self, blue: Any, mark: Mark) -> None:
        check_outside(blue, self.path)
        check_output(self.path)
        check_output(self.path.with_name(f"{self.path.name}.hubless.json"))  # of its marks, the longest name
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path.parent} does not exist. Create it, on the disk of {blue.path}.")
        switch.check_same_disk(self.path, blue.path)
        super().check_target(blue, mark)

    @contextmanager
    def lock(self) -> Iterator[None]:
        with path_lock(self.path):
            try:
                yield
            finally:
                with suppress(Exception):  # a full disk is still full, and was reported already
                    self._writing.__exit__(StoreError, StoreError("it was stopped"), None)
                remove_unfinished(self.path)
                file_marks.forget_marks(self.path)
                self._workplace = None

    def part_path(self) -> Path:
        """Return where the copy is until it is whole: in a folder that only this user can enter."""
        if self._workplace is None:
            self._workplace = private_folder(self.path)
        return self._workplace / self.path.name

    def begin(self, blue: Any, mark: Mark) -> None:
        self._blue, self.build_mark, self._done, self._append = blue, mark, False, None
        if self.path.exists():
            existing = self.check_resumable(blue, mark)
            self._done = existing.done and existing.state == blue.state()

    def is_done(self) -> bool:
        """Say whether the copy exists already, made from the same state of blue."""
        return self._done

    def outdated(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        return np.full(len(batch.ids), not self._done)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        self._open_writer()(batch, moved)

    def _open_writer(self) -> Append:
        if self._append is None:
            self._append = self._writing.enter_context(self.writer(self._blue, self.part_path()))
        return self._append

    def finish(self, blue: Any, mark: Mark) -> None:
        if self._done:
            return
        part = self.part_path()
        if not part.exists():  # there was no row to write
            self._open_writer()
        self._writing.close()
        switch.copy_rights(blue.path, part)
        sync_all(part)
        file_marks.write_mark(self.path, file_marks.fingerprint(part), mark, like=blue.path)
        if self.path.is_dir():
            remove(self.path)  # ours, of an earlier state of blue
        os.replace(part, self.path)
        sync_folder(self.path.parent)
        self.refresh()

    # --- switching -----------------------------------------------------------------------------------------

    def is_interrupted(self) -> bool:
        return was_interrupted(self.path)

    def recover(self) -> bool:
        with path_lock(self.path):
            return switch.recover(self.path)

    def promote(self, green: Any) -> str:
        with switch.switching(self.path, green.path), green.while_it_is_there():
            kept = promote_file(self, green)
        self.refresh()
        return str(kept)

    def rollback(self) -> str:
        with switch.switching(self.path), self.while_it_is_there():
            moved = rollback_file(self)
        self.refresh()
        return str(moved)
