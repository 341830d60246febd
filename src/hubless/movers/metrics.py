"""Movers that compare by a Mahalanobis distance, ‖L'x − L'z‖, which only the stored objects carry.

The learners of `hubless.baselines` move queries by L too. Here queries stay: the stored objects carry LL'z
and a column (see `points.QuerySpace`), and the order of the neighbours is the same.
"""

from typing import ClassVar

import array_api_compat as compat

from ..arrays import Array, namespace
from ..arrays.inputs import check_count, check_positive
from ..arrays.products import product_rows
from ..moments import as_weights, moments_of_targets, scatter
from ..targets import first_targets, same_class_targets
from .mover import Mover
from .points import Points, weighted_mean, within_scatter
from .span import coordinates, extend_map

__all__ = ["Denoise", "Whiten"]

FAINT = 1e-6  # the least correlation: no direction vanishes
ROUNDING = 1e-29  # variance of identical objects, in squares of their mean
NOTHING = (
    "there is nothing to learn from: the objects of each class are identical, or alone in it. Give more "
    "objects per class, or another mover."
)


class _Metric(Mover):
    _uses_labels = False
    _adds_column = True

    L_: Array

    # fewer objects than columns: L is learned in their span, by matrices of n × n instead of d × d numbers
    def _estimate(self, points: Points) -> None:
        if points.X.shape[0] >= points.X.shape[1]:
            self.L_, _ = self._metric(points)
            return
        X, Q = coordinates(points.X)
        L, outside = self._metric(points._replace(X=X, columns=points.n_columns))
        self.L_ = extend_map(L, outside, Q)

    def _metric(self, points: Points) -> tuple[Array, float]:
        """Return L in the space of the points, and the number that it is in directions outside of it."""
        raise NotImplementedError

    def _apply(self, points: Points) -> Points:
        xp = namespace(points.Z)
        L = xp.astype(self.L_, points.Z.dtype, copy=False)
        whole = L if points.L is None else points.L @ L
        X = product_rows(points.X, L)
        return points._replace(X=X, Z=X if points.Z is points.X else product_rows(points.Z, L), L=whole)


# L = (S / s̄ + λI)^(−½), S the scatter about the class means and s̄ its mean eigenvalue
class Whiten(_Metric):
    """Compare by the distance of linear discriminant analysis: classes are equally wide in every direction.

    Good for image features, followed by Shrink. Directions in which objects of a class differ a lot say
    little about the class and count less. Alone it can make k-NN worse, as it amplifies noise; followed by
    Shrink it is between k-NN and discriminant analysis, and was more accurate than both on image features.

    Parameters
    ----------
    alpha : float, default=0.1
        λ, added to the variance in every direction, in units of the mean variance.

    Attributes
    ----------
    L_ : array of shape (d, d), symmetric
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hubless import MoveLabeledClassifier
    >>> from hubless.movers import Chain, Shrink, Whiten
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MoveLabeledClassifier(mover=Chain([Whiten(1.0), Shrink(0.3)])).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _checks: ClassVar = {"alpha": check_positive}
    _learned: ClassVar = {"L_": "dd"}

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha

    def _metric(self, points: Points) -> tuple[Array, float]:
        xp, X, d = namespace(points.X), points.X, points.n_columns
        mean = weighted_mean(X, points.weights)
        S, total = within_scatter(X, points.codes, points.n_classes, mean, points.weights)
        values, V = xp.linalg.eigh(S)
        values = xp.clip(values / X.shape[0], min=0.0)
        unit = float(xp.sum(values)) / d
        spread = total / X.shape[0]
        if unit <= max(1e-12 * spread, ROUNDING * float(xp.sum(mean**2)) / d):
            raise ValueError(NOTHING)
        alpha = float(self.alpha)
        return (V / xp.sqrt(values / unit + alpha)) @ V.T, alpha**-0.5


# With C = ½ (A + Aᵀ) / pairs the covariance of an object and its targets and K = T / n + λI that of the
# objects, in units of the mean variance: K^(−½) C K^(−½) = U diag(r) Uᵀ has the correlations r of objects and
# targets, and L = K^(−½) U diag(r^(p/2)) Uᵀ, times K^(½) where directions keep their width
class Denoise(_Metric):
    """Compare by the directions in which an object resembles its nearest objects of the same class.

    Good for data in which most directions are noise: these have no such correlation and fade, and k-NN sees
    the rest. Targets are searched for again in the new space, `n_iter` times.

    Parameters
    ----------
    power : float, default=1.0
        p: how fast directions fade with their correlation.
    n_targets : int, default=10
        Targets per object: its nearest objects of the same class.
    whiten : bool, default=False
        Make all directions equally wide first.
    alpha : float, default=0.01
        λ, added to the variance in every direction, in units of the mean variance.
    n_iter : int, default=2

    Attributes
    ----------
    L_ : array of shape (d, d)
    correlations_ : array of shape (d,), ascending
        r of the last of the `n_iter` rounds.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from hubless.movers import Denoise
    >>> X, y = make_classification(500, 100, n_informative=5, n_redundant=0, random_state=0)
    >>> plain = cross_val_score(KNeighborsClassifier(), X, y).mean()
    >>> bool(cross_val_score(make_pipeline(Denoise(), KNeighborsClassifier()), X, y).mean() > plain + 0.05)
    True
    """

    _checks: ClassVar = {
        "power": check_positive,
        "n_targets": check_count,
        "alpha": check_positive,
        "n_iter": check_count,
    }
    _learned: ClassVar = {"L_": "dd", "correlations_": "d"}
    _tried: ClassVar = ({},)

    def __init__(
        self,
        power: float = 1.0,
        n_targets: int = 10,
        *,
        whiten: bool = False,
        alpha: float = 0.01,
        n_iter: int = 2,
    ) -> None:
        self.power = power
        self.n_targets = n_targets
        self.whiten = whiten
        self.alpha = alpha
        self.n_iter = n_iter

    def _metric(self, points: Points) -> tuple[Array, float]:
        xp, X, weights, d = namespace(points.X), points.X, points.weights, points.n_columns
        mean, total = weighted_mean(X, weights), float(xp.sum(as_weights(X, weights)))
        values, V = xp.linalg.eigh(scatter(X, mean, weights))
        values = xp.clip(values / total, min=0.0)
        unit = float(xp.sum(values)) / d
        targets = first_targets(points.targets, self.n_targets)
        if unit <= ROUNDING * float(xp.sum(mean**2)) / d or not bool(xp.any(targets >= 0)):
            raise ValueError(NOTHING)
        roots = xp.sqrt(values / unit + float(self.alpha))
        white = V / roots  # (d, d): K^(−½) but for a rotation
        L: Array = None
        for turn in range(self.n_iter):
            if turn > 0:
                seen = X @ xp.astype(L, X.dtype)
                targets = same_class_targets(seen, points.codes, targets.shape[1])
            moments = moments_of_targets(X, targets, weights, mean)
            C = (moments.A + moments.A.T) / (2 * moments.weight * unit)
            r, U = xp.linalg.eigh(white.T @ C @ white)
            r = xp.clip(r, min=FAINT, max=1.0)
            back = U.T if self.whiten else U.T * roots
            L = ((white @ U) * r ** (float(self.power) / 2)) @ back @ V.T
        outside = xp.full((d - r.shape[0],), FAINT, dtype=r.dtype, device=compat.device(r))
        self.correlations_ = xp.concat([outside, r])
        width = float(self.alpha) ** -0.5 if self.whiten else 1.0
        return L, width * FAINT ** (float(self.power) / 2)
