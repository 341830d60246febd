"""Planted hubs: items that were made to be the answer to many queries, told from natural hubs.

A stored item has content of its own, which sets it apart from the queries that it answers: it is as far from
their middle as these are themselves. One that was made from queries has nothing of its own and lies in their
middle. So each hub is compared with what is usual among the items of the same index.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays.inputs import distinct
from ..arrays.library import blocks
from ..chance import Chance, measure_chance
from ..hubness import k_occurrence
from ..neighbors import nearest
from ..neighbors.knn import exhaustive, unit
from .index_items import are_unit

# More robust deviations below the usual than this are suspicious. Chosen on clean data: of natural hubs,
# fewer than 5 in 100 are called so (`python -m benchmarks planted`).
SUSPICIOUS = -4.0
USUAL = 1000  # items, drawn at random, that say what is usual
FEWEST = 32  # items and different queries without which nothing is said
NARROWEST, WIDEST = 4, 256  # nearest queries that an item is compared with
PASSES = 10  # times that items are judged, each time without those found before
NUMBERS = 1 << 24  # numbers that are gathered at once


class JudgedHubs(NamedTuple):
    """The items whose N_k cannot be chance, the busiest first; None where hubs cannot be compared."""

    chance: Chance
    rows: np.ndarray  # (h,), row numbers of items
    occurrence: np.ndarray  # (h,), N_k
    widths: np.ndarray | None = None  # (h,), the number of nearest queries that each is compared by
    apart: np.ndarray | None = None  # (h,), `apartness`
    usual: np.ndarray | None = None  # (h,), its median over the items
    scores: np.ndarray | None = None  # (h,), robust deviations from what is usual
    lengths: np.ndarray | None = None  # (h,), under inner product, the same for the lengths of vectors

    @property
    def suspicious(self) -> np.ndarray | None:
        """Whether each hub is suspicious; bool (h,), or None where that cannot be said."""
        if self.scores is None:
            return None
        is_long = False if self.lengths is None else self.lengths > -SUSPICIOUS
        return np.asarray((self.scores < SUSPICIOUS) | is_long)


# a(z) = ‖z − c‖² / median_q ‖q − c‖², where q are the queries nearest to z and c is their middle: their mean,
# brought to length 1 where only directions count
def apartness(X: np.ndarray, queries: np.ndarray, found: np.ndarray, by_direction: bool) -> np.ndarray:
    """Return how far items are from the middle of their nearest queries, as a share of what these are.

    Parameters
    ----------
    X : array of shape (n, d)
    queries : array of shape (m, d)
    found : int array of shape (n, K), the queries nearest to each item
    by_direction : bool
        All vectors have length 1, and so has the middle.
    """
    apart = np.empty(len(X))
    for rows in blocks(len(X), max(1, NUMBERS // (found.shape[1] * X.shape[1]))):
        near = queries[found[rows]]
        middle = near.mean(axis=1)
        middle = unit(middle) if by_direction else middle
        own = ((X[rows] - middle) ** 2).sum(axis=1)
        theirs = np.median(((near - middle[:, None]) ** 2).sum(axis=2), axis=1)
        apart[rows] = own / np.maximum(theirs, np.finfo(np.float32).tiny)
    return apart


# (log v − med) / (1.4826 · median |log u − med|) with med = median log u: u are the usual values
def robust_scores(values: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Return how many robust standard deviations values are above the usual, by logarithms; 0 without any."""
    tiny = np.finfo(np.float64).tiny
    values, usual = (np.log(np.maximum(numbers, tiny)) for numbers in (values, usual))
    middle = np.median(usual)
    deviation = 1.4826 * np.median(np.abs(usual - middle))
    return np.asarray((values - middle) / deviation if deviation > 0 else np.zeros_like(values))


# K = the largest power of 2 that is at most N_k and m / 4, from 4 to 256
def compared_queries(occurrence: np.ndarray, n_queries: int) -> np.ndarray:
    """Return with how many of its nearest queries each hub is compared; int (h,)."""
    most = min(WIDEST, max(NARROWEST, n_queries // 4))
    return 2 ** np.floor(np.log2(np.clip(occurrence, NARROWEST, most))).astype(np.int64)


# N_k(i) ≥ t, with t of `hub_threshold`; an object that is no answer to itself has n − 1 queries and rivals
def find_hubs(neighbors: np.ndarray, n_objects: int, *, are_queries: bool = False) -> JudgedHubs:
    """Find the objects whose N_k cannot be chance.

    With `are_queries`, the objects themselves were the queries, each without itself.
    """
    m, k = neighbors.shape
    chance = measure_chance(m - are_queries, n_objects - are_queries, k)
    counts = k_occurrence(neighbors, n_objects)
    rows = np.argsort(-counts, kind="stable")[: int((counts >= chance.threshold).sum())]
    return JudgedHubs(chance, rows, counts[rows])


def judge_hubs(
    X: np.ndarray, queries: np.ndarray, neighbors: np.ndarray, metric: str, *, random_state: int = 0
) -> JudgedHubs:
    """Find the hubs among items and judge each: natural or suspicious.

    Parameters
    ----------
    X : array of shape (n, d), the items
    queries : array of shape (m, d); no two should be equal (`distinct`)
    neighbors : int array of shape (m, k), the answers to the queries
    metric : "l2", "cosine" or "ip"
    random_state : int
        Seed of the items that say what is usual.
    """
    n, m, found = len(X), len(queries), find_hubs(neighbors, len(X))
    if min(n, m) < FEWEST:
        return found
    rows = found.rows
    is_unit = are_unit(X)
    by_direction = metric != "l2" or is_unit
    sample = np.random.default_rng(random_state).choice(n, min(n, USUAL), replace=False)
    hubs, others, asked = (
        unit(V) if by_direction else V
        for V in (part.astype(np.result_type(X, np.float32)) for part in (X[rows], X[sample], queries))
    )
    widths = compared_queries(found.occurrence, m)
    apart, usual, scores = _compare(hubs, others, asked, widths, by_direction)
    lengths = None
    if metric == "ip" and not is_unit:
        norms = np.linalg.norm(X, axis=1)
        lengths = robust_scores(norms[rows], norms)
    return JudgedHubs(*found[:3], widths, apart, usual, scores, lengths)


def _compare(
    hubs: np.ndarray, others: np.ndarray, queries: np.ndarray, widths: np.ndarray, by_direction: bool
) -> np.ndarray:
    """Return the apartness of hubs, its median over other items, and the score; shape (3, hubs).

    Each hub is compared by as many nearest queries as `widths` says, and the others by the same number.
    """
    compared = np.zeros((3, len(hubs)))
    if not len(hubs):
        return compared
    near_hubs, near_others = (
        nearest(part, queries, int(widths.max()), return_distance=False) for part in (hubs, others)
    )
    for width in np.unique(widths):
        same = widths == width
        apart = apartness(hubs[same], queries, near_hubs[same, :width], by_direction)
        usual = apartness(others, queries, near_others[:, :width], by_direction)
        compared[:, same] = apart, np.full_like(apart, np.median(usual)), robust_scores(apart, usual)
    return compared


def find_planted(
    X: np.ndarray, queries: np.ndarray, metric: str, *, k: int = 10, random_state: int = 0
) -> np.ndarray:
    """Return the row numbers of suspicious items; repeated queries count once.

    Where some are found, the others are judged again without them, as copies may have been in their shadow.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.repair import find_planted
    >>> rng = np.random.default_rng(0)
    >>> queries, items = rng.standard_normal((200, 30)), rng.standard_normal((500, 30))
    >>> items[7] = queries.mean(axis=0)  # the middle of all queries
    >>> find_planted(items, queries, "l2").tolist()
    [7]
    """
    queries = queries[distinct(queries)]
    found, left = [np.empty(0, dtype=np.int64)], np.arange(len(X))
    for _ in range(PASSES):
        items = X[left]
        judged = judge_hubs(
            items, queries, exhaustive(queries, items, k, metric), metric, random_state=random_state
        )
        suspicious = judged.rows[:0] if judged.suspicious is None else judged.rows[judged.suspicious]
        if not len(suspicious):
            break
        found.append(left[suspicious])
        left = np.delete(left, suspicious)
    return np.concatenate(found)


# --- who was captured ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Captured:
    """The queries that have certain items among their k answers, before and after a repair."""

    k: int
    n_queries: int
    items: list[dict[str, Any]]  # row, and for "before" and "after" the row numbers of the queries
    before: float  # share of queries with at least one of the items among their answers
    after: float

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return vars(self)

    def __str__(self) -> str:
        return (
            f"{len(self.items):,} suspicious items are among the {self.k} answers of {self.before:.1%} of "
            f"{self.n_queries:,} queries before, and of {self.after:.1%} after."
        )


def captured(
    before: np.ndarray,
    after: np.ndarray,
    queries: np.ndarray,
    rows: np.ndarray,
    metric: str,
    *,
    k: int = 10,
    metric_after: str | None = None,
) -> Captured:
    """List the queries that items capture before and after a repair.

    Parameters
    ----------
    before, after : arrays of shape (n, d), the items
        `after` may have more columns; queries have zeros there.
    queries : array of shape (m, d)
    rows : int array, row numbers of the items to look at, such as those of `find_planted`
    metric : "l2", "cosine" or "ip"
    k : int
        Answers per query.
    metric_after : str, optional
        The metric of `after`, where it is another one.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless.repair import captured
    >>> queries = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> before, after = np.array([[0.0, 0.9], [0.9, 0.0]]), np.array([[9.0, 9.0], [0.9, 0.0]])
    >>> changed = captured(before, after, queries, rows=[0], metric="l2", k=1)
    >>> changed.before, changed.after  # item 0 was the answer to one of two queries
    (0.5, 0.0)
    """
    more = after.shape[1] - queries.shape[1]
    answers = (
        exhaustive(queries, before, k, metric),
        exhaustive(np.pad(queries, ((0, 0), (0, more))), after, k, metric_after or metric),
    )
    rows = np.asarray(rows, dtype=np.int64)
    items = [
        {"row": int(row)}
        | {
            time: np.flatnonzero((found == row).any(axis=1)).tolist()
            for time, found in zip(("before", "after"), answers, strict=True)
        }
        for row in rows
    ]
    shares = (float(np.isin(found, rows).any(axis=1).mean()) for found in answers)
    return Captured(int(answers[0].shape[1]), len(queries), items, *shares)
