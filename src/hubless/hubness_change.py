"""How sure a change of hubness is: intervals over the queries, from neighbour indices alone.

The jackknife: both states are measured again without each query in turn. The bootstrap draws queries twice,
which find their items twice, and so its intervals are too narrow: in simulations, of 95 % intervals for items
that are never returned, 80 to 90 % held the true change, and 99 % of those of the jackknife.
"""

import numpy as np

from .hubness import k_occurrence

NORMAL = 1.96  # standard errors of a 95 % interval
MEASURES = ("skewness", "busiest_share", "antihub_share")

Interval = tuple[float, float]


# θ₂ − θ₁ ± 1.96 √((m − 1) / m · Σ_q (δ_q − mean δ)²), where δ_q = θ₂ − θ₁ measured without query q
def change_intervals(before: np.ndarray, after: np.ndarray, n_objects: int) -> dict[str, Interval]:
    """Return the 95 % interval of the change of each measure of hubness; infinite for a single query.

    Parameters
    ----------
    before, after : int arrays of shape (m, k), row numbers of the neighbours of the same m different queries
    n_objects : int
    """
    m = len(before)
    if m < 2:
        return dict.fromkeys(MEASURES, (-np.inf, np.inf))
    whole, without = (
        then - first
        for first, then in zip(_measures(before, n_objects), _measures(after, n_objects), strict=True)
    )
    errors = NORMAL * np.sqrt((m - 1) * without.var(axis=1))
    return {
        name: (float(change - error), float(change + error))
        for name, change, error in zip(MEASURES, whole, errors, strict=True)
    }


def _measures(neighbors: np.ndarray, n_objects: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the measures over all queries, (3,), and without each one, (3, m)."""
    m, k = neighbors.shape
    counts = np.asarray(k_occurrence(neighbors, n_objects)).astype(np.float64)
    own = counts[neighbors]  # N_k of the neighbours of each query, which lose one without it
    squares, cubes = ((counts**power).sum() for power in (2, 3))
    nobody = np.zeros(1)
    skewness = [
        _skewness(squares - lost_squares, cubes - lost_cubes, left * k / n_objects, n_objects)
        for lost_squares, lost_cubes, left in (
            (nobody, nobody, m),
            ((2 * own - 1).sum(axis=1), (3 * own**2 - 3 * own + 1).sum(axis=1), m - 1),
        )
    ]
    top = np.sort(counts)[::-1][: -(-n_objects // 100)]
    last = top[-1]  # of the objects with this count, some are among the busiest: those may take turns
    spare = (counts == last).sum() - (top == last).sum()
    lost = (own > last).sum(axis=1) + np.maximum(0, (own == last).sum(axis=1) - spare)
    busiest = [top.sum() / (m * k) + nobody, (top.sum() - lost) / ((m - 1) * k)]
    never = (counts == 0).sum()
    antihubs = [never / n_objects + nobody, (never + (own == 1).sum(axis=1)) / n_objects]
    whole, without = zip(skewness, busiest, antihubs, strict=True)
    return np.concatenate(whole), np.array(without)


# (Σ N³ / n − 3 μ Σ N² / n + 2 μ³) / (Σ N² / n − μ²)^{3/2}
def _skewness(squares: np.ndarray, cubes: np.ndarray, mean: float, n: int) -> np.ndarray:
    """Return the skewness of N_k from its sums of powers; 0 where all are equal."""
    variance = squares / n - mean**2
    is_even = variance <= 1e-12 * squares / n
    third = cubes / n - 3 * mean * squares / n + 2 * mean**3
    return np.where(is_even, 0.0, third / np.where(is_even, 1.0, variance) ** 1.5)
