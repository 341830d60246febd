"""Learn to move items into the space of the queries, where these have other columns: captions and images.

λ is chosen on held-out queries, as `selection/across_spaces.py` says.
"""

from time import perf_counter

import numpy as np

from ..movers import MoveLabeled
from ..neighbors.knn import unit
from ..selection.across_spaces import JudgedPairs, K, score_penalties
from ..selection.from_pairs import JudgedQueries
from ..selection.grid import GRID
from .index_items import IndexItems, are_unit
from .judgements import Judgements
from .learn_in_memory import SEEN
from .repair import Repair


def learn_across_spaces(
    items: IndexItems, judgements: Judgements, *, random_state: int = 0, progress: bool | None = False
) -> Repair:
    """Learn the map from items of d columns to queries of e that answers held-out queries best.

    Items and queries of length 1 under L2 are learned as under cosine: moved items have length 1 too.
    """
    queries = np.asarray(judgements.queries, dtype=items.vectors.dtype)
    if are_unit(items.vectors) and are_unit(queries):
        items = items.in_space("cosine")
    started, is_unit = perf_counter(), items.metric == "cosine"
    judged = JudgedQueries(unit(queries) if is_unit else queries, judgements.rows(items.places))
    scores = score_penalties(items.vectors, judged, is_unit, random_state=random_state, progress=progress)
    chosen, pairs = GRID[scores.best], JudgedPairs.of(judged.relevant)
    mover = MoveLabeled(chosen, keep_moments=True)
    mover.fit_pairs(judged.queries[pairs.query], items.vectors[pairs.item])
    seen = items.ids[np.unique(pairs.item)].tolist()
    widths = f"from {mover.n_features_in_} columns to the {mover._width} of the queries"
    facts = {
        "data": items.about(),
        "learned": {
            "from": "pairs",
            "n": len(pairs.query),
            "queries": len(judged.queries),
            "items with queries": len(seen),
            "mover": f"W {widths}, λ = {chosen.value:.3g} scale",
            "chosen by": scores.explain(),
            "tried": scores.tried_rows(),
            "seconds": perf_counter() - started,
            "seen": seen if len(seen) <= SEEN else [],
            "query ids": judgements.ids if len(judgements.ids) <= SEEN else [],
            "pairs left out": judgements.left_out,
        },
        "figures": [
            {
                "measure": f"nDCG@{K}, held out, chosen by it",
                "part": "unseen",
                "n": scores.scores.shape[1],
                "before": None,
                "after": float(scores.scores[scores.best].mean()),
            }
        ],
    }
    return Repair(mover, items.metric, None, None, facts)
