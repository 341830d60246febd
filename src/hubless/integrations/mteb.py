"""MTEB: an embedding model whose documents are moved, for the tasks of `mteb`; queries are unchanged.

The package is imported when an encoder is wrapped.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..repair.repair import Repair
from ..support.imports import need

SIMILARITIES = {"cosine": "cosine", "l2": "euclidean", "ip": "dot"}  # as MTEB calls how an index compares


class MovedEncoder:
    """An encoder of MTEB that moves documents as a model does for an index, and leaves queries as they are.

        mteb.evaluate(MovedEncoder(SentenceTransformer("all-MiniLM-L6-v2"), hubless.load("model")), tasks)

    Vectors are compared as the index of the model compares, whatever the encoder prefers, and the results are
    kept under a name of their own, which ends in "-hubless-" and the first digits of the model's hash. To
    cache embeddings, cache those of the encoder: MovedEncoder(CachedEmbeddingWrapper(encoder, path), model).

    Parameters
    ----------
    encoder : an encoder of MTEB, or a SentenceTransformer
    model : Repair that does not need labels
        Steps of single items are applied by the ids of the documents.
    training_datasets : iterable of str, optional
        MTEB's names of the data that the model was learned from: results on these are not zero-shot.
    """

    def __init__(self, encoder: Any, model: Repair, training_datasets: Iterable[str] = ()) -> None:
        mteb = need("mteb", "mteb")
        if isinstance(encoder, MovedEncoder):
            raise ValueError(
                "these embeddings are moved already, and nothing is moved twice. Give the encoder."
            )
        if model.mover._uses_labels:
            raise ValueError(
                f"{type(model.mover).__name__} moves an item by its class, and documents of MTEB have none. "
                "Fit a model that needs no label."
            )
        if not hasattr(encoder, "mteb_model_meta"):  # as `mteb.evaluate` does
            encoder = need("mteb.models", "mteb").SentenceTransformerEncoderWrapper(encoder)
        self._encoder, self._repair = encoder, model
        self._is_document, self._is_query = mteb.types.PromptType.document, mteb.types.PromptType.query
        self.mteb_model_meta = _meta(encoder.mteb_model_meta, model, training_datasets)

    def encode(self, inputs: Any, *, prompt_type: Any = None, **kwargs: Any) -> np.ndarray:
        """Return embeddings: of documents moved, of queries as they are, with a 0 in an added column."""
        if prompt_type not in (self._is_document, self._is_query):
            name = getattr(kwargs.get("task_metadata"), "name", "this task")
            raise ValueError(
                f"{name} does not say which texts are documents and which are queries, so that there is "
                "nothing to move. A moved index is for retrieval and reranking."
            )
        vectors = to_numpy(self._encoder.encode(inputs, prompt_type=prompt_type, **kwargs))
        vectors = vectors if vectors.dtype in (np.float32, np.float64) else vectors.astype(np.float32)
        if prompt_type == self._is_query:
            return self._repair.as_queries(vectors)
        return self._repair.move(vectors, _ids(inputs, len(vectors)))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return how near each row is to each, as the index of the model compares them."""
        return self._similarity("{}", embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return how near each row is to its counterpart."""
        return self._similarity("pairwise_{}", embeddings1, embeddings2)

    def _similarity(self, name: str, first: Any, second: Any) -> Any:
        functions = need("mteb.similarity_functions", "mteb")
        by_metric = {"cosine": "cos_sim", "l2": "euclidean_sim", "ip": "dot_score"}
        return getattr(functions, name.format(by_metric[self._repair.stored_metric]))(first, second)


def _ids(inputs: Any, n: int) -> list[Any]:
    """Return the ids of documents, None where they have none: no step applies to an item without an id."""
    data: Any = getattr(inputs, "dataset", None)
    has_ids = "id" in getattr(data, "column_names", ())
    return [*data["id"]] if has_ids else [None] * n


def _meta(meta: Any, model: Repair, training_datasets: Iterable[str]) -> Any:
    """Return the metadata of a moved encoder, by which MTEB keeps and shows its results."""
    meta = need("mteb.models", "mteb").ModelMeta.create_empty() if meta is None else meta
    known = meta.training_datasets
    return meta.model_copy(
        update={
            "name": f"{meta.name or 'unknown/encoder'}-hubless-{model.hash[:8]}",
            "adapted_from": meta.name,
            "loader": None,
            "revision": meta.revision or "no_revision_available",
            "embed_dim": model.width,
            "similarity_fn_name": need("mteb.models.model_meta", "mteb").ScoringFunction(
                SIMILARITIES[model.stored_metric]
            ),
            "training_datasets": {*(known or ()), *training_datasets} or known,
        }
    )
