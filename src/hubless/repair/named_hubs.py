"""The hubs of an index by name: how many queries each captures, whether it is suspicious, and why."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..stores.store import Batch, Store
from .before_reading import text_column
from .planted import SUSPICIOUS, JudgedHubs

LISTED = 10  # hubs that are named; suspicious ones are named in any case
EXAMPLES = 3  # captured queries that are shown of each
WIDTH = 70  # letters of a text that are shown
INDENT = " " * 13


def name_hubs(
    judged: JudgedHubs, ids: np.ndarray, neighbors: np.ndarray, queries: Batch | None
) -> list[dict[str, Any]]:
    """Return the busiest hubs and all suspicious ones, these first, as plain data."""
    suspicious = judged.suspicious
    calls = np.zeros(len(judged.rows), dtype=bool) if suspicious is None else suspicious
    listed = np.flatnonzero(calls | (np.arange(len(calls)) < LISTED))
    listed = listed[np.argsort(~calls[listed], kind="stable")]
    hubs = []
    for place, name in zip(listed, ids[judged.rows[listed]].tolist(), strict=True):
        count = int(judged.occurrence[place])
        hub = {"id": name, "occurrence": count, "share": count / len(neighbors)}
        if suspicious is not None:
            hub |= {"kind": "suspicious" if calls[place] else "natural", "why": reason(judged, int(place))}
            hub["score"] = float(judged.scores[place])  # type: ignore[index]
        if queries is not None:
            hub["captured"] = examples(queries, captured_first(neighbors, judged.rows[place]))
        hubs.append(hub)
    return hubs


def captured_first(neighbors: np.ndarray, row: int) -> np.ndarray:
    """Return some queries that have an item among their answers, those with it in front first."""
    queries, ranks = np.nonzero(neighbors == row)
    return np.asarray(queries[np.argsort(ranks, kind="stable")][:EXAMPLES])


def examples(queries: Batch, rows: np.ndarray) -> list[dict[str, Any]]:
    """Return the ids of queries, and their texts where they have any."""
    names = queries.ids[rows].tolist()
    texts = next(iter(queries.columns.values()), None)  # one column at most is read
    if texts is None:
        return [{"id": name} for name in names]
    return [{"id": name, "text": texts[row]} for name, row in zip(names, rows, strict=True)]


def reason(judged: JudgedHubs, place: int) -> str:
    """Return in words why a hub is suspicious or natural."""
    apart, usual, width = judged.apart, judged.usual, judged.widths
    assert apart is not None and usual is not None and width is not None  # noqa: PT018
    own, others = (float(values[place]) ** 0.5 for values in (apart, usual))
    if judged.lengths is not None and judged.lengths[place] > -SUSPICIOUS:
        return f"its vector is far longer than usual, by {judged.lengths[place]:.1f} robust deviations"
    return (
        f"it is {own:.2f} as far from the middle of its {width[place]} nearest queries as they are "
        f"(usual here: {others:.2f})"
    )


def with_texts(hubs: list[dict[str, Any]], store: Store, column: str | None) -> list[dict[str, Any]]:
    """Return hubs with the values of a column of their store."""
    if column is None or not hubs:
        return hubs
    texts = store.fetch([hub["id"] for hub in hubs], [column]).columns[column]
    return [{**hub, "text": value} for hub, value in zip(hubs, texts, strict=True)]


def column_of_queries(store: Store, name: str | None) -> str | None:
    """Return the column of a log that shows what was asked: the items' column, or one with a usual name."""
    return text_column(store, name if name in store.facts().columns else None)


def hub_lines(hubs: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Yield lines that describe hubs, below a heading; their texts are untrusted."""
    if hubs:
        yield "  answers    item"
    for hub in hubs:
        yield f"  {hub['occurrence']:>7,} ×  {hub['id']}  {_shown(hub)}".rstrip()
        if "kind" in hub:
            looks = "suspicious" if hub["kind"] == "suspicious" else "looks natural"
            yield f"{INDENT}{looks}, {hub['share']:.1%} of the queries: {hub['why']}"
        for query in hub.get("captured", ())[: EXAMPLES if hub.get("kind") == "suspicious" else 1]:
            if _shown(query):  # ids alone say little
                yield f"{INDENT}answers {query['id']}  {_shown(query)}"


def _shown(row: dict[str, Any]) -> str:
    return str(row.get("text") or "")[:WIDTH]
