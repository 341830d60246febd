"""Mover, the base class of all movers: a transformer that moves labeled objects and never a query.

`fit_transform(X, y)` returns the labeled objects as a k-NN should store them; `transform(X)` returns queries
as it should search for them: unchanged. The two differ on purpose (as in scikit-learn's TargetEncoder): a
pipeline calls the first when it is fitted and the second when it predicts. `move(Z, y)` moves objects that
are added later.

Some movers add a column to stored objects, in which queries have a 0: see `points.QuerySpace`.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, convert, namespace
from ..arrays.devices import dispatched, host_like, to_device, to_host
from ..arrays.inputs import check_class_numbers, check_labels, check_points, check_queries, check_weights
from ..arrays.types import ArrayLike, ArrayOrNone, HostArray, HostLike, SomeArray
from ..targets import labeled_objects
from .points import Points, QuerySpace, Raised, as_queries, to_query_space, weighted_mean
from .totals import Needs, Totals

__all__ = ["Mover"]


def check_used(queries: Any, movers: Sequence["Mover"]) -> None:
    """Refuse queries that none of the movers learns from; without movers, any may be chosen."""
    if queries is None or not movers or any(mover._uses_queries for mover in movers):
        return
    users = [kind.__name__ for kind in Mover.__subclasses__() if kind._uses_queries is True]
    names = ", ".join(sorted({type(mover).__name__ for mover in movers}))
    raise ValueError(
        f"queries are learned from by {', '.join(users)}, alone or in a Chain, and not by {names}: leave "
        f"queries out, or use a mover that learns from them, such as {users[0]}()."
    )


class Mover(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of all movers, which learn in `_estimate`, move in `_apply` and declare the rest here.

    Examples
    --------
    >>> from hubless.movers import MOVERS, Mover, Shrink
    >>> isinstance(Shrink(), Mover), "Shrink" in MOVERS
    (True, True)
    """

    _checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}  # of parameters, by name
    _uses_labels = True  # whether `move` needs the class of an object
    _uses_queries = False  # whether it learns from queries without labels, where there are some
    _adds_column = False  # whether moved objects have one column more
    _ignores_axes = True  # whether objects that are turned about the origin are moved alike, and turned
    # What it learns, which is all that saving needs to know (see `saving.state`); what a mover that is not
    # inside a chain learns besides; attributes that are not saved; and why a mover cannot be saved.
    _learned: ClassVar[dict[str, str]] = {}
    _learned_alone: ClassVar = {"space_.mean": "d", "space_.gain": "number", "space_.floor": "number none"}
    _learned_types: ClassVar[dict[str, Any]] = {"space_": QuerySpace}
    _unsaved: ClassVar[tuple[str, ...]] = ("n_pairs_", "skipped_")
    _why_unsaved: ClassVar[str] = ""
    # Parameters of the settings that mover="auto" starts with, none for a mover that is not tried; and those
    # that are tried where objects are learned from in parts, for an index or on Dask: None for the same.
    _tried: ClassVar[tuple[dict[str, Any], ...]] = ()
    _tried_in_parts: ClassVar[tuple[dict[str, Any], ...] | None] = None

    @dispatched
    def fit(
        self,
        X: ArrayLike,
        y: ArrayOrNone = None,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
        queries: ArrayOrNone = None,
    ) -> Self:
        """Learn from labeled objects.

        Parameters
        ----------
        X : array of shape (n, d); a Dask array or data frame is learned from where it is
        y : array of shape (n,), the class of each object
        sample_weight : array of shape (n,), optional
            Weight of each object; an object of weight 0 is not learned from.
        targets : int array of shape (n, width), optional
            Precomputed targets: same-class objects by row number, nearest first, -1 for none.
        queries : array of shape (m, d), optional
            Queries without labels, such as those to be answered: for `Balance`, alone or in a chain, where
            they take the place of the objects that represent queries. Other movers refuse them.
        """
        self._fit(X, y, sample_weight, targets, queries)
        return self

    @overload
    def fit_transform(
        self,
        X: HostLike,
        y: ArrayOrNone = None,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
        queries: ArrayOrNone = None,
    ) -> HostArray: ...
    @overload
    def fit_transform(
        self,
        X: SomeArray,
        y: ArrayOrNone = None,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
        queries: ArrayOrNone = None,
    ) -> SomeArray: ...
    @dispatched
    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None, queries: Any = None
    ) -> Array:
        """Learn as `fit` does and return the labeled objects moved: what a k-NN should store.

        Returns
        -------
        moved : array of shape (n, d), or (n, d + 1) for movers that need a column
        """
        return self._fit(X, y, sample_weight, targets, queries)

    @overload
    def transform(self, X: HostLike) -> HostArray: ...
    @overload
    def transform(self, X: SomeArray) -> SomeArray: ...
    @dispatched
    def transform(self, X: Any) -> Array:
        """Return queries as a k-NN should search for them: unchanged, with a 0 in the column if there is one.

        Returns
        -------
        X : array of shape (n_queries, d), or (n_queries, d + 1)
        """
        check_is_fitted(self, "space_")
        return as_queries(self._check_queries(X, "transform"), self.space_)

    @overload
    def move(self, Z: HostLike, y: ArrayOrNone = None) -> HostArray: ...
    @overload
    def move(self, Z: SomeArray, y: ArrayOrNone = None) -> SomeArray: ...
    @dispatched
    def move(self, Z: Any, y: Any = None) -> Array:
        """Move labeled objects that are added later, which a k-NN may then store with the others.

        Parameters
        ----------
        Z : array of shape (n, d)
        y : array of shape (n,): their classes, all of them in `classes_`; only where the mover uses labels

        Returns
        -------
        moved : array of shape (n, d), or (n, d + 1)
            The column is never below 0, its minimum over the objects learned from, so an object far outside
            of them may rank lower than it should.
        """
        check_is_fitted(self, "space_")
        Z = to_device(check_points(self, Z, method="move", like=self.space_.mean), self._device())
        codes = None
        if self._uses_labels:
            codes = check_class_numbers(y, Z, self.classes_, type(self).__name__)
        return host_like(self._move_objects(Z, codes), self._device())

    def _fit(self, X: Any, y: Any, sample_weight: Any, targets: Any, queries: Any) -> Array:
        self._check_parameters()
        check_used(queries, [self])
        X = check_points(self, X, min_rows=2)
        queries = to_device(check_queries(self, queries, X), self._device())
        X = to_device(X, self._device())
        classes, codes = check_labels(y, X)
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, self._n_targets(), queries)
        moved = self._fit_points(Points.of(labeled, int(classes.shape[0])))
        self.classes_, self.n_singletons_ = classes, labeled.n_without_target()
        self._forget_parts()
        if weights is not None and moved.shape[0] != X.shape[0]:
            moved = self._with_weightless(X, codes, weights, moved)
        return moved if self._device() is None else to_host((to_host(self), moved))[1]

    def _with_weightless(self, X: Array, codes: Array, weights: Array, moved: Array) -> Array:
        """Return all objects moved, including those of weight 0, which were not learned from."""
        xp, everywhere = namespace(X), convert(self._move_objects(X, codes), X)
        rows = xp.argsort(xp.astype(weights == 0, xp.int64), stable=True)  # those learned from come first
        weightless = xp.take(everywhere, rows[moved.shape[0] :], axis=0)
        return xp.take(xp.concat([convert(moved, X), weightless]), xp.argsort(rows), axis=0)

    def _fit_points(self, points: Points) -> Array:
        """Learn, and return the points moved, in the space of the queries."""
        mean = weighted_mean(points.X, points.weights)
        moved, self.space_ = to_query_space(self._learn(points), None, mean)
        return moved

    def _move_objects(self, Z: Array, codes: Array | None) -> Array:
        return to_query_space(self._apply(Points(Z, Z, codes, 0, inputs=Z)), self.space_)[0]

    # --- learning from sums, where the objects are not all in memory ----------------------------------------

    def _needs(self) -> Needs:
        """Return which sums over the objects it learns from."""
        learners = [kind.__name__ for kind in Mover.__subclasses__() if kind._learns_in_parts()]
        raise ValueError(
            f"{type(self).__name__} needs all objects at once, in memory. Movers that learn from objects in "
            f"parts, from files or Dask, are {', '.join(learners)}."
        )

    @classmethod
    def _learns_in_parts(cls) -> bool:
        """Return whether it can learn from sums over the objects."""
        return cls._needs is not Mover._needs

    def _learn_totals(self, totals: Totals) -> None:
        """Learn from sums over all objects."""

    def _fit_totals(self, totals: Totals) -> None:
        """Set all attributes that a fit to all objects would set."""
        self._learn_totals(totals)
        self.space_ = QuerySpace(totals.mean)
        self.classes_, self.n_singletons_ = totals.classes, int((totals.sizes == 1).sum())
        self.n_pairs_, self.skipped_ = totals.n_pairs, totals.skipped
        self.n_features_in_ = len(totals.mean)

    def _forget_parts(self) -> None:
        """Remove the attributes of an earlier fit from sums."""
        for name in ("n_pairs_", "skipped_"):
            self.__dict__.pop(name, None)

    # --- what a subclass may replace ------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse invalid parameters."""
        for name, check in self._checks.items():
            check(name, getattr(self, name))

    def _check_nested(self, where: str) -> None:
        """Check a mover that another estimator fits, which alone decides where it is computed."""
        self._check_parameters()
        if self._device() is not None:
            raise ValueError(
                f"device={self._device()!r} of a mover inside {where} would be ignored; give it to the "
                "classifier: MoveLabeledClassifier(mover=..., device=...)."
            )

    def _n_targets(self) -> int:
        """Return how many targets of an object it uses."""
        return int(getattr(self, "n_targets", 0))

    def _device(self) -> str | None:
        """Return the device that computes arrays of the host; None for the host."""
        return getattr(self, "device", None)

    def _has_column(self, before: bool) -> bool:
        """Return whether objects have a column after this mover; `before` says whether they had one."""
        return before or self._adds_column

    def _check_queries(self, X: Any, method: str) -> Array:
        """Return queries as a finite float matrix, of the width that they have."""
        return check_points(self, X, method=method, like=self.space_.mean)

    @property
    def _width(self) -> int:
        """Columns of moved objects, and of the queries that they are compared with."""
        return int(self.n_features_in_) + (self.space_.floor is not None)

    @property
    def _gives_order_alone(self) -> bool:
        """Whether distances to moved objects give only the order of neighbours, and only in L2."""
        return self._adds_column

    @property
    def _raised(self) -> Raised | None:
        """How far it raised all objects, where it did so in place of a column."""
        return None

    def _learn(self, points: Points) -> Points:
        """Learn from points and move them."""
        self._estimate(points)
        return self._apply(points)

    def _estimate(self, points: Points) -> None:
        """Learn from points."""

    def _apply(self, points: Points) -> Points:
        """Move points, whether they were learned from or not."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        """Refuse what was read from a file and cannot have been learned."""
        if not hasattr(self, "space_"):
            return
        if self._uses_labels and not hasattr(self, "classes_"):
            raise ValueError(f"classes_ are missing, and {type(self).__name__} moves objects by their class.")
        if (self.space_.floor is None) == self._adds_column:
            raise ValueError(f"space_.floor does not belong to {type(self).__name__}.")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of columns of moved objects: those of X, and "lift" for the additional column."""
        names = super().get_feature_names_out(input_features)
        return names if self.space_.floor is None else np.append(names, "lift").astype(object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
