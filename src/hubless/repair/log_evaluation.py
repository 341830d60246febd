"""What a model changes for queries whose answers are not known: hubs beside chance, and whom they capture."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.types import ArrayLike
from ..chance import Chance, measure_chance
from ..hubness import Hubness, measure_hubness
from ..hubs_in_words import hub_table
from ..neighbors.knn import exhaustive
from ..stores.store import Store, StoreError
from ..support.progress import reports_steps, step
from ..support.text import printable_lines
from .before_reading import check_asked, check_model, check_queries_of, opened_queries, text_column
from .evaluate import before_and_after
from .index_items import Model, Source, as_repair, as_store, items_for
from .learn_from_log import read_log

LISTED = 10  # items whose answers changed the most
NO_CHANGE = "No answer changed."
CHANGED = (
    "of the answers changed. Whether they are better takes queries whose answers are known: --pairs or "
    "--labels."
)
WIDTH = 60  # letters of a text that are shown


@dataclass(frozen=True)
class LogEvaluation:
    """Hubs before and after, beside chance; print it."""

    hubness: tuple[Hubness, Hubness]
    chance: Chance
    changed: list[dict[str, Any]]  # items: id, text, and how many queries had them "before" and "after"
    same_answers: float  # share of the answers that did not change
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        before, after = (hubness.as_dict() for hubness in self.hubness)
        return {**vars(self), "hubness": {"before": before, "after": after}, "chance": self.chance.as_dict()}

    def __str__(self) -> str:
        before, after = self.hubness
        lines = [
            f"{before.n_queries:,} queries among {before.n_objects:,} items, {before.k} answers each",
            *hub_table({"before": before, "after": after}, self.chance),
            NO_CHANGE if self.same_answers == 1 else f"{1 - self.same_answers:.1%} {CHANGED}",
        ]
        if self.changed:
            lines.append("items whose number of answers changed the most:")
        for item in self.changed:
            shown = f"{item['id']}  {item.get('text') or ''}"[:WIDTH].rstrip()
            lines.append(f"  {item['before']:>7,} → {item['after']:<7,} {shown}")
        return printable_lines([*lines, *(f"note: {note}" for note in self.notes)])


@reports_steps
def evaluate_log(
    model: Model,
    source: Source,
    queries: ArrayLike | Source,
    *,
    k: int = 10,
    text: str | None = None,
    progress: bool | None = False,
) -> LogEvaluation:
    """Measure what a model changes for queries whose answers are not known, by exact search.

    Parameters
    ----------
    model : folder, Repair or mover
    source : name of a store, or Store
    queries : array of shape (n, d), name of a store, or Store
        Give queries that the model has not learned from.
    k : int
        Answers of a query that are counted.
    text : str, optional
        Column of items to show; by default one named "text", "title" or "name".

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> evaluation = repair.evaluate_log(model, "items.npy", X[:50] + 0.1)
    >>> [hubness.n_queries for hubness in evaluation.hubness]  # before and after
    [50, 50]
    """
    repair, store = as_repair(model), as_store(source)
    if repair.is_between_spaces:
        raise StoreError(
            f"items have {repair.dimension} columns and queries {repair.query_width}: there is nothing to "
            "compare before the move. Give queries whose answers are known: --pairs."
        )
    check_model(repair, store)
    shown, queries = text_column(store, text), opened_queries(queries)
    check_queries_of(repair, check_asked(queries).width, store.name)
    asked, missing = _asked(queries)
    items = items_for(repair, store, [*repair.columns])
    stored, compared = before_and_after(repair, items, asked)
    k = min(k, len(items.ids))
    metrics = items.search_metric, "ip" if repair.stored_metric == "ip" else "l2"
    with step(f"answering {len(asked):,} queries before and after the move"):
        answers = [
            exhaustive(x, z, k, metric) for x, z, metric in zip(compared, stored, metrics, strict=True)
        ]
    before, after = (measure_hubness(found, len(items.ids)) for found in answers)
    same = (answers[0][:, :, None] == answers[1][:, None, :]).any(axis=2).mean()
    changed = _changed(before, after, items.ids)
    if shown is not None and changed:
        texts = store.fetch([item["id"] for item in changed], [shown]).columns[shown]
        changed = [{**item, "text": value} for item, value in zip(changed, texts, strict=True)]
    chance = measure_chance(before.n_queries, before.n_objects, before.k)
    notes = [] if repair.query_note is None else [repair.query_note]
    notes += [f"{missing:,} queries have no vector and were ignored."] if missing else []
    return LogEvaluation((before, after), chance, changed, float(same), notes)


def _asked(queries: Any) -> tuple[np.ndarray, int]:
    """Return the vectors of queries, (m, d), and how many rows have none."""
    if not isinstance(queries, Store):
        return queries, 0
    vectors, missing = read_log(queries)
    if not len(vectors):
        raise StoreError(f"{queries.name} has no query with a vector.")
    return vectors, missing


def _changed(before: Hubness, after: Hubness, ids: np.ndarray) -> list[dict[str, Any]]:
    """Return the items whose number of answers fell or rose the most, as plain data."""
    counts = [np.asarray(hubness.occurrence) for hubness in (before, after)]
    difference = np.abs(counts[1] - counts[0])
    rows = np.argsort(-difference, kind="stable")[:LISTED]
    rows = rows[difference[rows] > 0]
    values = zip(ids[rows].tolist(), *(count[rows].tolist() for count in counts), strict=True)
    return [{"id": name, "before": first, "after": then} for name, first, then in values]
