"""Learn to move items into the space of the queries, where these have other columns: captions and images.

λ is chosen on held-out queries, as `selection/across_spaces.py` says.
"""

from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ..movers import MoveLabeled
from ..movers.ridge import move
from ..neighbors.knn import unit
from ..selection.across_spaces import (
    FOLDS,
    JudgedPairs,
    K,
    PenaltyScores,
    item_folds,
    score_penalties,
    unseen_items,
)
from ..selection.from_log import LogFold, fold_numbers
from ..selection.grid import GRID
from ..selection.pair_map import JudgedQueries
from ..solve import Penalty, RidgeProblem
from ..support.progress import step
from .index_items import IndexItems, are_unit
from .judgements import Judgements
from .learn_from_log import Folds, correction_metric, with_correction, without
from .learn_in_memory import SEEN
from .repair import Repair


def learn_across_spaces(
    items: IndexItems,
    judgements: Judgements,
    log: np.ndarray | None = None,
    *,
    column: bool = False,
    random_state: int = 0,
) -> Repair:
    """Learn the map from items of d columns to queries of e that answers held-out queries best.

    With a log of queries, judged or not, a correction is learned on top, where one helps.

    Items and queries of length 1 under L2 are learned as under cosine: moved items have length 1 too.
    """
    queries = np.asarray(judgements.queries, dtype=items.vectors.dtype)
    if are_unit(items.vectors) and are_unit(queries):
        items = items.in_space("cosine")
    if log is not None:
        correction_metric(items, log, column)  # refuses a column before anything is learned
    started, is_unit = perf_counter(), items.metric == "cosine"
    judged = JudgedQueries(unit(queries) if is_unit else queries, judgements.rows(items.places))
    scores = score_penalties(items.vectors, judged, is_unit, random_state=random_state)
    chosen, pairs = GRID[scores.best], JudgedPairs.of(judged.relevant)
    mover = MoveLabeled(chosen, keep_moments=True)
    with step(f"learning the map from {len(pairs.item):,} pairs"):
        mover.fit_pairs(judged.queries[pairs.query], items.vectors[pairs.item])
    facts = _facts(items, judgements, pairs, mover, scores)
    facts["learned"]["seconds"] = perf_counter() - started
    model = Repair(mover, items.metric, None, None, facts)
    if log is None:
        return model
    folds = Folds(len(judged.queries), partial(_folds, items.vectors, judged, chosen, is_unit, random_state))
    options: dict[str, Any] = {"column": column, "random_state": random_state}
    return with_correction(model, items, log, folds=folds, part="unseen", **options)


def _facts(
    items: IndexItems, judgements: Judgements, pairs: JudgedPairs, mover: MoveLabeled, scores: PenaltyScores
) -> dict[str, Any]:
    """Return what the model keeps of its data and of the choice of λ."""
    seen = items.ids[np.unique(pairs.item)].tolist()
    widths = f"from {mover.n_features_in_} columns to the {mover._width} of the queries"
    return {
        "data": items.about(),
        "learned": {
            "from": "pairs",
            "n": len(pairs.query),
            "queries": len(judgements.queries),
            "items with queries": len(seen),
            "mover": f"W {widths}, {GRID[scores.best]}",
            "chosen by": scores.explain(),
            "tried": scores.tried_rows(),
            "seen": seen if len(seen) <= SEEN else [],
            "query ids": judgements.ids if len(judgements.ids) <= SEEN else [],
            "pairs left out": judgements.left_out,
        },
        "figures": [_figure(scores)],
    }


def _figure(scores: PenaltyScores) -> dict[str, Any]:
    """Return the held-out nDCG of the choice; there is none before the move."""
    return {
        "measure": f"nDCG@{K}, held out, chosen by it",
        "part": "unseen",
        "n": scores.scores.shape[1],
        "before": None,
        "after": float(scores.scores[scores.best].mean()),
    }


def _folds(
    vectors: np.ndarray,
    judged: JudgedQueries,
    penalty: Penalty,
    is_unit: bool,
    random_state: int,
    log: np.ndarray,
) -> tuple[Iterator[LogFold], int]:
    """Return folds by which a correction is chosen, and their number; they are made as for λ."""
    numbers = fold_numbers(len(judged.queries))
    rng, pairs = np.random.default_rng(random_state), JudgedPairs.of(judged.relevant)

    def folds() -> Iterator[LogFold]:
        for fold, _ in zip(item_folds(judged.relevant, FOLDS, rng), numbers, strict=False):
            rest = pairs.without(fold, judged.relevant)
            items, held = unseen_items(vectors, judged.take(fold), rest.item, rng)
            W, mean, query_mean = _map(rest.problem(judged, vectors), penalty)
            moved = move(items, W, mean, query_mean)
            yield LogFold(unit(moved) if is_unit else moved, held, without(log, held.queries))

    return folds(), len(numbers)


def _map(problem: RidgeProblem, penalty: Penalty) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    W = problem.path().at(penalty.absolute(problem.mean_eigenvalue()))
    return W, problem.mean, problem.query_mean
