"""How a switch moves the rows that others changed since the moved store was built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .store import Batch


@dataclass(frozen=True)
class Reconcile:
    """How `promote` moves rows of blue that changed since green was built, while their writers wait."""

    columns: Sequence[str]  # what `move` needs of a row, besides its id and vector
    move: Callable[[Batch], np.ndarray]  # (n, d) → (n, width)
    rows: int = 10_000  # that may be moved, at most
    seconds: float = 30.0  # that writers may have to wait, at most
