"""hnswlib indexes in a file: HNSW over vectors in single precision, under labels.

A file does not say how it compares: the user does (`metric`). What it says is checked against that, as far as
that is possible: under cosine hnswlib keeps vectors at length 1. Nor does it say how widely to search (`ef`):
hnswlib takes its default when it loads one, and so does hubless.
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
from .hnswlib_format import CAPACITY_AT, read_hnswlib
from .index_file import IndexFile, NewIndex, check_written
from .store import Facts, StoreError

EF = 10  # hnswlib's default; it searches for k where that is more
UNIT = 1e-3  # how far from 1 the length of a vector may be that hnswlib brought to length 1
SAMPLE = 1000  # vectors whose lengths are a hint


class HnswlibIndex(IndexFile):
    """An index that `Index.save_index` of hnswlib wrote. Ids are its labels, row numbers where 0, 1, …

    Rows that are marked as deleted are left out.
    """

    may_lack_vectors = False
    keeps_unit = True  # under cosine

    def _open(self) -> FileRows:
        file = self._file = read_hnswlib(self.path)
        places = np.flatnonzero(file.rows["is_deleted"] & 1 == 0)
        labels = file.rows["label"][places]
        order = np.argsort(labels, kind="stable")
        places, labels = places[order], labels[order]
        release_pages(file.content)
        d, M, ef = file.rows["vector"].shape[1], file.head["M"], file.head["ef_construction"]
        search = f"HNSW, M={M}, ef_construction={ef}, ef={EF}"
        facts = Facts("hnswlib index", None, d, len(places), "float32", search)

        def read(where: Where) -> np.ndarray:
            vectors = np.array(file.rows["vector"][places[where]])
            release_pages(file.content)
            self._check_metric(vectors)
            return vectors

        return self._numbered(facts, read, labels)

    def _check_metric(self, vectors: np.ndarray) -> str:
        """Return the metric that the user gave; StoreError where there is none, or vectors contradict it."""
        are_unit = bool((np.abs(np.linalg.norm(vectors[vectors.any(axis=1)], axis=1) - 1) < UNIT).all())
        if self.metric is None:
            fits = "l2, cosine or ip (their lengths are 1, as cosine keeps them)" if are_unit else "l2 or ip"
            raise StoreError(
                f"{self.path} does not say how its vectors are compared. Give the space that it was made "
                f"with: --metric {fits}."
            )
        if self.metric == "cosine" and not are_unit:
            raise StoreError(
                f"{self.path} was not made for cosine: hnswlib would have brought its vectors to length 1. "
                "Give the space that it was made with: --metric l2 or ip."
            )
        return self.metric

    @cached_property
    def _engine(self) -> Any:
        """The index, loaded by hnswlib after it was checked."""
        facts, content = self.facts(), self._file.content
        metric = self._check_metric(self._file.rows["vector"][:SAMPLE])
        if not self._file.links.are_sound(content):
            raise StoreError(f"{self.path} is damaged: some of its links lead nowhere.")
        self._check_same_file()
        index = need("hnswlib", "hnswlib").Index(metric, facts.dimension)
        index.load_index(os.fsencode(self.path), max_elements=len(self._file.rows))
        return index

    def _nearest(self, queries: np.ndarray, k: int) -> Sequence[Sequence[int]]:
        """Return up to k for each query; hnswlib raises an error where it finds fewer for one of them."""
        k = min(k, self.facts().count)
        try:
            return self._engine.knn_query(queries, k)[0].tolist()
        except RuntimeError:
            if len(queries) > 1:
                return [row for query in queries for row in self._nearest(query[None], k)]
        found: list[list[int]] = [[]]
        too_many = k
        while too_many - len(found[0]) > 1:
            half = (len(found[0]) + too_many) // 2
            try:
                found = self._engine.knn_query(queries, half)[0].tolist()
            except RuntimeError:
                too_many = half
        return found

    def _new(self, blue: Any, width: int) -> NewIndex:
        return NewHnswlib(blue, width)


class NewHnswlib:
    """An index that is built, like another one."""

    def __init__(self, blue: HnswlibIndex, width: int) -> None:
        metric = blue._check_metric(blue._file.rows["vector"][:SAMPLE])
        head, count = blue._file.head, blue.facts().count
        self.capacity = head["capacity"]
        self.index = need("hnswlib", "hnswlib").Index(metric, width)
        settings = {"M": int(head["M"]), "ef_construction": int(head["ef_construction"])}
        self.index.init_index(max_elements=count, **settings)

    def add(self, vectors: np.ndarray, numbers: np.ndarray) -> None:
        """Add vectors."""
        self.index.add_items(vectors, numbers)

    def save(self, path: Path) -> None:
        """Write the file; it says that it has room for as many rows as the old one."""
        self.index.save_index(os.fsencode(path))
        check_written(path, self.index.index_file_size())
        with path.open("r+b") as file:
            file.seek(CAPACITY_AT)
            file.write(self.capacity.tobytes())
