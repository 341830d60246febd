"""Which cells of some queries may be neighbours, while blocks of objects are compared one after another."""

from collections.abc import Callable
from typing import Any

from ..arrays import Array, k_smallest, take_rows
from .ranking import Cells, Minima, cells_within

CROWDED = 2  # times as many cells as after the last look, and they are looked through again


class KeptCells:
    """The cells of some queries whose values are not above a limit, which falls block by block.

    Take the smallest value of each block of columns. The k-th smallest of these minima is at least the k-th
    smallest value, so every neighbour has a value that is not above it, and few others have: one pass for the
    minima and a look into about k blocks replace a sort of whole rows. The limit is above it by what rounding
    may do, so no neighbour is lost.

    Parameters
    ----------
    k : the number of neighbours
    limit : (m,), which every value is within
    limit_of : from the k-th smallest minima, (m,), to the limits
    most : the number of cells that may be held
    """

    def __init__(
        self, xp: Any, k: int, limit: Array, limit_of: Callable[[Array], Array], most: float
    ) -> None:
        self.xp, self.k, self.limit, self.limit_of, self.most = xp, k, limit, limit_of, most
        self.best = limit[:, None][:, :0]  # (m, up to k) minima
        self.parts: list[Cells] = []
        self.held = self.looked = 0  # cells now, and after the last look
        self.is_ordered = True  # row by row

    def add(self, value: Array, start: int) -> bool:
        """Take the values of objects from `start` on, (m, objects); False if too many cells may be near."""
        xp, k = self.xp, self.k
        minima = Minima.of(xp, value, k)
        self.best = k_smallest(xp.concat([self.best, k_smallest(minima.values, k)], axis=1), k)
        if self.best.shape[1] == k:
            self.limit = self.limit_of(xp.max(self.best, axis=1))
        cells = cells_within(xp, value, minima, self.limit)
        self.parts.append(cells._replace(column=cells.column + start))
        self.held += cells.row.shape[0]
        if self.held > CROWDED * self.looked and len(self.parts) > 1:
            self._look()
        return not self.is_full

    @property
    def is_full(self) -> bool:
        """Whether too many cells may be near."""
        return self.held > self.most

    def _look(self) -> None:
        """Leave out the cells that are above the limit by now."""
        self.is_ordered &= len(self.parts) == 1
        whole = Cells.concatenated(self.xp, self.parts)
        self.parts = [whole.where(~(whole.value > take_rows(self.limit, whole.row)))]
        self.held = self.looked = self.parts[0].row.shape[0]

    def cells(self) -> Cells:
        """Return the cells, row by row."""
        self._look()
        return self.parts[0] if self.is_ordered else self.parts[0].in_order(self.xp)
