"""FAISS indexes in a file: Flat, HNSW and IVF over unquantised vectors, with or without ids.

A green index is built again from the moved vectors, of the same kind and with the same settings, and searched
with raw queries. `faiss.IndexPreTransform` would be the wrong tool: it moves queries too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..support.imports import need
from .faiss_kinds import content, kind_of, read_index, unwrapped
from .files.file_rows import FileRows
from .files.file_store import Append
from .index_file import IndexFile
from .store import Batch, Facts, StoreError


class FaissIndex(IndexFile):
    """An index that `faiss.write_index` wrote. Ids are row numbers, those of an IndexIDMap, or of `items`."""

    def _open(self) -> FileRows:
        faiss = need("faiss", "faiss")
        size = self.path.stat().st_size
        index = self._index = read_index(faiss, str(self.path), size)
        inner, id_map = unwrapped(faiss, index)
        metric = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip"}.get(index.metric_type)
        if metric is None:
            raise StoreError(
                f"{self.path} has FAISS metric {index.metric_type}; expected L2 or inner product."
            )
        kind, search, why = kind_of(faiss, inner)
        facts = Facts(kind, metric, index.d, index.ntotal, "float32", search, (), why is None, why or "")
        sizes = {index.ntotal, inner.ntotal, index.ntotal if id_map is None else len(id_map)}
        if sizes != {min(index.ntotal, size)} or index.d != inner.d:  # each vector takes a byte, at least
            raise StoreError(f"{self.path} is damaged: it has {sizes} vectors in {size:,} bytes.")
        vectors, numbers = content(faiss, inner)
        if len(numbers) != index.ntotal:
            raise StoreError(f"{self.path} is damaged: it has {len(numbers)} of {index.ntotal} vectors.")

        def read(where: Any) -> np.ndarray:
            return np.array(vectors[where])  # a copy: they may be the memory of the index, which is freed

        if id_map is None:
            return self._numbered(facts, read, numbers)
        return self._numbered(facts, read, id_map[numbers], in_order=True)

    def _nearest(self, queries: np.ndarray, k: int) -> Sequence[Sequence[int]]:
        _, nearest = self._index.search(queries, k)  # -1 where there are fewer
        return nearest.tolist()

    @contextmanager
    def writer(self, blue: Any, part: Path) -> Iterator[Append]:
        faiss, width = need("faiss", "faiss"), self.build_mark.width or blue.facts().dimension
        _check_width(faiss, blue, width)
        is_flat, place = blue.facts().kind == "FAISS Flat", 0
        # a flat index grows; others are built from all vectors at once
        new = _empty_like(faiss, blue._index, np.empty((0, width), np.float32)) if is_flat else None
        held = np.empty((0 if is_flat else blue.facts().count, width), np.float32)

        def append(batch: Batch, moved: np.ndarray) -> None:
            nonlocal place
            rows = slice(place, place + len(moved))
            if new is not None:
                _add(faiss, new, np.ascontiguousarray(moved, dtype=np.float32), blue._numbers[rows])
            else:
                held[rows] = moved
            place = rows.stop

        yield append
        if new is None:
            new = _empty_like(faiss, blue._index, held)
            _add(faiss, new, held, blue._numbers)
        with part.open("wb") as file:  # `write_index` itself would not say that a disk is full
            faiss.write_index(new, faiss.PyCallbackIOWriter(file.write))


def _check_width(faiss: Any, store: FaissIndex, width: int) -> None:
    """Refuse an index that cannot be built again for vectors of another width."""
    index, _ = unwrapped(faiss, store._index)
    if width == index.d or not isinstance(index, faiss.IndexIVFFlat):
        return
    quantizer = faiss.downcast_index(index.quantizer)
    if not isinstance(quantizer, faiss.IndexFlat):
        raise StoreError(
            f"moved vectors have {width} columns, and {store.name} finds its lists by an index that hubless "
            f"cannot build for them, {type(quantizer).__name__}. Give an IVF index with a flat quantizer."
        )


def _empty_like(faiss: Any, index: Any, moved: np.ndarray) -> Any:
    """Return an empty index of the same kind and settings, for other vectors."""
    old, id_map = unwrapped(faiss, index)
    if isinstance(old, faiss.IndexHNSWFlat):
        new = faiss.IndexHNSWFlat(moved.shape[1], old.hnsw.nb_neighbors(1), old.metric_type)
        new.hnsw.efConstruction, new.hnsw.efSearch = old.hnsw.efConstruction, old.hnsw.efSearch
    elif isinstance(old, faiss.IndexIVFFlat):
        new = _ivf_like(faiss, old, moved)
    else:
        new = faiss.IndexFlat(moved.shape[1], old.metric_type)
    if id_map is None:
        return new
    return (faiss.IndexIDMap2 if isinstance(index, faiss.IndexIDMap2) else faiss.IndexIDMap)(new)


def _add(faiss: Any, index: Any, vectors: np.ndarray, numbers: np.ndarray) -> None:
    if isinstance(index, faiss.IndexIDMap | faiss.IndexIVFFlat):
        index.add_with_ids(vectors, numbers)
    else:
        index.add(vectors)


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
