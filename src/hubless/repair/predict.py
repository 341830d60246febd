"""Classes of queries, by the vote of the moved items nearest to them, and how sure they are."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays.library import blocks
from ..arrays.types import ArrayLike
from ..calibration.answers import NONE, QUERIES, FoundItems, wanted, winners_of
from ..calibration.calibrate import Calibrated
from ..calibration.item_scores import ItemScores
from ..calibration.unknown import unknown_label, with_unknown
from ..moved_neighbors import MovedNeighbors
from ..neighbors.knn import exhaustive, unit
from ..stores.store import Store, StoreError
from ..support.progress import reports_steps, step
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
    """The class of each query; the rest is None where the model was not calibrated."""

    ids: list[Any]  # of the queries
    classes: np.ndarray  # (n,); with `reject`, another label for queries unlike anything stored
    probabilities: np.ndarray | None = None  # (n,): of the class that the vote gave
    familiarity: np.ndarray | None = None  # (n,)
    rejected: np.ndarray | None = None  # (n,), bool; only with `reject`


@reports_steps
def predict_index(
    model: Any,
    queries: ArrayLike | Source,
    source: Source | None = None,
    *,
    labels: str | None = None,
    n_neighbors: int | None = None,
    reject: float | None = None,
    unknown: Any = None,
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
    reject : float, optional
        Answer `unknown` for queries of a familiarity of at most this: the share of queries of known classes
        that may be refused by mistake, such as 0.05. Needs a calibrated model.
    unknown : label, optional
        The answer for such queries: by default "unknown" for texts and -1 for numbers.
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
        return _by_classifier(loaded, queries, reject, unknown)
    if source is None:
        raise StoreError("name the items that vote: source, --source SOURCE.")
    repair, store = as_repair(loaded), as_store(source)
    label, mark = labels or repair.learned.get("column"), store.mark()
    if label is None:
        raise StoreError("the model did not learn from a column of classes: name one (labels, --labels).")
    k = n_neighbors or int(repair.learned.get("n_neighbors", 5))
    scores = _scores_for(repair, label, k)
    if reject is not None:
        if scores is None:
            raise StoreError(_why_uncalibrated(repair, label, k))
        scores.check_reject(reject)
    is_moved = mark is not None and mark.model == repair.hash
    if is_moved:
        check_named(store, store.facts(), [label])
    else:
        check_model(repair, store, [label])
    check_queries_of(repair, check_asked(queries).width, store.name)
    ids, vectors, *_ = read_queries(queries)
    search = _Search(repair, store, label, k if scores is None else wanted(k))
    found = search.by_index(vectors) if is_moved else search.in_memory(vectors)
    with step(f"answering {len(vectors):,} queries"):
        answers = _calibrated(found, k, scores)
    return _predictions(ids.tolist(), answers, search.names, reject, unknown)


def _by_classifier(model: Any, queries: Any, reject: float | None, unknown: Any) -> Predictions:
    check_queries(check_asked(queries).width, int(model.n_features_in_), "the classifier")
    if reject is not None:
        unknown_label(unknown, model._check_familiar(reject))
    ids, vectors, *_ = read_queries(queries)
    vectors = vectors.astype(np.asarray(model.moved_).dtype)
    with step(f"classifying {len(vectors):,} queries"):
        if model.calibration_.method is None:
            return Predictions(ids.tolist(), np.asarray(model.predict(vectors)))
        answers = model._answers(vectors, "predict")
    own = np.asarray(answers.probabilities).max(axis=1)  # that of the class voted for is the largest
    answers = Calibrated(np.asarray(answers.winners), own, answers.familiarity)
    return _predictions(ids.tolist(), answers, np.asarray(model.classes_), reject, unknown)


def _predictions(
    ids: list[Any], answers: Calibrated, names: np.ndarray, reject: float | None, unknown: Any
) -> Predictions:
    winners, probabilities, familiarity = answers
    classes, rejected = names[winners], None
    if reject is not None:
        rejected = np.asarray(familiarity) <= reject
        classes = with_unknown(classes, rejected, unknown_label(unknown, names))
    return Predictions(ids, classes, probabilities, familiarity, rejected)


# --- models for an index ------------------------------------------------------------------------------------


def _scores_for(model: Repair, label: str, k: int) -> ItemScores | None:
    """Return what the model learned of probabilities, where that is about this column and this vote."""
    scores = model.scores
    if scores is None or not scores.has_classes:
        return None
    return scores if (label, k) == (model.learned.get("column"), scores.n_neighbors_) else None


def _why_uncalibrated(model: Repair, label: str, k: int) -> str:
    """Return why queries cannot be refused, and what to do."""
    if model.scores is not None and model.scores.has_classes:
        column, n = model.learned.get("column"), model.scores.n_neighbors_
        return (
            f"reject is calibrated for the column {column!r} and {n} items that vote; got {label!r} and {k}. "
            "Leave out labels (--labels) and n_neighbors (-k), or leave out reject (--reject)."
        )
    return (
        "the model has no calibration, so it cannot refuse queries (reject, --reject): it was learned by an "
        "older hubless, on a sample, from answers, or was updated since. Fit it again from labels, in memory."
    )


class _Search:
    """Finds the moved items of a store that are nearest to queries; `names` are the classes found so far."""

    def __init__(self, model: Repair, store: Store, label: str, width: int) -> None:
        self.model, self.store, self.label, self.width = model, store, label, width
        known = [] if model.scores is None or not model.scores.has_classes else model.scores.classes_.tolist()
        self.codes = {name: code for code, name in enumerate(known)}

    @property
    def names(self) -> np.ndarray:
        """The classes, by their codes."""
        return np.array([*self.codes])

    def in_memory(self, queries: np.ndarray) -> Iterator[tuple[np.ndarray, FoundItems, int]]:
        """Read and move all items, and yield the nearest of a block of queries at a time."""
        columns = list(dict.fromkeys([self.label, *self.model.columns]))
        items = items_for(self.model, self.store, columns)
        items = items.labeled(self.label).in_space(self.model.metric)
        moved, codes = items.moved(self.model), self._codes(items.columns[self.label])
        queries = self.model.as_queries(items.comparable(queries, self.model))
        metric = "ip" if self.model.stored_metric == "ip" else "l2"
        rows = exhaustive(queries, moved, self.width, metric)
        for part in blocks(len(queries), QUERIES):
            yield queries[part], FoundItems(moved[rows[part]], codes[rows[part]]), len(self.codes)

    def by_index(self, queries: np.ndarray) -> Iterator[tuple[np.ndarray, FoundItems, int]]:
        """Yield what a moved index finds for a block of queries at a time, as it finds it."""
        queries = self.model.as_queries(queries)
        queries = unit(queries) if self.model.metric == "cosine" else queries
        for part in blocks(len(queries), QUERIES):
            yield queries[part], self._found(queries[part]), len(self.codes)

    def _found(self, queries: np.ndarray) -> FoundItems:
        found = self.store.search(queries, self.width).tolist()
        ids = [*{value: None for row in found for value in row if value is not None}]
        batch = self.store.fetch(ids, [self.label])
        known = batch.take(has_label(batch.columns[self.label]))
        codes = self._codes(known.columns[self.label])
        places = {value: place for place, value in enumerate(known.ids.tolist())}
        rows = [[places[value] for value in row if value in places] for row in found]
        if not all(rows):
            raise StoreError(
                f"{rows.count([])} queries have no item with a {self.label} among their {self.width} "
                "nearest: raise k (-k)."
            )
        width = max(map(len, rows))
        padded = np.array([[*row, *[row[0]] * (width - len(row))] for row in rows])
        is_none = np.arange(width) >= np.array([[len(row)] for row in rows])
        vectors = unit(known.vectors) if self.model.metric == "cosine" else known.vectors
        return FoundItems(vectors[padded], np.where(is_none, NONE, codes[padded]))

    def _codes(self, labels: Any) -> np.ndarray:
        """Return class numbers, new ones for new classes."""
        texts = as_texts(labels).astype(str).tolist()
        return np.array([self.codes.setdefault(text, len(self.codes)) for text in texts], dtype=np.int64)


def _calibrated(
    found: Iterator[tuple[np.ndarray, FoundItems, int]], k: int, scores: ItemScores | None
) -> Calibrated:
    """Return the class of each query; its probability and familiarity where the model knows them."""
    parts = []
    for queries, answers, n_classes in found:
        if scores is None:
            parts.append(Calibrated(winners_of(answers.codes, k), None, None))
        else:
            answered = scores.classify(queries, answers, n_classes)
            own = answered.probabilities.max(axis=1)
            parts.append(answered._replace(probabilities=own))
    winners, p, familiarity = (
        None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return Calibrated(winners, p, familiarity)
