"""Stores as their own clients see them: banking77 before and after, and a bulk load beside `apply`."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hubless import MoveLabeled
from hubless.neighbors.knn import exhaustive
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.repair.learn_index import fit_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from hubless.stores.sqlite_vec.vec_session import sqlite_module

from .index_data import LABEL, Labeled, banking77, folder_of
from .record import Options

SHAPE, TINY = (100_000, 384), (200, 8)
K = 10  # neighbours that vote
ITEMS = "classes.json"  # table of the classes, beside what keeps vectors alone


class Client(NamedTuple):
    """What is done without hubless."""

    load: Callable[..., str]  # folder, vectors, metric and the class of each → what hubless opens
    ask: Callable[[Path, np.ndarray, int], list[list[int]]]  # rows of the nearest vectors
    dump: Callable[[Path], Any]  # all that it serves


def _chroma(folder: Path) -> Any:
    return import_module("chromadb").PersistentClient(folder)


def chroma_load(folder: Path, X: np.ndarray, metric: str, classes: Sequence[str] | None = None) -> str:
    with _chroma(folder) as client:
        settings = {"hnsw": {"space": metric}}
        items = client.create_collection("items", configuration=settings, embedding_function=None)
        page = client.get_max_batch_size()
        for start in range(0, len(X), page):
            part = slice(start, min(start + page, len(X)))
            metadata = classes and [{LABEL: name} for name in classes[part]]
            items.add(ids=list(map(str, range(len(X))[part])), embeddings=X[part], metadatas=metadata)
    return f"chroma:{folder}#items"


def chroma_ask(folder: Path, queries: np.ndarray, k: int) -> list[list[int]]:
    with _chroma(folder) as client:
        items = client.get_collection("items", embedding_function=None)
        found = items.query(query_embeddings=queries, n_results=k, include=[])["ids"]
        return [[int(id) for id in row] for row in found]


def chroma_dump(folder: Path) -> Any:
    with _chroma(folder) as client:
        items = client.get_collection("items", embedding_function=None)
        got = items.get(include=["embeddings", "metadatas", "documents"])
        return [got["ids"], np.asarray(got["embeddings"]).tobytes(), got["metadatas"], got["documents"]]


def _vec(folder: Path) -> Any:
    """Connect to a file by the sqlite3 that can load sqlite-vec."""
    connection = sqlite_module().connect(str(folder / "items.db"))
    connection.enable_load_extension(True)
    import_module("sqlite_vec").load(connection)
    return connection


def vec_load(folder: Path, X: np.ndarray, metric: str, classes: Sequence[str] | None = None) -> str:
    names = ("id", "embedding") if classes is None else ("id", "embedding", LABEL)
    columns = f"id INTEGER PRIMARY KEY, embedding FLOAT[{X.shape[1]}] distance_metric={metric}"
    columns += "" if classes is None else f", {LABEL} TEXT"
    rows = zip(range(len(X)), (x.tobytes() for x in X), *(() if classes is None else (classes,)), strict=True)
    with closing(_vec(folder)) as database:
        database.execute(f"CREATE VIRTUAL TABLE items USING vec0({columns})")
        values = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO items ({', '.join(names)}) VALUES ({values})", rows)
        database.commit()
    return f"sqlite:{folder / 'items.db'}#items"


def vec_ask(folder: Path, queries: np.ndarray, k: int) -> list[list[int]]:
    nearest = "SELECT id FROM items WHERE embedding MATCH ? AND k = ? ORDER BY distance"
    with closing(_vec(folder)) as database:
        return [[i for (i,) in database.execute(nearest, [q.tobytes(), k])] for q in queries]


def vec_dump(folder: Path) -> Any:
    with closing(_vec(folder)) as database:
        return database.execute("SELECT * FROM items ORDER BY id").fetchall()


def _duck(folder: Path) -> Any:
    return import_module("duckdb").connect(str(folder / "items.duckdb"))


def duck_load(folder: Path, X: np.ndarray, metric: str, classes: Sequence[str] | None = None) -> str:
    arrow = import_module("pyarrow")
    vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(X.ravel()), X.shape[1])
    rows = arrow.table({"id": np.arange(len(X)), "embedding": vectors, LABEL: classes or [""] * len(X)})
    columns = f"id BIGINT PRIMARY KEY, embedding FLOAT[{X.shape[1]}], {LABEL} VARCHAR"
    with _duck(folder) as database:
        database.execute(f"CREATE TABLE items ({columns})")
        database.register("loaded", rows)
        database.execute("INSERT INTO items SELECT * FROM loaded")
    return f"duckdb:{folder / 'items.duckdb'}#items"


def duck_ask(folder: Path, queries: np.ndarray, k: int) -> list[list[int]]:
    """By the cosine distance, as banking77 is compared; all queries in one statement."""
    arrow = import_module("pyarrow")
    vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(queries.ravel()), queries.shape[1])
    distance = "array_cosine_distance(items.embedding, asked.vector)"
    nearest = f"SELECT place, min_by(id, {distance}, {k}) FROM asked, items GROUP BY place ORDER BY place"
    with _duck(folder) as database:
        database.register("asked", arrow.table({"place": np.arange(len(queries)), "vector": vectors}))
        return [near for _, near in database.execute(nearest).fetchall()]


def duck_dump(folder: Path) -> Any:
    with _duck(folder) as database:
        rows = database.sql("SELECT * FROM items ORDER BY id").to_arrow_table()
        vectors = rows.column("embedding").combine_chunks().flatten().to_numpy().tobytes()
        return rows.column("id").to_pylist(), vectors, rows.column(LABEL).to_pylist()


CLIENTS = {
    "Chroma, a folder": Client(chroma_load, chroma_ask, chroma_dump),
    "sqlite-vec": Client(vec_load, vec_ask, vec_dump),
    "DuckDB": Client(duck_load, duck_ask, duck_dump),
}


def measure(options: Options, clients: Mapping[str, Client] = CLIENTS) -> dict[str, Any]:
    """Return both parts for every client."""
    with folder_of("banking77", options.quick) as folder:
        data = banking77(folder)
        items = open_store(folder / "train_minilm_384.npy", items=folder / "train.csv", metric="cosine")
        model = fit_index(items, labels=LABEL)
        if model.moves_nothing:  # tiny data may be best as it is
            model = Repair(MoveLabeled(1.0).fit(data.items.vectors, data.items.columns[LABEL]), "cosine")
    return {
        name: {"banking77": _answers(client, model, data), "bulk": _bulk(client, options.quick)}
        for name, client in clients.items()
    }


def _answers(client: Client, model: Repair, data: Labeled) -> dict[str, Any]:
    """Accuracy on files, by exhaustive search, and through a client, before, after and after a rollback."""
    X, queries = (np.asarray(part.vectors, dtype=np.float32) for part in data)
    classes, truth = (list(map(str, part.columns[LABEL])) for part in data)
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        source = client.load(where, X, "cosine", classes)
        whole, steps = client.dump(where), {"before": client.ask(where, queries, K)}
        items = where / ITEMS
        # opened for each step: the client of Chroma allows one user of a folder at a time
        opened = partial(open_store, source, metric="cosine", items=items if items.exists() else None)
        apply_index(model, opened(), "moved")
        promote_index(opened(), "moved")
        steps["after"] = client.ask(where, queries, K)
        rollback_index(opened())
        steps["rolled back"] = client.ask(where, queries, K)
        is_same = client.dump(where) == whole
    moved = model.move(X, list(map(str, range(len(X)))), classes if model.columns else None)
    files = {
        step: exhaustive(queries, Z, K, "cosine").tolist() for step, Z in (("before", X), ("after", moved))
    }
    return {
        "items": len(X),
        "queries": len(queries),
        "accuracy": {step: _accuracy(rows, classes, truth) for step, rows in steps.items()},
        "accuracy on files": {step: _accuracy(rows, classes, truth) for step, rows in files.items()},
        "recall": {step: _recall(steps[step], rows) for step, rows in files.items()},
        "same bits after rollback": is_same and steps["rolled back"] == steps["before"],
    }


def _accuracy(rows: Sequence[Sequence[int]], classes: Sequence[str], truth: Sequence[str]) -> float:
    """Share of queries for which most of the nearest, or the nearest of a tie, are of their class."""
    votes = ([classes[i] for i in row] for row in rows)
    answers = (max(near, key=lambda name: (near.count(name), -near.index(name))) for near in votes)
    return float(np.mean([answer == right for answer, right in zip(answers, truth, strict=True)]))


def _recall(rows: Sequence[Sequence[int]], exact: Sequence[Sequence[int]]) -> float:
    return float(np.mean([len({*row} & {*best}) / K for row, best in zip(rows, exact, strict=True)]))


def _bulk(client: Client, is_quick: bool) -> dict[str, Any]:
    """Seconds of a bulk load of random vectors by the client, and of `apply` right after it."""
    n, d = TINY if is_quick else SHAPE
    X = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
    model = Repair(MoveLabeled(1.0).fit(X[:10_000], np.arange(min(n, 10_000)) % 10))
    with tempfile.TemporaryDirectory() as folder:
        marks = [perf_counter()]
        source = client.load(Path(folder), X, "l2")
        for step in (apply_index, promote_index, rollback_index):
            marks.append(perf_counter())
            store = open_store(source, metric="l2")
            arguments = {apply_index: (model, store, "moved"), promote_index: (store, "moved")}
            step(*arguments.get(step, (store,)))
        marks.append(perf_counter())
    seconds = dict(zip(("bulk load", "apply", "promote", "roll back"), np.diff(marks).tolist(), strict=True))
    return {"rows": n, "dimension": d, "seconds": seconds}
