"""What a model changes for the items of an index, for queries with known answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..evaluation import Evaluation, Pair, evaluate_classes, evaluate_relevance
from ..stores.store import StoreError
from .collection import Collection, are_known, as_texts
from .pairs import Judged
from .repair import Repair


def evaluate_pairs(
    model: Repair, items: Collection, judged: Judged, k: int = 10, *, metric: str | None = None
) -> Evaluation:
    """Hit rate, MRR, nDCG@k and recall@k of judged queries, with seen and unseen items apart.

    An item is seen if the model learned from a query of its own; a query is, if one of its items is. `metric`
    is that of the search, by default that which the items are compared by.
    """
    items = items.in_space(model.metric)
    stored = Pair(items.vectors, items.moved(model))
    queries = items.comparable(judged.queries)
    taught = set(model.facts.get("learned", {}).get("seen", []))
    seen = np.array([not taught.isdisjoint(own) for own in judged.relevant], dtype=bool)
    return evaluate_relevance(
        stored,
        Pair(queries, queries),
        judged.rows(items.places),
        k,
        parts={"seen": seen, "unseen": ~seen} if taught else None,
        metric=metric or items.metric,
        notes=[*_learned_from(model, judged), *missing(items)],
    )


def _learned_from(model: Repair, judged: Judged) -> list[str]:
    taught = set(map(str, model.facts.get("learned", {}).get("query ids", [])))
    again = sum(str(own) in taught for own in judged.ids)
    if not again:
        return []
    return [f"The model was learned from {again:,} of these {len(judged.ids):,} queries: they flatter it."]


def missing(items: Collection) -> list[str]:
    """A note of rows that have no vector."""
    return [f"{items.missing:,} rows have no vector and play no part."] if items.missing else []


def evaluate_labels(
    model: Repair,
    items: Collection,
    label: str,
    queries: np.ndarray,
    truth: Sequence[Any],
    n_neighbors: int | None = None,
    *,
    metric: str | None = None,
) -> Evaluation:
    """Accuracy of the vote of the nearest items, and the share of neighbours of the right class.

    As many vote as were chosen with the model, and before as many as were best without it; or `n_neighbors`
    in both. Items and queries without a label play no part. `metric` is that of the search, by default that
    which the items are compared by.
    """
    if len(truth) != len(queries):
        raise StoreError(f"one label per query is needed; got {len(truth)} for {len(queries)} queries.")
    known = are_known(truth)
    if not known.any():
        raise StoreError("no query has a label to compare with.")
    whole, items = items, items.labeled(label).in_space(model.metric)
    labels = as_texts(items.columns[label])
    asked = as_texts([value for value, kept in zip(truth, known, strict=True) if kept])
    left_out = [(len(whole.ids) - len(items.ids), "items"), (int((~known).sum()), "queries")]
    notes = [f"{count:,} {what} have no label and play no part." for count, what in left_out if count]
    notes += missing(items)
    stored = Pair(items.vectors, items.moved(model))
    queries = items.comparable(queries[known])
    learned = model.facts.get("learned", {})
    after = n_neighbors or int(learned.get("n_neighbors", 5))
    ks = Pair(n_neighbors or int(learned.get("n_neighbors before") or after), after)
    by = metric or items.metric
    return evaluate_classes(stored, Pair(queries, queries), labels, asked, ks, metric=by, notes=notes)
