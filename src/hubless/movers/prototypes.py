"""Movers toward a typical object: all objects to the mean of all, to that of their class, or to near ones."""

from typing import Any

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, namespace, to_numpy
from ..inputs import check_choice, check_count, check_fraction, check_squares
from ..large.lesson import Lesson, Sums
from ..large.survey import Survey
from ..targets import first_targets
from ..topk import search
from ..vote import distance_weights
from .linear import weighted_mean
from .mover import Mover
from .points import Points, class_means, squared_norms


class Scale(Mover):
    """Move labeled objects to μ + g (z − μ): Move-labeled with W = g · I, and nothing learned but the mean.

    What of Move-labeled's gain is due to shorter vectors alone, this control has too.

    Parameters
    ----------
    g : float, default=0.5
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

    _uses_labels = False

    def __init__(self, g: float = 0.5) -> None:
        self.g = g

    def _check(self) -> None:
        check_fraction("g", self.g)

    def _estimate(self, points: Points) -> None:
        self.mean_ = weighted_mean(points.X, points.weights)

    def _lesson(self, mean: np.ndarray) -> Lesson:
        return Lesson(mean, 0)

    def _learn_sums(self, seen: Survey, sums: Sums) -> None:
        self.mean_ = seen.mean

    def _apply(self, points: Points) -> Points:
        mean = namespace(points.Z).astype(self.mean_, points.Z.dtype)
        return points._replace(Z=mean + float(self.g) * (points.Z - mean))


# z' = z / ‖z‖
class Unit(Mover):
    """Bring labeled objects to length 1: after another mover, for an index that compares by cosine.

    Queries of length 1 then find by Euclidean distance what such an index finds. A zero stays one.

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
        norms = xp.astype(xp.where(norms > 0, norms, 1.0), Z.dtype)
        return points._replace(Z=Z / norms[:, None])


class Shrink(Mover):
    """Move labeled objects toward the mean of their class: z' = (1 − a) z + a m_y.

    What an object shares with its class stays, what is its own and would mislead a query is halved, say.

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

    def __init__(self, step: float = 0.3) -> None:
        self.step = step

    def _check(self) -> None:
        check_fraction("step", self.step)

    def _estimate(self, points: Points) -> None:
        self.means_ = class_means(points.Z, points.codes, points.n_classes, points.weights)[0]

    def _lesson(self, mean: np.ndarray) -> Lesson:
        return Lesson(mean, 0, means=True)

    def _learn_sums(self, seen: Survey, sums: Sums) -> None:
        self.means_ = sums.class_means(seen.sizes)

    def _apply(self, points: Points) -> Points:
        xp, Z = namespace(points.Z), points.Z
        means = xp.take(xp.astype(self.means_, Z.dtype), points.codes, axis=0)
        step = float(self.step)  # a number of NumPy would decide the precision
        return points._replace(Z=(1 - step) * Z + step * means)


class Smooth(Mover):
    """Move labeled objects toward the mean of the nearest of their class: Eq. 5 by k-NN regression.

    z' = (1 − s) z + s Σ_j w_j z_j / Σ_j w_j over the m nearest z_j.

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
    objects_, codes_ : the objects learned from and their class numbers, in which later objects find theirs
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from hubless.movers import Smooth
    >>> Smooth(1).fit_transform([[0.0], [4.0], [9.0]], ["a", "a", "b"]).tolist()
    [[2.0], [2.0], [9.0]]
    """

    def __init__(self, n_neighbors: int = 4, weights: str = "uniform", step: float | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.step = step

    def _check(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_choice("weights", self.weights, ("uniform", "distance"))
        if self.step is not None:
            check_fraction("step", self.step)

    def _width(self) -> int:
        return self.n_neighbors

    def _learn(self, points: Points) -> Points:
        self.objects_, self.codes_ = points.Z, points.codes
        return self._toward(points, first_targets(points.targets, self.n_neighbors))

    def _apply(self, points: Points) -> Points:
        k = min(self.n_neighbors, self.objects_.shape[0])
        found = _nearest_of_class(points.Z, points.codes, self.objects_, self.codes_, k)
        return self._toward(points, found)

    def _toward(self, points: Points, neighbors: Array) -> Points:
        """Points moved toward the mean of `neighbors`: rows of `objects_`, -1 for none; shape (n, m)."""
        xp, Z = namespace(points.Z), points.Z
        there = xp.astype(neighbors >= 0, Z.dtype)
        if self.weights == "distance":
            there = there * xp.astype(distance_weights(_distances(Z, self.objects_, neighbors)), Z.dtype)
        total = xp.sum(there, axis=1)
        mean = xp.zeros_like(Z)
        for column in range(neighbors.shape[1]):  # one neighbour at a time: no (n, width, d) array
            own = xp.take(self.objects_, xp.clip(neighbors[:, column], min=0), axis=0)
            mean = mean + own * (there[:, column] / xp.where(total > 0, total, 1.0))[:, None]
        m = xp.sum(xp.astype(neighbors >= 0, Z.dtype), axis=1) if self.weights == "uniform" else total
        step = m / (m + 1) if self.step is None else float(self.step) * xp.astype(m > 0, Z.dtype)
        return points._replace(Z=Z + step[:, None] * (mean - Z))


def _distances(Z: Array, objects: Array, neighbors: Array) -> Array:
    """‖z − z_j‖ of each row and its neighbours, in float64; that of the first where there is none."""
    xp = namespace(Z, objects, neighbors)
    columns: list[Array] = []
    for column in range(neighbors.shape[1]):
        index = neighbors[:, column]
        apart = xp.astype(Z - xp.take(objects, xp.clip(index, min=0), axis=0), xp.float64)
        length = xp.linalg.vector_norm(apart, axis=1)
        check_squares(float(xp.sum(length)))
        columns.append(xp.where(index >= 0, length, columns[0] if columns else 1.0))
    return xp.stack(columns, axis=1)


def _nearest_of_class(Z: Array, codes: Array, objects: Array, object_codes: Array, k: int) -> Any:
    """For each row of Z, the nearest `objects` of its class, -1 where there are too few; shape (n, k)."""
    xp = namespace(Z, codes, objects, object_codes)
    asked, stored = _members(codes), _members(object_codes)
    found = []
    for code, rows in asked.items():
        index = xp.full((len(rows), k), -1, dtype=xp.int64, device=compat.device(Z))
        if code in stored:  # else no object of this class was learned from
            own, width = convert(stored[code], Z), min(k, len(stored[code]))
            near = xp.take(Z, convert(rows, Z), axis=0), xp.take(objects, own, axis=0)
            local = search(*near, width, return_distance=False)
            index[:, :width] = xp.reshape(xp.take(own, xp.reshape(local, (-1,))), local.shape)
        found.append(index)
    order = convert(np.argsort(np.concatenate(list(asked.values()))), Z)
    return xp.take(xp.concat(found), order, axis=0)


def _members(codes: Array) -> dict[int, np.ndarray]:
    """The rows of each class, from one sort."""
    host = to_numpy(codes)
    order = np.argsort(host, kind="stable")
    classes, starts = np.unique(host[order], return_index=True)
    return dict(zip(classes.tolist(), np.split(order, starts[1:]), strict=True))
