"""How far probabilities can be trusted: log-loss, expected calibration error, and the reliability diagram."""

from typing import Any, NamedTuple

import numpy as np

from ..arrays import is_foreign, to_numpy
from ..arrays.inputs import check_count
from ..arrays.types import ArrayLike, ArrayOrNone

SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in scikit-learn
BINS = 15


class Reliability(NamedTuple):
    """The bars of a reliability diagram: queries by the probability of their answer, in bins of equal width.

    A bin without queries has the middle of the bin as both numbers.

    Examples
    --------
    >>> from hubless.calibration import reliability
    >>> bars = reliability([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1], bins=2)
    >>> bars.counts.tolist()  # all answers have a probability above 0.5
    [0, 3]
    """

    confidence: np.ndarray  # (bins,): mean probability of the answers
    accuracy: np.ndarray  # (bins,): share of the answers that are right
    counts: np.ndarray  # (bins,): queries

    @property
    def error(self) -> float:
        """The expected calibration error: Σ_b (n_b / n) |accuracy_b − confidence_b|."""
        shares = self.counts / self.counts.sum()
        return float(shares @ np.abs(self.accuracy - self.confidence))


# −(1/n) Σ log p(y_i)
def log_loss(probabilities: ArrayLike, truth: ArrayLike, weights: ArrayOrNone = None) -> float:
    """Return the mean of −log of the probability that the true class was given.

    Parameters
    ----------
    probabilities : array of shape (n, c), as `predict_proba` returns them
    truth : int array of shape (n,)
        Class numbers: columns of `probabilities`, as np.searchsorted(model.classes_, y) gives them.
    weights : array of shape (n,), optional

    Examples
    --------
    >>> from hubless.calibration import log_loss
    >>> round(log_loss([[0.5, 0.5], [0.5, 0.5]], [0, 1]), 3)  # log 2
    0.693
    """
    P, truth = _checked(probabilities, truth)
    given = np.maximum(P[np.arange(len(P)), truth], SMALLEST)
    return float(np.average(-np.log(given), weights=None if weights is None else np.asarray(weights)))


def expected_calibration_error(probabilities: ArrayLike, truth: ArrayLike, bins: int = BINS) -> float:
    """Return by how much accuracy and probability of an answer differ, on average over bins of queries.

    Parameters
    ----------
    probabilities, truth : as in `log_loss`
    bins : int, default=15
        Of equal width from 0 to 1, by the largest probability of a query.

    Examples
    --------
    >>> from hubless.calibration import expected_calibration_error
    >>> probabilities = [[0.75, 0.25]] * 4
    >>> expected_calibration_error(probabilities, [0, 0, 0, 1])  # three of four are right
    0.0
    """
    return reliability(probabilities, truth, bins).error


def reliability(probabilities: ArrayLike, truth: ArrayLike, bins: int = BINS) -> Reliability:
    """Return the data of a reliability diagram; parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> from hubless.calibration import reliability
    >>> bars = reliability([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1], bins=2)
    >>> bars.counts.tolist(), round(bars.error, 3)
    ([0, 3], 0.133)
    """
    P, truth = _checked(probabilities, truth)
    bins = check_count("bins", bins)
    confidence, is_right = P.max(axis=1), P.argmax(axis=1) == truth
    # the b-th bin is (b / bins, (b + 1) / bins], and 0 is in the first
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    middle, n = (np.arange(bins) + 0.5) / bins, np.maximum(counts, 1)

    def mean(values: np.ndarray) -> np.ndarray:
        return np.where(counts > 0, np.bincount(place, weights=values, minlength=bins) / n, middle)

    return Reliability(mean(confidence), mean(is_right), counts)


def _checked(probabilities: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
    P, truth = (to_numpy(a) if is_foreign(a) else np.asarray(a) for a in (probabilities, truth))
    P = P.astype(np.float64)
    if P.ndim != 2 or truth.shape != P.shape[:1] or not len(P):
        raise ValueError(
            "probabilities must have one row per query and one column per class, and truth one class number "
            f"per query; got the shapes {P.shape} and {truth.shape}."
        )
    if truth.dtype.kind not in "iu" or truth.min() < 0 or truth.max() >= P.shape[1]:
        raise ValueError(
            f"truth must be whole numbers from 0 to {P.shape[1] - 1}, the columns of the probabilities; give "
            "np.searchsorted(model.classes_, y)."
        )
    return P, truth
