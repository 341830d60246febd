"""An apply that is killed, interrupted, run twice at once or out of disk, for every kind of store.

Each kind says how it is made and looked at, by its own library; what is required of it is the same for all.
Processes are ended at moments that do not depend on the speed of the machine (see `fault_driver.py`), and a
few times by the clock, wherever they are then.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import faiss
import lancedb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from qdrant_client import QdrantClient, models

import hubless
from hubless.corrections import NNN
from hubless.movers import Stay
from hubless.repair.apply import promote_index, rollback_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from tests.stores.store_contract import model_between, model_for, sample

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[2]
MOMENTS = 12  # of all, spread evenly from the first to the last
BY_CLOCK = 3


def digest(*paths):
    """Of every byte of files and folders."""
    found = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def remove(*paths):
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


# --- kinds --------------------------------------------------------------------------------------------------


class Npy:
    """A matrix in a file. The other kinds of files differ in what is below."""

    rows, batch, target = 200, 40, "moved.npy"

    def __init__(self, folder, address, X):
        self.folder, self.X, self.options = folder, X, {"metric": "l2"}
        self.blue, self.green = folder / f"items{Path(self.target).suffix}", folder / self.target
        self.fill()
        self.source, self.before = str(self.blue), self.seen()

    def fill(self):
        np.save(self.blue, self.X)

    def seen(self):
        """All that blue is."""
        return digest(self.blue)

    def content(self):
        """Ids and vectors of green."""
        moved = np.load(self.green)
        return range(len(moved)), moved

    def left(self):
        """What is there that should not be."""
        made = {self.green.name, f"{self.green.name}.hubless.json"} if self.green.exists() else set()
        return {path.name for path in self.folder.iterdir()} - {self.blue.name, "model"} - made

    def clear(self):
        remove(self.green, self.folder / f"{self.green.name}.hubless.json")

    def served(self, queries):
        """Ids of the nearest, under the name that serves."""
        X = np.load(self.blue)
        return [np.argsort(((X - q) ** 2).sum(axis=1), kind="stable")[:5].tolist() for q in queries]

    def close(self):
        """Let go of it."""


class Parts(Npy):
    """A folder of Parquet files."""

    rows, batch, target = 120, 20, "moved"

    def fill(self):
        self.blue.mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(self.X)), 4)):
            column = pa.FixedSizeListArray.from_arrays(pa.array(self.X[rows].reshape(-1)), self.X.shape[1])
            pq.write_table(pa.table({"id": rows, "v": column}), self.blue / f"{number}.parquet")

    def content(self):
        table = pq.read_table(self.green)
        assert sorted(os.listdir(self.green)) == [f"{number}.parquet" for number in range(4)]
        return table["id"].to_pylist(), np.array(table["v"].to_pylist())

    def served(self, queries):
        table = pq.read_table(self.blue)
        ids, X = table["id"].to_numpy(), np.array(table["v"].to_pylist(), dtype=np.float32)
        return [ids[np.argsort(((X - q) ** 2).sum(axis=1), kind="stable")[:5]].tolist() for q in queries]


class Faiss(Npy):
    """An HNSW index."""

    target = "moved.faiss"

    def fill(self):
        index = faiss.IndexHNSWFlat(self.X.shape[1], 16)
        index.add(self.X)
        faiss.write_index(index, str(self.blue))
        self.options = {}

    def content(self):
        index = faiss.read_index(str(self.green))
        assert index.hnsw.nb_neighbors(1) == 16
        return range(index.ntotal), faiss.downcast_index(index).reconstruct_n(0, index.ntotal)

    def served(self, queries):
        return faiss.read_index(str(self.blue)).search(queries, 5)[1].tolist()


class Lance(Npy):
    """A table of LanceDB with an index of its ids."""

    rows, batch, target = 60, 20, "moved"

    def fill(self):
        self.database = lancedb.connect(str(self.folder / "db"))
        column = pa.FixedSizeListArray.from_arrays(pa.array(self.X.reshape(-1)), self.X.shape[1])
        self.database.create_table("items", pa.table({"id": range(len(self.X)), "vector": column}))
        self.blue, self.green = (self.folder / "db" / f"{name}.lance" for name in ("items", "moved"))
        self.options = {}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = f"lancedb:{self.folder}/db#items"

    def content(self):
        table = self.database.open_table("moved").to_arrow()
        return table["id"].to_pylist(), np.array(table["vector"].to_pylist())

    def left(self):
        return set(os.listdir(self.folder / "db")) - {"items.lance", "moved.lance"}

    def clear(self):
        self.database.drop_table("moved", ignore_missing=True)

    def served(self, queries):
        table = self.database.open_table("items")
        return [[row["id"] for row in table.search(q).limit(5).to_list()] for q in queries]


class Pgvector(Npy):
    """A table of PostgreSQL with an HNSW index."""

    rows, batch, target = 60, 20, "moved"

    def __init__(self, folder, address, X):
        self.connection = psycopg.connect(address, autocommit=True)
        super().__init__(folder, address, X)
        self.source = f"{address}#items"

    def ask(self, query, *values):
        cursor = self.connection.execute(query, values)
        return cursor.fetchall() if cursor.description else []

    def fill(self):
        self.ask(f"CREATE TABLE items (id bigint PRIMARY KEY, v vector({self.X.shape[1]}))")
        rows = [(place, str(x.tolist())) for place, x in enumerate(self.X)]
        self.connection.cursor().executemany("INSERT INTO items VALUES (%s, %s)", rows)
        self.ask("CREATE INDEX ON items USING hnsw (v vector_l2_ops)")
        self.options = {}

    def seen(self):
        return self.ask("SELECT ctid::text, xmin::text, id, v::text FROM items ORDER BY id")

    def content(self):
        rows = self.ask("SELECT id, v::text FROM moved")
        assert len(self.ask("SELECT indexname FROM pg_indexes WHERE tablename = 'moved'")) == 2
        return [i for i, _ in rows], np.array([json.loads(v) for _, v in rows])

    def left(self):
        schemas = ["pg_catalog", "information_schema", "pg_toast"]
        query = "SELECT relname FROM pg_class WHERE NOT relnamespace::regnamespace::text = ANY(%s)"
        found = {name for (name,) in self.ask(query, schemas)}
        return found - {f"{table}{end}" for table in ("items", "moved") for end in ("", "_pkey", "_v_idx")}

    def clear(self):
        self.ask("DROP TABLE IF EXISTS moved")

    def served(self, queries):
        query = "SELECT id FROM items ORDER BY v <-> %s::vector LIMIT 5"
        return [[i for (i,) in self.ask(query, str(q.tolist()))] for q in queries]

    def close(self):
        self.connection.close()


class Qdrant(Npy):
    """A collection in a folder, behind an alias."""

    rows, batch, target = 30, 10, "moved"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = f"qdrant:{self.folder}/db#served"

    def open(self):
        return QdrantClient(path=str(self.folder / "db"))

    def fill(self):
        client = self.open()
        size = models.VectorParams(size=self.X.shape[1], distance=models.Distance.EUCLID)
        client.create_collection("items", vectors_config=size)
        points = [models.PointStruct(id=i, vector=x.tolist(), payload={"n": i}) for i, x in enumerate(self.X)]
        client.upsert("items", points)
        alias = models.CreateAlias(collection_name="items", alias_name="served")
        client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        client.close()
        self.options, self.blue = {}, self.folder / "db" / "collection" / "items"

    def content(self):
        client = self.open()
        points, _ = client.scroll("moved", limit=10**4, with_vectors=True, with_payload=True)
        assert [point.payload["n"] for point in points] == [point.id for point in points]
        client.close()
        return [point.id for point in points], np.array([point.vector for point in points])

    def left(self):
        folder = self.folder / "db"
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        tables = {f"collection/{name}/storage.sqlite" for name in ("items", "moved")}
        return found - tables - {".lock", "meta.json"}  # the engine's own

    def clear(self):
        client = self.open()
        client.delete_collection("moved")
        client.close()

    def served(self, queries):
        client = self.open()
        found = [
            [p.id for p in client.query_points("served", query=q.tolist(), limit=5).points] for q in queries
        ]
        client.close()
        return found


KINDS = {kind.__name__.lower(): kind for kind in (Npy, Parts, Faiss, Lance, Pgvector, Qdrant)}
FILES = ["npy", "parts", "faiss"]


@pytest.fixture(scope="module")
def driver():
    """The process that applies, for all tests: it takes seconds to start."""
    packages = ["pyarrow.dataset", "pyarrow.parquet", "faiss", "lancedb", "psycopg.sql", "qdrant_client"]
    command = [sys.executable, "-m", "tests.repair.fault_driver", *packages]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as driver:
        yield driver


class Trial:
    """A store of a kind, and a model for it."""

    def __init__(self, kind, driver, folder, address, width=None):
        _, X, y, _ = sample(kind.rows, 16)
        model = self.model(X, y, width)
        hubless.save(model, folder / "model")
        self.kind, self.driver, self.folder = kind(folder, address, X), driver, folder
        self.moved, self.queries = model.move(X), X[:5] + 0.1
        self.answers = self.kind.served(self.queries)

    def model(self, X, y, width):
        """The paper's mover, a map to another width, or a correction, without or with one more column."""
        if width in ("corrected", "corrected by a column"):
            rng, column = np.random.default_rng(0), width != "corrected"
            queries = (X + 2 * rng.standard_normal(X.shape)).astype(np.float32)
            correction = NNN(0.5, 4, metric="l2", column=column).fit(queries, X)
            return Repair(Stay().fit(X, y), correction=correction)
        return model_for(X, y, "l2") if width is None else model_between(X, int(width), "l2")[0]

    def apply(self, **job):
        """Return what became of an apply, or of two at once."""
        kind = self.kind
        job |= {"source": kind.source, "options": kind.options, "model": str(self.folder / "model")}
        self.driver.stdin.write(json.dumps({**job, "target": kind.target, "size": kind.batch}) + "\n")
        self.driver.stdin.flush()
        results = json.loads(self.driver.stdout.readline())
        return results if job.get("twice") else results[0]

    def resume(self):
        """The same command once more. A server may need a moment to see that its client is gone."""
        until = time.monotonic() + 120
        while (done := self.apply())["code"] and "another process is building" in done["said"][-1]:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert done["code"] == 0, done

    def check_blue(self):
        assert self.kind.seen() == self.kind.before
        assert self.kind.served(self.queries) == self.answers

    def check_green(self):
        """Every id once, with its vector moved, and nothing else left behind."""
        ids, vectors = self.kind.content()
        assert sorted(ids) == [*range(self.kind.rows)]
        np.testing.assert_allclose(vectors[np.argsort(ids)], self.moved, rtol=1e-5, atol=1e-6)
        assert self.kind.left() == set()


@pytest.fixture
def trial(request, driver, tmp_path):
    name, _, width = request.param.partition(" to ")
    kind = KINDS[name]
    address = request.getfixturevalue("address") if kind is Pgvector else None
    trial = Trial(kind, driver, tmp_path, address, width or None)
    yield trial
    trial.kind.close()


every = pytest.mark.parametrize("trial", KINDS, indirect=True)
files = pytest.mark.parametrize("trial", FILES, indirect=True)
every_to_another_width = pytest.mark.parametrize(
    "trial", [f"{name} to {width}" for name, width in zip(KINDS, [21, 5] * 3, strict=True)], indirect=True
)

every_corrected = pytest.mark.parametrize(
    "trial",
    [f"{name} to {how}" for name in KINDS for how in ("corrected", "corrected by a column")],
    indirect=True,
)


def undisturbed(trial):
    """Apply twice, as the first reads what was never read before; the moments and seconds of an apply."""
    moments, seconds = [], []
    for _ in range(2):
        done = trial.apply()
        assert (done["code"], done["said"][:2]) == (0, ["began", "ended"]), done
        moments.append(done["said"][2])
        seconds.append(done["seconds"])
        trial.check_green()
        trial.kind.clear()
    assert min(moments) >= 6  # before and after begin, at least one write, and finish
    return min(moments), min(seconds)


def spread(moments, number=MOMENTS):
    return np.unique(np.linspace(1, moments, number).round().astype(int)).tolist()


def check_resumed(trial):
    trial.check_blue()
    trial.resume()
    trial.check_blue()
    trial.check_green()
    trial.kind.clear()


@every
def test_killed_at_any_moment_it_is_resumed(trial):
    moments, seconds = undisturbed(trial)
    for at in spread(moments):
        killed = trial.apply(at=at, signal=signal.SIGKILL)
        assert (killed["code"], killed["said"]) == (-signal.SIGKILL, ["began"]), at
        check_resumed(trial)
    for after in np.random.default_rng(0).uniform(0, seconds, BY_CLOCK):
        trial.apply(after=after, signal=signal.SIGKILL)
        check_resumed(trial)
    trial.resume()
    store = open_store(trial.kind.source, **trial.kind.options)
    promote_index(store, trial.kind.target)
    assert store.mark().done


def killed_promoted_and_rolled_back(trial, times):
    """Kill and resume a copy that may have another width, switch to it and back; return the store."""
    moments, _ = undisturbed(trial)
    for at in spread(moments, times):
        killed = trial.apply(at=at, signal=signal.SIGKILL)
        assert killed["code"] == -signal.SIGKILL, at
        check_resumed(trial)
    trial.resume()
    store = open_store(trial.kind.source, **trial.kind.options)
    promote_index(store, trial.kind.target)
    assert store.facts().dimension == trial.moved.shape[1]
    rollback_index(store)
    return store


@every_to_another_width
def test_a_copy_of_another_width_is_resumed(trial):
    store = killed_promoted_and_rolled_back(trial, 6)
    assert store.facts().dimension == trial.queries.shape[1]


@every_corrected
def test_a_copy_with_a_correction_is_resumed(trial):
    store = killed_promoted_and_rolled_back(trial, 4)
    if isinstance(trial.kind, Qdrant):  # a folder has one user at a time
        store.connection.close()
    assert trial.kind.served(trial.queries) == trial.answers


@every
def test_two_at_once(trial):
    for _ in range(3):
        both = trial.apply(twice=True)
        assert 0 in {done["code"] for done in both}
        for done in both:
            refused = done["code"] == 1 and done["said"][-1].startswith(
                ("refused: StoreError", "refused: Locked")
            )
            assert done["code"] == 0 or refused, done
        trial.check_blue()
        trial.check_green()
        trial.kind.clear()


def largest_file(trial):
    files = [*trial.folder.rglob("moved*"), *trial.folder.glob("moved/*")]
    return max(file.stat().st_size for file in files if file.is_file())


@files
def test_a_full_disk_is_reported_and_leaves_nothing(trial):
    trial.resume()
    largest = largest_file(trial)
    trial.kind.clear()
    for limit in (0, 100, largest // 2, int(0.9 * largest)):
        done = trial.apply(limit=limit)
        assert (done["code"], done["said"][0]) == (1, "began")
        assert "File too large" in done["said"][1]  # which is a full disk here
        assert trial.kind.left() == set()
        assert not trial.kind.green.exists()
        trial.check_blue()
    trial.resume()
    trial.check_green()


@files
def test_an_old_copy_survives_a_full_disk(trial):
    """Blue changed, the copy is made anew, and the disk is full: the copy of what was before stays."""
    trial.resume()
    kept, largest = digest(trial.kind.green), largest_file(trial)
    trial.kind.X = trial.kind.X[::-1].copy()
    remove(trial.kind.blue)
    trial.kind.fill()
    assert trial.apply(limit=largest // 2)["code"] == 1
    assert digest(trial.kind.green) == kept
    assert trial.kind.left() == set()
    trial.moved = trial.moved[::-1]
    trial.resume()
    trial.check_green()


@files
def test_interrupted_by_the_user_it_leaves_nothing(trial):
    moments, _ = undisturbed(trial)
    for at in spread(moments):
        trial.kind.clear()
        done = trial.apply(at=at, signal=signal.SIGINT)
        assert done["code"] == 130, (at, done)
        assert trial.kind.left() == set(), at
        trial.check_blue()
