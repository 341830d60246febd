"""The format of hnswlib's files, checked before the engine loads one: it believes what a file says.

In this order: a head; for each row its links, its vector and its label; and for each row the links of higher
levels, with their size before them.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .hnsw_links import Links, list_size, mapped
from .store import StoreError

HEAD = np.dtype(
    [(name, "<u8") for name in ("first", "capacity", "count", "size", "label_at", "vector_at")]
    + [("top", "<i4"), ("entry", "<u4"), ("room", "<u8"), ("base_room", "<u8"), ("M", "<u8")]
    + [("level_factor", "<f8"), ("ef_construction", "<u8")]
)
CAPACITY_AT = HEAD.fields["capacity"][1] if HEAD.fields else 0  # bytes before it
LARGEST = 10_000  # M


class HnswlibFile(NamedTuple):
    """A file whose parts are where its head says."""

    content: np.ndarray  # all of its bytes, mapped
    head: Any  # of HEAD
    rows: np.ndarray  # (n,), with the fields "is_deleted", "vector" and "label"
    links: Links


def read_hnswlib(path: Path) -> HnswlibFile:
    """Read a file, without its links; StoreError where it is damaged, or something else."""
    content = mapped(path)
    if len(content) < HEAD.itemsize:
        raise _is_none(path, "it is too short")
    head = np.array(content[: HEAD.itemsize]).view(HEAD)[0]
    M, n, vector_at = (int(head[name]) for name in ("M", "count", "vector_at"))
    size = int(head["label_at"]) - vector_at  # of a vector, in bytes
    expected = {  # what follows from M and this size
        "first": 0,
        "vector_at": list_size(2 * M),
        "size": int(head["label_at"]) + 8,
        "room": M,
        "base_room": 2 * M,
    }
    is_like = 2 <= M <= LARGEST and math.isclose(head["level_factor"], 1 / math.log(M), rel_tol=1e-9)
    if not is_like or any(int(head[name]) != value for name, value in expected.items()):
        raise _is_none(path, "it has another head than hnswlib writes")
    if size < 4 or size % 4:
        raise _is_none(path, f"its vectors have {size} bytes, and numbers of single precision have 4")
    end = HEAD.itemsize + n * int(head["size"])
    if n > int(head["capacity"]) or end > len(content):
        raise _is_none(path, f"it has {n} rows in {len(content):,} bytes, and room for {head['capacity']}")
    fields = ["is_deleted", "vector", "label"]  # a mark is in the count of links, whose first 2 bytes count
    offsets, formats = [2, vector_at, int(head["label_at"])], ["u1", ("<f4", size // 4), "<u8"]
    kind = np.dtype({"names": fields, "offsets": offsets, "formats": formats, "itemsize": int(head["size"])})
    base = HEAD.itemsize + int(head["size"]) * np.arange(n)
    levels, upper = _levels(path, content, end, n, M)
    links = Links(levels, int(head["entry"]), int(head["top"]), base, upper, 2 * M, M, counted="<u2")
    return HnswlibFile(content, head, content[HEAD.itemsize : end].view(kind), links)


def _levels(path: Path, content: np.ndarray, end: int, n: int, M: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of each row and where its links of level 1 are; they fill the rest of the file.

    Most rows are on level 0 and have a size of 0 there: one step goes to the next that is not 0.
    """
    levels, upper = np.zeros(n, np.int64), np.zeros(n, np.int64)
    words = content[end : end + (len(content) - end) // 4 * 4].view("<u4")
    not_zero, row, place = np.flatnonzero(words), 0, 0
    while row < n and place < len(words):
        found = np.searchsorted(not_zero, place)
        steps = min((not_zero[found] if found < len(not_zero) else len(words)) - place, n - row)
        row, place = row + steps, place + steps
        if row < n and place < len(words):
            levels[row], rest = divmod(int(words[place]), list_size(M))
            upper[row] = end + 4 * (place + 1)
            place += 1 + int(words[place]) // 4
            if rest:
                raise _is_none(path, "its links have no whole number of levels")
            row += 1
    if row != n or end + 4 * place != len(content):
        raise _is_none(path, "its links do not fill it")
    return levels, upper


def _is_none(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} is not an HNSW index of hnswlib, or damaged: {why}.")
