"""The graph of an HNSW index in a file, checked before an engine loads it: engines follow links unseen.

Each row has a list of links on level 0, and one on every level up to its own. A list is a 32-bit number, of
which the first bytes count the links, and room for that many 32-bit numbers of rows.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

BLOCK = 1 << 22  # bytes of lists that are looked at together
HIGHEST = 64  # level that any engine draws: a row is on level l with the probability connectivity^-l


class Links(NamedTuple):
    """Where the lists of links are in a file, in bytes."""

    levels: np.ndarray  # (n,): the highest level of each row
    entry: int  # row at which a search begins
    top: int  # level at which it begins
    base: np.ndarray  # (n,): where the list of level 0 is
    upper: np.ndarray  # (n,): where the lists of levels 1, 2, … are, one after the other
    base_room: int  # links that a list of level 0 can have
    room: int  # links that a list of another level can have
    counted: str = "<u4"  # type of the count

    def are_sound(self, content: np.ndarray) -> bool:
        """Say whether each link leads to a row that is on the level of the link."""
        n, highest = len(self.levels), int(self.levels.max(initial=0))
        if not n:
            return True
        if not (self.entry < n and 0 <= self.top <= self.levels[self.entry] and highest <= HIGHEST):
            return False
        if not self._lead_to_rows(content, self.base, self.base_room, 0):
            return False
        size = list_size(self.room)
        return all(
            self._lead_to_rows(
                content, self.upper[self.levels >= level] + (level - 1) * size, self.room, level
            )
            for level in range(1, highest + 1)
        )

    def _lead_to_rows(self, content: np.ndarray, starts: np.ndarray, room: int, level: int) -> bool:
        step = max(1, BLOCK // list_size(room))
        for first in range(0, len(starts), step):
            lists = gather(content, starts[first : first + step], list_size(room))
            counts = np.ascontiguousarray(lists[:, : np.dtype(self.counted).itemsize]).view(self.counted)
            if counts.max() > room:
                return False
            links = np.ascontiguousarray(lists[:, 4:]).view("<u4")[np.arange(room) < counts]
            if links.max(initial=0) >= len(self.levels) or self.levels[links].min(initial=level) < level:
                return False
        return True


def list_size(room: int) -> int:
    """Return the bytes of a list of links."""
    return 4 + 4 * room


def mapped(path: Path) -> np.ndarray:
    """Return the bytes of a file, which are read when they are used."""
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)


def gather(content: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """Return `size` bytes from each of the given places; (n, size)."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(content, size)[starts])
