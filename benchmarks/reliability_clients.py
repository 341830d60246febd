"""Programs that use a store while it is moved: they ask by the store's own library, and note every answer.

A client is a function of what a user types for the store that returns a function without arguments, which
asks once. Files without a search of their own are read: a thousand rows, wherever the name leads.
"""

import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FEW, PAGE = 1000, 8192  # rows of an answer, and rows that are compared at a time
PAUSE = 0.001  # seconds between two questions
Ask = Callable[[], Any]


def _column(table: Any, name: str = "vector") -> np.ndarray:
    """Return the vectors of an Arrow table."""
    column = table[name].combine_chunks()
    column = column.chunk(0) if hasattr(column, "chunk") else column
    return column.values.to_numpy().reshape(len(table), -1)


# --- all rows, front to back: (ids, vectors) ----------------------------------------------------------------


def npy_rows(source: str) -> Iterator[Any]:
    yield from _pages(np.load(source, mmap_mode="r"))


def npz_rows(source: str) -> Iterator[Any]:
    with np.load(source) as held:
        yield from _pages(held["vectors"])


def hdf5_rows(source: str) -> Iterator[Any]:
    with import_module("h5py").File(source) as file:
        yield from _pages(file["train"])


def _pages(matrix: Any, first: int = 0) -> Iterator[Any]:
    for start in range(0, len(matrix), PAGE):
        rows = np.asarray(matrix[start : start + PAGE])
        yield np.arange(first + start, first + start + len(rows)), rows


def parquet_rows(source: str) -> Iterator[Any]:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    for file in sorted(Path(source).iterdir()) if Path(source).is_dir() else [source]:
        for batch in parquet.ParquetFile(file).iter_batches(PAGE):
            table = arrow.Table.from_batches([batch])
            yield table["id"].to_numpy(), _column(table)


def arrow_rows(source: str) -> Iterator[Any]:
    table = import_module("pyarrow.feather").read_table(source, memory_map=True)
    for start in range(0, len(table), PAGE):
        part = table.slice(start, PAGE)
        yield part["id"].to_numpy(), _column(part)[: len(part)]


def faiss_rows(source: str) -> Iterator[Any]:
    index = import_module("faiss").read_index(source)
    if hasattr(index, "make_direct_map"):
        index.make_direct_map()
    for start in range(0, index.ntotal, PAGE):
        rows = index.reconstruct_n(start, min(PAGE, index.ntotal - start))
        yield np.arange(start, start + len(rows)), rows


def lance_rows(source: str) -> Iterator[Any]:
    arrow = import_module("pyarrow")
    for batch in _lance(source).search(None).limit(10**9).to_batches(PAGE):
        table = arrow.Table.from_batches([batch])
        yield table["id"].to_numpy(), _column(table)


def _lance(source: str) -> Any:
    folder, _, table = source.removeprefix("lancedb:").partition("#")
    return import_module("lancedb").connect(folder).open_table(table)


def pg_rows(source: str) -> Iterator[Any]:
    with _pg(source) as connection, connection.cursor("all") as cursor:
        cursor.execute("SELECT id, embedding::text FROM items")
        while rows := cursor.fetchmany(PAGE):
            yield np.array([i for i, _ in rows]), np.array([json.loads(v) for _, v in rows], np.float32)


def _pg(source: str) -> Any:
    return import_module("psycopg").connect(source.partition("#")[0])


def edge_rows(source: str) -> Iterator[Any]:
    edge, offset = import_module("qdrant_edge"), None
    shard = edge.EdgeShard.load(source.removeprefix("qdrant-edge:"))
    while True:
        wanted = edge.ScrollRequest(offset=offset, limit=PAGE, with_payload=False, with_vector=True)
        records, offset = shard.scroll(wanted)
        vectors = [record.vector for record in records]
        yield np.array([record.id for record in records]), np.array(vectors, np.float32)
        if offset is None:
            break
    shard.close()


# --- one answer --------------------------------------------------------------------------------------------


def first_rows(read: Callable[[str], Iterator[Any]]) -> Callable[[str, np.ndarray], Ask]:
    """Return a client that opens a file anew for each answer, and reads its first rows."""

    def client(source: str, query: np.ndarray) -> Ask:
        def ask() -> bytes:
            return np.ascontiguousarray(next(read(source))[1][:FEW]).tobytes()

        return ask

    return client


def npz_client(source: str, query: np.ndarray) -> Ask:
    def ask() -> bytes:
        with zipfile.ZipFile(source) as archive, archive.open("vectors.npy") as member:
            return member.read(FEW * query.shape[0] * 4)

    return ask


def faiss_client(source: str, query: np.ndarray) -> Ask:
    """Keep the index, and read it again when the name leads to another file."""
    faiss, held = import_module("faiss"), {}

    def ask() -> Any:
        number = os.stat(source).st_ino
        if number not in held:
            held.clear()
            held[number] = faiss.read_index(source)
        return tuple(held[number].search(query[None], 10)[1][0].tolist())

    return ask


def lance_client(source: str, query: np.ndarray) -> Ask:
    def ask() -> Any:
        return tuple(_lance(source).search(query).limit(10).to_arrow()["id"].to_pylist())

    return ask


def pg_client(source: str, query: np.ndarray) -> Ask:
    connection = _pg(source)
    connection.autocommit = True
    text = str(query.tolist())

    def ask() -> Any:
        nearest = "SELECT id FROM items ORDER BY embedding <-> %s::vector LIMIT 10"
        return tuple(i for (i,) in connection.execute(nearest, [text]))

    return ask


def edge_client(source: str, query: np.ndarray) -> Ask:
    """Open the shard, ask and close it, as one process at a time can have it open."""
    edge = import_module("qdrant_edge")

    def ask() -> Any:
        shard = edge.EdgeShard.load(source.removeprefix("qdrant-edge:"))
        try:
            nearest = edge.Query.Nearest(query.tolist())
            return tuple(point.id for point in shard.query(edge.QueryRequest(limit=10, query=nearest)))
        finally:
            shard.close()

    return ask


def keep_asking(client: Any, source: str, query: np.ndarray, stop: Any, ready: Any, pipe: Any) -> None:
    """Ask until told to stop; send the moments of all answers, different answers, and what failed."""
    ask, moments, answers, errors = None, [], {}, []
    while not stop.is_set():
        try:
            ask = ask or client(source, query)
            answer = ask()
            answers[answer] = answers.get(answer, 0) + 1
            moments.append(time.monotonic())
            ready.set()
        except Exception as error:  # a store that does not answer is what is looked for
            errors.append(f"{type(error).__name__}: {error}")
            ask = None
        time.sleep(PAUSE)
    pipe.send({"moments": moments, "different": len(answers), "errors": len(errors), "first": errors[:1]})
