"""Queries and objects of the benchmark of search: synthetic ones, and vectors of texts and of images.

Without the files of a data set, synthetic vectors of its shape stand in for it, and the raw result says so.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hubless.paper import datasets
from hubless.paper.download import data_folder
from hubless.paper.reproduce import split_of

from .data import NEWS, clustered, evenly

CLASSES = 20
JITTER = 0.01  # standard deviation of the noise in each column, of vectors of length 1
MADE = "synthetic"
QUICK = (300, 900, 16)


class Question(NamedTuple):
    """Queries, and objects sorted by class, as they often are stored."""

    queries: np.ndarray
    objects: np.ndarray
    k: int
    source: str = MADE

    def settings(self) -> dict[str, Any]:
        """Return the shape and the precision."""
        (m, d), n = self.queries.shape, len(self.objects)
        return {"queries": m, "objects": n, "d": d, "k": self.k, "dtype": str(self.objects.dtype)}


def make_question(n_queries: int, n_objects: int, d: int, k: int, dtype: str) -> Question:
    """Queries and objects of the same classes, the queries in random order."""
    queries = clustered(evenly(n_queries, CLASSES), d, np.dtype(dtype), seed=1).X
    objects = clustered(evenly(n_objects, CLASSES), d, np.dtype(dtype), seed=2).X
    return Question(np.random.default_rng(0).permutation(queries), objects, k)


def banking_vectors() -> Question:
    """Test texts as queries, training texts as objects."""
    return _embedded("banking77", "test", "train")


def scifact_vectors() -> Question:
    """Claims as queries, abstracts as objects."""
    return _embedded("scifact", "queries", "docs")


def _embedded(name: str, queries: str, objects: str) -> Question:
    """Read embeddings of texts, which are stored in float16."""
    folder = data_folder() / name
    parts = (np.load(folder / f"{part}_minilm_384.npy", allow_pickle=False) for part in (queries, objects))
    return Question(*(X.astype(np.float32) for X in parts), 10, f"{name}, all-MiniLM-L6-v2")


def split_vectors(name: str, dim: int | None, source: str) -> Question:
    """Return the test and the training part of the first split of the paper's protocol."""
    split = split_of(datasets.load(name, dim), 0)
    return Question(split.queries, split.X, 10, source)


def jittered_vectors() -> Question:
    """Texts of banking77, each object ten times, with noise."""
    question, rng = banking_vectors(), np.random.default_rng(0)
    n, d = 100_000, question.objects.shape[1]
    objects = question.objects[np.arange(n) * len(question.objects) // n]  # in their order
    objects = objects + np.float32(JITTER) * rng.standard_normal((n, d), dtype=np.float32)
    queries = question.queries[:2000]
    queries = queries + np.float32(JITTER) * rng.standard_normal(queries.shape, dtype=np.float32)
    return Question(queries, objects, 10, f"{question.source}, with noise of {JITTER} in each column")


def _synthetic(quick: bool, *shape: Any) -> Question:
    return make_question(*((*QUICK, *shape[3:]) if quick else shape))


def _real(quick: bool, read: Callable[[], Question], *shape: int) -> Question:
    if quick or not os.environ.get("HUBLESS_DATA"):
        return make_question(*(QUICK if quick else shape), 10, "float32")
    question = read()
    queries, objects = (np.ascontiguousarray(X, np.float32) for X in question[:2])
    return question._replace(queries=queries, objects=objects)


news = partial(split_vectors, "news", NEWS[1], "20 Newsgroups, 300 principal components")
cub = partial(split_vectors, "cub", None, "CUB, EfficientNet-Lite0")
CASES: dict[str, Callable[[bool], Question]] = {
    "5,654 × 13,192 × 300": lambda quick: _synthetic(quick, 5_654, 13_192, 300, 10, "float32"),
    "2,000 × 100,000 × 384": lambda quick: _synthetic(quick, 2_000, 100_000, 384, 10, "float32"),
    "5,654 × 13,192 × 300, float64": lambda quick: _synthetic(quick, 5_654, 13_192, 300, 10, "float64"),
    "5,654 × 13,192 × 300, k = 50": lambda quick: _synthetic(quick, 5_654, 13_192, 300, 50, "float32"),
    "banking77, 3,080 × 10,003 × 384": lambda quick: _real(quick, banking_vectors, 3_080, 10_003, 384),
    "SciFact, 1,409 × 5,183 × 384": lambda quick: _real(quick, scifact_vectors, 1_409, 5_183, 384),
    "News, 5,654 × 13,192 × 300": lambda quick: _real(quick, news, 5_654, 13_192, 300),
    "CUB, 3,537 × 8,251 × 1,280": lambda quick: _real(quick, cub, 3_537, 8_251, 1_280),
    "jittered banking77, 2,000 × 100,000 × 384": lambda quick: _real(
        quick, jittered_vectors, 2_000, 100_000, 384
    ),
}
