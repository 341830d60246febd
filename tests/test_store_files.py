"""Vectors in plain files and in FAISS indexes."""

import json
import os

import faiss
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from hubless.index.apply import apply, promote, rollback, status
from hubless.stores import switch
from hubless.stores.arrow import ArrowFile
from hubless.stores.faiss import FaissIndex
from hubless.stores.files import Hdf5File, NpyFile, NpzFile, Parts
from hubless.stores.opening import FILES
from hubless.stores.store import StoreError
from tests.store_contract import Case, StoreContract, exact, model_for, sample


def write_items(folder, ids, texts):
    path = folder / "items.json"
    path.write_text(json.dumps({"id": [getattr(i, "item", lambda i=i: i)() for i in ids], "text": texts}))
    return path


def table_of(ids, vectors, texts, kind=None):
    d = vectors.shape[1]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), d)
    if kind is not None:
        column = column.cast(kind)
    return pa.table({"id": pa.array(ids.tolist()), "embedding": column, "text": pa.array(texts)})


def make_npy(folder, ids, vectors, texts, metric):
    np.save(folder / "v.npy", vectors)
    return NpyFile(folder / "v.npy", metric=metric, items=write_items(folder, ids, texts))


def make_npz(folder, ids, vectors, texts, metric):
    names = np.array([str(i) for i in ids]) if isinstance(ids[0], str) else ids
    np.savez(folder / "v.npz", vectors=vectors, id=names, text=np.array(texts))
    return NpzFile(folder / "v.npz", metric=metric)


def make_parquet(folder, ids, vectors, texts, metric):
    pq.write_table(table_of(ids, vectors, texts), folder / "v.parquet", row_group_size=64)
    return ArrowFile(folder / "v.parquet", metric=metric)


def make_lists(folder, ids, vectors, texts, metric):
    pq.write_table(table_of(ids, vectors, texts, pa.list_(pa.float32())), folder / "v.parquet")
    return ArrowFile(folder / "v.parquet", metric=metric)


def make_arrow(folder, ids, vectors, texts, metric):
    pyarrow.feather.write_feather(
        table_of(ids, vectors, texts), folder / "v.arrow", compression="uncompressed"
    )
    return ArrowFile(folder / "v.arrow", metric=metric)


def make_hdf5(folder, ids, vectors, texts, metric):
    with h5py.File(folder / "v.hdf5", "w") as file:
        file["train"], file["test"], file["neighbors"] = vectors, vectors[:5], np.zeros((5, 2), int)
        file.attrs["distance"] = {"l2": "euclidean", "cosine": "angular"}[metric]
    return Hdf5File(folder / "v.hdf5", items=write_items(folder, ids, texts))


def make_parts(folder, ids, vectors, texts, metric):
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(ids)), 4)):
        rows = [texts[j] for j in part]
        pq.write_table(table_of(ids[part], vectors[part], rows), folder / "parts" / f"{i}.parquet")
    return Parts(folder / "parts", kinds=FILES, metric=metric)


def read_again(store, queries, k):
    """Ask what lies under the served path, by plain loops over what its own library reads."""
    path = store.path
    if path.suffix == ".npy":
        ids, X = json.loads((path.parent / "items.json").read_text())["id"], np.load(path)
    elif path.suffix == ".npz":
        with np.load(path) as held:
            ids, X = held["id"].tolist(), held["vectors"]
    elif path.suffix == ".hdf5":
        with h5py.File(path) as file:
            ids, X = json.loads((path.parent / "items.json").read_text())["id"], file["train"][:]
    else:
        table = pyarrow.feather.read_table(path) if path.suffix == ".arrow" else pq.read_table(path)
        ids, X = table["id"].to_pylist(), np.array(table["embedding"].to_pylist(), dtype=np.float32)
    return exact(ids, X, queries, k, store.metric or store.facts().metric)


MAKERS = {
    "npy": make_npy,
    "npz": make_npz,
    "parquet": make_parquet,
    "lists": make_lists,
    "arrow": make_arrow,
    "hdf5": make_hdf5,
    "parts": make_parts,
}


class TestFiles(StoreContract):
    @pytest.fixture(params=MAKERS, ids=str)
    def case(self, request):
        return Case(MAKERS[request.param], read_again)


FACTORIES = {
    "Flat": lambda d, metric: faiss.IndexFlat(d, metric),
    "HNSW": lambda d, metric: faiss.IndexHNSWFlat(d, 16, metric),
    "IVF": lambda d, metric: faiss.index_factory(d, "IVF4,Flat", metric),
    "IDMap": lambda d, metric: faiss.IndexIDMap2(faiss.IndexFlat(d, metric)),
    "IVF with ids": lambda d, metric: faiss.index_factory(d, "IVF4,Flat", metric),
}


class TestFaiss(StoreContract):
    @pytest.fixture(params=FACTORIES, ids=str)
    def case(self, request):
        with_ids = request.param in ("IDMap", "IVF with ids")

        def make(folder, ids, vectors, texts, metric):
            kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
            index = FACTORIES[request.param](vectors.shape[1], kind)
            if "IVF" in request.param:
                index.cp.min_points_per_centroid = 1
                index.train(vectors)
                index.nprobe = 4
            if with_ids:
                index.add_with_ids(vectors, ids)
            else:
                index.add(vectors)
            faiss.write_index(index, str(folder / "v.faiss"))
            items = write_items(folder, ids, texts)
            if with_ids:  # in the order of the index, which is that of its ids
                order = np.argsort(ids)
                items = write_items(folder, ids[order], [texts[i] for i in order])
            return FaissIndex(folder / "v.faiss", items=items)

        def ask(store, queries, k):
            _, found = faiss.read_index(str(store.path)).search(queries, k)
            if with_ids:
                return found
            ids = json.loads((store.path.parent / "items.json").read_text())["id"]
            return [[ids[j] for j in row] for row in found]

        recall = 0.9 if "HNSW" in request.param else 1.0
        return Case(make, ask, metrics=("l2", "ip"), recall=recall, text_ids=not with_ids)


def parts_moved(tmp_path):
    """A folder of parts with a moved copy beside it, the model, and what to ask."""
    ids, X, y, texts = sample(text_ids=True)
    store = make_parts(tmp_path, ids, X, texts, "l2")
    model = model_for(X, y, "l2")
    apply(model, store, "green")
    queries = X[:20] + 0.1
    after = exact(ids, model.move(X), queries, 5, "l2")
    return store, model, queries, read_again(store, queries, 5), after


@pytest.mark.parametrize("step", ["rename", "exchange"])
def test_a_switch_of_folders_that_was_cut_short_is_put_right(tmp_path, monkeypatch, step):
    """Stopped before its first or its second step, a promote or a rollback leaves one of the two serving."""
    store, model, queries, before, after = parts_moved(tmp_path)

    def cut(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "rename") if step == "rename" else (switch, "_exchange")), cut)
        with pytest.raises(KeyboardInterrupt):
            promote(store, "green")
    assert read_again(store, queries, 5) == before
    if step == "exchange":  # green has lost its name: it is made again
        assert status(store)["status"] == "original"
        assert not (tmp_path / "parts.original").exists()
        apply(model, store.beside(store.name), "green")  # beside that of the first time, which is kept
    promote(store, "green")
    assert read_again(store, queries, 5) == after
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "rename") if step == "rename" else (switch, "_exchange")), cut)
        with pytest.raises(KeyboardInterrupt):
            rollback(store)
    assert read_again(store, queries, 5) == after
    rollback(store.beside(store.name))
    assert read_again(store, queries, 5) == before


@pytest.fixture
def served(tmp_path):
    """A .npy file that serves, with a moved copy beside it, and the vectors of both."""
    ids, X, y, texts = sample()
    store, model = make_npy(tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    apply(model, store, "green")
    return store, X, model.move(X)


def test_a_link_stays_one(served, tmp_path):
    store, X, moved = served
    (tmp_path / "current.npy").symlink_to(store.path)
    linked = NpyFile(tmp_path / "current.npy", metric="l2", items=store.items)
    promote(linked, "green")
    assert (tmp_path / "current.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "current.npy"), moved)
    rollback(linked)
    np.testing.assert_array_equal(np.load(tmp_path / "current.npy"), X)


def test_who_may_read_the_original_may_read_the_moved(served):
    store, *_ = served
    store.path.chmod(0o640)
    promote(store, "green")
    assert store.path.stat().st_mode & 0o777 == 0o640


def test_marks_of_a_stranger_lead_nowhere(served, tmp_path):
    """A file of marks that names a path as the original must not let that be taken away."""
    store, *_ = served
    promote(store, "green")
    victim = tmp_path / "secret" / "v.npy"
    victim.parent.mkdir()
    np.save(victim, np.zeros((2, 8), np.float32))
    marks = tmp_path / "v.npy.hubless.json"
    marks.write_text(marks.read_text().replace("v.original.npy", str(victim)))
    rollback(store.beside(store.name))
    assert np.load(victim).shape == (2, 8)
    np.testing.assert_array_equal(np.load(store.path), served[1])


def test_a_file_that_was_replaced_since_is_left_alone(served):
    """What another program put in the place of the moved index is not ours to roll back, or to switch."""
    store, X, _ = served
    promote(store, "green")
    np.save(store.path, X + 1)
    with pytest.raises(StoreError, match="never moved"):
        rollback(store.beside(store.name))
    np.testing.assert_array_equal(np.load(store.path), X + 1)
