"""The points of a page as a table: every object and query that there is, for embedding-atlas."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from ..arrays import to_numpy
from ..evaluation import Asked, Evaluation, Pair
from .atlas import AtlasItems, AtlasQueries, write_atlas
from .details import counts
from .places import Drawing, Drawn, lay_out
from .shown import Shown


class DrawnWith(NamedTuple):
    """What was drawn, and how."""

    shown: Shown
    drawing: Drawing
    axes: PCA
    rows: Drawn


def write_points(path: Any, evaluation: Evaluation, drawn: DrawnWith) -> str:
    """Write what is drawn, or by PCA all there is; the command that opens it."""
    asked, (shown, drawing, axes, rows) = evaluation.asked, drawn
    if drawing.layout == "pca":
        rows = Drawn(np.arange(len(asked.stored.before)), np.arange(len(asked.queries)), None)
    places = lay_out(asked, rows, axes, drawing.layout, drawing.random_state)
    occurrence = Pair(*(to_numpy(own.occurrence) for own in evaluation.hubness))
    counted = counts(asked, occurrence)
    place = np.full(len(asked.stored.before), -1)
    place[rows.items] = np.arange(len(rows.items))
    found = asked.found.after[rows.queries]

    def some(values: Any, own: np.ndarray) -> list[Any] | None:
        return None if values is None else [values[i] for i in own.tolist()]

    items = AtlasItems(
        [shown.ids[i] for i in rows.items.tolist()],
        places.items,
        Pair(*(own[rows.items] for own in counted.all)),
        Pair(*(own[rows.items] for own in counted.wrong)),
        some(shown.texts, rows.items),
        some(asked.labels, rows.items),
        mean=float(np.mean(occurrence.before)),
    )
    queries = AtlasQueries(
        [shown.query_ids[i] for i in rows.queries.tolist()],
        places.queries,
        place[found],
        _distances(asked, rows.queries),
        Pair(*(own[rows.queries] for own in asked.right)),
        some(shown.query_texts, rows.queries),
        some(asked.truth, rows.queries),
    )
    return write_atlas(path, items, queries)


def _distances(asked: Asked, rows: np.ndarray) -> np.ndarray:
    """Distances of queries to their neighbours among the moved objects, −⟨x, z⟩ by inner product; (m, h)."""
    after, d = asked.stored.after, asked.queries.shape[1]
    found = []
    for row in rows.tolist():  # a query at a time: all differences at once would not fit
        near = after[asked.found.after[row]].astype(np.float64)
        if asked.metric == "ip":
            found.append(-near @ asked.queries[row])
            continue
        near[:, :d] -= asked.queries[row]
        found.append(np.linalg.norm(near, axis=1))
    return np.array(found)
