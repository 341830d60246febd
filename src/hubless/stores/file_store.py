"""What stores that are files share: how they are replaced, and rows that go by their number.

A subclass opens its file (`_open`) and says how a moved copy is written (`_writer`).
"""

import os
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .items import Items
from .rows import Rows, as_float, as_ids, attach, exhaustive
from .store import ROWS, Batch, Columns, Facts, Mark, Store, StoreError
from .switch import (
    check_same_disk,
    fingerprint,
    forget_marks,
    free_name,
    locked,
    marks_of,
    original_of,
    put_in_place,
    read_mark,
    settle,
    write_mark,
)


class FileStore(Store):
    """Vectors in a file, or in a folder of files."""

    written_at_once = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        vector: str | None = None,
        id: str | None = None,
        metric: str | None = None,
        items: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = Path(path).expanduser().resolve()  # a link stays one: what it leads to is replaced
        self.name = str(self.path)
        self.vector, self.id, self.metric, self.items = vector, id, metric, items
        self._rows: Rows | None = None
        self._ids: np.ndarray | None = None
        self._places: dict[Any, int] | None = None
        self._write: Any = None
        self._blue: Any = None

    @abstractmethod
    def _open(self) -> Rows:
        """The file, to be read."""

    @abstractmethod
    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Callable[[Batch, np.ndarray], None]]:
        """What appends rows of blue with other vectors to a new file; whole when it is closed."""

    # --- to read -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self.path.exists()

    def facts(self) -> Facts:
        return self._opened().facts

    def mark(self) -> Mark | None:
        return read_mark(self.path) or (self._mark_inside() if self.exists() else None)

    def _mark_inside(self) -> Mark | None:
        """The mark in the file itself, where its format has a place for one: that goes with every copy."""
        return None

    def state(self) -> str:
        """Its content, of which a large file tells but samples, and when it was last written to."""
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        return f"{fingerprint(self.path)} {max((file.stat().st_mtime_ns for file in files), default=0)}"

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        ids, start = self._all_ids(), 0
        for vectors, values in self.blocks(columns, size):
            part = slice(start, start + len(vectors))
            start = part.stop
            yield Batch(ids[part], vectors, values)

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        rows = self._opened()
        for start in range(0, rows.facts.count, size):
            part = slice(start, min(start + size, rows.facts.count))
            yield as_float(rows.read(part)), self._columns(columns, part)

    def spans(self, size: int) -> list[tuple[int, int]]:
        """Rows that can be read on their own, as (first, last + 1), of about so many each."""
        count = self.facts().count
        return [(start, min(start + size, count)) for start in range(0, count, size)]

    def read_span(self, start: int, last: int, columns: Sequence[str] = ()) -> tuple[np.ndarray, Columns]:
        """Vectors and columns of such rows."""
        part = slice(start, last)
        return as_float(self._opened().read(part)), self._columns(columns, part)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        rows, places = self._opened(), self._places_of(ids)
        places = places[places >= 0]
        return Batch(self._all_ids()[places], as_float(rows.take(places)), self._columns(columns, places))

    def holds(self, ids: np.ndarray) -> np.ndarray:
        return self._places_of(ids) >= 0

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """By comparing with every row."""
        rows = self._opened()
        count, metric = rows.facts.count, rows.facts.metric or "l2"
        found = exhaustive(queries, as_float(rows.read(slice(0, count))), k, metric)
        return np.asarray(self._all_ids()[found])

    def _opened(self) -> Rows:
        if self._rows is None:
            if not self.path.exists():
                raise StoreError(f"{self.path} is not there. Give a file or a folder with vectors.")
            rows = self._open()
            if self.items is not None:
                attach(rows, Items.read(self.items), self.id, self.name)
            if self.metric is not None and rows.facts.metric not in (None, self.metric):
                raise StoreError(
                    f"{self.path} compares by {rows.facts.metric}; got metric={self.metric!r}. Leave it out."
                )
            facts = replace(rows.facts, metric=rows.facts.metric or self.metric, columns=tuple(rows.columns))
            self._rows = replace(rows, facts=facts)
        return self._rows

    def _columns(self, names: Sequence[str], part: Any) -> dict[str, list[Any]]:
        known = self._opened().columns
        for name in names:
            if name not in known:
                raise StoreError(f"{self.name} has no column {name!r}; it has {list(known) or 'none'}.")
        return {name: list(known[name](part)) for name in names}

    def _all_ids(self) -> np.ndarray:
        if self._ids is None:
            rows = self._opened()
            column = self.id or ("id" if "id" in rows.columns else None)
            if column is None:
                self._ids = np.arange(rows.facts.count, dtype=np.int64)
            else:
                self._ids = as_ids(self._columns([column], slice(0, rows.facts.count))[column], self.name)
        return self._ids

    def has_row_numbers(self) -> bool:
        return self.id is None and "id" not in self._opened().columns

    def _places_of(self, ids: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Row numbers of ids, -1 for those that are not there."""
        if self._places is None:
            self._places = {value: place for place, value in enumerate(self._all_ids().tolist())}
        asked = np.asarray(ids, dtype=object).tolist()
        return np.array([self._places.get(value, -1) for value in asked], dtype=np.int64)

    # --- to build beside it, and to switch -----------------------------------------------------------------

    def beside(self, name: str) -> "FileStore":
        """The file of this name in the same folder, or at a path, which has a / in it."""
        path = self._path_of(name)
        if path.suffix != self.path.suffix:
            path = path.with_name(path.name + self.path.suffix)
        return type(self)(path, vector=self.vector, id=self.id, metric=self.metric, items=self.items)

    def _path_of(self, name: str) -> Path:
        path = Path(name).expanduser()
        return self.path.with_name(name) if path.name == name else path.absolute()

    @contextmanager
    def lock(self) -> Iterator[None]:
        with locked(self.path):
            try:
                yield
            finally:
                self._give_up()
                _delete(self._part())
                forget_marks(self.path)

    def _give_up(self) -> None:
        """Close what did not get to its end, as it is."""
        if self._write is not None:
            (writer, _), self._write = self._write, None
            stopped = StoreError("it was stopped")
            with suppress(Exception):  # a full disk is full still, and was told already
                writer.__exit__(StoreError, stopped, None)

    def _part(self) -> Path:
        return self.path.with_name(f".{self.path.name}.hubless-part{self.path.suffix}")

    def begin(self, blue: Any, mark: Mark) -> None:
        self._done, self._begun = False, mark
        if self.path.exists():
            own = self.mark()
            if own is None or (own.model, own.source) != (mark.model, mark.source):
                told = "was not made by hubless" if own is None else f"is of model {own.model[:12]}"
                raise StoreError(f"{self.path} is there and {told}. Give another name, or remove it.")
            self._done = own.done and own.state == blue.state()
        check_same_disk(self.path, blue.path)
        self._blue = blue
        if not self._done:
            _delete(self._part())

    def is_done(self) -> bool:
        """Whether what was begun is there already, of the same state of blue."""
        return self._done

    def stale(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        return np.full(len(batch.ids), not self._done)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        self._open_writer()
        self._write[1](batch, moved)

    def _open_writer(self) -> None:
        if self._write is None:
            writer = self._writer(self._blue, self._part())
            self._write = (writer, writer.__enter__())

    def finish(self, blue: Any, mark: Mark) -> None:
        if self._done:
            return
        if not self._part().exists():  # there was no row to write
            self._open_writer()
        if self._write is not None:  # else others wrote it
            (writer, _), self._write = self._write, None
            writer.__exit__(None, None, None)
        shutil.copymode(blue.path, self._part())
        write_mark(self.path, fingerprint(self._part()), mark)
        if self.path.is_dir():
            shutil.rmtree(self.path)  # ours, of an earlier state of blue
        os.replace(self._part(), self.path)
        self.refresh()

    def settle(self) -> None:
        settle(self.path)

    def promote(self, green: Any) -> str:
        with locked(self.path):
            mark, content = green.mark(), fingerprint(green.path)
            if self.state() != mark.state:
                raise StoreError(
                    f"{self.name} changed since {green.name} was made. Apply again, then promote."
                )
            if content == fingerprint(self.path):
                raise StoreError(f"{green.name} equals {self.name}: the model moves none of its items.")
            self._check_not_kept()
            kept = original_of(self.path)
            write_mark(self.path, content, replace(mark, original=kept.name))
            put_in_place(green.path, self.path, kept)
        forget_marks(green.path)
        self.refresh()
        return str(kept)

    def _check_not_kept(self) -> None:
        """Refuse to let the original that another name would roll back to be anything else."""
        owner = self.path.with_name(self.path.name.replace(".original", "", 1))
        if owner != self.path and original_of(owner) == self.path and marks_of(owner):
            raise StoreError(
                f"{self.name} is the original of {owner}, kept to roll back to. Roll back first."
            )

    def rollback(self) -> str:
        with locked(self.path):
            mark = self.mark()
            if mark is None or mark.original is None:
                raise StoreError(f"{self.name} does not serve a moved copy: there is nothing to roll back.")
            kept, content = original_of(self.path), fingerprint(self.path)  # no path that marks name
            if not kept.exists() or read_mark(kept) is not None:
                told = "is not there any more" if not kept.exists() else "was moved itself"
                raise StoreError(f"the original, {kept}, {told}: {self.name} stays as it is.")
            moved = free_name(self._moved(mark), self.path)
            write_mark(moved, content, replace(mark, original=None, changed=False))
            put_in_place(kept, self.path, moved)
        self.refresh()
        return str(moved)

    def _moved(self, mark: Mark) -> Path:
        """Where the moved copy is kept, once rolled back."""
        return self.path.with_name(f"{self.path.stem}.moved-{mark.model[:8]}{self.path.suffix}")

    def refresh(self) -> None:
        self._rows = self._ids = self._places = None


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
