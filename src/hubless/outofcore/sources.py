"""Where labeled objects are read from, block by block: arrays, mapped from files or not, and stores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..arrays import float_type
from ..stores.checks import check_columns, columns_in
from ..stores.store import Facts, Store
from ..support.mapping import last_written, release_pages
from .block import Block, Look
from .memory import rows_and_room
from .objects import LocalObjects, read_part

Prepare: TypeAlias = Callable[[np.ndarray], np.ndarray]


class ArrayObjects(LocalObjects):
    """A matrix of numbers and labels beside it, mapped from files or not."""

    def __init__(self, X: Any, y: Any, memory: int, *, skip_bad: bool = False) -> None:
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub" or not X.shape[1]:
            got = f"{type(X).__name__} of {getattr(X, 'dtype', '?')}, shape {getattr(X, 'shape', '?')}"
            raise ValueError(
                f"X must be a matrix of numbers in NumPy, mapped or not, one row per object; got {got}."
            )
        if isinstance(y, str):
            raise ValueError(f"y must have one label per row of X; got the text {y!r}, and X is not a store.")
        if y is None or len(y) != len(X):
            got = "no labels" if y is None else f"{len(y):,} labels"
            raise ValueError(f"y must have one label per row of X; got {got} for {len(X):,} rows.")
        y = y.to_numpy() if hasattr(y, "to_numpy") else y  # a series counts rows by its index
        self.X, self.y, self.name, self.memory = X, y, "X", memory
        self.dtype = float_type(X.dtype)
        label = y.itemsize if isinstance(y, np.ndarray) else 0
        self.size, self.room = rows_and_room(memory, X.shape[1], self.dtype.itemsize, label)
        self.n_blocks, self.itemsize = -(-len(X) // self.size), self.dtype.itemsize
        self.look = Look(X.shape[1], skip_bad=skip_bad)

    def state(self) -> str:
        return f"{last_written(self.X)} {last_written(self.y)}"

    def blocks(self, wanted: set[int] | None = None) -> Iterator[tuple[int, Block]]:
        for number, start in enumerate(range(0, len(self.X), self.size)):
            if wanted is None or number in wanted:
                rows = slice(start, min(start + self.size, len(self.X)))
                X = np.array(self.X[rows], self.dtype)  # a copy: mapped pages are released
                release_pages(self.X)
                release_pages(self.y)  # of the block before
                part = f"rows {rows.start:,} to {rows.stop - 1:,} of {self.name}"
                yield number, Block(part, X, self.y[rows], rows.start)


class StoreObjects(LocalObjects):
    """The items of a store with the column of their labels, which are compared as texts."""

    def __init__(
        self,
        store: Store,
        label: str,
        memory: int,
        prepare: Prepare | None = None,
        *,
        skip_bad: bool = False,
    ) -> None:
        """`prepare` brings vectors into the space that they are compared in; NaN where there is none."""
        self.store, self.label, self.name, self.prepare = store, label, store.name, prepare
        self.memory = memory
        self.pieces, facts = store.pieces(), facts_of(store)
        self.counts = [0] * len(self.pieces)  # blocks of each, once it was read
        check_label(store, facts, label)
        self.size, self.room = rows_and_room(memory, facts.dimension, facts.itemsize)
        self.n_blocks = max(len(self.pieces), -(-facts.count // self.size))
        self.itemsize = facts.itemsize
        self.look = Look(facts.dimension, as_texts=True, may_miss=True, skip_bad=skip_bad)

    def state(self) -> str:
        return self.store.state()

    def blocks(self, wanted: set[int] | None = None) -> Iterator[tuple[int, Block]]:
        number, last = 0, None if wanted is None else max(wanted)
        for place, piece in enumerate(self.pieces):
            first, count = number, self.counts[place]
            if wanted is not None and count and wanted.isdisjoint(range(first, first + count)):
                number += count
                continue
            for block in read_part(piece.name, partial(self._read, piece)):
                if wanted is None or number in wanted:
                    yield number, block
                if number == last:
                    return
                number += 1
            self.counts[place] = number - first

    def _read(self, piece: Store) -> Iterable[Block]:
        first, is_part = 0, len(self.pieces) > 1
        try:
            for vectors, columns in piece.blocks([self.label], self.size):
                X = vectors if self.prepare is None else self.prepare(vectors)
                may_lack = piece.may_lack_vectors or self.prepare is not None
                part = piece.name if is_part else _rows(first, len(X), piece.name)
                yield Block(part, X, columns[self.label], first, may_lack)
                first += len(vectors)
        finally:
            if is_part and piece.is_read_whole:
                piece.refresh()


def _rows(first: int, count: int, name: str) -> str:
    return f"rows {first:,} to {first + count - 1:,} of {name}"


def facts_of(store: Store) -> Facts:
    """Return the facts of a store, some of whose files may be bad."""
    pieces = store.pieces()
    good = [facts for piece in pieces if (facts := _facts(piece, is_part=len(pieces) > 1)) is not None]
    if not good:
        return store.facts()  # raises an error that says what is wrong
    dimension = Counter(facts.dimension for facts in good).most_common(1)[0][0]
    first = next(facts for facts in good if facts.dimension == dimension)
    dtype = "float64" if any(facts.dtype == "float64" for facts in good) else first.dtype
    return replace(first, count=sum(facts.count for facts in good), dtype=dtype)


def _facts(piece: Store, *, is_part: bool) -> Facts | None:
    """Return the facts of a piece; None where it cannot be read: reading it will report why."""
    try:
        return piece.facts()
    except (OSError, ValueError):
        return None
    finally:
        if is_part and piece.is_read_whole:
            piece.refresh()


def check_label(store: Store, facts: Facts, label: str) -> None:
    """Refuse a column of labels that a store does not have."""
    check_columns(columns_in(store), [label], facts.columns)
