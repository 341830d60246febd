"""Queries and what answers them: query vectors with relevance judgements, as BEIR and TREC have them."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..stores.items import Items
from ..stores.store import Store, StoreError
from .collection import Collection

NAMES = (("query-id", "query_id", "query", "qid"), ("corpus-id", "corpus_id", "doc_id", "item", "docid"))


class Judged(NamedTuple):
    """Queries, and for each the ids of items that answer it with what they are worth."""

    queries: np.ndarray  # (n, d)
    relevant: list[dict[Any, float]]  # of each query, never empty
    ids: list[Any]  # of the queries

    def rows(self, places: Mapping[Any, int]) -> list[dict[int, float]]:
        """The relevant items of each query by row number."""
        return [{places[item]: worth for item, worth in own.items()} for own in self.relevant]

    def take(self, rows: Sequence[int] | np.ndarray) -> "Judged":
        """Some of the queries."""
        return Judged(self.queries[rows], [self.relevant[i] for i in rows], [self.ids[i] for i in rows])


def read_judgements(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """For each query id the relevant item ids and their worth; ids as texts.

    A table with a header (BEIR: query-id, corpus-id, score; .tsv, .csv, .jsonl, .parquet), or TREC's four
    columns without one. Judgements of 0 and less are left out.
    """
    columns = _columns(Path(path).expanduser())
    found: dict[str, dict[str, float]] = {}
    for query, item, score in zip(*columns, strict=True):
        worth = _number(score, path)
        if worth > 0:
            found.setdefault(str(query), {})[str(item)] = worth
    if not found:
        raise StoreError(f"{path} has no judgement above 0: there is no pair to learn from.")
    return found


def _number(score: Any, path: Any) -> float:
    try:
        worth = float(score)
    except (TypeError, ValueError):
        worth = float("nan")
    if not np.isfinite(worth):
        raise StoreError(
            f"{path} has the score {score!r}; scores are numbers, and above 0 for what is relevant."
        )
    return worth


def _columns(file: Path) -> tuple[list[Any], list[Any], list[Any]]:
    if file.is_file() and file.suffix.lower() in ("", ".txt", ".qrels", ".tsv"):
        rows = [line.split() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        is_trec = all(len(row) == 4 for row in rows) and not set(rows[0]) & {*NAMES[0], *NAMES[1]}
        if is_trec:
            return [row[0] for row in rows], [row[2] for row in rows], [row[3] for row in rows]
        if file.suffix.lower() != ".tsv":
            raise StoreError(f"{file} must have TREC's four columns: query 0 item score.")
    table = Items.read(file).columns
    picked = []
    for kind, names in zip(("query", "item"), NAMES, strict=True):
        name = next((name for name in names if name in table), None)
        if name is None:
            raise StoreError(f"{file} has no column of {kind} ids, as {names[0]!r}; it has {list(table)}.")
        picked.append(table[name])
    return picked[0], picked[1], table.get("score", [1] * len(picked[0]))


def judged(queries: Store, path: str | os.PathLike[str], items: Collection) -> tuple[Judged, int]:
    """The queries of a store that are judged, with items that are there; and how many pairs are not.

    Ids are compared as texts, so that the 7 of a table is the "7" of a file.
    """
    wanted = read_judgements(path)
    known = {str(value): value for value in items.ids.tolist()}
    kept, relevant, names = [], [], []
    for batch in queries.batches():
        for query, vector in zip(batch.ids.tolist(), batch.vectors, strict=True):
            here = {known[i]: worth for i, worth in wanted.get(str(query), {}).items() if i in known}
            if here and np.isfinite(vector).all():
                kept.append(vector)
                relevant.append(here)
                names.append(query)
    if not kept:
        some = json.dumps([*wanted][:3])
        raise StoreError(
            f"no query of {queries.name} is judged with an item of {items.name}. {path} names queries as "
            f"{some}; give the ids of queries and items in tables (--query-items, --items) or columns."
        )
    n_wanted = sum(len(found) for found in wanted.values())
    return Judged(np.stack(kept), relevant, names), n_wanted - sum(len(found) for found in relevant)
