"""Before and after: what moving the stored objects changes for queries of known answers, by exact search."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .hubness import Hubness, measure_hubness
from .neighbors import nearest
from .retrieval import MEASURES, Relevant, gains
from .stores.rows import exhaustive
from .threads import blocks
from .vote import vote, votes_of

HUBS = 10  # k of N_k
NORMAL = 1.96  # standard errors of a 95 % interval


class Pair(NamedTuple):
    """The same thing before and after."""

    before: Any
    after: Any


@dataclass(frozen=True)
class Figure:
    """One measure before and after, over some queries."""

    measure: str
    part: str  # "all", "seen" or "unseen" items
    n: int  # queries
    before: float
    after: float
    low: float  # 95 % interval of after − before
    high: float


# after − before ± 1.96 s / √n, s the standard deviation of the differences query by query
def figure(measure: str, part: str, before: np.ndarray, after: np.ndarray) -> Figure:
    """A figure from one number per query before and after."""
    apart = after - before
    error = float(NORMAL * apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else float("inf")
    mean = float(apart.mean())
    return Figure(
        measure, part, len(apart), float(before.mean()), float(after.mean()), mean - error, mean + error
    )


@dataclass(frozen=True)
class Asked:
    """What was asked and found: all that a page is drawn from. n objects, m queries, h = 10 or n if less."""

    stored: Pair  # (n, d); after, (n, d + 1) for a mover that has one more column
    queries: np.ndarray  # (m, d)
    found: Pair  # (m, h), row numbers of objects, nearest first
    wrong: Pair  # (m, h), whether that object is a wrong answer
    right: Pair  # (m,), whether the query is answered
    answer: Pair | None  # (m,), the class that was voted for; None where there are no classes
    labels: np.ndarray | None  # (n,), texts as objects: one may be long
    truth: np.ndarray | None  # (m,), the same
    ks: Pair  # neighbours that vote, or answers that count
    metric: str  # "l2", "cosine" (of unit vectors) or "ip"
    seconds: float = 0.0  # that the searches took


@dataclass(frozen=True)
class Evaluation:
    """What a model changes; print it."""

    figures: list[Figure]  # the first one decides
    fixed: int  # queries answered now and not before
    broken: int  # queries answered before and not now
    answered: str  # what "answered" means
    hubness: tuple[Hubness, Hubness]
    notes: list[str]
    asked: Asked = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, without what was asked and found."""
        return {
            "figures": [asdict(entry) for entry in self.figures],
            "fixed": self.fixed,
            "broken": self.broken,
            "answered": self.answered,
            "hubness": {
                name: found.as_dict() for name, found in zip(("before", "after"), self.hubness, strict=True)
            },
            "notes": self.notes,
        }

    def __str__(self) -> str:
        lines = [f"{'measure':<14}{'items':<8}{'queries':>8}{'before':>9}{'after':>9}   change (95 %)"]
        for entry in self.figures:
            span = f"{entry.low:+.3f} to {entry.high:+.3f}" if entry.n > 1 else "one query: no interval"
            change = f"{entry.after - entry.before:+.3f}  ({span})"
            head = f"{entry.measure:<14}{entry.part:<8}{entry.n:>8,}"
            lines.append(f"{head}{entry.before:>9.3f}{entry.after:>9.3f}   {change}")
        before, after = self.hubness
        lines += [
            f"fixed {self.fixed:,}, broken {self.broken:,} ({self.answered})",
            f"hubs: N{before.k} skewness {before.skewness:.2f} → {after.skewness:.2f}, the worst in "
            f"{before.largest_occurrence:,} → {after.largest_occurrence:,} of {before.n_queries:,} answers, "
            f"never returned {before.antihub_share:.0%} → {after.antihub_share:.0%}",
        ]
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


def evaluate_classes(
    stored: Pair,
    queries: Pair,
    labels: np.ndarray,
    truth: np.ndarray,
    ks: Pair,
    *,
    metric: str = "l2",
    by_distance: bool = False,
    weights: np.ndarray | None = None,
    notes: Sequence[str] = (),
) -> Evaluation:
    """Accuracy of the vote of the k nearest, and the share of neighbours of the right class.

    Parameters
    ----------
    stored : pair of arrays (n, d): the objects before and after they are moved
    queries : pair of arrays (m, d): the same queries, with one more column where moved objects have one
    labels, truth : arrays of texts, (n,) and (m,)
    ks : pair of int: neighbours that vote; each state may have the number that is best for it
    by_distance, weights : whether nearer votes count more, and how much each object's does, (n,)
    """
    wide, ks = min(HUBS, len(labels)), Pair(*(min(k, len(labels)) for k in ks))
    started, n = perf_counter(), len(labels)
    names, every = np.unique(np.concatenate([labels, truth]).astype(object), return_inverse=True)
    codes, known = every[:n], every[n:]  # numbers: a name may be as long as a book
    states = zip(queries, stored, ks, strict=True)
    searched = [_search(x, z, max(k, wide), metric) for x, z, k in states]
    found = [rows for _, rows in searched]
    votes = [
        votes_of(rows[:, :k], distances[:, :k] if by_distance else None, codes, weights)
        for (distances, rows), k in zip(searched, ks, strict=True)
    ]
    given = [vote(*own) for own in votes]
    seconds = perf_counter() - started
    right = Pair(*(own == known for own in given))
    wrong = Pair(*(codes[rows[:, :wide]] != known[:, None] for rows in found))
    figures = [
        figure("accuracy", "all", *(own.astype(float) for own in right)),
        figure(f"precision@{wide}", "all", *((~own).mean(axis=1) for own in wrong)),
    ]
    near = Pair(*(np.ascontiguousarray(rows[:, :wide]) for rows in found))
    hubness = [measure_hubness(rows, n, object_labels=codes, query_labels=known) for rows in near]
    answer = Pair(*(names[own] for own in given))
    asked = Asked(
        *(stored, queries.before, near, wrong, right, answer, names[codes], names[known], ks, metric, seconds)
    )
    strange = names[np.setdiff1d(known, codes)].tolist()
    told = [f"{len(strange)} classes of queries have no item: {', '.join(strange[:5])}"] if strange else []
    return _evaluation(figures, f"the class that {_voters(ks)}", hubness, [*told, *notes], asked)


def _voters(ks: Pair) -> str:
    if ks.before != ks.after:
        return f"{ks.before} nearest vote for before, {ks.after} after"
    return "the nearest has" if ks.after == 1 else f"{ks.after} neighbours vote for"


def evaluate_relevance(
    stored: Pair,
    queries: Pair,
    relevant: Relevant,
    k: int,
    *,
    parts: Mapping[str, np.ndarray] | None = None,
    metric: str = "l2",
    notes: Sequence[str] = (),
) -> Evaluation:
    """nDCG@k, MRR, hit rate and recall@k of queries whose relevant objects are known, also of parts of them.

    Parameters
    ----------
    relevant : for each query the row numbers of its relevant objects, with what each is worth
    parts : masks (m,) of queries by name; "all" are always measured
    """
    n, started = len(stored.before), perf_counter()
    k, wide = min(k, n), min(HUBS, n)
    found = [_search(x, z, max(k, wide), metric)[1] for x, z in zip(queries, stored, strict=True)]
    seconds = perf_counter() - started
    worth = Pair(*(gains(rows, relevant) for rows in found))
    figures = []
    for name, measure in MEASURES.items():
        scores = [measure(own[:, :k], relevant) for own in worth]
        for part, mask in {"all": np.ones(len(relevant), dtype=bool), **(parts or {})}.items():
            if mask.any():
                figures.append(figure(f"{name}@{k}", part, scores[0][mask], scores[1][mask]))
    right = Pair(*(np.asarray((own[:, :k] > 0).any(axis=1)) for own in worth))
    wrong = Pair(*(own[:, :wide] <= 0 for own in worth))
    near = Pair(*(np.ascontiguousarray(rows[:, :wide]) for rows in found))
    hubness = [measure_hubness(rows, n) for rows in near]
    asked = Asked(stored, queries.before, near, wrong, right, None, None, None, Pair(k, k), metric, seconds)
    return _evaluation(figures, f"a relevant item among the first {k}", hubness, notes, asked)


def winners(labels: np.ndarray) -> np.ndarray:
    """The most frequent label of each row; of equally many, the one whose nearest comes first."""
    found = []
    for row in labels:
        names, first, counts = np.unique(row, return_index=True, return_counts=True)
        found.append(names[np.lexsort((first, -counts))[0]])
    return np.array(found)


def _search(queries: np.ndarray, stored: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Distances and row numbers of the k nearest; cosine is that of unit vectors, so L2.

    By inner product there are no distances: all are 1.
    """
    if metric == "ip":
        found = exhaustive(queries, stored, k, "ip")
        return np.ones(found.shape), found
    distances, found = nearest(queries, stored, k)
    return distances, found


def _evaluation(
    figures: list[Figure], answered: str, hubness: Sequence[Hubness], notes: Sequence[str], asked: Asked
) -> Evaluation:
    same = sum(
        (asked.queries[rows] == asked.stored.before[asked.found.before[rows, 0]]).all(axis=1).sum()
        for rows in blocks(len(asked.queries), 1000)
    )
    if same:
        notes = [f"{same:,} of {len(asked.queries):,} queries are stored items, and find themselves.", *notes]
    if len(asked.stored.before) <= HUBS:
        notes = [f"Of {HUBS} items or fewer all are found by every query: hubs cannot be told.", *notes]
    before, after = asked.right
    fixed, broken = int((after & ~before).sum()), int((before & ~after).sum())
    return Evaluation(figures, fixed, broken, answered, (hubness[0], hubness[1]), [*notes], asked)
