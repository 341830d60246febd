"""Movers toward a typical object: the mean of all objects, of a class, or of near objects of a class."""

from functools import partial
from typing import ClassVar

from ..arrays import Array, namespace
from ..arrays.inputs import check_choice, check_count, check_fraction, check_squares, or_none
from ..neighbors.knn import distance_weights
from ..neighbors.within import nearest_of_class
from ..targets import first_targets
from .mover import Mover
from .points import Points, class_means, squared_norms, weighted_mean
from .totals import Needs, Totals

__all__ = ["Scale", "Shrink", "Smooth", "Unit"]


# z' = μ + g (z − μ)
class Scale(Mover):
    """Move labeled objects to μ + g (z − μ): Move-labeled with W = g · I, and nothing learned but the mean.

    Good for comparison: what Move-labeled gains by shorter vectors alone, Scale gains too.

    Parameters
    ----------
    g : float from 0 to 1, default=0.5
        The factor; 1 leaves objects where they are.

    Attributes
    ----------
    mean_ : array of shape (d,)
        μ.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Scale
    >>> scale = Scale(0.5)
    >>> scale.fit_transform([[0.0], [4.0]], [0, 1]).tolist(), scale.transform([[4.0]]).tolist()
    ([[1.0], [3.0]], [[4.0]])
    """

    _checks: ClassVar = {"g": check_fraction}
    _uses_labels = False
    _learned: ClassVar = {"mean_": "d"}
    _tried: ClassVar = ({"g": 0.6},)
    _tried_in_parts: ClassVar = tuple({"g": g} for g in (0.8, 0.6, 0.4))

    def __init__(self, g: float = 0.5) -> None:
        self.g = g

    def _estimate(self, points: Points) -> None:
        self.mean_ = weighted_mean(points.X, points.weights)

    def _needs(self) -> Needs:
        return Needs()

    def _learn_totals(self, totals: Totals) -> None:
        self.mean_ = totals.mean

    def _apply(self, points: Points) -> Points:
        mean = namespace(points.Z).astype(self.mean_, points.Z.dtype)
        return points._replace(Z=mean + float(self.g) * (points.Z - mean))


# z' = z / ‖z‖
class Unit(Mover):
    """Bring labeled objects to length 1: z' = z / ‖z‖.

    Good for an index that compares by cosine, after another mover. Queries of length 1 then find by Euclidean
    distance what such an index finds. A row of zeros stays as it is.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Unit
    >>> Unit().fit_transform([[0.0, 2.0], [3.0, 4.0]], [0, 1]).tolist()
    [[0.0, 1.0], [0.6, 0.8]]
    """

    _uses_labels = False

    def _apply(self, points: Points) -> Points:
        xp, Z = namespace(points.Z), points.Z
        norms = xp.sqrt(squared_norms(Z))
        check_squares(float(xp.sum(norms)))
        norms = xp.astype(xp.where(norms > 0, norms, 1.0), Z.dtype)
        return points._replace(Z=Z / norms[:, None])


# z' = (1 − a) z + a m_y
class Shrink(Mover):
    """Move labeled objects toward the mean of their class: z' = (1 − a) z + a m_y.

    Good for classes with one centre: what an object shares with its class stays, and what it does not share,
    which misleads queries, becomes less.

    Parameters
    ----------
    step : float from 0 to 1, default=0.3
        a; 1 stores the class means alone.

    Attributes
    ----------
    means_ : array of shape (n_classes, d)
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Shrink
    >>> Shrink(0.5).fit_transform([[0.0], [4.0], [9.0]], ["a", "a", "b"]).tolist()
    [[1.0], [3.0], [9.0]]
    """

    _checks: ClassVar = {"step": check_fraction}
    _learned: ClassVar = {"means_": "cd"}
    _tried: ClassVar = ({"step": 0.3},)
    _tried_in_parts: ClassVar = tuple({"step": step} for step in (0.15, 0.3, 0.5))

    def __init__(self, step: float = 0.3) -> None:
        self.step = step

    def _estimate(self, points: Points) -> None:
        self.means_ = class_means(points.Z, points.codes, points.n_classes, points.weights)[0]

    def _needs(self) -> Needs:
        return Needs(class_means=True)

    def _learn_totals(self, totals: Totals) -> None:
        self.means_ = totals.class_means

    def _apply(self, points: Points) -> Points:
        step = float(self.step)  # a number of NumPy would decide the precision
        return points._replace(Z=(1 - step) * points.Z + step * points.rows_of(self.means_))


# z' = (1 − s) z + s Σ_j w_j z_j / Σ_j w_j
class Smooth(Mover):
    """Move labeled objects toward the mean of the nearest of their class: Eq. 5 by k-NN regression.

    z' = (1 − s) z + s Σ_j w_j z_j / Σ_j w_j over the m nearest z_j. Good for classes with several centres.

    Parameters
    ----------
    n_neighbors : int, default=4
        m. A class of fewer objects gives all it has; an object alone in its class stays.
    weights : "uniform" or "distance", default="uniform"
        w_j = 1, or the inverse of the distance.
    step : float from 0 to 1 or None, default=None
        s; None gives m / (m + 1), with which z' is the mean of z and its neighbours, z counting as much as
        the nearest of them. Many neighbours and a small step move toward a local prototype.

    Attributes
    ----------
    objects_, codes_ : the objects learned from and their class numbers, among which later objects find theirs
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Smooth
    >>> Smooth(1).fit_transform([[0.0], [4.0], [9.0]], ["a", "a", "b"]).tolist()
    [[2.0], [2.0], [9.0]]
    """

    _checks: ClassVar = {
        "n_neighbors": check_count,
        "weights": partial(check_choice, allowed=("uniform", "distance")),
        "step": or_none(check_fraction),
    }
    _learned: ClassVar = {"objects_": "nd", "codes_": "n codes"}
    _tried: ClassVar = ({"n_neighbors": 5},)

    def __init__(self, n_neighbors: int = 4, weights: str = "uniform", step: float | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.step = step

    def _n_targets(self) -> int:
        return self.n_neighbors

    def _learn(self, points: Points) -> Points:
        self.objects_, self.codes_ = points.Z, points.codes
        return self._toward(points, first_targets(points.targets, self.n_neighbors))

    def _apply(self, points: Points) -> Points:
        k = min(self.n_neighbors, self.objects_.shape[0])
        neighbors = nearest_of_class(points.Z, points.codes, self.objects_, self.codes_, k)
        return self._toward(points, neighbors)

    def _toward(self, points: Points, neighbors: Array) -> Points:
        """Move points toward the mean of `neighbors`: rows of `objects_`, -1 for none; shape (n, m)."""
        xp, Z = namespace(points.Z), points.Z
        weights = xp.astype(neighbors >= 0, Z.dtype)
        if self.weights == "distance":
            weights = weights * xp.astype(distance_weights(_distances(Z, self.objects_, neighbors)), Z.dtype)
        total = xp.sum(weights, axis=1)
        mean = xp.zeros_like(Z)
        for column in range(neighbors.shape[1]):  # one neighbour at a time: no (n, width, d) array
            nearest = xp.take(self.objects_, xp.clip(neighbors[:, column], min=0), axis=0)
            mean = mean + nearest * (weights[:, column] / xp.where(total > 0, total, 1.0))[:, None]
        m = xp.sum(xp.astype(neighbors >= 0, Z.dtype), axis=1) if self.weights == "uniform" else total
        step = m / (m + 1) if self.step is None else float(self.step) * xp.astype(m > 0, Z.dtype)
        return points._replace(Z=Z + step[:, None] * (mean - Z))


def _distances(Z: Array, objects: Array, neighbors: Array) -> Array:
    """Return ‖z − z_j‖ of each row and its neighbours, in float64; that of the first where there is none."""
    xp = namespace(Z, objects, neighbors)
    columns: list[Array] = []
    for column in range(neighbors.shape[1]):
        index = neighbors[:, column]
        apart = xp.astype(Z - xp.take(objects, xp.clip(index, min=0), axis=0), xp.float64)
        length = xp.linalg.vector_norm(apart, axis=1)
        check_squares(float(xp.sum(length)))
        columns.append(xp.where(index >= 0, length, columns[0] if columns else 1.0))
    return xp.stack(columns, axis=1)
