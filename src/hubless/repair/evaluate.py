"""Measure what a model changes for an index, by queries with known answers."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..evaluation import BeforeAfter, Evaluation, evaluate_classes, evaluate_relevance
from ..selection.folds import folds, query_folds
from ..stores.store import Store, StoreError
from ..support.progress import reports_steps
from .before_reading import (
    check_dimension,
    check_items,
    check_model,
    check_queries,
    check_queries_of,
    last_part,
)
from .index_items import (
    IndexItems,
    Model,
    Source,
    as_repair,
    as_store,
    as_texts,
    has_label,
    items_for,
    labeled_rows,
    read_items,
)
from .judgements import Judgements, match_judgements
from .learn_in_memory import learn_from_labels, learn_from_pairs
from .repair import Repair
from .truth import KnownQueries, Truth, read_truth


@reports_steps
def evaluate_index(
    model: Model,
    source: Source,
    queries: Source,
    *,
    labels: str | None = None,
    pairs: str | os.PathLike[str] | None = None,
    query_labels: str | None = None,
    k: int | None = None,
    progress: bool | None = False,
) -> Evaluation:
    """Measure what a model changes for queries with known answers, before and after, by exact search.

    Where queries have another width than the items, there are figures after the move alone.

    Parameters
    ----------
    model : folder, Repair or mover
    source, queries : name of a store, or Store
        Give queries that the model has not learned from.
    labels : str, optional
        Column with the class of each item. Give this or `pairs`.
    pairs : path, optional
        Relevance judgements: a table with query-id, corpus-id and score, or TREC's four columns.
    query_labels : str, optional
        Column with the class of each query; by default the same as `labels`.
    k : int, optional
        Answers that count, by default 10; from labels, neighbours that vote, by default as many as were
        chosen with the model.
    progress : bool or None
        Whether to show a progress bar; None shows one on a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import MoveLabeled, repair
    >>> from hubless.stores.opening import open_store
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> np.save("labels.npy", y)
    >>> items = open_store("items.npy", items="labels.npy")
    >>> repair.evaluate_index(model, items, items, labels="label").hubness.before.n_queries
    90
    """
    truth = Truth(labels, pairs, query_labels, k)
    return answer_index(model, as_store(source), as_store(queries), truth).evaluation


class AnsweredQueries(NamedTuple):
    """Queries with known answers, searched for before and after the move."""

    evaluation: Evaluation
    model: Repair
    items: IndexItems  # that are stored
    query_ids: Sequence[Any]
    learned: Judgements | None = None  # of judged queries, some of which were held out: the others
    held: Judgements | None = None  # those that were held out


def answer_index(
    model: Model,
    store: Store,
    queries: Store,
    truth: Truth,
    *,
    columns: Sequence[str] = (),
) -> AnsweredQueries:
    """Evaluate a model on the items of a store; `columns` of the items are read too."""
    repair = as_repair(model)
    wanted = [*dict.fromkeys([*truth.columns, *columns, *repair.columns])]
    check_model(repair, store, wanted)
    known = read_truth(truth, queries, partial(check_queries_of, repair, name=store.name))
    return answer_queries(repair, items_for(repair, store, wanted), truth, known)


def answer_queries(model: Repair, items: IndexItems, truth: Truth, known: KnownQueries) -> AnsweredQueries:
    """Evaluate a model on items that were read, with the column of classes where there is one."""
    whose = f" of {last_part(known.store.name)}"
    if known.labeled is None:
        judgements = match_judgements(known.store, str(truth.pairs), items, judged=known.judged)
        evaluation = evaluate_pairs(model, items, judgements, truth.k or 10)
        return AnsweredQueries(replace(evaluation, whose=whose), model, items, judgements.ids)
    ids, vectors, columns, _ = known.labeled
    (labels,), label = columns.values(), str(truth.labels)
    evaluation = replace(evaluate_labels(model, items, label, vectors, labels, truth.k), whose=whose)
    return AnsweredQueries(evaluation, model, items.labeled(label), ids[has_label(labels)].tolist())


def evaluate_pairs(model: Repair, items: IndexItems, judgements: Judgements, k: int = 10) -> Evaluation:
    """Measure nDCG, MRR, hit rate and recall at k of judged queries, for seen and unseen items too.

    An item is seen if the model learned from one of its queries; a query is seen if one of its items is.
    """
    items = items.in_space(model.metric)
    stored, queries = before_and_after(model, items, judgements.queries)
    seen_items = set(model.learned.get("seen", []))
    learned_queries = set(map(str, model.learned.get("query ids", [])))
    seen = np.array([not seen_items.isdisjoint(answers) for answers in judgements.relevant], dtype=bool)
    again = sum(str(query) in learned_queries for query in judgements.ids)
    notes = {
        f"The model learned from {again:,} of these {len(judgements.ids):,} queries, so the figures are too "
        "optimistic.": again,
        f"{items.missing:,} rows have no usable vector and are ignored.": items.missing,
        f"{judgements.left_out:,} judgements are on an unknown query or item, or one without a vector.": (
            judgements.left_out
        ),
    }
    evaluation = evaluate_relevance(
        stored,
        queries,
        judgements.rows(items.places),
        k,
        rejected=judgements.rejected_rows(items.places),
        parts={"seen": seen, "unseen": ~seen} if seen_items else None,
        metric=items.search_metric,
        notes=[note for note, count in notes.items() if count],
    )
    return _as_measured(evaluation, model)


def before_and_after(
    model: Repair, items: IndexItems, queries: np.ndarray
) -> tuple[BeforeAfter, BeforeAfter]:
    """Return items and queries as they are compared; for a model between spaces, twice as after the move."""
    check_dimension(model, items.vectors.shape[1], items.name)
    queries = items.comparable(queries, model)
    moved, asked = items.moved(model), model.as_queries(queries)
    if model.is_between_spaces:
        return BeforeAfter(moved, moved), BeforeAfter(asked, asked)
    return BeforeAfter(items.vectors, moved), BeforeAfter(queries, asked)


def _as_measured(evaluation: Evaluation, model: Repair) -> Evaluation:
    """Return an evaluation without figures of what could not be searched for."""
    if not model.is_between_spaces:
        answers = replace(evaluation.answers, is_corrected=model.metric == "ip")
        return replace(evaluation, answers=answers)
    evaluation.notes.append(
        f"Items have {model.dimension} columns and queries {model.query_width}: they can only be compared "
        "after the move, so there are no figures before it."
    )
    return evaluation.after_alone()


def evaluate_labels(
    model: Repair,
    items: IndexItems,
    label: str,
    queries: np.ndarray,
    truth: Sequence[Any],
    n_neighbors: int | None = None,
) -> Evaluation:
    """Measure the accuracy of the vote of the nearest items, and the share of neighbours of the right class.

    After the move, as many vote as were chosen with the model; before it, as many as were best without it;
    or `n_neighbors` in both. Items and queries without a label are ignored.
    """
    if len(truth) != len(queries):
        raise StoreError(f"one label per query is needed; got {len(truth)} for {len(queries)} queries.")
    known = labeled_rows(truth, "query", label)
    whole, items = items, items.labeled(label).in_space(model.metric)
    stored, compared = before_and_after(model, items, queries[known])
    after = n_neighbors or int(model.learned.get("n_neighbors", 5))
    before = n_neighbors or int(model.learned.get("n_neighbors before") or after)
    ignored = {
        "items have no label": len(whole.ids) - len(items.ids),
        "queries have no label": int((~known).sum()),
        "rows have no usable vector": items.missing,
    }
    if model.is_between_spaces:
        before = after
    evaluation = evaluate_classes(
        stored,
        compared,
        as_texts(items.columns[label]),
        as_texts(truth)[known],
        BeforeAfter(before, after),
        metric=items.search_metric,
        notes=[f"{count:,} {what} and are ignored." for what, count in ignored.items() if count],
    )
    return _as_measured(evaluation, model)


# --- on queries that are held out ---------------------------------------------------------------------------


PARTS = 4  # one of them is held out
QUERIES = 5000  # held out at most
MIN_JUDGED = 14  # judged queries, of which ten are left to learn from


def try_index(
    store: Store,
    queries: Store | None,
    truth: Truth,
    *,
    columns: Sequence[str] = (),
    random_state: int = 0,
) -> AnsweredQueries:
    """Learn a model for an index, and measure it on queries that it has not learned from.

    From labels, a quarter of the items is held out, or `queries` are used where there are any; from pairs, a
    quarter of the judged queries is held out. `columns` of the items are read too.
    """
    if truth.labels is None and (truth.pairs is None or queries is None):
        raise StoreError("pairs (--pairs) need the vectors of their queries: queries, --queries SOURCE.")
    wanted = list(dict.fromkeys([*truth.columns, *columns]))
    facts = check_items(store, wanted)
    if queries is None:
        check_enough(facts.count)
        items = read_items(store, wanted, may_harm=True)
        return try_labels(items, str(truth.labels), k=truth.k, random_state=random_state)
    check_width = partial(check_queries, dimension=facts.dimension, name=store.name)
    known = read_truth(truth, queries, check_width)
    items = read_items(store, wanted, may_harm=True)
    if truth.labels is not None:
        model = learn_from_labels(items, truth.labels, random_state=random_state)
        return answer_queries(model, items, truth, known)
    judgements = match_judgements(queries, str(truth.pairs), items, judged=known.judged)
    return try_pairs(items, judgements, k=truth.k or 10, random_state=random_state)


def check_enough(n: int) -> None:
    """Raise a StoreError where items are too few to hold some out."""
    if n < 2 * PARTS:
        raise StoreError(f"{n} items are too few to hold some out: give {2 * PARTS} or more.")


def try_labels(
    items: IndexItems,
    label: str,
    *,
    mover: str = "auto",
    k: int | None = None,
    random_state: int = 0,
) -> AnsweredQueries:
    """Hold out a quarter of the items of each class as queries, and learn from the others; a note says so."""
    whole, items = items, items.labeled(label)
    n = len(items.ids)
    check_enough(n)
    _, codes = np.unique(as_texts(items.columns[label]), return_inverse=True)
    _, held = folds(codes, np.arange(n), PARTS, random_state)[0]
    if len(held) > QUERIES:
        held = np.random.default_rng(random_state).choice(held, QUERIES, replace=False)
    is_query = np.isin(np.arange(n), held)
    queries, stored = items.take(is_query), items.take(~is_query)
    model = learn_from_labels(stored, label, mover=mover, random_state=random_state)
    evaluation = evaluate_labels(model, stored, label, queries.vectors, queries.columns[label], k)
    if n < len(whole.ids):
        evaluation.notes.append(f"{len(whole.ids) - n:,} items have no label and are ignored.")
    evaluation.notes.append(
        f"{len(held):,} of {n:,} items were held out as queries; the others were learned from and stored."
    )
    evaluation = replace(evaluation, whose=f", held out of {n:,} items")
    return AnsweredQueries(evaluation, model, stored, queries.ids.tolist())


def try_pairs(
    items: IndexItems,
    judgements: Judgements,
    *,
    k: int = 10,
    random_state: int = 0,
) -> AnsweredQueries:
    """Hold out a quarter of the judged queries, and learn from the others; a note says so."""
    n = len(judgements.queries)
    if n < MIN_JUDGED:
        raise StoreError(f"{n} judged queries are too few to hold some out: give {MIN_JUDGED} or more.")
    learned, held = query_folds(n, PARTS, np.random.default_rng(random_state))[0]
    others, queries = judgements.take(learned), judgements.take(np.sort(held))
    model = learn_from_pairs(items, others, random_state=random_state)
    evaluation = evaluate_pairs(model, items, queries, k)
    evaluation.notes.append(
        f"{len(held):,} of {n:,} judged queries were held out; the others were learned from."
    )
    evaluation = replace(evaluation, whose=f", held out of {n:,} judged ones")
    return AnsweredQueries(evaluation, model, items, queries.ids, others, queries)
