"""One setting of a race: which held-out queries it answered rightly, and how it compares with another."""

from dataclasses import dataclass, field, replace

import numpy as np

from .candidates import steps
from .movers import Mover

GLANCE = 250  # queries after which a setting may be given up
HOPELESS = 3.0  # standard errors behind the leader


@dataclass(eq=False)
class Trial:
    """One setting and what came of it."""

    mover: Mover
    place: int  # in the order of the race
    ks: tuple[int, ...]
    weights: np.ndarray = field(repr=False)  # of all queries
    right: np.ndarray = field(repr=False)  # (queries so far, ks), bool
    score: float = -np.inf  # accuracy with the best k
    column: int = 0  # of the best k; the smallest of equal ones
    seconds: float = 0.0
    error: str = ""  # why it could not be learned

    def __post_init__(self) -> None:
        self.steps = steps(self.mover)
        self.keys = [(type(step), *step.get_params(deep=False).values()) for step in self.steps]

    @property
    def n_neighbors(self) -> int:
        return self.ks[self.column]

    def add(self, answers: np.ndarray) -> None:
        """Take in whether further queries were answered rightly; shape (queries, ks)."""
        self.right = np.concatenate([self.right, answers])
        w = self.weights[: len(self.right)]
        means = (w @ self.right) / w.sum()
        self.column = int(np.argmax(means > means.max() - 1e-12))
        self.score = float(means[self.column])

    def first(self, n_queries: int) -> "Trial":
        """The same trial as it stood after so many queries."""
        if len(self.right) == n_queries:
            return self
        before = replace(self, right=self.right[:0])
        before.add(self.right[:n_queries])
        return before

    def behind(self, other: "Trial") -> tuple[float, float]:
        """By how much the other is more accurate, over the queries that both answered, and its s.e."""
        m = min(len(self.right), len(other.right))
        if m == 0:
            return np.inf, 0.0
        apart = other.right[:m, other.column].astype(float) - self.right[:m, self.column]
        w = self.weights[:m] / self.weights[:m].sum()
        mean = float(w @ apart)
        return mean, float(np.sqrt(w**2 @ (apart - mean) ** 2))

    def is_hopeless(self, leader: "Trial | None") -> bool:
        """Whether it has shown that it will not catch up."""
        if leader is None or len(self.right) < max(1, min(GLANCE, len(leader.right) // 3)):
            return False
        behind, error = self.behind(leader)
        return behind > max(HOPELESS * error, 0.01)
