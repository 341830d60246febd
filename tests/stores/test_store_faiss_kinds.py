"""FAISS indexes that hubless does not build: each is refused with its true reason, or diagnosed."""

import os
import subprocess
import sys

import faiss
import numpy as np
import pytest

from hubless.repair.doctor import diagnose
from hubless.repair.index_items import read_items
from hubless.stores.faiss import FaissIndex
from hubless.stores.store import StoreError
from hubless.testing.store_cases import sample

QUANTISED, HALF = "keeps its vectors quantised", "rounds its numbers to 16 bits"
PANORAMA = "as they are, but in another order .Panorama."
# factory → why not; whether `doctor` can read the vectors
KINDS = {
    "PCA4,Flat": (r"transforms its vectors \(PCAMatrix\), and each query", True),
    "PCAR4,IVF2,Flat": (r"transforms its vectors \(PCAMatrix\), and each query", True),
    "OPQ4_4,Flat": (r"transforms its vectors \(LinearTransform\), and each query", True),
    "RR4,Flat": (r"transforms its vectors \(RandomRotationMatrix\), and each query", True),
    "L2norm,Flat": (r"transforms its vectors \(NormalizationTransform\), and each query", True),
    "ITQ4,Flat": (r"does not return its vectors: it transforms its vectors", False),
    "PCA4,PQ2x4": (r"transforms its vectors \(PCAMatrix\), and each query", True),
    "Flat,RFlat": ("is two indexes, a coarse one", True),
    "PQ2x4,RFlat": ("is two indexes, a coarse one", True),
    "NSG8,Flat": ("as they are, but searches by another graph .NSG.", True),
    "IVF2,FlatDedup": (
        "does not return its vectors: it keeps its vectors as they are, but equal ones",
        False,
    ),
    "LSH": ("keeps a few bits of each vector", True),
    "SQfp16": (HALF, True),
    "SQbf16": (HALF, True),
    "IVF2,SQfp16": (HALF, True),
    "HNSW8,SQfp16": (HALF, True),
    "SQ8": (QUANTISED, True),
    "SQ4": (QUANTISED, True),
    "IVF2,SQ8": (QUANTISED, True),
    "HNSW8,SQ8": (QUANTISED, True),
    "PQ2x4": (QUANTISED, True),
    "IVF2,PQ2x4": (QUANTISED, True),
    "HNSW8,PQ2x4": (QUANTISED, True),
    "PQ2x4fs": ("does not return its vectors: it " + QUANTISED, False),
    "IVF2,PQ2x4fs": ("does not return its vectors: it " + QUANTISED, False),
    "RQ2x4": (QUANTISED, True),
    "IDMap,PQ2x4": (QUANTISED, True),
    "IDMap2,SQfp16": (HALF, True),
}


def write(path, index, X):
    index.train(X)
    if isinstance(index, faiss.IndexIDMap):
        index.add_with_ids(X, np.arange(len(X)) * 3)
    else:
        index.add(X)
    faiss.write_index(index, str(path))
    return FaissIndex(path)


@pytest.mark.parametrize("factory", KINDS)
def test_each_kind_is_refused_with_its_reason(tmp_path, factory):
    why, is_readable = KINDS[factory]
    _, X, *_ = sample(400)
    store = write(tmp_path / "v.faiss", faiss.index_factory(8, factory), X)
    with pytest.raises(StoreError, match=why) as refused:
        read_items(store)
    assert "file of original vectors" in str(refused.value)
    if is_readable:
        diagnosis = diagnose(store)
        assert diagnosis.verdict == "do not move"
        assert diagnosis.advice[0].startswith("The index ")
        assert diagnosis.facts["why_inexact"] in diagnosis.advice[0]
    else:
        with pytest.raises(StoreError, match=why):
            diagnose(store)


PANORAMAS = {
    "IndexHNSWFlatPanorama": lambda: faiss.IndexHNSWFlatPanorama(8, 8, 2),
    "IndexFlatL2Panorama": lambda: faiss.IndexFlatL2Panorama(8, 2),
    "IndexIVFFlatPanorama": lambda: faiss.index_factory(8, "IVF2,FlatPanorama2"),
}


@pytest.mark.parametrize("name", [name for name in PANORAMAS if hasattr(faiss, name)])
def test_panorama_is_not_taken_for_what_it_derives_from(tmp_path, name):
    _, X, *_ = sample(400)
    with pytest.raises(StoreError, match=PANORAMA):
        read_items(write(tmp_path / "v.faiss", PANORAMAS[name](), X))


def test_an_index_of_bits_is_refused(tmp_path):
    index = faiss.IndexBinaryFlat(64)
    index.add(np.zeros((5, 8), np.uint8))
    faiss.write_index_binary(index, str(tmp_path / "v.faiss"))
    with pytest.raises(StoreError, match="binary vectors"):
        FaissIndex(tmp_path / "v.faiss").facts()


@pytest.mark.parametrize("factory", ["Flat", "IVF2,Flat", "HNSW8,Flat", "IDMap,Flat"])
def test_an_empty_index_is_read(tmp_path, factory):
    _, X, *_ = sample(100)
    index = faiss.index_factory(8, factory)
    index.train(X)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    assert FaissIndex(tmp_path / "v.faiss").read_span(0, 0)[0].shape == (0, 8)


# --- files that were crafted or cut ------------------------------------------------------------------------


@pytest.mark.parametrize("factory", ["Flat", "IVF2,Flat", "HNSW8,Flat", "IDMap,Flat"])
def test_files_that_were_cut_are_refused(tmp_path, factory):
    path = tmp_path / "v.faiss"
    _, X, *_ = sample(100)
    index = faiss.index_factory(8, factory)
    write(path, index, X)
    whole = path.read_bytes()
    for length in (0, 1, 3, 4, 20, 45, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="is not a FAISS index"):
            FaissIndex(path).facts()


def test_a_size_beyond_the_file_reserves_no_memory(tmp_path):
    path, (_, X, *_) = tmp_path / "v.faiss", sample(100)
    write(path, faiss.IndexFlatL2(8), X)
    content = bytearray(path.read_bytes())
    place = content.index((100 * 8 * 4 // 4).to_bytes(8, "little"))  # how many numbers follow
    content[place : place + 8] = (1 << 36).to_bytes(8, "little")
    path.write_bytes(content)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
        "from hubless.stores.faiss import FaissIndex\n"
        "from hubless.stores.store import StoreError\n"
        "try: FaissIndex(sys.argv[1]).facts()\n"
        "except StoreError as error: print(error)"
    )
    words = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, env=os.environ)
    assert "is not a FAISS index" in words.stdout, words.stderr


@pytest.mark.parametrize("factory", ["Flat", "IVF2,Flat", "HNSW8,Flat", "IDMap,Flat", "SQ8", "PCA4,Flat"])
def test_a_wrong_number_of_vectors_is_refused(tmp_path, factory):
    path, (_, X, *_) = tmp_path / "v.faiss", sample(100)
    write(path, faiss.index_factory(8, factory), X)
    whole = path.read_bytes()
    assert whole[8:16] == (100).to_bytes(8, "little")  # after the kind and the dimension
    for count in (99, 101, 10**6, 2**40, 2**63 - 1):
        path.write_bytes(whole[:8] + count.to_bytes(8, "little") + whole[16:])
        with pytest.raises(StoreError, match=r"damaged|is not a FAISS index|does not return"):
            FaissIndex(path).facts()


def test_lists_in_another_folder_are_not_read(tmp_path):
    """An index can name any other file as the place of its vectors, which FAISS would open to write."""
    (tmp_path / "elsewhere").mkdir()
    _, X, *_ = sample(100)
    index = faiss.index_factory(8, "IVF2,Flat")
    index.train(X)
    index.add(X)
    lists = faiss.OnDiskInvertedLists(2, index.code_size, str(tmp_path / "elsewhere" / "lists"))
    lists.merge_from(index.invlists, 0)
    index.replace_invlists(lists)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    with pytest.raises(StoreError, match="is not a FAISS index"):
        FaissIndex(tmp_path / "v.faiss").facts()
