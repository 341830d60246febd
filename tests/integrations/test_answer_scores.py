"""Calibrated scores in LangChain and LlamaIndex, in the places where their users look for scores."""

import asyncio

import numpy as np
import pytest

from hubless.calibration.item_scores import ItemScores
from hubless.integrations.answer_scores import SQUARED, probabilities, score_threshold
from hubless.integrations.langchain import MovedEmbeddings, with_calibrated_scores
from hubless.integrations.llama_index import CalibrateScores, MoveNodes
from hubless.movers import Shrink, Stay
from hubless.repair.repair import Repair

services = pytest.mark.services  # needs LangChain or LlamaIndex
N, D = 80, 6


@pytest.fixture(scope="module")
def items():
    """Documents of length 1, and a model that keeps them so."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def model(items):
    rng = np.random.default_rng(1)
    squared = np.sort(rng.random((300, 10)), axis=1)
    scores = ItemScores().fit(squared, rng.random((300, 10)) < np.exp(-5 * squared), D)
    y = np.arange(N) % 2
    return Repair(Stay().fit(items, y), "cosine", scores=scores)


def naive(model, squares):
    """The formula, in a loop: an answer is compared with the best of the others."""
    w, u = model.scores.relevance_.coefficients, model.scores.relevance_.unit
    p = []
    for j, own in enumerate(squares):
        margin = (min(other for i, other in enumerate(squares) if i != j) - own) / u
        z = w[0] - w[1] * own / u + w[2] * max(margin, 0) + w[3] * min(margin, 0)
        p.append(1 / (1 + np.exp(-z)))
    return p


@pytest.mark.parametrize("kind", SQUARED)
def test_what_stores_return_becomes_squared_distances(items, model, kind):
    query, found = items[0], items[3:7]
    lengths, cosines = np.linalg.norm(found - query, axis=1), found @ query
    of_store = {
        "squared l2": lengths**2,
        "l2": lengths,
        "cosine": cosines,
        "cosine distance": 1 - cosines,
    }
    assert probabilities(model, of_store[kind], kind) == pytest.approx(naive(model, lengths**2))


def test_models_and_scores_that_do_not_fit_are_refused(items, model):
    y = np.arange(N) % 2
    bare, by_l2 = Repair(Shrink().fit(items, y)), Repair(Stay().fit(items, y), scores=model.scores)
    for refused, kind, why in (
        (bare, "l2", "Fit it again"),
        (by_l2, "cosine", "other lengths than 1"),
        (model, "dot", "scores must be"),
    ):
        with pytest.raises(ValueError, match=why):
            with_calibrated_scores(object(), refused, kind)
        with pytest.raises(ValueError, match=why):
            CalibrateScores(refused, kind)
    with pytest.raises(ValueError, match="Fit it again"):
        score_threshold(bare)


def telling_threshold(model, expected):
    """The threshold at the first rate by which some answers are kept, and some are not."""
    limits = [score_threshold(model, reject) for reject in np.linspace(0.01, 0.9, 90)]
    return next(limit for limit in limits if min(expected) < limit <= max(expected))


def store_of(items, model):
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Rows(Embeddings):
        def embed_documents(self, texts):
            return [items[int(text)].tolist() for text in texts]

        def embed_query(self, text):
            return (items[int(text)] + 0.2).tolist()

    store = InMemoryVectorStore(MovedEmbeddings(Rows(), model))
    store.add_texts([str(i) for i in range(N)])
    return store


@services
def test_retrievers_of_langchain_compare_probabilities(items, model):
    plain = store_of(items, model)
    store = with_calibrated_scores(plain, model, "cosine")
    query = items[5] + 0.2
    cosines = items @ query / np.linalg.norm(query)
    order = np.argsort(-cosines)[:10]
    expected = naive(model, 2 - 2 * cosines[order])
    found = store.similarity_search_with_relevance_scores("5", k=10)
    assert [document.page_content for document, _ in found] == [str(i) for i in order]
    assert [p for _, p in found] == pytest.approx(expected, rel=1e-6)
    (_, p), *rest = store.similarity_search_with_relevance_scores("5", k=1)  # compared with a second one
    assert (p, rest) == (pytest.approx(expected[0], rel=1e-6), [])
    limit = telling_threshold(model, expected)
    how = {"search_type": "similarity_score_threshold", "search_kwargs": {"score_threshold": limit, "k": 10}}
    wanted = [str(i) for i, p in zip(order, expected, strict=True) if p >= limit]
    assert 0 < len(wanted) < 10
    retriever = store.as_retriever(**how)
    assert [document.page_content for document in retriever.invoke("5")] == wanted
    waited = asyncio.run(retriever.ainvoke("5"))
    assert [document.page_content for document in waited] == wanted
    # the store itself is as before, and the copy adds documents like it
    assert type(plain).__name__ == "InMemoryVectorStore"
    store.add_texts(["7"])
    assert len(plain.similarity_search("7", k=N + 5)) == N + 1


@services
def test_postprocessors_of_llama_index_compare_probabilities(items, model):
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery

    nodes = [TextNode(id_=str(i), text=str(i), embedding=x.tolist()) for i, x in enumerate(items)]
    store = SimpleVectorStore()
    IngestionPipeline(transformations=[MoveNodes(model)], vector_store=store).run(nodes=nodes)
    query = items[5] + 0.2
    found = store.query(VectorStoreQuery(query_embedding=query.tolist(), similarity_top_k=10))
    given = [
        NodeWithScore(node=nodes[int(i)], score=score)
        for i, score in zip(found.ids, found.similarities, strict=True)
    ]
    cosines = items @ query / np.linalg.norm(query)
    expected = naive(model, 2 - 2 * np.sort(cosines)[::-1][:10])
    calibrated = CalibrateScores(model).postprocess_nodes(given)
    assert [node.score for node in calibrated] == pytest.approx(expected, rel=1e-6)
    assert [node.score for node in given] == found.similarities  # unchanged
    limit = telling_threshold(model, expected)
    kept = SimilarityPostprocessor(similarity_cutoff=limit).postprocess_nodes(calibrated)
    assert len(kept) == sum(p >= limit for p in expected) in range(1, 10)
    assert CalibrateScores(model).postprocess_nodes([]) == []
    with pytest.raises(ValueError, match="similarity_top_k=2"):
        CalibrateScores(model).postprocess_nodes(given[:1])
