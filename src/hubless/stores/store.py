"""What a store of vectors is to hubless: a few verbs, the same for files, FAISS, LanceDB, pgvector, Qdrant.

Two stores stand side by side: the blue one serves, the green one (`blue.beside(name)`) is built. What green
must hold is a function of blue and of the model alone, so building it is a reconciliation: write what is
missing or differs, remove what blue no longer has, until a whole pass finds nothing to do. An apply that was
cut short is resumed by running it again; nothing has to be remembered but the mark, which green carries from
its first moment on and which tells by what model it is moved, so that nothing is moved twice.

Nothing here ever changes a row of blue. `promote` switches the name that is served to green and keeps blue;
`rollback` switches back and keeps green.
"""

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

METRICS = ("l2", "cosine", "ip")
Columns: TypeAlias = dict[str, list[Any]]
ROWS = 8192  # rows of a batch


class StoreError(ValueError):
    """What a store cannot do, with what to do instead."""


def answers(rows: Sequence[Sequence[Any]], k: int) -> np.ndarray:
    """Ids found for each query as an array of k columns: of int64, or of objects, with None for none."""
    found = np.full((len(rows), k), None, dtype=object)
    for place, row in enumerate(rows):
        found[place, : len(row)] = list(row)
    whole = all(isinstance(value, int | np.integer) for value in found.flat)
    return found.astype(np.int64) if whole else found


def need(module: str, extra: str) -> Any:
    """A module of an optional package; ImportError that names the extra where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is not installed: pip install 'hubless[{extra}]'") from error


class Batch(NamedTuple):
    """Some rows of a store."""

    ids: np.ndarray  # (n,), int64, or texts as an object array
    vectors: np.ndarray  # (n, d), float32 or float64; a row that has no vector is NaN
    columns: dict[str, list[Any]]  # the columns that were asked for, each of n values
    rows: Any = None  # whatever else the store needs to write these rows into its green twin

    def take(self, mask: np.ndarray) -> "Batch":
        """The rows where a mask is true; stores that fill `rows` say how it is cut."""
        columns = {
            name: [value for value, kept in zip(values, mask, strict=True) if kept]
            for name, values in self.columns.items()
        }
        return Batch(self.ids[mask], self.vectors[mask], columns, cut(self.rows, mask))


def cut(rows: Any, mask: np.ndarray) -> Any:
    """Some of the rows that a store carries along: a list, a NumPy array or an Arrow table."""
    if rows is None:
        return None
    if isinstance(rows, list):
        return [row for row, kept in zip(rows, mask, strict=True) if kept]
    if isinstance(rows, np.ndarray):
        return rows[mask]
    return rows.filter(mask)  # Arrow takes a NumPy mask


@dataclass(frozen=True)
class Facts:
    """What a store says about itself, without a look at its rows."""

    kind: str  # as "FAISS HNSW", "LanceDB table"
    metric: str | None  # one of METRICS; None where it has none, as a file
    dimension: int
    count: int
    dtype: str  # of the stored numbers, as "float32", "float16"
    index: str  # how it searches, in words: "exhaustive", "HNSW, M=32"
    columns: tuple[str, ...] = ()  # what `batches` can be asked for, besides ids and vectors
    is_exact: bool = True  # whether the vectors that it gives are those that were put in: not if quantised

    @property
    def itemsize(self) -> int:
        """Bytes of a number as it is computed with: half precision becomes single."""
        return 8 if self.dtype == "float64" else 4


@dataclass(frozen=True)
class Mark:
    """What a moved store carries, so that nothing is moved twice."""

    model: str  # hash of the model that moved it
    source: str  # name of the store that it was made from
    state: str  # `state()` of that store when it was last seen to agree
    done: bool  # whether all rows are there and its index is built
    original: str | None = None  # where the original is kept, once promoted
    changed: bool = False  # whether others wrote to it since, where that can be told

    def to_json(self) -> str:
        return json.dumps({"hubless": 1, **asdict(self)}, sort_keys=True)

    @staticmethod
    def from_json(text: str | bytes | None) -> "Mark | None":
        """The mark in a text, or None for a text that is not ours."""
        try:
            found = json.loads(text or "null")
            if not isinstance(found, dict) or found.pop("hubless", None) != 1:
                return None
            mark = Mark(**found)
        except (TypeError, ValueError, RecursionError):
            return None
        texts = (mark.model, mark.source, mark.state, mark.original or "")
        return mark if all(isinstance(text, str) for text in texts) else None


class Store(ABC):
    """Vectors with ids, in one place."""

    name: str  # as the user would type it
    written_at_once: bool = False  # whether green is one file, which is there whole or not at all
    may_lack_vectors: bool = True  # whether a row may have none, which is NaN in a batch

    # --- to read -------------------------------------------------------------------------------------------

    @abstractmethod
    def exists(self) -> bool:
        """Whether it is there."""

    @abstractmethod
    def facts(self) -> Facts:
        """What it says about itself; StoreError where it is not there or cannot be read."""

    @abstractmethod
    def mark(self) -> Mark | None:
        """Its mark; None where it was not made by hubless."""

    @abstractmethod
    def state(self) -> str:
        """A short text that differs whenever a row was added, removed or changed."""

    @abstractmethod
    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        """All rows, in an order of its own that stays while nothing is written."""

    def blocks(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[tuple[np.ndarray, Columns]]:
        """Vectors and columns of all rows, as in `batches`, without a look at ids: they may be too many."""
        for batch in self.batches(columns, size):
            yield batch.vectors, batch.columns

    def pieces(self) -> "Sequence[Store]":
        """The files that it consists of, where one may be bad and the others good; else itself."""
        return [self]

    @abstractmethod
    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        """The rows of these ids, in this order; those that it does not have are left out."""

    @abstractmethod
    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ids of the k nearest by its own metric and index, nearest first; (n, k), None for none."""

    def holds(self, ids: np.ndarray) -> np.ndarray:
        """Whether it has a row of each id; bool (n,)."""
        found = set(self.fetch(list(ids)).ids.tolist())
        return np.array([i in found for i in ids.tolist()], dtype=bool)

    def ids(self) -> Iterator[np.ndarray]:
        """All ids, a batch at a time."""
        for batch in self.batches():
            yield batch.ids

    def has_row_numbers(self) -> bool:
        """Whether its ids are nothing but the numbers of rows, which change when a row is put in between."""
        return False

    def refresh(self) -> None:
        """Forget what was read: the next look is a new one."""
        return

    # --- to build beside it --------------------------------------------------------------------------------

    @abstractmethod
    def beside(self, name: str) -> "Store":
        """The store of this name in the same place, whether or not it is there."""

    def lock(self) -> AbstractContextManager[None]:
        """Held while green is built; StoreError where another holds it. A process that dies frees it."""
        return nullcontext()

    @abstractmethod
    def begin(self, blue: Any, mark: Mark) -> None:
        """Make it, empty, with the columns of blue and the mark; go on where its mark is of this model.

        StoreError, and no change, where something else has this name. The index of blue is built by `finish`.
        """

    def stale(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        """Which rows of blue it lacks or has otherwise, be it the vector or another column; bool (n,)."""
        return np.ones(len(batch.ids), dtype=bool)

    @abstractmethod
    def write(self, batch: Batch, moved: np.ndarray) -> None:
        """Put rows of blue with other vectors, in the place of those with the same id."""

    def remove(self, ids: np.ndarray) -> None:
        """Take rows away, which blue no longer has."""
        raise StoreError(f"{self.name} cannot give up single rows; remove it and apply again.")

    @abstractmethod
    def finish(self, blue: Any, mark: Mark) -> None:
        """Build the index that blue has, then set the mark (of the same model, done) as the last step."""

    # --- to switch -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Put right what a switch that was cut short has left, where one can be."""
        return

    @abstractmethod
    def promote(self, green: Any) -> str:
        """Let this name serve green, in one step; the name that the original is kept under.

        The state of blue is compared with the mark of green where nobody can write in between, or right
        before: StoreError, and no change, where blue changed since.
        """

    @abstractmethod
    def rollback(self) -> str:
        """Let this name serve the original again, in one step; the name that the moved one is kept under."""
