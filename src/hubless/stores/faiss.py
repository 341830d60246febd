"""FAISS indexes in a file: Flat, HNSW and IVF over unquantised vectors, with or without ids.

A green index is built again from the moved vectors, of the same kind and with the same settings, and searched
with raw queries. `faiss.IndexPreTransform` would be the wrong tool: it moves queries too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..support.imports import need
from .checks import pad_ids
from .files.file_rows import FileRows, as_ids, picker
from .files.file_store import Append, FileStore
from .store import Facts, StoreError


class FaissIndex(FileStore):
    """An index that `faiss.write_index` wrote. Ids are row numbers, those of an IndexIDMap, or of `items`."""

    may_be_part = False

    def _open(self) -> FileRows:
        faiss = need("faiss", "faiss")
        try:
            index = faiss.read_index(str(self.path))
        except RuntimeError as error:
            raise StoreError(f"{self.path} is not a FAISS index: {str(error).splitlines()[-1]}") from error
        self._index = index
        inner, id_map = _unwrapped(faiss, index)
        metric = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip"}.get(index.metric_type)
        if metric is None:
            raise StoreError(
                f"{self.path} has FAISS metric {index.metric_type}; expected L2 or inner product."
            )
        kind, search, is_exact = _kind(faiss, inner)
        facts = Facts(kind, metric, index.d, index.ntotal, "float32", search, (), is_exact)
        vectors, numbers = _content(faiss, inner)
        order = np.argsort(numbers, kind="stable")  # for an IVF without ids, the order of adding
        vectors, numbers = vectors[order], numbers[order]
        has_ids = id_map is not None or not np.array_equal(numbers, np.arange(len(numbers)))
        self._numbers = numbers if id_map is None else id_map[numbers]
        columns = {}
        if has_ids:
            columns["id"] = picker(as_ids(self._numbers.tolist(), self.name))
        in_order = id_map is not None or not has_ids
        return FileRows(facts, lambda where: vectors[where], columns, in_order)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Search by the index itself."""
        if self.facts().count == 0:
            return np.empty((len(queries), 0), dtype=np.int64)
        _, nearest = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), k)
        ids = dict(zip(self._numbers.tolist(), self.all_ids.tolist(), strict=True))
        known = [[ids[number] for number in row if number in ids] for row in nearest.tolist()]
        return pad_ids(known, k)  # FAISS returns -1 where there are fewer

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        faiss, kept = need("faiss", "faiss"), []
        width = self.build_mark.width or blue.facts().dimension
        _check_width(faiss, blue, width)
        yield lambda batch, moved: kept.append(np.asarray(moved, dtype=np.float32))
        moved = np.concatenate(kept) if kept else np.empty((0, width), np.float32)
        built = _like(faiss, blue._index, moved, blue._numbers)
        part.write_bytes(faiss.serialize_index(built))  # write_index would not say that a disk is full


def _unwrapped(faiss: Any, index: Any) -> tuple[Any, np.ndarray | None]:
    """Return the index inside an IndexIDMap, and the ids of its rows."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one too
        return faiss.downcast_index(index.index), faiss.vector_to_array(index.id_map)
    return index, None


def _kind(faiss: Any, index: Any) -> tuple[str, str, bool]:
    """Return what an index is, how it searches, and whether it returns the vectors that were put in."""
    if isinstance(index, faiss.IndexHNSWFlat):
        return "FAISS HNSW", f"HNSW, M={index.hnsw.nb_neighbors(1)}, efSearch={index.hnsw.efSearch}", True
    if isinstance(index, faiss.IndexIVFFlat) and type(index) is faiss.IndexIVFFlat:
        return "FAISS IVF", f"IVF, nlist={index.nlist}, nprobe={index.nprobe}", True
    if isinstance(index, faiss.IndexFlat):
        return "FAISS Flat", "exhaustive: every vector is compared", True
    return f"FAISS {type(index).__name__}", type(index).__name__, False


def _content(faiss: Any, index: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all vectors, and the number under which each was added."""
    if type(index) is faiss.IndexIVFFlat:
        read = need("faiss.contrib.inspect_tools", "faiss").get_invlist
        numbers, codes = zip(*(read(index.invlists, i) for i in range(index.nlist)), strict=True)
        return np.concatenate(codes).view(np.float32), np.concatenate(numbers)
    try:
        if isinstance(index, faiss.IndexIVF):
            index.make_direct_map()
        return index.reconstruct_n(0, index.ntotal), np.arange(index.ntotal, dtype=np.int64)
    except RuntimeError as error:
        raise StoreError(
            f"{type(index).__name__} does not return its vectors. Give the file of original vectors "
            "instead, and build the index again from the moved ones."
        ) from error


def _check_width(faiss: Any, store: FaissIndex, width: int) -> None:
    """Refuse an index that cannot be built again for vectors of another width."""
    index, _ = _unwrapped(faiss, store._index)
    if width == index.d or not isinstance(index, faiss.IndexIVFFlat):
        return
    quantizer = faiss.downcast_index(index.quantizer)
    if not isinstance(quantizer, faiss.IndexFlat):
        raise StoreError(
            f"moved vectors have {width} columns, and {store.name} finds its lists by an index that hubless "
            f"cannot build for them, {type(quantizer).__name__}. Give an IVF index with a flat quantizer."
        )


def _like(faiss: Any, index: Any, moved: np.ndarray, numbers: np.ndarray) -> Any:
    """Return an index of the same kind and settings that holds other vectors."""
    old, id_map = _unwrapped(faiss, index)
    if isinstance(old, faiss.IndexHNSWFlat):
        new = faiss.IndexHNSWFlat(moved.shape[1], old.hnsw.nb_neighbors(1), old.metric_type)
        new.hnsw.efConstruction, new.hnsw.efSearch = old.hnsw.efConstruction, old.hnsw.efSearch
    elif isinstance(old, faiss.IndexIVFFlat):
        new = _ivf_like(faiss, old, moved)
    else:
        new = faiss.IndexFlat(moved.shape[1], old.metric_type)
    if id_map is not None:
        new = (faiss.IndexIDMap2 if isinstance(index, faiss.IndexIDMap2) else faiss.IndexIDMap)(new)
        new.add_with_ids(moved, numbers)
    elif isinstance(old, faiss.IndexIVFFlat):
        new.add_with_ids(moved, numbers)
    else:
        new.add(moved)
    return new


def _ivf_like(faiss: Any, old: Any, moved: np.ndarray) -> Any:
    """Return an empty IVF index: trained again; with few vectors or another quantizer, as the old one was.

    For few vectors of another width it has fewer lists: none of the old ones can be used.
    """
    (n, d), n_lists = moved.shape, old.nlist
    if d != old.d:
        moved, n_lists = moved if n else np.zeros((1, d), np.float32), max(1, min(n, n_lists))
    elif n < n_lists or not isinstance(faiss.downcast_index(old.quantizer), faiss.IndexFlat):
        new = faiss.clone_index(old)
        new.reset()
        return new
    new = faiss.index_factory(d, f"IVF{n_lists},Flat", old.metric_type)
    new.nprobe = old.nprobe
    new.cp.min_points_per_centroid = 1  # few vectors are the user's choice: no warning
    new.train(moved)
    return new
