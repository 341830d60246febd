"""Collections of Qdrant in a folder, written and searched by qdrant-client alone."""

import numpy as np
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.local.persistence import CollectionPersistence

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case, model_for, sample

DISTANCE = {"l2": models.Distance.EUCLID, "cosine": models.Distance.COSINE, "ip": models.Distance.DOT}


def skip_syncing(patch=setattr):
    """Let SQLite not wait for the disk after each point: processes are killed here, power is not cut."""
    prepare = CollectionPersistence._ensure_table

    def faster(self):
        self.storage.execute("PRAGMA synchronous=OFF")
        prepare(self)

    patch(CollectionPersistence, "_ensure_table", faster)


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    skip_syncing(monkeypatch.setattr)


@pytest.fixture(name="few")
def few_rows(tmp_path):
    """60 rows, and a model for them."""
    ids, X, y, texts = sample(60)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")


def fill(client, ids, X, texts, metric="l2"):
    """Make a collection "items_v1" behind the alias "items"."""
    client.create_collection("items_v1", models.VectorParams(size=X.shape[1], distance=DISTANCE[metric]))
    add_rows(client, "items_v1", ids, X, texts)
    name(client, "items", "items_v1")


def name(client, alias, collection):
    """Create an alias."""
    operation = models.CreateAlias(collection_name=collection, alias_name=alias)
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=operation)])


def add_rows(client, collection, ids, X, texts):
    vectors = [{} if np.isnan(x).all() else x.tolist() for x in X]
    rows = zip(ids.tolist(), vectors, texts, strict=True)
    client.upsert(collection, [models.PointStruct(id=i, vector=x, payload={"text": t}) for i, x, t in rows])


def ask(store, queries, k):
    responses = [store.connection.client.query_points("items", query=q.tolist(), limit=k) for q in queries]
    return [[point.id for point in response.points] for response in responses]


def add(store, ids, X, texts):
    add_rows(store.connection.client, "items", ids, X, texts)


def make(folder, ids, X, texts, metric="l2"):
    client = QdrantClient(path=str(folder / "db"))
    fill(client, ids, X, texts, metric)
    client.close()
    return open_store(f"qdrant:{folder / 'db'}#items")


def dump(client, collection):
    """Return all that a collection holds, as the engine reports it."""
    records, _ = client.scroll(collection, limit=10_000, with_payload=True, with_vectors=True)
    return {record.id: (record.vector, record.payload) for record in records}


def folder(request):
    skip_syncing(request.getfixturevalue("monkeypatch").setattr)
    return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)
