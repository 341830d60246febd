"""LangChain: embeddings that move documents before they are stored; queries are unchanged.

The package is not imported: embeddings are anything with its methods.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..repair.repair import Repair


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
