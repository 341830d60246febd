"""usearch indexes: types of numbers, keys, and files that were crafted or cut."""

import json
import struct

import numpy as np
import pytest
from usearch.index import Index

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.doctor import diagnose
from hubless.repair.index_items import read_items
from hubless.stores.store import StoreError
from hubless.stores.usearch import UsearchIndex
from hubless.testing.store_cases import model_for, sample
from tests.stores.index_cases import write_usearch

pytestmark = pytest.mark.services


@pytest.fixture
def path(tmp_path):
    return tmp_path / "v.usearch"


# --- what a file says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "name", "rounding"),
    [
        ("f64", "float64", 1e-6),
        ("f32", "float32", 1e-6),
        ("f16", "float16", 1e-3),
        ("bf16", "bfloat16", 8e-3),
    ],
)
def test_a_moved_index_has_the_type_and_the_settings_of_the_old_one(path, dtype, name, rounding):
    ids, X, y, _ = sample()
    old, model = write_usearch(path, ids, X, "cosine", dtype=dtype, connectivity=7), model_for(X, y, "cosine")
    store = UsearchIndex(path)
    facts = store.facts()
    assert (facts.dtype, facts.metric, facts.kind) == (name, "cosine", "usearch index")
    assert "connectivity=7" in facts.index
    stored = store.fetch(ids.tolist()).vectors
    read = "f64" if dtype == "f64" else "f32"
    np.testing.assert_array_equal(stored, np.stack(old.get(ids, dtype=read)))
    before = path.read_bytes()
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    new = Index.restore(str(path))
    assert (new.dtype, new.metric, new.connectivity) == (old.dtype, old.metric, 7)
    np.testing.assert_allclose(np.stack(new.get(ids, dtype=read)), model.move(stored), atol=rounding)
    rollback_index(store)
    assert path.read_bytes() == before


def test_the_type_that_usearch_takes_by_default_is_moved(path):
    """It is half precision where the processor has it, as most have."""
    ids, X, y, _ = sample()
    write_usearch(path, ids, X, "l2", dtype=None)
    assert apply_index(model_for(X, y, "l2"), UsearchIndex(path), "moved")["written"] == 300


@pytest.mark.parametrize("dtype", ["i8", "e5m2"])
def test_quantised_vectors_are_diagnosed_and_not_moved(path, dtype):
    ids, X, *_ = sample()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    write_usearch(path, ids, X, "cosine", dtype=dtype)
    store = UsearchIndex(path)
    with pytest.raises(StoreError, match=r"quantised.*file of original vectors"):
        read_items(store)
    np.testing.assert_allclose(store.fetch(ids.tolist()).vectors, X, atol=0.13)
    assert diagnose(store).verdict == "do not move"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "hamming", "dtype": "b1"}, "index of bits"),
        ({"metric": "pearson", "dtype": "f32"}, "usearch metric 'p'; expected the metric l2sq, cos or ip"),
        ({"metric": "ip", "dtype": "f32", "multi": True}, "several vectors under one key, 5 for example"),
    ],
)
def test_what_cannot_be_moved_is_refused(path, settings, message):
    index = Index(ndim=8, **settings)
    bits = settings["dtype"] == "b1"
    vectors = np.ones((3, 1), np.uint8) if bits else np.arange(24, dtype=np.float32).reshape(3, 8)
    index.add(np.array([5, 5, 6]) if settings.get("multi") else np.arange(3), vectors)
    index.save(str(path))
    with pytest.raises(StoreError, match=message):
        UsearchIndex(path).facts()


def test_a_metric_that_contradicts_the_file_is_refused(path):
    ids, X, *_ = sample(20)
    write_usearch(path, ids, X, "l2")
    with pytest.raises(StoreError, match="compares by l2; got metric='ip'"):
        UsearchIndex(path, metric="ip").facts()


# --- keys ---------------------------------------------------------------------------------------------------


def test_removed_keys_are_left_out_and_the_others_keep_theirs(path, tmp_path):
    ids, X, y, _ = sample()
    index = write_usearch(path, ids, X, "l2", multi=True)  # multi, but one vector for each
    index.remove(ids[:40])
    index.add(ids[:1], X[:1])  # which takes the place of a removed one
    index.save(str(path))
    left = np.r_[ids[:1], ids[40:]]
    items = tmp_path / "items.json"
    items.write_text(json.dumps({"id": ids[::-1].tolist(), "label": y[::-1].tolist()}))
    store, model = UsearchIndex(path, items=items), model_for(X, y, "l2")
    assert store.facts().count == 261
    batch = store.fetch(ids.tolist(), ["label"])
    assert batch.ids.tolist() == left.tolist()
    assert batch.columns["label"] == np.r_[y[:1], y[40:]].tolist()
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    new = Index.restore(str(path), multi=True)
    assert sorted(np.asarray(new.keys).tolist()) == sorted(left.tolist())
    found = np.concatenate(new.get(left))
    np.testing.assert_allclose(found, model.move(np.r_[X[:1], X[40:]]), atol=1e-5)


def test_keys_beyond_int64_are_texts(path):
    _, X, *_ = sample(4)
    keys = np.array([1, 2**63, 2**64 - 2, 7], dtype=np.uint64)
    write_usearch(path, keys, X, "l2")
    store = UsearchIndex(path)
    assert store.search(X[1:2], 1).tolist() == [[str(2**63)]]
    np.testing.assert_array_equal(store.fetch([str(2**64 - 2), "7"]).vectors, X[2:])


def test_a_search_finds_what_there_is(path):
    ids, X, *_ = sample(5)
    write_usearch(path, ids, X, "l2")
    store = UsearchIndex(path)
    for queries in (X[:1], X[:3]):
        found = store.search(queries, 9)
        assert found.shape == (len(queries), 9)
        assert [set(row[:5]) for row in found.tolist()] == [set(ids.tolist())] * len(queries)
        assert set(found[:, 5:].flat) == {None}
    write_usearch(path, ids[:0], X[:0], "l2")
    empty = UsearchIndex(path)
    assert (empty.facts().count, empty.facts().dimension) == (0, 8)
    assert empty.search(X[:2], 3).shape == (2, 0)
    assert empty.read_span(0, 0)[0].shape == (0, 8)
    with pytest.raises(StoreError, match="is empty"):
        read_items(empty)


# --- files that were crafted or cut -------------------------------------------------------------------------


@pytest.fixture
def whole(path):
    _, X, *_ = sample(100)
    write_usearch(path, np.arange(100), X, "l2", connectivity=3)
    return path.read_bytes()


HEAD = 8 + 100 * 32


def test_files_that_were_cut_are_refused(path, whole):
    for length in (0, 3, 8, 60, HEAD, HEAD + 50, HEAD + 104, HEAD + 303, len(whole) - 1, len(whole) + 5):
        path.write_bytes((whole + bytes(5))[:length])
        with pytest.raises(StoreError, match="is not a usearch index"):
            UsearchIndex(path).facts()


@pytest.mark.parametrize(
    ("place", "form", "values"),
    [
        (0, "<I", [0, 99, 101, 2**32 - 1]),  # vectors
        (4, "<I", [0, 31, 33, 2**32 - 1]),  # bytes of each
        (HEAD, "7s", [b"USEARCH"]),
        (HEAD + 7, "<H", [1, 3]),  # version
        (HEAD + 9, "<H", [9]),
        (HEAD + 13, "B", [0, ord("h")]),  # metric
        (HEAD + 14, "B", [0, 2, 10, 12, 255]),  # type
        (HEAD + 15, "B", [2]),  # type of keys
        (HEAD + 33, "<Q", [0, 7, 2**32 + 8, 2**61 + 8, 2**64 - 1]),  # dimension
        (HEAD + 64, "<Q", [0, 99, 2**63]),  # rows
        (HEAD + 72, "<Q", [0, 1, 2, 4, 2**40]),  # connectivity
        (HEAD + 80, "<Q", [0, 2, 5, 2**62]),  # of the lowest level
        (HEAD + 104, "<h", [-1, 30000]),  # level of a row
        (HEAD + 104 + 200 + 8, "<h", [-1, 7]),  # the same level, beside its links
    ],
)
def test_a_forged_head_is_refused(path, whole, place, form, values):
    for value in values:
        content = bytearray(whole)
        struct.pack_into(form, content, place, value)
        path.write_bytes(content)
        with pytest.raises(StoreError):
            UsearchIndex(path).facts()


def test_links_that_lead_nowhere_are_refused_before_they_are_followed(path, whole):
    """usearch itself would end the process."""
    _, X, *_ = sample(100)
    first = HEAD + 104 + 200 + 10  # the links of the first row
    forged = [(HEAD + 96, 100), (HEAD + 96, 2**32), (HEAD + 88, 30), (HEAD + 88, 2**64 - 2)]
    forged += [(first, 7), (first, 2**31), (first + 4, 100), (first + 4, 2**32 - 1)]
    for place, value in forged:
        content = bytearray(whole)
        struct.pack_into("<Q" if place < first else "<I", content, place, value)
        path.write_bytes(content)
        store = UsearchIndex(path)
        assert store.facts().count == 100
        with pytest.raises(StoreError, match="links lead nowhere"):
            store.search(X[:1], 3)


def test_a_link_to_a_row_of_a_lower_level_is_refused(path, whole):
    """The row has no list of links there: an engine would read what is behind it."""
    _, X, *_ = sample(100)
    levels = np.frombuffer(whole, "<i2", 100, HEAD + 104)
    sizes = 10 + 4 + 4 * 6 + levels * (4 + 4 * 3)
    row, low = int(np.argmax(levels)), int(np.argmin(levels))
    place = HEAD + 104 + 200 + int(sizes[:row].sum()) + 10 + 28  # its list of level 1
    content = bytearray(whole)
    struct.pack_into("<2I", content, place, 1, low)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="links lead nowhere"):
        UsearchIndex(path).search(X[:1], 3)


def test_no_link_of_a_file_can_end_the_process(path, whole):
    _, X, *_ = sample(100)
    rng, n_refused = np.random.default_rng(0), 0
    for place in rng.integers(HEAD + 104 + 200, len(whole) - 4, 300):
        content = bytearray(whole)
        struct.pack_into("<I", content, place, int(rng.choice([0, 5, 99, 100, 2**31, 2**32 - 1])))
        path.write_bytes(content)
        try:
            UsearchIndex(path).search(X[:20], 10)
        except StoreError:
            n_refused += 1
    assert 50 < n_refused < 250
