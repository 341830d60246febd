"""Files of vectors: read by row number, moved into a new file that takes the name of the old one.

A subclass opens its file (`_open`) and says how a moved copy is written (`writer`).
"""

import os
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from .. import switch
from ..checks import as_float, check_columns, check_promoted, check_unchanged, path_lock
from ..store import ROWS, Batch, Columns, Facts, Mark, Store, StoreError
from .file_rows import FileRows, as_ids, attach, read_table

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

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        vector: str | None = None,
        id: str | None = None,
        metric: str | None = None,
        items: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = Path(path).expanduser().resolve()  # a link stays a link: its target is replaced
        self.name = str(self.path)
        self.vector, self.id, self.metric, self.items = vector, id, metric, items
        self._writing = ExitStack()  # the open writer

    @classmethod
    def from_source(cls, source: str, **options: Any) -> Self:
        return cls(source, **options)

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
        return self._opened.facts

    def mark(self) -> Mark | None:
        return switch.read_mark(self.path) or (self._mark_inside() if self.exists() else None)

    def _mark_inside(self) -> Mark | None:
        """Return the mark in the file itself, where its format has a place for one: copies have it too."""
        return None

    def state(self) -> str:
        """Return a fingerprint of the content, sampled where a file is large, and its time of change."""
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        changed = max((file.stat().st_mtime_ns for file in files), default=0)
        return f"{switch.fingerprint(self.path)} {changed}"

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        start = 0
        for vectors, values in self.blocks(columns, size):
            yield Batch(self.all_ids[start : start + len(vectors)], vectors, values)
            start += len(vectors)

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        check_columns(self.name, columns, self.facts().columns)
        if self.items is None:
            yield from self._blocks(columns, size)
            return
        start = 0
        for vectors, _ in self._blocks((), size):
            yield vectors, self._columns(columns, slice(start, start + len(vectors)))
            start += len(vectors)

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
        vectors = as_float(self._opened.vectors(places))
        return Batch(self.all_ids[places], vectors, self._columns(columns, places))

    def contains(self, ids: np.ndarray) -> np.ndarray:
        return self._places_of(ids) >= 0

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Compare with every row."""
        from ...neighbors.knn import exhaustive  # here: it loads scikit-learn, which reading does not need

        vectors, _ = self.read_span(0, self.facts().count)
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
        if not self.path.exists():
            raise StoreError(f"{self.path} does not exist. Give a file or a folder with vectors.")
        rows = self._open()
        if self.items is not None:
            attach(rows, read_table(self.items), self.id, self.name)
        metric = rows.facts.metric or self.metric
        if self.metric not in (None, metric):
            raise StoreError(f"{self.path} compares by {metric}; got metric={self.metric!r}. Leave it out.")
        return replace(rows, facts=replace(rows.facts, metric=metric, columns=tuple(rows.columns)))

    def _columns(self, names: Sequence[str], where: Any) -> Columns:
        known = self._opened.columns
        check_columns(self.name, names, list(known))
        return {name: list(known[name](where)) for name in names}

    # --- building green ------------------------------------------------------------------------------------

    def sibling(self, name: str) -> Self:
        """Return the file of this name in the same folder; a name with a / in it is a path."""
        path = Path(name).expanduser()
        path = self.path.with_name(name) if path.name == name else path.absolute()
        if self.keeps_suffix and path.suffix != self.path.suffix:
            path = path.with_name(path.name + self.path.suffix)
        return type(self)(path, vector=self.vector, id=self.id, metric=self.metric, items=self.items)

    @contextmanager
    def lock(self) -> Iterator[None]:
        with path_lock(self.path):
            try:
                yield
            finally:
                with suppress(Exception):  # a full disk is still full, and was reported already
                    self._writing.__exit__(StoreError, StoreError("it was stopped"), None)
                _delete(self.part_path())
                switch.forget_marks(self.path)
                switch.remove_left_parts(self.path)

    def part_path(self) -> Path:
        """Return where the copy is until it is whole."""
        return self.path.with_name(f".{self.path.name}.hubless-part{self.path.suffix}")

    def begin(self, blue: Any, mark: Mark) -> None:
        self._blue, self.build_mark, self._done, self._append = blue, mark, False, None
        if self.path.exists():
            existing = self.check_resumable(blue, mark)
            self._done = existing.done and existing.state == blue.state()
        switch.check_same_disk(self.path, blue.path)
        if not self._done:
            _delete(self.part_path())

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
        shutil.copymode(blue.path, part)
        _sync(part)
        switch.write_mark(self.path, switch.fingerprint(part), mark)
        if self.path.is_dir():
            shutil.rmtree(self.path)  # ours, of an earlier state of blue
        os.replace(part, self.path)
        self.refresh()

    # --- switching -----------------------------------------------------------------------------------------

    def recover(self) -> None:
        switch.recover_switch(self.path)

    def promote(self, green: Any) -> str:
        with path_lock(self.path):
            mark = check_unchanged(self, green)
            content, kept = switch.fingerprint(green.path), switch.original_of(self.path)
            if content == switch.fingerprint(self.path):
                raise StoreError(f"{green.name} equals {self.name}: the model moves none of its items.")
            self._check_not_an_original()
            switch.write_mark(self.path, content, replace(mark, original=kept.name))
            switch.put_in_place(green.path, self.path, kept)
        switch.forget_marks(green.path)
        self.refresh()
        return str(kept)

    def _check_not_an_original(self) -> None:
        """Refuse to replace the original that another name would roll back to."""
        owner = self.path.with_name(self.path.name.replace(".original", "", 1))
        if owner != self.path and switch.original_of(owner) == self.path and switch.marks_of(owner):
            raise StoreError(
                f"{self.name} is the original of {owner}, kept to roll back to. Roll back first."
            )

    def rollback(self) -> str:
        with path_lock(self.path):
            mark = check_promoted(self.name, self.mark())
            kept = switch.original_of(self.path)  # never a path from a file of marks
            content = switch.fingerprint(self.path)
            if not kept.exists() or switch.read_mark(kept) is not None:
                why = "is itself a moved copy" if kept.exists() else "no longer exists"
                raise StoreError(f"the original, {kept}, {why}: {self.name} stays as it is.")
            moved = switch.moved_copy_of(self.path, mark.model)
            switch.write_mark(moved, content, replace(mark, original=None, changed=False))
            switch.put_in_place(kept, self.path, moved)
        self.refresh()
        return str(moved)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Flush a file, or all files in a folder, to the disk, before it is renamed."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
