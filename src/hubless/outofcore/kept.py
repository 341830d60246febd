"""Rows that a first read keeps: those that are drawn later, if there is room for them.

Which rows are drawn depends on their numbers and the seed (see `sampling`), and on how many objects there are
of each class, which is known at the end. A row that can still be drawn is kept until it no longer can.
"""

from typing import Any

import numpy as np

from .labels import Labels
from .sampling import NEIGHBORS, Draw, Drawn, hash_rows

SPARE = 1.25  # times as many rows as there is room for are held before some are dropped
ALL = 2.0**64  # no hash reaches it


class KeptRows:
    """The rows with the smallest hashes of all that were added, and of each class.

    Parameters
    ----------
    capacity : how many of the smallest hashes are kept; all rows, while they are no more
    seed : of the hashes
    every : every n-th row is kept besides, where the number of rows is what was expected
    per_class : whether the rows that `Draw` may draw of each class are kept too
    """

    def __init__(self, capacity: int, seed: int, every: int = 0, *, per_class: bool = False) -> None:
        self.capacity, self.seed, self.every, self.per_class = capacity, seed, every, per_class
        self.clear()

    def clear(self) -> None:
        """Forget all rows: some of them turned out to be of a part that is skipped."""
        self.n, self.bound, self.has_classes = 0, ALL, self.per_class
        self.labels: dict[Any, int] = {}  # places by order of appearance
        self.counts = np.zeros(0, dtype=np.int64)  # (places,)
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # numbers, X and places
        self.n_held = 0

    def add(self, X: np.ndarray, labels: Labels) -> None:
        """Keep what may be needed of the next rows."""
        known = [self.labels.setdefault(value, len(self.labels)) for value in labels.values.tolist()]
        places = np.array(known, dtype=np.int64)[labels.places]
        self.counts = np.pad(self.counts, (0, len(self.labels) - len(self.counts)))
        self.counts += np.bincount(places, minlength=len(self.counts))
        numbers = np.arange(self.n, self.n + len(X))
        self.n += len(X)
        keep = self._needed(numbers, places)
        self.parts.append((numbers[keep], X[keep], places[keep]))
        self.n_held += len(self.parts[-1][0])
        if self.n_held > SPARE * self.capacity:
            self._drop()

    def rows(self, numbers: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the objects with these numbers, which ascend, and their class numbers; None if one lacks."""
        held, X, places = self._joined()
        at = np.minimum(np.searchsorted(held, numbers), max(0, len(held) - 1))
        if not len(held) or (held[at] != numbers).any():
            return None
        if len(at) < len(held):
            X, places = X[at], places[at]
        return X, self._codes(places, classes)

    def draw(self, draw: Draw, classes: np.ndarray) -> Drawn | None:
        """Return what is drawn; None where some of it was not kept."""
        least = np.minimum(1.0, NEIGHBORS / self.counts) if self.has_classes else np.zeros(len(self.counts))
        bounds = np.maximum(least, self.bound / ALL)[np.argsort(self._class_of_place(classes))]
        if draw.seed != self.seed or (draw.shares > bounds).any():
            return None
        if self.bound < ALL and draw.every != self.every:
            return None
        numbers, X, places = self._joined()
        codes = self._codes(places, classes)
        chosen = hash_rows(numbers, self.seed) < draw.shares[codes] * ALL
        return Drawn(X[chosen], classes[codes[chosen]], X[numbers % draw.every == 0])

    def _needed(self, numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return which rows may still be needed, bool."""
        if self.bound == ALL:
            return np.ones(len(numbers), dtype=bool)
        hashes = hash_rows(numbers, self.seed)
        needed = hashes < self.bound
        if self.has_classes:
            needed |= hashes < np.minimum(1.0, NEIGHBORS / self.counts)[places] * ALL
        if self.every:
            needed |= numbers % self.every == 0
        return needed

    def _drop(self) -> None:
        """Lower the bound to as many hashes as there is room for, and drop what is above."""
        self.has_classes &= NEIGHBORS * len(self.labels) <= self.capacity
        hashes = np.concatenate([hash_rows(numbers, self.seed) for numbers, _, _ in self.parts])
        if self.capacity < len(hashes):
            self.bound = min(self.bound, float(np.partition(hashes, self.capacity)[self.capacity]))
        for i, (numbers, X, places) in enumerate(self.parts):  # one at a time, as all are large
            keep = self._needed(numbers, places)
            self.parts[i] = (numbers, X, places) if keep.all() else (numbers[keep], X[keep], places[keep])
        self.n_held = sum(len(numbers) for numbers, _, _ in self.parts)

    def _joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numbers, X and places of all that is held, as one part."""
        if len(self.parts) != 1:
            none = (np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros(0, np.int64))
            parts = zip(*(self.parts or [none]), strict=True)
            numbers, X, places = (np.concatenate(arrays) for arrays in parts)
            self.parts = [(numbers, X, places)]
        return self.parts[0]

    def _class_of_place(self, classes: np.ndarray) -> np.ndarray:
        return np.searchsorted(classes, np.array([*self.labels]))

    def _codes(self, places: np.ndarray, classes: np.ndarray) -> np.ndarray:
        return np.asarray(self._class_of_place(classes)[places], dtype=np.int64)
