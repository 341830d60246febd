"""What a query that is typed on a served page finds, before and after the move."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..neighbors import nearest
from ..neighbors.knn import exhaustive, unit
from .details import SHORT, short_name
from .gallery import BYTES, SIDE
from .map_layout import places_of
from .pictures import thumbnail
from .report import Report


def answer_texts(report: Report, embed: Callable[[str], np.ndarray]) -> Callable[[str], dict[str, Any]]:
    """Return a function from a text to the items that it finds in both states, nearest first."""

    def answer(text: str) -> dict[str, Any]:
        found = find(report, embed(text))
        return {state: [_describe(report, row) for row in rows] for state, rows in found.items()}

    return answer


def find(report: Report, vector: np.ndarray) -> dict[str, list[int]]:
    """Return row numbers of the items that are nearest to a query, before and after."""
    answers = report.evaluation.answers
    k = answers.neighbors.before.shape[1]
    query = vector[None].astype(answers.stored.before.dtype)
    query = unit(query) if answers.metric == "cosine" else query
    found = {}
    for state, stored in answers.stored._asdict().items():
        asked = np.pad(query, ((0, 0), (0, stored.shape[1] - query.shape[1])))  # a 0 in an added column
        if answers.metric == "ip":
            indices = exhaustive(asked, stored, k, "ip")
        else:
            indices = nearest(asked, stored, k)[1]
        found[state] = [int(row) for row in indices[0]]
    return found


def _describe(report: Report, row: int) -> dict[str, Any]:
    """Return what the page shows of an item."""
    captions, labels = report.captions, report.evaluation.answers.labels
    text = None if captions.texts is None or captions.texts[row] is None else str(captions.texts[row])[:SHORT]
    return {
        "key": row,
        "id": short_name(captions.ids[row]),
        "text": text,
        "label": None if labels is None else short_name(labels[row]),
        "place": int(places_of(row, report.drawn.items)),
        "picture": None if captions.images is None else thumbnail(captions.images[row], SIDE, BYTES),
    }
