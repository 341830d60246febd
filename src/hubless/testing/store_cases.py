"""What a store of vectors is tested with: how it is made without hubless, vectors, models and their truth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..movers import MoveLabeled
from ..neighbors.knn import unit
from ..repair.repair import Repair


@dataclass
class Case:
    """How a store is made and used without hubless.

    `make(folder, ids, vectors, texts, metric)` writes rows with the engine's own client, and opens the
    store; a row of NaN has no vector, where the engine can say so;
    `ask(store, queries, k)` searches under the served name with that client;
    `add(store, ids, vectors, texts)` adds rows as another program would.
    """

    make: Callable[..., Any]
    ask: Callable[..., Any]
    add: Callable[..., Any] | None = None  # None where rows are never added, such as to a file
    metrics: tuple[str, ...] = ("l2", "cosine")
    green: str = "moved"  # name of the moved copy
    recall: float = 1.0  # what its index promises
    answers_again: bool = True  # whether its index, opened anew, gives the very same answers
    text_ids: bool = True  # whether ids may be texts
    has_texts: bool = True  # whether it keeps a column "text"
    may_lack_vectors: bool = True  # whether its client can write a row without a vector
    rounding: float = 0.0  # as a share, of the numbers that its client returns


def sample(
    n: int = 300, d: int = 8, seed: int = 0, *, text_ids: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Return ids in no order, vectors, classes, and a text for each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n)
    X = (3 * rng.standard_normal((5, d))[y] + rng.standard_normal((n, d))).astype(np.float32)
    ids = rng.permutation(10 * n)[:n].astype(np.int64)
    names = np.array([f"item '{i}'; é" for i in ids], dtype=object)
    return (names if text_ids else ids), X, y, [f"text of {i}" for i in ids]


def model_for(X: np.ndarray, y: np.ndarray, metric: str) -> Repair:
    """Return the paper's mover in the space that an index of this metric compares in."""
    metric = "l2" if metric == "l2" else "cosine"
    mover = MoveLabeled(1.0).fit(unit(X) if metric == "cosine" else X, y)
    return Repair(mover, metric)


def model_between(X: np.ndarray, width: int, metric: str) -> tuple[Repair, np.ndarray]:
    """Return a model that maps items into the space of queries of another width, and such queries."""
    metric = "l2" if metric == "l2" else "cosine"
    rng = np.random.default_rng(width)
    space = unit if metric == "cosine" else np.asarray
    queries = X @ rng.standard_normal((X.shape[1], width)) + 0.3 * rng.standard_normal((len(X), width))
    queries = space(queries.astype(np.float32))
    return Repair(MoveLabeled(1.0).fit_pairs(queries, space(X)), metric), queries


def exact(ids: Any, X: np.ndarray, queries: np.ndarray, k: int, metric: str) -> list[list[Any]]:
    """Return ids of the k nearest by plain loops."""
    nearest = []
    for q in queries:
        d2 = ((X - q) ** 2).sum(1) if metric == "l2" else -(unit(X) @ q)
        nearest.append([ids[i] for i in np.argsort(d2, kind="stable")[:k]])
    return nearest


def overlap(got: Any, want: Any) -> float:
    """Return the mean share of wanted ids that were found."""
    got, want = [[str(v) for v in row] for row in got], [[str(v) for v in row] for row in want]
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(got, want, strict=True)]))


def as_stored(X: np.ndarray, store: Any) -> np.ndarray:
    """Return vectors as the store returns them: Qdrant keeps those of cosine at length 1."""
    return unit(X) if getattr(store, "keeps_unit", False) and store.facts().metric == "cosine" else X
