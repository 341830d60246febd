"""Moved points that a race keeps for chains that begin alike, in bounded memory."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import perf_counter

from ..arrays import Array, namespace
from ..movers.points import Points

TIMES, LEAST = 4, 1 << 27  # bytes that are kept: this many times those of the objects, and at least so many


@dataclass
class _Entry:
    points: Points
    density: float  # seconds that learning took, per number that is kept
    worth: float


# GreedyDual-Size (Cao & Irani 1997): what is used gets the worth of the last that was dropped + its seconds
# per byte; the least worth is dropped. So what is expensive stays longer, and not forever.
class KeptPoints:
    """Points by key; those that are cheap to learn again, or were not used for long, are dropped first."""

    def __init__(self, objects: Array) -> None:
        self.limit = max(TIMES * _bytes(objects), LEAST)
        self.kept: dict[Hashable, _Entry] = {}
        self.floor = 0.0  # worth of the last that was dropped

    def get(self, key: Hashable, before: Callable[[], Points], learn: Callable[[Points], Points]) -> Points:
        """Return learn(before()), by memory where possible; the seconds of `learn` alone count."""
        entry = self.kept.get(key)
        if entry is None:
            points, start = before(), perf_counter()
            points = learn(points)
            seconds = perf_counter() - start
            entry = self.kept[key] = _Entry(points, seconds / max(1, math.prod(points.Z.shape)), 0.0)
        entry.worth = self.floor + entry.density
        while self.kept and self.n_bytes() > self.limit:
            least = min(self.kept, key=lambda kept: self.kept[kept].worth)
            self.floor = self.kept.pop(least).worth
        return entry.points

    def n_bytes(self) -> int:
        """Return how much memory these points take, besides objects that have not moved."""
        arrays = {
            id(array): array
            for points in (entry.points for entry in self.kept.values())
            for array in (points.X, points.Z, points.L, points.push, points.bias)
            if array is not None and array is not points.inputs
        }
        return sum(map(_bytes, arrays.values()))


def _bytes(array: Array) -> int:
    return math.prod(array.shape) * int(namespace(array).finfo(array.dtype).bits) // 8
