"""usearch indexes in a file, with one vector under each key, in double, single or half precision.

A file does not say how widely to search, when rows are added or when it is asked (`expansion_add` and
`expansion_search`). usearch takes its defaults when it loads one, and so does hubless.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..support.imports import need
from ..support.mapping import release_pages
from .files.file_rows import FileRows, Where
from .index_file import IndexFile, NewIndex, check_written
from .store import QUANTISED, Facts, StoreError
from .usearch_format import REMOVED, read_usearch

NAMES = {"l2": "l2sq", "cosine": "cos", "ip": "ip"}  # of metrics
TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}


class UsearchIndex(IndexFile):
    """An index that `Index.save` of usearch wrote. Ids are its keys, row numbers where these are 0, 1, …"""

    may_lack_vectors = False

    def _open(self) -> FileRows:
        file = self._file = read_usearch(self.path)
        places = np.flatnonzero(file.keys != REMOVED)
        places = places[np.argsort(file.keys[places], kind="stable")]
        numbers, scalar = file.keys[places], file.scalar
        again = numbers[1:][numbers[1:] == numbers[:-1]]
        if len(again):
            raise StoreError(
                f"{self.path} has several vectors under one key, {again[0]} for example, and hubless moves "
                "one for each. Build the index without multi=True, with a key for each vector."
            )

        def read(where: Where) -> np.ndarray:
            if not scalar.is_exact:
                return np.stack(self._engine.get(numbers[where], dtype="f32"))
            vectors = file.vectors[places[where]]
            release_pages(file.content)
            # a bfloat16 is the first half of a float32
            return (vectors.astype("<u4") << 16).view("<f4") if scalar.dtype == "bfloat16" else vectors

        return self._numbered(self._facts(len(places)), read, numbers)

    def _facts(self, count: int) -> Facts:
        head, scalar = self._file.head, self._file.scalar
        why = "" if scalar.is_exact else QUANTISED
        if head["base_connectivity"] != 2 * head["connectivity"]:
            why = "has a connectivity on its lowest level that usearch for Python cannot set"
        search = f"HNSW, connectivity={head['connectivity']}, expansion_search by default"
        kind, d = "usearch index", int(head["dimension"])
        return Facts(kind, self._file.metric, d, count, scalar.dtype, search, (), not why, why)

    @cached_property
    def _engine(self) -> Any:
        """The index, loaded by usearch from what was checked."""
        self.facts()
        if not self._file.links.are_sound(self._file.content):
            raise StoreError(f"{self.path} is damaged: some of its links lead nowhere.")
        try:
            return need("usearch.index", "usearch").Index.restore(self._file.content)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise StoreError(f"{self.path} is refused by usearch: {error}") from error

    def _nearest(self, queries: np.ndarray, k: int) -> Sequence[Sequence[int]]:
        found = self._engine.search(queries, min(k, self.facts().count))
        if len(queries) == 1:  # usearch returns these without an axis of queries
            return [found.keys.tolist()]
        return [keys[:n] for keys, n in zip(found.keys.tolist(), found.counts.tolist(), strict=True)]

    def _new(self, blue: Any, width: int) -> NewIndex:
        return NewUsearch(blue._file, width)


class NewUsearch:
    """An index that is built, like another one."""

    def __init__(self, old: Any, width: int) -> None:
        connectivity, multi = int(old.head["connectivity"]), bool(old.head["multi"])
        kinds = {"metric": NAMES[old.metric], "dtype": TYPES[old.scalar.dtype]}
        kind = need("usearch.index", "usearch").Index
        self.index = kind(ndim=width, connectivity=connectivity, multi=multi, **kinds)

    def add(self, vectors: np.ndarray, numbers: np.ndarray) -> None:
        """Add vectors."""
        self.index.add(numbers, vectors)

    def save(self, path: Path) -> None:
        """Write the file."""
        try:
            self.index.save(os.fsencode(path))
        except RuntimeError as error:  # it does not say why
            check_written(path, self.index.serialized_length)
            raise OSError(f"{path} could not be written: {error}") from error
        check_written(path, self.index.serialized_length)
