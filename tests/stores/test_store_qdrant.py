"""Collections of Qdrant in a folder: vectors and payloads of all kinds, aliases, and what is refused."""

import uuid

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.common import client_warnings
from qdrant_client.local.local_collection import LocalCollection
from qdrant_client.local.qdrant_local import QdrantLocal

from hubless.neighbors.knn import unit
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.qdrant.qdrant_collection import QdrantCollection
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.qdrant_cases import dump, few_rows, make, name, unsynced

__all__ = ["few_rows", "unsynced"]  # fixtures
pytestmark = pytest.mark.services


def rich(folder):
    """Make a collection with vectors of all kinds, nested payload, both kinds of ids, a missing vector."""
    client = QdrantClient(path=str(folder))
    client.create_collection(
        "rich",
        vectors_config={
            "body": models.VectorParams(size=8, distance=models.Distance.EUCLID),
            "title": models.VectorParams(size=3, distance=models.Distance.COSINE),
            "words": models.VectorParams(
                size=2,
                distance=models.Distance.DOT,
                multivector_config=models.MultiVectorConfig(comparator="max_sim"),
            ),
        },
        sparse_vectors_config={"terms": models.SparseVectorParams()},
        metadata={"owner": "search team"},
    )
    _, X, y, _ = sample(40)
    ids = [*range(38), 2**64 - 1, str(uuid.UUID(int=7))]
    for place, (i, x) in enumerate(zip(ids, X.tolist(), strict=True)):
        vectors = {"body": x, "title": [3.0, place, 4.0], "words": [[1.0, 2.0], [place, 0.0]]}
        vectors["terms"] = models.SparseVector(indices=[9, 2], values=[0.5, place + 1.0])
        if place == 5:
            del vectors["body"], vectors["terms"]
        payload = {
            "meta": {"lang": "de" if place % 2 else "en", "n": place},
            "tags": ["a", None],
            "dot.ted": 1,
        }
        client.upsert("rich", [models.PointStruct(id=i, vector=vectors, payload=payload)])
    name(client, "items", "rich")
    client.close()
    client = QdrantClient(path=str(folder))  # opened again, it gives vectors of cosine as they were put in
    before = dump(client, "rich")
    client.close()
    return before, ids, X, y


def test_other_vectors_and_the_payload_are_copied(tmp_path):
    before, ids, X, y = rich(tmp_path)
    store = QdrantCollection(str(tmp_path), "items", vector="body")
    model = model_for(X, y, "l2")
    assert store.facts().columns == ("dot.ted", "meta.lang", "meta.n", "tags")
    batch = store.fetch([ids[39], ids[38], 3, "no id"], ["meta.lang", "dot.ted", "meta.none"])
    assert batch.ids.tolist() == [ids[39], 2**64 - 1, 3]
    assert batch.columns == {"meta.lang": ["de", "en", "de"], "dot.ted": [1] * 3, "meta.none": [None] * 3}
    assert np.isnan(store.fetch([5]).vectors).all()
    assert apply_index(model, store, "moved")["written"] == 40
    assert apply_index(model, store, "moved")["written"] == 0
    promote_index(store, "moved")
    after = dump(store.connection.client, "items")
    moved = dict(zip(ids, model.move(X), strict=True))
    assert after.keys() == before.keys()
    for i, (vectors, payload) in after.items():
        was, payload_before = before[i]
        assert payload == payload_before
        assert vectors.keys() == was.keys()
        for other in vectors.keys() - {"body", "title"}:
            assert vectors[other] == was[other]
        np.testing.assert_allclose(vectors["title"], unit(np.array([was["title"]]))[0], rtol=1e-5, atol=1e-6)
        if "body" in was:
            np.testing.assert_allclose(vectors["body"], moved[i], rtol=1e-5, atol=1e-6)
    assert store.connection.client.get_collection("moved").config.metadata["owner"] == "search team"
    assert dump(store.connection.client, "rich") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "2 columns of vectors.*--vector: a, b"),
        ({"vector": "c"}, "no column 'c' of vectors.*--vector: a, b"),
        ({"vector": "many"}, "no column 'many' of vectors"),
        ({"vector": "b"}, "Manhattan"),
        ({"vector": "a", "metric": "cosine"}, "compares by l2"),
    ],
)
def test_a_vector_that_is_not_clear_is_refused(tmp_path, options, message):
    client = QdrantClient(path=str(tmp_path))
    many = models.MultiVectorConfig(comparator="max_sim")
    client.create_collection(
        "items",
        {
            "a": models.VectorParams(size=2, distance=models.Distance.EUCLID),
            "b": models.VectorParams(size=2, distance=models.Distance.MANHATTAN),
            "many": models.VectorParams(size=2, distance=models.Distance.DOT, multivector_config=many),
        },
    )
    client.close()
    with pytest.raises(StoreError, match=message):
        QdrantCollection(str(tmp_path), "items", **options).facts()


def test_sparse_vectors_alone_cannot_be_moved(tmp_path):
    client = QdrantClient(path=str(tmp_path))
    client.create_collection("items", {}, sparse_vectors_config={"terms": models.SparseVectorParams()})
    client.close()
    with pytest.raises(StoreError, match="sparse"):
        QdrantCollection(str(tmp_path), "items").facts()


@pytest.mark.parametrize("datatype", ["uint8", "turbo4"])
def test_numbers_that_the_engine_rounds_are_not_moved(tmp_path, datatype):
    client = QdrantClient(path=str(tmp_path))
    params = models.VectorParams(size=8, distance=models.Distance.EUCLID, datatype=datatype)
    client.create_collection("items", params)
    client.close()
    _, X, y, _ = sample(60)
    with pytest.raises(StoreError, match="quantised"):
        apply_index(model_for(X, y, "l2"), QdrantCollection(str(tmp_path), "items"), "moved")


def test_a_folder_that_does_not_exist_is_not_created(tmp_path):
    store = QdrantCollection(str(tmp_path / "none"), "items")
    assert not store.exists()
    with pytest.raises(StoreError, match="no Qdrant database"):
        store.facts()
    assert not (tmp_path / "none").exists()


def test_names(few):
    store, *_ = few
    assert store.name == f"qdrant:{store.address}#items"
    assert store.sibling("moved").name == f"qdrant:{store.address}#moved"
    assert store.sibling(store.name).table == "items"
    with pytest.raises(StoreError, match="not in the database"):
        store.sibling("qdrant:elsewhere#items")
    with pytest.raises(StoreError, match="there are items_v1"):
        store.sibling("nothing").facts()


def test_a_collection_that_is_not_an_alias_says_how_it_can_be_promoted(few):
    store, ids, X, model = few
    plain = store.sibling("items_v1")
    apply_index(model, plain, "moved")
    with pytest.raises(StoreError, match="Create an alias of 'items_v1'"):
        promote_index(plain, "moved")
    name(store.connection.client, "served", "items_v1")  # as the message says
    served = store.sibling("served")
    assert apply_index(model, served, "moved")["written"] == 0
    assert promote_index(served, "moved")["original"] == "items_v1"
    np.testing.assert_allclose(served.fetch(ids[:9]).vectors, model.move(X[:9]), rtol=1e-5, atol=1e-6)
    with pytest.raises(
        StoreError, match="exists already and"
    ):  # it serves now: not to be touched from another name
        apply_index(model, plain, "moved")
    assert rollback_index(served) == {
        "serving": served.name,
        "moved_kept_as": "moved",
        "added_since": 0,
        "note": None,
    }
    assert served.mark() is None


def test_long_vectors_by_inner_product_are_refused(tmp_path):
    ids, X, y, texts = sample(60)
    store = make(tmp_path, ids, X, texts, "ip")
    with pytest.raises(StoreError, match="lengths from"):
        apply_index(model_for(X, y, "ip"), store, "moved")
    assert not store.sibling("moved").exists()


def upsert(client, ids):
    client.upsert("items", [models.PointStruct(id=int(ids[3]), vector=[1.0] * 8, payload={"text": "new"})])


def tag(client, ids):
    client.set_payload("items", {"text": "other"}, points=[int(ids[3])])


def delete(client, ids):
    client.delete("items", models.PointIdsList(points=[int(ids[3])]))


@pytest.mark.parametrize(("change", "done"), [(upsert, (1, 0)), (tag, (1, 0)), (delete, (0, 1))])
def test_a_change_between_apply_and_promote_is_reported(few, change, done):
    store, ids, _, model = few
    apply_index(model, store, "moved")
    change(store.connection.client, ids)
    with pytest.raises(StoreError, match="changed"):
        promote_index(store, "moved")
    assert store.mark() is None
    report = apply_index(model, store, "moved")
    assert (report["written"], report["removed"]) == done
    promote_index(store, "moved")
    payloads = [
        {i: payload for i, (_, payload) in dump(store.connection.client, n).items()}
        for n in ("items", "items_v1")
    ]
    assert payloads[0] == payloads[1]


def test_a_second_apply_that_is_interrupted_is_not_done(few, monkeypatch):
    store, ids, _, model = few
    apply_index(model, store, "moved")
    upsert(store.connection.client, ids)
    monkeypatch.setattr(QdrantCollection, "_upsert", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        apply_index(model, store, "moved")
    with pytest.raises(StoreError, match="not finished"):
        promote_index(store, "moved")


def test_an_interrupted_promote_does_no_harm(few, monkeypatch):
    store, *_, model = few
    apply_index(model, store, "moved")
    monkeypatch.setattr(QdrantCollection, "_serve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        promote_index(store, "moved")
    monkeypatch.undo()
    before = store.connection.client.get_aliases()
    for served in (store, store.sibling("moved")):
        with pytest.raises(StoreError, match="nothing to roll back"):
            rollback_index(served)
    assert store.connection.client.get_aliases() == before
    assert promote_index(store, "moved")["original"] == "items_v1"
    store.connection.client.delete_collection("items_v1")
    with pytest.raises(StoreError):  # the original is gone: what serves stays
        rollback_index(store)
    assert store.connection.client.get_aliases().aliases[0].collection_name == "moved"


def test_the_advice_about_size_is_hidden(few, monkeypatch):
    store, _, _, model = few
    monkeypatch.setattr(LocalCollection, "LARGE_DATA_THRESHOLD", 10)
    monkeypatch.setattr(QdrantLocal, "LARGE_DATA_THRESHOLD", 10)
    monkeypatch.setattr(client_warnings, "SEEN_MESSAGES", set())
    with pytest.warns(UserWarning, match="Local mode is not recommended"):  # or this could not fail
        QdrantClient(path=store.address).close()
    apply_index(model, store, "moved")  # warnings are errors here
