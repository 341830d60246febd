"""Qdrant Edge: the contract, and what is its own."""

import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as edge

from hubless.index.apply import apply, promote, rollback
from hubless.stores import qdrant_edge, switch
from hubless.stores.qdrant_edge import QdrantEdge
from hubless.stores.store import StoreError
from tests.store_contract import Case, StoreContract, model_for, sample

ROOT = Path(__file__).parent.parent

DISTANCE = {"l2": edge.Distance.Euclid, "cosine": edge.Distance.Cosine, "ip": edge.Distance.Dot}


def rows(ids, X, texts):
    told = zip(ids.tolist(), X.tolist(), texts, strict=True)
    return edge.UpdateOperation.upsert_points([edge.Point(i, x, {"text": t}) for i, x, t in told])


def make(folder, ids, X, texts, metric="l2"):
    params = edge.EdgeVectorParams(size=X.shape[1], distance=DISTANCE[metric])
    shard = edge.EdgeShard.create(str(folder / "items"), edge.EdgeConfig(vectors=params))
    shard.update(rows(ids, X, texts))
    shard.close()
    return QdrantEdge(folder / "items")


def ask(store, queries, k):
    store.close()
    shard = edge.EdgeShard.load(str(store.path))
    found = [shard.query(edge.QueryRequest(limit=k, query=edge.Query.Nearest(q.tolist()))) for q in queries]
    shard.close()
    return [[point.id for point in row] for row in found]


def add(store, ids, X, texts):
    store.close()
    shard = edge.EdgeShard.load(str(store.path))
    shard.update(rows(ids, X, texts))
    shard.close()


class TestEdge(StoreContract):
    @pytest.fixture
    def case(self):
        return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)


@pytest.fixture
def few(tmp_path):
    """60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")


def dump(path):
    """All that a shard holds, as the engine tells it."""
    shard = edge.EdgeShard.load(str(path))
    records, _ = shard.scroll(edge.ScrollRequest(limit=10_000, with_payload=True, with_vector=True))
    told = {str(record.id): (record.vector, record.payload) for record in records}
    schema = {key: str(index.data_type) for key, index in shard.info().payload_schema.items()}
    shard.close()
    return told, schema


def plain(vectors):
    """Vectors as numbers that can be compared."""
    return {
        name: (v.indices, v.values) if isinstance(v, edge.SparseVector) else v for name, v in vectors.items()
    }


def test_other_vectors_payload_and_settings_go_along(tmp_path):
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
    with pytest.raises(StoreError, match="several vectors"):
        QdrantEdge(tmp_path / "items").facts()
    store = QdrantEdge(tmp_path / "items", vector="body")
    facts = store.facts()
    assert (facts.columns, facts.dtype, facts.metric) == (("lang", "meta.n"), "float16", "l2")
    model = model_for(X, y, "l2")
    assert apply(model, store, "moved")["written"] == 40
    assert apply(model, store, "moved")["written"] == 0
    promote(store, "moved")
    after, original = dump(store.path), dump(tmp_path / "items.original")
    assert after[1] == before[1] == {"lang": "PayloadSchemaType.Keyword"}
    assert json.loads((store.path / "edge_config.json").read_text())["hnsw_config"]["m"] == 24
    moved = dict(zip(map(str, ids), model.move(X), strict=True))
    for i, (vectors, payload) in after[0].items():
        own, was = plain(vectors), plain(before[0][i][0])
        assert payload == before[0][i][1]
        assert own.keys() == was.keys()
        assert own["terms"] == was["terms"]
        np.testing.assert_allclose(own["title"], was["title"], rtol=1e-6)
        if i != "5":  # body is kept in half precision, and moved as it is kept
            np.testing.assert_allclose(own["body"], moved[i], rtol=2e-3, atol=5e-3)
        assert plain(original[0][i][0]) == was


def test_a_quantised_copy_takes_nothing_from_the_vectors(tmp_path):
    """Of the engine itself: what is compressed is a copy, so the vectors come back as they were put in."""
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
    apply(model, store, "moved")
    store.shard.update(edge.UpdateOperation.delete_points([int(ids[3])]))
    with pytest.raises(StoreError, match="changed"):
        promote(store, "moved")
    monkeypatch.setattr(QdrantEdge, "remove", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        apply(model, store, "moved")
    with pytest.raises(StoreError, match="not finished"):
        promote(store, "moved")
    monkeypatch.undo()
    report = apply(model, store, "moved")
    assert (report["written"], report["removed"]) == (0, 1)
    promote(store, "moved")
    assert store.facts().count == 59


def test_what_is_in_the_way_stays(few):
    store, _, _, model = few
    with pytest.raises(StoreError, match="no shard"):
        store.beside("none").facts()
    (store.path.parent / "moved").mkdir()
    with pytest.raises(StoreError, match="not made by hubless"):
        apply(model, store, "moved")
    apply(model, store, "moved2")
    (store.path.parent / "items.original").mkdir()
    with pytest.raises(StoreError, match="in the way"):
        promote(store, "moved2")
    assert store.mark() is None


def test_a_green_that_does_not_serve_is_not_rolled_back(few, monkeypatch):
    store, ids, X, model = few
    apply(model, store, "moved")
    apply(model, store, "other")
    monkeypatch.setattr(qdrant_edge, "put_in_place", lambda *_: 1 / 0)  # right before the switch
    with pytest.raises(ZeroDivisionError):
        promote(store, "moved")
    monkeypatch.undo()
    promote(store, "other")
    with pytest.raises(StoreError, match="nothing to roll back"):
        rollback(store.beside("moved"))
    rollback(store)
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)


def test_a_promote_that_was_cut_short_loses_nothing(few, monkeypatch):
    store, ids, X, model = few
    apply(model, store, "moved")
    with pytest.raises(StoreError, match="nothing to roll back"):
        rollback(store.beside("moved"))
    with monkeypatch.context() as patch:
        patch.setattr(switch, "_exchange", lambda *_: 1 / 0)  # green has the name of the original to be
        with pytest.raises(ZeroDivisionError):
            promote(store, "moved")
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)
    promote(store, "moved")  # which finds it under its name again
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5)
    with monkeypatch.context() as patch:
        patch.setattr(switch, "_exchange", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rollback(store)
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5)
    assert rollback(store)["moved_kept_as"] == f"{store.name}.moved-{model.hash[:8]}"
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)
    promote(store, f"items.moved-{model.hash[:8]}")  # it can serve again
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5)


# Runs an apply for each folder in a child of its own, and kills it -9 before its n-th write to the disk.
KILLER = """
import os, signal, sys
from hubless.index.apply import apply
from hubless.stores import qdrant_edge
from hubless.stores import switch
from hubless.stores.qdrant_edge import QdrantEdge
from tests.store_contract import model_for, sample

def until(write, left):
    def counted(*args, **options):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return write(*args, **options)
    return counted

_, X, y, _ = sample(60)
for folder, moment in zip(sys.argv[1::2], sys.argv[2::2]):
    if os.fork() == 0:
        left = [int(moment)]
        QdrantEdge.page = 10
        QdrantEdge._upsert = until(QdrantEdge._upsert, left)
        QdrantEdge._put_mark = until(QdrantEdge._put_mark, left)
        os.rename = until(os.rename, left)
        apply(model_for(X, y, "l2"), QdrantEdge(folder), "moved")
        os._exit(0)
    print(os.WTERMSIG(os.wait()[1]))
"""


def test_an_apply_that_was_killed_is_resumed(few, tmp_path):
    store, ids, X, model = few
    moments = (0, 1, 4, 6, 7)  # of: the folder with its mark, 6 times 10 points, the mark when done
    folders = [tmp_path / str(moment) / "items" for moment in moments]
    for folder in folders:
        shutil.copytree(store.path, folder)
    arguments = [str(value) for pair in zip(folders, moments, strict=True) for value in pair]
    ran = subprocess.run([sys.executable, "-c", KILLER, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.split() == ["9"] * len(moments), ran.stderr
    before = dump(store.path)
    for folder, moment in zip(folders, moments, strict=True):
        resumed = QdrantEdge(folder)
        assert resumed.beside("moved").exists() == (moment > 0)
        with pytest.raises(StoreError, match=r"not finished|not there"):
            promote(resumed, "moved")
        assert apply(model, resumed, "moved")["written"] == 60 - 10 * max(moment - 1, 0)
        promote(resumed, "moved")
        np.testing.assert_allclose(resumed.fetch(ids).vectors, model.move(X), rtol=1e-5)
        resumed.close()
        assert dump(f"{folder}.original") == before


def test_a_shard_that_another_client_has_open(few):
    store, *_ = few
    shard = edge.EdgeShard.load(str(store.path))
    with pytest.raises(StoreError, match="another process"):
        store.facts()
    shard.close()
    assert store.facts().count == 60
