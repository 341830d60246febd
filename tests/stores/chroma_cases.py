"""Collections of Chroma in a folder and on a server, written and searched by chromadb alone."""

import chromadb
import numpy as np
import pytest

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case, model_for, sample


def fill(client, name, ids, X, texts, metric="l2"):
    settings = {"hnsw": {"space": metric}}
    client.create_collection(name, configuration=settings, embedding_function=None)
    add_records(client, name, ids, X, texts)


def add_records(client, name, ids, X, texts):
    collection = client.get_collection(name, embedding_function=None)
    metadata = [{"text": text} for text in texts]
    collection.add(ids=list(ids), embeddings=np.asarray(X), metadatas=metadata)


def ask_for(client, name, queries, k):
    collection = client.get_collection(name, embedding_function=None)
    return collection.query(query_embeddings=np.asarray(queries), n_results=k, include=[])["ids"]


def dump(client, name):
    """Return all that a collection holds, as the engine reports it."""
    got = client.get_collection(name, embedding_function=None).get(
        include=["embeddings", "metadatas", "documents", "uris"]
    )
    return {
        id: (got["embeddings"][place].tolist(), got["metadatas"][place], got["documents"][place])
        for place, id in enumerate(got["ids"])
    }


def ask(store, queries, k):
    return ask_for(store.connection.client, store.table, queries, k)


def add(store, ids, X, texts):
    add_records(store.connection.client, store.table, ids, X, texts)


def make(folder, ids, X, texts, metric="l2"):
    (folder / "db").mkdir()
    with chromadb.PersistentClient(folder / "db") as client:
        fill(client, "items", ids, X, texts, metric)
    return open_store(f"chroma:{folder / 'db'}#items")


def case_of(make):
    """Return a Case; under cosine, Chroma keeps directions and lengths apart, which rounds the numbers."""
    metrics = ("l2", "cosine", "ip")
    shared = {"metrics": metrics, "recall": 0.99, "answers_again": False, "rounding": 1e-6}
    return Case(make, ask, add, may_lack_vectors=False, **shared)


def folder(request):
    return case_of(make)


def server(request):
    """Return the Case of a collection on a server, which all tests of a process share."""
    running = request.getfixturevalue("chroma_server")

    def make(_, ids, X, texts, metric):
        for collection in running.client.list_collections():
            running.client.delete_collection(collection.name)
        fill(running.client, "items", ids, X, texts, metric)
        return open_store(f"chroma:{running.address}#items")

    return case_of(make)


@pytest.fixture(name="few")
def few_records(tmp_path):
    """60 records, and a model for them."""
    ids, X, y, texts = sample(60, text_ids=True)
    return make(tmp_path, ids, X, texts), ids, X, model_for(X, y, "l2")
