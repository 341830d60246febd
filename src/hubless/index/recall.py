"""What an approximate index finds of the true neighbours, before and after a move.

Items that were drawn together are harder to tell apart by the graph or the lists of an index. Where that
costs answers, the index should look wider.
"""

import numpy as np

from ..stores.rows import exhaustive
from ..stores.store import Store

K, QUERIES, ROWS = 10, 100, 100_000  # neighbours, items that are asked with, rows that are read at most
LOST = 0.02  # recall that may be lost without a word


# |found ∩ true| / k
def recall(store: Store, queries: np.ndarray, metric: str) -> float:
    """Share of the true neighbours that the index of a store finds."""
    ids, vectors = [], []
    for batch in store.batches():
        ids += batch.ids.tolist()
        vectors.append(batch.vectors)
    truth = exhaustive(queries, np.concatenate(vectors), K, metric)
    found = store.search(queries, K).tolist()
    shared = [len({ids[i] for i in row} & set(own)) for row, own in zip(truth, found, strict=True)]
    return sum(shared) / truth.size


def compare_recall(blue: Store, green: Store) -> list[str]:
    """What to tell the user where the moved index finds less of what is there than the original does."""
    facts = green.facts()
    metric = facts.metric or "l2"
    if facts.index.startswith("exhaustive") or not K < facts.count <= ROWS:
        return []
    there = np.concatenate([batch.vectors for batch in blue.batches()])
    there = there[np.isfinite(there).all(axis=1)]
    queries = there[np.random.default_rng(0).permutation(len(there))[:QUERIES]]
    before, after = (recall(store, queries, metric) for store in (blue, green))
    if after >= before - LOST:
        return []
    return [
        f"the index ({facts.index}) finds {after:.1%} of the true neighbours of items, that of the original "
        f"{before:.1%}: let it look wider (efSearch, ef_search, probes), or build it wider, before promoting."
    ]
