"""What a store says of its answers, as squared distances, and from these how likely answers are relevant."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.inputs import check_choice
from ..calibration.item_scores import ItemScores
from ..repair.repair import Repair

# ‖x − z‖² = 2 − 2 cos(x, z) where both have length 1
SQUARED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "squared l2": lambda numbers: numbers,
    "l2": np.square,
    "cosine": lambda numbers: 2 - 2 * numbers,
    "cosine distance": lambda numbers: 2 * numbers,
}
OF_DIRECTIONS = ("cosine", "cosine distance")


def score_threshold(model: Repair, reject: float = 0.05) -> float:
    """Return the least probability that an answer should have, for `score_threshold` or `similarity_cutoff`.

    Queries like those held out, when the model was learned, get no answer at all with a probability of about
    `reject`.
    """
    return scores_of(model).threshold(reject)


def scores_of(model: Repair) -> ItemScores:
    """Return what a model learned about answers; ValueError where it has not."""
    if model.scores is None or not model.scores.has_relevance:
        raise ValueError(
            "the model has not learned how likely answers are to be relevant: it was learned from too few "
            "held-out queries, on a sample, from a log or by an older hubless, or was updated since. Fit it "
            "again, from labels or from queries and their answers."
        )
    return model.scores


def check_kind(model: Repair, kind: str) -> None:
    """Refuse numbers that are no squared distances of the vectors that a model moves."""
    scores_of(model)
    check_choice("scores", kind, tuple(SQUARED))
    if kind in OF_DIRECTIONS and model.stored_metric != "cosine":
        raise ValueError(
            f"scores={kind!r}: the model is for an index that compares by {model.stored_metric}, where moved "
            "items have other lengths than 1. Use a store that compares by Euclidean distance, with "
            "scores='l2' or 'squared l2'."
        )


def probabilities(model: Repair, numbers: Sequence[Any], kind: str) -> list[float]:
    """Return how likely the answers to one query are relevant, from what their store says of them."""
    squared = np.maximum(SQUARED[kind](np.asarray(numbers, dtype=np.float64)), 0.0)
    return [float(p) for p in scores_of(model).relevance(squared[None])[0]]
