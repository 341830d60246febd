"""Pictures of queries and of the items that they find, small and within a budget."""

from typing import Any

import numpy as np

from ..evaluation import Answers
from .explorer import Explored
from .map_layout import DrawnMap
from .marks import missed
from .pictures import thumbnail

ROOM = 600_000  # characters of all pictures on a page, beside those of hubs
SIDE, BYTES = 48, 2500  # pixels of the longer side; files up to this size are taken as they are


def gallery(
    answers: Answers, drawn: DrawnMap, explored: Explored, images: Any, query_images: Any
) -> dict[str, dict[str, Any]]:
    """Return pictures by place until the room is full: of a query and all that it finds, then of the next.

    The queries come in the order of the page: those whose neighbours change the most are first.
    """
    rows = {"items": np.concatenate([drawn.items, explored.others]), "queries": drawn.queries}
    given = {"items": images, "queries": query_images}
    taken: dict[str, dict[int, str | None]] = {"items": {}, "queries": {}}
    room = ROOM if any(part is not None for part in given.values()) else 0
    for i in _order(answers, drawn.queries[explored.queries]):
        near = np.concatenate([state[i] for state in explored.near])
        for kind, places in (("queries", explored.queries[i : i + 1]), ("items", near)):
            for place in places.tolist():
                if room <= 0 or given[kind] is None or place in taken[kind]:
                    continue
                picture = thumbnail(given[kind][int(rows[kind][place])], SIDE, BYTES)
                taken[kind][place] = picture
                room -= len(picture or "")
    return {kind: _columns(pictures) for kind, pictures in taken.items()}


def _order(answers: Answers, rows: np.ndarray) -> list[int]:
    """Return places of queries, those with the largest change of right neighbours first."""
    before, after = (state[rows].sum(axis=1, dtype=np.int64) for state in missed(answers))
    return [int(i) for i in np.argsort(-np.abs(before - after), kind="stable")]


def _columns(pictures: dict[int, str | None]) -> dict[str, Any]:
    """Return places and pictures, in the order of the places; without those that cannot be shown."""
    shown = sorted((place, picture) for place, picture in pictures.items() if picture is not None)
    return {
        "place": np.array([place for place, _ in shown], dtype=np.uint32),
        "picture": [picture for _, picture in shown],
    }
