"""How familiar a query is: unlike anything stored, or like the held-out queries of known classes.

Three numbers are larger for familiar queries. Each is compared with those of held-out queries, Fisher's
method joins the three shares, and the sum is compared with that of other held-out queries, which gives a
p-value of conformal prediction.
"""

from typing import NamedTuple

import numpy as np

from ..arrays import Array, convert, namespace, to_numpy
from .evidence import Evidence

TAIL = 0.05  # of the known numbers
FEWEST_KNOWN = 4  # held-out queries: two to compare numbers with, two to compare sums with


class Known(NamedTuple):
    """What held-out queries of known classes look like; each column ascending."""

    numbers: np.ndarray  # (h, 3), of one half of the queries
    sums: np.ndarray  # (g,), of the other half


# Σ_c p_c log p_c,   max_i cos(x − μ, z'_i − μ),   −min_i ‖x − z'_i‖²
def familiar_numbers(evidence: Evidence, p: Array) -> np.ndarray:
    """Return how sure the answer is, and how near the stored objects are, by direction and by distance."""
    xp = namespace(p)
    p = xp.astype(p, xp.float64)
    certainty = xp.sum(p * xp.log(xp.where(p > 0, p, 1.0)), axis=1)
    return np.stack([*map(to_numpy, (certainty, evidence.cosine, -evidence.nearest))], axis=1)


def learn_known(numbers: np.ndarray) -> Known | None:
    """Return what the numbers of held-out queries teach; None where queries are too few."""
    if len(numbers) < FEWEST_KNOWN:
        return None
    columns = np.sort(numbers[::2], axis=0)
    return Known(columns, np.sort(fisher_sums(numbers[1::2], columns)))


# (1 + #{i: s_i ≤ s}) / (h + 1)
def p_values(numbers: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return the share of known numbers, and of this one, that are not above it; in (0, 1]."""
    return (1 + np.searchsorted(ascending, numbers, side="right")) / (len(ascending) + 1)


# log p, and below the lowest twentieth, t, as if that fell off exponentially: log p(t) − (t − s) / β with the
# mean β of t − s_i over it. Else one number, however strange, could not outweigh two ordinary ones.
def log_p_values(numbers: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return log p of numbers among known ones, also far below all of these."""
    n_tail = min(max(1, round(TAIL * len(ascending))), len(ascending) - 1)
    edge = ascending[n_tail]
    spread = np.mean(edge - ascending[:n_tail]) or abs(edge) or 1.0
    beyond = np.maximum(edge - numbers, 0.0) / spread
    tail = np.log((n_tail + 1) / (len(ascending) + 1)) - beyond
    return np.where(numbers < edge, tail, np.log(p_values(numbers, ascending)))


# Σ_j log p_j  (Fisher's method)
def fisher_sums(numbers: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the joint evidence of the numbers, lower for unfamiliar queries; shapes (m, 3) → (m,)."""
    return np.sum([log_p_values(*pair) for pair in zip(numbers.T, columns.T, strict=True)], axis=0)


# p = (1 + #{i: S_i ≤ S}) / (g + 1). If the g held-out queries and the new one are exchangeable, the rank of S
# among the g + 1 is uniform up to ties, so P(p ≤ a) ≤ a for every a: split conformal prediction. S is a fixed
# function here, as the columns that it compares with come from the other half.
def familiarity_of(evidence: Evidence, p: Array, known: Known, like: Array) -> Array:
    """Return how familiar queries are, from 1 / (g + 1) to 1, in the library and precision of `like`."""
    sums = fisher_sums(familiar_numbers(evidence, p), known.numbers)
    return namespace(like).astype(convert(p_values(sums, known.sums), like), like.dtype)
