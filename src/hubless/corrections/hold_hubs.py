"""HoldHubs: objects that answer more questions than chance allows are held to the share of an average one."""

from functools import partial
from typing import Any, ClassVar

import array_api_compat as compat
import numpy as np
from scipy.stats import binom

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.inputs import check_count, check_fraction
from .correction import ANSWERS, Correction, answers_of
from .formulas import ROUNDING, hold_back, over_objects, question_weights

__all__ = ["HoldHubs"]


class HoldHubs(Correction):
    """Hold objects that answer more questions than chance allows to the share of an average object.

    All other objects stay exactly where they are: a small correction, for use without any judgement. Logged
    queries that share half of their answers count as one question, so that what answers one popular question
    is no hub.

    Parameters
    ----------
    rate : float, default=0.05
        Probability that any object is held back where answers are given at random.
    n_answers : int, default=10
        Answers of a query that are counted.
    metric, column : as for NNN

    Attributes
    ----------
    thresholds_ : array of shape (m,)
        Similarity above which an object is among the answers of each query.
    limits_ : array of shape (m,)
        The same among the objects that are not held back.
    weights_ : array of shape (m,)
        What each query counts.
    most_, allowed_ : float
        Questions that an object may answer by chance, and that it is left with if it answers more.
    bank_, where_, n_features_in_ : as for NNN

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.corrections import HoldHubs
    >>> rng = np.random.default_rng(0)
    >>> queries, objects = rng.standard_normal((200, 30)), rng.standard_normal((500, 30))
    >>> objects[7] = queries.mean(axis=0)  # planted: near everything
    >>> _, bias = HoldHubs().fit(queries, objects).bias(objects)
    >>> np.flatnonzero(bias).tolist()
    [7]
    """

    _checks: ClassVar = {"rate": check_fraction, "n_answers": check_count}
    _learned: ClassVar = {
        "thresholds_": "q",
        "limits_": "q",
        "weights_": "q",
        "most_": "number",
        "allowed_": "number",
    }
    _spares = True

    def __init__(
        self, rate: float = 0.05, n_answers: int = ANSWERS, *, metric: str = "cosine", column: bool = False
    ) -> None:
        self.rate = rate
        self.n_answers = n_answers
        self.metric = metric
        self.column = column

    def _learn(self, objects: Array) -> None:
        xp, n = namespace(objects), int(objects.shape[0])
        k = min(self.n_answers, max(1, n - 1))
        answers = answers_of(self.bank_, objects, min(2 * k + 2, n), self.metric)
        found = to_numpy(answers)
        weights = question_weights(found[:, :k], n)
        self.weights_ = convert(weights, xp.zeros(1, dtype=xp.float64, device=compat.device(objects)))
        self.most_ = float(binom.isf(self.rate / n, round(weights.sum()), min(1.0, k / n)))
        self.allowed_ = float(max(1.0, weights.sum() * k / n))
        self.thresholds_ = self._middles(objects, answers, np.full(found.shape, True), k)
        shares = np.bincount(found[:, :k].ravel(), np.repeat(weights, k), n)
        is_held = shares > self.most_ * (1 + ROUNDING)
        self.limits_ = self._middles(objects, answers, ~is_held[found], k)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        weights = to_numpy(self.weights_)
        if not (weights.min() > 0 and weights.max() <= 1):
            raise ValueError(
                f"weights_ are from {weights.min()} to {weights.max()}; expected above 0, up to 1."
            )
        if not (self.most_ >= 0 and self.allowed_ >= 1):
            raise ValueError(
                f"most_ and allowed_ are {self.most_} and {self.allowed_}; expected at least 0 and 1."
            )

    # the middle between the similarities of the k-th answer and the next
    def _middles(self, objects: Array, answers: Array, counted: np.ndarray, k: int) -> Array:
        """Return what parts the answers to each query from the rest, by those that are counted; (m,)."""
        xp, rank = namespace(objects), np.cumsum(counted, axis=1)
        sides = []
        for place in (k, k + 1):
            column = np.minimum((rank < place).sum(axis=1), answers.shape[1] - 1)
            rows = xp.take_along_axis(answers, convert(column[:, None], answers), axis=1)[:, 0]
            sides.append(self._similarities(objects, rows))
        return 0.5 * (sides[0] + sides[1])

    def _similarities(self, objects: Array, rows: Array) -> Array:
        """Return the similarity of each query to the object of this row number; (m,) in float64."""
        xp = namespace(objects)
        Z, queries = (xp.astype(X, xp.float64) for X in (xp.take(objects, rows, axis=0), self.bank_))
        if self.metric == "l2":
            return -0.5 * xp.vecdot(queries - Z, queries - Z, axis=-1)
        return xp.vecdot(queries, Z, axis=-1)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        formula: Any = partial(
            hold_back,
            thresholds=self.thresholds_,
            limits=self.limits_,
            weights=self.weights_,
            most=self.most_,
            allowed=self.allowed_,
        )
        return None, over_objects(Z, self.bank_, self.metric, formula)
