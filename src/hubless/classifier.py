"""k-NN classification with moved labeled objects."""

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, is_dask, namespace, to_numpy
from .devices import host_like, to_device, to_host
from .distributed import classify
from .inputs import (
    check_choice,
    check_count,
    check_labels,
    check_matrix,
    check_points,
    check_weights,
)
from .movers import MoveLabeled, Mover
from .movers.mover import as_asked, refuse_on_dask
from .movers.points import Points
from .neighbors import check_neighbors
from .targets import Labeled, labeled_objects
from .topk import search
from .vote import probabilities, vote, votes_of

VOTES = ("uniform", "distance")


class MovedNeighbors(ClassifierMixin, BaseEstimator):
    """k-NN among moved objects: what both classifiers do once they are fitted."""

    def _n_neighbors(self) -> int:
        raise NotImplementedError

    def kneighbors(self, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest moved objects of each query.

        Parameters
        ----------
        X : array of shape (n_queries, d)
        n_neighbors : int, optional; by default as many as vote
        return_distance : bool, default=True

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors); only with `return_distance`
            ‖x − z'‖, the column of movers that have one included: there, their order alone means something.
        indices : int array of the same shape: row numbers of `moved_`, nearest first, ties to the lower
        """
        k = None if n_neighbors is None else check_count("n_neighbors", n_neighbors)
        return self._search(X, k, return_distance, "kneighbors")

    def _search(self, X: Any, k: int | None, return_distance: bool, method: str) -> Any:
        check_is_fitted(self)
        k = self._n_neighbors() if k is None else k
        _check_enough(k, self.moved_.shape[0])
        if self._is_on_dask(X):
            return classify.kneighbors(self, X, k, return_distance)
        X = as_asked(check_points(self, X, method=method, like=self.moved_), self.mover_.exit_)
        X, moved = to_device(X, self.device), to_device(self.moved_, self.device)
        return host_like(search(X, moved, k, return_distance=return_distance), self.device)

    def predict(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """The class of each query: the majority among its neighbours, a tie to the class of the nearest.

        Parameters
        ----------
        X : array of shape (n_queries, d); not needed with `neighbors`
        neighbors : precomputed neighbours, optional
            What `kneighbors` returns (or another index over `moved_`): indices, or (distances, indices),
            which weights="distance" needs.

        Returns
        -------
        classes : array of shape (n_queries,)
        """
        if self._is_on_dask(X, neighbors):
            return self._on_dask(X, neighbors, shares=False)
        winners = vote(*self._votes(X, neighbors, "predict"))
        winners = convert(winners, self.classes_)
        return namespace(self.classes_).take(self.classes_, winners)

    def predict_proba(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """Share of the votes of each class, in the order of `classes_`; shape (n_queries, n_classes)."""
        if self._is_on_dask(X, neighbors):
            return self._on_dask(X, neighbors, shares=True)
        labels, weights = self._votes(X, neighbors, "predict_proba")
        return probabilities(labels, self.classes_.shape[0], weights, dtype=self.moved_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, neighbors: Any = None) -> float:
        """Accuracy on queries X of classes y; `neighbors` as in `predict`."""
        if self._is_on_dask(X, neighbors):
            refuse_on_dask(sample_weight=sample_weight)
            return classify.accuracy(self.predict(X, neighbors=neighbors), y)
        found = to_numpy(self.predict(X, neighbors=neighbors))
        weights = None if sample_weight is None else to_numpy(sample_weight)
        return float(accuracy_score(to_numpy(y), found, sample_weight=weights))

    def _is_on_dask(self, *given: Any) -> bool:
        """Whether queries or objects are there."""
        return any(is_dask(value) for value in (*given, getattr(self, "moved_", None)))

    def _on_dask(self, X: Any, neighbors: Any, *, shares: bool) -> Any:
        """Classes, or shares of the votes: Dask arrays for queries on Dask, else NumPy arrays."""
        check_is_fitted(self)
        check_choice("weights", self.weights, VOTES)
        refuse_on_dask(neighbors=neighbors)
        k = self._n_neighbors()
        _check_enough(k, self.moved_.shape[0])
        return classify.predict(self, X, k, shares=shares)

    def _votes(self, X: Any, neighbors: Any, method: str) -> tuple[Array, Array | None]:
        """Classes of the neighbours of each query and their weights; both of shape (n_queries, k)."""
        check_is_fitted(self)
        check_choice("weights", self.weights, VOTES)
        by_distance = self.weights == "distance"
        if neighbors is not None:
            distances, indices = self._check_neighbors(X, neighbors)
        elif X is None:
            raise ValueError(f"{method} needs queries X, or their precomputed neighbors; got neither.")
        else:
            found = self._search(X, None, by_distance, method)
            distances, indices = found if by_distance else (None, found)
        return votes_of(indices, distances, self.codes_, self.weights_)

    def _check_neighbors(self, X: Any, neighbors: Any) -> tuple[Array | None, Array]:
        """Distances, where they are needed, and indices of precomputed neighbours."""
        distances, indices = neighbors if isinstance(neighbors, tuple) else (None, neighbors)
        indices = check_neighbors(indices, self.moved_.shape[0], like=self.moved_)
        if bool(namespace(indices).any(indices < 0)):
            raise ValueError("neighbors must name an object in every place; got -1. Search for fewer.")
        n_queries = indices.shape[0] if X is None else X.shape[0] if hasattr(X, "shape") else len(X)
        if n_queries != indices.shape[0]:
            raise ValueError(
                f"neighbors must have one row per query; got {indices.shape[0]} for {n_queries} queries."
            )
        if self.weights == "uniform":
            return None, indices
        if distances is None:
            raise ValueError('weights="distance" needs neighbors=(distances, indices); got indices alone.')
        distances = convert(check_matrix(distances, "distances"), self.moved_)
        if tuple(distances.shape) != tuple(indices.shape):
            raise ValueError(
                f"distances and indices must have equal shapes; got {tuple(distances.shape)} "
                f"and {tuple(indices.shape)}."
            )
        return distances, indices

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _store(self, classes: Array, labeled: Labeled, mover: Mover) -> None:
        # learning may refuse, and must then leave no trace
        moved = mover._learn_from(Points.start(labeled, int(classes.shape[0])))
        mover.classes_, mover.n_singletons_ = classes, labeled.n_without_target()
        for name in {"n_features_in_", "feature_names_in_"} & self.__dict__.keys():
            setattr(mover, name, getattr(self, name))
        self._keep(mover, classes, labeled.weights, moved, labeled.codes)
        if self.device is not None:
            to_host(self)

    def _take_from(self, mover: Mover) -> None:
        """Expect the columns that a mover was fitted to."""
        self.__dict__.pop("feature_names_in_", None)
        for name in {"n_features_in_", "feature_names_in_"} & mover.__dict__.keys():
            setattr(self, name, getattr(mover, name))

    def _keep(self, mover: Mover, classes: Array, weights: Array | None, moved: Array, codes: Array) -> None:
        self.classes_, self.mover_, self.moved_ = classes, mover, moved
        for name in ("W_", "mean_", "alpha_"):  # of the paper's mover; those of an earlier fit go
            self.__dict__.pop(name, None)
            if isinstance(mover, MoveLabeled):
                setattr(self, name, getattr(mover, name))
        self.codes_, self.weights_ = codes, weights
        self.n_singletons_ = mover.n_singletons_


class MoveLabeledClassifier(MovedNeighbors):
    """k-nearest-neighbour classifier that moves its labeled objects, and never its queries (Eq. 4-7).

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours that vote.
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0. "scale" takes the mean eigenvalue of XKXᵀ, which follows the number and the
        scale of the data; MoveLabeledClassifierCV finds a better one.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class, which move toward it.
    mover : mover, default=None
        One of `hubless.movers`, or a Chain of them. None is the paper's, MoveLabeled(alpha, n_targets,
        center=center); those three play no part otherwise.
    weights : "uniform" or "distance", default="uniform"
        Neighbours vote equally, or by the inverse of their distance, which movers with a column do not have.
    center : bool, default=True
        Move about the mean of the labeled objects, as the paper does, or about the origin.
    device : str, default=None
        "cuda", say, computes arrays of the host there (with torch), in blocks if they do not fit; results are
        on the host. None computes where the data is.

    Attributes
    ----------
    mover_ : the fitted mover
    W_, mean_, alpha_ : those of the mover, where it is MoveLabeled
        A row z moves to mean_ + (z - mean_) @ W_.T, learned with the λ alpha_.
    moved_ : array of shape (n_objects, d), or (n_objects, d + 1)
        The moved objects. Any index that holds them answers raw queries as this classifier does. Some movers
        need one more column, in which queries have a 0.
    classes_ : array of shape (n_classes,)
    codes_ : int array of shape (n_objects,)
        Class number of each row of `moved_`.
    weights_ : array of shape (n_objects,) or None
        Weight of each object's vote. Objects of weight 0 are left out of `moved_`.
    n_singletons_ : int
        Objects without a target, alone in their class. They are moved and vote like the others.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from hubless import MoveLabeledClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MoveLabeledClassifier(n_neighbors=5, alpha=1.0).fit(X_train, y_train)
    >>> model.predict(X_test[:2]).shape, model.W_.shape
    ((2,), (13, 13))
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        alpha: Any = "scale",
        n_targets: int = 1,
        *,
        mover: Any = None,
        weights: str = "uniform",
        center: bool = True,
        device: str | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_targets = n_targets
        self.mover = mover
        self.weights = weights
        self.center = center
        self.device = device

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, targets: Any = None
    ) -> "MoveLabeledClassifier":
        """Learn the move from labeled objects and move them.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Weighs an object's pairs and its vote; 0 leaves it out.
        targets : int array of shape (n, width), optional
            Precomputed targets: same-class objects by row number, nearest first, -1 for none. The first ones
            are used, as many as the mover asks for.
        """
        k = check_count("n_neighbors", self.n_neighbors)
        check_choice("weights", self.weights, VOTES)
        mover = self._check_mover()
        if is_dask(X):
            return self._fit_dask(X, y, sample_weight, targets, mover)
        X = check_points(self, X, min_rows=2)
        X = to_device(X, self.device, whole=not isinstance(mover, MoveLabeled))
        classes, codes = check_labels(y, X)
        labeled = labeled_objects(X, codes, check_weights(sample_weight, X), targets, mover._width())
        _check_enough(k, labeled.X.shape[0])
        self._store(classes, labeled, mover)
        return self

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, targets: Any, mover: Mover) -> Any:
        refuse_on_dask(sample_weight=sample_weight, targets=targets, device=self.device)
        seen = mover._learn_on_dask(X, y)
        _check_enough(self._n_neighbors(), seen.n)
        self._take_from(mover)
        self._keep(mover, seen.classes, None, *classify.stored(X, y, mover, seen))
        return self

    def _check_mover(self) -> Mover:
        """The mover to be fitted: a copy, with parameters that make sense."""
        if self.mover is None:
            mover: Mover = MoveLabeled(self.alpha, self.n_targets, center=self.center)
        elif isinstance(self.mover, Mover):
            mover = clone(self.mover)
        else:
            raise ValueError(
                f"mover must be one of hubless.movers, as Shrink(0.3), or None; got {self.mover!r}. "
                'MoveLabeledClassifierCV(mover="auto") chooses one.'
            )
        mover._check_inside("a classifier")
        if mover._lifts and self.weights == "distance":
            raise ValueError(
                'weights="distance" needs distances; a mover with one more column gives their order alone; '
                f'got {type(mover).__name__}. Use weights="uniform", or a mover without a column.'
            )
        return mover

    def _n_neighbors(self) -> int:
        return check_count("n_neighbors", self.n_neighbors)


def _check_enough(k: int, n_objects: int) -> None:
    if k > n_objects:
        raise ValueError(
            f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {n_objects}: "
            "ask for fewer neighbours or give more labeled objects."
        )
