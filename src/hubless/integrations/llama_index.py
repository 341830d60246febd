"""LlamaIndex: a step of an ingestion pipeline that moves nodes, once, and calibrated scores of what is found.

Queries are unchanged. The package is imported when a step is made.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import uuid4

import numpy as np

from ..repair.repair import Repair
from ..support.imports import need
from .answer_scores import check_kind, probabilities
from .answer_scores import score_threshold as score_threshold

KEY = "hubless"  # of the metadata of a moved node
PARTS = 8  # a moved vector is recognised by the sums of its parts
ROUNDING = 5e-3  # of these sums, relative to the length of the vector: more than that of half precision


def MoveNodes(model: Repair) -> Any:
    """Return a transformation for LlamaIndex's IngestionPipeline, to put after the step that embeds.

    IngestionPipeline(transformations=[splitter, embedding, MoveNodes(model)], vector_store=...)

    It does what `move_nodes` does. Queries stay as they are, or as `model.query_note` says. A pipeline caches
    results by the texts of the nodes, without their embeddings; results of this step are never taken from the
    cache, since the embedding may have changed.
    """
    _check_nodes_model(model)
    return _component()(model)


def move_nodes(nodes: Sequence[Any], model: Repair, moved_by: str | None = None) -> Sequence[Any]:
    """Move the embeddings of nodes, once, and return the nodes; those without an embedding are unchanged.

    The id of an item is its `node_id`, its class `metadata[model.label]`. Moved nodes are marked in
    `metadata["hubless"]`, which is hidden from embeddings and language models.

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
    """Return the class of `MoveNodes`: a pipeline takes only subclasses of its own."""
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
            return {**super().to_dict(**kwargs), "call": uuid4().hex}  # never equal, so never in the cache

        def __reduce__(self) -> Any:  # for pipelines of several processes
            return MoveNodes, (self._model,)

    return _MoveNodes


def CalibrateScores(model: Repair, scores: str = "cosine") -> Any:
    """Return a node postprocessor that turns scores into calibrated probabilities of being relevant.

    Put it before LlamaIndex's own SimilarityPostprocessor, and retrieve two or more nodes:

        node_postprocessors=[
            CalibrateScores(model),
            SimilarityPostprocessor(similarity_cutoff=score_threshold(model, 0.05)),
        ]

    Parameters
    ----------
    model : Repair that was learned from labels or pairs, and moved the nodes
    scores : "cosine", "cosine distance", "l2" or "squared l2"
        What the vector store gives as the score of a node; SimpleVectorStore gives "cosine".
    """
    check_kind(model, scores)
    return _postprocessor()(model, scores)


@cache
def _postprocessor() -> Any:
    """Return the class of `CalibrateScores`."""
    types = need("llama_index.core.postprocessor.types", "llama-index")

    class _CalibrateScores(types.BaseNodePostprocessor):  # type: ignore[name-defined]
        scores: str
        _model: Any = None

        def __init__(self, model: Repair, scores: str) -> None:
            super().__init__(scores=scores)
            self._model = model

        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            if not nodes:
                return []
            found = [node.score for node in nodes]
            if len(nodes) < 2 or any(score is None for score in found):
                raise ValueError(
                    f"{len(nodes)} nodes have the scores {found}: an answer is compared with the others, so "
                    "that two or more with a score are needed. Retrieve them with similarity_top_k=2 or more."
                )
            own = probabilities(self._model, found, self.scores)
            pairs = zip(nodes, own, strict=True)
            return [node.model_copy(update={"score": score}) for node, score in pairs]

        def __reduce__(self) -> Any:
            return CalibrateScores, (self._model, self.scores)

    return _CalibrateScores


def _check_nodes_model(model: Repair) -> None:
    if model.mover._uses_labels and model.label is None:
        raise ValueError(
            f"{type(model.mover).__name__} moves an item by its class: name the key of the metadata that has "
            'it, Repair(..., label="key of its metadata").'
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
    """Return whether the embedding of a node is moved.

    The mark alone does not say: a node that is embedded again keeps it, and the chunks of a node inherit it.
    """
    name, *sums = str(node.metadata.get(KEY) or "none").split()
    if len(sums) != PARTS:
        return False
    tolerance = ROUNDING * float(np.linalg.norm(node.embedding))
    if not np.allclose(np.array(sums, dtype=np.float64), _sums(node.embedding), rtol=0, atol=tolerance):
        return False
    if name != moved_by:
        raise ValueError(
            f"node {node.node_id} was moved by model {name[:12]}, and this is {moved_by[:12]}. Nothing is "
            "moved twice: embed it again first."
        )
    return True


def _mark(node: Any, vector: np.ndarray, moved_by: str) -> None:
    node.embedding = vector.tolist()
    sums = " ".join(f"{value:.6g}" for value in _sums(vector))
    node.metadata = {**node.metadata, KEY: f"{moved_by} {sums}"}  # the chunks of a document may share theirs
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        if KEY not in getattr(node, name):
            setattr(node, name, [*getattr(node, name), KEY])
