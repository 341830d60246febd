"""The format of usearch's files, checked before the engine loads one: it believes what a file says.

In this order: the vectors, with their number and width before them; a head; the level of each row; and for
each row its key, its level and its links.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .hnsw_links import Links, gather, list_size, mapped
from .store import StoreError

START = 8  # bytes before the vectors: how many there are, and how many bytes each has
HEAD = np.dtype(
    [("magic", "S7"), ("version", "<u2", 3), ("metric", "S1")]
    + [(name, "u1") for name in ("scalar", "key", "slot")]
    + [(name, "<u8") for name in ("present", "removed", "dimension")]
    + [("multi", "u1"), ("unused", "V22")]
    + [(name, "<u8") for name in ("count", "connectivity", "base_connectivity", "top", "entry")]
)
NODE = np.dtype([("key", "<u8"), ("level", "<i2")])  # before its links
TYPES = (14, 15)  # of keys and of row numbers: u64 and u32
REMOVED = 2**64 - 1  # the key of a row that was removed
WIDEST = 1 << 16  # links of a row, at most
METRICS = {b"e": "l2", b"c": "cosine", b"i": "ip"}
BITS = 1  # the code of a scalar


class Scalar(NamedTuple):
    """A type of numbers."""

    dtype: str  # as `Facts` names it
    stored: str  # as NumPy reads it
    is_exact: bool = True


SCALARS = {  # by the code in a file
    10: Scalar("float64", "<f8"),
    11: Scalar("float32", "<f4"),
    12: Scalar("float16", "<f2"),
    4: Scalar("bfloat16", "<u2"),
    23: Scalar("int8", "i1", False),
    17: Scalar("uint8", "u1", False),
    **{code: Scalar("float8", "u1", False) for code in (5, 6, 7, 8)},  # e5m2, e4m3, e2m3, e3m2
}


class UsearchFile(NamedTuple):
    """A file whose parts are where its head says."""

    content: np.ndarray  # all of its bytes, mapped
    head: Any  # of HEAD
    metric: str
    scalar: Scalar
    vectors: np.ndarray  # (n, d), as they are stored
    keys: np.ndarray  # (n,)
    links: Links


def read_usearch(path: Path) -> UsearchFile:
    """Read a file, without its links; StoreError where it is damaged or of another kind."""
    content = mapped(path)
    n, width = content[:START].view("<u4").tolist() if len(content) >= START else (0, 0)
    place = START + n * width
    if len(content) < place + HEAD.itemsize:
        raise _is_none(path, "it is too short")
    head = np.array(content[place : place + HEAD.itemsize]).view(HEAD)[0]
    metric, scalar = _kinds(path, head)
    d = int(head["dimension"])
    rooms = int(head["base_connectivity"]), int(head["connectivity"])
    if head["count"] != n or d < 1 or width != d * np.dtype(scalar.stored).itemsize:
        raise _is_none(path, f"it has {n} vectors of {width} bytes, and {head['count']} rows of {d} numbers")
    if not WIDEST >= rooms[0] >= rooms[1] >= 2:
        raise _is_none(path, f"its rows have {rooms[0]} and {rooms[1]} links")
    levels, starts = _rows(path, content, place + HEAD.itemsize, n, rooms)
    nodes = gather(content, starts, NODE.itemsize).view(NODE).reshape(n)
    if (nodes["level"] != levels).any():
        raise _is_none(path, "its rows have two levels each")
    base = starts + NODE.itemsize
    links = Links(levels, int(head["entry"]), int(head["top"]), base, base + list_size(rooms[0]), *rooms)
    vectors = content[START:place].view(scalar.stored).reshape(n, d)
    return UsearchFile(content, head, metric, scalar, vectors, nodes["key"], links)


def _rows(
    path: Path, content: np.ndarray, place: int, n: int, rooms: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of each row and where the row is, in bytes; they fill the rest of the file."""
    first = place + 2 * n
    if len(content) < first:
        raise _is_none(path, "it is too short")
    levels = np.array(content[place:first]).view("<i2")
    base, upper = map(list_size, rooms)
    sizes = NODE.itemsize + base + levels.astype(np.int64) * upper
    if levels.min(initial=0) < 0 or first + int(sizes.sum()) != len(content):
        raise _is_none(path, "its rows do not fill it")
    return levels, first + np.cumsum(sizes) - sizes


def _kinds(path: Path, head: Any) -> tuple[str, Scalar]:
    """Return the metric and the type of numbers that a head names."""
    major, minor, _ = head["version"].tolist()
    if head["magic"] != b"usearch" or (head["key"], head["slot"]) != TYPES:
        raise _is_none(path, "it has another head than usearch for Python writes")
    if major != 2 or minor < 10:
        raise StoreError(f"{path} was written by usearch {major}.{minor}. Load and save it with a later 2.x.")
    if head["scalar"] == BITS:
        raise StoreError(
            f"{path} is a usearch index of bits; hubless moves vectors of floating-point numbers. Move those "
            "that the bits were made from, and build the index again."
        )
    metric, scalar = METRICS.get(head["metric"]), SCALARS.get(int(head["scalar"]))
    if metric is None or scalar is None:
        what = f"metric {head['metric'].decode('latin-1')!r}" if metric is None else f"type {head['scalar']}"
        raise StoreError(
            f"{path} has the usearch {what}; expected the metric l2sq, cos or ip, and floating-point numbers."
        )
    return metric, scalar


def _is_none(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} is not a usearch index, or damaged: {why}.")
