"""The paper's explanation of hubs, as measurements (Sec. 4).

Proposition 1: of two stored objects, the one nearer the mean is nearer to an average query, by an amount
that grows with the variance of the stored objects. Ridge regression shrinks that variance. Between two spaces
it shrinks whichever side is mapped: `compare_directions` measures both.
"""

from typing import NamedTuple

import numpy as np

from .arrays import Array, lift, namespace
from .arrays.inputs import check_choice
from .hubness import k_occurrence, skewness
from .neighbors import nearest
from .solve import problem_of_pairs


# Δ = γ s² √(2d)   (Eq. 8, Proposition 1)
def centrality_bias(gamma: float, s: float, d: int) -> float:
    """Return the expected difference of squared distances from a query to two objects z ~ N(0, s²I).

    Their squared norms in d dimensions are γ standard deviations apart. It does not depend on the spread of
    the queries: for given queries, stored objects of smaller variance make fewer hubs.

    Examples
    --------
    >>> centrality_bias(gamma=2.0, s=1.0, d=50)
    20.0
    >>> centrality_bias(gamma=2.0, s=0.5, d=50)  # stored objects of half the spread: a quarter of the bias
    5.0
    """
    return float(gamma * s**2 * np.sqrt(2 * d))


class SimulatedMean(NamedTuple):
    """A mean over simulated queries and its standard error.

    Examples
    --------
    >>> measured = simulate_centrality_bias(gamma=1.0, s=1.0, d=8, n_queries=100)
    >>> measured.standard_error > 0
    True
    """

    mean: float
    standard_error: float


# Δ = E[‖x − z₂‖²] − E[‖x − z₁‖²] with ‖z₂‖² − ‖z₁‖² = γσ and σ = √Var[‖z‖²]
def simulate_centrality_bias(
    gamma: float, s: float, d: int, *, query_scale: float = 1.0, n_queries: int = 10_000, seed: int = 0
) -> SimulatedMean:
    """Measure Δ with queries x ~ N(0, query_scale² I) and σ estimated from drawn objects, without Eq. 8.

    Examples
    --------
    >>> measured = simulate_centrality_bias(gamma=2.0, s=1.0, d=50)
    >>> abs(measured.mean - centrality_bias(gamma=2.0, s=1.0, d=50)) < 1
    True
    """
    rng = np.random.default_rng(seed)
    drawn = s * rng.standard_normal((4096, d))
    squared_norms = np.sum(drawn**2, axis=1)
    sigma = np.std(squared_norms)
    # A drawn object near the middle of the norms is scaled down or up so that the two are γσ apart.
    middle = np.argsort(squared_norms)[len(drawn) // 2]
    half = gamma * sigma / 2
    if abs(half) >= squared_norms[middle]:
        raise ValueError(
            f"gamma={gamma} puts one squared norm below 0 in {d} dimensions; give a smaller gamma."
        )
    z1 = drawn[middle] * np.sqrt(1 - half / squared_norms[middle])
    z2 = drawn[middle - 1] * np.sqrt((squared_norms[middle] + half) / squared_norms[middle - 1])
    x = query_scale * rng.standard_normal((n_queries, d))
    difference = np.sum((x - z2) ** 2, axis=1) - np.sum((x - z1) ** 2, axis=1)
    return SimulatedMean(float(difference.mean()), float(difference.std() / np.sqrt(n_queries)))


# Σ_c Var[z'_c] / Σ_c Var[x_c] over the d components
def variance_ratio(moved: Array, queries: Array) -> float:
    """Return the total variance of moved objects over that of queries: below 1, they shrank (Sec. 4.2).

    Examples
    --------
    >>> import numpy as np
    >>> queries = np.array([[0.0, 0.0], [2.0, 4.0]])
    >>> variance_ratio(0.5 * queries, queries)
    0.25
    """
    xp = namespace(moved, queries)
    spread = [float(xp.sum(xp.var(xp.astype(points, xp.float64), axis=0))) for points in (moved, queries)]
    return spread[0] / spread[1]


# --- Proposition 1 across spaces: which side to map --------------------------------------------------------


class Direction(NamedTuple):
    """What a search gives after one side was mapped into the space of the other."""

    variance_ratio: float  # of stored objects against queries, as they are mapped, of any length
    skewness: float  # of N_k
    recall: dict[int, float]  # by k: share of the queries that find their object among k


class Directions(NamedTuple):
    """The two ways to compare queries and objects of different spaces."""

    stored: Direction  # objects are mapped into the space of the queries
    queries: Direction  # queries are mapped into the space of the objects


METRICS = ("l2", "cosine", "centred cosine")


# stored side: z' = μ_x + W (z − μ_z) is compared with x;  query side: x' = μ_z + V (x − μ_x) with z.
# Ridge shrinks what it maps (Sec. 4.2): stored objects of smaller variance make fewer hubs, queries more.
def compare_directions(
    pairs: tuple[Array, Array],
    queries: Array,
    objects: Array,
    answers: Array,
    *,
    alpha: float | tuple[float, float] = 1.0,
    metric: str = "l2",
    k: int = 10,
) -> Directions:
    """Measure both directions of a ridge regression between two spaces.

    Parameters
    ----------
    pairs : queries of shape (p, e) and objects of shape (p, d), row by row, to learn from
    queries : array of shape (n, e), for example captions of images that are in no pair
    objects : array of shape (m, d), those that are searched
    answers : int array of shape (n,), the row of the object that each query should find
    alpha : λ, in multiples of the mean eigenvalue of what is mapped; two of them: stored side, query side
    metric : "l2", "cosine" or "centred cosine"
        By cosine, everything has length 1 before it is mapped, and is compared by angles at the origin or, if
        centred, at the mean of the pairs, which an index with raw queries does not do.
    k : neighbours that are counted for the skewness, and the most that recall goes to

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> objects = rng.standard_normal((400, 20))
    >>> queries = objects @ rng.standard_normal((20, 30)) + 2 * rng.standard_normal((400, 30))
    >>> pairs, answers = (queries[:300], objects[:300]), np.arange(100)
    >>> both = compare_directions(pairs, queries[300:], objects[300:], answers)
    >>> both.stored.variance_ratio < 1 < both.queries.variance_ratio  # what is mapped shrinks
    True
    """
    check_choice("metric", metric, METRICS)
    xp, prepare = namespace(*pairs, queries, objects), lift if metric == "l2" else _unit
    x, z, queries, objects = (prepare(side) for side in (*pairs, queries, objects))
    answers = xp.astype(answers, xp.int64)
    on_stored, on_queries = alpha if isinstance(alpha, tuple) else (alpha, alpha)
    moved, query_mean = _map_points(x, z, objects, on_stored)
    asked, object_mean = _map_points(z, x, queries, on_queries)
    return Directions(
        _measure(queries, moved, query_mean, answers, metric, k),
        _measure(asked, objects, object_mean, answers, metric, k),
    )


def _map_points(goals: Array, sources: Array, points: Array, alpha: float) -> tuple[Array, Array]:
    """Return points of the space of `sources` in that of `goals`, by ridge over their pairs; and its mean."""
    xp = namespace(goals, sources, points)
    means = (xp.mean(xp.astype(side, xp.float64), axis=0) for side in (sources, goals))
    problem = problem_of_pairs(goals, sources, None, *means)
    W = problem.solve(alpha * problem.mean_eigenvalue())
    moved = (xp.astype(points, xp.float64) - problem.mean) @ W.T + problem.query_mean
    return xp.astype(moved, points.dtype), xp.astype(problem.query_mean, points.dtype)


def _measure(queries: Array, stored: Array, mean: Array, answers: Array, metric: str, k: int) -> Direction:
    """Search among stored objects, in a space whose mean is given."""
    xp, ratio = namespace(queries, stored, answers), variance_ratio(stored, queries)
    if metric == "centred cosine":
        queries, stored = queries - mean, stored - mean
    if metric != "l2":
        queries, stored = _unit(queries), _unit(stored)
    neighbors = nearest(queries, stored, k, return_distance=False)
    right = neighbors == answers[:, None]
    recall = {i: float(xp.mean(lift(xp.any(right[:, :i], axis=1)))) for i in sorted({1, min(5, k), k})}
    return Direction(ratio, skewness(k_occurrence(neighbors, stored.shape[0])), recall)


# z / ‖z‖
def _unit(points: Array) -> Array:
    """Return rows of length 1; a row of zeros stays."""
    xp, points = namespace(points), lift(points)
    lengths = xp.sqrt(xp.vecdot(points, points, axis=-1))
    return points / xp.where(lengths > 0, lengths, 1.0)[:, None]
