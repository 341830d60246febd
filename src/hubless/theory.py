"""The paper's explanation of hubs, as measurements (Sec. 4).

Proposition 1: of two stored objects, the one nearer the mean is nearer to an average query, by an amount
that grows with the variance of the stored objects. Ridge regression shrinks that variance.
"""

from typing import NamedTuple

import numpy as np

from .arrays import Array, namespace


# Δ = γ s² √(2d)   (Eq. 8, Proposition 1)
def centrality_bias(gamma: float, s: float, d: int) -> float:
    """Return the expected difference of squared distances from a query to two objects z ~ N(0, s²I).

    Their squared norms in d dimensions are γ standard deviations apart. It does not depend on the spread of
    the queries: for given queries, stored objects of smaller variance make fewer hubs.
    """
    return float(gamma * s**2 * np.sqrt(2 * d))


class SimulatedMean(NamedTuple):
    """A mean over simulated queries and its standard error."""

    mean: float
    standard_error: float


# Δ = E[‖x − z₂‖²] − E[‖x − z₁‖²] with ‖z₂‖² − ‖z₁‖² = γσ and σ = √Var[‖z‖²]
def simulate_centrality_bias(
    gamma: float, s: float, d: int, *, query_scale: float = 1.0, n_queries: int = 10_000, seed: int = 0
) -> SimulatedMean:
    """Measure Δ with queries x ~ N(0, query_scale² I) and σ estimated from drawn objects, without Eq. 8."""
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
    """Return the total variance of moved objects over that of queries: below 1, they shrank (Sec. 4.2)."""
    xp = namespace(moved, queries)
    spread = [float(xp.sum(xp.var(xp.astype(points, xp.float64), axis=0))) for points in (moved, queries)]
    return spread[0] / spread[1]
