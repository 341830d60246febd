"""HoldHubs: objects that answer more questions than chance allows are held to the share of an average one."""

from functools import partial
from typing import Any, ClassVar

from scipy.stats import binom

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.inputs import check_count, check_fraction
from .correction import ANSWERS, Correction, answers_of
from .formulas import hold_back, over_objects, question_weights

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
        Similarity from which an object is among the answers of each query.
    weights_ : array of shape (m,)
        What each query counts.
    most_, allowed_ : float
        Questions that an object may answer by chance, and that it is left with if it answers more.
    """

    _checks: ClassVar = {"rate": check_fraction, "n_answers": check_count}
    _learned: ClassVar = {
        "thresholds_": "q",
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
        answers = answers_of(self.bank_, objects, min(k + 1, n), self.metric)
        self.thresholds_ = self._thresholds(objects, answers, k)
        weights = question_weights(to_numpy(answers)[:, :k], n)
        self.weights_ = convert(weights, self.thresholds_)
        self.most_ = float(binom.isf(self.rate / n, int(weights.sum()), min(1.0, k / n)))
        self.allowed_ = float(max(1.0, weights.sum() * k / n))
        self.thresholds_ = xp.astype(self.thresholds_, xp.float64)

    # t_q = the middle between the similarities of the k-th and the next answer
    def _thresholds(self, objects: Array, answers: Array, k: int) -> Array:
        xp = namespace(objects)
        last = [xp.take(objects, answers[:, i], axis=0) for i in (k - 1, answers.shape[1] - 1)]
        pairs = [self._pairwise(xp.astype(last_objects, xp.float64)) for last_objects in last]
        return 0.5 * (pairs[0] + pairs[1])

    def _pairwise(self, Z: Array) -> Array:
        xp = namespace(Z)
        queries = xp.astype(self.bank_, xp.float64)
        if self.metric == "l2":
            return -0.5 * xp.vecdot(queries - Z, queries - Z, axis=-1)
        return xp.vecdot(queries, Z, axis=-1)

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        formula: Any = partial(
            hold_back,
            thresholds=self.thresholds_,
            weights=self.weights_,
            most=self.most_,
            allowed=self.allowed_,
        )
        return None, over_objects(Z, self.bank_, self.metric, formula)
