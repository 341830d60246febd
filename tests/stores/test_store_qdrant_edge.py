"""Shards of Qdrant Edge: vectors and payloads of all kinds, interrupted switches, and what is refused."""

import json
import shutil
import uuid

import numpy as np
import pytest
import qdrant_edge as edge

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores import switch
from hubless.stores.qdrant.qdrant_edge import QdrantEdge
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.killer import killed_at
from tests.stores.qdrant_edge_cases import dump, make, rows

pytestmark = pytest.mark.services


@pytest.fixture
def few(tmp_path):
    """Return 60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")


def plain(vectors):
    """Return vectors as numbers that can be compared."""
    return {
        name: (v.indices, v.values) if isinstance(v, edge.SparseVector) else v for name, v in vectors.items()
    }


def test_other_vectors_payload_and_settings_are_copied(tmp_path):
    half = edge.VectorStorageDatatype.Float16
    config = edge.EdgeConfig(
        vectors={
            "body": edge.EdgeVectorParams(size=8, distance=edge.Distance.Euclid, datatype=half),
            "title": edge.EdgeVectorParams(size=3, distance=edge.Distance.Cosine),
        },
        sparse_vectors={"terms": edge.EdgeSparseVectorParams()},
        hnsw_config=edge.HnswIndexConfig(m=24, ef_construct=77, full_scan_threshold=5000),
    )
    shard = edge.EdgeShard.create(str(tmp_path / "items"), config)
    shard.update(edge.UpdateOperation.create_field_index("lang", edge.PayloadSchemaType.Keyword))
    _, X, y, _ = sample(40)
    ids = [*range(39), str(uuid.UUID(int=7))]
    for place, (i, x) in enumerate(zip(ids, X.tolist(), strict=True)):
        terms = edge.SparseVector([2, 9], [0.5, place + 1.0])
        vectors = {"body": x, "title": [3.0, place, 4.0], "terms": terms}
        if place == 5:
            del vectors["body"]
        payload = {"lang": "de" if place % 2 else "en", "meta": {"n": [place, None]}}
        shard.update(edge.UpdateOperation.upsert_points([edge.Point(i, vectors, payload)]))
    shard.close()
    before = dump(tmp_path / "items")
    with pytest.raises(StoreError, match="2 columns of vectors"):
        QdrantEdge(tmp_path / "items").facts()
    store = QdrantEdge(tmp_path / "items", vector="body")
    facts = store.facts()
    assert (facts.columns, facts.dtype, facts.metric) == (("lang", "meta.n"), "float16", "l2")
    model = model_for(X, y, "l2")
    assert apply_index(model, store, "moved")["written"] == 40
    assert apply_index(model, store, "moved")["written"] == 0
    promote_index(store, "moved")
    after, original = dump(store.path), dump(tmp_path / "items.original")
    assert after[1] == before[1] == {"lang": "PayloadSchemaType.Keyword"}
    assert json.loads((store.path / "edge_config.json").read_text())["hnsw_config"]["m"] == 24
    moved = dict(zip(map(str, ids), model.move(X), strict=True))
    for i, (vectors, payload) in after[0].items():
        got, was = plain(vectors), plain(before[0][i][0])
        assert payload == before[0][i][1]
        assert got.keys() == was.keys()
        assert got["terms"] == was["terms"]
        np.testing.assert_allclose(got["title"], was["title"], rtol=1e-6)
        if i != "5":  # body is kept in half precision, and moved as it is kept
            np.testing.assert_allclose(got["body"], moved[i], rtol=2e-3, atol=5e-3)
        assert plain(original[0][i][0]) == was


def test_a_quantised_copy_leaves_the_vectors_exact(tmp_path):
    """The engine compresses a copy, so the vectors are returned as they were put in."""
    ids, X, *_ = sample(2000)
    binary = edge.BinaryQuantizationConfig()
    params = edge.EdgeVectorParams(size=8, distance=edge.Distance.Euclid)
    optimizers = edge.EdgeOptimizersConfig(indexing_threshold=1)
    config = edge.EdgeConfig(vectors=params, quantization_config=binary, optimizers=optimizers)
    shard = edge.EdgeShard.create(str(tmp_path / "items"), config)
    shard.update(rows(ids, X, ["text"] * 2000))
    assert shard.optimize()  # now it is
    shard.close()
    assert list((tmp_path / "items").rglob("quantized*"))
    store = QdrantEdge(tmp_path / "items")
    assert store.facts().is_exact
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)


def test_a_change_between_apply_and_promote_is_reported(few, monkeypatch):
    store, ids, _, model = few
    apply_index(model, store, "moved")
    store.shard.update(edge.UpdateOperation.delete_points([int(ids[3])]))
    with pytest.raises(StoreError, match="changed"):
        promote_index(store, "moved")
    monkeypatch.setattr(QdrantEdge, "remove", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        apply_index(model, store, "moved")
    with pytest.raises(StoreError, match="not finished"):
        promote_index(store, "moved")
    monkeypatch.undo()
    report = apply_index(model, store, "moved")
    assert (report["written"], report["removed"]) == (0, 1)
    promote_index(store, "moved")
    assert store.facts().count == 59


def test_existing_folders_are_not_overwritten(few):
    store, _, _, model = few
    with pytest.raises(StoreError, match="no shard"):
        store.sibling("none").facts()
    (store.path.parent / "moved").mkdir()
    with pytest.raises(StoreError, match="not made by hubless"):
        apply_index(model, store, "moved")
    apply_index(model, store, "moved2")
    (store.path.parent / "items.original").mkdir()
    with pytest.raises(StoreError, match=r"exists already, but .* is to be kept under that name"):
        promote_index(store, "moved2")
    assert store.mark() is None


def test_a_green_that_does_not_serve_is_not_rolled_back(few, monkeypatch):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    apply_index(model, store, "other")
    monkeypatch.setattr(switch, "put_in_place", lambda *_: 1 / 0)  # right before the switch
    with pytest.raises(ZeroDivisionError):
        promote_index(store, "moved")
    monkeypatch.undo()
    promote_index(store, "other")
    with pytest.raises(StoreError, match="nothing to roll back"):
        rollback_index(store.sibling("moved"))
    rollback_index(store)
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)


def test_an_interrupted_promote_loses_nothing(few, monkeypatch):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    with pytest.raises(StoreError, match="nothing to roll back"):
        rollback_index(store.sibling("moved"))
    with monkeypatch.context() as patch:
        patch.setattr(switch, "exchange_names", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            promote_index(store, "moved")
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)
    promote_index(store, "moved")  # which finds it under its name again
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr(switch, "exchange_names", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rollback_index(store)
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
    assert rollback_index(store)["moved_kept_as"] == f"{store.name}.moved-{model.hash[:8]}"
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)
    promote_index(store, f"items.moved-{model.hash[:8]}")  # it can serve again
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)


def count_writes(counted):
    """Let all that an apply writes to the disk be counted."""
    import os

    QdrantEdge.page = 10
    QdrantEdge._upsert = counted(QdrantEdge._upsert)
    QdrantEdge.set_mark = counted(QdrantEdge.set_mark)
    os.rename = counted(os.rename)


def apply_again(folder):
    _, X, y, _ = sample(60)
    apply_index(model_for(X, y, "l2"), QdrantEdge(folder), "moved")


@pytest.mark.faults
def test_an_apply_that_was_killed_is_resumed(few, tmp_path):
    store, ids, X, model = few
    moments = (0, 1, 4, 6, 7)  # of: the folder with its mark, 6 times 10 points, the mark when done
    folders = [tmp_path / str(moment) / "items" for moment in moments]
    for folder, moment in zip(folders, moments, strict=True):
        shutil.copytree(store.path, folder)
        killed_at(moment, count_writes, apply_again, folder)
    before = dump(store.path)
    for folder, moment in zip(folders, moments, strict=True):
        resumed = QdrantEdge(folder)
        assert resumed.sibling("moved").exists() == (moment > 0)
        with pytest.raises(StoreError, match=r"not finished|not there|does not exist"):
            promote_index(resumed, "moved")
        assert apply_index(model, resumed, "moved")["written"] == 60 - 10 * max(moment - 1, 0)
        promote_index(resumed, "moved")
        np.testing.assert_allclose(resumed.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
        resumed.close()
        assert dump(f"{folder}.original") == before


def test_a_shard_that_another_client_has_open(few):
    store, *_ = few
    shard = edge.EdgeShard.load(str(store.path))
    with pytest.raises(StoreError, match="another process"):
        store.facts()
    shard.close()
    assert store.facts().count == 60


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("dangling", "dangling is a link to .*nowhere.* Remove the link"),
        ("items/inner", "is among the items"),
        ("notes/green", "notes is a file"),
        ("other", "exists already and was not made by hubless"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_rows_are_read(
    few, tmp_path, monkeypatch, target, words
):
    store, _, _, model = few
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(QdrantEdge, "batches", lambda *_: pytest.fail("rows were read"))
    with pytest.raises((OSError, StoreError), match=words):
        apply_index(model, store, str(tmp_path / target))
    assert not (tmp_path / "nowhere").exists()


def test_what_killed_processes_left_is_removed(few, tmp_path):
    """By the next apply: the folder that was to become the copy, and a part of its mark."""
    store, _, _, model = few
    (tmp_path / ".moved.0123abcd.part").mkdir()
    apply_index(model, store, "moved")
    (tmp_path / "moved" / ".hubless.json.0123abcd.part").write_text("{")
    apply_index(model, store, "moved")
    assert not list(tmp_path.rglob("*.part"))
