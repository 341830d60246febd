"""Diagnose an index: its facts, its hubs and a verdict. Nothing is written."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..hubness import Hubness, measure_hubness
from ..neighbors.knn import exhaustive
from ..neighbors.ranking import drop_self
from ..stores.store import Facts, Store, StoreError
from .index_items import UNIT, Source, as_store, read_queries, read_rows, text_column

SAMPLE = 20_000  # items among which hubs are counted; of more, a random sample
WORST = 10  # hubs that are listed


@dataclass(frozen=True)
class Diagnosis:
    """What is known of an index; print it."""

    facts: dict[str, Any]
    norms: dict[str, float]  # min, median, max
    nulls: int
    not_finite: int
    zeros: int
    duplicates: int  # rows that equal an earlier one
    hubness: Hubness | None
    measured: str  # on what
    hubs: list[dict[str, Any]]
    verdict: str  # "hubs", "some hubs", "no hubs", "do not move", "moved"
    advice: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {**vars(self), "hubness": None if self.hubness is None else self.hubness.as_dict()}

    def __str__(self) -> str:
        facts = self.facts
        lines = [
            f"{facts['kind']}: {facts['count']:,} vectors of {facts['dimension']} columns, {facts['dtype']}",
            f"compares by     {facts['metric'] or 'an unknown metric; l2 is assumed'}",
            f"searches by     {facts['index']}",
            "norms           {min:.4g} to {max:.4g}, median {median:.4g}".format(**self.norms),
            f"without vector  {self.nulls:,}; not finite {self.not_finite:,}; zero {self.zeros:,}; "
            f"exact duplicates {self.duplicates:,}",
        ]
        if self.hubness is not None:
            h = self.hubness
            lines += [
                f"hubs            {self.measured}",
                f"                N{h.k} skewness {h.skewness:.2f} (below 1: hardly any hubs; above 3: bad)",
                f"                {h.antihub_share:.0%} of the items are never returned, and the busiest one "
                f"is in {h.largest_occurrence:,} of {h.n_queries:,} answers",
            ]
        for hub in self.hubs:
            lines.append(f"  {hub['occurrence']:>7,} ×  {hub['id']}  {str(hub.get('text') or '')[:70]}")
        return "\n".join([*lines, "", *self.advice])


def diagnose(
    source: Source, *, queries: Any = None, text: str | None = None, k: int = 10, random_state: int = 0
) -> Diagnosis:
    """Diagnose an index: its metric, its vectors, its hubs, and whether moving is safe.

    Parameters
    ----------
    source : name of a store, or Store
    queries : array of shape (n, d), name of a store, or Store, optional
        The queries that hubs are counted over; by default the items themselves, each without itself.
    text : str, optional
        The column to show of the worst hubs; by default one named "text", "title" or "name".
    k : int
        Neighbours that are counted.
    random_state : int
        Seed of the sample, where there are many items.
    """
    queries = None if queries is None else read_queries(queries).vectors
    store = as_store(source)
    facts, shown = store.facts(), text_column(store, text)
    if queries is not None:
        _check_one_space(store, facts, queries)
    ids, X, *_ = read_rows(store)
    nulls = np.isnan(X).all(axis=1)
    finite = np.isfinite(X).all(axis=1)
    norms = np.linalg.norm(X[finite].astype(np.float64), axis=1)
    if not len(norms):
        raise StoreError(f"{store.name} has no vector of finite numbers.")
    metric = facts.metric or "l2"
    hubness, measured, hubs = _hubs(ids[finite], X[finite], metric, queries, k, random_state)
    if shown is not None and hubs:
        texts = store.fetch([hub["id"] for hub in hubs], [shown]).columns[shown]
        hubs = [{**hub, "text": value} for hub, value in zip(hubs, texts, strict=True)]
    verdict, advice = _verdict(store, metric, facts.is_exact, norms, hubness)
    return Diagnosis(
        {**vars(facts), "name": store.name, "columns": list(facts.columns)},
        {"min": float(norms.min()), "median": float(np.median(norms)), "max": float(norms.max())},
        int(nulls.sum()),
        int((~finite & ~nulls).sum()),
        int((norms == 0).sum()),
        len(norms) - len({row.tobytes() for row in X[finite]}),
        hubness,
        measured,
        hubs,
        verdict,
        advice,
    )


def _check_one_space(store: Store, facts: Facts, queries: np.ndarray) -> None:
    """Refuse queries of another width than the items, and say what can be done."""
    if queries.shape[1] == facts.dimension:
        return
    advice = (
        "If they are of another space, as captions are for images, learn to move the items into theirs from "
        "queries and their answers: `hubless fit --pairs`; then diagnose the moved index."
    )
    mark = store.mark()
    if mark is not None:
        advice = f"It was moved by model {mark.model[:12]}: the card of that model says what its queries are."
    raise StoreError(
        f"queries have {queries.shape[1]} columns, the items of {store.name} have {facts.dimension}. {advice}"
    )


def _hubs(
    ids: np.ndarray, X: np.ndarray, metric: str, queries: np.ndarray | None, k: int, random_state: int
) -> tuple[Hubness | None, str, list[dict[str, Any]]]:
    """Return measures of hubness, what they were measured on, and the worst hubs."""
    if len(X) < k + 2:
        return None, "", []
    measured = f"among all {len(X):,} items"
    if len(X) > SAMPLE and queries is None:
        rows = np.sort(np.random.default_rng(random_state).choice(len(X), SAMPLE, replace=False))
        ids, X, measured = ids[rows], X[rows], f"among a random sample of {SAMPLE:,} of {len(X):,} items"
    if queries is None:
        neighbors = exhaustive(X, X, k + 1, metric)
        neighbors = drop_self(np, neighbors, neighbors, np.arange(len(X)))
        measured += ", each used as a query"
    else:
        neighbors = exhaustive(queries, X, k, metric)
        measured += f", by {len(queries):,} queries"
    hubness = measure_hubness(neighbors, len(X))
    worst = np.argsort(-hubness.occurrence, kind="stable")[:WORST]
    worst = worst[hubness.occurrence[worst] >= 2 * hubness.n_queries * k / len(X)]
    counts = zip(ids[worst].tolist(), hubness.occurrence[worst].tolist(), strict=True)
    return hubness, measured, [{"id": name, "occurrence": count} for name, count in counts]


def _verdict(
    store: Store, metric: str, is_exact: bool, norms: np.ndarray, hubness: Hubness | None
) -> tuple[str, list[str]]:
    mark = store.mark()
    if mark is not None:
        kept = f"; the original is {mark.original}" if mark.original else f", made from {mark.source}"
        return "moved", [f"These vectors were moved by hubless model {mark.model[:12]}{kept}."]
    if not is_exact:
        return "do not move", [
            "The index keeps its vectors quantised, so nothing should be learned from what it returns:",
            "fit and apply on the file of original vectors, then build the index again.",
        ]
    if metric == "ip" and np.abs(norms - 1).max() > UNIT:
        return "do not move", [
            "It compares by inner product, and its vectors do not all have length 1. Moved vectors are",
            "shorter and would be found less often: bring all to length 1, or use L2 or cosine.",
        ]
    safe = {
        "l2": "It compares by L2: moving is safe.",
        "cosine": "It compares by cosine: moving is safe.",
        "ip": "It compares unit vectors by inner product: moved ones are brought to length 1, so it is safe.",
    }[metric]
    if hubness is None:
        return "no hubs", [safe, "There are too few items to measure hubs."]
    if hubness.skewness < 1:
        return "no hubs", [safe, "There are hardly any hubs. Moving may still raise accuracy; measure it."]
    next_step = (
        "Next: `hubless fit` learns how to move the items, from a column of classes (--labels) or from "
        "queries and their answers (--pairs)."
    )
    if hubness.skewness < 3:
        return "some hubs", [safe, f"There are some hubs. {next_step}"]
    return "hubs", [safe, f"A few items are the answer to very many queries. {next_step}"]
