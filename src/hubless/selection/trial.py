"""One setting of a race, and how it answered the queries so far."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..movers import Mover
from .candidates import steps
from .folds import TIE, mean_and_error

EARLIEST = 600  # queries after which a setting may be given up
FAR_BEHIND = 3.0  # standard errors behind the leader


@dataclass(eq=False)
class Trial:
    """One setting and its answers."""

    mover: Mover
    number: int  # in the order in which settings were tried
    ks: tuple[int, ...]
    weights: np.ndarray = field(repr=False)  # of all queries
    correct: np.ndarray = field(repr=False)  # (queries so far, ks), bool
    score: float = -np.inf  # accuracy with the best k
    column: int = 0  # of the best k; the smallest of equal ones
    seconds: float = 0.0
    error: str = ""  # why it could not be fitted

    def __post_init__(self) -> None:
        self.steps = steps(self.mover)
        self.keys = [(type(step), *step.get_params(deep=False).values()) for step in self.steps]

    @property
    def n_neighbors(self) -> int:
        """The best number of neighbours."""
        return self.ks[self.column]

    @property
    def n_queries(self) -> int:
        """How many queries it has answered."""
        return len(self.correct)

    def add(self, correct: np.ndarray) -> None:
        """Add whether further queries were answered correctly; shape (queries, ks)."""
        self.correct = np.concatenate([self.correct, correct])
        w = self.weights[: self.n_queries]
        means = (w @ self.correct) / w.sum()
        self.column = int(np.argmax(means > means.max() - TIE))
        self.score = float(means[self.column])

    def first(self, n_queries: int) -> "Trial":
        """Return the same trial as it was after its first n queries."""
        if self.n_queries == n_queries:
            return self
        before = replace(self, correct=self.correct[:0])
        before.add(self.correct[:n_queries])
        return before

    def behind(self, other: "Trial") -> tuple[float, float]:
        """Return by how much the other is more accurate on the queries that both answered, and its error."""
        m = min(self.n_queries, other.n_queries)
        if m == 0:
            return np.inf, 0.0
        apart = other.correct[:m, other.column].astype(float) - self.correct[:m, self.column]
        return mean_and_error(apart, self.weights[:m])

    def score_error(self) -> float:
        """Return the standard error of its score."""
        return mean_and_error(self.correct[:, self.column].astype(float), self.weights[: self.n_queries])[1]

    def is_far_behind(self, leader: "Trial | None") -> bool:
        """Return whether it has answered enough queries to say that it will not catch up."""
        if leader is None or self.n_queries < max(1, min(EARLIEST, leader.n_queries // 3)):
            return False
        behind, error = self.behind(leader)
        return behind > max(FAR_BEHIND * error, 0.01)
