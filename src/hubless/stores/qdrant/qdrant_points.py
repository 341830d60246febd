"""Points, as Qdrant calls rows: an id, vectors by name, a payload; and what all stores of points share.

One vector of each point is moved; its other vectors and its payload are copied as they are.
"""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from ..checks import choose_vectors, pad_ids
from ..store import ROWS, Batch, Facts, Mark, Store, StoreError, tolerance

METRIC = {"Euclid": "l2", "Cosine": "cosine", "Dot": "ip"}
EXACT = ("float32", "float16")
SAMPLE = 100  # points whose payload shows the columns: Qdrant has no list of them


class Point(NamedTuple):
    """A row."""

    id: int | str
    # by name; dense: a list; several for a point: a list of lists; sparse: an object of the engine
    vectors: dict[str, Any]
    payload: dict[str, Any]

    @staticmethod
    def of(record: Any) -> "Point":
        """Return a record of the engine as a point; a vector that has no name is called ""."""
        vectors = record.vector or {}
        vectors = vectors if isinstance(vectors, dict) else {"": vectors}
        return Point(plain_id(record.id), vectors, record.payload or {})

    def as_written(self) -> dict[str, Any]:
        """Return the arguments by which an engine makes its own object of this point."""
        vector = self.vectors[""] if self.vectors.keys() == {""} else self.vectors
        return {"id": self.id, "vector": vector, "payload": self.payload}


def plain_id(id: Any) -> int | str:
    """Return an id of the engine as a number or a text."""
    return str(id) if isinstance(id, UUID) else id


def point_id(value: Any) -> int | str | None:
    """Return an id as Qdrant spells it: a number from 0 to 2⁶⁴ − 1 or a UUID; None for an invalid id."""
    if isinstance(value, int | np.integer):
        return int(value) if 0 <= value < 2**64 else None
    try:
        return str(UUID(str(value)))
    except ValueError:
        return None


def point_ids(points: Sequence[Point]) -> np.ndarray:
    """Return ids as an array: int64 where all of them fit, else objects; (n,)."""
    ids = [point.id for point in points]
    are_small = all(isinstance(id, int) and id < 2**63 for id in ids)
    return np.array(ids, dtype=np.int64 if are_small else object)


# x / ‖x‖
def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1 along the last axis, float32; a zero stays one."""
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    return np.asarray(wide / np.where(norms > 0, norms, 1), dtype=np.float32)


def numbers(vector: Any) -> list[np.ndarray]:
    """Return the numbers of a vector: one array; of a sparse one, its indices and its values, by index."""
    if not hasattr(vector, "indices"):
        return [np.asarray(vector, dtype=np.float32)]
    order = np.argsort(vector.indices)
    return [np.asarray(vector.indices)[order], np.asarray(vector.values, dtype=np.float32)[order]]


def fingerprint(point: Point) -> int:
    """Return a hash of a point, 64 bits."""
    content = json.dumps([point.id, point.payload, sorted(point.vectors)], sort_keys=True)
    digest = hashlib.blake2b(content.encode(), digest_size=8)
    for name in sorted(point.vectors):
        for part in numbers(point.vectors[name]):
            digest.update(part.tobytes())
    return int.from_bytes(digest.digest(), "little")


def value_at(payload: dict[str, Any], column: str) -> Any:
    """Return a value of a payload by its key, or by nested keys such as "meta.lang"; None if missing."""
    if column in payload:
        return payload[column]
    first, _, rest = column.partition(".")
    inner = payload.get(first)
    return value_at(inner, rest) if rest and isinstance(inner, dict) else None


def columns_of(payload: dict[str, Any]) -> Iterator[str]:
    """Yield the keys of a payload, nested ones in the form "meta.lang"."""
    for key, value in payload.items():
        if isinstance(value, dict) and value:
            yield from (f"{key}.{inner}" for inner in columns_of(value))
        else:
            yield key


@dataclass(frozen=True)
class Layout:
    """The dense vectors of a collection, and which of them is moved."""

    name: str  # "" where it has none
    dense: dict[str, dict[str, Any]]  # by name: the parameters, as in Qdrant's JSON
    metric: str

    @staticmethod
    def choose(
        store: str, dense: dict[str, dict[str, Any]], requested: str | None, metric: str | None
    ) -> "Layout":
        """Choose the vector to move; StoreError, with the names of all vectors, where that is ambiguous."""
        known = [name for name, params in dense.items() if not params.get("multivector_config")]
        if not known:
            raise StoreError(
                f"{store} has only vectors that cannot be moved: sparse ones, or several in a point."
            )
        name = choose_vectors(store, known, requested)
        actual = METRIC.get(dense[name]["distance"])
        if actual is None:
            raise StoreError(f"{store} compares by {dense[name]['distance']}; expected {', '.join(METRIC)}.")
        if metric not in (None, actual):
            raise StoreError(f"{store} compares by {actual}; got metric={metric!r}. Leave it out.")
        return Layout(name, dense, actual)

    @property
    def dimension(self) -> int:
        """Length of the vector to move."""
        return int(self.dense[self.name]["size"])

    def facts(self, kind: str, count: int, index: str, columns: set[str]) -> Facts:
        """Return the facts of a collection; quantised copies beside its vectors are ignored."""
        types = {name: params.get("datatype") or "float32" for name, params in self.dense.items()}
        is_exact = types[self.name] in EXACT and set(types.values()) <= {*EXACT, "uint8"}
        return Facts(
            kind=kind,
            metric=self.metric,
            dimension=self.dimension,
            count=count,
            dtype=types[self.name],
            index=index,
            columns=tuple(sorted(columns)),
            is_exact=is_exact,
        )

    def agrees(self, stored: Point | None, wanted: Point) -> bool:
        """Say whether two points are equal, up to what the engine rounds."""
        if stored is None or stored.payload != wanted.payload or set(stored.vectors) != set(wanted.vectors):
            return False
        return all(self._is_like(name, stored.vectors[name], wanted.vectors[name]) for name in wanted.vectors)

    def _is_like(self, name: str, one: Any, other: Any) -> bool:
        params = self.dense.get(name, {})
        for a, b in zip(numbers(one), numbers(other), strict=True):
            if a.shape != b.shape:
                return False
            if params.get("distance") == "Cosine":  # the engine keeps only the direction
                a, b = unit(a), unit(b)
            limit = tolerance(params.get("datatype") or "float32")
            if a.size and np.abs(a - b).max() > limit * np.abs(b).max():
                return False
        return True

    def with_moved(self, point: Point, moved: np.ndarray) -> Point:
        """Return a point with its vector moved, (d,); without that vector where `moved` is NaN."""
        vectors = {name: vector for name, vector in point.vectors.items() if name != self.name}
        if not np.isnan(moved).any():
            vectors[self.name] = moved.tolist()
        return point._replace(vectors=vectors)


def batch_of(points: list[Point], columns: Sequence[str], layout: Layout) -> Batch:
    """Return points as a batch."""
    empty = [np.nan] * layout.dimension
    vectors = np.array([point.vectors.get(layout.name, empty) for point in points], dtype=np.float32)
    vectors = vectors.reshape(len(points), layout.dimension)
    vectors = unit(vectors) if layout.metric == "cosine" else vectors
    values = {column: [value_at(point.payload, column) for point in points] for column in columns}
    return Batch(point_ids(points), vectors, values, points)


class PointStore(Store):
    """Points in an engine of Qdrant, which a subclass reaches by a few methods (`_scroll` and the like)."""

    keeps_unit = True  # under cosine, vectors are returned with length 1
    page = ROWS  # points of a request, at most
    vector: str | None
    metric: str | None

    # --- what a subclass does ------------------------------------------------------------------------------

    @abstractmethod
    def _dense(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of its dense vectors by name, as Qdrant writes them in JSON."""

    @abstractmethod
    def _scroll(self, offset: Any, size: int, is_whole: bool) -> tuple[list[Any], Any]:
        """Return records from an id on, whole or only ids; and the next id, None at the end."""

    @abstractmethod
    def _retrieve(self, ids: list[int | str], is_whole: bool) -> list[Any]:
        """Return the records of these ids, without those that do not exist."""

    @abstractmethod
    def _nearest(self, queries: list[list[float]], k: int, name: str) -> list[list[Any]]:
        """Return ids of the k nearest to each query."""

    @abstractmethod
    def _upsert(self, points: list[Point]) -> None:
        """Write points over those with the same id; they can be read when it returns."""

    @abstractmethod
    def _payload_schema(self) -> dict[str, Any]:
        """Return the indexes of the payload by field."""

    @abstractmethod
    def _index_payload(self, field: str, schema: Any) -> None:
        """Create an index of the payload."""

    # --- reading -------------------------------------------------------------------------------------------

    def state(self) -> str:
        """Return the number of points and a sum over all of them, in any order."""
        count = total = 0
        for points in self._pages(ROWS):
            count, total = count + len(points), total + sum(map(fingerprint, points))
        return f"{count}-{total % 2**64:016x}"

    def batches(self, columns: Sequence[str] = (), size: int = ROWS) -> Iterator[Batch]:
        layout = self._layout()
        for points in self._pages(size):
            yield batch_of(points, columns, layout)

    def fetch(self, ids: Sequence[Any], columns: Sequence[str] = ()) -> Batch:
        wanted = [point_id(value) for value in ids]
        stored = self._stored(wanted)
        points = [stored[id] for id in wanted if id is not None and id in stored]
        return batch_of(points, columns, self._layout())

    def contains(self, ids: np.ndarray) -> np.ndarray:
        wanted = [point_id(value) for value in ids.tolist()]
        stored = self._stored(wanted, is_whole=False)
        return np.array([id in stored for id in wanted], dtype=bool)

    def ids(self) -> Iterator[np.ndarray]:
        for points in self._pages(ROWS, is_whole=False):
            yield point_ids(points)

    def search(self, queries: np.ndarray, k: int) -> np.ndarray:
        name, nearest = self._layout().name, []
        for start in range(0, len(queries), self.page):
            part = np.asarray(queries[start : start + self.page], dtype=np.float32).tolist()
            nearest += [list(map(plain_id, row)) for row in self._nearest(part, k, name)]
        return pad_ids(nearest, k)

    def _layout(self) -> Layout:
        return Layout.choose(self.name, self._dense(), self.vector, self.metric)

    has_fixed_columns = False  # each point has a payload of its own

    def _columns(self) -> set[str]:
        """Return the keys of payloads, as far as indexes and the first points show them."""
        records, _ = self._scroll(None, SAMPLE, True)
        shown = {column for record in records for column in columns_of(record.payload or {})}
        return shown | set(self._payload_schema())

    def _pages(self, size: int, *, is_whole: bool = True) -> Iterator[list[Point]]:
        """Yield all points, a page at a time; unless `is_whole`, without vectors and payloads."""
        offset = None
        while True:
            records, offset = self._scroll(offset, min(size, self.page), is_whole)
            if records:
                yield [Point.of(record) for record in records]
            if offset is None:
                return

    def _stored(self, ids: Sequence[int | str | None], *, is_whole: bool = True) -> dict[int | str, Point]:
        wanted = [id for id in ids if id is not None]
        stored: dict[int | str, Point] = {}
        for start in range(0, len(wanted), self.page):
            points = map(Point.of, self._retrieve(wanted[start : start + self.page], is_whole))
            stored |= {point.id: point for point in points}
        return stored

    # --- building green ------------------------------------------------------------------------------------

    def begin(self, blue: Any, mark: Mark) -> None:
        super().begin(blue, mark)
        existing = self._payload_schema()
        for field, index in blue._payload_schema().items():
            if field not in existing:
                self._index_payload(field, index.params or index.data_type)

    def outdated(self, batch: Batch, moved: np.ndarray) -> np.ndarray:
        layout, stored = self._layout(), self._stored([point.id for point in batch.rows])
        wanted = map(layout.with_moved, batch.rows, moved)
        return np.array([not layout.agrees(stored.get(point.id), point) for point in wanted], dtype=bool)

    def write(self, batch: Batch, moved: np.ndarray) -> None:
        wanted = list(map(self._layout().with_moved, batch.rows, moved))
        for start in range(0, len(wanted), self.page):
            self._upsert(wanted[start : start + self.page])
