"""What a page draws and tells of single objects and queries: points, cards of hubs, queries that changed."""

from typing import Any, NamedTuple

import numpy as np

from ..evaluation import Asked, Pair
from .figures import class_names
from .places import CARDS, Drawn, Places
from .shown import LONG, Shown, cut, name, thumbnail

CAPTURED = 3  # queries on a card
CHANGED = 100  # queries told of those that were fixed, and of those that were broken
NEIGHBORS = 5  # of such a query
SHORT = 300  # characters of a text of a neighbour
STEPS = 2**16 - 1  # of a place along an axis


class Counts(NamedTuple):
    """Occurrences of each object among the neighbours of queries, (n,), and the wrong ones of them."""

    all: Pair
    wrong: Pair


def counts(asked: Asked, occurrence: Pair) -> Counts:
    """N_k is counted already; the wrong ones are counted here."""
    n = len(asked.stored.before)
    wrong = (
        np.bincount(found[bad], minlength=n) for found, bad in zip(asked.found, asked.wrong, strict=True)
    )
    return Counts(occurrence, Pair(*wrong))


def changed_rows(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of broken and of fixed queries, at most CHANGED of each, at even steps."""
    before, after = asked.right
    both = (np.flatnonzero(before & ~after), np.flatnonzero(after & ~before))
    return tuple(  # type: ignore[return-value]
        rows if len(rows) <= CHANGED else rows[np.linspace(0, len(rows) - 1, CHANGED).astype(int)]
        for rows in both
    )


def details(
    asked: Asked, shown: Shown, counted: Counts, drawn: Drawn, places: Places, layout: str, length: int
) -> dict[str, Any]:
    """All of it; arrays stay arrays. `length` is that of the texts of points, in characters."""
    codes: Pair | None = None
    if asked.labels is not None and asked.truth is not None:
        names = class_names(asked)
        codes = Pair(*(np.searchsorted(names, own).astype(np.uint32) for own in (asked.labels, asked.truth)))
    return {
        "layout": {"name": layout, "words": places.words},
        "sampled": drawn.words,
        **_points(asked, shown, counted, drawn, places, codes, length),
        "hubs": [_card(asked, shown, counted, drawn, int(row)) for row in _hubs(counted)],
        "changed": [
            _change(asked, shown, drawn, int(row), status)
            for status, rows in zip(("broken", "fixed"), changed_rows(asked), strict=True)
            for row in rows
        ],
    }


def _points(
    asked: Asked,
    shown: Shown,
    counted: Counts,
    drawn: Drawn,
    places: Places,
    codes: Pair | None,
    length: int,
) -> dict[str, Any]:
    """Columns of the drawn objects and queries."""
    low = np.min([own.min(axis=0) for own in (*places.items, places.queries)], axis=0)
    high = np.max([own.max(axis=0) for own in (*places.items, places.queries)], axis=0)
    size = float((high - low).max()) or 1.0  # one scale for both axes: the map keeps its shape
    margin = (size - (high - low)) / 2

    def xy(points: np.ndarray) -> np.ndarray:
        return np.round((points - low + margin) / size * STEPS).clip(0, STEPS).astype(np.uint16)

    (before, after), asking = map(xy, places.items), xy(places.queries)
    items, queries = drawn.items, drawn.queries
    place = np.full(len(asked.stored.before), -1, dtype=np.int32)
    place[items] = np.arange(len(items))
    bits = 1 << np.arange(asked.found.before.shape[1])
    columns: dict[str, Any] = {
        "id": [name(shown.ids[i]) for i in items.tolist()],
        "text": _texts(shown.texts, items, length),
        "label": None if codes is None else codes.before[items],
    }
    own: dict[str, Any] = {
        "id": [name(shown.query_ids[i]) for i in queries.tolist()],
        "text": _texts(shown.query_texts, queries, length),
        "label": None if codes is None else codes.after[queries],
        "x": asking[:, 0],
        "y": asking[:, 1],
    }
    for i, points in enumerate((before, after)):
        columns |= {f"x{i}": points[:, 0], f"y{i}": points[:, 1]}
        columns |= {f"n{i}": counted.all[i][items].astype(np.uint32)}
        columns |= {f"bad{i}": counted.wrong[i][items].astype(np.uint32)}
        own |= {f"right{i}": asked.right[i][queries].astype(np.uint8)}
        own |= {f"near{i}": place[asked.found[i][queries]].reshape(-1)}
        own |= {f"wrong{i}": (asked.wrong[i][queries] @ bits).astype(np.uint16)}
    return {"items": columns, "queries": own}


def _texts(texts: Any, rows: np.ndarray, length: int) -> list[str | None] | None:
    return None if texts is None or length <= 0 else [cut(texts[i], length) for i in rows.tolist()]


def _hubs(counted: Counts) -> np.ndarray:
    """Row numbers of the busiest objects before, that are returned at all."""
    order = np.argsort(-counted.all.before, kind="stable")[:CARDS]
    return np.asarray(order[counted.all.before[order] > 0])


def _told(texts: Any, labels: np.ndarray | None, ids: Any, row: int, length: int) -> dict[str, Any]:
    """What is shown of one object or query."""
    return {
        "id": name(ids[row]),
        "text": None if texts is None else cut(texts[row], length),
        "label": None if labels is None else name(labels[row]),
    }


def _place(drawn: np.ndarray, row: int) -> int:
    """Place of a row among those that are drawn; −1 where it is not."""
    place = int(np.searchsorted(drawn, row))
    return place if place < len(drawn) and drawn[place] == row else -1


def _card(asked: Asked, shown: Shown, counted: Counts, drawn: Drawn, row: int) -> dict[str, Any]:
    """A hub: itself, its counts, and some queries that it captured."""
    queries, ranks = np.nonzero(asked.found.before == row)
    right = ~asked.wrong.before[queries, ranks]  # wrong ones first, then those it is nearest to
    nearest = np.lexsort((queries, ranks, right))[:CAPTURED]
    before, after = (int(own[row]) for own in counted.all)
    wrong = [
        int(bad[row]) / count if count else None
        for bad, count in zip(counted.wrong, (before, after), strict=True)
    ]
    return {
        **_told(shown.texts, asked.labels, shown.ids, row, LONG),
        "place": _place(drawn.items, row),
        "thumbnail": None if shown.images is None else thumbnail(shown.images[row]),
        "before": before,
        "after": after,
        "wrong_before": wrong[0],
        "wrong_after": wrong[1],
        "queries": [
            {
                **_told(shown.query_texts, asked.truth, shown.query_ids, int(queries[i]), SHORT),
                "wrong": bool(asked.wrong.before[queries[i], ranks[i]]),
            }
            for i in nearest
        ],
    }


def _change(asked: Asked, shown: Shown, drawn: Drawn, row: int, status: str) -> dict[str, Any]:
    """A query that is answered in one state alone, with its neighbours in both."""
    return {
        **_told(shown.query_texts, asked.truth, shown.query_ids, row, LONG),
        "status": status,
        "place": _place(drawn.queries, row),
        **{state: _answer(asked, shown, row, i) for i, state in enumerate(("before", "after"))},
    }


def _answer(asked: Asked, shown: Shown, row: int, state: int) -> dict[str, Any]:
    found, wrong = asked.found[state][row], asked.wrong[state][row]
    return {
        "answer": None if asked.answer is None else name(asked.answer[state][row]),
        "neighbors": [
            {**_told(shown.texts, asked.labels, shown.ids, int(item), SHORT), "wrong": bool(bad)}
            for item, bad in zip(found[:NEIGHBORS], wrong, strict=False)
        ],
    }
