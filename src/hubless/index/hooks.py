"""New items on their way into a moved index: hooks that move them in LangChain and in LlamaIndex.

Documents are moved before they are stored, queries pass as they are. Neither package is imported before it is
asked for.
"""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import uuid4

import numpy as np

from ..stores.store import need
from .repair import Repair

KEY = "hubless"  # of the metadata of a moved node
PARTS = 8  # a moved vector is known again by the sums of its parts
ROUNDING = 5e-3  # of these, in lengths of the vector: what half precision leaves alone


class MovedEmbeddings:
    """LangChain's Embeddings with documents moved; queries, and all else that it has, pass unchanged.

    Texts have no ids, so no item goes a step of its own here: one that had training queries and is embedded
    again goes where an item without queries goes, until the next `hubless apply`.

    Parameters
    ----------
    embeddings : langchain_core.embeddings.Embeddings, or anything with its methods
    model : Repair that does not ask for labels
    """

    def __init__(self, embeddings: Any, model: Repair) -> None:
        if isinstance(embeddings, MovedEmbeddings):
            raise ValueError("these embeddings are moved already, and nothing is moved twice.")
        _check_model(model)
        if model.mover._uses_labels:
            raise ValueError(
                f"{type(model.mover).__name__} moves an item by its class, and texts come without one. Fit a "
                "model that asks for no label, or move items where the class is known: by `hubless move`, or "
                "in LlamaIndex by MoveNodes."
            )
        self._embeddings, self._repair = embeddings, model
        loaded = sys.modules.get("langchain_core.embeddings.embeddings")
        if loaded is not None:  # some stores take nothing else: those of FAISS and Milvus, say
            loaded.Embeddings.register(MovedEmbeddings)

    def embed_documents(self, texts: list[str], *args: Any, **kwargs: Any) -> list[list[float]]:
        """Embeddings of texts to store, moved."""
        return self._moved(self._embeddings.embed_documents(texts, *args, **kwargs))

    async def aembed_documents(self, texts: list[str], *args: Any, **kwargs: Any) -> list[list[float]]:
        """Embeddings of texts to store, moved."""
        return self._moved(await self._embeddings.aembed_documents(texts, *args, **kwargs))

    def embed_query(self, text: str, *args: Any, **kwargs: Any) -> list[float]:
        """Embedding of a query, as it is."""
        return self._embeddings.embed_query(text, *args, **kwargs)

    async def aembed_query(self, text: str, *args: Any, **kwargs: Any) -> list[float]:
        """Embedding of a query, as it is."""
        return await self._embeddings.aembed_query(text, *args, **kwargs)

    def _moved(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        if len(vectors) == 0:
            return []
        # None is the id of no item
        return self._repair.move(np.asarray(vectors, dtype=np.float32), [None] * len(vectors)).tolist()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also what a copy, which has nothing yet, is asked for
            raise AttributeError(name)
        return getattr(self._embeddings, name)


def MoveNodes(model: Repair) -> Any:
    """A transformation for LlamaIndex's IngestionPipeline, to stand behind the step that embeds.

    IngestionPipeline(transformations=[splitter, embedding, MoveNodes(model)], vector_store=...)

    It does what `move_nodes` does. A pipeline keeps results in a cache by the texts of the nodes, without
    their embeddings; those of this step are never taken from there, as the embedding may be another by now.
    """
    _check_nodes_model(model)
    return _component()(model)


def move_nodes(nodes: Sequence[Any], model: Repair, moved_by: str | None = None) -> Sequence[Any]:
    """The same nodes with their embeddings moved, once; nodes without an embedding stay as they are.

    The id of an item is its `node_id`, its class `metadata[model.label]`. What was moved is marked in
    `metadata["hubless"]`, which neither embeddings nor language models get to see.

    Parameters
    ----------
    nodes : sequence of LlamaIndex's nodes
    model : Repair
    moved_by : the hash of the model, where it is known
    """
    _check_nodes_model(model)
    name = moved_by or model.hash
    fresh = [node for node in nodes if node.embedding is not None and not _is_moved(node, name)]
    if fresh:
        labels = [_label(node, model) for node in fresh] if model.mover._uses_labels else None
        vectors = np.asarray([node.embedding for node in fresh], dtype=np.float32)
        moved = model.move(vectors, [node.node_id for node in fresh], labels)
        for node, vector in zip(fresh, moved, strict=True):
            _mark(node, vector, name)
    return nodes


@cache
def _component() -> Any:
    """The class of `MoveNodes`: a pipeline takes no other than those of LlamaIndex."""
    schema = need("llama_index.core.schema", "llama-index")

    class _MoveNodes(schema.TransformComponent):  # type: ignore[name-defined]
        moved_by: str
        _model: Any = None

        def __init__(self, model: Repair) -> None:
            super().__init__(moved_by=model.hash)
            self._model = model

        def __call__(self, nodes: Sequence[Any], **kwargs: Any) -> Sequence[Any]:
            return move_nodes(nodes, self._model, self.moved_by)

        def to_dict(self, **kwargs: Any) -> dict[str, Any]:
            return {**super().to_dict(**kwargs), "asked": uuid4().hex}  # the cache finds what is alike

        def __reduce__(self) -> Any:  # for pipelines of several processes
            return MoveNodes, (self._model,)

    return _MoveNodes


def _check_model(model: Repair) -> None:
    if model.mover.exit_.floor is not None:
        raise ValueError(
            f"{type(model.mover).__name__} gives stored vectors one column more, which queries would need "
            "too. Fit a model for an index, as `hubless fit` does."
        )


def _check_nodes_model(model: Repair) -> None:
    _check_model(model)
    if model.mover._uses_labels and model.label is None:
        raise ValueError(
            f"{type(model.mover).__name__} moves an item by its class: say where a node has it, as "
            'Repair(..., label="key of its metadata").'
        )


def _label(node: Any, model: Repair) -> Any:
    if model.label not in node.metadata:
        raise ValueError(
            f"node {node.node_id} has no {model.label!r} in its metadata ({sorted(node.metadata)}), and the "
            "model moves an item by that class. Give every node one."
        )
    return node.metadata[model.label]


def _sums(vector: Any) -> np.ndarray:
    parts = np.array_split(np.asarray(vector, dtype=np.float64), PARTS)
    return np.array([part.sum() for part in parts])


def _is_moved(node: Any, moved_by: str) -> bool:
    """Whether its embedding is a moved one.

    A mark alone does not tell: a node that is embedded again keeps it, and the chunks of a node inherit it.
    """
    name, *found = str(node.metadata.get(KEY) or "none").split()
    if len(found) != PARTS:
        return False
    room = ROUNDING * float(np.linalg.norm(node.embedding))
    if not np.allclose(np.array(found, dtype=np.float64), _sums(node.embedding), rtol=0, atol=room):
        return False
    if name != moved_by:
        raise ValueError(
            f"node {node.node_id} was moved by model {name[:12]}, and this is {moved_by[:12]}. Nothing is "
            "moved twice: embed it again first."
        )
    return True


def _mark(node: Any, vector: np.ndarray, moved_by: str) -> None:
    node.embedding = vector.tolist()
    told = " ".join(f"{value:.6g}" for value in _sums(vector))
    node.metadata = {**node.metadata, KEY: f"{moved_by} {told}"}  # the chunks of a document may share theirs
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        if KEY not in getattr(node, name):
            setattr(node, name, [*getattr(node, name), KEY])
