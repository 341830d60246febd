"""FAISS indexes in a file: Flat, HNSW and IVF over original vectors, with or without ids of their own.

A green index is built anew from the moved vectors, of the same kind and with the same settings, and searched
with raw queries. `faiss.IndexPreTransform` would be the wrong tool: it moves queries too.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .file_store import FileStore
from .rows import Rows, as_ids
from .store import Batch, Facts, StoreError, need


class FaissIndex(FileStore):
    """An index that `faiss.write_index` wrote. Ids are row numbers, those of an IndexIDMap, or of `items`."""

    def _open(self) -> Rows:
        faiss = need("faiss", "faiss")
        try:
            index = faiss.read_index(str(self.path))
        except RuntimeError as error:
            raise StoreError(f"{self.path} is not a FAISS index: {str(error).splitlines()[-1]}") from error
        self._index = index
        inner, own = _unwrapped(faiss, index)
        metric = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip"}.get(index.metric_type)
        if metric is None:
            raise StoreError(
                f"{self.path} compares by FAISS metric {index.metric_type}; allowed are L2 and IP."
            )
        kind, told, is_exact = _kind(faiss, inner)
        facts = Facts(kind, metric, index.d, index.ntotal, "float32", told, (), is_exact)
        vectors, numbers = _content(faiss, inner)
        order = np.argsort(numbers, kind="stable")  # for an IVF without ids, that of adding
        vectors, numbers = vectors[order], numbers[order]
        has_ids = own is not None or not np.array_equal(numbers, np.arange(len(numbers)))
        self._numbers = numbers if own is None else own[numbers]
        columns: dict[str, Callable[[Any], Any]] = {}
        if has_ids:
            as_ids(self._numbers.tolist(), self.name)
            columns["id"] = lambda part: self._numbers[part].tolist()
        in_order = own is not None or not has_ids
        return Rows(facts, lambda part: vectors[part], lambda rows: vectors[rows], columns, in_order)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """By the index itself."""
        count = self._opened().facts.count
        if count == 0:
            return np.empty((len(queries), 0), dtype=np.int64)
        _, found = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), k)
        order = np.argsort(self._numbers)
        places = order[np.minimum(np.searchsorted(self._numbers[order], found), count - 1)]
        ids, missing = self._all_ids()[places], self._numbers[places] != found  # FAISS has -1 for none
        if missing.any():
            ids = ids.astype(object)
            ids[missing] = None
        return np.asarray(ids)

    @contextmanager
    def _writer(self, blue: Any, part: Path) -> Iterator[Callable[[Batch, np.ndarray], None]]:
        faiss, kept = need("faiss", "faiss"), []
        yield lambda batch, moved: kept.append(np.asarray(moved, dtype=np.float32))
        moved = np.concatenate(kept) if kept else np.empty((0, blue.facts().dimension), np.float32)
        built = _like(faiss, blue._index, moved, blue._numbers)
        data = faiss.serialize_index(built)
        with part.open("wb") as file:  # not write_index, whose message hides that a disk is full
            file.write(data.data)
            file.flush()
            os.fsync(file.fileno())


def _unwrapped(faiss: Any, index: Any) -> tuple[Any, np.ndarray | None]:
    """The index inside an IndexIDMap, and the ids of its rows."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one too
        return faiss.downcast_index(index.index), faiss.vector_to_array(index.id_map)
    return index, None


def _kind(faiss: Any, index: Any) -> tuple[str, str, bool]:
    """What an index is, how it searches, and whether its vectors are those that were put in."""
    if isinstance(index, faiss.IndexHNSWFlat):
        return "FAISS HNSW", f"HNSW, M={index.hnsw.nb_neighbors(1)}, efSearch={index.hnsw.efSearch}", True
    if isinstance(index, faiss.IndexIVFFlat) and type(index) is faiss.IndexIVFFlat:
        return "FAISS IVF", f"IVF, nlist={index.nlist}, nprobe={index.nprobe}", True
    if isinstance(index, faiss.IndexFlat):
        return "FAISS Flat", "exhaustive: every vector is compared", True
    return f"FAISS {type(index).__name__}", type(index).__name__, False


def _content(faiss: Any, index: Any) -> tuple[np.ndarray, np.ndarray]:
    """All vectors, and the number under which each was added."""
    if isinstance(index, faiss.IndexIVF):
        if type(index) is not faiss.IndexIVFFlat:
            index.make_direct_map()
            return _reconstructed(index)
        vectors, numbers = [], []
        for i in range(index.nlist):
            size = index.invlists.list_size(i)
            if size:
                codes = faiss.rev_swig_ptr(index.invlists.get_codes(i), size * index.code_size)
                vectors.append(codes.copy().view(np.float32).reshape(size, index.d))
                numbers.append(faiss.rev_swig_ptr(index.invlists.get_ids(i), size).copy())
        if not vectors:
            return np.empty((0, index.d), np.float32), np.empty(0, np.int64)
        return np.concatenate(vectors), np.concatenate(numbers)
    return _reconstructed(index)


def _reconstructed(index: Any) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.arange(index.ntotal, dtype=np.int64)
    try:
        return index.reconstruct_n(0, index.ntotal), numbers
    except RuntimeError as error:
        raise StoreError(
            f"{type(index).__name__} does not give its vectors back. Give the file of original vectors "
            "instead, and build the index again from the moved ones."
        ) from error


def _like(faiss: Any, index: Any, moved: np.ndarray, numbers: np.ndarray) -> Any:
    """An index of the same kind and settings that holds other vectors."""
    old, own = _unwrapped(faiss, index)
    if isinstance(old, faiss.IndexHNSWFlat):
        new = faiss.IndexHNSWFlat(old.d, old.hnsw.nb_neighbors(1), old.metric_type)
        new.hnsw.efConstruction, new.hnsw.efSearch = old.hnsw.efConstruction, old.hnsw.efSearch
    elif isinstance(old, faiss.IndexIVFFlat):
        new = _ivf_like(faiss, old, moved)
    else:
        new = faiss.IndexFlat(old.d, old.metric_type)
    if own is not None:
        new = (faiss.IndexIDMap2 if isinstance(index, faiss.IndexIDMap2) else faiss.IndexIDMap)(new)
        new.add_with_ids(moved, numbers)
    elif isinstance(old, faiss.IndexIVFFlat):
        new.add_with_ids(moved, numbers)
    else:
        new.add(moved)
    return new


def _ivf_like(faiss: Any, old: Any, moved: np.ndarray) -> Any:
    """An empty IVF index: trained anew, or with few vectors, or lists of another kind, as the old one was."""
    if len(moved) < old.nlist or not isinstance(faiss.downcast_index(old.quantizer), faiss.IndexFlat):
        new = faiss.clone_index(old)
        new.reset()
        return new
    coarse = faiss.IndexFlat(old.d, old.metric_type)
    new = faiss.IndexIVFFlat(coarse, old.d, old.nlist, old.metric_type)
    new.own_fields, new.nprobe = True, old.nprobe
    coarse.this.disown()
    new.cp.min_points_per_centroid = 1  # few vectors are the user's choice: no warning
    new.train(moved)
    return new
