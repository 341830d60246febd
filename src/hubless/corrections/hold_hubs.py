"""HoldHubs: objects that answer more questions than chance allows are held to the share of an average one."""

from typing import Any, ClassVar

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, namespace, take_rows, to_numpy
from ..arrays.inputs import check_count, check_fraction
from ..arrays.library import blocks, put
from ..chance import hub_threshold
from ..movers.points import mean_square
from .correction import ANSWERS, Correction, answers_of
from .formulas import (
    ROUNDING,
    apart_from_middle,
    hold_back,
    over_objects,
    question_weights,
    similarities,
)

__all__ = ["HoldHubs"]

# An object lies in the middle of its queries below this share of their squared distance from it: one with
# content of its own has about 1. Queries have little in common above this share of the spread of all: those
# that ask the same in other words are nearer to each other.
MIDDLE, APART = 0.5, 0.75
ROWS = 512  # objects that are looked at together


def with_copies(objects: Array, is_chosen: np.ndarray) -> np.ndarray:
    """Return a mask of the chosen objects and all that are equal to one of them; bool (n,).

    Of many copies, an exact search returns the first few alone.
    """
    firsts = to_numpy(objects[:, 0])
    alike = np.flatnonzero(np.isin(firsts, firsts[is_chosen]))
    rows = to_numpy(take_rows(objects, convert(alike, objects)))
    copied = {row.tobytes() for row, chosen in zip(rows, is_chosen[alike], strict=True) if chosen}
    is_copy = np.zeros_like(is_chosen)
    is_copy[alike] = [row.tobytes() in copied for row in rows]
    return is_copy


class HoldHubs(Correction):
    """Hold objects that answer more questions than chance allows to the share of an average object.

    All other objects stay exactly where they are: a small correction, for use without any judgement. Logged
    queries that share half of their answers count as one question, so that what answers one popular question
    is no hub. Only for an object in the middle of queries that have little in common, as one is that was made
    from queries, does every query count: a few copies of it would make all its queries one question.

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
    most_queries_, allowed_queries_ : float
        The same for queries, by which an object in the middle of its queries is judged.
    spread_ : float
        The mean squared distance of the logged queries to their mean.
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
        "most_queries_": "number",
        "allowed_queries_": "number",
        "spread_": "number",
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
        xp, n, m = namespace(objects), int(objects.shape[0]), int(self.bank_.shape[0])
        k = min(self.n_answers, max(1, n - 1))
        answers = answers_of(self.bank_, objects, min(2 * k + 2, n), self.metric)
        found = to_numpy(answers)
        weights = question_weights(found[:, :k], n)
        self.spread_ = mean_square(self.bank_)
        like = xp.zeros(1, dtype=xp.float64, device=compat.device(objects))
        self.weights_ = convert(weights, like)
        self.most_, self.most_queries_ = (self._most(total, n, k) for total in (weights.sum(), m))
        self.allowed_, self.allowed_queries_ = (
            max(1.0, float(total * k / n)) for total in (weights.sum(), m)
        )
        self.thresholds_ = self._middles(objects, answers, np.full(found.shape, True), k)
        is_held = with_copies(objects, self._hubs_among(objects, found[:, :k]))
        self.limits_ = self._limits(objects, answers, is_held, k)

    def _most(self, n_queries: float, n_objects: int, k: int) -> float:
        """Return how many of so many queries an object may answer by chance."""
        return float(hub_threshold(max(1, round(n_queries)), n_objects, k, self.rate) - 1)

    def _hubs_among(self, objects: Array, found: np.ndarray) -> np.ndarray:
        """Return which of all objects answer too much, given the answers to all logged queries; bool (n,)."""
        n, k = int(objects.shape[0]), found.shape[1]
        shares = np.bincount(found.ravel(), np.repeat(to_numpy(self.weights_), k), n)
        counts = np.bincount(found.ravel(), minlength=n)
        is_held = shares > self.most_ * (1 + ROUNDING)
        crowded = np.flatnonzero((counts > self.most_queries_) & ~is_held)
        for rows in blocks(len(crowded), ROWS):
            is_answer = (found[:, :, None] == crowded[rows]).any(axis=1).T
            near = namespace(objects).take(objects, convert(crowded[rows], objects), axis=0)
            is_held[crowded[rows]] = to_numpy(self._are_middle(near, convert(is_answer, near)))
        return is_held

    def _are_middle(self, Z: Array, is_answer: Array) -> Array:
        """Return which objects lie in the middle of queries that have little in common; bool (n,)."""
        own, theirs = apart_from_middle(Z, self.bank_, is_answer, self.metric == "cosine")
        return (own < MIDDLE * theirs) & (theirs > APART * self.spread_)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        weights = to_numpy(self.weights_)
        if not (weights.min() > 0 and weights.max() <= 1):
            raise ValueError(
                f"weights_ are from {weights.min()} to {weights.max()}; expected above 0, up to 1."
            )
        for most, allowed in ((self.most_, self.allowed_), (self.most_queries_, self.allowed_queries_)):
            if not (most >= 0 and allowed >= 1):
                raise ValueError(f"most_ and allowed_ are {most} and {allowed}; expected at least 0 and 1.")

    def _limits(self, objects: Array, answers: Array, is_held: np.ndarray, k: int) -> Array:
        """Return what parts the answers to each query from the rest, without the objects held back; (m,)."""
        counted = ~is_held[to_numpy(answers)]
        if (counted.sum(axis=1) > k).all() or is_held.all():
            return self._middles(objects, answers, counted, k)
        rest = take_rows(objects, convert(np.flatnonzero(~is_held), objects))
        answers = answers_of(self.bank_, rest, min(k + 1, int(rest.shape[0])), self.metric)
        return self._middles(rest, answers, np.full(answers.shape, True), k)

    # t − ε: an object that is as similar as the k-th answer and the next is an answer, too
    def _edges(self, precision: Any) -> Array:
        """Return the similarity above which an object answers each query, whatever its rounding; (m,)."""
        return self.thresholds_ - self._rounding(precision)

    # 8 eps (|t| + spread), as similarities are sums of products of this size
    def _rounding(self, precision: Any) -> Array:
        xp = namespace(self.thresholds_)
        return 8 * float(xp.finfo(precision).eps) * (xp.abs(self.thresholds_) + self.spread_)

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
        xp, t = namespace(Z), namespace(Z).astype(self._edges(Z.dtype), Z.dtype)
        w = xp.astype(self.weights_, Z.dtype)

        def counted(S: Array) -> Array:
            above = xp.astype(t < S, S.dtype)
            return xp.stack([above @ w, xp.sum(above, axis=1)], axis=1)

        counts = over_objects(Z, self.bank_, self.metric, counted)
        is_hub, is_crowded = counts[:, 0] > self.most_ * (1 + ROUNDING), counts[:, 1] > self.most_queries_
        bias = self._held(Z, is_hub, self.weights_, self.allowed_)
        ones = xp.ones_like(self.weights_)
        middle = self._held(Z, is_crowded, ones, self.allowed_queries_, of_middle=True)
        return None, xp.maximum(bias, middle)

    def _held(
        self, Z: Array, mask: Array, weights: Array, allowed: float, *, of_middle: bool = False
    ) -> Array:
        """Return b of the objects of a mask, of `of_middle` those in the middle of queries, else 0; (n,)."""
        xp, (rows,) = namespace(Z), namespace(Z).nonzero(mask)
        bias = xp.zeros((Z.shape[0],), dtype=xp.float64, device=compat.device(Z))
        for part in blocks(int(rows.shape[0]), ROWS):
            near = xp.take(Z, rows[part], axis=0)
            S = similarities(near, self.bank_, self.metric)
            held = hold_back(S, self.limits_ + self._rounding(S.dtype), weights, allowed)
            if of_middle:
                is_answer = xp.astype(self._edges(S.dtype), S.dtype)[None, :] < S
                held = xp.where(self._are_middle(near, is_answer), held, 0.0)
            bias = put(bias, rows[part], convert(held, bias))
        return bias
