"""Questions: what the rows of a log say about each query, whose repeats are one question."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..repair.index_items import IndexItems
from ..repair.judgements import Judgements
from ..stores.store import Store, StoreError
from .click_log import LogRow
from .positions import ETA, propensities, relevance

Worth = dict[int, float]  # row number of an item → how relevant it is, or is estimated to be


@dataclass(frozen=True)
class Lookup:
    """What is needed to understand rows: items and query vectors by id, and how ranks are looked at."""

    places: Mapping[str, int]  # row numbers of items by id
    vectors: Mapping[str, np.ndarray]  # of queries by id, in the space of the items
    propensities: np.ndarray  # by rank

    def has(self, row: LogRow) -> bool:
        """Whether the query of a row is known, and an item of it."""
        items = row.shown if row.judged is None else (row.judged[0],)
        return row.query in self.vectors and any(item in self.places for item in items)


@dataclass(frozen=True)
class Questions:
    """Different queries, each with what is known of its answers."""

    keys: list[str]
    vectors: np.ndarray  # (n, d)
    shown: list[Worth | None]  # of each item that was shown, its estimated relevance; None where judged
    relevant: list[Worth]  # items to learn from, never empty

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def n_pairs(self) -> int:
        """Pairs of a question and an item to learn from."""
        return sum(map(len, self.relevant))

    def judgements(self, items: IndexItems) -> Judgements:
        """Return what is learned from."""
        ids = items.ids.tolist()
        relevant = [{ids[row]: worth for row, worth in known.items()} for known in self.relevant]
        return Judgements(self.vectors, relevant, list(self.keys))


def ask(rows: Sequence[LogRow], known: Lookup) -> Questions:
    """Return the questions of rows that have an answer, in order; what is unknown is left out.

    Of clicks, an item is learned from if it has more clicks than its ranks let expect of an average item:
    ρ̂ above the mean over all that was shown. A judgement takes the place of the clicks of its query.
    """
    clicks: dict[str, Counter[int]] = {}
    expected: dict[str, dict[int, float]] = {}
    judged: dict[str, Worth] = {}
    for row in rows:
        if not known.has(row):
            continue
        if row.judged is not None:
            item, score = row.judged
            judged.setdefault(row.query, {})[known.places[item]] = score  # the last one holds
            continue
        of_query = expected.setdefault(row.query, {})
        for item, p in zip(row.shown, known.propensities, strict=False):
            if item in known.places:
                place = known.places[item]
                of_query[place] = of_query.get(place, 0.0) + float(p)
                clicks.setdefault(row.query, Counter())[place] += item in row.clicked
    total = sum(sum(items.values()) for items in expected.values())
    mean = sum(sum(items.values()) for items in clicks.values()) / total if total else 0.0
    return _questions(clicks, expected, judged, mean, known.vectors)


def _questions(
    clicks: Mapping[str, Counter[int]],
    expected: Mapping[str, dict[int, float]],
    judged: Mapping[str, Worth],
    mean: float,
    vectors: Mapping[str, np.ndarray],
) -> Questions:
    keys, shown, relevant = [], [], []
    for key in dict.fromkeys([*expected, *judged]):
        if key in judged:
            worth, of_shown = judged[key], None
            answers = {item: score for item, score in worth.items() if score > 0}
        else:
            of_shown = relevance(clicks[key], expected[key])
            answers = {item: value for item, value in of_shown.items() if value > mean}
        if answers:
            keys.append(key)
            shown.append(of_shown)
            relevant.append(answers)
    d = len(next(iter(vectors.values()), ()))
    return Questions(keys, np.array([vectors[key] for key in keys]).reshape(-1, d), shown, relevant)


def understand(rows: Sequence[LogRow], items: IndexItems, queries: Store | None, eta: float = ETA) -> Lookup:
    """Return items, query vectors and the curve of attention for the rows of a whole log."""
    places = {str(value): place for place, value in enumerate(items.ids.tolist())}
    vectors = _query_vectors(rows, items, queries)
    known = Lookup(places, vectors, curve_of(rows, eta))
    n_known = sum(map(known.has, rows))
    if 2 * n_known < len(rows):
        raise StoreError(
            f"of {len(rows):,} rows of the log, {len(rows) - n_known:,} name an unknown query or no known "
            f"item of {items.name}. Give the ids of items and queries as columns, or in tables (--items, "
            "--query-items), and the log of this index."
        )
    return known


def curve_of(rows: Sequence[LogRow], eta: float = ETA) -> np.ndarray:
    """Return the probability that each rank was looked at, as `positions` says, from all searches."""
    n_ranks = max((len(row.shown) for row in rows), default=0)
    clicks, shown = np.zeros(max(n_ranks, 1)), np.zeros(max(n_ranks, 1))
    for row in rows:
        shown[: len(row.shown)] += 1
        for rank, item in enumerate(row.shown):
            clicks[rank] += item in row.clicked
    return propensities(clicks, shown, eta)


def _query_vectors(rows: Sequence[LogRow], items: IndexItems, queries: Store | None) -> dict[str, np.ndarray]:
    """Return the vectors that rows have inline, else those of the queries that they name."""
    found: dict[str, Any] = {row.query: row.vector for row in rows if row.vector is not None}
    d = items.vectors.shape[1]
    for row in rows:
        if row.vector is not None and len(row.vector) != d:
            raise StoreError(
                f"line {row.line} of the log has a vector of {len(row.vector)} numbers; the items of "
                f"{items.name} have {d}."
            )
    wanted = {row.query for row in rows} - set(found)
    if wanted and queries is None:
        raise StoreError(
            f"the log names queries by id, such as {min(wanted)!r}, without their vectors. Give the "
            'vectors of all queries (queries, --queries SOURCE), or a "vector" in each row.'
        )
    for batch in () if queries is None or not wanted else queries.batches():
        for query, vector in zip(batch.ids.tolist(), batch.vectors, strict=True):
            if str(query) in wanted and np.isfinite(vector).all():
                found[str(query)] = vector
    if not found:
        return {}
    stacked = items.comparable(np.stack([*found.values()]))
    return dict(zip(found, stacked, strict=True))
