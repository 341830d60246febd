"""The contract of a store of vectors, which files, FAISS, LanceDB, PostgreSQL and Qdrant all implement.

Moved vectors go into service by a *blue/green* switch. Blue is the store that serves. Green is its moved
copy, built under another name in the same place (`blue.sibling(name)`) while blue keeps serving.
`blue.promote(green)` makes the served name refer to green, in one step, and keeps blue; `rollback` switches
back and keeps green. No row of blue is ever changed.

What green must contain follows from blue and the model alone, so building it is a comparison: write the rows
that are missing or differ, remove those that blue no longer has, until a whole pass finds nothing to do. An
interrupted build is resumed by running it again. The only record that is needed is the mark, which green has
from its creation on: it names the model that moved it, so that nothing is moved twice.

To add a store, subclass `Store`, or `Database` (database.py) where users type KIND:ADDRESS#TABLE: implement
the abstract methods, and override the others where the engine can do better. Raise `StoreError` for whatever
a user can repair, and say how; checks.py has what many stores refuse.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .mark import Mark as Mark

ROWS = 8192  # rows of a batch
Columns: TypeAlias = dict[str, list[Any]]
QUANTISED = "keeps its vectors quantised: what it returns is not what was stored"


class StoreError(ValueError):
    """A store cannot do something; the message says what to do instead."""


class Batch(NamedTuple):
    """A part of the rows of a store."""

    ids: np.ndarray  # (n,), int64; or objects: texts, or numbers that int64 cannot hold
    vectors: np.ndarray  # (n, d), float32 or float64; a row that has no vector is NaN
    columns: Columns  # the requested columns, each of n values
    rows: Any = None  # whatever else the store needs to write these rows: a list, or an Arrow table

    def take(self, mask: np.ndarray) -> "Batch":
        """Return the rows where a mask is true."""
        columns = {name: _where(mask, values) for name, values in self.columns.items()}
        rows = self.rows
        if rows is not None:
            rows = _where(mask, rows) if isinstance(rows, list) else rows.filter(mask)
        return Batch(self.ids[mask], self.vectors[mask], columns, rows)


def _where(mask: np.ndarray, values: list[Any]) -> list[Any]:
    return [value for value, is_kept in zip(values, mask, strict=True) if is_kept]


@dataclass(frozen=True)
class Facts:
    """What is known about a store without reading its rows."""

    kind: str  # for example "FAISS HNSW", "LanceDB table"
    metric: str | None  # one of METRICS; None where it has none, such as a file
    dimension: int
    count: int
    dtype: str  # of the stored numbers, for example "float32", "float16"
    index: str  # how it searches, in words: "exhaustive", "HNSW, M=32"
    columns: tuple[str, ...] = ()  # what can be requested from `batches`, besides ids and vectors
    is_exact: bool = True  # whether it returns the vectors that were put in, and can be built again
    why_inexact: str = QUANTISED  # said where it is not; a sentence that starts with the store

    @property
    def itemsize(self) -> int:
        """Bytes of a number in computations: half precision becomes single."""
        return 8 if self.dtype == "float64" else 4


def tolerance(dtype: str) -> float:
    """Return the rounding that storing a vector may cause, as a share of its largest number."""
    return 1e-3 if dtype == "float16" else 1e-5


def agree(stored: np.ndarray, wanted: np.ndarray, dtype: str) -> np.ndarray:
    """Say which rows are equal up to rounding, with NaN and infinity in the same places; bool (n,)."""
    if np.array_equal(stored, wanted):  # bit for bit, as a rule
        return np.ones(len(wanted), dtype=bool)
    sizes = np.where(np.isfinite(wanted), np.abs(wanted), 0)
    largest = sizes.max(axis=1, keepdims=True)  # (n, 1)
    with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞
        is_near = np.abs(stored - wanted) <= tolerance(dtype) * largest
    is_same = (stored == wanted) | (np.isnan(stored) & np.isnan(wanted))
    return np.asarray((is_near | is_same).all(axis=1))


def _are_missing(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    if np.array_equal(ids, known):
        return np.zeros(len(ids), dtype=bool)
    every = set(known.tolist())
    return np.array([id not in every for id in ids.tolist()], dtype=bool)


class Store(ABC):
    """Vectors with ids, in one place."""

    name: str  # as the user would type it
    is_written_whole: bool = False  # whether green appears as a whole when it is finished, such as a file
    is_read_whole: bool = False  # whether all vectors are in memory from the first look until `refresh`
    may_lack_vectors: bool = True  # whether a row may have no vector, which is NaN in a batch
    has_fixed_columns: bool = True  # whether `facts` knows all columns, and not just those of some rows
    switch_note: str | None = None  # what users should know of a switch, where that is not a single step
    can_reconcile: bool = False  # whether it has `catch_up`, and `promote` takes a Reconcile, too

    @classmethod
    @abstractmethod
    def from_source(cls, source: str, **options: Any) -> "Store":
        """Return the store that a user typed; options are vector, id, metric and items, as of `open_store`.

        Parse the whole text here, and refuse options that make no sense for the store. Connect to nothing
        yet: a store that does not exist is an error of `facts`, not of this method.
        """

    # --- reading -------------------------------------------------------------------------------------------

    @abstractmethod
    def exists(self) -> bool:
        """Say whether the store exists; False, not an error, where it does not."""

    @abstractmethod
    def facts(self) -> Facts:
        """Describe the store; StoreError where it does not exist or cannot be read."""

    @abstractmethod
    def mark(self) -> Mark | None:
        """Return the mark; None where hubless did not make this store."""

    @abstractmethod
    def state(self) -> str:
        """Return a short text that changes whenever any process adds, removes or changes a row."""

    @abstractmethod
    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        """Yield all rows, at most `size` at a time, in an order that stays while nothing is written.

        StoreError where a column does not exist. Fill `Batch.rows` with what `write` will need of a row.
        """

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        """Yield vectors and columns as `batches` does; override where reading all ids takes memory."""
        for batch in self.batches(columns, size):
            yield batch.vectors, batch.columns

    def pieces(self) -> "Sequence[Store]":
        """Return the stores that this one is made of, where one may be damaged and the others readable."""
        return [self]

    @abstractmethod
    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        """Return the rows with these ids, in this order; leave out ids that do not exist."""

    @abstractmethod
    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Return ids of the k nearest by the store's metric and index, nearest first; (n, k).

        Rows are padded with None; a store with fewer than k rows may return fewer columns. Let the engine
        search, as it does for its other clients.
        """

    def contains(self, ids: np.ndarray) -> np.ndarray:
        """Say for each id whether there is a row with it; bool (n,)."""
        known = set(self.fetch(ids.tolist()).ids.tolist())
        return np.array([id in known for id in ids.tolist()], dtype=bool)

    def ids(self) -> Iterator[np.ndarray]:
        """Yield all ids, a batch at a time."""
        for batch in self.batches():
            yield batch.ids

    def ids_are_row_numbers(self) -> bool:
        """Say whether ids are only numbers of rows, which change when a row is inserted in between."""
        return False

    def refresh(self) -> None:
        """Forget what was cached, so that the next call reads again."""
        self.__dict__.pop("_dtype", None)

    @cached_property
    def _dtype(self) -> str:
        return self.facts().dtype

    def pinned(self) -> "Store":
        """Return a store that keeps reading what the name refers to now; an alias may be switched."""
        return self

    # --- building green ------------------------------------------------------------------------------------

    @property
    def moved_name(self) -> str:
        """A name for the moved copy, which `sibling` takes."""
        return f"{self.name.rpartition('#')[2]}_moved"

    @abstractmethod
    def sibling(self, name: str) -> "Store":
        """Return the store of this name in the same place, with the same options; it need not exist.

        Take short names ("products_moved") and full ones, such as `self.name` and those that `promote` and
        `rollback` return. StoreError for a full name in another place.
        """

    def lock(self) -> AbstractContextManager[None]:
        """Hold the lock of green while it is built; StoreError where another process does.

        A process that dies must free the lock. Override it unless the engine itself allows one writer only.
        """
        return nullcontext()

    def check_target(self, blue: Any, mark: Mark) -> None:
        """Refuse, before a row of blue is read, a name that `begin` refuses or cannot write."""
        if self.exists():
            self.check_resumable(blue, mark)

    def begin(self, blue: Any, mark: Mark) -> None:
        """Create green, empty and with the mark; or resume what exists."""
        if self.exists():
            self.check_resumable(blue, mark)
            self.set_mark(mark)
        else:
            self.create(blue, mark)

    def check_resumable(self, blue: Any, mark: Mark) -> Mark:
        """Return the mark of what exists; StoreError unless the same model began it from blue."""
        existing = self.mark()
        if existing is not None and existing.model == mark.model and self.is_made_from(blue, existing):
            return existing
        what = "was not made by hubless"
        if existing is not None:
            what = f"is {existing.source} moved by model {existing.model[:12]}"
        raise StoreError(f"{self.name} exists already and {what}. Give another name, or remove it first.")

    def is_made_from(self, blue: Any, mark: Mark) -> bool:
        """Say whether the mark of this store names blue as its source."""
        return bool(mark.source == blue.name)

    def create(self, blue: Any, mark: Mark) -> None:
        """Create green, empty, with the columns of blue and with the mark, in one step.

        Its vectors have `mark.width` columns; as many as those of blue where that is None.
        """
        raise NotImplementedError

    def set_mark(self, mark: Mark) -> None:
        """Set the mark of a store that exists."""
        raise NotImplementedError

    def begin_pass(self) -> None:
        """Prepare for a pass over blue, in which `fetch` may answer from green as it is at this moment."""
        return

    def outdated(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        """Say which rows of blue green lacks or has with another vector or other columns; bool (n,)."""
        stored = self.fetch(batch.ids.tolist())
        is_outdated = _are_missing(batch.ids, stored.ids)
        if is_outdated.all():
            return is_outdated
        wanted, vectors = batch.take(~is_outdated), moved[~is_outdated]
        is_same = agree(stored.vectors, vectors, self._dtype) & self.have_same_rows(stored, wanted)
        is_outdated[~is_outdated] = ~is_same
        return is_outdated

    def have_same_rows(self, stored: Batch, wanted: Batch) -> np.ndarray:
        """Say for each id of two batches whether all but its vector is equal; bool (n,)."""
        pairs = zip(stored.rows, wanted.rows, strict=True)
        return np.array([mine == other for mine, other in pairs], dtype=bool)

    @abstractmethod
    def write(self, batch: Batch, moved: np.ndarray) -> None:
        """Write rows of blue with other vectors; a row with the same id is replaced, never added twice."""

    def remove(self, ids: np.ndarray) -> None:
        """Remove rows that blue no longer has."""
        raise StoreError(f"{self.name} cannot remove single rows; remove all of it and apply again.")

    def catch_up(self, blue: Any, mark: Mark, reconcile: Any) -> tuple[str, int]:
        """Make green agree with one moment of blue; return the state of blue then, and how many rows changed.

        Only where `can_reconcile`: rows of several moments may, for example, share a unique value.
        """
        raise NotImplementedError

    def finish(self, blue: Any, mark: Mark) -> None:
        """Build the search indexes that blue has; as the last step, set the mark, which is then `done`."""
        self.set_mark(mark)

    # --- switching -----------------------------------------------------------------------------------------

    def is_interrupted(self) -> bool:
        """Say whether a switch was interrupted, or is happening now; write nothing."""
        return False

    def recover(self) -> bool:
        """Complete or undo an interrupted switch, with the lock; say whether there was one.

        Override both where the engine can leave a switch half done.
        """
        return False

    @abstractmethod
    def promote(self, green: Any) -> str:
        """Make this name serve green, in one step; return the name under which the original is kept.

        Compare the state of blue with that in the mark of green where nobody can write in between, or right
        before the switch: StoreError, and no change, where blue changed since.

        A store that `can_reconcile` takes a second argument, a `Reconcile` or None, to move the last changes
        right there. Beyond the bounds in it, StoreError, and blue serves as before.
        """

    @abstractmethod
    def rollback(self) -> str:
        """Make this name serve the original again, in one step; return the name under which green is kept."""
