"""Hubness by chance: what N_k would be if every query drew its k answers at random, all objects alike.

N_k(i) of one object is then binomial, N_k(i) ~ Binomial(m, k / n), with m queries and n objects. Different
queries draw independently, so count a repeated query once.
"""

from bisect import bisect_left
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import betainc

from .arrays.inputs import check_count

FALSE_ALARMS = 0.05  # share of collections without hubs in which some object is called a hub
NEVER = 1e-12  # a rate so small that what is rarer can be left out of a sum


# P(N_k ≥ t) = Σ_{j ≥ t} C(m, j) pʲ (1 − p)^{m − j} = I_p(t, m − t + 1) with p = k / n
def chance_of_occurrence(least: int, n_queries: int, n_objects: int, k: int) -> float:
    """Return the probability that chance puts one object into at least so many answers.

    Examples
    --------
    >>> chance_of_occurrence(1, n_queries=2, n_objects=2, k=1)  # heads once in two tosses
    0.75
    """
    if least <= 0:
        return 1.0
    if least > n_queries:
        return 0.0
    return float(betainc(least, n_queries - least + 1, k / n_objects))


# min {t : n P(N_k ≥ t) ≤ α}
def hub_threshold(n_queries: int, n_objects: int, k: int, false_alarms: float = FALSE_ALARMS) -> int:
    """Return the N_k from which an object is a hub: one that chance hardly ever gives to any object.

    Without hubs, at most a share α of all collections has such an object (Bonferroni over the objects).

    Examples
    --------
    >>> hub_threshold(n_queries=300, n_objects=5000, k=10)
    7
    """
    if not 0 < false_alarms < 1:
        raise ValueError(f"false_alarms must be above 0 and below 1; got {false_alarms}.")

    def is_rare(least: int) -> bool:
        return n_objects * chance_of_occurrence(least, n_queries, n_objects, k) <= false_alarms

    return bisect_left(range(n_queries + 1), True, key=is_rare)


# (1 − 2p) / √(m p (1 − p))
def chance_skewness(n_queries: int, n_objects: int, k: int) -> float:
    """Return the skewness of N_k by chance; 0 where every object is in every answer.

    Examples
    --------
    >>> chance_skewness(n_queries=100, n_objects=2, k=1)  # as many heads as tails
    0.0
    """
    p = k / n_objects
    variance = n_queries * p * (1 - p)
    return (1 - 2 * p) / variance**0.5 if variance > 0 else 0.0


# (1 − p)^m
def chance_antihub_share(n_queries: int, n_objects: int, k: int) -> float:
    """Return the share of objects that chance puts into no answer.

    Examples
    --------
    >>> chance_antihub_share(n_queries=2, n_objects=2, k=1)  # ½ · ½
    0.25
    """
    return float((1 - k / n_objects) ** n_queries)


# 1 − m k / n, or 0: m queries have m k places, and there are n objects
def least_antihub_share(n_queries: int, n_objects: int, k: int) -> float:
    """Return the share of objects that are in no answer at the least, whatever the answers are.

    Examples
    --------
    >>> least_antihub_share(n_queries=3, n_objects=10, k=2)  # 6 places for 10 objects
    0.4
    """
    return max(0.0, 1 - n_queries * k / n_objects)


# Σ_{t ≥ 1} E min(b, C_t) / (m k), b = ⌈n / 100⌉: C_t ~ Binomial(n, P(N_k ≥ t)) objects reach t, as if the
# objects were independent; and E min(b, C) = b P(C ≥ b) + n p P(C' < b − 1) with C' ~ Binomial(n − 1, p)
def chance_busiest_share(n_queries: int, n_objects: int, k: int) -> float:
    """Return the share of all places that the busiest 1 % of the objects (one at least) take by chance.

    Examples
    --------
    >>> round(chance_busiest_share(n_queries=300, n_objects=5000, k=10), 3)
    0.056
    """
    n, busiest = n_objects, -(-n_objects // 100)
    p = _tails(n_queries, n, k)
    expected = busiest * _tail(busiest, n, p) + n * p * (1 - _tail(busiest - 1, n - 1, p))
    return min(1.0, float(expected.sum()) / (n_queries * k))


# Σ_{t ≥ 1} P(N_k ≥ t) P(N_k < t) / E[N_k], which is E|N − N'| / (2 E[N]) of two independent objects
def chance_gini(n_queries: int, n_objects: int, k: int) -> float:
    """Return the Gini coefficient of N_k by chance: 0 if all objects are found equally often.

    Examples
    --------
    >>> round(chance_gini(n_queries=300, n_objects=5000, k=10), 3)
    0.635
    """
    p = _tails(n_queries, n_objects, k)
    return float((p * (1 - p)).sum()) / (n_queries * k / n_objects)


def _tails(n_queries: int, n_objects: int, k: int) -> np.ndarray:
    """Return P(N_k ≥ t) for t = 1, 2, … as long as it matters."""
    last = hub_threshold(n_queries, n_objects, k, NEVER)
    return _tail(np.arange(1, last + 1), n_queries, k / n_objects)


def _tail(least: Any, trials: int, p: Any) -> np.ndarray:
    """Return P(C ≥ least) of C ~ Binomial(trials, p)."""
    inside = betainc(np.clip(least, 1, trials), np.maximum(trials - least, 0) + 1, p)
    return np.where(np.asarray(least) <= 0, 1.0, np.where(np.asarray(least) > trials, 0.0, inside))


# min {t : P(N_k ≤ t)ⁿ ≥ ½}, as if the objects were independent
def chance_largest(n_queries: int, n_objects: int, k: int) -> int:
    """Return the N_k of the busiest object by chance: its median over collections.

    Examples
    --------
    >>> chance_largest(n_queries=300, n_objects=5000, k=10)
    5
    """

    def is_usual(most: int) -> bool:
        above = chance_of_occurrence(most + 1, n_queries, n_objects, k)
        return (1 - above) ** n_objects >= 0.5

    return bisect_left(range(n_queries), True, key=is_usual)


@dataclass(frozen=True)
class Chance:
    """What chance alone gives, to be read beside the measures of `Hubness` with the same names.

    Examples
    --------
    >>> chance = measure_chance(n_queries=300, n_objects=5000, k=10)
    >>> sorted(chance.as_dict()) == sorted(vars(chance))
    True
    """

    skewness: float
    antihub_share: float
    least_antihub_share: float  # whatever the answers are, not only by chance
    busiest_share: float
    largest_occurrence: int
    threshold: int  # an object is a hub from this N_k on
    false_alarms: float  # at this rate

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        return asdict(self)


def measure_chance(n_queries: int, n_objects: int, k: int, *, false_alarms: float = FALSE_ALARMS) -> Chance:
    """Compute what chance alone gives for the measures of hubness.

    Parameters
    ----------
    n_queries, n_objects : int
    k : int
        Answers per query, at most n_objects.
    false_alarms : float
        Rate at which a collection without hubs has an object of N_k ≥ `threshold`.

    Examples
    --------
    >>> chance = measure_chance(n_queries=300, n_objects=5000, k=10)
    >>> round(chance.antihub_share, 3), chance.largest_occurrence, chance.threshold
    (0.548, 5, 7)
    """
    for name, number in (("n_queries", n_queries), ("n_objects", n_objects), ("k", k)):
        check_count(name, number)
    if k > n_objects:
        raise ValueError(f"an answer has at most all {n_objects} objects; got k={k}.")
    of = (n_queries, n_objects, k)
    return Chance(
        chance_skewness(*of),
        chance_antihub_share(*of),
        least_antihub_share(*of),
        chance_busiest_share(*of),
        chance_largest(*of),
        hub_threshold(*of, false_alarms),
        false_alarms,
    )
