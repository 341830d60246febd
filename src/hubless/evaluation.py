"""Before and after: what moving stored objects changes for queries with known answers, by exact search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .arrays.inputs import distinct
from .arrays.library import blocks
from .chance import Chance, measure_chance
from .hubness import Hubness, measure_hubness
from .hubness_change import Interval, change_intervals
from .hubs_in_words import asked_words, hub_table
from .neighbors import nearest
from .neighbors.knn import exhaustive, vote, votes_of
from .retrieval import MEASURES, Relevant, gains, in_the_way, rejected_among
from .support.progress import step
from .support.text import printable_lines

HUBS = 10  # k of N_k
NORMAL = 1.96  # standard errors of a 95 % interval


class BeforeAfter(NamedTuple):
    """A value before and after the move."""

    before: Any
    after: Any


@dataclass(frozen=True)
class Change:
    """One measure before and after, averaged over the queries of a part."""

    measure: str
    part: str  # "all", "seen" or "unseen" items
    n: int  # queries
    before: float  # NaN, as the interval, where nothing could be searched for before the move
    after: float
    low: float  # 95 % interval of after − before
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, with None for NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


# after − before ± 1.96 s / √n, s the standard deviation of the differences query by query
def measure_change(measure: str, part: str, before: np.ndarray, after: np.ndarray) -> Change:
    """Return the change of a measure, given one number per query before and after."""
    differences = after - before
    n, mean = len(differences), float(differences.mean())
    error = float(NORMAL * differences.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")
    return Change(measure, part, n, float(before.mean()), float(after.mean()), mean - error, mean + error)


@dataclass(frozen=True)
class Answers:
    """All queries with their neighbours before and after: what a page is drawn from.

    There are n stored objects and m queries; h is 10, or n if that is less.
    """

    stored: BeforeAfter  # (n, d); after, (n, d + 1) for a mover that has one more column
    queries: np.ndarray  # (m, d)
    neighbors: BeforeAfter  # (m, h), row numbers of objects, nearest first
    wrong: BeforeAfter  # (m, h), whether that object is a wrong answer; of pairs, judged so
    correct: BeforeAfter  # (m,), whether the query is answered correctly
    predicted: BeforeAfter | None  # (m,), the class that was voted for; None where there are no classes
    labels: np.ndarray | None  # (n,), texts as objects: one may be long
    truth: np.ndarray | None  # (m,), the same
    ks: BeforeAfter  # neighbours that vote, or answers that count
    metric: str  # "l2", "cosine" (of unit vectors) or "ip"
    seconds: float = 0.0  # that the searches took
    is_corrected: bool = False  # whether objects were corrected for inner products, and so lose nothing
    relevant: BeforeAfter | None = None  # (m, h), of pairs; neither relevant nor wrong is unjudged
    in_the_way: BeforeAfter | None = None  # (m, h), of pairs: takes the place of a relevant object
    different: np.ndarray | None = None  # rows of the queries without repeated ones; None if none repeats

    def counted(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the queries that hubs are counted over, each different one once."""
        return values if self.different is None else values[self.different]


@dataclass(frozen=True)
class Evaluation:
    """What a model changes; print it."""

    figures: list[Change]  # the verdict depends on the first
    fixed: int  # queries answered correctly after and not before; 0 where there is no before
    broken: int  # queries answered correctly before and not after; likewise
    answered: str  # what a correct answer is, in words
    hubness: BeforeAfter  # Hubness over different queries; None where nothing could be searched for before
    notes: list[str]
    answers: Answers = field(repr=False, compare=False)
    whose: str = ""  # whose queries these are, in words, such as " of queries.npy"

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the answers as plain data."""
        return {
            "figures": [change.as_dict() for change in self.figures],
            "fixed": self.fixed if self.has_before else None,
            "broken": self.broken if self.has_before else None,
            "answered": self.answered,
            "hubness": {
                state: None if hubness is None else hubness.as_dict()
                for state, hubness in self.hubness._asdict().items()
            },
            "chance": self.chance.as_dict(),
            "asked": self.asked,
            "notes": self.notes,
        }

    @property
    def chance(self) -> Chance:
        """What chance gives for the measures of hubness."""
        hubness = self.hubness.after
        return measure_chance(hubness.n_queries, hubness.n_objects, hubness.k)

    @property
    def asked(self) -> str:
        """Which queries hubs are counted over, in words."""
        n = self.hubness.after.n_queries
        return asked_words(n, self.whose, repeated=len(self.answers.queries) - n)

    def hubness_intervals(self) -> dict[str, Interval]:
        """Return the 95 % interval of the change of each measure of hubness."""
        before, after = (self.answers.counted(state) for state in self.answers.neighbors)
        return change_intervals(before, after, self.hubness.after.n_objects)

    @property
    def has_before(self) -> bool:
        """Whether anything could be searched for before the move."""
        return self.hubness.before is not None

    def after_alone(self) -> "Evaluation":
        """Return the figures after the move alone, for queries that items were not comparable with before."""
        nan = float("nan")
        figures = [replace(change, before=nan, low=nan, high=nan) for change in self.figures]
        return replace(self, figures=figures, hubness=BeforeAfter(None, self.hubness.after))

    def __str__(self) -> str:
        if not self.has_before:
            return self._after_in_words()
        lines = [f"{'measure':<14}{'items':<8}{'queries':>8}{'before':>9}{'after':>9}   change (95 %)"]
        for change in self.figures:
            span = f"{change.low:+.3f} to {change.high:+.3f}" if change.n > 1 else "one query: no interval"
            head = f"{change.measure:<14}{change.part:<8}{change.n:>8,}"
            difference = f"{change.after - change.before:+.3f}  ({span})"
            lines.append(f"{head}{change.before:>9.3f}{change.after:>9.3f}   {difference}")
        lines.append(f"fixed {self.fixed:,}, broken {self.broken:,} ({self.answered})")
        lines += self._hub_lines(**self.hubness._asdict())
        return printable_lines(lines + [f"note: {note}" for note in self.notes])

    def _hub_lines(self, **states: Hubness) -> list[str]:
        return [
            f"hubs among {self.hubness.after.n_objects:,} items, asked: {self.asked}",
            *(f"  {line}" for line in hub_table(states, self.chance)),
        ]

    def _after_in_words(self) -> str:
        lines = [f"{'measure':<14}{'items':<8}{'queries':>8}{'before':>9}{'after':>9}"]
        lines += [f"{c.measure:<14}{c.part:<8}{c.n:>8,}{'—':>9}{c.after:>9.3f}" for c in self.figures]
        correct = self.answers.correct.after
        lines.append(f"answered {int(correct.sum()):,} of {len(correct):,} ({self.answered})")
        lines += self._hub_lines(after=self.hubness.after)
        return printable_lines(lines + [f"note: {note}" for note in self.notes])


def evaluate_classes(
    stored: BeforeAfter,
    queries: BeforeAfter,
    labels: np.ndarray,
    truth: np.ndarray,
    ks: BeforeAfter,
    *,
    metric: str = "l2",
    by_distance: bool = False,
    weights: np.ndarray | None = None,
    notes: Sequence[str] = (),
) -> Evaluation:
    """Measure the accuracy of the vote of the k nearest, and the share of neighbours of the right class.

    Parameters
    ----------
    stored : arrays (n, d) before and after: the objects before and after they are moved
    queries : arrays (m, d) before and after: the same queries, with one more column where moved objects
        have one
    labels, truth : arrays of texts, (n,) and (m,)
    ks : int before and after: neighbours that vote; the two numbers may differ
    by_distance, weights : whether nearer neighbours count more; weights of the votes of objects, (n,)
    """
    n, h, started = len(labels), min(HUBS, len(labels)), perf_counter()
    ks = BeforeAfter(*(min(k, n) for k in ks))
    names, codes = np.unique(np.concatenate([labels, truth]).astype(object), return_inverse=True)
    codes, truth_codes = codes[:n], codes[n:]  # numbers: a name may be as long as a book
    searches = _searches(queries, stored, BeforeAfter(*(max(k, h) for k in ks)), metric)
    predicted = [
        vote(*votes_of(indices[:, :k], distances[:, :k] if by_distance else None, codes, weights))
        for (distances, indices), k in zip(searches, ks, strict=True)
    ]
    seconds = perf_counter() - started
    near = BeforeAfter(*(np.ascontiguousarray(indices[:, :h]) for _, indices in searches))
    wrong = BeforeAfter(*(codes[indices] != truth_codes[:, None] for indices in near))
    correct = BeforeAfter(*(classes == truth_codes for classes in predicted))
    figures = [
        measure_change("accuracy", "all", *(state.astype(float) for state in correct)),
        measure_change(f"precision@{h}", "all", *((~state).mean(axis=1) for state in wrong)),
    ]
    classes = BeforeAfter(*(names[state] for state in predicted)), names[codes], names[truth_codes]
    answers = _answers(stored, queries.before, near, wrong, correct, *classes, ks, metric, seconds)
    labels_of: dict[str, Any] = {"object_labels": codes, "query_labels": answers.counted(truth_codes)}
    hubness = [measure_hubness(answers.counted(indices), n, **labels_of) for indices in near]
    missing = names[np.setdiff1d(truth_codes, codes)].tolist()
    if missing:
        notes = [f"{len(missing)} class(es) of queries have no item: {', '.join(missing[:5])}", *notes]
    return _evaluation(figures, f"the class that {_voters(ks)}", hubness, notes, answers)


def _voters(ks: BeforeAfter) -> str:
    if ks.before != ks.after:
        return f"{ks.before} nearest vote for before, {ks.after} after"
    return "the nearest has" if ks.after == 1 else f"{ks.after} neighbours vote for"


def evaluate_relevance(
    stored: BeforeAfter,
    queries: BeforeAfter,
    relevant: Relevant,
    k: int,
    *,
    parts: Mapping[str, np.ndarray] | None = None,
    rejected: Sequence[Collection[int]] | None = None,
    metric: str = "l2",
    notes: Sequence[str] = (),
) -> Evaluation:
    """Measure nDCG@k, MRR, hit rate and recall@k of queries whose relevant objects are known.

    Parameters
    ----------
    relevant : for each query the row numbers of its relevant objects, with what each is worth
    parts : masks (m,) of queries by name, which are measured separately too; "all" are always measured
    rejected : for each query the row numbers of objects that were judged not to be relevant
    """
    n, started = len(stored.before), perf_counter()
    k, h = min(k, n), min(HUBS, n)
    both = BeforeAfter(max(k, h), max(k, h))
    searches = [indices for _, indices in _searches(queries, stored, both, metric)]
    seconds = perf_counter() - started
    worth = BeforeAfter(*(gains(indices, relevant) for indices in searches))
    masks = {"all": np.ones(len(relevant), dtype=bool), **(parts or {})}
    figures = []
    for name, measure in MEASURES.items():
        before, after = (measure(state[:, :k], relevant) for state in worth)
        figures += [
            measure_change(f"{name}@{k}", part, before[mask], after[mask])
            for part, mask in masks.items()
            if mask.any()
        ]
    near = BeforeAfter(*(np.ascontiguousarray(indices[:, :h]) for indices in searches))
    wrong = BeforeAfter(*(rejected_among(indices, rejected) for indices in near))
    correct = BeforeAfter(*(np.asarray((state[:, :k] > 0).any(axis=1)) for state in worth))
    no_classes, ks = (None, None, None), BeforeAfter(k, k)
    answers = _answers(stored, queries.before, near, wrong, correct, *no_classes, ks, metric, seconds)
    ways = BeforeAfter(*(in_the_way(state[:, :h], relevant) for state in worth))
    answers = replace(answers, relevant=BeforeAfter(*(s[:, :h] > 0 for s in worth)), in_the_way=ways)
    hubness = [measure_hubness(answers.counted(indices), n) for indices in near]
    return _evaluation(figures, f"a relevant item among the first {k}", hubness, notes, answers)


def _searches(
    queries: BeforeAfter, stored: BeforeAfter, ks: BeforeAfter, metric: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Search before and after, or once where both are the same."""
    with step(f"answering {len(queries.before):,} queries among {len(stored.before):,} items"):
        first = _search(queries.before, stored.before, ks.before, metric)
        is_same = all(state.before is state.after for state in (queries, stored)) and ks.before == ks.after
        return [first, first if is_same else _search(queries.after, stored.after, ks.after, metric)]


def _search(queries: np.ndarray, stored: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Find distances and row numbers of the k nearest.

    For cosine, vectors have length 1, so L2 gives the same order. By inner product there are no
    distances: all are 1.
    """
    if metric == "ip":
        indices = exhaustive(queries, stored, k, "ip")
        return np.ones(indices.shape), indices
    return nearest(queries, stored, k)


def _answers(stored: BeforeAfter, queries: np.ndarray, *others: Any) -> Answers:
    """Return the answers, with the rows of different queries where some repeat others."""
    answers, different = Answers(stored, queries, *others), distinct(queries)
    return answers if len(different) == len(queries) else replace(answers, different=different)


def _evaluation(
    figures: list[Change], answered: str, hubness: Sequence[Hubness], notes: Sequence[str], answers: Answers
) -> Evaluation:
    n_queries, n_same = len(answers.queries), _count_stored_queries(answers)
    if n_same:
        notes = [f"{n_same:,} of {n_queries:,} queries are stored items, and find themselves.", *notes]
    if len(answers.stored.before) <= HUBS:
        notes = [f"With {HUBS} items or fewer, every query finds all: hubs cannot be measured.", *notes]
    before, after = answers.correct
    fixed, broken = int((after & ~before).sum()), int((before & ~after).sum())
    return Evaluation(figures, fixed, broken, answered, BeforeAfter(*hubness), [*notes], answers)


def _count_stored_queries(answers: Answers) -> int:
    """Count queries that equal the object nearest to them."""
    nearest_rows = answers.neighbors.before[:, 0]
    return sum(
        int((answers.queries[rows] == answers.stored.before[nearest_rows[rows]]).all(axis=1).sum())
        for rows in blocks(len(nearest_rows), 1000)
    )
