"""hnswlib indexes: the metric, which a file does not say, deleted labels, and files that were crafted."""

import json
import pickle
import struct

import hnswlib
import numpy as np
import pytest

from hubless.neighbors.knn import unit
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.doctor import diagnose
from hubless.repair.index_items import read_items
from hubless.stores.hnswlib import HnswlibIndex
from hubless.stores.store import StoreError
from hubless.testing.store_cases import exact, model_for, overlap, sample
from tests.stores.index_cases import ask_hnswlib, write_hnswlib

pytestmark = pytest.mark.services


@pytest.fixture
def path(tmp_path):
    return tmp_path / "v.hnsw"


# --- what a file does not say -------------------------------------------------------------------------------


def test_without_a_metric_nothing_is_compared(path, refused, run, words):
    """What needs no metric works; what does need one says which ones the vectors allow."""
    ids, X, *_ = sample()
    for space, stored, allowed in (("l2", X, "--metric l2 or ip."), ("cosine", X, "their lengths are 1")):
        write_hnswlib(path, ids, stored, space)
        status = run("status", path)
        assert (status["count"], status["dimension"], status["metric"]) == (300, 8, None)
        assert "300" in words("status", path)
        for verb in (["doctor", path], ["fit", path, "--labels", "x", "-o", path.with_name("model")]):
            items = path.with_suffix(".json")
            items.write_text(json.dumps({"id": ids.tolist(), "x": [0, 1, 2] * 100}))
            message = refused(*verb, "--items", items)
            assert "does not say how its vectors are compared" in message
            assert allowed in message
        for ask in (HnswlibIndex(path).search, lambda X, k: HnswlibIndex(path).fetch(ids[:k])):
            with pytest.raises(StoreError, match="does not say how"):
                ask(X[:1], 3)


def test_a_promoted_index_is_rolled_back_without_a_metric(path, run):
    ids, X, y, _ = sample()
    write_hnswlib(path, ids, X, "l2")
    before = path.read_bytes()
    apply_index(model_for(X, y, "l2"), HnswlibIndex(path, metric="l2"), "moved")
    promoted = run("promote", path, "moved.hnsw")
    assert run("status", path)["status"] == "serving moved"
    assert promoted["original"].endswith("v.original.hnsw")
    assert run("rollback", path)["added_since"] == 0
    assert path.read_bytes() == before


def test_cosine_is_refused_where_vectors_have_other_lengths(path):
    ids, X, *_ = sample()
    write_hnswlib(path, ids, X, "l2")
    store = HnswlibIndex(path, metric="cosine")
    for ask in (lambda: list(store.batches()), lambda: store.search(X[:1], 2)):
        with pytest.raises(StoreError, match="was not made for cosine"):
            ask()


def test_under_cosine_vectors_have_length_1_as_hnswlib_keeps_them(path):
    ids, X, y, _ = sample()
    X[7] = 0  # of which hnswlib cannot make one
    old, model = write_hnswlib(path, ids, X, "cosine"), model_for(X, y, "cosine")
    store = HnswlibIndex(path, metric="cosine")
    np.testing.assert_array_equal(store.fetch(ids.tolist()).vectors, old.get_items(ids))
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    new = hnswlib.Index("cosine", 8)
    new.load_index(str(path))
    expected = np.where(X.any(axis=1, keepdims=True), model.move(X), 0)
    np.testing.assert_allclose(new.get_items(ids), expected, atol=1e-5)


def test_inner_product_of_other_lengths_is_not_moved(path):
    ids, X, y, _ = sample()
    write_hnswlib(path, ids, X, "ip")
    store = HnswlibIndex(path, metric="ip")
    assert diagnose(store).verdict == "do not move"
    with pytest.raises(StoreError, match=r"inner product|length 1"):
        apply_index(model_for(X, y, "cosine"), store, "moved")


# --- settings and labels ------------------------------------------------------------------------------------


def test_a_moved_index_has_the_settings_of_the_old_one(path):
    ids, X, y, _ = sample()
    write_hnswlib(path, ids, X, "l2", capacity=1234, M=9)
    store = HnswlibIndex(path, metric="l2")
    assert store.facts().index == "HNSW, M=9, ef_construction=90, ef=10"
    apply_index(model_for(X, y, "l2"), store, "moved")
    promote_index(store, "moved")
    new = hnswlib.Index("l2", 8)
    new.load_index(str(path))
    assert (new.M, new.ef_construction, new.max_elements, new.element_count) == (9, 90, 1234, 300)
    new.add_items(X, ids + 10**6)  # for which there is room


def test_deleted_labels_are_left_out(path, tmp_path):
    ids, X, y, texts = sample()
    write_hnswlib(path, ids, X, "l2", deleted=ids[5:40])
    left = np.r_[0:5, 40:300]
    items = tmp_path / "items.json"
    items.write_text(json.dumps({"id": ids.tolist(), "text": texts}))
    store, model = HnswlibIndex(path, metric="l2", items=items), model_for(X, y, "l2")
    assert store.facts().count == 265
    assert store.fetch(ids.tolist()).ids.tolist() == ids[left].tolist()
    assert store.contains(ids[4:6]).tolist() == [True, False]
    assert overlap(store.search(X[:9], 5), exact(ids[left], X[left], X[:9], 5, "l2")) > 0.9
    before = path.read_bytes()
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    found = ask_hnswlib(path, X[:9], 5, "l2")
    assert overlap(found, exact(ids[left], model.move(X[left]), X[:9], 5, "l2")) > 0.9
    assert rollback_index(store)["added_since"] == 0
    assert path.read_bytes() == before


def test_rows_are_in_the_order_of_their_labels(path):
    """Threads add rows in an order of their own; labels 0, 1, … are row numbers all the same."""
    _, X, y, _ = sample()
    order = np.random.default_rng(0).permutation(300)
    write_hnswlib(path, order, X[order], "l2")
    items = path.with_suffix(".npy")
    np.save(items, y)
    store = HnswlibIndex(path, metric="l2", items=items)
    assert store.ids_are_row_numbers()
    np.testing.assert_array_equal(store.fetch([0, 7]).vectors, X[[0, 7]])
    assert store.fetch([7], ["label"]).columns["label"] == [y[7]]


def test_a_search_finds_what_can_be_reached(path):
    ids, X, *_ = sample(30)
    write_hnswlib(path, ids, X, "l2", deleted=ids[:20])
    store = HnswlibIndex(path, metric="l2")
    found = store.search(X[:3], 12)
    assert found.shape == (3, 12)
    assert all(set(row[:10]) == set(ids[20:].tolist()) for row in found.tolist())
    assert set(found[:, 10:].flat) == {None}
    content = bytearray(path.read_bytes())
    for row in range(30):  # no row leads to another
        struct.pack_into("<H", content, 96 + row * (4 + 24 * 4 + 8 * 4 + 8), 0)
    path.write_bytes(content)
    alone = HnswlibIndex(path, metric="l2").search(X[:3], 4)
    assert alone.shape == (3, 4)
    assert all(sum(label is not None for label in row) <= 1 for row in alone.tolist())


@pytest.mark.parametrize("deleted", [0, 3])
def test_an_index_without_rows_is_read(path, deleted):
    labels = np.arange(deleted)
    write_hnswlib(path, labels, np.zeros((deleted, 8), np.float32), "l2", capacity=5, deleted=labels)
    store = HnswlibIndex(path, metric="l2")
    assert (store.facts().count, store.facts().dimension) == (0, 8)
    assert store.search(np.zeros((2, 8)), 3).shape == (2, 0)
    assert store.read_span(0, 0)[0].shape == (0, 8)
    with pytest.raises(StoreError, match="is empty"):
        read_items(store)


# --- files that were crafted or cut -------------------------------------------------------------------------

M, SIZE = 3, 4 + 6 * 4 + 8 * 4 + 8  # bytes of a row: its links, its vector and its label
END = 96 + 100 * SIZE


@pytest.fixture
def whole(path):
    _, X, *_ = sample(100)
    write_hnswlib(path, np.arange(100), X, "l2", M=M)
    return path.read_bytes()


def test_files_that_were_cut_are_refused(path, whole):
    for length in (0, 3, 60, 95, 96, 96 + SIZE, END - 1, END, END + 7, len(whole) - 4, len(whole) + 4):
        path.write_bytes((whole + bytes(4))[:length])
        with pytest.raises(StoreError, match="is not an HNSW index of hnswlib"):
            HnswlibIndex(path, metric="l2").facts()


def test_a_pickled_index_is_refused_and_nothing_runs(path, tmp_path):
    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    path.write_bytes(pickle.dumps([Harm()] * 40))
    with pytest.raises(StoreError, match="is not an HNSW index of hnswlib"):
        HnswlibIndex(path, metric="l2").facts()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("place", "form", "values"),
    [
        (0, "<Q", [8, 2**63]),  # where rows begin
        (8, "<Q", [0, 99]),  # capacity
        (16, "<Q", [0, 99, 101, 2**32, 2**63]),  # rows
        (24, "<Q", [0, SIZE - 4, SIZE + 4, 2**62]),  # bytes of one
        (32, "<Q", [0, SIZE - 12, 2**63]),  # where the label is
        (40, "<Q", [0, 24, 32, 2**63]),  # where the vector is
        (56, "<Q", [0, 2, 2**40]),  # links of a list
        (64, "<Q", [0, 5, 2**40]),  # of the lowest level
        (72, "<Q", [0, 1, 2, 4, 2**40]),  # M
        (80, "<d", [0.0, np.nan, np.inf, -1.0]),  # factor of levels
        (END, "<I", [1, 2**32 - 1, 16 * 10**6]),  # bytes of links
    ],
)
def test_a_forged_head_is_refused(path, whole, place, form, values):
    for value in values:
        content = bytearray(whole)
        struct.pack_into(form, content, place, value)
        path.write_bytes(content)
        with pytest.raises(StoreError, match="is not an HNSW index of hnswlib"):
            HnswlibIndex(path, metric="l2").facts()


def test_a_huge_capacity_reserves_no_memory(path, whole):
    """hnswlib itself would reserve it all, and fail; the moved file claims as much as the old one."""
    _, X, y, _ = sample(100)
    content = bytearray(whole)
    struct.pack_into("<Q", content, 8, 2**60)
    path.write_bytes(content)
    store = HnswlibIndex(path, metric="l2")
    assert overlap(store.search(X[:9], 5), exact(np.arange(100), X, X[:9], 5, "l2")) > 0.8
    apply_index(model_for(X, y, "l2"), store, "moved")
    assert path.with_name("moved.hnsw").read_bytes()[8:16] == content[8:16]


def test_labels_that_occur_twice_are_refused(path, whole):
    content = bytearray(whole)
    struct.pack_into("<Q", content, 96 + 2 * SIZE - 8, 0)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="repeat an earlier id"):
        HnswlibIndex(path, metric="l2").facts()


def test_links_that_lead_nowhere_are_refused_before_they_are_followed(path, whole):
    """hnswlib itself would end the process."""
    _, X, *_ = sample(100)
    forged = [(52, "<I", 100), (52, "<I", 2**32 - 1), (48, "<i", -2), (48, "<i", 30)]  # entry, highest level
    forged += [(96, "<H", 7), (96, "<H", 2**16 - 1), (100, "<I", 100), (100, "<I", 2**32 - 1)]
    for place, form, value in forged:
        content = bytearray(whole)
        struct.pack_into(form, content, place, value)
        path.write_bytes(content)
        store = HnswlibIndex(path, metric="l2")
        assert store.facts().count == 100
        with pytest.raises(StoreError, match="links lead nowhere"):
            store.search(X[:1], 3)


def test_no_link_of_a_file_can_end_the_process(path, whole):
    _, X, *_ = sample(100)
    rng, n_refused = np.random.default_rng(0), 0
    for place in rng.integers(96 // 4, len(whole) // 4, 300) * 4:
        content = bytearray(whole)
        struct.pack_into("<I", content, place, int(rng.choice([0, 5, 99, 100, 2**31, 2**32 - 1])))
        path.write_bytes(content)
        try:
            HnswlibIndex(path, metric="l2").search(unit(X[:20]), 10)
        except StoreError:
            n_refused += 1
    assert 50 < n_refused < 250
