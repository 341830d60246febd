"""Movers that change how often an object is a neighbour at all: a bias per object, in one more column."""

from functools import partial
from typing import ClassVar

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, namespace
from ..arrays.inputs import check_count, check_positive
from ..moments import scatter
from ..neighbors.ranking import drop_self, squared_distances
from ..neighbors.search import search
from ..targets import first_targets, pairs
from .mover import Mover
from .points import Points, class_means, squared_norms, weighted_mean

__all__ = ["Balance", "Steer"]

QUANTILE = 0.99  # of r: an outlier far from everything would widen the column for all


# b_i = −g mean{‖z_i − x‖² : x among the objects nearest to z_i}
class Balance(Mover):
    """Give objects in crowded places a handicap: ‖x − z‖² − g r(z), r how far z is from the x near it.

    Good against hubs that remain after a move. r is the mean squared distance. On unit vectors g = ½ is CSLS
    for fixed queries. Objects are not moved. A sample of them, as they were before any move, represents the
    queries.

    Parameters
    ----------
    strength : float, default=0.5
        g; 0 does nothing.
    n_neighbors : int, default=5
        Nearest objects over which r is the mean.
    n_proxies : int, default=2048
        How many objects, drawn at random, represent the queries. In measurements, more changed little.

    Attributes
    ----------
    proxies_ : array of shape (at most n_proxies, d)
        Objects that represent the queries.
    cap_ : float
        The largest r that counts: the 99th percentile, as an outlier would widen the column for all.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Balance
    >>> Balance(0.5, n_neighbors=1).fit_transform([[0.0], [1.0], [4.0]], [0, 0, 1]).round(1).tolist()
    [[0.0, 2.0], [1.0, 2.0], [4.0, 0.0]]
    """

    _checks: ClassVar = {
        "strength": partial(check_positive, or_zero=True),
        "n_neighbors": check_count,
        "n_proxies": check_count,
    }
    _uses_labels = False
    _adds_column = True
    _learned: ClassVar = {"proxies_": "nd", "cap_": "number"}

    def __init__(self, strength: float = 0.5, *, n_neighbors: int = 5, n_proxies: int = 2048) -> None:
        self.strength = strength
        self.n_neighbors = n_neighbors
        self.n_proxies = n_proxies

    def _learn(self, points: Points) -> Points:
        xp, n = namespace(points.X), points.X.shape[0]
        drawn = np.sort(np.random.default_rng(0).permutation(n)[: self.n_proxies])
        chosen = convert(drawn, points.X)
        self.proxies_ = xp.take(points.X, chosen, axis=0)
        spread = self._spread(points.Z, chosen)
        self.cap_ = float(xp.sort(spread)[int(np.ceil(QUANTILE * (n - 1)))])
        return self._add_bias(points, spread)

    def _apply(self, points: Points) -> Points:
        return self._add_bias(points, self._spread(points.Z, None))

    def _add_bias(self, points: Points, spread: Array) -> Points:
        return points.with_bias(-float(self.strength) * namespace(spread).clip(spread, max=self.cap_))

    def _spread(self, Z: Array, chosen: Array | None) -> Array:
        """Return r of each object; `chosen` are the rows of Z that are proxies, which ignore themselves."""
        xp, n = namespace(Z), self.proxies_.shape[0]
        k = min(self.n_neighbors, n if chosen is None else n - 1)
        if k < 1:  # the only proxy is the object itself: no handicap, and a cap of 0 for later ones
            return xp.zeros((Z.shape[0],), dtype=xp.float64, device=compat.device(Z))
        distances, index = search(Z, self.proxies_, k if chosen is None else k + 1)
        if chosen is not None:
            rows = xp.arange(Z.shape[0], dtype=xp.int64, device=compat.device(Z))
            numbers = xp.reshape(xp.take(chosen, xp.reshape(index, (-1,))), index.shape)
            distances = drop_self(xp, distances, numbers, rows)
        return xp.mean(xp.astype(distances, xp.float64) ** 2, axis=1)


# ŷ_c(x) = π_c + w_cᵀ(x − μ) with w_c = (T + λI)⁻¹ n_c (m_c − μ): ridge regression of the indicator of c.
# ‖x − z‖² − 2s ŷ_y(x) = ‖x − z'‖² + b with z' = z + s w_y and b = −2s w_yᵀ(z − μ) − s²‖w_y‖² − 2s π_y
class Steer(Mover):
    """Add what a ridge classifier predicts: ‖x − z‖² − c u ŷ_y(x), with ŷ_y(x) its score for the class of z.

    Good for classes that differ in directions of little variance, such as those of text: a linear classifier
    sees them and distances do not. Where classes have no simple shape, it is the other way round. z moves
    along the weights w_y of its class, the same way for all objects of the class.

    Parameters
    ----------
    strength : float, default=1.0
        c, without a unit: it multiplies u, the mean squared distance of an object to its nearest of the
        same class.
    alpha : float, default=0.1
        λ of the classifier, in units of the mean eigenvalue of the scatter T of the objects.

    Attributes
    ----------
    coef_ : array of shape (n_classes, d), intercept_ : array of shape (n_classes,)
        w_c and π_c.
    mean_ : array of shape (d,)
    shift_ : float
        s = c u / 2.
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

    _checks: ClassVar = {"strength": partial(check_positive, or_zero=True), "alpha": check_positive}
    _adds_column = True
    _learned: ClassVar = {"coef_": "cd", "intercept_": "c", "mean_": "d", "shift_": "number"}

    def __init__(self, strength: float = 1.0, alpha: float = 0.1) -> None:
        self.strength = strength
        self.alpha = alpha

    def _n_targets(self) -> int:
        return 1

    def _estimate(self, points: Points) -> None:
        X, weights = points.X, points.weights
        xp = namespace(X)
        self.mean_ = weighted_mean(X, weights)
        means, totals = class_means(X, points.codes, points.n_classes, weights)
        T = scatter(X, self.mean_, weights)
        d = T.shape[0]
        alpha = float(self.alpha) * float(xp.linalg.trace(T)) / d
        ridge = (alpha or 1.0) * xp.eye(d, dtype=T.dtype, device=compat.device(T))
        self.coef_ = xp.linalg.solve(T + ridge, (totals[:, None] * (means - self.mean_)).T).T
        self.intercept_ = totals / xp.sum(totals)
        self.shift_ = 0.5 * float(self.strength) * _target_spread(points, self.mean_)

    def _apply(self, points: Points) -> Points:
        xp, Z = namespace(points.Z), points.Z
        step = xp.take(self.shift_ * self.coef_, points.codes, axis=0)  # s w_y
        centred = xp.astype(Z, xp.float64) - self.mean_
        bias = -2 * xp.vecdot(step, centred, axis=-1) - xp.vecdot(step, step, axis=-1)
        bias = bias - 2 * self.shift_ * xp.take(self.intercept_, points.codes)
        return points._replace(Z=Z + xp.astype(step, Z.dtype)).with_bias(bias)


# u = mean_i ‖x_i − x_t(i)‖² over the objects that have a target t(i)
def _target_spread(points: Points, mean: Array) -> float:
    """Return u, or the mean squared distance to μ where every object is alone or has a duplicate."""
    xp, X = namespace(points.X), points.X
    source, target = pairs(first_targets(points.targets, 1))
    total = float(xp.sum(squared_distances(X, X, source, target))) if source.shape[0] else 0.0
    near = total / max(source.shape[0], 1)
    wide = float(xp.mean(squared_norms(X - xp.astype(mean, X.dtype))))
    return near if near > 1e-12 * wide else wide
