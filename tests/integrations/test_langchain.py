"""Embeddings of LangChain: documents arrive moved, queries as they were."""

import asyncio
import copy
import pickle

import numpy as np
import pytest

from hubless.corrections import NNN
from hubless.integrations.langchain import MovedEmbeddings
from hubless.movers import Balance, Shrink, Stay
from hubless.repair.repair import ItemSteps, Repair
from tests.integrations.naive import MODELS, close, naive, unit

TEXTS = [str(i) for i in range(60)]


class Rows:
    """The embedding of a text such as "7" is row 7; with methods that wait, and without LangChain."""

    model = "rows-1"

    def __init__(self, X):
        self.X, self.sizes = X, []

    def embed_documents(self, texts, chunk_size=0):
        self.sizes.append(chunk_size)
        return [self.X[int(text)].tolist() for text in texts]

    def embed_query(self, text):
        return (self.X[int(text)] + 0.5).tolist()

    async def aembed_documents(self, texts):
        await asyncio.sleep(0)
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return self.embed_query(text)


def of_langchain(X):
    """The same as a subclass of LangChain's, whose methods that wait are its own."""
    from langchain_core.embeddings import Embeddings

    class Embedded(Embeddings):
        embed_documents, embed_query = Rows.embed_documents, Rows.embed_query
        __init__ = Rows.__init__

    return Embedded(X)


@pytest.mark.parametrize("kind", [Rows, pytest.param(of_langchain, marks=pytest.mark.services)])
@pytest.mark.parametrize("name", MODELS)
def test_documents_are_moved_and_queries_are_not(name, kind, blobs):
    X, y, _ = blobs
    model = MODELS[name](X, y)
    embeddings = MovedEmbeddings(kind(X), model)
    truth = naive(model, X)
    assert np.abs(truth - X).max() > 0.1  # so the lines below can fail
    for found in (embeddings.embed_documents(TEXTS), asyncio.run(embeddings.aembed_documents(TEXTS))):
        assert close(found, truth)
        assert type(found[0][0]) is float
    assert embeddings.embed_query("5") == (X[5] + 0.5).tolist()
    assert asyncio.run(embeddings.aembed_query("5")) == (X[5] + 0.5).tolist()
    assert embeddings.embed_documents([]) == []


@pytest.mark.services
@pytest.mark.parametrize("wait", [False, True], ids=["at once", "async"])
def test_a_langchain_store_holds_moved_documents_and_queries_stay_unchanged(wait, blobs):
    from langchain_core.vectorstores import InMemoryVectorStore

    X, y, _ = blobs
    model = MODELS["cosine"](X, y)
    store = InMemoryVectorStore(MovedEmbeddings(of_langchain(X), model))
    if wait:
        asyncio.run(store.aadd_texts(TEXTS, ids=TEXTS))
    else:
        store.add_texts(TEXTS, ids=TEXTS)
    moved = naive(model, X)
    assert close([store.store[i]["vector"] for i in TEXTS], moved)
    differ = 0
    for text in TEXTS[:20]:
        query = X[int(text)] + 0.5
        search = store.asimilarity_search(text, k=5) if wait else store.similarity_search(text, k=5)
        found = [document.page_content for document in (asyncio.run(search) if wait else search)]
        assert found == [TEXTS[i] for i in np.argsort(-moved @ query)[:5]]
        differ += found != [TEXTS[i] for i in np.argsort(-unit(X) @ query)[:5]]
    assert differ > 0  # so moving is seen


@pytest.mark.services
def test_it_is_one_of_the_embeddings_of_langchain(blobs):
    """The stores of FAISS and Milvus check that."""
    from langchain_core.embeddings import Embeddings

    X, y, _ = blobs
    assert isinstance(MovedEmbeddings(Rows(X), MODELS["l2"](X, y)), Embeddings)


def test_it_has_all_else_of_the_embeddings_that_it_wraps(blobs):
    X, y, _ = blobs
    embeddings = MovedEmbeddings(Rows(X), MODELS["l2"](X, y))
    embeddings.embed_documents(["1"], chunk_size=7)
    assert embeddings.sizes == [7]
    assert embeddings.model == "rows-1"
    with pytest.raises(AttributeError, match="no_such"):
        embeddings.no_such  # noqa: B018
    assert not hasattr(MovedEmbeddings.__new__(MovedEmbeddings), "model")  # as while a copy is made
    for twin in (copy.deepcopy(embeddings), pickle.loads(pickle.dumps(embeddings))):
        assert twin.embed_documents(TEXTS) == embeddings.embed_documents(TEXTS)


def test_texts_have_no_ids_so_there_are_no_steps_of_single_items(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    model.steps = ItemSteps(np.array(TEXTS[:9], dtype=object), X[9:18], 0.5)
    assert close(MovedEmbeddings(Rows(X), model).embed_documents(TEXTS), naive(model, X))


def test_what_cannot_be_moved_by_its_text_is_refused(blobs):
    X, y, _ = blobs
    with pytest.raises(ValueError, match=r"Shrink moves an item by its class.*MoveNodes"):
        MovedEmbeddings(Rows(X), Repair(Shrink().fit(X, y), label="class"))
    with pytest.raises(ValueError, match=r"Balance\(\) adds a column to stored vectors"):
        MovedEmbeddings(Rows(X), Repair(Balance().fit(X, y)))
    model = MODELS["l2"](X, y)
    with pytest.raises(ValueError, match="moved already"):
        MovedEmbeddings(MovedEmbeddings(Rows(X), model), model)


@pytest.mark.parametrize("kind", [Rows, pytest.param(of_langchain, marks=pytest.mark.services)])
@pytest.mark.parametrize("column", [False, True])
def test_items_corrected_by_a_log(column, kind, blobs):
    """Documents carry their correction; queries stay as they are, or get a 0 in the column that was added."""
    X, y, queries = blobs
    correction = NNN(0.5, 3, metric="l2", column=column).fit(queries, X)
    embeddings = MovedEmbeddings(kind(X), Repair(Stay().fit(X, y), correction=correction))
    found = np.array(embeddings.embed_documents(TEXTS))
    asked = [embeddings.embed_query("5"), asyncio.run(embeddings.aembed_query("5"))]
    assert asked == [[*(X[5] + 0.5), 0.0][: 6 + column]] * 2
    if not column:
        assert close(found, correction.move(X))
        assert np.abs(found - X).max() > 0.1
        return
    assert close(asyncio.run(embeddings.aembed_documents(TEXTS)), found)
    scores = [-0.5 * ((q - X) ** 2).sum(axis=1) for q in queries]
    bias = 0.5 * np.sort(scores, axis=0)[-3:].mean(axis=0)
    for text in TEXTS[:20]:
        near = -0.5 * ((X[int(text)] + 0.5 - X) ** 2).sum(axis=1) - bias
        stored = ((found - embeddings.embed_query(text)) ** 2).sum(axis=1)
        assert np.argsort(stored)[:5].tolist() == np.argsort(-near)[:5].tolist()
