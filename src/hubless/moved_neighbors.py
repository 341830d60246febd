"""k-NN among moved objects: what both classifiers do after they are fitted."""

from typing import Any, ClassVar, Self, overload

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, to_numpy
from .arrays.devices import dispatched, host_like, is_on_engine, to_device, to_host
from .arrays.inputs import check_choice, check_class_numbers, check_count, check_points, check_weights
from .arrays.library import blocks
from .arrays.types import ArrayLike, ArrayOrNone, HostArray, HostLike, Neighbors, SomeArray, Weights
from .calibration.calibrate import (
    LEARNED,
    Calibrated,
    Calibration,
    HeldOut,
    answer,
    answer_by_votes,
    calibrate,
)
from .calibration.evidence import Stored
from .calibration.unknown import check_rate, class_names, unknown_label, with_unknown
from .movers import MoveLabeled, Mover
from .movers.points import Points, as_queries
from .neighbors.knn import check_precomputed, probabilities, vote, votes_of
from .neighbors.search import check_enough, search
from .targets import Labeled

VOTES = ("uniform", "distance")
QUERIES = 1 << 15  # whose probabilities are computed at once


class MovedNeighbors(ClassifierMixin, BaseEstimator):
    """k-NN among moved objects: what both classifiers do after they are fitted."""

    _learned: ClassVar[dict[str, str]] = {
        "mover_": "mover",
        "moved_": "nm",
        "codes_": "n codes",
        "weights_": "n none",
        **LEARNED,
    }
    _learned_types: ClassVar[dict[str, Any]] = {"calibration_": Calibration}
    _unsaved = ("W_", "mean_", "alpha_")  # copies of attributes of the mover

    def _n_neighbors(self) -> int:
        raise NotImplementedError

    @dispatched
    def kneighbors(self, X: ArrayLike, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Find the nearest moved objects of each query.

        Parameters
        ----------
        X : array of shape (n_queries, d)
        n_neighbors : int, optional; by default the number that votes
        return_distance : bool, default=True

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors); only with `return_distance`
            ‖x − z'‖; for movers that add a column it is included, and only the order is meaningful.
        indices : int array of the same shape: row numbers of `moved_`, nearest first, ties to the lower one
        """
        return self._search(X, n_neighbors, return_distance, "kneighbors")

    # the k objects of the smallest ‖x − z'_i‖², which vote for the class of x  (Eq. 7)
    def _search(self, X: Any, n_neighbors: int | None, return_distance: bool, method: str) -> Any:
        k = self._check_k(n_neighbors)
        X = as_queries(check_points(self, X, method=method, like=self.moved_), self.mover_.space_)
        X, moved = to_device(X, self.device), to_device(self.moved_, self.device)
        return host_like(search(X, moved, k, return_distance=return_distance), self.device)

    def _check_k(self, n_neighbors: int | None = None) -> int:
        """Return the number of neighbours to search for, at most the number of objects."""
        check_is_fitted(self)
        k = self._n_neighbors() if n_neighbors is None else check_count("n_neighbors", n_neighbors)
        check_enough(k, self.moved_.shape[0])
        return k

    @overload
    def predict(self, X: HostLike, *, reject: float | None = None, unknown: object = None) -> HostArray: ...
    @overload  # texts are in NumPy arrays wherever the queries are
    def predict(
        self,
        X: ArrayOrNone = None,
        *,
        neighbors: Neighbors = None,
        reject: float | None = None,
        unknown: object = None,
    ) -> Any: ...
    @dispatched
    def predict(
        self, X: Any = None, *, neighbors: Any = None, reject: float | None = None, unknown: Any = None
    ) -> Array:
        """Predict the class of each query: the majority of its neighbours, a tie to the class of the nearest.

        Parameters
        ----------
        X : array of shape (n_queries, d); not needed with `neighbors`
        neighbors : precomputed neighbours, optional
            What `kneighbors` returns (or another index over `moved_`): indices, or (distances, indices),
            which weights="distance" needs.
        reject : float, optional
            Answer `unknown` for queries of a `familiarity` of at most this: the share of queries of known
            classes that may be refused by mistake, such as 0.05. Needs X and a calibrated classifier.
        unknown : label, optional
            The answer for such queries, of the kind of the classes: by default -1 for numbers and "unknown"
            for texts.

        Returns
        -------
        classes : array of shape (n_queries,)
        """
        if reject is None:
            if unknown is not None:
                raise ValueError(f"unknown={unknown!r} needs reject, the rate of false alarms: reject=0.05.")
            winners = vote(*self._votes(X, neighbors, "predict"))
            return class_names(self.classes_, winners)
        if neighbors is not None:
            raise ValueError("reject compares queries with all objects; give X without neighbors.")
        label = unknown_label(unknown, self._check_familiar(reject))
        answers = self._answers(X, "predict")
        return with_unknown(class_names(self.classes_, answers.winners), answers.familiarity <= reject, label)

    @overload
    def predict_proba(self, X: HostLike, *, neighbors: Neighbors = None) -> HostArray: ...
    @overload
    def predict_proba(self, X: SomeArray, *, neighbors: Neighbors = None) -> SomeArray: ...
    @overload
    def predict_proba(self, X: None = None, *, neighbors: Neighbors) -> Any: ...
    @dispatched
    def predict_proba(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """Return the probability of each class, as in `classes_`; the largest is that of `predict`.

        A calibrated classifier (see `calibrate`) returns probabilities learned on held-out queries, from
        precomputed `neighbors` by their votes alone. Otherwise they are shares of the votes. Where classes
        tie, that of `predict` gets the larger number, by a rounding.

        Returns
        -------
        probabilities : array of shape (n_queries, n_classes)
        """
        check_is_fitted(self)
        if neighbors is not None or self.calibration_.method is None:
            labels, weights = self._votes(X, neighbors, "predict_proba")
            if self.calibration_.method is None:
                return probabilities(labels, int(self.classes_.shape[0]), weights, dtype=self.moved_.dtype)
            return answer_by_votes(labels, weights, self._stored(None), self.calibration_)
        return self._answers(X, "predict_proba").probabilities

    @overload
    def familiarity(self, X: HostLike) -> HostArray: ...
    @overload
    def familiarity(self, X: SomeArray) -> SomeArray: ...
    def familiarity(self, X: Any) -> Array:
        """Return how like the stored objects each query is, compared with held-out queries of known classes.

        A familiarity of 0.03 says that 3 % of such queries are as unlike the stored objects as this one, or
        more: it is a p-value of split conformal prediction. If they and the query are exchangeable, it is at
        most a with a probability of at most a. That is exact for queries given to `calibrate`; those of a
        cross-validation were answered by a part of the objects only.

        Returns
        -------
        familiarity : array of shape (n_queries,), from 1 / (n + 1) to 1, n being half of the held-out queries
        """
        self._check_familiar()
        return self._answers(X, "familiarity").familiarity

    def calibrate(self, X: ArrayLike, y: ArrayLike, sample_weight: Weights = None) -> Self:
        """Learn probabilities and familiarity from queries that were not learned from.

        Parameters
        ----------
        X : array of shape (n_queries, d), such as a tenth of the labeled objects, left out of `fit`
        y : array of shape (n_queries,), their classes, all of them in `classes_`
        sample_weight : array of shape (n_queries,), optional; weighs probabilities, not familiarity
        """
        self._check_votes()
        queries = check_points(self, X, method="calibrate", like=self.moved_)
        truth = check_class_numbers(y, queries, self.classes_, type(self).__name__)
        weights = check_weights(sample_weight, queries)
        stored = self._stored(self.device)
        self.calibration_ = calibrate(
            HeldOut(
                stored,
                convert(queries[part, :], stored.moved),
                truth[part],
                None if weights is None else weights[part],
            )
            for part in blocks(queries.shape[0], QUERIES)
        )
        return self

    def _answers(self, X: Any, method: str) -> Calibrated:
        """Return what a calibrated classifier says about queries."""
        self._check_votes()
        if X is None:
            raise ValueError(f"{method} needs queries X, or their precomputed neighbors; got neither.")
        X, stored = check_points(self, X, method=method, like=self.moved_), self._stored(self.device)
        parts = [
            host_like(answer(convert(X[part, :], stored.moved), stored, self.calibration_), self.device)
            for part in blocks(X.shape[0], QUERIES)
        ]
        return Calibrated.joined(parts)

    def _stored(self, device: str | None) -> Stored:
        """Return the moved objects, on the device that compares them."""
        moved = to_device(self.moved_, device)
        return Stored(
            moved,
            convert(self.codes_, moved),
            None if self.weights_ is None else convert(self.weights_, moved),
            int(self.classes_.shape[0]),
            self.mover_.space_,
            self._n_neighbors(),
            self.weights == "distance",
            self.mover_._raised,
        )

    def _check_familiar(self, reject: float | None = None) -> Array:
        """Refuse a classifier that knows no held-out queries, or too few for a rate; return its classes."""
        check_is_fitted(self)
        known = self.calibration_.known
        if known is None:
            raise ValueError(
                f"this {type(self).__name__} has seen no held-out queries, or too few, to compare queries "
                "with. Call calibrate(queries, classes) first, with queries that it was not fitted to; "
                "MoveLabeledClassifierCV does so by itself where it can hold queries out."
            )
        if reject is not None:
            check_rate(reject, len(known.sums))
        return self.classes_

    @dispatched
    def score(
        self, X: ArrayOrNone, y: ArrayLike, sample_weight: Weights = None, *, neighbors: Neighbors = None
    ) -> float:
        """Return the accuracy on queries X of classes y; `neighbors` as in `predict`."""
        classes = to_numpy(self.predict(X, neighbors=neighbors))
        weights = None if sample_weight is None else to_numpy(sample_weight)
        return float(accuracy_score(to_numpy(y), classes, sample_weight=weights))

    def _votes(self, X: Any, neighbors: Any, method: str) -> tuple[Array, Array | None]:
        """Return the classes of the neighbours of each query and their weights; shapes (n_queries, k)."""
        self._check_votes()
        by_distance = self.weights == "distance"
        if neighbors is not None:
            n_queries = None if X is None else X.shape[0] if hasattr(X, "shape") else len(X)
            distances, indices = check_precomputed(neighbors, self.moved_, n_queries, by_distance)
        elif X is None:
            raise ValueError(f"{method} needs queries X, or their precomputed neighbors; got neither.")
        else:
            nearest = self._search(X, None, by_distance, method)
            distances, indices = nearest if by_distance else (None, nearest)
        return votes_of(indices, distances, self.codes_, self.weights_)

    def _check_votes(self) -> None:
        check_is_fitted(self)
        check_choice("weights", self.weights, VOTES)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _store(self, classes: Array, labeled: Labeled, mover: Mover) -> None:
        """Learn and move; if learning fails, this classifier is as before."""
        moved = mover._fit_points(Points.of(labeled, int(classes.shape[0])))
        mover.classes_, mover.n_singletons_ = classes, labeled.n_without_target()
        for name in {"n_features_in_", "feature_names_in_"} & self.__dict__.keys():
            setattr(mover, name, getattr(self, name))
        self._keep(mover, classes, labeled.weights, moved, labeled.codes)
        if self.device is not None:
            to_host(self)

    def _take_columns(self, mover: Mover) -> None:
        """Copy the number and the names of the columns that a mover was fitted to."""
        self.__dict__.pop("feature_names_in_", None)
        for name in {"n_features_in_", "feature_names_in_"} & mover.__dict__.keys():
            setattr(self, name, getattr(mover, name))

    def _keep(self, mover: Mover, classes: Array, weights: Array | None, moved: Array, codes: Array) -> None:
        self.classes_, self.mover_, self.moved_ = classes, mover, moved
        self.codes_, self.weights_, self.calibration_ = codes, weights, Calibration()
        self.n_singletons_ = mover.n_singletons_
        self._copy_map()

    def _copy_map(self) -> None:
        """Copy the map of the paper's mover to attributes; remove those of an earlier fit."""
        for name in self._unsaved:
            self.__dict__.pop(name, None)
            if isinstance(self.mover_, MoveLabeled):
                setattr(self, name, getattr(self.mover_, name))

    def _check_savable(self) -> None:
        if is_on_engine(self.moved_):
            raise ValueError(
                "the moved objects of this classifier are on Dask and are not copied to this machine. Save "
                "its mover_, and write moved_ with Dask, for example with moved_.to_zarr."
            )

    def _check_loaded(self) -> None:
        """Refuse a model read from a file that cannot answer queries."""
        if not hasattr(self, "classes_"):
            raise ValueError("classes_ are missing: a classifier needs them to predict.")
        (n, m), k = self.moved_.shape, self._n_neighbors()
        if k > n:
            raise ValueError(f"{k} neighbours vote, but there are only {n} objects.")
        if self.mover_._width != m:
            raise ValueError(f"mover_ gives {self.mover_._width} columns, and moved_ has {m}.")
        if self.weights_ is not None and not (to_numpy(self.weights_) > 0).all():
            raise ValueError("weights_ must be above 0.")
        self.calibration_.check()
        self._copy_map()
