"""Learn a correction per item from a log of queries: alone, or on top of what was learned from pairs.

A part of the log is held out: on it hubs are counted before and after, and how well the corrected vectors do
without a column. Whether answers get better is measured only where queries with known answers are given.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..corrections import Correction, HoldHubs
from ..corrections.correction import answers_of, distinct_rows, sample_rows
from ..evaluation import Change, measure_change
from ..hubness import Hubness, measure_hubness
from ..movers import Stay
from ..neighbors.knn import unit
from ..selection.from_log import (
    LEAST_JUDGED,
    NONE,
    CorrectionScores,
    LogFold,
    candidates_for,
    name_of,
    score_corrections,
)
from ..selection.from_pairs import K
from ..stores.store import Batch, Store, StoreError
from ..support.progress import step
from .index_items import IndexItems, all_batches, are_unit
from .repair import Repair

LEAST = 50  # different queries of a log that something is learned from
HELD = 0.2  # share of the log that is held out
MOST_HELD = 500  # queries that are held out, at most
COMPARED = 20_000  # items, at most, by which doing without a column is measured
LISTED = 10  # held items that a model names
MATTERS = 0.01  # share of the answers to held-out queries below which hubs are not worth a new index


class Folds(NamedTuple):
    """Folds of judged queries, by which a correction is chosen."""

    n_judged: int
    of: Callable[[np.ndarray], tuple[Iterable[LogFold], int]]  # of a log: the folds, and how many there are


class Log(NamedTuple):
    """The different queries of a log, in the space that the index compares in."""

    learned: np.ndarray  # (m, d)
    held: np.ndarray  # (h, d), held out


class Measured(NamedTuple):
    """What a correction changes for the queries that were held out."""

    hubness: tuple[Hubness, Hubness]  # before and after
    agreement: float  # share of the answers that are those of the exact correction
    changed: np.ndarray  # bool (n,), items whose share of the answers was held back, or all


def read_log(store: Store, batches: Iterable[Batch] | None = None) -> tuple[np.ndarray, int]:
    """Return the vectors of a log, (m, d), and how many rows have none; `batches` are its rows, if read."""
    parts = [batch.vectors for batch in (all_batches(store) if batches is None else batches)]
    vectors = np.concatenate(parts) if parts else np.empty((0, 1), dtype=np.float32)
    usable = np.isfinite(vectors).all(axis=1)
    return vectors[usable], int((~usable).sum())


def learn_from_log(
    items: IndexItems, log: np.ndarray, *, column: bool = False, random_state: int = 0
) -> Repair:
    """Learn a correction per item from queries alone; items that chance explains stay as they are."""
    if (n := len(items.vectors)) < 2:
        usable = "a vector other than 0" if items.metric == "cosine" else "a vector"
        raise StoreError(
            f"{items.name} has {n} item{'s' * (n != 1)} with {usable}: hubs can be found among 2 or more."
        )
    stay = Stay().fit(items.vectors[:2], np.zeros(len(items.vectors[:2])))
    model = Repair(stay, items.metric, facts={"data": items.about()})
    return with_correction(model, items, log, column=column, random_state=random_state)


def with_correction(
    model: Repair,
    items: IndexItems,
    log: np.ndarray,
    *,
    folds: Folds | None = None,
    part: str = "all",
    column: bool = False,
    random_state: int = 0,
) -> Repair:
    """Return a model with a correction on top, or as it is where none helps; its facts say why.

    Parameters
    ----------
    model : Repair without a correction
    items : the items that it moves
    log : array of shape (m, d)
        Queries as they are asked, judged or not.
    folds : Folds, optional
        Without them the log is all there is, and StoreError is raised where it is short.
    part : "all" or "unseen"
        Whether these queries are asked of all items, or of those alone that no map was learned from.
    column : bool
        Whether to write the correction into one more column, in which queries get a 0.
    """
    started = perf_counter()
    metric = correction_metric(items, log, column)
    queries = _split(log, model.metric, random_state)
    n_queries = len(queries.learned) + len(queries.held)
    if folds is None:
        check_length(n_queries)
    elif few := _too_few(n_queries, folds.n_judged):
        noted = {"correction": NONE, "correction chosen by": few, "corrections tried": []}
        return replace(model, facts={**model.facts, "learned": {**model.learned, **noted}})
    vectors = items.vectors if model.moves_nothing else items.moved(model)
    correction, scores = HoldHubs(metric=metric, column=column), None
    if folds is not None:
        options: dict[str, Any] = {"column": column, "random_state": random_state}
        scores = replace(score_corrections(*folds.of(queries.learned), metric, **options), part=part)
        chosen = {name_of(each): each for each in candidates_for(metric, column)}.get(scores.best())
        if chosen is None:
            return _noted(model, queries, None, scores, None, perf_counter() - started)
        correction = chosen
    with step(f"learning a correction from {len(queries.learned):,} queries"):
        correction.fit(queries.learned, vectors)
        measured = _measure(correction, vectors, queries.held)
    helps = scores is not None or _has_fewer_hubs(measured)
    # a correction changes distances, which scores were learned from
    corrected = replace(model, correction=correction, scores=None) if helps else model
    corrected = _noted(corrected, queries, correction, scores, measured, perf_counter() - started)
    if helps and correction._spares:
        corrected.facts["learned"]["held items"] = _held_items(items, measured)
    return corrected


def correction_metric(items: IndexItems, log: np.ndarray, column: bool) -> str:
    """Return the metric by which corrected items are compared; StoreError where there can be no column.

    By L2 a correction is more exact without a column than by cosine, also for items and queries of length 1.
    """
    is_l2 = items.facts.metric == "l2" or (column and items.facts.metric is None)
    if is_l2 and (items.metric == "l2" or are_unit(log)):
        return "l2"
    if column and is_l2:
        raise StoreError(
            f"{items.name} has items of length 1 and the queries have others: a correction in a column "
            "would count more for short queries. Bring the queries to length 1, or leave out --column."
        )
    check_column(column, items.metric, items.name)
    return items.metric


def check_column(column: bool, metric: str | None, name: str) -> None:
    """Raise a StoreError where one more column would change nothing; None is a metric that nobody said."""
    if column and metric not in ("l2", None):
        raise StoreError(
            f"{name} compares by {metric}: one more column, in which queries get a 0, changes L2 distances "
            "alone. Leave out --column."
        )


def _split(log: np.ndarray, metric: str, random_state: int) -> Log:
    """Return the different queries of a log, a part of them held out."""
    log = log[log.any(axis=1)] if metric == "cosine" else log
    queries = distinct_rows(np.asarray(unit(log) if metric == "cosine" else log), len(log) or 1)
    order = np.random.default_rng(random_state).permutation(len(queries))
    n_held = min(MOST_HELD, int(HELD * len(queries)))
    return Log(queries[np.sort(order[n_held:])], queries[np.sort(order[:n_held])])


def check_width(name: str, width: int, d: int) -> None:
    """Raise a StoreError where a log has queries of another width than the items, d."""
    if width != d:
        raise StoreError(
            f"{name} has queries of {width} columns, the items have {d}. If the two are of different spaces, "
            "learn a map from queries and their answers: --pairs."
        )


def check_length(n_queries: int) -> None:
    """Raise a StoreError where a log has too few queries to learn from."""
    if few := _too_few(n_queries):
        raise StoreError(few)


def _too_few(n_queries: int, n_judged: int = LEAST_JUDGED) -> str:
    """Return why no correction is learned from a short log or chosen by few judged queries, or ""."""
    if n_queries < LEAST:
        return f"The log has {n_queries} different queries, too few for a correction: give {LEAST} or more."
    if n_judged < LEAST_JUDGED:
        return (
            f"{n_judged} judged queries are too few to choose a correction by: give {LEAST_JUDGED} or more."
        )
    return ""


def without(log: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the queries of a log that are not among these."""
    known = {row.tobytes() for row in queries.astype(log.dtype)}
    return log[[row.tobytes() not in known for row in log]]


def _measure(correction: Correction, vectors: np.ndarray, held: np.ndarray) -> Measured:
    held = held.astype(vectors.dtype)
    corrected, k = correction.move(vectors), min(K, len(vectors))
    asked = np.pad(held, ((0, 0), (0, corrected.shape[1] - held.shape[1])))
    before = answers_of(held, vectors, k, correction.metric)
    after = answers_of(asked, corrected, k, correction.metric)
    hubness = measure_hubness(before, len(vectors)), measure_hubness(after, len(vectors))
    changed = np.ones(len(vectors), dtype=bool)
    if correction._spares:
        changed = (corrected[:, : vectors.shape[1]] != vectors).any(axis=1)
        if correction.column:
            changed |= corrected[:, -1] > 0
    return Measured(hubness, correction.agreement(held, sample_rows(vectors, COMPARED)), changed)


def _has_fewer_hubs(measured: Measured) -> bool:
    """Return whether held-out queries found the items that were held back, and find fewer hubs now."""
    before, after = measured.hubness
    return _share_held(measured) >= MATTERS and after.skewness < before.skewness


def _share_held(measured: Measured) -> float:
    """Return which share of the answers to held-out queries were items that are held back now."""
    counts = np.asarray(measured.hubness[0].occurrence)
    return float(counts[measured.changed].sum() / counts.sum())


def _held_items(items: IndexItems, measured: Measured) -> list[dict[str, Any]]:
    """Return the items that were held back, with their answers to held-out queries before and after."""
    rows = np.flatnonzero(measured.changed)
    counts = [np.asarray(hubness.occurrence)[rows] for hubness in measured.hubness]
    order = np.argsort(-counts[0], kind="stable")[:LISTED]
    ids = items.ids[rows[order]].tolist()
    answers = zip(ids, *(count[order].tolist() for count in counts), strict=True)
    return [{"id": name, "before": before, "after": after} for name, before, after in answers]


def _noted(
    model: Repair,
    queries: Log,
    correction: Correction | None,
    scores: CorrectionScores | None,
    measured: Measured | None,
    seconds: float,
) -> Repair:
    """Return a model whose facts say what was learned from the log, and what was measured."""
    name = NONE if model.correction is None or correction is None else name_of(correction)
    noted: dict[str, Any] = {
        "correction": name,
        "log": len(queries.learned) + len(queries.held),
        "held-out queries": len(queries.held),
        "correction chosen by": _why(name, scores, measured, len(queries.held)),
        "corrections tried": [] if scores is None else scores.tried_rows(name),
        "correction seconds": seconds,
    }
    if measured is not None and model.correction is not None:
        noted["agreement without a column"] = None if model.correction.column else measured.agreement
    learned = model.learned or {"from": "log", "n": len(queries.learned), "mover": name, "chosen by": ""}
    if learned["from"] == "log":
        learned["chosen by"] = noted["correction chosen by"]
    figures = [*model.facts.get("figures", []), *_figures(scores, name, measured, len(queries.held))]
    return replace(model, facts={**model.facts, "learned": {**learned, **noted}, "figures": figures})


def _figures(
    scores: CorrectionScores | None, name: str, measured: Measured | None, n_held: int
) -> list[dict[str, Any]]:
    rows = []
    if scores is not None and name != NONE:
        title = f"nDCG@{K} of the correction, held out, chosen by it"
        rows.append(asdict(measure_change(title, scores.part, scores.none, scores.scores[name])))
    if measured is not None and name != NONE:
        before, after = measured.hubness
        unknown = float("nan"), float("nan")
        title = f"N{before.k} skewness, held-out queries of the log"
        rows.append(asdict(Change(title, "all", n_held, before.skewness, after.skewness, *unknown)))
    return rows


def _why(name: str, scores: CorrectionScores | None, measured: Measured | None, n_held: int) -> str:
    """Return in words why a correction was taken, or none."""
    if scores is not None:
        return scores.explain(name)
    assert measured is not None
    before, after = measured.hubness
    n_changed = int(measured.changed.sum())
    if not n_changed:
        return "No item answers more questions of the log than chance allows: there is nothing to correct."
    held = "Held back" if name != NONE else "If held back"
    hubs = (
        f"{n_changed:,} of {len(measured.changed):,} items {'answers' if n_changed == 1 else 'answer'} more "
        f"questions of the log than chance allows. {held}: N{before.k} skewness {before.skewness:.2f} → "
        f"{after.skewness:.2f} on {n_held:,} held-out queries, the busiest item "
        f"{before.largest_occurrence:,} → {after.largest_occurrence:,} answers."
    )
    if name == NONE and _share_held(measured) < MATTERS:
        share = f"{_share_held(measured):.1%} of all answers today"
        return f"{hubs} {'It is' if n_changed == 1 else 'They are'} {share}: not worth a new index."
    if name == NONE:
        return f"{hubs} That is no improvement, so nothing is changed."
    return (
        f"{hubs} Whether answers are better was not measured: that takes queries whose answers are known "
        "(--pairs; 50 are enough)."
    )
