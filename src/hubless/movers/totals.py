"""Sums over objects, from which a mover learns where they are not all in memory."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..moments import Moments


class Needs(NamedTuple):
    """The sums over objects that a mover learns from where they are not all in memory, besides their mean."""

    n_targets: int = 0  # moments of the pairs of each object with this many targets
    centred: bool = True  # pairs are about the mean of all objects; otherwise about 0
    class_means: bool = False
    within_classes: bool = False  # pairs are about the means of their classes, which are then needed


@dataclass(frozen=True)
class Totals:
    """Sums over all labeled objects."""

    n: int
    mean: np.ndarray  # (d,), float64
    dtype: np.dtype  # of the objects
    classes: np.ndarray  # (c,), sorted
    sizes: np.ndarray  # (c,), objects of each class
    moments: Moments | None = None  # about the mean, or 0 where `Needs` say so
    n_pairs: int = 0
    class_means: np.ndarray | None = None  # (c, d), float64
    skipped: list[tuple[str, str]] = field(default_factory=list)  # parts that were skipped, and why
