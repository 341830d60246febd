"""What an approximate index finds of the true neighbours, before and after a move.

Items that were drawn together are harder to tell apart by the graph or the lists of an index. Where that
costs answers, the index should look wider.
"""

import numpy as np

from ..stores.rows import exhaustive
from ..stores.store import Store
from .collection import read_all

K, QUERIES, ROWS = 10, 100, 100_000  # neighbours, items that are asked with, rows that are read at most
LOST = 0.02  # recall that may be lost without a word


# |found ∩ true| / k
def recall(store: Store, queries: np.ndarray, metric: str) -> float:
    """Share of the true neighbours that the index of a store finds."""
    return _recall(store, *read_all(store), queries, metric)


def _recall(store: Store, ids: np.ndarray, vectors: np.ndarray, queries: np.ndarray, metric: str) -> float:
    truth = ids[exhaustive(queries, vectors, K, metric)].tolist()
    found = store.search(queries, K).tolist()
    shared = [len({*row} & {*own}) for row, own in zip(truth, found, strict=True)]
    return sum(shared) / sum(map(len, truth))


def compare_recall(blue: Store, green: Store) -> list[str]:
    """What to tell the user where the moved index finds less of what is there than the original does."""
    facts = green.facts()
    metric = facts.metric or "l2"
    if facts.index.startswith("exhaustive") or not K < facts.count <= ROWS:
        return []
    ids, vectors = read_all(blue)
    there = vectors[np.isfinite(vectors).all(axis=1)]
    if not len(there):
        return []
    queries = there[np.random.default_rng(0).permutation(len(there))[:QUERIES]]
    before, after = _recall(blue, ids, vectors, queries, metric), recall(green, queries, metric)
    if after >= before - LOST:
        return []
    return [
        f"the index ({facts.index}) finds {after:.1%} of the true neighbours of items, that of the original "
        f"{before:.1%}: let it look wider (efSearch, ef_search, probes), or build it wider, before promoting."
    ]
