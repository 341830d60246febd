"""Where labeled objects come from when they are read part by part: arrays, mapped or not, and stores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..stores.store import Facts, Store
from .stream import Source
from .survey import Block

Prepared: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Arrays(Source):
    """A matrix of numbers and labels beside it, mapped from files or not."""

    def __init__(self, X: Any, y: Any, name: str = "X") -> None:
        if getattr(X, "ndim", None) != 2 or np.dtype(X.dtype).kind not in "fiub":
            told = f"{getattr(X, 'dtype', type(X).__name__)} of shape {getattr(X, 'shape', '?')}"
            raise ValueError(f"X must be a matrix of numbers, one row per object; got {told}.")
        if y is None or len(y) != len(X):
            told = "no labels" if y is None else f"{len(y):,} labels"
            raise ValueError(f"y must have one label per row of X; got {told} for {len(X):,} rows.")
        self.X, self.y, self.name = X, y, name
        self.n_rows, self.n_columns = X.shape
        self.dtype = np.float32 if X.dtype in (np.float16, np.float32) else np.float64
        self.itemsize = np.dtype(self.dtype).itemsize

    def parts(self, size: int) -> Iterator[tuple[str, Callable[[], Iterable[Block]]]]:
        for start in range(0, len(self.X), size):
            rows = slice(start, min(start + size, len(self.X)))
            name = f"rows {rows.start:,} to {rows.stop - 1:,} of {self.name}"

            def read(rows: slice = rows, name: str = name) -> Iterable[Block]:
                yield Block(name, np.asarray(self.X[rows], self.dtype), self.y[rows], rows.start)

            yield name, read


class OfStore(Source):
    """The items of a store with the column of their labels, which are compared as texts."""

    texts = may_miss = True

    def __init__(self, store: Store, label: str, prepared: Prepared | None = None) -> None:
        """`prepared` brings vectors into the space that they are compared in; NaN for those it has none."""
        self.store, self.label, self.name, self.prepared = store, label, store.name, prepared
        self.pieces, facts = store.pieces(), self.facts_of(store)
        self.n_columns, self.n_rows = facts.dimension, facts.count
        self.itemsize = 8 if facts.dtype == "float64" else 4

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
