"""Mover: what every way to move labeled objects is, a transformer that never touches a query.

`fit_transform(X, y)` gives the labeled objects as a k-NN should store them, `transform(X)` gives queries as
it should be asked: as they are. The two differ on purpose (as in scikit-learn's TargetEncoder): a pipeline
calls the first when it is fitted and the second when it predicts. `move(Z, y)` moves objects that come later.

Some movers compare by ‖L'x − z‖² + b instead of ‖x − z‖². The stored side can carry that alone, in one more
column in which queries have a 0, so it needs no change of the query path either: see `leave`.
"""

from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, convert, is_dask, namespace
from ..devices import host_like, to_device, to_host
from ..distributed.learn import Ways, blocks_of, learn
from ..distributed.search import asked, moved
from ..inputs import (
    check_class_numbers,
    check_labels,
    check_points,
    check_squares,
    check_weights,
)
from ..large.lesson import Lesson, Sums
from ..large.sampling import check_max_pairs
from ..large.survey import Survey
from ..targets import labeled_objects
from .linear import weighted_mean
from .points import Points, squared_norms


class Exit(NamedTuple):
    """What takes points back to the space of the queries."""

    mean: Array  # (d,), float64
    gain: float  # t below; 1 without a metric of its own
    floor: float | None  # least b' that the column can show, that of the objects learned from; None without


# With P = z − L'μ, t > 0 and z' = μ + t L P:
#   t (‖L'x − z‖² + b) = ‖x − z'‖² + b' + (what is the same for every z),   b' = t (‖P‖² + b) − t² ‖LP‖²
# and ‖(x, 0) − (z', √(b' − floor))‖² orders objects as that does. t is free: the slope of ‖P‖² + b over ‖LP‖²
# leaves to the column what the moved objects' own norms cannot tell.
def leave(points: Points, exit: Exit | None, mean: Array | None = None) -> tuple[Array, Exit]:
    """Points in the space of the queries, with the column where they need it; shape (n, d) or (n, d + 1)."""
    xp = namespace(points.Z)
    Z, bias = points.Z, points.bias
    gain = 1.0 if exit is None else exit.gain
    mean = exit.mean if exit is not None else mean
    if points.L is not None:
        L, centre = points.L, xp.astype(mean, Z.dtype)
        P = Z - centre @ L
        back = P @ L.T
        own, squares = squared_norms(P), squared_norms(back)
        own = own if bias is None else own + bias
        if exit is None:
            gain = _slope(xp, own, squares, 100 * float(xp.finfo(Z.dtype).eps))
        Z, bias = centre + gain * back, gain * own - gain**2 * squares
    if bias is None:
        return Z, Exit(mean, gain, None) if exit is None else exit
    if exit is None:
        exit = Exit(mean, gain, float(xp.min(bias)))
    column = xp.sqrt(xp.clip(bias - exit.floor, min=0.0))
    check_squares(float(xp.sum(column)))
    return xp.concat([Z, xp.astype(column, Z.dtype)[:, None]], axis=1), exit


def as_asked(X: Array, exit: Exit) -> Array:
    """Queries as they are, with a 0 in the column where stored objects have one."""
    if exit.floor is None:
        return X
    xp = namespace(X)
    return xp.concat([X, xp.zeros((X.shape[0], 1), dtype=X.dtype, device=compat.device(X))], axis=1)


def _slope(xp: Any, own: Array, squares: Array, rounding: float) -> float:
    """Slope of `own` over `squares`; their ratio where `squares` are all the same up to rounding."""
    unit = float(xp.max(squares)) or 1.0  # so that squares of squares neither overflow nor vanish
    own, squares = own / unit, squares / unit
    centred = squares - xp.mean(squares)
    variance = float(xp.sum(centred * centred))
    is_flat = variance <= squares.shape[0] * rounding**2
    slope = 0.0 if is_flat else float(xp.sum(centred * own)) / variance
    fallback = float(xp.sum(own)) / (float(xp.sum(squares)) or 1.0)
    return slope if slope > 0 else abs(fallback) or 1.0


def refuse_on_dask(**given: Any) -> None:
    """Refuse what is not done on Dask."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} cannot be given with Dask arrays; leave it out, or give NumPy arrays.")


class Mover(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Learns z ↦ z' from labeled objects.

    A subclass says what it learns (`_estimate`) and where objects go (`_apply`).
    """

    _uses_labels = True  # whether `move` asks for the class of an object
    _lifts = False  # whether moved objects have one column more

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None) -> Any:
        """Learn from labeled objects.

        Parameters
        ----------
        X : array of shape (n, d); a Dask array or data frame is learned from where it is
        y : array of shape (n,), the class of each object
        sample_weight : array of shape (n,), optional
            Weight of each object; 0 leaves it out of the learning.
        targets : int array of shape (n, width), optional
            Precomputed targets: same-class objects by row number, nearest first, -1 for none.
        """
        self._fit(X, y, sample_weight, targets)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, targets: Any = None
    ) -> Array:
        """Learn as `fit` does, and give the labeled objects moved: what a k-NN should store.

        Returns
        -------
        moved : array of shape (n, d), or (n, d + 1) for movers that need a column
        """
        return self._fit(X, y, sample_weight, targets)

    def transform(self, X: Any) -> Array:
        """Queries as a k-NN should be asked: as they are, with a 0 in the column where there is one.

        Returns
        -------
        X : array of shape (n_queries, d), or (n_queries, d + 1)
        """
        check_is_fitted(self, "exit_")
        if is_dask(X):
            return asked(self, X)
        return as_asked(check_points(self, X, method="transform", like=self.exit_.mean), self.exit_)

    def move(self, Z: Any, y: Any = None) -> Array:
        """Move labeled objects that come later, which a k-NN may then store with the others.

        Parameters
        ----------
        Z : array of shape (n, d)
        y : array of shape (n,): their classes, all of them in `classes_`; only where the mover uses labels

        Returns
        -------
        moved : array of shape (n, d), or (n, d + 1)
            The column holds no less than that of the objects learned from: one that lies far outside of them
            is less preferred than it should be.
        """
        check_is_fitted(self, "exit_")
        if is_dask(Z):
            return moved(self, Z, y if self._uses_labels else None)
        Z = to_device(check_points(self, Z, method="move", like=self.exit_.mean), self._device())
        codes = None
        if self._uses_labels:
            codes = check_class_numbers(y, Z, self.classes_, type(self).__name__)
        return host_like(self._moved(Z, codes), self._device())

    def _fit(self, X: Any, y: Any, sample_weight: Any, targets: Any) -> Array:
        self._check()
        if is_dask(X):
            return self._fit_dask(X, y, sample_weight, targets)
        X = to_device(check_points(self, X, min_rows=2), self._device())
        classes, codes = check_labels(y, X)
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, self._width())
        moved = self._learn_from(Points.start(labeled, int(classes.shape[0])))
        self.classes_, self.n_singletons_ = classes, labeled.n_without_target()
        for name in ("n_pairs_", "skipped_"):  # of an earlier fit part by part
            self.__dict__.pop(name, None)
        if weights is not None and moved.shape[0] != X.shape[0]:
            moved = self._with_the_rest(X, codes, weights, moved)
        return moved if self._device() is None else to_host((to_host(self), moved))[1]

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, targets: Any) -> Any:
        refuse_on_dask(sample_weight=sample_weight, targets=targets, device=self._device())
        self._learn_on_dask(X, y)
        return moved(self, X, y if self._uses_labels else None)

    def _learn_on_dask(self, X: Any, y: Any) -> Survey:
        objects = blocks_of(X, y)
        seen, sums = learn(objects, self._lesson, Ways(check_max_pairs("auto", objects.n_columns)))
        self._fit_sums(seen, sums)
        self._keep_names(X)
        return seen

    def _keep_names(self, X: Any) -> None:
        """Keep the names of the columns of a data frame, where all are texts, as scikit-learn does."""
        names = list(getattr(X, "columns", ()))
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _with_the_rest(self, X: Array, codes: Array, weights: Array, moved: Array) -> Array:
        """All objects moved: also those of weight 0, which were not learned from."""
        xp, everywhere = namespace(X), convert(self._moved(X, codes), X)
        kept, moved = xp.nonzero(weights > 0)[0], convert(moved, X)
        rows = xp.concat([kept, xp.nonzero(~(weights > 0))[0]])
        both = xp.concat([moved, xp.take(everywhere, rows[moved.shape[0] :], axis=0)])
        return xp.take(both, xp.argsort(rows), axis=0)

    def _learn_from(self, points: Points) -> Array:
        """Learn, and give the points moved, in the space of the queries."""
        mean = weighted_mean(points.X, points.weights)
        moved, exit = leave(self._learn(points), None, mean)
        self.exit_ = exit
        return moved

    def _moved(self, Z: Array, codes: Array | None) -> Array:
        return leave(self._apply(Points(Z, Z, codes, 0)), self.exit_)[0]

    def _lesson(self, mean: np.ndarray) -> Lesson:
        """What it learns of objects that are not all here: sums over them, about their mean."""
        raise ValueError(
            f"{type(self).__name__} needs all objects at once, in memory. What learns from objects part by "
            "part, from files or Dask, is MoveLabeled, LabelRidge, Shrink, Scale or Stay."
        )

    def _learn_sums(self, seen: Survey, sums: Sums) -> None:
        """Learn from sums over objects."""

    def _fit_sums(self, seen: Survey, sums: Sums) -> None:
        """Become what a fit to all objects would have made of it."""
        self._learn_sums(seen, sums)
        self.exit_ = Exit(seen.mean, 1.0, None)
        self.classes_, self.n_singletons_ = seen.classes, int((seen.sizes == 1).sum())
        self.n_pairs_, self.skipped_ = sums.n_pairs, [tuple(part) for part in seen.skipped]
        self.n_features_in_ = seen.n_columns
        self.__dict__.pop("feature_names_in_", None)

    def _check(self) -> None:
        """Refuse parameters that make no sense."""

    def _width(self) -> int:
        """How many targets of an object it looks at."""
        return 0

    def _check_inside(self, outside: str) -> None:
        """Check what another estimator fits, which alone says where it is computed."""
        self._check()
        if self._device() is not None:
            raise ValueError(
                f"device={self._device()!r} of a mover inside {outside} would play no part; give it to the "
                "classifier, as MoveLabeledClassifier(mover=..., device=...)."
            )

    def _device(self) -> str | None:
        """Where arrays of the host are computed; None for the host."""
        return None

    def _learn(self, points: Points) -> Points:
        """Learn from points and move them."""
        self._estimate(points)
        return self._apply(points)

    def _estimate(self, points: Points) -> None:
        """Learn from points."""

    def _apply(self, points: Points) -> Points:
        """Move points, learned from or not."""
        raise NotImplementedError

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of moved objects: those of X, and "lift" for the column of some movers."""
        names = super().get_feature_names_out(input_features)
        return names if self.exit_.floor is None else np.append(names, "lift").astype(object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Stay(Mover):
    """Do not move: the mover that every other is measured against.

    Examples
    --------
    >>> from hubless.movers import Stay
    >>> Stay().fit_transform([[0.0], [4.0]], [0, 1]).tolist()
    [[0.0], [4.0]]
    """

    _uses_labels = False

    def _lesson(self, mean: np.ndarray) -> Lesson:
        return Lesson(mean, 0)

    def _apply(self, points: Points) -> Points:
        return points
