"""Steer: neighbours and a linear classifier decide together, in one more column."""

from functools import partial
from typing import ClassVar

import array_api_compat as compat

from ..arrays import namespace
from ..arrays.inputs import check_choice, check_count, check_positive
from ..moments import scatter
from ..neighbors.differences import squared_distances
from ..targets import first_targets, pairs
from .log_odds import MAX_ITER, LogisticProblem, LogOdds
from .mover import Mover
from .points import Points, class_means, mean_square, weighted_mean

__all__ = ["Steer"]


# ‖x − z‖² − 2s ℓ_y(x) with ℓ_c(x) = w_cᵀ(x − μ) + b_c: a push s w_y and a bias −2s b_y (see `points`)
class Steer(Mover):
    """Add what a linear classifier predicts: ‖x − z‖² − c u ℓ_y(x), with ℓ_y(x) its score for the class of z.

    Good for most data with more than a few objects per class: it is more accurate than neighbours alone and
    than the classifier alone. z moves along the weights w_y of its class, the same way for all objects of the
    class, so objects of one class keep their order. The classifier sees objects as they were given, whatever
    movers come before this one in a chain.

    Parameters
    ----------
    strength : float, default=0.1
        c, without a unit: it multiplies u, the mean squared distance of an object to the mean of all; for
        "ridge", to its nearest of the same class. Much larger than 1, the classifier decides alone.
    alpha : float, default=0.001
        The penalty λ. "logistic" minimises the mean of −log p_y(x) + ½ λ‖W‖², with objects scaled to a
        variance of 1 per column on average; for "ridge" it is in units of the mean eigenvalue of the scatter
        of the objects.
    classifier : "logistic" or "ridge", default="logistic"
        Scores are log-odds by multinomial logistic regression, or predictions of class indicators by ridge
        regression, which is closed-form and less accurate; Steer(1.0, 0.1, classifier="ridge") is a
        reasonable start.
    max_iter : int, default=200
        Steps of "logistic" at most, by L-BFGS. In measurements 30 gave the same accuracy, which is what
        mover="auto" takes.

    Attributes
    ----------
    coef_ : array of shape (n_classes, d), intercept_ : array of shape (n_classes,)
        w_c and b_c.
    mean_ : array of shape (d,)
    shift_ : float
        s = c u / 2.
    n_iter_ : int
        Steps of L-BFGS; 1 for "ridge".
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hubless import MoveLabeledClassifier
    >>> from hubless.movers import Steer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MoveLabeledClassifier(mover=Steer()).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _checks: ClassVar = {
        "strength": partial(check_positive, or_zero=True),
        "alpha": check_positive,
        "classifier": partial(check_choice, allowed=("logistic", "ridge")),
        "max_iter": check_count,
    }
    _adds_column = True
    _learned: ClassVar = {
        "coef_": "cd",
        "intercept_": "c",
        "mean_": "d",
        "shift_": "number",
        "n_iter_": "count",
    }

    def __init__(
        self,
        strength: float = 0.1,
        alpha: float = 0.001,
        *,
        classifier: str = "logistic",
        max_iter: int = MAX_ITER,
    ) -> None:
        self.strength = strength
        self.alpha = alpha
        self.classifier = classifier
        self.max_iter = max_iter

    def _n_targets(self) -> int:
        return 1 if self.classifier == "ridge" else 0

    def _estimate(self, points: Points) -> None:
        if self.classifier == "ridge":
            self._take(ridge_scores(points, float(self.alpha)), _target_spread(points))
        else:
            problem = LogisticProblem.of(
                points.inputs, points.codes, points.n_classes, points.weights, points.n_columns
            )
            odds = problem.solve(float(self.alpha), max_iter=self.max_iter)
            self._take(odds, mean_square(points.X, points.weights))

    def _take(self, scores: LogOdds, unit: float) -> None:
        """Learn from scores and u that were computed elsewhere: a race shares them between settings."""
        self.coef_, self.intercept_, self.mean_, self.n_iter_ = scores
        self.shift_ = 0.5 * float(self.strength) * unit

    def _apply(self, points: Points) -> Points:
        xp = namespace(points.Z)
        step = xp.take(self.shift_ * self.coef_, points.codes, axis=0)  # s w_y
        return points.with_push(step).with_bias(-2 * self.shift_ * xp.take(self.intercept_, points.codes))


# ŷ_c(x) = π_c + w_cᵀ(x − μ) with w_c = (T + λI)⁻¹ n_c (m_c − μ): ridge regression of the indicator of c
def ridge_scores(points: Points, alpha: float) -> LogOdds:
    """Return the scores of a ridge classifier, λ in mean eigenvalues of T."""
    X, weights, xp = points.inputs, points.weights, namespace(points.inputs)
    mean = weighted_mean(X, weights)
    means, totals = class_means(X, points.codes, points.n_classes, weights)
    T = scatter(X, mean, weights)
    d = T.shape[0]
    penalty = alpha * float(xp.linalg.trace(T)) / points.n_columns
    ridge = (penalty or 1.0) * xp.eye(d, dtype=T.dtype, device=compat.device(T))
    coef = xp.linalg.solve(T + ridge, (totals[:, None] * (means - mean)).T).T
    return LogOdds(coef, totals / xp.sum(totals), mean)


# u = mean_i ‖x_i − x_t(i)‖² over the objects that have a target t(i)
def _target_spread(points: Points) -> float:
    """Return u, or the mean squared distance to μ where every object is alone or has a duplicate."""
    xp, X = namespace(points.X), points.X
    source, target = pairs(first_targets(points.targets, 1))
    total = float(xp.sum(squared_distances(X, X, source, target))) if source.shape[0] else 0.0
    near = total / max(source.shape[0], 1)
    wide = mean_square(X)
    return near if near > 1e-12 * wide else wide
