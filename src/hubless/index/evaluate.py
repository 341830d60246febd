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
    queries = items.comparable(judged.queries)
    taught = set(model.facts.get("learned", {}).get("seen", []))
    seen = np.array([not taught.isdisjoint(own) for own in judged.relevant], dtype=bool)
    return evaluate_relevance(
        Pair(items.vectors, items.moved(model)),
        Pair(queries, queries),
        judged.rows(items.places),
        k,
        parts={"seen": seen, "unseen": ~seen} if taught else None,
        metric=metric or items.metric,
    )


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
    strange = sorted(set(asked.tolist()) - set(labels.tolist()))
    notes = [f"{len(strange)} classes of queries have no item: {', '.join(strange[:5])}"] if strange else []
    left_out = [(len(whole.ids) - len(items.ids), "items"), (int((~known).sum()), "queries")]
    notes += [f"{count:,} {what} have no label and play no part." for count, what in left_out if count]
    queries = items.comparable(queries[known])
    learned = model.facts.get("learned", {})
    after = n_neighbors or int(learned.get("n_neighbors", 5))
    ks = Pair(n_neighbors or int(learned.get("n_neighbors before") or after), after)
    stored = Pair(items.vectors, items.moved(model))
    by = metric or items.metric
    return evaluate_classes(stored, Pair(queries, queries), labels, asked, ks, metric=by, notes=notes)
