"""Balance: a handicap for objects in crowded places, in one more column."""

from functools import partial
from typing import ClassVar

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, namespace, take_rows
from ..arrays.inputs import check_count, check_positive
from ..neighbors.ranking import drop_self
from ..neighbors.search import search
from .mover import Mover
from .points import Points, as_compared

__all__ = ["Balance"]

QUANTILE = 0.99  # of r: an outlier far from everything would widen the column for all


# b_i = −g mean{‖z_i − x‖² : x among the objects nearest to z_i}
class Balance(Mover):
    """Give objects in crowded places a handicap: ‖x − z‖² − g r(z), r how far z is from the x near it.

    Good against hubs that remain after a move. r is the mean squared distance. On unit vectors g = ½ is CSLS
    for fixed queries. Objects are not moved. A sample of them, as they were before any move, represents the
    queries; or a sample of queries without labels, where `fit` is given some.

    Parameters
    ----------
    strength : float, default=0.5
        g; 0 does nothing.
    n_neighbors : int, default=5
        Nearest objects over which r is the mean.
    n_proxies : int, default=2048
        How many objects, or queries given to `fit`, drawn at random, represent the queries. In measurements,
        more changed little.

    Attributes
    ----------
    proxies_ : array of shape (at most n_proxies, d)
        Objects, or queries given to `fit`, that represent the queries, in the space of the comparison.
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
    _uses_queries = True
    _adds_column = True
    _learned: ClassVar = {"proxies_": "nd", "cap_": "number"}

    def __init__(self, strength: float = 0.5, *, n_neighbors: int = 5, n_proxies: int = 2048) -> None:
        self.strength = strength
        self.n_neighbors = n_neighbors
        self.n_proxies = n_proxies

    def _learn(self, points: Points) -> Points:
        xp, given = namespace(points.X), points.queries
        source = points.X if given is None else given
        drawn = np.sort(np.random.default_rng(0).permutation(source.shape[0])[: self.n_proxies])
        chosen = convert(drawn, points.X)
        proxies = take_rows(source, chosen)
        self.proxies_ = proxies if given is None else as_compared(proxies, points)
        spread = self._spread(points.Z, chosen if given is None else None)
        self.cap_ = float(xp.sort(spread)[int(np.ceil(QUANTILE * (spread.shape[0] - 1)))])
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
