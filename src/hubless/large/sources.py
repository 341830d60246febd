"""Where labeled objects come from when they are read part by part: arrays, mapped or not, and stores."""

import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..arrays import float_type
from ..stores.store import Facts, Store, StoreError
from .stream import Source
from .survey import Block

Prepared: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Arrays(Source):
    """A matrix of numbers and labels beside it, mapped from files or not."""

    def __init__(self, X: Any, y: Any, name: str = "X") -> None:
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub" or not X.shape[1]:
            told = f"{type(X).__name__} of {getattr(X, 'dtype', '?')}, shape {getattr(X, 'shape', '?')}"
            raise ValueError(
                f"X must be a matrix of numbers in NumPy, mapped or not, one row per object; got {told}."
            )
        if isinstance(y, str):
            raise ValueError(f"y must have one label per row of X; got the text {y!r}, and X is no store.")
        if y is None or len(y) != len(X):
            told = "no labels" if y is None else f"{len(y):,} labels"
            raise ValueError(f"y must have one label per row of X; got {told} for {len(X):,} rows.")
        self.X, self.y, self.name = X, y, name
        self.n_rows, self.n_columns = X.shape
        self.dtype = float_type(X.dtype)
        self.itemsize = self.dtype.itemsize

    def parts(self, size: int) -> Iterator[tuple[str, Callable[[], Iterable[Block]]]]:
        for start in range(0, len(self.X), size):
            rows = slice(start, min(start + size, len(self.X)))
            name = f"rows {rows.start:,} to {rows.stop - 1:,} of {self.name}"

            def read(rows: slice = rows, name: str = name) -> Iterable[Block]:
                X = np.array(self.X[rows], self.dtype)  # a copy: what is mapped is given back
                give_back(self.X)
                yield Block(name, X, self.y[rows], rows.start)

            yield name, read


def give_back(X: np.ndarray) -> None:
    """Let go of the pages of a mapped file, which would else count as memory of the process."""
    if isinstance(X, np.memmap) and X.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        mapped = getattr(X, "_mmap", None)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)


class OfStore(Source):
    """The items of a store with the column of their labels, which are compared as texts."""

    texts = may_miss = True

    def __init__(self, store: Store, label: str, prepared: Prepared | None = None) -> None:
        """`prepared` brings vectors into the space that they are compared in; NaN for those it has none."""
        self.store, self.label, self.name, self.prepared = store, label, store.name, prepared
        self.pieces, facts = store.pieces(), self.facts_of(store)
        if label not in facts.columns:
            told = ", ".join(facts.columns) or "none; give a table of items"
            raise StoreError(f"{store.name} has no column {label!r}; it has {told}.")
        self.n_columns, self.n_rows = facts.dimension, facts.count
        self.itemsize = facts.itemsize

    @staticmethod
    def facts_of(store: Store) -> Facts:
        """Facts of a store, of whose files some may be bad."""
        good = [found for found in map(_facts, store.pieces()) if found is not None]
        if not good:
            return store.facts()  # which says what is wrong with it
        dimension = Counter(found.dimension for found in good).most_common(1)[0][0]
        first = next(found for found in good if found.dimension == dimension)
        dtype = "float64" if any(found.dtype == "float64" for found in good) else first.dtype
        return replace(first, count=sum(found.count for found in good), dtype=dtype)

    def state(self) -> str:
        return self.store.state()

    def check_scratch(self, folder: Path) -> None:
        path = getattr(self.store, "path", None)
        if path is not None and path.is_dir() and folder.resolve().is_relative_to(path):
            raise StoreError(
                f"the scratch {folder} lies among the items of {self.name}; name another folder."
            )

    def parts(self, size: int) -> Iterator[tuple[str, Callable[[], Iterable[Block]]]]:
        if len(self.pieces) > 1:
            for piece in self.pieces:
                yield piece.name, partial(self._blocks, piece, size)
            return
        for block in self._blocks(self.pieces[0], size):  # of one file, some rows are a part
            last = block.first + len(block.X) - 1
            name = f"rows {block.first:,} to {last:,} of {self.name}"
            yield name, partial(iter, [block._replace(part=name)])

    def _blocks(self, piece: Store, size: int) -> Iterator[Block]:
        first = 0
        for vectors, columns in piece.blocks([self.label], size):
            X = vectors if self.prepared is None else self.prepared(vectors)
            may_lack = piece.may_lack_vectors or self.prepared is not None
            yield Block(piece.name, X, columns[self.label], first, may_lack)
            first += len(vectors)


def _facts(piece: Store) -> Facts | None:
    """Facts of a piece; None where it cannot be read, which reading it says in its turn."""
    try:
        return piece.facts()
    except (OSError, ValueError):
        return None
