"""Diagnose an index: its facts, its hubs beside what chance gives, and a verdict. Nothing is written."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays.inputs import distinct
from ..arrays.types import ArrayLike
from ..chance import Chance
from ..hubness import Hubness, measure_hubness
from ..hubs_in_words import asked_words, hub_table
from ..neighbors.knn import exhaustive
from ..neighbors.ranking import drop_self
from ..stores.store import Batch, Facts, Store, StoreError
from ..support.progress import reports_steps, step
from ..support.text import printable_lines
from .advice import PLANTED, advise
from .before_reading import check_asked, check_filled, check_fits, last_part, opened_queries, text_column
from .index_items import Source, as_store, read_queries, read_rows
from .named_hubs import LISTED, column_of_queries, hub_lines, name_hubs, with_texts
from .planted import JudgedHubs, find_hubs, judge_hubs

SAMPLE = 20_000  # items among which hubs are counted; of more, a random sample


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
    chance: dict[str, Any] | None  # what chance gives for the measures, and the N_k that makes a hub
    measured: str  # on what items
    asked: str  # which queries
    n_hubs: int  # items whose N_k cannot be chance
    n_suspicious: int | None  # of these; None where that was not or cannot be judged
    hubs: list[dict[str, Any]]  # all suspicious ones, and the busiest others
    verdict: str  # "hubs", "some hubs", "no hubs", "do not move", "moved"
    advice: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {**vars(self), "hubness": None if self.hubness is None else self.hubness.as_dict()}

    def __str__(self) -> str:
        facts = self.facts
        lines = [
            f"{facts['kind']}: {facts['count']:,} vectors of {facts['dimension']} columns, {facts['dtype']}",
            f"compares by     {facts['metric'] or 'unknown; l2 is assumed'}",
            f"searches by     {facts['index']}",
            "norms           {min:.4g} to {max:.4g}, median {median:.4g}".format(**self.norms),
            f"without vector  {self.nulls:,}; not finite {self.not_finite:,}; zero {self.zeros:,}; "
            f"exact duplicates {self.duplicates:,}",
            *self._hub_lines(),
        ]
        return printable_lines([*lines, "", *self.advice])

    def _hub_lines(self) -> list[str]:
        h, chance = self.hubness, self.chance
        if h is None or chance is None:
            return []
        lines = [
            f"hubs {self.measured}, asked: {self.asked}",
            *(f"  {line}" for line in hub_table({"now": h}, Chance(**chance))),
        ]
        if self.n_suspicious is not None:
            count = f"{self.n_suspicious:,}" if self.n_suspicious else "none"
            lines.append(f"  {count} of these hubs look planted")
        shown = self.hubs[: 2 * LISTED]
        rest = len(self.hubs) - len(shown)
        return [*lines, *hub_lines(shown), *([f"  and {rest:,} more; --json lists them all"] if rest else [])]


@reports_steps
def diagnose(
    source: Source,
    *,
    queries: ArrayLike | Source | None = None,
    text: str | None = None,
    k: int = 10,
    random_state: int = 0,
    progress: bool | None = False,
) -> Diagnosis:
    """Diagnose an index: its metric, its vectors, its hubs, and whether moving is safe.

    Parameters
    ----------
    source : name of a store, or Store
    queries : array of shape (n, d), name of a store, or Store, optional
        The queries that hubs are counted over, each different one once; hubs are then judged, natural or
        suspicious. By default the items themselves, each without itself.
    text : str, optional
        The column to show of hubs; by default one named "text", "title" or "name".
    k : int
        Neighbours that are counted.
    random_state : int
        Seed of samples, where there are many items.
    progress : bool or None
        Whether to report long steps; None reports them on a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> diagnosis = repair.diagnose("items.npy")
    >>> diagnosis.facts["count"], diagnosis.duplicates, diagnosis.hubness.k
    (90, 0, 10)
    """
    store = as_store(source)
    facts, shown = store.facts(), text_column(store, text)
    check_filled(store, facts.count)
    if queries is not None:
        queries = opened_queries(queries)
        _check_one_space(store, facts, check_asked(queries).width)
    check_fits(store, facts)
    log = None if queries is None else _read_log(queries, text)
    ids, X, *_ = read_rows(store, count=facts.count)
    nulls = np.isnan(X).all(axis=1)
    finite = np.isfinite(X).all(axis=1)
    norms = np.linalg.norm(X[finite].astype(np.float64), axis=1)
    if not len(norms):
        raise StoreError(f"{store.name} has no vector of finite numbers.")
    metric = facts.metric or "l2"
    whose = f" of {last_part(queries.name)}" if isinstance(queries, Store) else ""
    found = _look(ids[finite], X[finite], metric, log, whose, k, random_state)
    verdict, advice = advise(store, facts, norms, found.hubness, log is not None)
    suspicious = None if found.judged is None else found.judged.suspicious
    return Diagnosis(
        facts={**vars(facts), "name": store.name, "columns": list(facts.columns)},
        norms={"min": float(norms.min()), "median": float(np.median(norms)), "max": float(norms.max())},
        nulls=int(nulls.sum()),
        not_finite=int((~finite & ~nulls).sum()),
        zeros=int((norms == 0).sum()),
        duplicates=len(norms) - len(distinct(X[finite])),
        hubness=found.hubness,
        chance=None if found.judged is None else found.judged.chance.as_dict(),
        measured=found.measured,
        asked=found.asked,
        n_hubs=0 if found.judged is None else len(found.judged.rows),
        n_suspicious=None if suspicious is None else int(suspicious.sum()),
        hubs=with_texts(found.hubs, store, shown),
        verdict=verdict,
        advice=[*(PLANTED if suspicious is not None and suspicious.any() else ()), *advice],
    )


def _check_one_space(store: Store, facts: Facts, width: int) -> None:
    """Refuse queries of another width than the items, and say what can be done."""
    if width == facts.dimension:
        return
    advice = (
        "If they are of another space, as captions are for images, learn to move the items into theirs from "
        "queries and their answers: `hubless fit --pairs`; then diagnose the moved index."
    )
    mark = store.mark()
    if mark is not None:
        advice = f"It was moved by model {mark.model[:12]}: the card of that model says what its queries are."
    raise StoreError(
        f"queries have {width} columns, the items of {store.name} have {facts.dimension}. {advice}"
    )


def _read_log(queries: Any, text: str | None) -> Batch:
    """Read queries, with their texts where they have any."""
    if not isinstance(queries, Store):
        return read_queries(queries)
    column = column_of_queries(queries, text)
    batch = read_rows(queries, [] if column is None else [column])
    if not np.isfinite(batch.vectors).all(axis=1).any():
        raise StoreError(f"{queries.name} has no query with a vector.")
    return batch


class Found(NamedTuple):
    """What was found of hubs."""

    hubness: Hubness | None
    judged: JudgedHubs | None
    measured: str  # on what items
    asked: str  # which queries
    hubs: list[dict[str, Any]]


def _look(
    ids: np.ndarray, X: np.ndarray, metric: str, log: Batch | None, whose: str, k: int, random_state: int
) -> Found:
    """Count answers over a log, or over the items themselves, and find the hubs."""
    if len(X) < k + 2:
        return Found(None, None, "", "", [])
    measured = f"among {len(X):,} items"
    if log is None:
        if len(X) > SAMPLE:
            rows = np.sort(np.random.default_rng(random_state).choice(len(X), SAMPLE, replace=False))
            measured = f"among a random sample of {SAMPLE:,} of {len(X):,} items"
            ids, X = ids[rows], X[rows]
        with step(f"searching for the neighbours of {len(X):,} items"):
            neighbors = exhaustive(X, X, k + 1, metric)
        neighbors = drop_self(np, neighbors, neighbors, np.arange(len(X)))
        asked = "each of these items, without itself"
        judged = find_hubs(neighbors, len(X), are_queries=True)
    else:
        usable = np.isfinite(log.vectors).all(axis=1)
        missing, log = int((~usable).sum()), log.take(usable)
        different = distinct(log.vectors)
        repeated = len(log.vectors) - len(different)
        log = log if not repeated else log.take(np.isin(np.arange(len(log.vectors)), different))
        with step(f"answering {len(different):,} queries among {len(X):,} items"):
            neighbors = exhaustive(log.vectors, X, k, metric)
        asked = asked_words(len(different), whose, repeated=repeated, missing=missing)
        with step("judging which hubs look planted"):
            judged = judge_hubs(X, log.vectors, neighbors, metric, random_state=random_state)
        asked += ", too few to tell natural hubs from planted ones" if judged.suspicious is None else ""
    hubs = name_hubs(judged, ids, neighbors, log)
    hubness = measure_hubness(neighbors, len(X), are_queries=log is None)
    return Found(hubness, judged, measured, asked, hubs)
