"""Before and after: what a model changes for queries with known answers, by exact search."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..hubness import Hubness, measure_hubness
from ..neighbors import nearest
from ..retrieval import MEASURES, gains
from ..stores.store import StoreError
from .collection import Collection
from .pairs import Judged
from .repair import Repair

HUBS = 10  # k of N_k
NORMAL = 1.96  # standard errors of a 95 % interval


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
    error = NORMAL * float(apart.std(ddof=1)) / np.sqrt(len(apart)) if len(apart) > 1 else float("inf")
    mean = float(apart.mean())
    return Figure(
        measure, part, len(apart), float(before.mean()), float(after.mean()), mean - error, mean + error
    )


@dataclass(frozen=True)
class Evaluation:
    """What a model changes; print it."""

    figures: list[Figure]
    fixed: int  # queries answered now and not before
    broken: int  # queries answered before and not now
    answered: str  # what "answered" means
    hubness: tuple[Hubness, Hubness]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
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
            change = f"{entry.after - entry.before:+.3f}  ({entry.low:+.3f} to {entry.high:+.3f})"
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


def evaluate_pairs(model: Repair, items: Collection, judged: Judged, k: int = 10) -> Evaluation:
    """Hit rate, MRR, nDCG@k and recall@k of judged queries, with seen and unseen items apart.

    An item is seen if the model learned from a query of its own; a query is, if one of its items is.
    """
    items = items.in_space(model.metric)
    stored, queries = (items.vectors, items.moved(model)), items.comparable(judged.queries)
    k = min(k, len(items.ids))
    relevant = judged.rows(items.places)
    wide = max(k, min(HUBS, len(items.ids)))
    found = [nearest(queries, vectors, wide, return_distance=False) for vectors in stored]
    worth = [gains(indices[:, :k], relevant) for indices in found]
    taught = set(model.facts.get("learned", {}).get("seen", []))
    seen = np.array([not taught.isdisjoint(own) for own in judged.relevant], dtype=bool)
    parts = {"all": np.ones(len(seen), dtype=bool), "seen": seen, "unseen": ~seen}
    figures = []
    for name, measure in MEASURES.items():
        scores = [measure(own, relevant) for own in worth]
        for part, mask in parts.items():
            if mask.any() and (part == "all" or taught):
                figures.append(figure(f"{name}@{k}", part, scores[0][mask], scores[1][mask]))
    hit = [np.asarray((own > 0).any(axis=1)) for own in worth]
    return _evaluation(figures, hit, f"a relevant item among the first {k}", found, items, [])


def evaluate_labels(
    model: Repair,
    items: Collection,
    label: str,
    queries: np.ndarray,
    truth: Sequence[Any],
    n_neighbors: int | None = None,
) -> Evaluation:
    """Accuracy of the vote of the nearest items, and the share of neighbours of the right class."""
    if len(truth) != len(queries):
        raise StoreError(f"one label per query is needed; got {len(truth)} for {len(queries)} queries.")
    known = np.array([value is not None and value != "" for value in truth], dtype=bool)
    if not known.any():
        raise StoreError("no query has a label to compare with.")
    whole, items, queries = items, items.labeled(label), queries[known]
    k = n_neighbors or int(model.facts.get("learned", {}).get("n_neighbors", 5))
    k = min(k, len(items.ids))
    labels = _texts(items.columns[label])
    asked = _texts([value for value, kept in zip(truth, known, strict=True) if kept])
    items = items.in_space(model.metric)
    stored, queries = (items.vectors, items.moved(model)), items.comparable(queries)
    wide = max(k, min(HUBS, len(items.ids)))
    found = [nearest(queries, vectors, wide, return_distance=False) for vectors in stored]
    right = [winners(labels[indices[:, :k]]) == asked for indices in found]
    same = [(labels[indices[:, :HUBS]] == asked[:, None]).mean(axis=1) for indices in found]
    figures = [
        figure("accuracy", "all", *(own.astype(float) for own in right)),
        figure(f"precision@{min(HUBS, wide)}", "all", *same),
    ]
    strange = sorted(set(asked.tolist()) - set(labels.tolist()))
    notes = [f"{len(strange)} classes of queries have no item: {', '.join(strange[:5])}"] if strange else []
    left_out = [(len(whole.ids) - len(items.ids), "items"), (int((~known).sum()), "queries")]
    notes += [f"{count:,} {what} have no label and play no part." for count, what in left_out if count]
    return _evaluation(figures, right, f"the class that {k} neighbours vote for", found, items, notes)


def winners(labels: np.ndarray) -> np.ndarray:
    """The most frequent label of each row; of equally many, the one whose nearest comes first."""
    found = []
    for row in labels:
        names, first, counts = np.unique(row, return_index=True, return_counts=True)
        found.append(names[np.lexsort((first, -counts))[0]])
    return np.array(found)


def _texts(values: Sequence[Any]) -> np.ndarray:
    return np.array(["" if value is None else str(value) for value in values])


def _evaluation(
    figures: list[Figure],
    answered: list[np.ndarray],
    meaning: str,
    found: list[np.ndarray],
    items: Collection,
    notes: list[str],
) -> Evaluation:
    hubs = [measure_hubness(np.ascontiguousarray(rows[:, :HUBS]), len(items.ids)) for rows in found]
    before, after = answered
    return Evaluation(
        figures,
        int((after & ~before).sum()),
        int((before & ~after).sum()),
        meaning,
        (hubs[0], hubs[1]),
        notes,
    )
