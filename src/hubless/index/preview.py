"""What queries would find after an apply, from the index as it is: over-fetch, move, rank again."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..stores.store import Batch, Store
from .apply import check_movable
from .collection import check_queries
from .repair import Repair, unit

FETCHED = 100  # items fetched per query: of the ten nearest after the move, 99 of 100 are among them


@dataclass(frozen=True)
class Preview:
    """One query: the nearest now, and after the move."""

    query: Any
    before: list[dict[str, Any]]  # id, distance, text
    after: list[dict[str, Any]]  # the same, and "was": the rank before, None beyond the fetched

    def __str__(self) -> str:
        lines = [f"query {self.query}", f"      {'now':<50}  after"]
        for rank, (old, new) in enumerate(zip(self.before, self.after, strict=True), 1):
            came = "" if new["was"] == rank else f"(was {new['was']})"
            lines.append(f"{rank:>4}  {_told(old):<50}  {_told(new)} {came}")
        return "\n".join(lines)


def _told(item: dict[str, Any]) -> str:
    text = "" if item.get("text") is None else f" {item['text']}"
    whole = f"{item['id']}{text}".replace("\n", " ")
    return whole if len(whole) <= 50 else whole[:49] + "…"


def preview(
    model: Repair,
    store: Store,
    queries: np.ndarray,
    *,
    names: Any = None,
    k: int = 10,
    fetched: int = FETCHED,
    text: str | None = None,
) -> list[Preview]:
    """Answers before and after for each query; nothing is written.

    Parameters
    ----------
    queries : array of shape (n, d)
    names : sequence of n names, optional
    fetched : int
        Items taken from the index per query and ranked again. One that lies further off cannot come up.
    """
    facts, queries = store.facts(), np.asarray(queries, dtype=np.float32)
    check_movable(model, store, facts, batches=[])
    check_queries(queries, facts.dimension, store.name)
    asked = [value for value in (text, model.label) if value is not None]
    found = [
        store.fetch([i for i in row if i is not None], asked)
        for row in store.search(queries, min(max(fetched, k), facts.count)).tolist()
    ]
    check_movable(model, store, facts, batches=found)
    names = range(len(queries)) if names is None else names
    return [
        _one(model, query, batch, name, k, text)
        for query, batch, name in zip(queries, found, names, strict=True)
    ]


def _one(model: Repair, query: np.ndarray, batch: Batch, name: Any, k: int, text: str | None) -> Preview:
    labels = None if model.label is None else batch.columns[model.label]
    moved = model.move(batch.vectors, batch.ids.tolist(), labels)
    stored = unit(batch.vectors) if model.metric == "cosine" else batch.vectors
    query = unit(query[None])[0] if model.metric == "cosine" else query
    before, after = (np.linalg.norm(own.astype(np.float64) - query, axis=1) for own in (stored, moved))
    texts = batch.columns[text] if text is not None else [None] * len(batch.ids)

    def told(i: int, distance: float) -> dict[str, Any]:
        return {"id": batch.ids[i : i + 1].tolist()[0], "distance": float(distance), "text": texts[i]}

    order = np.argsort(after, kind="stable")[:k]
    return Preview(
        name,
        [told(i, before[i]) for i in range(min(k, len(before)))],
        [{**told(int(i), after[i]), "was": int(i) + 1} for i in order],
    )
