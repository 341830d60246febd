"""Qdrant in a folder: the contract, and what is Qdrant's own."""

import uuid

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.common import client_warnings
from qdrant_client.local.local_collection import LocalCollection
from qdrant_client.local.persistence import CollectionPersistence
from qdrant_client.local.qdrant_local import QdrantLocal

from hubless.index.apply import apply, promote, rollback
from hubless.stores.qdrant import QdrantCollection
from hubless.stores.store import StoreError
from tests.store_contract import Case, StoreContract, model_for, sample, unit

DISTANCE = {"l2": models.Distance.EUCLID, "cosine": models.Distance.COSINE, "ip": models.Distance.DOT}


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """SQLite does not wait for the disk after each point: processes are killed here, power is not cut."""
    prepare = CollectionPersistence._ensure_table

    def faster(self):
        self.storage.execute("PRAGMA synchronous=OFF")
        prepare(self)

    monkeypatch.setattr(CollectionPersistence, "_ensure_table", faster)


def fill(client, ids, X, texts, metric="l2"):
    """A collection "items_v1" behind the alias "items"."""
    client.create_collection("items_v1", models.VectorParams(size=X.shape[1], distance=DISTANCE[metric]))
    add_rows(client, "items_v1", ids, X, texts)
    name(client, "items", "items_v1")


def name(client, alias, collection):
    operation = models.CreateAlias(collection_name=collection, alias_name=alias)
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=operation)])


def add_rows(client, collection, ids, X, texts):
    rows = zip(ids.tolist(), X.tolist(), texts, strict=True)
    client.upsert(collection, [models.PointStruct(id=i, vector=x, payload={"text": t}) for i, x, t in rows])


def ask(store, queries, k):
    answers = [store.client.query_points("items", query=q.tolist(), limit=k) for q in queries]
    return [[point.id for point in answer.points] for answer in answers]


def add(store, ids, X, texts):
    add_rows(store.client, "items", ids, X, texts)


def make(folder, ids, X, texts, metric="l2"):
    client = QdrantClient(path=str(folder / "db"))
    fill(client, ids, X, texts, metric)
    client.close()
    return QdrantCollection(str(folder / "db"), "items")


def dump(client, collection):
    """All that a collection holds, as the engine tells it."""
    records, _ = client.scroll(collection, limit=10_000, with_payload=True, with_vectors=True)
    return {record.id: (record.vector, record.payload) for record in records}


class TestFolder(StoreContract):
    @pytest.fixture
    def case(self):
        return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)


@pytest.fixture
def few(tmp_path):
    """60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")


def rich(folder):
    """Vectors of all kinds, nested payload, ids of both kinds, and a point without the vector to move."""
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
    client = QdrantClient(path=str(folder))  # read anew, it gives vectors of cosine as they were put in
    before = dump(client, "rich")
    client.close()
    return before, ids, X, y


def test_other_vectors_and_the_payload_go_along(tmp_path):
    before, ids, X, y = rich(tmp_path)
    store = QdrantCollection(str(tmp_path), "items", vector="body")
    model = model_for(X, y, "l2")
    assert store.facts().columns == ("dot.ted", "meta.lang", "meta.n", "tags")
    batch = store.fetch([ids[39], ids[38], 3, "no id"], ["meta.lang", "dot.ted", "meta.none"])
    assert batch.ids.tolist() == [ids[39], 2**64 - 1, 3]
    assert batch.columns == {"meta.lang": ["de", "en", "de"], "dot.ted": [1] * 3, "meta.none": [None] * 3}
    assert np.isnan(store.fetch([5]).vectors).all()
    assert apply(model, store, "moved")["written"] == 40
    assert apply(model, store, "moved")["written"] == 0
    promote(store, "moved")
    after = dump(store.client, "items")
    moved = dict(zip(ids, model.move(X), strict=True))
    assert after.keys() == before.keys()
    for i, (vectors, payload) in after.items():
        was, told = before[i]
        assert payload == told
        assert vectors.keys() == was.keys()
        for own in vectors.keys() - {"body", "title"}:
            assert vectors[own] == was[own]
        np.testing.assert_allclose(vectors["title"], unit(np.array([was["title"]]))[0], rtol=1e-5)
        if "body" in was:
            np.testing.assert_allclose(vectors["body"], moved[i], rtol=1e-5)
    assert store.client.get_collection("moved").config.metadata["owner"] == "search team"
    assert dump(store.client, "rich") == before


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "several vectors.*'a', 'b'"),
        ({"vector": "c"}, "no dense vector 'c'.*'a', 'b'"),
        ({"vector": "many"}, "no dense vector 'many'"),
        ({"vector": "b"}, "Manhattan"),
        ({"vector": "a", "metric": "cosine"}, "compares by l2"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, asked, told):
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
    with pytest.raises(StoreError, match=told):
        QdrantCollection(str(tmp_path), "items", **asked).facts()


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
        apply(model_for(X, y, "l2"), QdrantCollection(str(tmp_path), "items"), "moved")


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    store = QdrantCollection(str(tmp_path / "none"), "items")
    assert not store.exists()
    with pytest.raises(StoreError, match="no folder"):
        store.facts()
    assert not (tmp_path / "none").exists()


def test_names(few):
    store, *_ = few
    assert store.name == f"qdrant:{store.at.address}#items"
    assert store.beside("moved").name == f"qdrant:{store.at.address}#moved"
    assert store.beside(store.name).collection == "items"
    with pytest.raises(StoreError, match="one place"):
        store.beside("qdrant:elsewhere#items")
    with pytest.raises(StoreError, match="there are items_v1"):
        store.beside("nothing").facts()


def test_a_collection_that_is_no_alias_says_how_it_can_be_promoted(few):
    store, ids, X, model = few
    plain = store.beside("items_v1")
    apply(model, plain, "moved")
    with pytest.raises(StoreError, match="create an alias of 'items_v1'"):
        promote(plain, "moved")
    name(store.client, "served", "items_v1")  # as the message says
    served = store.beside("served")
    assert apply(model, served, "moved")["written"] == 0
    assert promote(served, "moved")["original"] == "items_v1"
    np.testing.assert_allclose(served.fetch(ids[:9]).vectors, model.move(X[:9]), rtol=1e-5)
    with pytest.raises(
        StoreError, match="is there and"
    ):  # it serves now: not to be touched from another name
        apply(model, plain, "moved")
    assert rollback(served) == {"serving": served.name, "moved_kept_as": "moved", "added_since": 0}
    assert served.mark() is None


def test_long_vectors_by_inner_product_are_refused(tmp_path):
    ids, X, y, texts = sample(60)
    store = make(tmp_path, ids, X, texts, "ip")
    with pytest.raises(StoreError, match="lengths from"):
        apply(model_for(X, y, "ip"), store, "moved")
    assert not store.beside("moved").exists()


def upsert(client, ids):
    client.upsert("items", [models.PointStruct(id=int(ids[3]), vector=[1.0] * 8, payload={"text": "new"})])


def tag(client, ids):
    client.set_payload("items", {"text": "other"}, points=[int(ids[3])])


def delete(client, ids):
    client.delete("items", models.PointIdsList(points=[int(ids[3])]))


@pytest.mark.parametrize(("change", "done"), [(upsert, (1, 0)), (tag, (1, 0)), (delete, (0, 1))])
def test_a_change_between_apply_and_promote_is_reported(few, change, done):
    store, ids, _, model = few
    apply(model, store, "moved")
    change(store.client, ids)
    with pytest.raises(StoreError, match="changed"):
        promote(store, "moved")
    assert store.mark() is None
    report = apply(model, store, "moved")
    assert (report["written"], report["removed"]) == done
    promote(store, "moved")
    payloads = [
        {i: payload for i, (_, payload) in dump(store.client, n).items()} for n in ("items", "items_v1")
    ]
    assert payloads[0] == payloads[1]


def test_a_second_apply_that_breaks_off_is_not_done(few, monkeypatch):
    store, ids, _, model = few
    apply(model, store, "moved")
    upsert(store.client, ids)
    monkeypatch.setattr(QdrantCollection, "_upsert", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        apply(model, store, "moved")
    with pytest.raises(StoreError, match="not finished"):
        promote(store, "moved")


def test_a_promote_that_was_cut_short_does_no_harm(few, monkeypatch):
    store, *_, model = few
    apply(model, store, "moved")
    monkeypatch.setattr(QdrantCollection, "_serve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        promote(store, "moved")
    monkeypatch.undo()
    before = store.client.get_aliases()
    for served in (store, store.beside("moved")):
        with pytest.raises(StoreError, match="nothing to roll back"):
            rollback(served)
    assert store.client.get_aliases() == before
    assert promote(store, "moved")["original"] == "items_v1"
    store.client.delete_collection("items_v1")
    with pytest.raises(StoreError):  # the original is gone: what serves stays
        rollback(store)
    assert store.client.get_aliases().aliases[0].collection_name == "moved"


def test_advice_about_size_stays_inside(few, monkeypatch):
    store, _, _, model = few
    monkeypatch.setattr(LocalCollection, "LARGE_DATA_THRESHOLD", 10)
    monkeypatch.setattr(QdrantLocal, "LARGE_DATA_THRESHOLD", 10)
    monkeypatch.setattr(client_warnings, "SEEN_MESSAGES", set())
    with pytest.warns(UserWarning, match="Local mode is not recommended"):  # or this could not fail
        QdrantClient(path=store.at.address).close()
    apply(model, store, "moved")  # warnings are errors here
