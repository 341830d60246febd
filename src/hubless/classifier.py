"""k-NN classification with moved labeled objects."""

from typing import Self

from sklearn.base import clone

from .arrays.devices import dispatched, to_device
from .arrays.inputs import (
    check_choice,
    check_count,
    check_labels,
    check_points,
    check_queries,
    check_weights,
)
from .arrays.types import ArrayLike, ArrayOrNone
from .moved_neighbors import VOTES, MovedNeighbors
from .movers import MoveLabeled, Mover
from .movers.mover import check_used
from .neighbors.search import check_enough
from .solve import Alpha, check_alpha
from .targets import labeled_objects


class MoveLabeledClassifier(MovedNeighbors):
    """k-nearest-neighbour classifier that moves its labeled objects, and never its queries (equation 4-7).

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
    calibration_ : what `calibrate` learned; before that, `predict_proba` returns shares of votes
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
        alpha: Alpha = "scale",
        n_targets: int = 1,
        *,
        mover: Mover | None = None,
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
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayOrNone = None,
        *,
        targets: ArrayOrNone = None,
        queries: ArrayOrNone = None,
    ) -> Self:
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
        queries : array of shape (m, d), optional
            Queries without labels, such as those to be predicted: for `Balance`, alone or in a chain, where
            they take the place of the objects that represent queries. Other movers refuse them.
        """
        k, mover = self._check_fit()
        check_used(queries, [mover])
        X = check_points(self, X, min_rows=2)
        queries = to_device(check_queries(self, queries, X), self.device)
        X = to_device(X, self.device, whole=not isinstance(mover, MoveLabeled))
        classes, codes = check_labels(y, X)
        weights = check_weights(sample_weight, X)
        labeled = labeled_objects(X, codes, weights, targets, mover._n_targets(), queries)
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
