"""Where the rows of a LanceDB table are, by id: one look at all ids instead of a search for each batch.

Without an index, LanceDB reads a whole column to find some ids, so that asking for one batch after another
would take time that grows with the square of the rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...support.imports import need
from .lance_rows import engine_errors, ids_of, scan

EXACT = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")  # types of ids that are their keys


def keys_of(ids: np.ndarray) -> np.ndarray:
    """Return a number of 64 bits for each id: itself, or the hash of a text; int64 (n,)."""
    if ids.dtype != object:
        return ids.astype(np.int64)
    numbers = (hash(id) if isinstance(id, str) else id for id in ids.tolist())
    return np.fromiter((n & (2**64 - 1) for n in numbers), np.uint64, len(ids)).view(np.int64)


class Places:
    """The places of the rows of one version of a table; 16 bytes of memory a row, however long its id is."""

    def __init__(self, table: Any, id: str) -> None:
        self.table, self.id = table, id
        self._is_exact = str(table.schema.field(id).type) in EXACT
        keys = [keys_of(ids_of(rows.column(id))) for rows in scan(table, [id])]
        together = np.concatenate(keys) if keys else np.empty(0, np.int64)
        self._order = np.argsort(together, kind="stable")
        self._keys = together[self._order]

    def _find(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which ids may exist, and the places of these; two texts could have one key."""
        if not len(self._keys):
            return np.zeros(len(ids), dtype=bool), np.empty(0, np.int64)
        keys = keys_of(ids)
        nearest = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        may_exist = self._keys[nearest] == keys
        return may_exist, self._order[nearest[may_exist]]

    def contain_none(self, ids: np.ndarray) -> bool:
        """Say whether certainly no row has one of these ids."""
        return not self._find(ids)[0].any()

    def contain(self, ids: np.ndarray) -> np.ndarray:
        """Say for each id whether there is a row with it; bool (n,)."""
        return self._find(ids)[0] if self._is_exact else self.take(ids, [self.id])[0]

    def take(self, ids: np.ndarray, columns: Sequence[str]) -> tuple[np.ndarray, Any]:
        """Return which ids exist, and their rows in this order: Arrow; the columns include that of ids."""
        exists, places = self._find(ids)
        rows = self._rows_at(places, columns)
        is_it = ids_of(rows.column(self.id)) == ids[exists]
        exists[exists] = is_it
        return exists, rows if is_it.all() else rows.filter(is_it)

    def _rows_at(self, places: np.ndarray, columns: Sequence[str]) -> Any:
        """Return the rows at these places of the table, in this order."""
        with engine_errors(f"reading {self.table.name}"):
            if len(places) and (np.diff(places) == 1).all():  # as in a green that was written in blue's order
                wanted = self.table.search().select(list(columns)).offset(int(places[0])).limit(len(places))
                return wanted.to_arrow()
            inside, back = np.unique(places, return_inverse=True)  # LanceDB returns them in its own order
            rows = self.table.take_offsets(inside.tolist()).select(list(columns)).to_arrow()
            return rows.take(need("pyarrow", "lancedb").array(back))

    def repeated(self) -> np.ndarray:
        """Return the ids that more than one row has."""
        places = self._order[1:][self._keys[1:] == self._keys[:-1]]
        rows = self._rows_at(places, [self.id])
        return np.unique(ids_of(rows.column(self.id)))
