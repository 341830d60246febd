"""Hooks of LangChain and LlamaIndex: documents arrive moved, once; queries arrive as they were."""

import asyncio
import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery

from hubless.index.hooks import MovedEmbeddings, MoveNodes, move_nodes
from hubless.index.repair import Own, Repair
from hubless.movers import Balance, Chain, MoveLabeled, Scale, Shrink

MODELS = {
    "l2": lambda X, y: Repair(MoveLabeled(1.0).fit(X, y)),
    "cosine": lambda X, y: Repair(MoveLabeled(1.0).fit(unit(X), y), metric="cosine"),
    "scale": lambda X, y: Repair(Scale(0.4).fit(X, y)),
    "chain": lambda X, y: Repair(Chain([Scale(0.7), MoveLabeled(1.0)]).fit(X, y)),
}


def unit(X):
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


def naive(model, Z):
    """Where a model moves rows, one after another, in float64."""
    moved = []
    for z in unit(Z) if model.metric == "cosine" else Z:
        for mover in getattr(model.mover, "movers_", [model.mover]):
            W = mover.g * np.eye(len(z)) if isinstance(mover, Scale) else mover.W_
            z = mover.mean_ + W @ (z - mover.mean_)
        moved.append(z)
    return unit(np.array(moved)) if model.metric == "cosine" else np.array(moved)


def close(found, truth):
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-5)
    return True


class Rows(Embeddings):
    """The embedding of a text like "7" is row 7."""

    model = "rows-1"

    def __init__(self, X):
        self.X = X

    def embed_documents(self, texts):
        return [self.X[int(text)].tolist() for text in texts]

    def embed_query(self, text):
        return (self.X[int(text)] + 0.5).tolist()


class Plain:
    """The same without LangChain, and with methods that wait."""

    def __init__(self, X):
        self.rows, self.asked = Rows(X), []

    def embed_documents(self, texts, chunk_size=0):
        self.asked.append(chunk_size)
        return self.rows.embed_documents(texts)

    def embed_query(self, text):
        return self.rows.embed_query(text)

    async def aembed_documents(self, texts):
        await asyncio.sleep(0)
        return self.rows.embed_documents(texts)

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return self.rows.embed_query(text)


TEXTS = [str(i) for i in range(60)]


@pytest.mark.parametrize("kind", [Rows, Plain])
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


@pytest.mark.parametrize("wait", [False, True], ids=["at once", "async"])
def test_a_store_of_langchain_holds_moved_documents_and_is_asked_with_plain_queries(wait, blobs):
    X, y, _ = blobs
    model = MODELS["cosine"](X, y)
    store = InMemoryVectorStore(MovedEmbeddings(Rows(X), model))
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


def test_it_is_one_of_langchains_embeddings_and_has_all_else_of_what_it_wraps(blobs):
    X, y, _ = blobs
    embeddings = MovedEmbeddings(Plain(X), MODELS["l2"](X, y))
    assert isinstance(embeddings, Embeddings)  # FAISS and Milvus of LangChain ask
    embeddings.embed_documents(["1"], chunk_size=7)
    assert embeddings.asked == [7]
    assert MovedEmbeddings(Rows(X), MODELS["l2"](X, y)).model == "rows-1"
    with pytest.raises(AttributeError, match="no_such"):
        embeddings.no_such  # noqa: B018
    assert not hasattr(MovedEmbeddings.__new__(MovedEmbeddings), "model")  # as in the middle of a copy
    for twin in (copy.deepcopy(embeddings), pickle.loads(pickle.dumps(embeddings))):
        assert twin.embed_documents(TEXTS) == embeddings.embed_documents(TEXTS)


def test_texts_have_no_ids_so_none_goes_a_step_of_its_own(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    model.own = Own(np.array(TEXTS[:9], dtype=object), X[9:18], 0.5)
    assert close(MovedEmbeddings(Rows(X), model).embed_documents(TEXTS), naive(model, X))


def test_what_cannot_be_moved_by_its_text_is_refused(blobs):
    X, y, _ = blobs
    with pytest.raises(ValueError, match=r"Shrink moves an item by its class.*MoveNodes"):
        MovedEmbeddings(Rows(X), Repair(Shrink().fit(X, y), label="class"))
    with pytest.raises(ValueError, match="Balance gives stored vectors one column more"):
        MovedEmbeddings(Rows(X), Repair(Balance().fit(X, y)))
    model = MODELS["l2"](X, y)
    with pytest.raises(ValueError, match="moved already"):
        MovedEmbeddings(MovedEmbeddings(Rows(X), model), model)


def test_neither_package_is_imported_before_it_is_asked_for():
    code = """
import sys
import numpy as np
from hubless.index.hooks import MovedEmbeddings, move_nodes
from hubless.index.repair import Repair
from hubless.movers import Scale
MovedEmbeddings(object(), Repair(Scale().fit(np.eye(4), [0, 0, 1, 1])))
assert not [name for name in sys.modules if name.startswith(("langchain", "llama_index"))]
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- LlamaIndex -------------------------------------------------------------------------------------------


class RowsOfTexts(BaseEmbedding):
    """The embedding of a text like "7" is row 7, plus a shift."""

    rows: list
    shift: float = 0.0

    def _get_text_embedding(self, text):
        return [value + self.shift for value in self.rows[int(text)]]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


def duck(i, X, **metadata):
    """What a node is to us, without LlamaIndex."""
    vector = None if X is None else X[i].tolist()
    keys = {"excluded_embed_metadata_keys": [], "excluded_llm_metadata_keys": []}
    return SimpleNamespace(node_id=f"n{i}", embedding=vector, metadata=metadata, **keys)


def node(i, X, **metadata):
    vector = None if X is None else X[i].tolist()
    return TextNode(id_=f"n{i}", text=str(i), embedding=vector, metadata=metadata)


def vectors_of(nodes):
    return [each.embedding for each in nodes]


@pytest.mark.parametrize("make", [duck, node])
@pytest.mark.parametrize("name", MODELS)
def test_nodes_are_moved_once(name, make, blobs):
    X, y, _ = blobs
    model = MODELS[name](X, y)
    shared = {"page": 1}
    nodes = [make(i, X) for i in range(60)] + [make(3, None, page=2)]
    for each in nodes[:2]:
        each.metadata = shared  # as the chunks of a document may
    for _ in range(2):
        assert move_nodes(nodes, model) is nodes
        assert close(vectors_of(nodes[:60]), naive(model, X))
    assert (nodes[60].embedding, nodes[60].metadata) == (None, {"page": 2})
    assert shared == {"page": 1}
    for each in nodes[:60]:
        assert each.metadata["hubless"].startswith(model.hash)
        assert each.excluded_embed_metadata_keys == each.excluded_llm_metadata_keys == ["hubless"]
    assert move_nodes([], model) == []


@pytest.mark.parametrize("wait", [False, True], ids=["at once", "async"])
def test_a_pipeline_stores_moved_nodes_and_its_store_is_asked_with_plain_queries(wait, blobs):
    X, y, _ = blobs
    model = MODELS["cosine"](X, y)
    store = SimpleVectorStore()
    steps = [RowsOfTexts(rows=X.tolist()), MoveNodes(model), MoveNodes(model)]  # twice moves once
    pipeline = IngestionPipeline(transformations=steps, vector_store=store)
    nodes = [node(i, None) for i in range(60)]
    done = asyncio.run(pipeline.arun(nodes=nodes)) if wait else pipeline.run(nodes=nodes)
    moved = naive(model, X)
    assert close(vectors_of(done), moved)
    differ = 0
    for row in X[:20]:
        query = VectorStoreQuery(query_embedding=(row + 0.5).tolist(), similarity_top_k=5)
        found = store.query(query).ids
        assert found == [f"n{i}" for i in np.argsort(-moved @ (row + 0.5))[:5]]
        differ += found != [f"n{i}" for i in np.argsort(-unit(X) @ (row + 0.5))[:5]]
    assert differ > 0


def test_nodes_that_are_embedded_again_are_moved_again(blobs):
    """They keep their mark, and so do chunks that inherit the metadata of a marked node."""
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    pipeline = IngestionPipeline(transformations=[RowsOfTexts(rows=X.tolist()), MoveNodes(model)])
    nodes = [node(i, None) for i in range(60)]
    for _ in range(2):
        nodes = pipeline.run(nodes=nodes)
        assert close(vectors_of(nodes), naive(model, X))
    chunks = [node(i + 1, X, **nodes[i].metadata) for i in range(59)]
    assert close(vectors_of(move_nodes(chunks, model)), naive(model, X[1:]))


def test_the_cache_of_a_pipeline_gives_no_vectors_of_another_embedding(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    first = RowsOfTexts(rows=X.tolist())
    pipeline = IngestionPipeline(transformations=[first, MoveNodes(model)])
    pipeline.run(nodes=[node(i, None) for i in range(60)])
    second = RowsOfTexts(rows=X.tolist(), shift=1.0)
    pipeline.transformations = [second, pipeline.transformations[1]]
    again = pipeline.run(nodes=[node(i, None) for i in range(60)])
    assert close(vectors_of(again), naive(model, X + 1))


def test_language_models_and_embeddings_do_not_see_the_mark(blobs):
    X, y, _ = blobs
    (moved,) = move_nodes([node(7, X, page=3)], MODELS["l2"](X, y))
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert moved.get_content(metadata_mode=mode) == "page: 3\n\n7"


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_what_a_store_rounded_is_not_moved_twice(kind, blobs):
    X, y, _ = blobs
    for name in ("l2", "cosine"):
        nodes = move_nodes([node(i, X) for i in range(60)], MODELS[name](X, y))
        rounded = [np.asarray(each.embedding, dtype=kind).astype(float).tolist() for each in nodes]
        for each, vector in zip(nodes, rounded, strict=True):
            each.embedding = vector
        assert vectors_of(move_nodes(nodes, MODELS[name](X, y))) == rounded


def test_what_another_model_moved_is_refused(blobs):
    X, y, _ = blobs
    first, second = MODELS["l2"](X, y), MODELS["scale"](X, y)
    nodes = move_nodes([node(i, X) for i in range(3)], first)
    kept = vectors_of(nodes)
    with pytest.raises(ValueError, match=rf"n0 was moved by model {first.hash[:12]}.*{second.hash[:12]}"):
        move_nodes(nodes, second)
    assert vectors_of(nodes) == kept


def test_nodes_go_steps_of_their_own_by_their_id(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    truth = naive(model, X)
    model.own = Own(np.array(["n4", "n2"], dtype=object), X[[40, 20]], 0.25)
    truth[4], truth[2] = 0.75 * truth[4] + 0.25 * X[40], 0.75 * truth[2] + 0.25 * X[20]
    assert close(vectors_of(MoveNodes(model)([node(i, X) for i in range(60)])), truth)


def test_nodes_are_moved_by_the_class_in_their_metadata(blobs):
    X, y, _ = blobs
    model = Repair(Shrink(0.5).fit(X, y), label="class")
    means = np.array([X[y == c].mean(axis=0) for c in range(4)])
    nodes = [node(i, X, **{"class": int(y[i])}) for i in range(60)]
    assert close(vectors_of(move_nodes(nodes, model)), 0.5 * X + 0.5 * means[y])
    with pytest.raises(ValueError, match=r"n5 has no 'class' in its metadata \(\['page'\]\)"):
        move_nodes([node(5, X, page=1)], model)
    with pytest.raises(ValueError, match='label="key of its metadata"'):
        MoveNodes(Repair(Shrink().fit(X, y)))
    with pytest.raises(ValueError, match="Balance gives stored vectors one column more"):
        MoveNodes(Repair(Balance().fit(X, y)))


def test_a_transformation_goes_to_other_processes(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    for twin in (pickle.loads(pickle.dumps(MoveNodes(model))), copy.deepcopy(MoveNodes(model))):
        assert close(vectors_of(twin([node(i, X) for i in range(60)])), naive(model, X))


def test_a_missing_package_is_named(blobs, monkeypatch):
    from hubless.index import hooks

    hooks._component.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_index.core.schema", None)
    with pytest.raises(ImportError, match=r"hubless\[llama-index\]"):
        MoveNodes(MODELS["l2"](*blobs[:2]))
