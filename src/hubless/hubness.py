"""Hubness: how unevenly the objects occur among the neighbours of queries, from neighbour indices alone.

`neighbors` is a matrix of row numbers of objects, one row per query: the indices of `nearest`; −1 means none.
N_k(i) is the number of queries that have object i among their k neighbours. Where the
queries are the objects, search with `exclude_self`, or each object counts as its own neighbour.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from .arrays import Array, convert, count, lift, namespace, to_numpy
from .arrays.devices import dispatched
from .arrays.types import ArrayLike, ArrayOrNone
from .chance import hub_threshold
from .neighbors import check_neighbors


# N_k(i) = #{queries x : object i is among the k nearest neighbours of x}
def k_occurrence(neighbors: Array, n_objects: int) -> Array:
    """Count N_k of each object; integers of shape (n_objects,).

    Examples
    --------
    >>> import numpy as np
    >>> k_occurrence(np.array([[0, 1], [0, 2], [0, 1]]), 4).tolist()
    [3, 2, 1, 0]
    """
    neighbors = check_neighbors(neighbors, n_objects)
    return count(namespace(neighbors).reshape(neighbors, (-1,)), n_objects)


# BN_k(i) = #{queries x : i is among the neighbours of x, and the labels of i and x differ}
def bad_k_occurrence(neighbors: Array, object_labels: ArrayLike, query_labels: ArrayLike) -> Array:
    """Count the bad N_k of each object: its occurrences among the neighbours of queries of another class.

    Examples
    --------
    >>> import numpy as np
    >>> neighbors = np.array([[0, 1], [0, 2], [0, 1]])
    >>> bad_k_occurrence(neighbors, ["a", "b", "a"], ["a", "b", "b"]).tolist()  # 0 is in two answers to a "b"
    [2, 1, 1]
    """
    objects, queries = to_numpy(object_labels), to_numpy(query_labels)
    neighbors = check_neighbors(neighbors, objects.shape[0])
    xp, host = namespace(neighbors), to_numpy(neighbors)
    if host.shape[0] != queries.shape[0]:
        raise ValueError(
            f"one label per query is needed; got {len(queries)} labels for {host.shape[0]} queries."
        )
    bad = convert(objects[host] != queries[:, None], neighbors)
    return count(xp.reshape(xp.where(bad, neighbors, -1), (-1,)), objects.shape[0])


# (Σ_i (N_k(i) − E[N_k])³ / n) / Var[N_k]^{3/2}   (Sec. 5, "N_10 skewness")
def skewness(occurrence: Array) -> float:
    """Skewness of N_k. Near 0: no hubs; above 1: some; above 3: a few objects are neighbours of very many.

    Examples
    --------
    >>> import numpy as np
    >>> skewness(np.array([1, 1, 1, 5])) > 1 > skewness(np.array([1, 2, 3])) == 0
    True
    """
    xp, centred = _centre(occurrence)
    variance = float(xp.mean(centred**2))
    return float(xp.mean(centred**3)) / variance**1.5 if variance > 0 else 0.0


# #{i : N_k(i) = 0} / n
def antihub_share(occurrence: Array) -> float:
    """Share of objects that are nobody's neighbour (anti-hubs): stored, but never found.

    Examples
    --------
    >>> import numpy as np
    >>> antihub_share(np.array([3, 2, 1, 0]))
    0.25
    """
    xp = namespace(occurrence)
    return float(xp.mean(lift(occurrence == 0)))


# max_i N_k(i)
def largest_occurrence(occurrence: Array) -> int:
    """N_k of the worst hub: the number of queries in whose neighbours it occurs.

    Examples
    --------
    >>> import numpy as np
    >>> largest_occurrence(np.array([3, 2, 1, 0]))
    3
    """
    return int(namespace(occurrence).max(occurrence))


# ½ Σ_i |N_k(i) − E[N_k]| / Σ_i N_k(i)
def robin_hood(occurrence: Array) -> float:
    """Share of all neighbour slots that would have to change hands for all objects to have equally many.

    Examples
    --------
    >>> import numpy as np
    >>> robin_hood(np.array([4, 0, 2, 2]))  # the first gives 2 of 8 to the second
    0.25
    """
    xp, centred = _centre(occurrence)
    return 0.5 * _share(xp.abs(centred), occurrence)


# #{i : N_k(i) ≥ t}, with t of `chance.hub_threshold`
def n_hubs(occurrence: Array, threshold: int) -> int:
    """Number of hubs: objects that are in so many answers as chance hardly ever gives to any object.

    Examples
    --------
    >>> import numpy as np
    >>> n_hubs(np.array([9, 1, 7, 0]), threshold=5)
    2
    """
    return int(namespace(occurrence).sum(lift(occurrence >= threshold)))


# Σ_{i : N_k(i) ≥ t} N_k(i) / Σ_i N_k(i)
def hub_occurrence(occurrence: Array, threshold: int) -> float:
    """Share of all neighbour slots taken by hubs.

    Examples
    --------
    >>> import numpy as np
    >>> hub_occurrence(np.array([9, 1, 6, 4]), threshold=5)  # 15 of 20
    0.75
    """
    xp = namespace(occurrence)
    return _share(xp.where(occurrence >= threshold, occurrence, 0), occurrence)


# Σ_{i among the ⌈n / 100⌉ objects of the largest N_k} N_k(i) / Σ_i N_k(i)
def busiest_share(occurrence: Array) -> float:
    """Share of all neighbour slots taken by the busiest 1 % of the objects (one at least).

    Examples
    --------
    >>> import numpy as np
    >>> busiest_share(np.array([3, 2, 1, 0]))  # one object, since 1 % of 4 is less
    0.5
    """
    busiest = namespace(occurrence).sort(occurrence, descending=True)[: -(-occurrence.shape[0] // 100)]
    return _share(busiest, occurrence)


# Σ_i BN_k(i) / Σ_i N_k(i)
def bad_share(bad_occurrence: Array, occurrence: Array) -> float:
    """Share of all neighbour slots whose object is of another class than the query.

    Examples
    --------
    >>> import numpy as np
    >>> bad_share(np.array([2, 1, 0]), np.array([3, 3, 2]))
    0.375
    """
    return _share(bad_occurrence, occurrence)


def _share(slots: Array, occurrence: Array) -> float:
    xp = namespace(slots, occurrence)
    total = float(xp.sum(occurrence))
    return float(xp.sum(slots)) / total if total else 0.0


def _centre(occurrence: Array) -> tuple[Any, Array]:
    xp = namespace(occurrence)
    values = xp.astype(occurrence, xp.float64)
    return xp, values - xp.mean(values)


COUNT_MEASURES = (skewness, antihub_share, largest_occurrence, robin_hood, busiest_share)
HUB_MEASURES = (n_hubs, hub_occurrence)
MEASURES = (*COUNT_MEASURES, *HUB_MEASURES, bad_share)


@dataclass(frozen=True)
class Hubness:
    """The measures of hubness of one set of neighbours; printing it says how to read each number.

    Examples
    --------
    >>> import numpy as np
    >>> hubness = measure_hubness(np.array([[0], [0], [0], [2]]), n_objects=4)
    >>> hubness.k, hubness.largest_occurrence, hubness.occurrence.tolist()
    (1, 3, [3, 0, 1, 0])
    """

    k: int
    n_queries: int
    n_objects: int
    skewness: float
    antihub_share: float
    largest_occurrence: int
    robin_hood: float
    busiest_share: float
    n_hubs: int
    hub_occurrence: float
    bad_share: float | None  # None without labels
    occurrence: Array = field(repr=False, compare=False)  # N_k of each object
    bad_occurrence: Array | None = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers, without the counts of each object."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.repr}

    def __str__(self) -> str:
        lines = [f"N_{self.k} of {self.n_objects:,} objects over {self.n_queries:,} queries"]
        for measure in MEASURES:
            value = getattr(self, measure.__name__)
            if value is not None:
                shown = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
                words = str(measure.__doc__).partition("\n")[0]
                lines.append(f"{measure.__name__:<19}{shown:>9}   {words}")
        return "\n".join(lines)


@dispatched
def measure_hubness(
    neighbors: ArrayLike,
    n_objects: int,
    *,
    object_labels: ArrayOrNone = None,
    query_labels: ArrayOrNone = None,
    are_queries: bool = False,
) -> Hubness:
    """Compute every measure of hubness at once.

    Parameters
    ----------
    neighbors : int array of shape (n_queries, k)
    n_objects : int
        Number of objects that were searched, including those that are nobody's neighbour.
    object_labels, query_labels : sequences of labels, optional
        With both, "bad" occurrences are counted too.
    are_queries : bool
        Whether the objects themselves were the queries, each without itself: by chance, an object then has
        one query less, and a query one object less.

    Returns
    -------
    Hubness
        The numbers as attributes; printing it explains each of them.

    Examples
    --------
    >>> import numpy as np
    >>> report = measure_hubness(np.array([[0], [0], [0], [2]]), n_objects=4)
    >>> report.largest_occurrence, report.antihub_share
    (3, 0.5)
    """
    found = check_neighbors(neighbors, n_objects)
    bad = None
    if (object_labels is None) != (query_labels is None):
        raise ValueError("bad occurrences need object_labels and query_labels; got one of the two.")
    if object_labels is not None and query_labels is not None:
        object_labels = to_numpy(object_labels)
        if len(object_labels) != n_objects:
            raise ValueError(
                f"one label per object is needed; got {len(object_labels)} for {n_objects} objects."
            )
        bad = bad_k_occurrence(found, object_labels, query_labels)
    n_queries, k = map(int, found.shape)
    return measure_occurrence(k_occurrence(found, n_objects), bad, k, n_queries, are_queries)


def measure_occurrence(
    occurrence: Array, bad: Array | None, k: int, n_queries: int, are_queries: bool = False
) -> Hubness:
    """Compute every measure from N_k, and from the bad N_k where they are known."""
    n = int(occurrence.shape[0])
    threshold = hub_threshold(n_queries - are_queries, n - are_queries, k) if n_queries > are_queries else 1
    measured: dict[str, Any] = {measure.__name__: measure(occurrence) for measure in COUNT_MEASURES}
    measured |= {measure.__name__: measure(occurrence, threshold) for measure in HUB_MEASURES}
    return Hubness(
        k=k,
        n_queries=n_queries,
        n_objects=n,
        **measured,
        bad_share=None if bad is None else bad_share(bad, occurrence),
        occurrence=occurrence,
        bad_occurrence=bad,
    )
