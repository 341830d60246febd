"""Learn how to move items that are in memory, from their labels or from pairs of queries and items.

Settings are chosen on held-out queries: from labels by `MoveLabeledClassifierCV`, where these are items of
another fold; from pairs as `selection/from_pairs.py` says.
"""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from ..baselines.plain import plain_neighbors
from ..calibration.calibrate import queries_wanted
from ..calibration.item_scores import ItemScores, scores_of_classes
from ..calibration.relevance import K as ANSWERS
from ..classifier_cv import MoveLabeledClassifierCV
from ..evaluation import NORMAL, Change, measure_change
from ..movers import Chain, MoveLabeled, Mover, Scale, Stay, Unit
from ..neighbors import nearest
from ..retrieval import gains
from ..selection.candidates import movers_in_parts, name, steps
from ..selection.explain import tried_rows
from ..selection.folds import query_folds
from ..selection.from_log import FOLDS, LogFold, fold_numbers
from ..selection.from_pairs import HeldOutScores, K, choose_setting, score_held_out, surface
from ..selection.from_pairs import tried_rows as tried_settings
from ..selection.grid import MIDDLE
from ..selection.pair_map import JudgedQueries, PairMap, PairSetting
from ..selection.validation import CrossValidation
from ..solve import Penalty
from ..stores.store import StoreError
from ..support.progress import step
from .index_items import IndexItems, are_unit, as_texts
from .item_steps import ItemSteps
from .judgements import Judgements
from .learn_from_log import Folds, correction_metric, with_correction, without
from .repair import Repair

SEEN = 100_000  # ids of items, and of queries, that a model keeps; of more, it keeps none


def learn_from_labels(items: IndexItems, label: str, *, mover: str = "auto", random_state: int = 0) -> Repair:
    """Choose the mover that answers held-out items best, and fit it to all items that have a label.

    Parameters
    ----------
    items : IndexItems with the column `label`
    label, mover, random_state : as for `fit_index`
    """
    n_rows, items = len(items.ids) + items.missing, items.labeled(label)
    X, y = items.vectors, as_texts(items.columns[label]).astype(str)
    n_classes = len(set(y.tolist()))
    check_classes(n_classes, label, len(y))
    started = perf_counter()
    movers = movers_for_metric(items.metric, mover)
    chooser = _IndexChooser(mover=movers, lift=False, random_state=random_state).fit(X, y)
    parts = [step for step in steps(chooser.mover_) if not isinstance(step, Unit)]
    chosen = clone(parts[0]) if parts else Stay()
    if isinstance(chosen, MoveLabeled):
        chosen.set_params(keep_moments=True)
    with step(f"learning {name(chosen)} from {len(y):,} items"):
        chosen.fit(X, y)
    with step("measuring plain k-NN for comparison"):
        plain = plain_neighbors(chooser, X, y)
    facts: dict[str, Any] = {
        "data": items.about(),
        "learned": {
            "from": "labels",
            "column": label,
            "n": len(y),
            "classes": n_classes,
            "without a vector or a label": n_rows - len(y),
            "mover": name(chosen),
            "n_neighbors": int(chooser.n_neighbors_),
            "n_neighbors before": plain,
            "chosen by": chooser.explain(),
            "tried": tried_rows(chooser.cv_results_, name(chooser.mover_)),
            "seconds": perf_counter() - started,
        },
        "figures": _label_figures(chooser.cv_results_),
    }
    label_or_none = label if chosen._uses_labels else None
    return Repair(chosen, items.metric, label_or_none, None, facts, scores=chooser.scores)


class _IndexChooser(MoveLabeledClassifierCV):
    """It chooses for an index: held-out queries teach what its nearest items say, and no others."""

    scores: ItemScores | None = None

    def _calibrate(self, validation: CrossValidation, mover: Mover) -> None:
        held_out = validation.held_out(mover, self.n_neighbors_, *queries_wanted(validation.n_classes))
        mean = np.asarray(self.mover_.space_.mean)
        self.scores = scores_of_classes(held_out, self.classes_, self.codes_, mean, self.n_neighbors_)


def check_classes(n_classes: int, label: str, n: int) -> None:
    """Raise a StoreError where n items are of one class alone, or no two of them are of the same class."""
    if n_classes < 2:
        raise StoreError(f"column {label!r} has {n_classes} class; two or more are needed to learn.")
    if n_classes == n:
        raise StoreError(
            f"no two of {n:,} items have the same value in the column {label!r}: is it a column of ids? Give "
            "the classes of the items."
        )


def movers_for_metric(metric: str, mover: str) -> list[Mover]:
    """Return the movers that are tried; for "auto", those that add no column and can be learned in parts."""
    movers = movers_in_parts() if mover == "auto" else [MoveLabeled(alpha) for alpha in MIDDLE]
    if metric == "l2":
        return movers
    movers = [mover for mover in movers if not isinstance(mover, Scale)]
    return [mover if isinstance(mover, Stay) else Chain([mover, Unit()]) for mover in movers]


def _label_figures(table: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return the held-out accuracy of not moving, and what the choice adds on the same queries."""
    stay = np.flatnonzero(table["mover"] == "Stay()")
    if not len(stay):
        return []
    names = ("mean_test_score", "behind_choice", "standard_error", "n_queries")
    before, gain, error, n = (table[name][stay[0]].item() for name in names)
    interval = gain - NORMAL * error, gain + NORMAL * error
    change = Change("accuracy, held out, chosen by it", "all", n, before, before + gain, *interval)
    return [asdict(change)]


def learn_from_pairs(
    items: IndexItems,
    judgements: Judgements,
    log: np.ndarray | None = None,
    *,
    column: bool = False,
    repeats: int | None = None,
    random_state: int = 0,
) -> Repair:
    """Learn the map, and the held steps of items that have queries, that answer held-out queries best.

    With a log of queries, judged or not, a correction is learned on top, where one helps.

    Items of length 1 keep it: under L2, too, they are learned as under cosine, which has the same neighbours.
    `repeats` says how often queries are split to choose a setting.
    """
    if are_unit(items.vectors):
        items = items.in_space("cosine")
    if log is not None:
        correction_metric(items, log, column)  # refuses a column before anything is learned
    started, is_unit = perf_counter(), items.metric == "cosine"
    queries = JudgedQueries(items.comparable(judgements.queries), judgements.rows(items.places))

    def learn(judged: JudgedQueries, vectors: np.ndarray) -> Iterator[tuple[PairSetting, np.ndarray]]:
        return PairMap(judged, vectors, is_unit).ways(vectors)

    scores = score_held_out(items.vectors, queries, learn, repeats=repeats, random_state=random_state)
    chosen, why = choose_setting(scores)
    choice = {
        "mover": chosen.in_words(),
        "chosen by": why,
        "tried": tried_settings(scores, chosen),
        "surface": surface(scores, chosen),
    }
    figures = _pair_figures(scores, chosen)
    model = _learn_with(chosen, items, judgements, choice, figures, random_state, started)
    if log is None:
        return model
    folds = partial(_folds, items.vectors, queries, chosen, is_unit, random_state)
    options: dict[str, Any] = {"column": column, "random_state": random_state}
    return with_correction(model, items, log, folds=Folds(len(queries.queries), folds), **options)


def learn_again(model: Repair, items: IndexItems, judgements: Judgements, random_state: int = 0) -> Repair:
    """Learn a model again from other pairs, with its settings; how these were chosen stays what it was."""
    if are_unit(items.vectors):
        items = items.in_space("cosine")
    penalty = getattr(model.mover, "alpha", None)
    alpha = penalty.value if isinstance(penalty, Penalty) else None
    setting = PairSetting(alpha, 0.0 if model.steps is None else model.steps.step)
    choice = {name: model.learned[name] for name in ("mover", "chosen by", "tried", "surface")}
    figures = model.facts["figures"]
    return _learn_with(setting, items, judgements, choice, figures, random_state, perf_counter())


def _learn_with(
    setting: PairSetting,
    items: IndexItems,
    judgements: Judgements,
    choice: dict[str, Any],
    figures: list[dict[str, Any]],
    random_state: int,
    started: float,
) -> Repair:
    """Learn with a setting; `choice` and `figures` say how it was chosen."""
    is_unit = items.metric == "cosine"
    queries = JudgedQueries(items.comparable(judgements.queries), judgements.rows(items.places))
    pairs = PairMap(queries, items.vectors, is_unit)
    seen = items.ids[pairs.rows].tolist()
    mover = _map(pairs, setting)
    learned = {
        "from": "pairs",
        "n": len(pairs.x),
        "queries": len(judgements.queries),
        "items with queries": len(seen),
        **choice,
        "seconds": perf_counter() - started,
        "seen": seen if len(seen) <= SEEN else [],
        "query ids": judgements.ids if len(judgements.ids) <= SEEN else [],
        "pairs left out": judgements.left_out,
    }
    facts = {"data": items.about(), "learned": learned, "figures": figures}
    scored = _score_relevance(items.vectors, queries, setting, is_unit, random_state)
    return Repair(mover, items.metric, None, _steps(pairs, items, setting), facts, scores=scored)


def _folds(
    vectors: np.ndarray,
    judged: JudgedQueries,
    setting: PairSetting,
    is_unit: bool,
    random_state: int,
    log: np.ndarray,
) -> tuple[Iterator[LogFold], int]:
    """Return folds by which a correction is chosen, and their number; a setting learns without the fold."""
    numbers = fold_numbers(len(judged.queries))
    parts = query_folds(len(judged.queries), FOLDS, np.random.default_rng(random_state))

    def folds() -> Iterator[LogFold]:
        for train, test in (parts[number] for number in numbers):
            pairs = PairMap(judged.take(train), vectors, is_unit)
            stored = pairs.stepped(setting.step, pairs.moved(setting.alpha, vectors))
            yield LogFold(stored, judged.take(test), without(log, judged.queries[test]))

    return folds(), len(numbers)


def _score_relevance(
    vectors: np.ndarray, judged: JudgedQueries, setting: PairSetting, is_unit: bool, random_state: int
) -> ItemScores | None:
    """Learn how likely answers are to be relevant, from queries that a setting has not learned from."""
    squared, is_relevant = [], []
    width = min(ANSWERS, len(vectors))
    for train, test in query_folds(len(judged.queries), FOLDS, np.random.default_rng(random_state)):
        pairs, held = PairMap(judged.take(train), vectors, is_unit), judged.take(test)
        stored = pairs.stepped(setting.step, pairs.moved(setting.alpha, vectors))
        distances, rows = nearest(held.queries, stored, width)
        squared.append(np.square(distances, dtype=np.float64))
        is_relevant.append(gains(rows, held.relevant) > 0)
    scores = ItemScores().fit(np.concatenate(squared), np.concatenate(is_relevant), vectors.shape[1])
    return scores if scores.has_relevance else None


def _pair_figures(scores: HeldOutScores, chosen: PairSetting) -> list[dict[str, Any]]:
    """Return the held-out nDCG of not moving and of the choice, for all, seen and unseen items."""
    parts = [part for part in ("all", "seen", "unseen") if len(scores.of(scores.stay, part)) > 1]
    measure = f"nDCG@{K}, held out, chosen by it"
    return [
        asdict(measure_change(measure, part, scores.of(scores.stay, part), scores.of(chosen, part)))
        for part in parts
    ]


def _map(pairs: PairMap, chosen: PairSetting) -> Mover:
    """Return the map of all items, or one that moves nothing."""
    if chosen.alpha is None:
        return Stay().fit(pairs.z, np.zeros(len(pairs.z)))
    mover = MoveLabeled(Penalty(chosen.alpha, relative=True), toward="identity", keep_moments=True)
    with step(f"learning the map from {len(pairs.x):,} pairs"):
        return mover.fit_pairs(pairs.x, pairs.z)


def _steps(pairs: PairMap, items: IndexItems, chosen: PairSetting) -> ItemSteps | None:
    if not chosen.step:
        return None
    goals = pairs.goals(chosen.step, pairs.moved(chosen.alpha, items.vectors))
    return ItemSteps(items.ids[pairs.rows], goals.astype(np.float32), chosen.step)
