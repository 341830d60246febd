"""Stores that are made, looked at and changed by their own libraries alone, to see what faults do to them.

`KINDS` is the table of them. A store has items with the ids 0, 1, … and is moved to a copy named `target`;
`rows` of it are few, and `batch` of them are moved at a time, so that an apply has several steps.
"""

import hashlib
import json
import os
import shutil
from importlib import import_module
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.stores import file_cases


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


class Npy:
    """A matrix in a file. The other kinds of files differ in what is below."""

    rows, batch, target = 200, 40, "moved.npy"
    in_folder = True  # whether it is in a folder of this machine, which can be full or read-only
    alone = False  # whether one process at a time can have it open
    needs_room = False  # whether its engine writes when it opens the store, and cannot on a full disk

    def __init__(self, folder, address, X):
        self.folder, self.X, self.options = folder, X, {"metric": "l2"}
        self.blue, self.green = folder / f"items{Path(self.target).suffix}", folder / self.target
        self.fill()
        self.source, self.before = str(self.blue), self.seen()

    def fill(self):
        np.save(self.blue, self.X)

    def change(self, row, value):
        """Give a row another vector, as another program would."""
        self.X = self.X.copy()
        self.X[row] = value
        remove(self.blue)
        self.fill()

    def seen(self):
        """All that blue is."""
        return digest(self.blue)

    def read(self, path):
        """Ids and vectors of a file."""
        ids, X = file_cases.rows_of(path)
        return range(len(X)) if ids is None else ids, X

    def items(self):
        """Ids and vectors under the name that serves."""
        return self.read(self.blue)

    def content(self):
        """Ids and vectors of green."""
        return self.read(self.green)

    def names(self):
        """What there is, by name."""
        return {path.name for path in self.folder.iterdir()} - {"model"}

    def left(self):
        """What is there after an apply that should not be."""
        made = {self.green.name, f"{self.green.name}.hubless.json"} if self.green.exists() else set()
        return self.names() - {self.blue.name} - made

    def clear(self):
        remove(self.green, self.folder / f"{self.green.name}.hubless.json")

    def served(self, queries):
        """Ids of the nearest, under the name that serves."""
        ids, X = self.items()
        order = [np.argsort(((X - q) ** 2).sum(axis=1), kind="stable")[:5] for q in queries]
        return [np.asarray(ids)[row].tolist() for row in order]

    def close(self):
        """Let go of it."""


class OfFiles(Npy):
    """A kind of files that file_cases.py writes, as v.SUFFIX."""

    make = None

    def fill(self):
        self.blue = self.folder / f"v{Path(self.target).suffix}"
        numbers = np.arange(len(self.X))
        type(self).make(self.folder, numbers, self.X, [f"text of {i}" for i in numbers], "l2")
        remove(self.folder / "items.json")  # ids are row numbers


class Npz(OfFiles):
    """A matrix and its ids in an archive."""

    target, make = "moved.npz", staticmethod(file_cases.make_npz)


class Parquet(OfFiles):
    """A table in a Parquet file."""

    target, make = "moved.parquet", staticmethod(file_cases.make_parquet)


class Arrow(OfFiles):
    """A table in an Arrow file."""

    target, make = "moved.arrow", staticmethod(file_cases.make_arrow)


class Hdf5(OfFiles):
    """A file of ann-benchmarks."""

    target, make = "moved.hdf5", staticmethod(file_cases.make_hdf5)

    def fill(self):
        super().fill()
        self.options = {}


class Parts(Npy):
    """A folder of Parquet files."""

    rows, batch, target = 120, 20, "moved"

    def fill(self):
        self.blue.mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(self.X)), 4)):
            column = pa.FixedSizeListArray.from_arrays(pa.array(self.X[rows].reshape(-1)), self.X.shape[1])
            pq.write_table(pa.table({"id": rows, "embedding": column}), self.blue / f"{number}.parquet")

    def read(self, path):
        """Hold the folder open, or its parts may be of two folders, before and after a switch."""
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            assert sorted(os.listdir(held)) == [f"{number}.parquet" for number in range(4)]
            tables = [pq.read_table(f"/proc/self/fd/{held}/{number}.parquet") for number in range(4)]
        finally:
            os.close(held)
        table = pa.concat_tables([each.replace_schema_metadata() for each in tables])
        return table["id"].to_pylist(), np.array(table["embedding"].to_pylist(), dtype=np.float32)


class Faiss(Npy):
    """An HNSW index."""

    target, factory = "moved.faiss", "HNSW16,Flat"

    def fill(self):
        index = faiss.index_factory(self.X.shape[1], self.factory)
        if not index.is_trained:
            index.cp.min_points_per_centroid = 1
            index.train(self.X)
        index.add(self.X)
        faiss.write_index(index, str(self.blue))
        self.options = {}

    def read(self, path):
        index = faiss.read_index(str(path))
        if hasattr(index, "hnsw"):
            assert index.hnsw.nb_neighbors(1) == 16
        if hasattr(index, "make_direct_map"):
            index.make_direct_map()
        return range(index.ntotal), index.reconstruct_n(0, index.ntotal)

    def served(self, queries):
        return faiss.read_index(str(self.blue)).search(queries, 5)[1].tolist()


class FaissFlat(Faiss):
    """An index that compares with every vector."""

    factory = "Flat"


class FaissIvf(Faiss):
    """An index of cells."""

    factory = "IVF4,Flat"


class Usearch(Npy):
    """An index of usearch."""

    target = "moved.usearch"

    def fill(self):
        cases = import_module("tests.stores.index_cases")
        cases.write_usearch(self.blue, np.arange(len(self.X)), self.X, "l2")
        self.options = {}

    def read(self, path):
        index = import_module("usearch.index").Index.restore(str(path))
        assert index.connectivity == 12
        keys = np.sort(np.asarray(index.keys))
        return keys.tolist(), np.stack(index.get(keys))

    def served(self, queries):
        return import_module("tests.stores.index_cases").ask_usearch(self.blue, queries, 5)


class Hnswlib(Npy):
    """An index of hnswlib."""

    target = "moved.hnsw"

    def fill(self):
        cases = import_module("tests.stores.index_cases")
        cases.write_hnswlib(self.blue, np.arange(len(self.X)), self.X, "l2")

    def read(self, path):
        index = import_module("hnswlib").Index("l2", self.X.shape[1])
        index.load_index(str(path))
        assert (index.M, index.ef_construction, index.max_elements) == (12, 90, 2 * len(self.X))
        labels = sorted(index.get_ids_list())
        return labels, index.get_items(labels)

    def served(self, queries):
        return import_module("tests.stores.index_cases").ask_hnswlib(self.blue, queries, 5, "l2")


class Lance(Npy):
    """A table of LanceDB with an index of its ids."""

    rows, batch, target = 60, 20, "moved"

    def fill(self):
        self.database = import_module("lancedb").connect(str(self.folder / "db"))
        column = pa.FixedSizeListArray.from_arrays(pa.array(self.X.reshape(-1)), self.X.shape[1])
        self.database.create_table("items", pa.table({"id": range(len(self.X)), "vector": column}))
        self.blue, self.green = (self.folder / "db" / f"{name}.lance" for name in ("items", "moved"))
        self.options = {}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = f"lancedb:{self.folder}/db#items"

    def change(self, row, value):
        self.database.open_table("items").update(where=f"id = {row}", values={"vector": value.tolist()})

    def read(self, path):
        table = self.database.open_table(path.stem).to_arrow()
        return table["id"].to_pylist(), np.array(table["vector"].to_pylist(), dtype=np.float32)

    def names(self):
        return set(os.listdir(self.folder / "db"))

    def left(self):
        return self.names() - {"items.lance", "moved.lance"}

    def clear(self):
        self.database.drop_table("moved", ignore_missing=True)

    def served(self, queries):
        table = self.database.open_table("items")
        return [[row["id"] for row in table.search(q).limit(5).to_list()] for q in queries]


class Pgvector(Npy):
    """A table of PostgreSQL with an HNSW index."""

    rows, batch, target, in_folder = 60, 20, "moved", False

    def __init__(self, folder, address, X):
        self.connection = import_module("psycopg").connect(address, autocommit=True, application_name="look")
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

    def change(self, row, value):
        self.ask("UPDATE items SET v = %s WHERE id = %s", str(value.tolist()), row)

    def seen(self):
        return self.ask("SELECT ctid::text, xmin::text, id, v::text FROM items ORDER BY id")

    def rows_of(self, table):
        rows = self.ask(f"SELECT id, v::text FROM {table}")
        return [i for i, _ in rows], np.array([json.loads(v) for _, v in rows], dtype=np.float32)

    def items(self):
        return self.rows_of("items")

    def content(self):
        assert len(self.ask("SELECT indexname FROM pg_indexes WHERE tablename = 'moved'")) == 2
        return self.rows_of("moved")

    def names(self):
        schemas = ["pg_catalog", "information_schema", "pg_toast"]
        query = "SELECT relname FROM pg_class WHERE NOT relnamespace::regnamespace::text = ANY(%s)"
        return {name for (name,) in self.ask(query, schemas)}

    def left(self):
        tables = ("items", "moved")
        return self.names() - {f"{table}{end}" for table in tables for end in ("", "_pkey", "_v_idx")}

    def clear(self):
        self.ask("DROP TABLE IF EXISTS moved")

    def served(self, queries):
        query = "SELECT id FROM items ORDER BY v <-> %s::vector LIMIT 5"
        return [[i for (i,) in self.ask(query, str(q.tolist()))] for q in queries]

    def close(self):
        self.connection.close()


class Sqlite(Npy):
    """A table of sqlite-vec with another column."""

    rows, batch, target = 60, 20, "moved"
    module, file, kind, own = "vec_cases", "items.db", "sqlite", {"hubless_marks"}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = f"{self.kind}:{self.blue}#items"

    @property
    def cases(self):
        return import_module(f"tests.stores.{self.module}")

    def fill(self):
        self.blue, self.options = self.folder / self.file, {}
        ids = np.arange(len(self.X))
        self.cases.fill(self.blue, ids, self.X, [f"text of {i}" for i in ids])

    def change(self, row, value):
        self.cases.run(self.blue, ("UPDATE items SET embedding = ? WHERE id = ?", [self.encoded(value), row]))

    def encoded(self, value):
        return np.asarray(value, np.float32).tobytes()

    def decoded(self, value):
        return np.frombuffer(value, np.float32)

    def seen(self):
        return self.cases.dump(self.blue)

    def rows_of(self, table):
        rows = self.cases.dump(self.blue, table)
        assert [text for *_, text in rows] == [f"text of {i}" for i, *_ in rows]
        return [i for i, *_ in rows], np.array([self.decoded(v) for _, v, _ in rows], np.float32)

    def items(self):
        return self.rows_of("items")

    def content(self):
        return self.rows_of("moved")

    def names(self):
        return {name for (name,) in self.cases.run(self.blue, "SELECT name FROM sqlite_master")}

    def left(self):
        """What is there besides both tables, those in which they are kept, and the marks."""
        left = {
            name for name in self.names() - self.own if not name.startswith(("sqlite_", "items", "moved"))
        }
        unknown = set(os.listdir(self.folder)) - {"model", self.file, f"{self.file}.wal"}
        return left | {name for name in unknown if not name.endswith("-journal")}

    def clear(self):
        mark = "DELETE FROM hubless_marks WHERE name = 'moved'"
        self.cases.run(self.blue, "DROP TABLE IF EXISTS moved", *([mark] if self.own & self.names() else []))

    def served(self, queries):
        return self.cases.ask_for(self.blue, queries, 5)


class Duck(Sqlite):
    """A table of DuckDB with another column, which one process at a time can have open."""

    module, file, kind, alone = "duck_cases", "items.duckdb", "duckdb", True

    def encoded(self, value):
        return np.asarray(value).tolist()

    def decoded(self, value):
        return value


class Qdrant(Npy):
    """A collection in a folder, behind an alias."""

    rows, batch, target, alone, needs_room = 30, 10, "moved", True, True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = f"qdrant:{self.folder}/db#served"

    def open(self):
        return import_module("qdrant_client").QdrantClient(path=str(self.folder / "db"))

    def points(self, rows):
        return [self.models.PointStruct(id=i, vector=self.X[i].tolist(), payload={"n": i}) for i in rows]

    def fill(self):
        self.models = models = import_module("qdrant_client").models
        client = self.open()
        size = models.VectorParams(size=self.X.shape[1], distance=models.Distance.EUCLID)
        client.create_collection("items", vectors_config=size)
        client.upsert("items", self.points(range(len(self.X))))
        alias = models.CreateAlias(collection_name="items", alias_name="served")
        client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
        client.close()
        self.options, self.blue = {}, self.folder / "db" / "collection" / "items"

    def change(self, row, value):
        self.X = self.X.copy()
        self.X[row] = value
        client = self.open()
        client.upsert("served", self.points([row]))
        client.close()

    def rows_of(self, name):
        client = self.open()
        points, _ = client.scroll(name, limit=10**4, with_vectors=True, with_payload=True)
        assert [point.payload["n"] for point in points] == [point.id for point in points]
        client.close()
        return [point.id for point in points], np.array([point.vector for point in points], np.float32)

    def items(self):
        return self.rows_of("served")

    def content(self):
        return self.rows_of("moved")

    def names(self):
        folder = self.folder / "db"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def left(self):
        tables = {f"collection/{name}/storage.sqlite" for name in ("items", "moved")}
        return self.names() - tables - {".lock", "meta.json"}  # the engine's own

    def clear(self):
        client = self.open()
        client.delete_collection("moved")
        client.close()

    def served(self, queries):
        client = self.open()
        answers = [client.query_points("served", query=q.tolist(), limit=5).points for q in queries]
        client.close()
        return [[point.id for point in points] for points in answers]


class QdrantServer(Qdrant):
    """A collection on a server, which a stand-in plays (tests/stores/qdrant_server.py)."""

    in_folder = alone = False

    def __init__(self, folder, address, X):
        server = import_module("tests.stores.qdrant_server")
        self.engine = server.Engine()
        self.serving = server.serving(self.engine)
        self.address = self.serving.__enter__()
        super().__init__(folder, address, X)
        self.source = f"qdrant:{self.address}#served"

    def open(self):
        return import_module("qdrant_client").QdrantClient(url=self.address, check_compatibility=False)

    def seen(self):
        return [[*map(tuple, part)] for part in self.rows_of("items")[1:]]

    def names(self):
        client = self.open()
        collections = {each.name for each in client.get_collections().collections}
        aliases = {f"{each.alias_name} → {each.collection_name}" for each in client.get_aliases().aliases}
        client.close()
        return collections | aliases

    def left(self):
        return self.names() - {"items", "moved", "served → items"}

    def close(self):
        self.serving.__exit__(None, None, None)


class Edge(Npy):
    """A shard of Qdrant Edge."""

    rows, batch, target, alone, needs_room = 30, 10, "moved", True, True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source, self.options = f"qdrant-edge:{self.blue}", {}

    def fill(self):
        cases, numbers = import_module("tests.stores.qdrant_edge_cases"), np.arange(len(self.X))
        cases.make(self.folder, numbers, self.X, [f"text of {i}" for i in numbers])

    def change(self, row, value):
        edge, cases = import_module("qdrant_edge"), import_module("tests.stores.qdrant_edge_cases")
        shard = edge.EdgeShard.load(str(self.blue))
        shard.update(cases.rows(np.array([row]), value[None], [f"text of {row}"]))
        shard.close()

    def read(self, path):
        points, _ = import_module("tests.stores.qdrant_edge_cases").dump(path)
        return [int(i) for i in points], np.array([vector for vector, _ in points.values()], np.float32)

    def served(self, queries):
        edge = import_module("qdrant_edge")
        shard = edge.EdgeShard.load(str(self.blue))
        near = [edge.QueryRequest(limit=5, query=edge.Query.Nearest(q.tolist())) for q in queries]
        found = [[point.id for point in shard.query(request)] for request in near]
        shard.close()
        return found


KINDS = {
    "npy": Npy,
    "npz": Npz,
    "parquet": Parquet,
    "arrow": Arrow,
    "hdf5": Hdf5,
    "parts": Parts,
    "faiss": Faiss,
    "faiss-flat": FaissFlat,
    "faiss-ivf": FaissIvf,
    "usearch": Usearch,
    "hnswlib": Hnswlib,
    "lance": Lance,
    "pgvector": Pgvector,
    "sqlite": Sqlite,
    "duckdb": Duck,
    "qdrant": Qdrant,
    "qdrant-server": QdrantServer,
    "qdrant-edge": Edge,
}
