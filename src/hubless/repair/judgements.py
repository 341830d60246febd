"""Query vectors with relevance judgements, in the formats of BEIR and TREC."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..stores.files.file_rows import read_table
from ..stores.store import Batch, Store, StoreError
from ..support.nearest import did_you_mean
from ..support.text import short
from .index_items import IndexItems, all_batches

NAMES = {  # of the columns of ids
    "query": ("query-id", "query_id", "query", "qid"),
    "item": ("corpus-id", "corpus_id", "doc_id", "item", "docid"),
}


class Judgements(NamedTuple):
    """Queries, each with the ids of the items that answer it and how relevant each is."""

    queries: np.ndarray  # (n, d)
    relevant: list[dict[Any, float]]  # of each query, never empty
    ids: list[Any]  # of the queries
    left_out: int = 0  # judgements that were not used: their query or item is unknown or has no vector
    rejected: Mapping[str, set[str]] = MappingProxyType({})  # by query id, ids of items judged not relevant

    def rows(self, places: Mapping[Any, int]) -> list[dict[int, float]]:
        """Return the relevant items of each query by row number."""
        return [{places[item]: score for item, score in scores.items()} for scores in self.relevant]

    def rejected_rows(self, places: Mapping[Any, int]) -> list[set[int]]:
        """Return the items of each query that were judged not to be relevant, by row number."""
        known = {str(item): place for item, place in places.items()}
        items = (self.rejected.get(str(query), ()) for query in self.ids)
        return [{known[item] for item in rejected if item in known} for rejected in items]

    def take(self, rows: Sequence[int] | np.ndarray) -> "Judgements":
        """Return the queries of these rows."""
        relevant, ids = ([values[row] for row in rows] for values in (self.relevant, self.ids))
        return self._replace(queries=self.queries[rows], relevant=relevant, ids=ids)


def read_judgements(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Return for each query id the relevant item ids with their scores; ids are texts.

    A table with a header (BEIR: query-id, corpus-id, score; .tsv, .csv, .jsonl, .parquet), or TREC's four
    columns without one. Judgements of 0 and less are ignored.
    """
    relevant: dict[str, dict[str, float]] = {}
    for query, item, text in _read_columns(Path(os.path.expanduser(path))):
        score = _number(text, path)
        if score > 0:
            relevant.setdefault(str(query), {})[str(item)] = score
    if not relevant:
        raise StoreError(f"{path} has no judgement above 0: there is no pair to learn from.")
    return relevant


def read_rejected(path: str | os.PathLike[str]) -> dict[str, set[str]]:
    """Return for each query id the ids of items that were judged with 0 or less: not relevant."""
    rejected: dict[str, set[str]] = {}
    for query, item, text in _read_columns(Path(os.path.expanduser(path))):
        if _number(text, path) <= 0:
            rejected.setdefault(str(query), set()).add(str(item))
    return rejected


def _number(text: Any, path: Any) -> float:
    try:
        score = float(text)
    except (TypeError, ValueError):
        score = float("nan")
    if not np.isfinite(score):
        raise StoreError(
            f"{path} has {short(text)} as a score, in the column `score` or the last one; expected a number, "
            "above 0 for relevant items."
        )
    return score


def _read_columns(file: Path) -> list[tuple[Any, Any, Any]]:
    """Return the query id, the item id and the score of each row."""
    if file.is_file() and file.suffix.lower() in ("", ".txt", ".qrels", ".tsv"):
        rows = [line.split() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        has_header = bool(rows) and not {*NAMES["query"], *NAMES["item"]}.isdisjoint(rows[0])
        if rows and not has_header and all(len(row) == 4 for row in rows):
            return [(query, item, score) for query, _, item, score in rows]
        if file.suffix.lower() != ".tsv":
            raise StoreError(f"{file} must have TREC's four columns: query 0 item score.")
    table, columns = read_table(file), []
    for kind, names in NAMES.items():
        name = next((name for name in names if name in table), None)
        if name is None:
            has = f"it has {short(list(table))}.{did_you_mean(names[0], table)}"
            raise StoreError(f"{file} has no column of {kind} ids ({names[0]}); {has}")
        columns.append(table[name])
    return list(zip(*columns, table.get("score", [1] * len(columns[0])), strict=True))


def match_judgements(
    queries: Store,
    path: str | os.PathLike[str],
    items: IndexItems,
    batches: Iterable[Batch] | None = None,
    judged: Mapping[str, Mapping[str, float]] | None = None,
) -> Judgements:
    """Return the queries of a store that have judgements on items.

    `batches` are its rows and `judged` the content of the file, if they were read.

    Ids are compared as texts, so that the 7 of a table equals the "7" of a file.
    """
    judged = read_judgements(path) if judged is None else judged
    known = {str(value): value for value in items.ids.tolist()}
    vectors, relevant, ids = [], [], []
    for batch in all_batches(queries) if batches is None else batches:
        for query, vector in zip(batch.ids.tolist(), batch.vectors, strict=True):
            scores = {known[i]: score for i, score in judged.get(str(query), {}).items() if i in known}
            if scores and np.isfinite(vector).all():
                vectors.append(vector)
                relevant.append(scores)
                ids.append(query)
    if not vectors:
        examples = json.dumps([*judged][:3])
        raise StoreError(
            f"no query of {queries.name} has a judgement on an item of {items.name}. {path} names queries "
            f"such as {examples}. Give the ids of queries and items as columns, or in tables (--query-items, "
            "--items)."
        )
    left_out = sum(map(len, judged.values())) - sum(map(len, relevant))
    return Judgements(np.stack(vectors), relevant, ids, left_out, read_rejected(path))
