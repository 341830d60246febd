"""Try a repair before there is a model: hold queries out, learn from the rest, measure on those held out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..evaluation import Evaluation
from ..selection import folds
from ..stores.store import StoreError
from .collection import Collection, as_texts
from .evaluate import evaluate_labels, evaluate_pairs
from .learn import learn_from_labels, learn_from_pairs
from .pairs import Judged
from .repair import Repair

PARTS = 4  # one of them is held out
QUERIES = 5000  # held out at most


class Rehearsal(NamedTuple):
    """What was learned from a part, and what it changes for the rest."""

    model: Repair
    evaluation: Evaluation
    items: Collection  # that were stored
    query_ids: Sequence[Any]
    query_columns: dict[str, list[Any]]  # where items were held out as queries
    words: str


def rehearse_labels(
    items: Collection,
    label: str,
    *,
    mover: str = "auto",
    k: int | None = None,
    metric: str | None = None,
    random_state: int = 0,
) -> Rehearsal:
    """Hold out a quarter of the items of each class as queries, and learn from the others."""
    whole, items = items, items.labeled(label)
    classes = as_texts(items.columns[label])
    n = len(classes)
    if n < 2 * PARTS:
        raise StoreError(f"{n} items are too few to hold some out: give {2 * PARTS} or more.")
    _, codes = np.unique(classes, return_inverse=True)
    _, held = folds(codes, np.arange(n), PARTS, random_state)[0]
    rng = np.random.default_rng(random_state)
    held = np.sort(rng.choice(held, QUERIES, replace=False)) if len(held) > QUERIES else held
    asked = np.zeros(n, dtype=bool)
    asked[held] = True
    queries, stored = items.take(asked), items.take(~asked)
    model = learn_from_labels(stored, label, mover=mover, random_state=random_state)
    truth = queries.columns[label]
    evaluation = evaluate_labels(model, stored, label, queries.vectors, truth, k, metric=metric)
    unlabeled = len(whole.ids) - n
    if unlabeled:
        evaluation.notes.append(f"{unlabeled:,} items have no label and play no part.")
    words = f"{len(held):,} of {n:,} items were held out as queries; the others were learned from and stored."
    return Rehearsal(model, evaluation, stored, queries.ids.tolist(), queries.columns, words)


def rehearse_pairs(
    items: Collection,
    judged: Judged,
    *,
    k: int = 10,
    metric: str | None = None,
    random_state: int = 0,
    progress: bool | None = False,
) -> Rehearsal:
    """Hold out a quarter of the judged queries, and learn from the others."""
    n, least = len(judged.queries), 14  # ten are left to learn from
    if n < least:
        raise StoreError(f"{n} judged queries are too few to hold a quarter out: give {least} or more.")
    order = np.random.default_rng(random_state).permutation(n)
    parts = np.array_split(order, PARTS)
    held, learned = np.sort(parts[0]), np.sort(np.concatenate(parts[1:]))
    model = learn_from_pairs(items, judged.take(learned), random_state=random_state, progress=progress)
    asked = judged.take(held)
    evaluation = evaluate_pairs(model, items, asked, k, metric=metric)
    words = f"{len(held):,} of {len(order):,} judged queries were held out; the others were learned from."
    return Rehearsal(model, evaluation, items, asked.ids, {}, words)
