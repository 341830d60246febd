"""What is known of the answers to queries, read and checked before the items are."""

import os
from collections.abc import Callable
from typing import NamedTuple

from ..stores.store import Batch, Store, StoreError
from .before_reading import check_asked
from .index_items import labeled_rows, read_queries
from .judgements import read_judgements


class Truth(NamedTuple):
    """What is known of the answers to queries: the classes of items and queries, or judgements."""

    labels: str | None = None  # column of items
    pairs: str | os.PathLike[str] | None = None  # file of judgements
    query_labels: str | None = None  # column of queries, by default as `labels`
    k: int | None = None  # neighbours that vote, or answers that count

    @property
    def columns(self) -> list[str]:
        """The columns of items that are needed."""
        return [] if self.labels is None else [self.labels]

    @property
    def query_columns(self) -> list[str]:
        """The columns of queries that are needed."""
        return [] if self.labels is None else [self.query_labels or self.labels]


class KnownQueries(NamedTuple):
    """Queries whose answers are known."""

    store: Store
    judged: dict[str, dict[str, float]] | None  # judgements, as they are in the file
    labeled: Batch | None  # or the queries themselves, with their classes


def read_truth(truth: Truth, queries: Store, check_width: Callable[[int], None]) -> KnownQueries:
    """Check queries and read what is known of their answers; StoreError where that is nothing."""
    if truth.labels is None and truth.pairs is None:
        raise StoreError("give the column of classes (labels, --labels) or judgements (pairs, --pairs).")
    check_width(check_asked(queries, truth.query_columns).width)
    if truth.pairs is not None:
        return KnownQueries(queries, read_judgements(truth.pairs), None)
    (column,) = truth.query_columns
    batch = read_queries(queries, [column])
    labeled_rows(batch.columns[column], f"query of {queries.name}", column)
    return KnownQueries(queries, None, batch)
