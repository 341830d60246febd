"""LangChain: embeddings that move documents before they are stored, and calibrated scores of what is found.

Queries are unchanged. The package is not imported: embeddings and stores are anything with its methods.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..repair.repair import Repair
from .answer_scores import check_kind, probabilities
from .answer_scores import score_threshold as score_threshold


class MovedEmbeddings:
    """LangChain's Embeddings with documents moved; queries, and all its other attributes, are unchanged.

    Texts have no ids, so there are no steps of single items here: an item that had training queries and is
    embedded again is moved like an item without queries, until the next `hubless apply`.

    Parameters
    ----------
    embeddings : langchain_core.embeddings.Embeddings, or anything with its methods
    model : Repair that does not need labels
    """

    def __init__(self, embeddings: Any, model: Repair) -> None:
        if isinstance(embeddings, MovedEmbeddings):
            raise ValueError(
                "these embeddings are moved already, and nothing is moved twice. Give the original ones."
            )
        if model.mover._uses_labels:
            raise ValueError(
                f"{type(model.mover).__name__} moves an item by its class, and texts come without one. Fit a "
                "model that needs no label, or move items where the class is known: by `hubless move`, or in "
                "LlamaIndex by MoveNodes."
            )
        self._embeddings, self._repair = embeddings, model
        loaded = sys.modules.get("langchain_core.embeddings.embeddings")
        if loaded is not None:  # stores such as those of FAISS and Milvus take nothing else
            loaded.Embeddings.register(MovedEmbeddings)

    def embed_documents(self, texts: list[str], *args: Any, **kwargs: Any) -> list[list[float]]:
        """Return embeddings of texts to store, moved."""
        return self._moved(self._embeddings.embed_documents(texts, *args, **kwargs))

    async def aembed_documents(self, texts: list[str], *args: Any, **kwargs: Any) -> list[list[float]]:
        """Return embeddings of texts to store, moved."""
        return self._moved(await self._embeddings.aembed_documents(texts, *args, **kwargs))

    def embed_query(self, text: str, *args: Any, **kwargs: Any) -> list[float]:
        """Return the embedding of a query, as it is; with a 0 where the model adds a column to items."""
        return self._asked(self._embeddings.embed_query(text, *args, **kwargs))

    async def aembed_query(self, text: str, *args: Any, **kwargs: Any) -> list[float]:
        """Return the embedding of a query, as it is; with a 0 where the model adds a column to items."""
        return self._asked(await self._embeddings.aembed_query(text, *args, **kwargs))

    def _asked(self, query: list[float]) -> list[float]:
        added = self._repair.width - self._repair.query_width
        return [*query, *[0.0] * added] if added else query

    def _moved(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        if len(vectors) == 0:
            return []
        # no item has the id None, so no steps of single items apply
        return self._repair.move(np.asarray(vectors, dtype=np.float32), [None] * len(vectors)).tolist()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also for a copy that is being made, which has no attributes yet
            raise AttributeError(name)
        return getattr(self._embeddings, name)


def with_calibrated_scores(store: Any, model: Repair, scores: str) -> Any:
    """Return a vector store of LangChain whose relevance scores are calibrated probabilities.

    `similarity_search_with_relevance_scores` and retrievers by "similarity_score_threshold" then return and
    compare how likely a document is to be relevant, as `model` learned on held-out queries. An answer is
    compared with the others to the same query, which a `relevance_score_fn` of one distance cannot do.

        store = with_calibrated_scores(store, model, "cosine")
        store.as_retriever(
            search_type="similarity_score_threshold",
            search_kwargs={"score_threshold": score_threshold(model, 0.05), "k": 10},
        )

    Parameters
    ----------
    store : langchain_core.vectorstores.VectorStore, with documents that `model` moved; it is not changed
    model : Repair that was learned from labels or pairs
    scores : "squared l2", "l2", "cosine" or "cosine distance"
        What `similarity_search_with_score` of this store returns: FAISS "squared l2", InMemoryVectorStore
        "cosine", PGVector "cosine distance" or "l2".
    """
    check_kind(model, scores)
    kind: Any = type(f"Calibrated{type(store).__name__}", (_CalibratedScores, type(store)), {})
    calibrated = kind.__new__(kind)
    vars(calibrated).update(vars(store), _calibrated_by=(model, scores))
    return calibrated


class _CalibratedScores:
    """The methods of a vector store that LangChain asks for relevance scores."""

    _calibrated_by: tuple[Repair, str]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Any, float]]:
        store: Any = self
        return self._scored(store.similarity_search_with_score(query, k=max(k, 2), **kwargs), k)

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Any, float]]:
        store: Any = self
        return self._scored(await store.asimilarity_search_with_score(query, k=max(k, 2), **kwargs), k)

    def _scored(self, found: list[tuple[Any, float]], k: int) -> list[tuple[Any, float]]:
        if len(found) < 2:
            raise ValueError(
                f"{len(found)} documents were found: an answer is compared with the others, so that two or "
                "more are needed to tell how likely it is to be relevant."
            )
        documents, numbers = zip(*found, strict=True)
        model, kind = self._calibrated_by
        return [*zip(documents, probabilities(model, numbers, kind), strict=True)][:k]
