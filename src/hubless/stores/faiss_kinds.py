"""Kinds of FAISS indexes: which ones hubless reads and builds again, and of the others, why it does not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..support.imports import need
from .store import QUANTISED, StoreError


class Kind(NamedTuple):
    """What an index is."""

    name: str
    search: str  # how it searches
    why: str | None = None  # hubless does not build it again; None where it does


BUILT = ("IndexFlat", "IndexFlatL2", "IndexFlatIP", "IndexHNSWFlat", "IndexIVFFlat")
EXACT = "keeps its vectors as they are, but {}, which hubless does not build"
# By class; the first that an index is an instance of. Classes that a version of FAISS lacks are left out.
REASONS = {
    "IndexRefine": "is two indexes, a coarse one and one that ranks again, which hubless does not build",
    "IndexShards": "is several indexes in one, which hubless does not build",
    "IndexReplicas": "is several indexes in one, which hubless does not build",
    "IndexIVFFlatDedup": EXACT.format("equal ones once"),
    "IndexNSGFlat": EXACT.format("searches by another graph (NSG)"),
    "IndexNNDescentFlat": EXACT.format("searches by another graph (NNDescent)"),
    "IndexHNSWCagra": EXACT.format("searches by a graph of another kind (CAGRA)"),
    "IndexHNSWFlatPanorama": EXACT.format("in another order (Panorama)"),
    "IndexIVFFlatPanorama": EXACT.format("in another order (Panorama)"),
    "IndexFlatPanorama": EXACT.format("in another order (Panorama)"),
    "IndexFlat1D": EXACT.format("sorts them, as numbers"),
    "IndexLSH": "keeps a few bits of each vector: what it returns is not what was stored",
}
# what crashes when it is asked for its vectors
UNREADABLE = ("IndexFastScan", "IndexIVFFastScan", "IndexIVFIndependentQuantizer", "IndexIVFSpectralHash")


def read_index(faiss: Any, path: str, size: int) -> Any:
    """Read an index of `size` bytes; StoreError where it is none, or claims to be larger than its file."""
    with open(path, "rb") as file:
        start = file.read(4)
    if start[:2] == b"IB":
        raise StoreError(
            f"{path} is a FAISS index of binary vectors; hubless moves vectors of floating-point numbers. "
            "Move those that the bits were made from, and build the index again."
        )
    # lists that are kept in another file are read, never written, and only from the same folder
    flags = faiss.IO_FLAG_READ_ONLY | faiss.IO_FLAG_ONDISK_SAME_DIR
    try:
        with _largest_vector(faiss, size):
            return faiss.read_index(path, flags)
    except (RuntimeError, MemoryError) as error:
        why = str(error).splitlines()[-1] if str(error) else "it claims to be larger than memory"
        raise StoreError(f"{path} is not a FAISS index: {why}") from error


@contextmanager
def _largest_vector(faiss: Any, size: int) -> Iterator[None]:
    """Let FAISS refuse parts that are larger than the file, before it reserves memory for them."""
    if not hasattr(faiss, "set_deserialization_vector_byte_limit"):
        yield
        return
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(size)
    try:
        yield
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def unwrapped(faiss: Any, index: Any) -> tuple[Any, np.ndarray | None]:
    """Return the index inside an IndexIDMap, and the ids of its rows."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one too
        return faiss.downcast_index(index.index), faiss.vector_to_array(index.id_map)
    return index, None


def kind_of(faiss: Any, index: Any) -> Kind:
    """Return what an index is and how it searches; and why hubless does not build it, if it does not."""
    name = type(index).__name__
    if name not in BUILT:
        return Kind(f"FAISS {name}", name, _why_not(faiss, index))
    if name == "IndexHNSWFlat":
        return Kind("FAISS HNSW", f"HNSW, M={index.hnsw.nb_neighbors(1)}, efSearch={index.hnsw.efSearch}")
    if name == "IndexIVFFlat":
        return Kind("FAISS IVF", f"IVF, nlist={index.nlist}, nprobe={index.nprobe}")
    return Kind("FAISS Flat", "exhaustive: every vector is compared")


def _why_not(faiss: Any, index: Any) -> str:
    if isinstance(index, faiss.IndexPreTransform):
        steps = (faiss.downcast_VectorTransform(index.chain.at(i)) for i in range(index.chain.size()))
        names = ", ".join(type(step).__name__ for step in steps)
        return (
            f"transforms its vectors ({names}), and each query in the same way, before it compares them: "
            "what it holds is not what was stored, and moving it would need queries transformed like that"
        )
    for name, why in REASONS.items():
        if hasattr(faiss, name) and isinstance(index, getattr(faiss, name)):
            return why
    halves = (faiss.ScalarQuantizer.QT_fp16, getattr(faiss.ScalarQuantizer, "QT_bf16", None))
    sq = getattr(faiss.downcast_index(getattr(index, "storage", None) or index), "sq", None)
    if sq is not None and sq.qtype in halves:
        return "rounds its numbers to 16 bits: what it returns is not quite what was stored"
    return QUANTISED


def content(faiss: Any, index: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all vectors, and the number of each, ascending; of a flat index, its own memory."""
    if type(index).__name__ in BUILT[:3] and index.ntotal:
        own = faiss.rev_swig_ptr(index.get_xb(), index.codes.size() // 4)
        return own.reshape(-1, index.d), np.arange(index.ntotal, dtype=np.int64)
    if type(index) is faiss.IndexIVFFlat:
        return _in_lists(index)
    try:
        if not _returns_vectors(faiss, index):
            raise RuntimeError
        if isinstance(index, faiss.IndexIVF):
            index.make_direct_map()
        return index.reconstruct_n(0, index.ntotal), np.arange(index.ntotal, dtype=np.int64)
    except (RuntimeError, MemoryError, ValueError) as error:
        raise StoreError(
            f"{type(index).__name__} does not return its vectors: it {kind_of(faiss, index).why}. Give the "
            "file of original vectors instead, and build the index again from the moved ones."
        ) from error


def _in_lists(index: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of an IVF index by ascending number, which is the order of adding unless given."""
    read = need("faiss.contrib.inspect_tools", "faiss").get_invlist
    numbers = np.concatenate([read(index.invlists, i)[0] for i in range(index.nlist)])
    order = np.argsort(numbers, kind="stable")
    places, start = np.empty_like(order), 0
    places[order] = np.arange(len(order))
    vectors = np.empty((len(order), index.d), np.float32)
    for i in range(index.nlist):  # one list at a time: all of them are as large as the index
        codes = read(index.invlists, i)[1].view(np.float32)
        vectors[places[start : start + len(codes)]] = codes
        start += len(codes)
    return vectors, numbers[order]


def _returns_vectors(faiss: Any, index: Any) -> bool:
    """Say whether an index can be asked for all of its vectors: asked in vain, some end the process."""

    def is_one_of(names: tuple[str, ...]) -> bool:
        return any(hasattr(faiss, name) and isinstance(index, getattr(faiss, name)) for name in names)

    inner = [getattr(index, name, None) for name in ("index", "refine_index", "storage")]
    kept = next((faiss.downcast_index(one) for one in inner if one is not None), None)
    if kept is not None:  # that is where the vectors are
        return bool(kept.ntotal == index.ntotal and _returns_vectors(faiss, kept))
    return is_one_of(("IndexFlatCodes", "IndexIVF")) and not is_one_of(UNREADABLE)
