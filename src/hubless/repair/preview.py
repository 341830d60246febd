"""Show what queries would find after the move, from the index as it is: fetch items, move and rank them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.types import ArrayLike
from ..neighbors.knn import unit
from ..stores.store import Batch, Facts, Store, StoreError
from ..support.progress import reports_steps, step
from ..support.text import printable_lines
from .before_reading import check_asked, check_named, check_queries_of, opened_queries
from .defaults import FETCHED
from .index_items import Model, Source, as_repair, as_store, read_queries
from .movable import check_movable
from .repair import Repair

SHOWN = 3  # queries, where no rows are given
WIDTH = 50  # characters of an item


@dataclass(frozen=True)
class Preview:
    """One query: the nearest items now, and after the move."""

    query: Any
    before: list[dict[str, Any]]  # id, distance, text; none where queries have another width than items
    after: list[dict[str, Any]]  # the same, and "was": the rank before, or None

    def __str__(self) -> str:
        if self.after and not self.before:
            head = [f"query {self.query}", "      after (now, the items have another width)"]
            return printable_lines(
                [*head, *(f"{i:>4}  {_line(item)}" for i, item in enumerate(self.after, 1))]
            )
        lines = [f"query {self.query}", f"      {'now':<{WIDTH}}  after"]
        for rank, (old, new) in enumerate(zip(self.before, self.after, strict=True), 1):
            came = "" if new["was"] == rank else f"(was {new['was']})"
            lines.append(f"{rank:>4}  {_line(old):<{WIDTH}}  {_line(new)} {came}")
        return printable_lines(lines)


def _line(item: dict[str, Any]) -> str:
    text = "" if item.get("text") is None else f" {item['text']}"
    whole = f"{item['id']}{text}"
    return whole if len(whole) <= WIDTH else whole[: WIDTH - 1] + "…"


@reports_steps
def preview_index(
    model: Model,
    source: Source,
    queries: ArrayLike | Source | None = None,
    *,
    rows: Sequence[int] | None = None,
    like: Sequence[Any] | None = None,
    k: int = 10,
    fetched: int = FETCHED,
    text: str | None = None,
    progress: bool | None = False,
) -> list[Preview]:
    """Show what queries find now and would find after the move; nothing is written.

    Parameters
    ----------
    model : folder, Repair or mover
    source : name of a store, or Store
    queries : array of shape (n, d), name of a store, or Store, optional
        Give these, or `like`.
    rows : sequence of int, optional
        Which queries, by their numbers from 0; by default the first three.
    like : sequence of ids, optional
        Use the vectors of these items as queries.
    k : int
        Answers to show.
    fetched : int
        Items that are fetched from the index per query and ranked again; no others are considered. Where
        queries have another width than the items, the index cannot search for them: all items are read.
    text : str, optional
        Column to show.
    progress : bool or None
        Whether to report long steps; None reports them on a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> (preview,) = repair.preview_index(model, "items.npy", X[:1], k=3)
    >>> len(preview.before), len(preview.after)
    (3, 3)
    """
    repair, store = as_repair(model), as_store(source)
    if (queries is None) == (like is None):
        raise StoreError("give queries (--queries SOURCE) or ids of items to use as queries (--like ID).")
    if like is not None and repair.is_between_spaces:
        raise StoreError(
            f"items of {repair.dimension} columns cannot be queries of a model for those of "
            f"{repair.query_width}: give queries (--queries SOURCE) instead of ids of items (--like)."
        )
    facts, columns = store.facts(), [name for name in (text, repair.label) if name is not None]
    check_movable(repair, store, facts, batches=[])
    check_named(store, facts, columns)
    chosen = _items_as_queries(store, like) if like is not None else _chosen(repair, store, queries, rows)
    vectors = np.asarray(chosen.vectors, dtype=np.float32)
    if repair.is_between_spaces:
        return _among_all(repair, store, facts, chosen._replace(vectors=vectors), k, text)
    with step(f"asking {store.name} {len(vectors):,} queries"):
        batches = [
            store.fetch([i for i in row if i is not None], columns)
            for row in store.search(vectors, min(max(fetched, k), facts.count)).tolist()
        ]
    check_movable(repair, store, facts, batches=batches)
    return [
        _preview(repair, name, query, batch, k, text)
        for name, query, batch in zip(chosen.ids.tolist(), vectors, batches, strict=True)
    ]


def item_to_ask(store: Store) -> Any:
    """Return the id of the first item whose vector can be a query; None where there is none."""
    for batch in store.batches(size=1000):
        usable = np.isfinite(batch.vectors).all(axis=1) & batch.vectors.any(axis=1)
        if usable.any():
            return batch.ids[usable].tolist()[0]
    return None


def _items_as_queries(store: Store, ids: Sequence[Any]) -> Batch:
    """Return items of a store; ids that were typed may be numbers there."""
    kinds = {type(value) for value in next(iter(store.ids()), np.empty(0)).tolist()}
    ids = [int(value) if int in kinds and str(value).lstrip("-").isdigit() else value for value in ids]
    batch = store.fetch(ids)
    if len(batch.ids) != len(ids):
        missing = sorted({*map(str, ids)} - {*map(str, batch.ids.tolist())})
        raise StoreError(f"{store.name} has no items with the ids {', '.join(missing)}.")
    return batch


def _chosen(model: Repair, store: Store, queries: Any, rows: Sequence[int] | None) -> Batch:
    """Return some queries, which are checked before any is read."""
    queries = opened_queries(queries)
    n, width = check_asked(queries)
    check_queries_of(model, width, store.name)
    rows = list(rows or range(min(SHOWN, n)))
    if max(rows) >= n or min(rows) < 0:
        raise StoreError(f"there are {n} queries, numbered from 0; got rows {rows}.")
    batch = read_queries(queries)
    return Batch(batch.ids[rows], batch.vectors[rows], {})


def _among_all(
    model: Repair, store: Store, facts: Facts, queries: Batch, k: int, text: str | None
) -> list[Preview]:
    """Rank all items of a store after the move, batch by batch."""
    found: list[list[dict[str, Any]]] = [[] for _ in queries.ids]
    asked = unit(queries.vectors) if model.metric == "cosine" else queries.vectors
    asked, columns = model.as_queries(asked), [name for name in (text, model.label) if name is not None]
    for batch in store.batches(columns):
        check_movable(model, store, facts, batches=[batch])
        moved = model.move_batch(batch)
        texts = [None] * len(moved) if text is None else batch.columns[text]
        for place, query in enumerate(asked):
            distances = _distances(moved, query, model.metric)
            near = [i for i in np.argsort(distances, kind="stable")[:k].tolist() if distances[i] < np.inf]
            ids = batch.ids[near].tolist()
            more = [
                {"id": id, "distance": float(distances[i]), "text": texts[i], "was": None}
                for id, i in zip(ids, near, strict=True)
            ]
            found[place] = sorted(found[place] + more, key=lambda item: item["distance"])[:k]
    return [Preview(name, [], items) for name, items in zip(queries.ids.tolist(), found, strict=True)]


# ‖x − z‖, or −⟨x, z⟩; ∞ for an item without a vector
def _distances(items: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    items = items.astype(np.float64)
    distances = -(items @ query) if metric == "ip" else np.linalg.norm(items - query, axis=1)
    return np.where(np.isnan(distances), np.inf, distances)


def _preview(model: Repair, name: Any, query: np.ndarray, batch: Batch, k: int, text: str | None) -> Preview:
    """Rank the items that were fetched for a query, nearest first, before and after the move."""
    stored, moved = batch.vectors, model.move_batch(batch)
    if model.metric == "cosine":
        stored, query = unit(stored), unit(query[None])[0]
    asked = model.as_queries(query[None])[0]
    before, after = (_distances(X, x, model.metric) for X, x in ((stored, query), (moved, asked)))
    ids, texts = batch.ids.tolist(), [None] * len(batch.ids) if text is None else batch.columns[text]

    def item(i: int, distances: np.ndarray) -> dict[str, Any]:
        return {"id": ids[i], "distance": float(distances[i]), "text": texts[i]}

    order = np.argsort(after, kind="stable")[:k].tolist()
    return Preview(
        name,
        [item(i, before) for i in range(min(k, len(ids)))],
        [{**item(i, after), "was": i + 1} for i in order],
    )
