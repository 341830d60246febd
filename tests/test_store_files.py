"""Vectors in plain files and in FAISS indexes."""

import json
import os
import pickle

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
    store, _, queries, before, after = parts_moved(tmp_path)

    def cut(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "rename") if step == "rename" else (switch, "_exchange")), cut)
        with pytest.raises(KeyboardInterrupt):
            promote(store, "green")
    assert read_again(store, queries, 5) == before
    assert status(store)["status"] == "original"
    promote(store, "green")  # which finds green under its name again
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


def test_a_promoted_file_that_others_wrote_to_is_still_moved(served, tmp_path):
    """Moved items were added to it: it is no original, so it is not moved again, and a rollback keeps it."""
    store, X, moved = served
    model = model_for(X, sample()[2], "l2")
    promote(store, "green")
    np.save(store.path, moved + 1)
    again = store.beside(store.name)
    assert status(again)["status"] == "serving moved, changed since"
    with pytest.raises(StoreError, match="already moved"):
        apply(model, again, "twice")
    kept = rollback(again)["moved_kept_as"]
    np.testing.assert_array_equal(np.load(kept), moved + 1)
    np.testing.assert_array_equal(np.load(store.path), X)


def test_two_promotes_at_once_lose_nothing(served, tmp_path, monkeypatch):
    """The second comes while the first is between its two steps; the user has a second name for the file."""
    store, X, moved = served
    os.link(store.path, tmp_path / "backup.npy")
    replace = os.replace

    def meet(new, target):
        if str(target) == str(store.path):
            with pytest.raises(StoreError, match="another process"):
                promote(store.beside(store.name), "green")
        replace(new, target)

    monkeypatch.setattr(os, "replace", meet)
    promote(store, "green")
    np.testing.assert_array_equal(np.load(tmp_path / "backup.npy"), X)
    np.testing.assert_array_equal(np.load(tmp_path / "v.original.npy"), X)
    np.testing.assert_array_equal(np.load(store.path), moved)


def test_an_original_that_is_kept_cannot_be_switched(served, tmp_path):
    store, X, _ = served
    promote(store, "green")
    kept = store.beside("v.original")
    apply(model_for(X[:200], sample()[2][:200], "l2"), kept, "other")
    with pytest.raises(StoreError, match="kept to roll back to"):
        promote(kept, "other")


def test_a_file_that_changes_after_the_first_look_is_read_anew(served):
    """A store that was opened long ago must not give the rows of then under the state of now."""
    store, X, _ = served
    model = model_for(X, sample()[2], "l2")
    store.facts()
    np.save(store.path, X + 1)
    apply(model, store, "later")
    np.testing.assert_array_equal(np.load(store.path.with_name("later.npy")), model.move(X + 1))


def test_what_lies_beside_parts_goes_along(tmp_path):
    store, *_ = parts_moved(tmp_path)
    (store.path / "meta.json").write_text("{}")
    (store.path / "more").mkdir()
    apply(model_for(*sample()[1:3], "l2"), store, "other")
    promote(store, "other")
    assert (store.path / "meta.json").exists()
    assert (store.path / "more").is_dir()


@pytest.mark.parametrize("maker", ["parquet", "arrow", "hdf5"])
def test_a_mark_goes_with_a_copy_where_the_format_has_a_place(tmp_path, maker):
    ids, X, y, texts = sample(text_ids=True)
    store, model = MAKERS[maker](tmp_path, ids, X, texts, "l2"), model_for(X, y, "l2")
    apply(model, store, "green")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = store.path.with_name(f"green{store.path.suffix}").rename(elsewhere / store.path.name)
    with pytest.raises(StoreError, match="already moved"):
        apply(model, store.beside(str(copy)), "twice")


def test_a_table_of_items_goes_by_id_where_an_index_has_ids(tmp_path):
    ids, X, y, _ = sample()
    ids = ids - 1500  # hashes are often negative
    index = faiss.IndexIDMap2(faiss.IndexFlatL2(8))
    index.add_with_ids(X, ids)
    ivf = faiss.index_factory(8, "IVF4,Flat")
    ivf.cp.min_points_per_centroid = 1
    ivf.train(X)
    ivf.add_with_ids(X, ids)
    order = np.random.default_rng(1).permutation(len(ids))
    items = tmp_path / "items.json"
    items.write_text(json.dumps({"id": ids[order].tolist(), "label": y[order].tolist()}))
    for name, made in (("map", index), ("ivf", ivf)):
        faiss.write_index(made, str(tmp_path / f"{name}.faiss"))
        store = FaissIndex(tmp_path / f"{name}.faiss", items=items)
        batch = store.fetch(ids[:50].tolist(), ["label"])
        np.testing.assert_array_equal(batch.vectors, X[:50])
        assert batch.columns["label"] == y[:50].tolist()
        assert store.search(X[:5], 3).tolist() == made.search(X[:5], 3)[1].tolist()
    items.write_text(json.dumps({"label": y.tolist()}))
    assert FaissIndex(tmp_path / "map.faiss", items=items).fetch([ids[7]], ["label"]).columns["label"] == [
        y[7]
    ]
    with pytest.raises(StoreError, match="order"):
        FaissIndex(tmp_path / "ivf.faiss", items=items).facts()


def test_an_ivf_index_of_few_vectors_keeps_its_lists(tmp_path):
    _, X, y, _ = sample(60)
    index = faiss.index_factory(8, "IVF32,Flat")
    index.cp.min_points_per_centroid = 1
    index.train(X)
    index.add(X[:20])
    index.nprobe = 32
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    store, model = FaissIndex(tmp_path / "v.faiss"), model_for(X, y, "l2")
    apply(model, store, "green")
    promote(store, "green")
    found = faiss.read_index(str(tmp_path / "v.faiss")).search(X[:5], 3)[1]
    assert found.tolist() == exact(np.arange(20), model.move(X[:20]), X[:5], 3, "l2")


class Trap:
    """What, unpickled, would write a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickles_in_files_of_vectors_are_refused_and_run_nothing(tmp_path, suffix):
    array = np.array([Trap(tmp_path / "sprung")], dtype=object)
    path = tmp_path / f"v.{suffix}"
    if suffix == "npy":
        np.save(path, array, allow_pickle=True)
    else:
        np.savez(path, vectors=np.zeros((1, 3), np.float32), label=array)
    store = (NpyFile if suffix == "npy" else NpzFile)(path)
    with pytest.raises(StoreError):
        store.facts()
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(StoreError):
        store.facts()
    assert not (tmp_path / "sprung").exists()


def test_a_matrix_that_claims_more_than_it_holds_is_refused(tmp_path):
    """Its head says a billion rows: nothing of that size may be made before it is seen to be a lie."""
    np.save(tmp_path / "v.npy", np.zeros((2, 3), np.float32))
    whole = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(
        whole.replace(b"'shape': (2, 3), }        ", b"'shape': (1000000000, 3), }")
    )
    with pytest.raises(StoreError, match="NumPy's format"):
        NpyFile(tmp_path / "v.npy").facts()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", b"nothing of the kind"])
@pytest.mark.parametrize("kind", [NpyFile, NpzFile, ArrowFile, Hdf5File, FaissIndex])
def test_files_of_something_else_are_refused_in_words(tmp_path, kind, content):
    suffix = {NpyFile: "npy", NpzFile: "npz", ArrowFile: "parquet", Hdf5File: "hdf5", FaissIndex: "faiss"}[
        kind
    ]
    (tmp_path / f"v.{suffix}").write_bytes(content)
    with pytest.raises(StoreError, match=r"v\."):
        kind(tmp_path / f"v.{suffix}").facts()
