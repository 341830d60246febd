"""What the stored objects say about the class of a query: how near each class is, and who votes for it.

For movers with a column only differences of squared distances between objects are meaningful, and nothing
else is used of them here, except for the distance of the nearest object, which is compared with that of other
queries of the same model.
"""

from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np

from ..arrays import Array, convert, device_of, namespace, rows, subset, tally, to_numpy
from ..arrays.library import blocks
from ..movers.points import QuerySpace, Raised, as_queries, squared_norms
from ..neighbors.frame import SAMPLE, ignore_overflow, scale_of
from ..neighbors.knn import shares_of_votes, vote, votes_of
from ..neighbors.search import search

WIDE = 30  # neighbours of the second vote, as many as a race tries at most
QUERIES, OBJECTS = 512, 8192  # of one product


class Stored(NamedTuple):
    """Moved objects and how they vote."""

    moved: Array  # (n, d), or (n, d + 1)
    codes: Array  # (n,)
    weights: Array | None  # (n,)
    n_classes: int
    space: QuerySpace
    n_neighbors: int
    by_distance: bool = False
    raised: Raised | None = None


class Evidence(NamedTuple):
    """Evidence for the classes of queries, in float64."""

    winners: Array  # (m,): the class voted for
    gaps: Array  # (m, c): squared distance of the nearest object of a class, less that of the nearest of all
    votes: Array  # (m, c): smoothed share of the votes of the k nearest
    wide: Array  # (m, c): the same of the WIDE nearest
    nearest: Array  # (m,): squared distance of the nearest object, with the bias of its column in full
    cosine: Array  # (m,): of the object in the most similar direction, about the mean

    def take(self, part: Any) -> "Evidence":
        """Return the evidence of some queries, a slice or a mask."""
        return Evidence(*(array[part, ...] for array in self))

    def on_host(self) -> "Evidence":
        """Return the same in NumPy."""
        return Evidence(*map(to_numpy, self))


def evidence_of(queries: Array, stored: Stored) -> Evidence:
    """Compare queries, as they are, with all stored objects."""
    xp = namespace(queries)
    queries = as_queries(queries, stored.space)
    width = min(max(stored.n_neighbors, WIDE), stored.moved.shape[0])
    result = search(queries, stored.moved, width, return_distance=stored.by_distance)
    distances, indices = result if stored.by_distance else (None, result)
    k = stored.n_neighbors
    near = None if distances is None else distances[:, :k]
    labels, weights = votes_of(indices[:, :k], near, stored.codes, stored.weights)
    wide, wide_weights = votes_of(indices[:, : min(WIDE, width)], None, stored.codes, stored.weights)
    nearest, cosine = nearest_of_classes(queries, stored)
    first = xp.min(nearest, axis=1, keepdims=True)
    prior = class_shares(stored)
    return Evidence(
        vote(labels, weights),
        nearest - first,
        smoothed_shares(labels, weights, prior),
        smoothed_shares(wide, wide_weights, prior),
        first[:, 0] + _floor_of(stored),
        cosine,
    )


def _floor_of(stored: Stored) -> float:
    """Return what squared distances lack, which differs between folds: the floor of a column, if any."""
    return (stored.space.floor or 0.0) + (0.0 if stored.raised is None else stored.raised.floor)


# π_c = (n_c + 1) / (n + C), so that a class that is missing from a training part has a chance too; n_c and n
# are sums of weights
def class_shares(stored: Stored) -> Array:
    """Return the share of each class among the stored objects, in float64; (c,)."""
    xp = namespace(stored.codes)
    counts = xp.astype(tally(stored.codes, stored.n_classes, stored.weights), xp.float64)
    return (counts + 1) / (xp.sum(counts) + stored.n_classes)


# (k v_c / Σ v + π_c) / (k + 1): one more vote, which is divided by the sizes of the classes
def smoothed_shares(labels: Array, weights: Array | None, prior: Array) -> Array:
    """Return shares of the votes that are never 0, in float64; shapes (m, k) → (m, c)."""
    k = labels.shape[1]
    return (k * shares_of_votes(labels, prior.shape[0], weights) + prior) / (k + 1)


# min_i ‖x − z'_i‖² over the objects of each class, and max_i cos(x − μ, z'_i − μ) over all; one product gives
# both: ‖x − z'‖² = ‖x − μ‖² + ‖z' − μ‖² − 2 (x − μ)ᵀ(z' − μ), and the column of a query is 0
def nearest_of_classes(queries: Array, stored: Stored) -> tuple[Array, Array]:
    """Return how near each class is, and the largest cosine, in float64; (m, c) and (m,).

    A class without objects is as far away as the farthest one.
    """
    xp, device = namespace(queries), device_of(queries)
    order = xp.argsort(stored.codes, stable=True)
    objects, codes = subset(stored.moved, order), to_numpy(xp.take(stored.codes, order))
    mean = _mean_like(stored, queries)
    scale = scale_of(rows(objects, slice(None, None, max(1, objects.shape[0] // SAMPLE))))
    near, cosines = [], []
    for part in blocks(queries.shape[0], QUERIES):
        x = (queries[part, :] - mean) * scale
        best = xp.full((x.shape[0], stored.n_classes), xp.inf, dtype=xp.float64, device=device)
        top = xp.full((x.shape[0],), -xp.inf, dtype=xp.float64, device=device)
        for block in blocks(objects.shape[0], OBJECTS):
            z = (rows(objects, block) - mean) * scale
            with ignore_overflow():
                top = xp.maximum(top, _add_block(x, z, stored, codes[block], best))
        length = xp.sqrt(squared_norms(x))
        near.append(best + (length**2)[:, None])
        cosines.append(top / xp.where(length > 0, length, 1.0))
    with ignore_overflow():
        return _finite(xp.concat(near) * (1 / scale) * (1 / scale)), xp.concat(cosines)


def _add_block(x: Array, z: Array, stored: Stored, codes: np.ndarray, best: Array) -> Array:
    """Lower `best` by a block of objects, which are sorted by class; return the largest (x)ᵀz / ‖z‖."""
    xp, d = namespace(x), x.shape[1] - (stored.space.floor is not None)
    products, heights = x @ z.T, squared_norms(z)
    table = xp.astype(heights, products.dtype) - 2 * products
    z = z[:, :d]
    if stored.raised is not None:  # cosines are between directions in which queries differ
        n = xp.astype(convert(stored.raised.direction, z), z.dtype)
        z = z - (z @ n)[:, None] * n
        products = x @ z.T
    lengths = xp.sqrt(squared_norms(z))
    lengths = xp.astype(xp.where(lengths > 0, lengths, 1.0), products.dtype)
    classes, starts = np.unique(codes, return_index=True)
    for c, minimum in zip(classes.tolist(), _minima(table, starts), strict=True):
        best[:, c] = xp.minimum(best[:, c], xp.astype(minimum, xp.float64))
    return xp.astype(xp.max(products / lengths, axis=1), xp.float64)


def _minima(table: Array, starts: np.ndarray) -> list[Array]:
    """Return the least number of each row in each run of columns, one array per run."""
    xp, ends = namespace(table), [*starts[1:].tolist(), table.shape[1]]
    if compat.is_numpy_namespace(xp):
        return list(np.minimum.reduceat(table, starts, axis=1).T)
    return [xp.min(table[:, a:b], axis=1) for a, b in zip(starts.tolist(), ends, strict=True)]


def _mean_like(stored: Stored, queries: Array) -> Array:
    """Return the mean in the precision of the queries, with a 0 for the column."""
    xp = namespace(queries)
    mean = xp.astype(convert(stored.space.mean, queries), queries.dtype)
    extra = queries.shape[1] - mean.shape[0]
    return xp.concat([mean, xp.zeros_like(mean[:extra])])


def _finite(near: Array) -> Array:
    """Return numbers with the largest of their row in place of those that are infinite."""
    xp = namespace(near)
    is_finite = xp.isfinite(near)
    most = xp.max(xp.where(is_finite, near, -xp.inf), axis=1, keepdims=True)
    return xp.where(is_finite, near, xp.where(xp.isfinite(most), most, 0.0))
