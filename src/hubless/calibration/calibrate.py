"""Calibration: what a classifier learns from held-out queries, and what it answers by it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, namespace, to_numpy
from ..neighbors.knn import vote
from ..support.progress import step
from .evidence import Evidence, Stored, class_shares, evidence_of, smoothed_shares
from .familiarity import Known, familiar_numbers, familiarity_of, learn_known
from .learn_probability import METHODS, learn_probability
from .probability import Curve, Probability, probabilities_of, probabilities_of_votes


class HeldOut(NamedTuple):
    """Queries that were not learned from, and the objects that answer them."""

    stored: Stored
    queries: Array  # (m, d)
    truth: Array  # (m,), class numbers
    weights: Array | None = None  # (m,)


class Calibration(NamedTuple):
    """What was learned from held-out queries; without any, probabilities are shares of votes.

    The fields are those of `Probability`, `Curve` and `Known`, for saving.
    """

    method: str | None = None
    n_queries: int | None = None
    coefficients: Any = None
    unit: Any = None
    power: Any = None
    doubt: Any = None
    knots: Any = None
    values: Any = None
    numbers: Any = None
    sums: Any = None

    @property
    def probability(self) -> Probability:
        """What turns evidence into probabilities."""
        curve = None if self.knots is None else Curve(self.knots, self.values)
        return Probability(self.coefficients, self.unit, self.power, self.doubt, curve)

    @property
    def known(self) -> Known | None:
        """What held-out queries look like."""
        return None if self.numbers is None else Known(self.numbers, self.sums)

    def check(self) -> None:
        """Refuse what cannot have been learned."""
        has = [value is not None for value in self]
        curve, known = self.method == "isotonic", self.numbers is not None
        wanted = [True] * 6 + [curve] * 2 + [known] * 2 if self.method in METHODS else [False] * len(self)
        rising = (self.knots, self.values, self.numbers, self.sums)
        is_right = has == wanted and not any((np.diff(a, axis=0) < 0).any() for a in rising if a is not None)
        if self.method is not None and is_right:
            is_right = self.coefficients.shape == (4,) and self.unit > 0 and 0 <= self.doubt < 1
            is_right = is_right and (self.numbers is None or self.numbers.shape[1] == 3)
        if not is_right:
            raise ValueError("calibration_ is not what a calibration learns; calibrate the model again.")


LEARNED = {  # how a model declares its calibration for saving, see `saving.state`
    "calibration_.method": "text optional",
    "calibration_.n_queries": "number optional",
    "calibration_.coefficients": "p host optional",
    "calibration_.unit": "number optional",
    "calibration_.power": "number optional",
    "calibration_.doubt": "number optional",
    "calibration_.knots": "q host optional",
    "calibration_.values": "q host optional",
    "calibration_.numbers": "ht host optional",
    "calibration_.sums": "g host optional",
}
MOST, ENOUGH = 1500, 1000  # held-out queries; after enough of them, no other fold is learned
CELLS, LEAST = 1 << 17, 300  # of their classes and queries: fewer queries where classes are many


def queries_wanted(n_classes: int) -> tuple[int, int]:
    """Return how many held-out queries are answered at most, and how many are enough."""
    most = min(MOST, max(LEAST, CELLS // n_classes))
    return most, min(ENOUGH, most)


def calibrate(parts: Iterable[HeldOut]) -> Calibration:
    """Learn from held-out queries; from few, only how often the answers were counted."""
    with step("learning probabilities from held-out queries"):
        collected = [_collect(part) for part in parts]
    if not collected:
        return Calibration()
    found, classes, priors, weighted = zip(*collected, strict=True)
    evidence = Evidence(*map(np.concatenate, zip(*found, strict=True)))
    weights = None if weighted[0] is None else np.concatenate(weighted)
    return learn_calibration(evidence, np.concatenate(classes), np.mean(priors, axis=0), weights)


def learn_calibration(
    evidence: Evidence, truth: np.ndarray, prior: np.ndarray, weights: np.ndarray | None = None
) -> Calibration:
    """Learn from the evidence of held-out queries, in NumPy."""
    method, learned = learn_probability(evidence, truth, prior, weights)
    known = learn_known(familiar_numbers(evidence, _smooth(evidence, learned, prior)))
    return Calibration(
        method,
        len(truth),
        learned.coefficients,
        learned.unit,
        learned.power,
        learned.doubt,
        *(learned.curve or (None, None)),
        *(known or (None, None)),
    )


def _collect(part: HeldOut) -> tuple[Evidence, np.ndarray, np.ndarray, np.ndarray | None]:
    weights = None if part.weights is None else to_numpy(part.weights)
    evidence = evidence_of(part.queries, part.stored).on_host()
    return evidence, to_numpy(part.truth), to_numpy(class_shares(part.stored)), weights


def _smooth(evidence: Evidence, model: Probability, prior: Array) -> Array:
    """Return probabilities before the curve, whose steps make many of them equal."""
    xp = namespace(evidence.gaps)
    return probabilities_of(evidence, model._replace(curve=None), prior, xp.float64)


# --- answers ------------------------------------------------------------------------------------------------


class Calibrated(NamedTuple):
    """What a calibrated classifier says about queries."""

    winners: Array  # (m,), class numbers
    probabilities: Array  # (m, c)
    familiarity: Array  # (m,); None where too few queries were held out

    @staticmethod
    def joined(parts: "list[Calibrated]") -> "Calibrated":
        """Return what was said about several batches of queries."""
        if len(parts) == 1:
            return parts[0]
        xp = namespace(parts[0].winners)
        columns = zip(*parts, strict=True)
        return Calibrated(*(None if one[0] is None else xp.concat(list(one)) for one in columns))


def answer(queries: Array, stored: Stored, calibration: Calibration) -> Calibrated:
    """Return the class numbers, their probabilities and how familiar the queries are."""
    return answer_evidence(evidence_of(queries, stored), class_shares(stored), calibration, stored.moved)


def answer_evidence(evidence: Evidence, prior: Array, calibration: Calibration, like: Array) -> Calibrated:
    """Return what follows from evidence, in the library and precision of `like`."""
    model, known = calibration.probability, calibration.known
    p = probabilities_of(evidence, model, prior, like.dtype)
    familiarity = None
    if known is not None:
        familiarity = familiarity_of(evidence, _smooth(evidence, model, prior), known, like)
    return Calibrated(evidence.winners, p, familiarity)


def answer_by_votes(labels: Array, weights: Array | None, stored: Stored, calibration: Calibration) -> Array:
    """Return probabilities from the classes of neighbours and the weights of their votes; (m, k) → (m, c)."""
    prior, dtype = class_shares(stored), stored.moved.dtype
    shares = smoothed_shares(labels, weights, prior)
    return probabilities_of_votes(shares, vote(labels, weights), calibration.probability, prior, dtype)
