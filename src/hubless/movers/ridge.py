"""The paper's mover, Move-labeled, and its twin that knows the class of the object it moves."""

from typing import Any

import numpy as np

from ..arrays import Array, convert, namespace
from ..devices import host_like, to_device
from ..inputs import check_alpha, check_choice, check_count, check_fraction, check_points, check_weights
from ..large.lesson import Lesson, Sums
from ..large.survey import Survey
from ..moments import moments_of_pairs, moments_of_targets
from ..targets import first_targets
from .life import LearnsOn
from .linear import (
    centre,
    learned,
    move,
    problem_of_moments,
    problem_of_pairs,
    problem_of_targets,
    weighted_mean,
)
from .mover import Exit, Mover
from .points import Points, class_means

PULLS = ("zero", "identity")


class MoveLabeled(LearnsOn):
    """Move labeled objects toward the objects they should be neighbours of; queries stay (Eq. 4-7).

    z' = μ + W (z − μ), where W = XJXᵀ (XKXᵀ + λI)⁻¹ solves the ridge regression from each object's nearest
    same-class objects to itself, and μ is the mean of the labeled objects.

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0. "scale" takes the mean eigenvalue of XKXᵀ, which follows the number and the
        scale of the data.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class.
    center : bool, default=True
        Move about the mean of the labeled objects, as the paper does, or about the origin.
    toward : "zero" or "identity", default="zero"
        What λ pulls W to: λ‖W‖², the paper's, or λ‖W − I‖², with which objects unlike any learned from stay
        where they are: the choice for pairs of queries and documents.
    device : str, default=None
        "cuda", say, computes arrays of the host there (with torch), in blocks if they do not fit; results are
        on the host. None computes where the data is.
    keep_moments : bool, default=False
        Keep the moments of the pairs, 2 d² numbers: all that `with_alpha`, `merge`, `partial_fit` and
        `forget` need to learn again without the data.

    Attributes
    ----------
    W_ : array of shape (d, d)
        A row z moves to mean_ + (z - mean_) @ W_.T.
    mean_ : array of shape (d,)
    alpha_ : float
        The λ used.
    moments_ : hubless.moments.Moments; only with `keep_moments`, or after `partial_fit`
        Sums over the pairs about the centre, in NumPy and float64.
    mean_weight_ : float; where there are `moments_`
        How many objects the centre is the mean of, or the sum of their weights.
    n_singletons_ : int
        Objects without a target, alone in their class. They are moved all the same.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless import MoveLabeled
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(MoveLabeled(), KNeighborsClassifier())
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _uses_labels = False

    def __init__(
        self,
        alpha: Any = "scale",
        n_targets: int = 1,
        *,
        center: bool = True,
        toward: str = "zero",
        device: str | None = None,
        keep_moments: bool = False,
    ) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.center = center
        self.toward = toward
        self.device = device
        self.keep_moments = keep_moments

    def fit_pairs(self, queries: Any, objects: Any, sample_weight: Any = None) -> "MoveLabeled":
        """Learn the map from pairs that you have: objects[i] should move toward queries[i].

        Parameters
        ----------
        queries, objects : arrays of shape (pairs, d)
        sample_weight : array of shape (pairs,), optional

        Notes
        -----
        The centre is the mean of `objects` over the pairs. `n_targets` plays no part.
        """
        self._check()
        objects = check_points(self, objects)
        queries = check_points(self, queries, method="fit_pairs", like=objects)
        queries, objects = (to_device(side, self.device) for side in (queries, objects))
        if tuple(queries.shape) != tuple(objects.shape):
            raise ValueError(
                "queries and objects must pair up row by row, with equal shapes; "
                f"got {tuple(queries.shape)} and {tuple(objects.shape)}."
            )
        weights = check_weights(sample_weight, objects)
        mean = centre(objects, weights, self.center)
        problem = problem_of_pairs(queries, objects, weights, mean)
        self._keep(problem, mean, objects)
        self.exit_, self.n_singletons_ = Exit(mean, 1.0, None), 0
        if self.keep_moments:
            found = problem.moments or moments_of_pairs(queries, objects, weights, mean)
            self._keep_moments(found, objects, weights)
        return host_like(self, self.device)

    def _check(self) -> None:
        check_alpha(self.alpha)
        check_count("n_targets", self.n_targets)
        check_choice("toward", self.toward, PULLS)

    def _width(self) -> int:
        return self.n_targets

    def _estimate(self, points: Points) -> None:
        mean = centre(points.X, points.weights, self.center)
        targets = first_targets(points.targets, self.n_targets)
        about = (points.X, targets, points.weights, mean)
        problem = problem_of_targets(*about, Z=points.Z)
        self._keep(problem, mean, points.X)
        if self.keep_moments:
            found = problem.moments or moments_of_targets(*about, Z=points.Z)
            self._keep_moments(found, points.X, points.weights)

    def _lesson(self, mean: np.ndarray) -> Lesson:
        return Lesson(mean, self.n_targets)

    def _learn_sums(self, seen: Survey, sums: Sums) -> None:
        moments = sums.moments if self.center else sums.moments.about(np.zeros_like(seen.mean))
        problem = problem_of_moments(moments, sums.n_pairs)
        self._keep(problem, moments.origin, np.empty(0, seen.dtype))
        if self.keep_moments:
            self.moments_, self.mean_weight_ = moments, float(seen.n)

    def _apply(self, points: Points) -> Points:
        W, mean = convert(self.W_, points.Z), convert(self.mean_, points.Z)
        return points._replace(Z=move(points.Z, W, mean))

    def _device(self) -> str | None:
        return self.device


class LabelRidge(Mover):
    """Move labeled objects by ridge regression inside their class: z' = μ + a (m_y − μ) + W (z − m_y).

    The label of a labeled object is known, so the map has an intercept per class: W carries what tells the
    objects of a class from each other, and a what tells the classes apart.

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        The ridge penalty λ ≥ 0, or the mean eigenvalue of Σ (z − m_y)(z − m_y)ᵀ over the pairs.
    n_targets : int, default=1
        Targets per object: its nearest objects of the same class.
    keep : float from 0 to 1, default=1.0
        a: how much of the class mean is kept.

    Attributes
    ----------
    W_ : array of shape (d, d)
    mean_ : array of shape (d,)
    means_ : array of shape (n_classes, d)
    alpha_ : float
        The λ used.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.movers import LabelRidge
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(cross_val_score(make_pipeline(LabelRidge(), KNeighborsClassifier()), X, y).mean() > 0.95)
    True
    """

    def __init__(self, alpha: Any = "scale", n_targets: int = 1, *, keep: float = 1.0) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.keep = keep

    def _check(self) -> None:
        check_alpha(self.alpha)
        check_count("n_targets", self.n_targets)
        check_fraction("keep", self.keep)

    def _width(self) -> int:
        return self.n_targets

    def _estimate(self, points: Points) -> None:
        xp, X, Z = namespace(points.X), points.X, points.Z
        self.mean_ = weighted_mean(X, points.weights)
        self.means_ = class_means(Z, points.codes, points.n_classes, points.weights)[0]
        before = class_means(X, points.codes, points.n_classes, points.weights)[0]
        x = X - xp.take(xp.astype(before, X.dtype), points.codes, axis=0)
        z = self._inside(points)
        targets = first_targets(points.targets, self.n_targets)
        problem = problem_of_targets(x, targets, points.weights, xp.zeros_like(self.mean_), Z=z)
        self.W_, _, self.alpha_ = learned(problem, self.mean_, check_alpha(self.alpha), X)

    def _lesson(self, mean: np.ndarray) -> Lesson:
        return Lesson(mean, self.n_targets, means=True, within=True)

    def _learn_sums(self, seen: Survey, sums: Sums) -> None:
        self.mean_, self.means_ = seen.mean, sums.class_means(seen.sizes)
        problem = problem_of_moments(sums.moments, sums.n_pairs)
        like = np.empty(0, seen.dtype)
        self.W_, _, self.alpha_ = learned(problem, self.mean_, check_alpha(self.alpha), like)

    def _inside(self, points: Points) -> Array:
        """z − m_y of each object."""
        xp, Z = namespace(points.Z), points.Z
        return Z - xp.take(xp.astype(self.means_, Z.dtype), points.codes, axis=0)

    def _apply(self, points: Points) -> Points:
        xp, Z = namespace(points.Z), points.Z
        anchors = xp.astype(self.mean_ + float(self.keep) * (self.means_ - self.mean_), Z.dtype)
        moved = xp.take(anchors, points.codes, axis=0) + self._inside(points) @ self.W_.T
        return points._replace(Z=moved)
