"""Correction, the base class of all corrections: a number per stored object, learned from logged queries.

No labels and no judgements are needed. A query is compared with a corrected object by

    g s(q, z) − b        with s as `formulas` defines it

`bias(Z)` returns b, and g where it is not 1; `move(Z)` returns objects whose vectors say the same, for
queries as they are (`directions`), or, with `column=True`, exactly, for queries with a 0 in one more column.
An object that comes later gets its correction from the same queries, which the correction keeps (`bank_`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self, overload

import array_api_compat as compat
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, convert, namespace, to_numpy
from ..arrays.inputs import check_choice, check_count, check_matrix, check_positive, distinct
from ..arrays.library import blocks
from ..arrays.types import ArrayLike, HostArray, HostLike, SomeArray
from ..movers.points import ROWS, squared_norms
from ..neighbors.frame import ignore_overflow
from ..neighbors.search import search
from .directions import QueryDirections, find_directions, floor_under, with_column, write
from .formulas import similarities

METRICS = ("l2", "cosine", "ip")
BANK = 20_000  # queries that are learned from and kept; of more, a random sample
SAMPLE = 20_000  # objects, at most, that what all share is learned from
ANSWERS = 10  # of a query
check_strength = partial(check_positive, or_zero=True)  # of what b is multiplied by
ROUNDING = 1e-6  # of the length of a unit vector


class Correction(BaseEstimator):
    """Base class of all corrections: learn from logged queries how often an object is an answer.

    A subclass learns in `_learn`, computes g and b in `_correct`, and declares the rest here.

    Examples
    --------
    >>> from hubless.corrections import NNN, Correction
    >>> issubclass(NNN, Correction)
    True
    """

    _checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}  # of parameters, by name
    # What all corrections learn, and what a subclass learns besides; see `saving.state`.
    _learned_by_all: ClassVar[dict[str, str]] = {
        "bank_": "qd",
        "where_.u": "d",
        "where_.n": "d",
        "where_.centre": "d",
        "where_.square": "number",
        "where_.level": "number",
        "where_.floor": "number none",
    }
    _learned: ClassVar[dict[str, str]] = _learned_by_all
    _learned_types: ClassVar[dict[str, Any]] = {"where_": QueryDirections}
    _by_distance = False  # whether it is defined for distances alone, and not for inner products
    _spares = False  # whether most objects stay exactly where they are
    metric: str
    column: bool

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._learned = {**Correction._learned_by_all, **cls._learned}

    def fit(self, queries: ArrayLike, objects: ArrayLike) -> Self:
        """Learn from logged queries and the objects that they are asked of.

        Parameters
        ----------
        queries : array of shape (m, d), without judgements or labels; equal ones count once
        objects : array of shape (n, d)
        """
        self._check_parameters()
        asked, stored = check_matrix(queries, "queries"), check_matrix(objects, "objects")
        namespace(asked, stored)  # raises for mixtures
        if asked.shape[1] != stored.shape[1]:
            raise ValueError(
                f"queries have {asked.shape[1]} columns, objects {stored.shape[1]}: they must be of one "
                "space. Learn a map between the two from pairs first: MoveLabeled().fit_pairs."
            )
        asked, stored = self._in_space(asked, "queries"), self._in_space(stored, "objects")
        self.n_features_in_ = int(stored.shape[1])
        self.bank_ = namespace(asked).astype(distinct_rows(asked, BANK), stored.dtype)
        self._learn(stored)
        self._learn_space(stored)
        return self

    def bias(self, Z: ArrayLike) -> tuple[Array | None, Array]:
        """Return g, (n,) or None where it is 1 for all, and b, (n,), of objects; both in float64."""
        check_is_fitted(self, "bank_")
        return self._correct(self._checked(Z, "objects"))

    @overload
    def move(self, Z: HostLike) -> HostArray: ...
    @overload
    def move(self, Z: SomeArray) -> SomeArray: ...
    def move(self, Z: Any) -> Array:
        """Return objects that carry their correction: what an index should store.

        Returns
        -------
        moved : array of shape (n, d), or (n, d + 1) with `column=True`
        """
        check_is_fitted(self, "where_")
        Z = self._checked(Z, "objects")
        if getattr(self, "strength", None) == 0:
            return with_zero(Z) if self.column else namespace(Z).asarray(Z, copy=True)
        gain, bias = self._correct(Z)
        if self.column:
            return with_column(Z, gain, bias, self.where_, self.metric, self.where_.floor)[0]
        return write(Z, gain, bias, self.where_, self.metric, self._spares)

    def agreement(self, queries: ArrayLike, objects: ArrayLike, k: int = ANSWERS) -> float:
        """Return the share of the k answers to queries that `move` gives as the exact correction would.

        Give queries that were not learned from: how alike new queries are along the directions of `where_`
        is the error of doing without a column.
        """
        check_is_fitted(self, "where_")
        check_count("k", k)
        Z, queries = self._checked(objects, "objects"), self._checked(queries, "queries")
        xp, k = namespace(Z, queries), min(k, int(Z.shape[0]))
        queries = xp.astype(queries, Z.dtype, copy=False)
        exact = with_column(Z, *self._correct(Z), self.where_, self.metric)[0]
        wanted = search(with_zero(queries), exact, k, return_distance=False)
        asked, metric = (with_zero(queries), "l2") if self.column else (queries, self.metric)
        found = answers_of(asked, self.move(Z), k, metric)
        return shared_answers(to_numpy(wanted), to_numpy(found))

    # --- what a subclass may replace ------------------------------------------------------------------------

    def _learn(self, objects: Array) -> None:
        """Learn from all objects and `bank_`."""

    def _correct(self, Z: Array) -> tuple[Array | None, Array]:
        """Return g, or None for 1, and b, both of shape (n,) in float64."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        """Refuse learned numbers that no fit gives."""
        for name in ("beta_", "scale_"):
            if not getattr(self, name, 1.0) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number above 0.")
        if self.where_.square < 0:
            raise ValueError(f"where_.square is {self.where_.square}; expected a number of at least 0.")

    # --- the rest -------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, check in self._checks.items():
            check(name, getattr(self, name))
        check_choice("metric", self.metric, METRICS)
        check_choice("column", self.column, (True, False))
        if self._by_distance and self.metric == "ip":
            raise ValueError(
                f'{type(self).__name__} is defined by distances: metric must be "l2" or "cosine"; got "ip".'
            )
        if self.column and self.metric != "l2":
            raise ValueError(
                f"one more column, in which queries have a 0, changes Euclidean distances alone; got metric="
                f'{self.metric!r}. Use column=False, or an index that compares by "l2".'
            )

    def _checked(self, Z: Any, name: str) -> Array:
        """Return vectors of the width that was learned from, in the space where they are compared."""
        Z = check_matrix(Z, name)
        if Z.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} have {Z.shape[1]} columns; the correction was learned from vectors of "
                f"{self.n_features_in_}. Give vectors of the same model."
            )
        return self._in_space(Z, name)

    # z / ‖z‖ under cosine; what has that length already keeps its bits
    def _in_space(self, Z: Array, name: str) -> Array:
        xp = namespace(Z)
        with ignore_overflow():
            squares = squared_norms(Z)
        compared_in = xp.float64 if self.metric == "cosine" else Z.dtype
        if not float(xp.max(squares)) < float(xp.finfo(compared_in).max) / 16:  # room for sums of two
            raise ValueError(
                f"the squares of {name} overflow {compared_in}: got vectors as long as "
                f"{float(xp.max(xp.abs(Z))):.3g}. Divide queries and objects by one large number first."
            )
        lengths = xp.sqrt(squares)
        to_scale = (lengths > 0) & (xp.abs(lengths - 1) > ROUNDING)
        if self.metric != "cosine" or not bool(xp.any(to_scale)):
            return Z
        divisor = xp.where(to_scale, lengths, xp.ones_like(lengths))[:, None]
        parts = [xp.astype(Z[part, :] / divisor[part, :], Z.dtype) for part in blocks(Z.shape[0], ROWS)]
        return xp.concat(parts)

    def _learn_space(self, objects: Array) -> None:
        """Learn the directions that b is written onto, and what all objects share."""
        where = find_directions(self.bank_, self.metric)
        if self._spares:  # b is 0 for most, and never below
            self.where_ = where._replace(floor=0.0 if self.column else None)
            return
        sample = sample_rows(objects, SAMPLE)
        xp, (gain, bias) = namespace(sample), self._correct(sample)
        where = where._replace(level=float(xp.mean(bias)))
        if self.column:
            where = where._replace(floor=with_column(sample, gain, bias, where, self.metric)[1])
        elif self.metric == "l2":
            where = where._replace(floor=floor_under(sample, gain, bias, where))
        self.where_ = where

    def _similarity_scale(self, objects: Array) -> float:
        """Return the standard deviation of similarities: the unit of 1/β."""
        xp, queries = namespace(objects), sample_rows(self.bank_, 1000)
        S = similarities(sample_rows(objects, 1000), queries, self.metric)
        return float(xp.std(xp.astype(S, xp.float64))) or 1.0


# of one length with one more column, √(R² − ‖z‖²), in which queries have a 0: qᵀz = ½ (‖q‖² + R² − d²)
def answers_of(queries: Array, objects: Array, k: int, metric: str) -> Array:
    """Return row numbers of the k nearest objects by a metric; of unit vectors under cosine; (m, k)."""
    xp = namespace(queries, objects)
    queries = xp.astype(queries, objects.dtype, copy=False)
    if metric == "ip":
        squares = squared_norms(objects)
        column = xp.astype(xp.sqrt(xp.clip(xp.max(squares) - squares, min=0.0)), objects.dtype)
        objects = xp.concat([objects, column[:, None]], axis=1)
        queries = with_zero(queries)
    return search(queries, objects, k, return_distance=False)


def with_zero(queries: Array) -> Array:
    """Return queries with a 0 in one more column."""
    xp = namespace(queries)
    zeros = xp.zeros((queries.shape[0], 1), dtype=queries.dtype, device=compat.device(queries))
    return xp.concat([queries, zeros], axis=1)


def shared_answers(wanted: np.ndarray, found: np.ndarray) -> float:
    """Return the mean share of the wanted answers that were found; (m, k) row numbers each."""
    same = (wanted[:, :, None] == found[:, None, :]).any(axis=2)
    return float(same.mean())


def sample_rows(X: Array, most: int) -> Array:
    """Return rows of X in their order: all, or of more than `most` a random sample, always the same."""
    n = int(X.shape[0])
    if n <= most:
        return X
    chosen = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return namespace(X).take(X, convert(chosen, X), axis=0)


def distinct_rows(X: Array, most: int) -> Array:
    """Return the different rows of X in the order of their first; of more than `most`, a random sample."""
    first = distinct(to_numpy(X))
    if len(first) < X.shape[0]:
        X = namespace(X).take(X, convert(first, X), axis=0)
    return sample_rows(X, most)
