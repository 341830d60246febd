"""WithoutColumn: what one more column would show, written onto a direction in which queries hardly differ."""

from functools import partial
from typing import Any, ClassVar, NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, namespace
from ..arrays.inputs import check_fraction, check_squares
from ..arrays.library import blocks
from ..arrays.products import solve_positive
from ..moments import as_weights, scatter
from ..neighbors.search import search
from .mover import Mover
from .points import ROWS, Points, Raised, mean_square, weighted_mean, with_bias_alone

__all__ = ["WithoutColumn"]

RIDGE = 1e-6  # δ, in mean eigenvalues of the scatter
ROUNDS = 20  # of inverse iteration
HEIGHT = 100.0  # standard deviations of h that the lowest object is above the queries
HELD_OUT = 1000  # queries, at most, by which the error is measured


class WithoutColumn(Mover):
    """Do without the column of the movers before it, by a direction in which queries hardly differ.

    Good for an index that cannot have one more column, after Steer, Balance, Whiten or Denoise. Of all
    directions, queries vary the least along n: not at all where columns sum to a constant, very little in
    most data of many columns. How far a stored object is from the queries along n is free, so it takes the
    place of the column: all objects go to one side, as far out as their column would say. Queries do not
    change. A query that is off the plane of the others may find other neighbours than with the column;
    held-out objects measure how often. Moved objects must be compared by Euclidean distance, not by cosine or
    inner product.

    Parameters
    ----------
    max_changed : float, default=0.05
        Refuse to learn where the nearest object of more than this share of held-out objects is of another
        class than with the column. In few dimensions there is often no direction to spare.

    Attributes
    ----------
    direction_ : array of shape (d,) or None
        n, of length 1; None where the movers before it need no column.
    mean_ : array of shape (d,)
    gain_, floor_ : float
        The scale of moved objects, and the least h' that can be shown (see the source).
    spread_ : float
        How much held-out objects differ along n: the root of the mean square, as a share of that of their
        distance to the mean.
    changed_, changed_class_ : float
        Share of held-out objects whose nearest object is another one than with the column, and of another
        class. Held out are a fifth of all, at most 1,000; for this, n is learned from the others.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.movers import Chain, Steer, WithoutColumn
    >>> X = np.random.default_rng(0).random((90, 5))
    >>> X /= X.sum(axis=1, keepdims=True)  # shares: columns sum to 1
    >>> mover = Chain([Steer(), WithoutColumn()])
    >>> mover.fit_transform(X, X[:, :3].argmax(axis=1)).shape, mover.movers_[-1].changed_class_
    ((90, 5), 0.0)
    """

    _checks: ClassVar = {"max_changed": check_fraction}
    _uses_labels = False
    _learned: ClassVar = {
        "direction_": "d none",
        "mean_": "d",
        "gain_": "number",
        "floor_": "number",
        "spread_": "number",
        "changed_": "number",
        "changed_class_": "number",
    }

    def __init__(self, max_changed: float = 0.05) -> None:
        self.max_changed = max_changed

    def _has_column(self, before: bool) -> bool:
        return False

    @property
    def _gives_order_alone(self) -> bool:
        return True

    @property
    def _raised(self) -> Raised | None:
        return None if self.direction_ is None else Raised(self.direction_, self.floor_)

    def _learn(self, points: Points) -> Points:
        self.mean_ = weighted_mean(points.inputs, points.weights)
        Z, bias, self.gain_ = with_bias_alone(points, self.mean_, None)
        self.direction_, self.floor_ = None, 0.0
        self.spread_ = self.changed_ = self.changed_class_ = 0.0
        if bias is None:
            return points
        self._measure(points, Z, bias)
        self.direction_ = least_direction(points.inputs, self.mean_, as_weights(Z, points.weights))
        heights = heights_over(Z, bias, self.direction_, self.mean_)
        self.floor_ = floor_of(heights)
        return self._flat(points, Z, heights)

    def _apply(self, points: Points) -> Points:
        if points.bias is None and points.push is None and points.L is None:
            return points
        if self.direction_ is None:
            raise ValueError("WithoutColumn has learned no direction, though the movers before it need one.")
        Z, bias, _ = with_bias_alone(points, self.mean_, self.gain_)
        return self._flat(points, Z, heights_over(Z, bias, self.direction_, self.mean_))

    def _flat(self, points: Points, Z: Array, heights: "Heights") -> Points:
        moved = raised(Z, heights, self.direction_, self.floor_)
        return points._replace(X=points.inputs, Z=moved, bias=None, L=None, push=None, raised=self._raised)

    def _measure(self, points: Points, Z: Array, bias: Array) -> None:
        """Compare answers to held-out objects with those of the column, by a direction of the others."""
        xp, X, n = namespace(Z), points.inputs, Z.shape[0]
        drawn = np.random.default_rng(0).permutation(n)[: min(HELD_OUT, max(1, n // 5))]
        others = np.ones(n)
        others[drawn] = 0.0
        numbers = convert(np.sort(drawn), Z)
        queries = xp.take(X, numbers, axis=0)
        n_rest = least_direction(X, self.mean_, as_weights(Z, points.weights) * convert(others, bias))
        heights = heights_over(Z, bias, n_rest, self.mean_)
        off_plane = heights_over(queries, None, n_rest, self.mean_).along
        wide = mean_square(X, points.weights) or 1.0
        self.spread_ = float(xp.sqrt(xp.mean(off_plane**2) / wide))
        if n < 2:
            return
        column = xp.astype(xp.sqrt(bias - xp.min(bias)), Z.dtype)[:, None]
        nothing = xp.zeros((queries.shape[0], 1), dtype=Z.dtype, device=compat.device(Z))
        with_column = xp.concat([queries, nothing], axis=1), xp.concat([Z, column], axis=1)
        without = queries, raised(Z, heights, n_rest, floor_of(heights))
        pairs = [_nearest_other(*pair, numbers) for pair in (with_column, without)]
        self.changed_ = _share_of_different(*pairs)
        self.changed_class_ = _share_of_different(*(xp.take(points.codes, found) for found in pairs))
        if self.changed_class_ > self.max_changed:
            raise ValueError(
                f"without a column the nearest object of {self.changed_class_:.1%} of held-out objects would "
                f"be of another class than with it, and max_changed={self.max_changed:g}: queries differ too "
                "much in every direction. Allow one more column, take a mover that needs none, such as "
                "Shrink, or raise max_changed of WithoutColumn."
            )


# --- the direction and what is written onto it --------------------------------------------------------------


# n = (T + δI)^(−20) v / ‖…‖ by inverse iteration, T = Σ w (x − μ)(x − μ)ᵀ = RᵀR in its mean eigenvalues; with
# fewer objects than columns by δ (RᵀR + δI)⁻¹ = I − Rᵀ(RRᵀ + δI)⁻¹R
def least_direction(X: Array, mean: Array, weights: Array) -> Array:
    """Return a direction in which objects vary the least; of several, a random but repeatable mixture."""
    xp, d = namespace(X), X.shape[1]
    n = convert(np.random.default_rng(0).standard_normal(d), mean)
    if X.shape[0] < d:
        R = (xp.astype(X, xp.float64) - mean) * xp.sqrt(weights)[:, None]
        R = R / (float(xp.sum(R * R)) / d or 1.0) ** 0.5
        inverse = _inverse(R @ R.T)
        step = partial(_step_in_span, R, inverse)
    else:
        T = scatter(X, mean, weights)
        inverse = _inverse(T / (float(xp.linalg.trace(T)) / d or 1.0))
        step = partial(xp.matmul, inverse)
    for _ in range(ROUNDS):
        n = step(n)
        n = n / xp.sqrt(xp.sum(n * n))
    return n


def _step_in_span(R: Array, inverse: Array, n: Array) -> Array:
    return n - R.T @ (inverse @ (R @ n))


def _inverse(M: Array) -> Array:
    """Return (M + δI)⁻¹."""
    eye = namespace(M).eye(M.shape[0], dtype=M.dtype, device=compat.device(M))
    return solve_positive(M + RIDGE * eye, eye)


class Heights(NamedTuple):
    """Where objects are along n, and where they should be."""

    along: Array  # (n,), float64: c = nᵀ(z − μ)
    wanted: Array  # (n,), float64: h = c² + b, up to a number that all share


def heights_over(Z: Array, bias: Array | None, n: Array, mean: Any) -> Heights:
    """Return c and h of objects."""
    xp = namespace(Z)
    along = xp.concat([(xp.astype(Z[part, :], xp.float64) - mean) @ n for part in blocks(Z.shape[0], ROWS)])
    return Heights(along, along**2 if bias is None else along**2 + bias)


def floor_of(heights: Heights) -> float:
    """Return κ: well below all h, so that roots of h − κ are nearly a straight line over h."""
    xp, h = namespace(heights.wanted), heights.wanted
    return float(xp.min(h) - HEIGHT * xp.std(h))


# z'' = z' + (c' − c) n with c'² = c² + b − κ. For a query in the plane, nᵀ(x − μ) = 0,
#   ‖x − z''‖² = ‖x − z'‖² − c² + c'² = ‖x − z'‖² + b − κ
# and for one that is ε off it, −2ε (c' − c) is added: as much as c' − c differs between objects, this is an
# error. Both roots solve it; all objects take the positive one, so that their c' differ little. Each object
# learned from has a root, as κ is below its c² + b. One that comes later and has none goes into the plane.
def raised(Z: Array, heights: Heights, n: Array, floor: float) -> Array:
    """Return objects moved along n to where the column would put them."""
    xp = namespace(Z)
    height = xp.sqrt(xp.clip(heights.wanted - floor, min=0.0))
    check_squares(float(xp.sum(height)))
    step = height - heights.along

    def moved(part: slice) -> Array:
        return xp.astype(xp.astype(Z[part, :], xp.float64) + step[part, None] * n, Z.dtype)

    return xp.concat([moved(part) for part in blocks(Z.shape[0], ROWS)])


def _nearest_other(queries: Array, stored: Array, numbers: Array) -> Array:
    """Return the nearest stored object of each query other than the query itself, which has a number."""
    xp, found = namespace(stored), search(queries, stored, 2, return_distance=False)
    return xp.where(found[:, 0] == numbers, found[:, 1], found[:, 0])


def _share_of_different(a: Array, b: Array) -> float:
    xp = namespace(a, b)
    return float(xp.mean(xp.astype(a != b, xp.float64)))
