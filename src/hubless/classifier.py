"""k-NN classification with moved labeled objects."""

from typing import Any, ClassVar

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, convert, namespace, to_numpy
from .arrays.devices import dispatched, host_like, is_on_engine, to_device, to_host
from .arrays.inputs import check_choice, check_count, check_labels, check_points, check_weights
from .movers import MoveLabeled, Mover
from .movers.points import Points, as_queries
from .neighbors.knn import check_precomputed, probabilities, vote, votes_of
from .neighbors.search import search
from .solve import check_alpha
from .targets import Labeled, labeled_objects

VOTES = ("uniform", "distance")


class MovedNeighbors(ClassifierMixin, BaseEstimator):
    """k-NN among moved objects: what both classifiers do after they are fitted."""

    _learned: ClassVar[dict[str, str]] = {
        "mover_": "mover",
        "moved_": "nm",
        "codes_": "n codes",
        "weights_": "n none",
    }
    _unsaved = ("W_", "mean_", "alpha_")  # copies of attributes of the mover

    def _n_neighbors(self) -> int:
        raise NotImplementedError

    @dispatched
    def kneighbors(self, X: Any, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
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

    @dispatched
    def predict(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """Predict the class of each query: the majority of its neighbours, a tie to the class of the nearest.

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
        winners = vote(*self._votes(X, neighbors, "predict"))
        winners = convert(winners, self.classes_)
        return namespace(self.classes_).take(self.classes_, winners)

    @dispatched
    def predict_proba(self, X: Any = None, *, neighbors: Any = None) -> Array:
        """Return the share of the votes of each class, as in `classes_`; shape (n_queries, n_classes)."""
        labels, weights = self._votes(X, neighbors, "predict_proba")
        return probabilities(labels, self.classes_.shape[0], weights, dtype=self.moved_.dtype)

    @dispatched
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, neighbors: Any = None) -> float:
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
        self.codes_, self.weights_ = codes, weights
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
        n, k = self.moved_.shape[0], self._n_neighbors()
        if k > n:
            raise ValueError(f"{k} neighbours vote, but there are only {n} objects.")
        if self.weights_ is not None and not (to_numpy(self.weights_) > 0).all():
            raise ValueError("weights_ must be above 0.")
        self._copy_map()


class MoveLabeledClassifier(MovedNeighbors):
    """k-nearest-neighbour classifier that moves its labeled objects, and never its queries (Eq. 4-7).

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours that vote.
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0. "scale" takes the mean eigenvalue of XKXᵀ, which follows the number and the
        scale of the data; MoveLabeledClassifierCV chooses λ by cross-validation.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class, which move toward it.
    mover : mover, default=None
        One of `hubless.movers`, or a Chain of them. None is the paper's, MoveLabeled(alpha, n_targets,
        center=center); with another mover those three are ignored.
    weights : "uniform" or "distance", default="uniform"
        Neighbours vote equally, or by the inverse of their distance; not for movers that add a column.
    center : bool, default=True
        Move about the mean of the labeled objects, as the paper does, or about the origin.
    device : str, default=None
        "cuda", for example, computes arrays of the host there (with torch), in blocks if they do not fit;
        results are on the host. None computes where the data is.

    Attributes
    ----------
    mover_ : the fitted mover
    W_, mean_, alpha_ : those of the mover, where it is MoveLabeled
        A row z moves to mean_ + (z - mean_) @ W_.T, learned with the λ alpha_.
    moved_ : array of shape (n_objects, d), or (n_objects, d + 1)
        The moved objects. An exact index by Euclidean distance that holds them finds the same neighbours for
        raw queries. Some movers need one more column, in which queries have a 0.
    classes_ : array of shape (n_classes,)
    codes_ : int array of shape (n_objects,)
        Class number of each row of `moved_`.
    weights_ : array of shape (n_objects,) or None
        Weight of each object's vote. Objects of weight 0 are left out of `moved_`.
    n_singletons_ : int
        Objects without a target: alone in their class, or without one in `targets`. They are moved and vote
        like the others.
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

    @dispatched
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, targets: Any = None
    ) -> "MoveLabeledClassifier":
        """Learn the move from labeled objects and move them.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Weight of an object's pairs and of its vote; an object of weight 0 is left out.
        targets : int array of shape (n, width), optional
            Precomputed targets: same-class objects by row number, nearest first, -1 for none. The first ones
            are used, as many as the mover needs.
        """
        k, mover = self._check_fit()
        X = check_points(self, X, min_rows=2)
        X = to_device(X, self.device, whole=not isinstance(mover, MoveLabeled))
        classes, codes = check_labels(y, X)
        labeled = labeled_objects(X, codes, check_weights(sample_weight, X), targets, mover._n_targets())
        check_enough(k, labeled.X.shape[0])
        self._store(classes, labeled, mover)
        return self

    def _check_fit(self) -> tuple[int, Mover]:
        """Return the number of neighbours and the mover to fit, a copy, before any data is read."""
        k = self._n_neighbors()
        check_choice("weights", self.weights, VOTES)
        if self.mover is None:
            mover: Mover = MoveLabeled(self.alpha, self.n_targets, center=self.center)
        elif isinstance(self.mover, Mover):
            mover = clone(self.mover)
        else:
            raise ValueError(
                f"mover must be one of hubless.movers, such as Shrink(0.3), or None; got {self.mover!r}. "
                'MoveLabeledClassifierCV(mover="auto") chooses one.'
            )
        mover._check_nested("a classifier")
        if mover._gives_order_alone and self.weights == "distance":
            raise ValueError(
                'weights="distance" needs distances, and a mover that adds a column, or writes it onto a '
                f'direction, gives only their order; got {type(mover).__name__}. Use weights="uniform", or a '
                "mover that needs no column."
            )
        return k, mover

    def _check_parameters(self) -> None:
        """Refuse invalid parameters, including those that this mover ignores."""
        check_count("n_targets", self.n_targets)
        check_alpha("alpha", self.alpha)
        self._check_fit()

    def _n_neighbors(self) -> int:
        return check_count("n_neighbors", self.n_neighbors)


def check_enough(k: int, n_objects: int) -> None:
    """Refuse to search for more neighbours than there are objects."""
    if k > n_objects:
        raise ValueError(
            f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {n_objects}: "
            "ask for fewer neighbours or give more labeled objects."
        )
