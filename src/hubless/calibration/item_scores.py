"""What a model for an index knows about the answers of that index, learned on held-out queries."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..arrays import to_numpy
from ..neighbors.search import search
from .answers import QUERIES, FoundItems, answers_of, evidence_of_answers, squared_distances, wanted
from .calibrate import LEARNED, Calibrated, Calibration, HeldOut, answer_evidence, learn_calibration
from .evidence import Evidence, class_shares
from .relevance import K, Relevance, learn_relevance, probability_of_relevance, threshold
from .unknown import check_rate


class ItemScores(BaseEstimator):
    """Probabilities of the answers of an index: of the classes of queries, and that an item is relevant.

    Attributes
    ----------
    relevance_ : how likely an item is to be relevant, by the distances of the answers to a query
    calibration_, classes_, counts_, mean_, n_neighbors_ : where items have classes
        What held-out queries taught, the classes, how many items each has, the mean of the items before they
        were moved, and how many items vote.
    """

    _learned: ClassVar[dict[str, str]] = {
        **LEARNED,
        "counts_": "c host optional",
        "mean_": "d host optional",
        "n_neighbors_": "count optional",
        "relevance_.coefficients": "r host optional",
        "relevance_.unit": "number optional",
        "relevance_.best": "b host optional",
    }
    _learned_types: ClassVar[dict[str, Any]] = {"calibration_": Calibration, "relevance_": Relevance}

    def __init__(self) -> None:
        self.calibration_, self.relevance_ = Calibration(), Relevance()

    def fit(self, squared: np.ndarray, is_relevant: np.ndarray, n_features: int) -> "ItemScores":
        """Learn from the squared distances of answers to held-out queries, (n, k), and their relevance."""
        self.n_features_in_, self.relevance_ = n_features, learn_relevance(squared, is_relevant)
        return self

    @property
    def has_classes(self) -> bool:
        """Whether it knows the probabilities of classes."""
        return self.calibration_.method is not None

    @property
    def has_relevance(self) -> bool:
        """Whether it knows how likely items are to be relevant."""
        return self.relevance_.coefficients is not None

    def classify(self, queries: np.ndarray, answers: FoundItems, n_classes: int) -> Calibrated:
        """Return the classes of queries from their answers; classes beyond `classes_` are new ones."""
        new = n_classes - len(self.counts_)
        counts = np.concatenate([self.counts_, np.zeros(new)])
        prior = (counts + 1) / (counts.sum() + n_classes)  # as in `class_shares`
        evidence = evidence_of_answers(queries, answers, prior, self.mean_, self.n_neighbors_)
        return answer_evidence(evidence, prior, self.calibration_, prior)

    def check_reject(self, reject: float) -> None:
        """Refuse a rate of false alarms that is none, or that so few held-out queries cannot promise."""
        known = self.calibration_.known
        if known is None:
            raise ValueError("the model was learned from too few items to notice queries unlike them.")
        check_rate(reject, len(known.sums))

    def relevance(self, squared: Any) -> np.ndarray:
        """Return how likely answers are to be relevant, from their squared distances; (m, k) → (m, k)."""
        squared = np.asarray(squared, dtype=np.float64)
        if squared.ndim != 2 or squared.shape[1] < 2:
            raise ValueError(
                "an answer is compared with the best of the others: give the distances of two or more "
                f"answers per query, (n_queries, n_answers); got the shape {squared.shape}."
            )
        if np.isnan(squared).any() or (squared < 0).any():
            raise ValueError("squared distances are numbers of at least 0; got some that are not.")
        return probability_of_relevance(squared, self.relevance_)

    def threshold(self, reject: float = 0.05) -> float:
        """Return the least probability that an answer should have; for so many queries none has it."""
        assert self.relevance_.best is not None
        check_rate(reject, len(self.relevance_.best))
        return threshold(self.relevance_, reject)

    def _check_parameters(self) -> None:
        """It has none."""

    def _check_loaded(self) -> None:
        """Refuse learned numbers that no fit gives."""
        self.relevance_.check()
        self.calibration_.check()
        parts = [hasattr(self, name) for name in ("classes_", "counts_", "mean_", "n_neighbors_")]
        if parts != [self.has_classes] * len(parts):
            raise ValueError("calibration_, classes_, counts_, mean_ and n_neighbors_ belong together.")
        if self.has_classes and (self.counts_ < 0).any():
            raise ValueError("counts_ must be at least 0.")


def scores_of_classes(
    parts: Iterable[HeldOut], classes: np.ndarray, codes: np.ndarray, mean: np.ndarray, n_neighbors: int
) -> ItemScores | None:
    """Learn from held-out queries of known classes; None where there are none.

    Parameters
    ----------
    parts : queries that were not learned from, and the objects that answer them
    classes, codes, mean : of all objects, which will answer new queries
    n_neighbors : int, objects that vote
    """
    found = [_answered(part, rows, n_neighbors) for part in parts for rows in _blocks(part)]
    if not found:
        return None
    evidence, truths, priors, squared, is_relevant = zip(*found, strict=True)
    joined = Evidence(*map(np.concatenate, zip(*evidence, strict=True)))
    width = min(distances.shape[1] for distances in squared)
    near, right = (np.concatenate([a[:, :width] for a in each]) for each in (squared, is_relevant))
    scores = ItemScores().fit(near, right, len(mean))
    scores.calibration_ = learn_calibration(joined, np.concatenate(truths), np.mean(priors, axis=0))
    scores.classes_, scores.n_neighbors_ = classes, n_neighbors
    scores.counts_ = np.bincount(codes, minlength=len(classes)).astype(np.float64)
    scores.mean_ = np.asarray(mean, dtype=np.float64)
    return scores


def _blocks(part: HeldOut) -> list[slice]:
    n = int(part.queries.shape[0])
    return [slice(start, min(start + QUERIES, n)) for start in range(0, n, QUERIES)]


def _answered(part: HeldOut, rows: slice, k: int) -> tuple[Any, ...]:
    """Return what the answers to some held-out queries show."""
    queries, stored = to_numpy(part.queries[rows, :]), part.stored
    width = min(wanted(k), int(stored.moved.shape[0]))
    indices = to_numpy(search(part.queries[rows, :], stored.moved, width, return_distance=False))
    answers, truth = answers_of(indices, stored), to_numpy(part.truth[rows])
    prior = to_numpy(class_shares(stored))
    evidence = evidence_of_answers(queries, answers, prior, to_numpy(stored.space.mean), k)
    squared, is_relevant = squared_distances(queries, answers), answers.codes == truth[:, None]
    return evidence, truth, prior, squared[:, :K], is_relevant[:, :K]
