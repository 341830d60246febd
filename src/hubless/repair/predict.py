"""Classes of queries, by the vote of the moved items nearest to them."""

from typing import Any, NamedTuple

import numpy as np

from ..moved_neighbors import MovedNeighbors
from ..neighbors.knn import exhaustive, vote
from ..stores.store import Store, StoreError
from .before_reading import (
    check_asked,
    check_model,
    check_named,
    check_queries,
    check_queries_of,
    opened_queries,
)
from .index_items import (
    Source,
    as_model,
    as_repair,
    as_store,
    as_texts,
    has_label,
    items_for,
    read_queries,
)
from .repair import Repair


class Predictions(NamedTuple):
    """The class of each query."""

    ids: list[Any]  # of the queries
    classes: np.ndarray  # (n,)


def predict_index(
    model: Any,
    queries: Any,
    source: Source | None = None,
    *,
    labels: str | None = None,
    n_neighbors: int | None = None,
    progress: bool | None = False,
) -> Predictions:
    """Classify queries by the vote of the moved items nearest to them.

    A store that this model moved is searched as it is, by its own index. The items of any other store are
    read, moved in memory and searched exactly.

    Parameters
    ----------
    model : folder, Repair, mover or classifier
        A classifier contains its moved items, and ignores `source`, `labels` and `n_neighbors`.
    queries : array of shape (n, d), name of a store, or Store
    source : name of a store, or Store, optional
        The items that vote.
    labels : str, optional
        Column with the classes of items, by default the one that the model learned from.
    n_neighbors : int, optional
        Items that vote, by default as many as were chosen with the model.
    progress : bool or None
        Whether to show a progress bar; None shows one on a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> y = np.arange(90) % 3
    >>> X = 9 * np.eye(3)[y] + np.random.default_rng(0).standard_normal((90, 3))
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> from hubless.stores.opening import open_store
    >>> np.save("labels.npy", y)
    >>> items = open_store("items.npy", items="labels.npy")
    >>> predictions = repair.predict_index(model, X[:5], items, labels="label", n_neighbors=1)
    >>> predictions.classes.tolist() == y[:5].astype(str).tolist()
    True
    """
    loaded, queries = as_model(model), opened_queries(queries)
    if isinstance(loaded, MovedNeighbors):
        check_queries(check_asked(queries).width, int(loaded.n_features_in_), "the classifier")
        ids, vectors, *_ = read_queries(queries)
        classes = loaded.predict(vectors.astype(np.asarray(loaded.moved_).dtype))
        return Predictions(ids.tolist(), np.asarray(classes))
    if source is None:
        raise StoreError("name the items that vote: source, --source SOURCE.")
    repair, store = as_repair(loaded), as_store(source)
    label, mark = labels or repair.learned.get("column"), store.mark()
    if label is None:
        raise StoreError("the model did not learn from a column of classes: name one (labels, --labels).")
    is_moved = mark is not None and mark.model == repair.hash
    if is_moved:
        check_named(store, store.facts(), [label])
    else:
        check_model(repair, store, [label])
    check_queries_of(repair, check_asked(queries).width, store.name)
    ids, vectors, *_ = read_queries(queries)
    k = n_neighbors or int(repair.learned.get("n_neighbors", 5))
    if is_moved:
        return Predictions(ids.tolist(), _vote_by_index(store, repair.as_queries(vectors), label, k))
    return Predictions(ids.tolist(), _vote_in_memory(repair, store, vectors, label, k, progress))


def _vote_by_index(store: Store, queries: np.ndarray, label: str, k: int) -> np.ndarray:
    """Let the items that a moved index finds vote."""
    answers = store.search(queries, k).tolist()
    batch = store.fetch([*{value: None for row in answers for value in row if value is not None}], [label])
    known = batch.take(has_label(batch.columns[label]))
    by_id = dict(zip(known.ids.tolist(), as_texts(known.columns[label]), strict=True))
    votes = [[by_id[value] for value in row if value in by_id] for row in answers]
    if not all(votes):
        raise StoreError(
            f"{votes.count([])} queries have no item with a {label} among their {k} nearest: raise k (-k)."
        )
    return np.array([_majority(np.array([row]))[0] for row in votes])


def _vote_in_memory(
    model: Repair, store: Store, queries: np.ndarray, label: str, k: int, progress: bool | None
) -> np.ndarray:
    """Read and move all items, and let the nearest vote."""
    items = items_for(model, store, list(dict.fromkeys([label, *model.columns])), progress=progress)
    items = items.labeled(label).in_space(model.metric)
    moved = items.moved(model)
    queries = model.as_queries(items.comparable(queries, model))
    rows = exhaustive(queries, moved, k, "ip" if model.stored_metric == "ip" else "l2")
    return _majority(as_texts(items.columns[label]).astype(str)[rows])


def _majority(labels: np.ndarray) -> np.ndarray:
    """Return the most frequent label of each row, nearest first; a tie goes to the class of the nearest."""
    names, codes = np.unique(labels, return_inverse=True)
    return names[vote(codes.reshape(labels.shape))]
