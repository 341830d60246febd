"""The share of true neighbours that an approximate index finds, before and after a move.

Items that were moved close together are harder to tell apart for an approximate index. Where that costs
answers, the index should search more widely.
"""

import numpy as np

from ..arrays.inputs import have_length
from ..evaluation import BeforeAfter
from ..neighbors.knn import exhaustive
from ..stores.store import Batch, Store
from .index_items import read_rows

K, QUERIES, ROWS = 10, 100, 100_000  # neighbours, items used as queries, rows that are read at most
LOST = 0.02  # recall that may be lost without a note


# |answers ∩ true neighbours| / k
def recall(store: Store, queries: np.ndarray, metric: str, rows: Batch | None = None) -> float:
    """Return the share of the true neighbours that the index of a store finds; `rows` are all of its rows."""
    ids, vectors, *_ = read_rows(store) if rows is None else rows
    known = have_length(vectors)
    truth = ids[known][exhaustive(queries, vectors[known], K, metric)].tolist()
    answers = store.search(queries, K).tolist()
    shared = [len({*near} & {*answer}) for near, answer in zip(truth, answers, strict=True)]
    return sum(shared) / sum(map(len, truth))


def _queries(rows: Batch) -> np.ndarray:
    """Return the vectors of some rows, as queries."""
    known = rows.vectors[have_length(rows.vectors)]
    return known[np.random.default_rng(0).permutation(len(known))[:QUERIES]]


def measure_recall(blue: Store, green: Store) -> BeforeAfter | None:
    """Return the recall of the original and of the moved index; None where there is nothing to measure."""
    facts = green.facts()
    metric = facts.metric or "l2"
    if facts.index.startswith("exhaustive") or not K < facts.count <= ROWS:
        return None
    rows = moved = read_rows(blue)
    if facts.dimension != rows.vectors.shape[1]:  # no item of blue can be a query of green
        moved = read_rows(green)
    queries, moved_queries = _queries(rows), _queries(moved)
    if not len(queries):
        return None
    return BeforeAfter(recall(blue, queries, metric, rows), recall(green, moved_queries, metric))


def compare_recall(blue: Store, green: Store) -> list[str]:
    """Return a note where the moved index finds fewer of the true neighbours than the original does."""
    measured = measure_recall(blue, green)
    if measured is None or measured.after >= measured.before - LOST:
        return []
    return [
        f"the moved index ({green.facts().index}) finds {measured.after:.1%} of the true neighbours, the "
        f"original {measured.before:.1%}. Widen its search (ef, expansion_search, nprobe) or build a larger "
        "graph first."
    ]
