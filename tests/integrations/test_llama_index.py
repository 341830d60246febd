"""Nodes of LlamaIndex: they are moved once; queries stay as they were."""

import asyncio
import copy
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from hubless.corrections import NNN
from hubless.integrations import llama_index
from hubless.integrations.llama_index import MoveNodes, move_nodes
from hubless.movers import Balance, Shrink, Stay
from hubless.repair.repair import ItemSteps, Repair
from tests.integrations.naive import MODELS, close, naive, unit

services = pytest.mark.services  # needs LlamaIndex


def rows_of_texts(X, shift=0.0):
    """An embedding of LlamaIndex: that of a text such as "7" is row 7, plus a shift."""
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class RowsOfTexts(BaseEmbedding):
        rows: list
        shift: float

        def _get_text_embedding(self, text):
            return [value + self.shift for value in self.rows[int(text)]]

        def _get_query_embedding(self, query):
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query):
            return self._get_text_embedding(query)

    return RowsOfTexts(rows=X.tolist(), shift=shift)


def pipeline_of(*steps, store=None):
    from llama_index.core.ingestion import IngestionPipeline

    return IngestionPipeline(transformations=[*steps], vector_store=store)


def duck(i, X, **metadata):
    """What a node is to us, without LlamaIndex."""
    vector = None if X is None else X[i].tolist()
    keys = {"excluded_embed_metadata_keys": [], "excluded_llm_metadata_keys": []}
    return SimpleNamespace(node_id=f"n{i}", embedding=vector, metadata=metadata, **keys)


def node(i, X, **metadata):
    from llama_index.core.schema import TextNode

    vector = None if X is None else X[i].tolist()
    return TextNode(id_=f"n{i}", text=str(i), embedding=vector, metadata=metadata)


each_node = pytest.mark.parametrize("make", [duck, pytest.param(node, marks=services)])


def vectors_of(nodes):
    return [each.embedding for each in nodes]


@each_node
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


@services
@pytest.mark.parametrize("wait", [False, True], ids=["at once", "async"])
def test_a_pipeline_stores_moved_nodes_and_queries_stay_unchanged(wait, blobs):
    from llama_index.core.vector_stores import SimpleVectorStore
    from llama_index.core.vector_stores.types import VectorStoreQuery

    X, y, _ = blobs
    model = MODELS["cosine"](X, y)
    store = SimpleVectorStore()
    pipeline = pipeline_of(rows_of_texts(X), MoveNodes(model), MoveNodes(model), store=store)  # moves once
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


@services
def test_nodes_that_are_embedded_again_are_moved_again(blobs):
    """They keep their mark, and so do chunks that inherit the metadata of a marked node."""
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    pipeline = pipeline_of(rows_of_texts(X), MoveNodes(model))
    nodes = [node(i, None) for i in range(60)]
    for _ in range(2):
        nodes = pipeline.run(nodes=nodes)
        assert close(vectors_of(nodes), naive(model, X))
    chunks = [node(i + 1, X, **nodes[i].metadata) for i in range(59)]
    assert close(vectors_of(move_nodes(chunks, model)), naive(model, X[1:]))


@services
def test_the_cache_of_a_pipeline_gives_no_vectors_of_another_embedding(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    pipeline = pipeline_of(rows_of_texts(X), MoveNodes(model))
    pipeline.run(nodes=[node(i, None) for i in range(60)])
    pipeline.transformations = [rows_of_texts(X, 1.0), pipeline.transformations[1]]
    again = pipeline.run(nodes=[node(i, None) for i in range(60)])
    assert close(vectors_of(again), naive(model, X + 1))


@services
def test_language_models_and_embeddings_do_not_see_the_mark(blobs):
    from llama_index.core.schema import MetadataMode

    X, y, _ = blobs
    (moved,) = move_nodes([node(7, X, page=3)], MODELS["l2"](X, y))
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert moved.get_content(metadata_mode=mode) == "page: 3\n\n7"


@each_node
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_what_a_store_rounded_is_not_moved_twice(kind, make, blobs):
    X, y, _ = blobs
    for name in ("l2", "cosine"):
        nodes = move_nodes([make(i, X) for i in range(60)], MODELS[name](X, y))
        rounded = [np.asarray(each.embedding, dtype=kind).astype(float).tolist() for each in nodes]
        for each, vector in zip(nodes, rounded, strict=True):
            each.embedding = vector
        assert vectors_of(move_nodes(nodes, MODELS[name](X, y))) == rounded


@each_node
def test_what_another_model_moved_is_refused(make, blobs):
    X, y, _ = blobs
    first, second = MODELS["l2"](X, y), MODELS["scale"](X, y)
    nodes = move_nodes([make(i, X) for i in range(3)], first)
    kept = vectors_of(nodes)
    with pytest.raises(ValueError, match=rf"n0 was moved by model {first.hash[:12]}.*{second.hash[:12]}"):
        move_nodes(nodes, second)
    assert vectors_of(nodes) == kept


@services
def test_nodes_go_steps_of_their_own_by_their_id(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    truth = naive(model, X)
    model.steps = ItemSteps(np.array(["n4", "n2"], dtype=object), X[[40, 20]], 0.25)
    truth[4], truth[2] = 0.75 * truth[4] + 0.25 * X[40], 0.75 * truth[2] + 0.25 * X[20]
    assert close(vectors_of(MoveNodes(model)([node(i, X) for i in range(60)])), truth)


@each_node
def test_nodes_are_moved_by_the_class_in_their_metadata(make, blobs):
    X, y, _ = blobs
    model = Repair(Shrink(0.5).fit(X, y), label="class")
    means = np.array([X[y == c].mean(axis=0) for c in range(4)])
    nodes = [make(i, X, **{"class": int(y[i])}) for i in range(60)]
    assert close(vectors_of(move_nodes(nodes, model)), 0.5 * X + 0.5 * means[y])
    with pytest.raises(ValueError, match=r"n5 has no 'class' in its metadata \(\['page'\]\)"):
        move_nodes([make(5, X, page=1)], model)
    with pytest.raises(ValueError, match='label="key of its metadata"'):
        MoveNodes(Repair(Shrink().fit(X, y)))
    with pytest.raises(ValueError, match=r"Balance\(\) adds a column to stored vectors"):
        MoveNodes(Repair(Balance().fit(X, y)))


@services
def test_a_transformation_goes_to_other_processes(blobs):
    X, y, _ = blobs
    model = MODELS["l2"](X, y)
    for twin in (pickle.loads(pickle.dumps(MoveNodes(model))), copy.deepcopy(MoveNodes(model))):
        assert close(vectors_of(twin([node(i, X) for i in range(60)])), naive(model, X))


def test_a_missing_package_is_named(blobs, monkeypatch):
    llama_index._component.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_index.core.schema", None)
    with pytest.raises(ImportError, match=r"hubless\[llama-index\]"):
        MoveNodes(MODELS["l2"](*blobs[:2]))


@each_node
@pytest.mark.parametrize("column", [False, True])
def test_nodes_are_corrected_once(column, make, blobs):
    X, y, queries = blobs
    correction = NNN(0.5, 3, metric="l2", column=column).fit(queries, X)
    model, nodes = Repair(Stay().fit(X, y), correction=correction), [make(i, X) for i in range(60)]
    for _ in range(2):
        move_nodes(nodes, model)
        assert close(vectors_of(nodes), correction.move(X.astype(np.float32)))
    assert {len(each.embedding) for each in nodes} == {6 + column}
    assert (model.query_note is None) == (not column)  # of what whoever asks must do
