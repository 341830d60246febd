"""LabelRidge: the paper's regression inside each class, with the class mean as its intercept."""

from typing import Any, ClassVar

from ..arrays import namespace
from ..arrays.inputs import check_count, check_fraction
from ..solve import (
    Alpha,
    Penalty,
    RidgeProblem,
    check_alpha,
    problem_of_moments,
    problem_of_targets,
    relative_penalties,
)
from ..targets import first_targets
from .mover import Mover
from .points import Points, class_means, weighted_mean
from .totals import Needs, Totals

__all__ = ["LabelRidge"]


# z' = μ + a (m_y − μ) + W (z − m_y), with W of Eq. 6 for the pairs (x − m_y, z − m_y)
class LabelRidge(Mover):
    """Move labeled objects by ridge regression inside their class: z' = μ + a (m_y − μ) + W (z − m_y).

    Good against hubs, as MoveLabeled is. The label of a labeled object is known, so the map has an intercept
    per class: W moves what distinguishes the objects of a class, and a what distinguishes the classes.

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
    >>> from hubless import MoveLabeledClassifier
    >>> from hubless.movers import LabelRidge
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MoveLabeledClassifier(mover=LabelRidge()).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _checks: ClassVar = {"alpha": check_alpha, "n_targets": check_count, "keep": check_fraction}
    _learned: ClassVar = {"W_": "dd", "mean_": "d", "means_": "cd", "alpha_": "number"}
    _tried: ClassVar = ({"alpha": Penalty(0.5, relative=True)},)
    _tried_in_parts: ClassVar = tuple(
        {"alpha": alpha, "keep": keep} for alpha in relative_penalties(0.3, 1.0, 3.0) for keep in (0.85, 1.0)
    )

    def __init__(self, alpha: Alpha = "scale", n_targets: int = 1, *, keep: float = 1.0) -> None:
        self.alpha = alpha
        self.n_targets = n_targets
        self.keep = keep

    def _estimate(self, points: Points) -> None:
        self.mean_ = weighted_mean(points.X, points.weights)
        self.means_, before = (
            class_means(side, points.codes, points.n_classes, points.weights)[0]
            for side in (points.Z, points.X)
        )
        x, z = points.X - points.rows_of(before), points.Z - points.rows_of(self.means_)
        targets, origin = first_targets(points.targets, self.n_targets), namespace(x).zeros_like(self.mean_)
        problem = problem_of_targets(x, targets, points.weights, origin, Z=z)
        self._solve(problem._replace(columns=points.n_columns), x.dtype)

    def _solve(self, problem: RidgeProblem, dtype: Any) -> None:
        self.W_, _, self.alpha_ = problem.best_map(check_alpha("alpha", self.alpha), dtype)

    def _needs(self) -> Needs:
        return Needs(self.n_targets, class_means=True, within_classes=True)

    def _learn_totals(self, totals: Totals) -> None:
        assert totals.moments is not None
        self.mean_, self.means_ = totals.mean, totals.class_means
        self._solve(problem_of_moments(totals.moments, totals.n_pairs), totals.dtype)

    def _apply(self, points: Points) -> Points:
        anchors = self.mean_ + float(self.keep) * (self.means_ - self.mean_)
        within = points.Z - points.rows_of(self.means_)
        return points._replace(Z=points.rows_of(anchors) + within @ self.W_.T)
