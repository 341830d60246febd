"""Points, as Qdrant calls rows: an id, vectors by name, a payload. The same in a collection and in a shard.

One vector of each point is moved; its other vectors and its payload go along as they are. A subclass reaches
the engine through a few verbs of its own (`_scroll`, `_retrieve`, `_upsert` and the like).
"""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from .store import ROWS, Batch, Mark, Store, StoreError, answers

METRIC = {"Euclid": "l2", "Cosine": "cosine", "Dot": "ip"}
TOLERANCE = {"float16": 1e-3}  # of the largest number of a vector: what the engine rounds
EXACT = ("float32", "float16")
SAMPLE = 100  # points whose payload tells the columns: Qdrant has no list of them


class Point(NamedTuple):
    """A row."""

    id: int | str
    vectors: dict[
        str, Any
    ]  # dense: a list; several for a point: a list of lists; sparse: the engine's object
    payload: dict[str, Any]


def as_point(record: Any) -> Point:
    """A record of the engine; a vector that has no name is called ""."""
    vectors = record.vector or {}
    id = str(record.id) if isinstance(record.id, UUID) else record.id
    return Point(id, vectors if isinstance(vectors, dict) else {"": vectors}, record.payload or {})


def point_id(value: Any) -> int | str | None:
    """An id as Qdrant spells it: a number from 0 to 2⁶⁴ − 1 or a UUID; None for what can be no id."""
    if isinstance(value, int | np.integer):
        return int(value) if 0 <= value < 2**64 else None
    try:
        return str(UUID(str(value)))
    except ValueError:
        return None


def as_ids(values: Sequence[int | str]) -> np.ndarray:
    """Ids as an array: int64 where all of them fit, else objects; (n,)."""
    if all(isinstance(value, int) and value < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    return ids


# x / ‖x‖
def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1 along the last axis, float32; a zero stays one."""
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    return np.asarray(wide / np.where(norms > 0, norms, 1), dtype=np.float32)


def numbers(vector: Any) -> list[np.ndarray]:
    """What a vector consists of: an array, or places and values of a sparse one, by place."""
    if not hasattr(vector, "indices"):
        return [np.asarray(vector, dtype=np.float32)]
    order = np.argsort(vector.indices)
    return [np.asarray(vector.indices)[order], np.asarray(vector.values, dtype=np.float32)[order]]


def fingerprint(point: Point) -> int:
    """64 bits that differ between points that differ."""
    told = json.dumps([point.id, point.payload, sorted(point.vectors)], sort_keys=True)
    digest = hashlib.blake2b(told.encode(), digest_size=8)
    for name in sorted(point.vectors):
        for part in numbers(point.vectors[name]):
            digest.update(part.tobytes())
    return int.from_bytes(digest.digest(), "little")


def value_at(payload: dict[str, Any], column: str) -> Any:
    """A value of a payload by its key, or by keys within keys as "meta.lang"; None where it has none."""
    if column in payload:
        return payload[column]
    first, _, rest = column.partition(".")
    inner = payload.get(first)
    return value_at(inner, rest) if rest and isinstance(inner, dict) else None


def columns_of(payload: dict[str, Any]) -> Iterator[str]:
    """Keys of a payload, those within others as "meta.lang"."""
    for key, value in payload.items():
        if isinstance(value, dict) and value:
            yield from (f"{key}.{inner}" for inner in columns_of(value))
        else:
            yield key


@dataclass(frozen=True)
class Layout:
    """The dense vectors of a collection, and which of them is moved."""

    name: str  # "" where it has none
    dense: dict[str, dict[str, Any]]  # by name, the parameters as Qdrant writes them in JSON
    metric: str

    @staticmethod
    def choose(
        store: str, dense: dict[str, dict[str, Any]], asked: str | None, metric: str | None
    ) -> "Layout":
        """The layout where one vector can be meant; StoreError that names those that can be asked for."""
        known = [name for name, params in dense.items() if not params.get("multivector_config")]
        if not known:
            raise StoreError(
                f"{store} has only vectors that cannot be moved: sparse, or several for a point."
            )
        told = ", ".join(map(repr, known)) if known != [""] else "one without a name: leave it out"
        if asked is not None and asked not in known:
            raise StoreError(f"{store} has no dense vector {asked!r} that could be moved; it has {told}.")
        if asked is None and len(known) > 1:
            raise StoreError(f"{store} has several vectors; say which is to be moved: {told}.")
        name = known[0] if asked is None else asked
        own = METRIC.get(dense[name]["distance"])
        if own is None:
            raise StoreError(f"{store} compares by {dense[name]['distance']}; known are {', '.join(METRIC)}.")
        if metric not in (None, own):
            raise StoreError(f"{store} compares by {own}; got metric={metric!r}. Leave it out.")
        return Layout(name, dense, own)

    @property
    def dimension(self) -> int:
        return int(self.dense[self.name]["size"])

    @property
    def dtype(self) -> str:
        return str(self.dense[self.name].get("datatype") or "float32")

    @property
    def is_exact(self) -> bool:
        """Whether vectors come back as they went in. A quantised copy beside them takes nothing from that."""
        types = [params.get("datatype") or "float32" for params in self.dense.values()]
        return self.dtype in EXACT and all(kind in (*EXACT, "uint8") for kind in types)

    def agrees(self, held: Point | None, wanted: Point) -> bool:
        """Whether two points are the same, up to what the engine rounds."""
        if held is None or held.payload != wanted.payload or held.vectors.keys() != wanted.vectors.keys():
            return False
        return all(self._is_like(name, held.vectors[name], wanted.vectors[name]) for name in wanted.vectors)

    def _is_like(self, name: str, one: Any, other: Any) -> bool:
        params = self.dense.get(name, {})
        for a, b in zip(numbers(one), numbers(other), strict=True):
            if a.shape != b.shape:
                return False
            if params.get("distance") == "Cosine":  # of which the engine keeps the direction
                a, b = unit(a), unit(b)
            rounded = TOLERANCE.get(params.get("datatype") or "", 1e-5)
            if a.size and np.abs(a - b).max() > rounded * np.abs(b).max():
                return False
        return True

    def with_moved(self, point: Point, moved: np.ndarray) -> Point:
        """A point with its vector in another place, (d,); NaN takes it away."""
        vectors = {name: vector for name, vector in point.vectors.items() if name != self.name}
        if not np.isnan(moved).any():
            vectors[self.name] = moved.tolist()
        return point._replace(vectors=vectors)


class PointStore(Store):
    """Points in an engine of Qdrant."""

    keeps_unit = True  # vectors of cosine come at length 1
    page = ROWS  # points of a request, at most
    vector: str | None
    metric: str | None

    # --- what an engine does -------------------------------------------------------------------------------

    @abstractmethod
    def _dense(self) -> dict[str, dict[str, Any]]:
        """Parameters of its dense vectors by name, as Qdrant writes them in JSON."""

    @abstractmethod
    def _scroll(self, offset: Any, size: int, is_whole: bool) -> tuple[list[Any], Any]:
        """Some records from an id on, with vectors and payload or bare; where to go on, None at the end."""

    @abstractmethod
    def _retrieve(self, ids: list[int | str], is_whole: bool) -> list[Any]:
        """The records of these ids that are there."""

    @abstractmethod
    def _nearest(self, queries: list[list[float]], k: int, name: str) -> list[list[Any]]:
        """Ids of the k nearest to each query."""

    @abstractmethod
    def _upsert(self, points: list[Point]) -> None:
        """Put points in the place of those with the same id; they are there when it returns."""

    @abstractmethod
    def _put_mark(self, mark: Mark) -> None:
        """Set the mark of a store that is there."""

    # --- to read -------------------------------------------------------------------------------------------

    def state(self) -> str:
        """The number of points and a sum over all of them, in no order."""
        count = total = 0
        for points in self._pages(ROWS):
            count, total = count + len(points), total + sum(map(fingerprint, points))
        return f"{count}-{total % 2**64:016x}"

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        layout = self._layout()
        for points in self._pages(size):
            yield _batch(points, columns, layout)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        asked = [point_id(value) for value in ids]
        held = self._held(asked)
        return _batch([held[id] for id in asked if id is not None and id in held], columns, self._layout())

    def holds(self, ids: np.ndarray) -> np.ndarray:
        asked = [point_id(value) for value in ids.tolist()]
        held = self._held(asked, is_whole=False)
        return np.array([id in held for id in asked], dtype=bool)

    def ids(self) -> Iterator[np.ndarray]:
        for points in self._pages(ROWS, is_whole=False):
            yield as_ids([point.id for point in points])

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        name, found = self._layout().name, []
        for start in range(0, len(queries), self.page):
            part = np.asarray(queries[start : start + self.page], dtype=np.float32).tolist()
            found += [
                [str(id) if isinstance(id, UUID) else id for id in row]
                for row in self._nearest(part, k, name)
            ]
        return answers(found, k)

    def _layout(self) -> Layout:
        return Layout.choose(self.name, self._dense(), self.vector, self.metric)

    def _columns(self) -> set[str]:
        records, _ = self._scroll(None, SAMPLE, True)
        return {column for record in records for column in columns_of(record.payload or {})}

    def _pages(self, size: int, *, is_whole: bool = True) -> Iterator[list[Point]]:
        """All points, some at a time; bare ones have neither vectors nor a payload."""
        offset = None
        while True:
            records, offset = self._scroll(offset, min(size, self.page), is_whole)
            if records:
                yield [as_point(record) for record in records]
            if offset is None:
                return

    def _held(self, ids: Sequence[int | str | None], *, is_whole: bool = True) -> dict[int | str, Point]:
        asked = [id for id in ids if id is not None]
        held: dict[int | str, Point] = {}
        for start in range(0, len(asked), self.page):
            points = map(as_point, self._retrieve(asked[start : start + self.page], is_whole))
            held |= {point.id: point for point in points}
        return held

    # --- to build beside it --------------------------------------------------------------------------------

    def stale(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        layout, held = self._layout(), self._held([point.id for point in batch.rows])
        wanted = map(layout.with_moved, batch.rows, moved)
        return np.array([not layout.agrees(held.get(point.id), point) for point in wanted], dtype=bool)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        wanted = list(map(self._layout().with_moved, batch.rows, moved))
        for start in range(0, len(wanted), self.page):
            self._upsert(wanted[start : start + self.page])

    def _check_unchanged(self, green: Any) -> Mark:
        """The mark of green, where it was made from what this store is now."""
        mark: Mark = green.mark()
        if self.state() != mark.state:
            raise StoreError(f"{self.name} changed since {green.name} was made. Apply again, then promote.")
        return mark


def _batch(points: list[Point], columns: Sequence[str], layout: Layout) -> Batch:
    empty = [np.nan] * layout.dimension
    vectors = np.array([point.vectors.get(layout.name, empty) for point in points], dtype=np.float32)
    vectors = vectors.reshape(len(points), layout.dimension)
    vectors = unit(vectors) if layout.metric == "cosine" else vectors
    values = {column: [value_at(point.payload, column) for point in points] for column in columns}
    return Batch(as_ids([point.id for point in points]), vectors, values, points)
