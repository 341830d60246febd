"""What a page shows of single items and queries: points of the map, cards of hubs, changed queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation import Answers, BeforeAfter
from .explorer import explore, explorer
from .families import describe_families
from .gallery import gallery
from .map_layout import CARDS, DrawnMap, MapPoints, places_of
from .marks import Counts, harm, missed, unjudged
from .pictures import thumbnail

NAME = 80  # characters of an id, or of the name of a class
LONG = 2000  # characters of a text on a card
SHORT = 300  # characters of the text of a point or a neighbour
MISSING = ("NAType", "NaTType")  # types of a missing value in pandas


@dataclass(frozen=True)
class Captions:
    """What a page shows of each item and query; texts and pictures are optional."""

    ids: Sequence[Any]  # (n,)
    query_ids: Sequence[Any]  # (m,)
    texts: Sequence[Any] | None = None
    query_texts: Sequence[Any] | None = None
    images: Any = None  # (n,): paths, bytes, or an array (n, height, width) or (n, height, width, 3)
    title: str | None = None  # by default made of the data
    query_images: Any = None  # (m,), as images
    link: str | None = None  # address of an item, with {id}
    query_link: str | None = None

    def check(self, n: int, m: int) -> None:
        """Raise ValueError where one does not have as many entries as there are objects or queries."""
        of_items, of_queries = ("ids", "texts", "images"), ("query_ids", "query_texts", "query_images")
        for name, count in [*((name, n) for name in of_items), *((name, m) for name in of_queries)]:
            given = getattr(self, name)
            if given is not None and len(given) != count:
                what = "query" if "query" in name else "object"
                raise ValueError(f"{name} must have one entry per {what}, {count}; got {len(given)}.")


def cut(value: Any, length: int) -> str | None:
    """Return the value as a text of at most `length` characters; None for a missing or empty one."""
    if value is None or (isinstance(value, float) and np.isnan(value)) or type(value).__name__ in MISSING:
        return None
    text = str(value)
    if not text:
        return None
    if len(text) <= length:
        return text
    return text[: max(length - 1, 0)].rstrip() + "…"


def cut_texts(value: Any) -> Any:
    """Return nested dicts and lists with every text in them cut."""
    if isinstance(value, dict):
        return {key: cut_texts(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [cut_texts(entry) for entry in value]
    return cut(value, LONG) or "" if isinstance(value, str) else value


def short_name(value: Any) -> str:
    """Return an id or the name of a class, short enough for a line."""
    return cut(value, NAME) or ""


# --- tables of items and queries ----------------------------------------------------------------------------


CARD_QUERIES = 3  # queries that find a hub, shown on its card
CHANGED = 100  # fixed queries that are listed, and broken ones
NEIGHBORS = 5  # that are shown of such a query
STEPS = 2**16 - 1  # of a coordinate of the map


def changed_rows(answers: Answers) -> dict[str, np.ndarray]:
    """Return row numbers of broken queries, right before only, and fixed ones, right after only.

    At most CHANGED of each, at even steps.
    """
    before, after = answers.correct
    rows = {"broken": np.flatnonzero(before & ~after), "fixed": np.flatnonzero(after & ~before)}
    return {
        status: numbers[np.linspace(0, len(numbers) - 1, min(len(numbers), CHANGED)).astype(int)]
        for status, numbers in rows.items()
    }


@dataclass(frozen=True)
class PageDetails:
    """What a page shows of single items and queries, and what it is made from."""

    answers: Answers
    counts: Counts
    captions: Captions
    drawn: DrawnMap

    def as_dict(self) -> dict[str, Any]:
        """Return points, cards and changed queries; arrays stay arrays."""
        changed = changed_rows(self.answers)
        explored = explore(self.answers, self.drawn, np.concatenate([*changed.values()]))
        images = self.captions.images, self.captions.query_images
        return {
            "layout": {"name": self.drawn.layout, "words": self.drawn.words},
            "sampled": self.drawn.sampled,
            **self._points(),
            "explorer": explorer(explored, self._describe_items),
            "pictures": gallery(self.answers, self.drawn, explored, *images),
            "hubs": [self._card(row) for row in self._hubs()],
            "families": self._families(),
            "changed": [
                self._changed_query(row, status) for status, rows in changed.items() for row in rows.tolist()
            ],
        }

    def _points(self) -> dict[str, Any]:
        """Return columns of the drawn objects and queries."""
        answers, captions, items, queries = self.answers, self.captions, self.drawn.items, self.drawn.queries
        points = _to_grid(self.drawn.points)
        bits = 1 << np.arange(answers.neighbors.before.shape[1])
        item_columns = self._describe_items(items)
        item_columns |= {"x": points.items[:, 0], "y": points.items[:, 1]}
        query_columns = self._captions(captions.query_ids, captions.query_texts, answers.truth, queries)
        query_columns |= {"x": points.queries[:, 0], "y": points.queries[:, 1]}
        for i in range(2):
            item_columns |= {
                f"n{i}": self.counts.all[i][items].astype(np.uint32),
                f"bad{i}": self.counts.missed[i][items].astype(np.uint32),
            }
            near = places_of(answers.neighbors[i][queries], items)
            query_columns |= {
                f"right{i}": answers.correct[i][queries].astype(np.uint8),
                f"near{i}": near.reshape(-1).astype(np.int32),
                f"wrong{i}": (missed(answers)[i][queries] @ bits).astype(np.uint16),
            }
        return {"items": item_columns, "queries": query_columns}

    def _describe_items(self, rows: np.ndarray) -> dict[str, Any]:
        return self._captions(self.captions.ids, self.captions.texts, self.answers.labels, rows)

    def _captions(self, ids: Any, texts: Any, labels: np.ndarray | None, rows: np.ndarray) -> dict[str, Any]:
        """Return ids, texts, and classes as numbers, of the drawn objects or queries."""
        codes = None if labels is None else np.searchsorted(class_names(self.answers), labels[rows])
        return {
            "id": [short_name(ids[row]) for row in rows.tolist()],
            "text": None if texts is None else [cut(texts[row], SHORT) for row in rows.tolist()],
            "label": None if codes is None else codes.astype(np.uint32),
        }

    def _hubs(self) -> list[int]:
        """Return row numbers of objects that are returned, those that do the most harm first."""
        occurrence = self.counts.all.before
        rows = np.lexsort((-occurrence, -self.counts.harm.before))[:CARDS]
        return [row for row in rows.tolist() if occurrence[row] > 0]

    def _families(self) -> list[dict[str, Any]]:
        """Return groups of hubs that the same queries find."""

        def describe(row: int) -> dict[str, Any]:
            return {**self._item(row, SHORT), "place": int(places_of(row, self.drawn.items))}

        near = BeforeAfter(*map(self.answers.counted, self.answers.neighbors))
        return describe_families(near, self.counts.all, self.captions.texts, describe)

    def _card(self, row: int) -> dict[str, Any]:
        """Return a hub: its caption, its counts, and queries that find it, those that it harms first."""
        near, harmful = self.answers.neighbors.before, harm(self.answers).before
        queries, ranks = np.nonzero(near == row)
        order = np.lexsort((queries, ranks, ~harmful[queries, ranks]))[:CARD_QUERIES]
        counts = [int(state[row]) for state in self.counts.all]
        wrong, unjudged = (
            [int(state[row]) / count if count else None for state, count in zip(kind, counts, strict=True)]
            for kind in (self.counts.wrong, self.counts.unjudged)
        )
        return {
            **self._item(row, LONG),
            "place": int(places_of(row, self.drawn.items)),
            "thumbnail": None if self.captions.images is None else thumbnail(self.captions.images[row]),
            "before": counts[0],
            "after": counts[1],
            "wrong_before": wrong[0],
            "wrong_after": wrong[1],
            "unjudged_before": unjudged[0],
            "unjudged_after": unjudged[1],
            "harm_before": int(self.counts.harm.before[row]),
            "harm_after": int(self.counts.harm.after[row]),
            "queries": [
                {**self._query(int(queries[i]), SHORT), **self._mark(0, int(queries[i]), int(ranks[i]))}
                for i in order
            ],
        }

    def _mark(self, state: int, query: int, rank: int) -> dict[str, bool]:
        """Return whether a neighbour of a query is a wrong answer, or of pairs, whether it is not judged."""
        masks = {"wrong": self.answers.wrong, "unjudged": unjudged(self.answers)}
        return {name: bool(mask[state][query, rank]) for name, mask in masks.items()}

    def _changed_query(self, row: int, status: str) -> dict[str, Any]:
        """Return a query that is answered correctly in one state only, with its neighbours in both."""
        return {
            **self._query(row, LONG),
            "status": status,
            "before": self._answer(row, 0),
            "after": self._answer(row, 1),
        }

    def _answer(self, row: int, state: int) -> dict[str, Any]:
        """Return the class that a query was given in a state, and its first neighbours."""
        near, predicted = self.answers.neighbors[state][row], self.answers.predicted
        shown = NEIGHBORS if predicted is not None else len(near)  # hits may be anywhere among the first
        return {
            "answer": None if predicted is None else short_name(predicted[state][row]),
            "neighbors": [
                {**self._item(int(item), SHORT), **self._mark(state, row, rank)}
                for rank, item in enumerate(near[:shown])
            ],
        }

    def _item(self, row: int, length: int) -> dict[str, Any]:
        return _caption(self.captions.ids, self.captions.texts, self.answers.labels, row, length)

    def _query(self, row: int, length: int) -> dict[str, Any]:
        caption = _caption(
            self.captions.query_ids, self.captions.query_texts, self.answers.truth, row, length
        )
        return {**caption, "place": int(places_of(row, self.drawn.queries))}


def _to_grid(points: MapPoints) -> MapPoints:
    """Return coordinates as whole numbers, with one scale for both axes so that the map keeps its shape."""
    low = np.min([part.min(axis=0) for part in points], axis=0)
    high = np.max([part.max(axis=0) for part in points], axis=0)
    size = float((high - low).max()) or 1.0
    margin = (size - (high - low)) / 2
    scaled = (np.round((part - low + margin) / size * STEPS) for part in points)
    return MapPoints(*(part.clip(0, STEPS).astype(np.uint16) for part in scaled))


def _caption(ids: Any, texts: Any, labels: np.ndarray | None, row: int, length: int) -> dict[str, Any]:
    """Return id, text and class of one object or query."""
    return {
        "id": short_name(ids[row]),
        "text": None if texts is None else cut(texts[row], length),
        "label": None if labels is None else short_name(labels[row]),
    }


def class_names(answers: Answers) -> np.ndarray:
    """Return all classes of objects and queries, in order; (c,)."""
    return np.unique(np.concatenate([answers.labels, answers.truth]))
