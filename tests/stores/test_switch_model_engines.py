"""The model of test_switch_model.py for engines: a crash before every call of an engine.

Calls are the steps here: statements of PostgreSQL, SQLite and DuckDB, requests to Qdrant and Chroma, commits
and reads of LanceDB, and for Qdrant Edge the system calls of the switch. Whoever asks by the engine's own
client at any of these moments must get all rows of one version; PostgreSQL and SQLite may let him wait, and
in Chroma nothing may have the name for a moment.
"""

import shutil
import zlib
from functools import partial
from importlib import import_module

import pytest

from hubless.repair.apply import (
    apply_index,
    index_status,
    promote_index,
    recover_index,
    rollback_index,
)
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import exact, model_for, sample
from tests.stores.interleave import Actor, install, stepping, stride_of

pytestmark = [
    pytest.mark.services,
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of killed processes
]

IDS, X, Y, TEXTS = sample(12, 3)
MODEL = model_for(X, Y, "l2")
QUERIES = X[:3] + 0.1
ANSWERS = {
    "original": exact(IDS, X, QUERIES, len(X), "l2"),
    "moved": exact(IDS, MODEL.move(X), QUERIES, len(X), "l2"),
}
BUSY = 0.4  # seconds after which a call counts as waiting for a lock of the server
ROUNDS = 100  # of two that may wait for each other


class World:
    """A store in which processes work, made anew for every run."""

    target = "moved"
    patience = 60
    stride = 1  # moments of an apply from one run to the next, where a run takes long
    rarely = 1  # times as few moments of a crash, where most calls only read

    def __init__(self, request, folder):
        self.request, self.root, self.starts = request, folder / "world", folder / "starts"
        self.starts.mkdir()
        self.ends = set()  # states from which `check_end` has been run

    def start(self, name):
        """Begin from a state: "applied" or "promoted"."""
        shutil.rmtree(self.root, ignore_errors=True)
        start = self.starts / name
        if not start.exists():
            self.root.mkdir()
            self.make()
            self.prepare(name)
            shutil.copytree(self.root, start)
            shutil.rmtree(self.root)
        shutil.copytree(start, self.root)

    def prepare(self, name):
        apply_index(MODEL, self.open(), self.target)
        if name == "promoted":
            promote_index(self.open(), self.target)

    def close_sessions(self):
        """What the system does when a process is killed: it closes its connections."""

    def version(self):
        """Which version the served name answers with; "waits" where the server lets one wait."""
        answers = self.ask()
        return next((name for name, known in ANSWERS.items() if answers == known), f"neither: {answers}")

    def check_now(self):
        assert self.version() in (*ANSWERS, "waits")

    def state(self):
        """All that is there, where that can be compared with what was there in another run."""
        return object()

    def check_end(self):
        """What must hold when all processes are gone, after recovery."""
        if (state := self.state()) in self.ends:
            return
        self.ends.add(state)
        recover_index(self.open())
        version, status = self.version(), index_status(self.open())
        assert version in ANSWERS
        if version == "original":
            assert status["status"] == "original"
        else:
            assert status["original_is_there"], status
            if "promote again" in status["status"]:
                promote_index(self.open(), self.target)
            rollback_index(self.open())
        assert self.version() == "original"
        apply_index(MODEL, self.open(), "again")
        promote_index(self.open(), "again")
        assert self.version() == "moved"
        rollback_index(self.open())
        assert self.version() == "original"


class Lance(World):
    """A table of LanceDB."""

    def steps(self, patch):
        import lancedb

        from hubless.stores.lancedb.lance_table import LanceTable

        for name in ("add", "restore", "create_index", "update_field_metadata", "delete"):
            patch.setattr(lancedb.table.LanceTable, name, stepping(getattr(lancedb.table.LanceTable, name)))
        patch.setattr(LanceTable, "_open", stepping(LanceTable._open))

    def make(self):
        self.cases = import_module("tests.stores.lancedb_cases")
        self.cases.make(self.root, IDS, X, TEXTS, "l2")

    def open(self):
        return open_store(f"lancedb:{self.root}#items")

    def ask(self):
        return self.cases.ask(self.open(), QUERIES, len(X) + 1)


class Postgres(World):
    """A table of PostgreSQL; every run has a database of its own."""

    patience = BUSY
    stride = 8

    def steps(self, patch):
        import psycopg

        for name in ("execute", "commit"):
            patch.setattr(psycopg.Connection, name, stepping(getattr(psycopg.Connection, name)))

    def __init__(self, request, folder):
        super().__init__(request, folder)
        self.server, self.cases = request.getfixturevalue("server"), import_module("tests.stores.pg_cases")
        self.made = set()

    def execute(self, statement):
        import_module("tests.stores.postgres").execute(self.server.get_uri(), statement)

    def start(self, name):
        pattern, test = f"model_{name}", self.request.node.nodeid
        if name not in self.made:
            self.execute(f"DROP DATABASE IF EXISTS {pattern} WITH (FORCE)")
            self.execute(f"CREATE DATABASE {pattern} TEMPLATE pattern STRATEGY file_copy")
            self.address = self.server.get_uri(pattern)
            self.cases.items(self.address, ids=IDS, X=X, texts=TEXTS, n=len(X))
            self.prepare(name)
            self.made.add(name)
        self.database = f"run_{zlib.crc32(test.encode())}"
        self.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
        self.execute(f"CREATE DATABASE {self.database} TEMPLATE {pattern} STRATEGY file_copy")
        self.address = self.server.get_uri(self.database)

    def close_sessions(self):
        ended = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{}'"
        self.execute(ended.format(self.database))

    def state(self):
        import psycopg

        with psycopg.connect(self.address) as connection:
            named = """
                SELECT relname, relkind::text, obj_description(oid, 'pg_class') FROM pg_class
                WHERE relnamespace = 'public'::regnamespace ORDER BY relname"""
            found = connection.execute(named).fetchall()
            tables = [name for name, kind, _ in found if kind == "r"]
            rows = [
                connection.execute(f'SELECT t::text FROM "{name}" t ORDER BY 1').fetchall() for name in tables
            ]
        return repr((found, rows))

    def open(self):
        return open_store(f"{self.address}#items")

    def ask(self):
        import psycopg

        query = "SELECT id FROM items ORDER BY embedding <-> %s::vector LIMIT 13"
        try:
            with psycopg.connect(self.address, options="-c lock_timeout=200ms") as connection:
                asked = [connection.execute(query, [str(q.tolist())]).fetchall() for q in QUERIES]
        except psycopg.errors.LockNotAvailable:
            return None
        return [[i for (i,) in rows] for rows in asked]

    def version(self):
        answers = self.ask()
        known = (name for name, wanted in ANSWERS.items() if answers == wanted)
        return "waits" if answers is None else next(known, f"neither: {answers}")


class Qdrant(World):
    """An alias on a server; every run begins with the same collections."""

    stride = 2

    def steps(self, patch):
        from hubless.stores.qdrant.qdrant_connection import Connection

        patch.setattr(Connection, "call", stepping(Connection.call))

    def __init__(self, request, folder):
        super().__init__(request, folder)
        self.cases = import_module("tests.stores.qdrant_server")
        self.case = self.cases.server(request)

    def start(self, name):
        self.store = self.case.make(None, IDS, X, TEXTS, "l2")
        self.prepare(name)

    def open(self):
        return open_store(self.store.name)

    def ask(self):
        return self.case.ask(self.open(), QUERIES, len(X) + 1)


class Chroma(World):
    """A collection on a real server, whose name nothing has between the two renames of a switch."""

    stride = 2
    rarely = 2
    ids = ("original", "moved")  # of collections, in the record of a switch: new ones in every run

    def steps(self, patch):
        from hubless.stores.chroma.chroma_connection import ChromaConnection

        patch.setattr(ChromaConnection, "call", stepping(ChromaConnection.call))

    def __init__(self, request, folder):
        super().__init__(request, folder)
        self.cases = import_module("tests.stores.chroma_cases")
        self.case = self.cases.server(request)
        self.client = request.getfixturevalue("chroma_server").client
        self.texts = [str(i) for i in IDS]

    def start(self, name):
        self.store = self.case.make(None, self.texts, X, TEXTS, "l2")
        self.prepare(name)

    def open(self):
        return open_store(self.store.name)

    def ask(self):
        if "items" not in [item.name for item in self.client.list_collections()]:
            return None
        found = self.cases.ask_for(self.client, "items", QUERIES, len(X) + 1)
        return [[int(id) for id in row] for row in found]

    def state(self):
        whole = []
        for item in self.client.list_collections():
            metadata = {key: value for key, value in (item.metadata or {}).items() if key not in self.ids}
            rows = sorted(self.cases.dump(self.client, item.name).items())
            whole.append((item.name, sorted(metadata.items()), rows))
        return repr(sorted(whole, key=lambda parts: parts[0]))

    def check_now(self):
        """Nothing is lost: where nothing has the name, both collections are there under others."""
        if self.ask() is not None:
            super().check_now()
            return
        names = [item.name for item in self.client.list_collections()]
        kept = [name for name in names if name.endswith("_original") or "moved" in name]
        assert len(kept) == 2, names
        for name in kept:
            assert self.client.get_collection(name, embedding_function=None).count() == len(X)


class OfOneFile(World):
    """A table of a file; what others see of it in between may be that they have to wait."""

    patience = BUSY
    stride = 4
    rarely = 6

    def make(self):
        self.cases.make(self.root, IDS, X, TEXTS, "l2")

    def open(self):
        return open_store(f"{self.scheme}:{self.root / self.file}#items")

    def state(self):
        def rows(query):
            return self.cases.run(self.root / self.file, query)

        names = rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return repr([(name, rows(f'SELECT * FROM "{name}"')) for (name,) in names])

    def version(self):
        answers = self.ask()
        known = (name for name, wanted in ANSWERS.items() if answers == wanted)
        return "waits" if answers is None else next(known, f"neither: {answers}")


class Sqlite(OfOneFile):
    """A table of sqlite-vec; every statement is a step."""

    scheme, file = "sqlite", "items.db"
    stride = rarely = 2

    def __init__(self, request, folder):
        super().__init__(request, folder)
        self.cases = import_module("tests.stores.vec_cases")

    def steps(self, patch):
        session = import_module("hubless.stores.sqlite_vec.vec_session")
        connect = session.connect

        class Stepping:
            def __init__(self, *arguments, **options):
                self.connection = connect(*arguments, **options)
                self.close = self.connection.close
                for name in ("execute", "executemany"):
                    setattr(self, name, stepping(getattr(self.connection, name)))

        patch.setattr(session, "connect", Stepping)

    def ask(self):
        try:
            return self.cases.ask_for(self.root / self.file, QUERIES, len(X) + 1, timeout=0.1)
        except self.cases.sqlite_module().OperationalError as error:
            if "locked" not in str(error):
                raise
            return None


class Duck(OfOneFile):
    """A table of DuckDB, which several connections of this one process have open."""

    scheme, file = "duckdb", "items.duckdb"

    def __init__(self, request, folder):
        super().__init__(request, folder)
        self.cases = import_module("tests.stores.duck_cases")

    def steps(self, patch):
        kind = import_module("duckdb").DuckDBPyConnection
        for name in ("begin", "execute", "sql", "commit"):
            patch.setattr(kind, name, stepping(getattr(kind, name)))

    def ask(self):
        return self.cases.ask_for(self.root / self.file, QUERIES, len(X) + 1)


class Edge(World):
    """A shard of Qdrant Edge in a folder; only one process can open it, so it is asked after the others."""

    def steps(self, patch):
        pass  # those of the system, which `interleave` hears

    def make(self):
        import_module("tests.stores.qdrant_edge_cases").make(self.root, IDS, X, TEXTS, "l2")

    def open(self):
        return open_store(f"qdrant-edge:{self.root / 'items'}")

    def check_now(self):
        assert (self.root / "items" / "edge_config.json").exists()

    def ask(self):
        store = self.open()
        try:
            return [row.tolist() for row in store.search(QUERIES, len(X))]
        finally:
            store.close()


WORLDS = {kind.__name__: kind for kind in (Lance, Postgres, Qdrant, Chroma, Sqlite, Duck, Edge)}
SHARED = (
    "Lance",
    "Postgres",
    "Qdrant",
    "Chroma",
    "Sqlite",
    "Duck",
)  # which several processes can open at a time
STRIDE = 2  # calls from one moment to the next, unless all are wanted
STARTS = {"promote": "applied", "rollback": "promoted"}


def closing(verb, world, *arguments):
    """Run a verb on a store that is opened for it, and closed after it."""
    store = world.open()
    try:
        verb(store, *arguments)
    finally:
        getattr(store, "close", lambda: None)()


WORK = {
    "apply": lambda world: closing(partial(apply_index, MODEL), world, world.target),
    "promote": lambda world: closing(promote_index, world, world.target),
    "rollback": lambda world: closing(rollback_index, world),
}


@pytest.fixture
def world(request, tmp_path, monkeypatch):
    world = WORLDS[request.param](request, tmp_path)
    world.start("applied")
    install(monkeypatch)
    world.steps(monkeypatch)
    return world


def take(world, actor, steps=None, *, seen=0):
    """Let an actor take steps, with a look at the world after each, until it is blocked.

    It does not look after the first steps, which were `seen` in another run.
    """
    taken = actor.go(max(seen, 0), world.patience)
    while not actor.is_done and taken != steps:
        taken += actor.go(1, world.patience)
        world.check_now()
        if actor.is_blocked:
            break
    return taken


@pytest.mark.parametrize("world", WORLDS, indirect=True)
@pytest.mark.parametrize("work", STARTS)
def test_a_crash_at_every_call(world, work, request):
    (moment, stride), is_done = stride_of(request.node.nodeid, STRIDE * world.rarely), False
    while not is_done:
        world.start(STARTS[work])
        actor = Actor(partial(WORK[work], world), world.root)
        take(world, actor, moment, seen=moment - stride)
        is_done = actor.is_done
        actor.kill()
        world.close_sessions()
        world.check_now()
        world.check_end()
        moment += stride
    assert moment > 3


SPARSE = 4  # times as few moments, since both wait for each other's locks at most of them


@pytest.mark.parametrize("world", SHARED, indirect=True)
@pytest.mark.parametrize(("first", "second"), [("apply", "promote"), ("promote", "apply")])
def test_apply_beside_promote_at_many_calls(world, first, second):
    """Nothing is moved twice, and the way back stays known, whichever of them writes the last mark."""
    moment, is_done = 0, False
    while not is_done:
        world.start("applied")
        one, other = (Actor(partial(WORK[work], world), world.root) for work in (first, second))
        one.go(moment, world.patience)
        is_done = one.is_done
        for actor in [other, one] * ROUNDS:  # to its end, or until it waits for the other
            actor.go(patience=world.patience)
            world.check_now()
            if one.is_done and other.is_done:
                break
        else:
            raise AssertionError("both wait")
        for actor in (one, other):
            assert actor.error is None or isinstance(actor.error, StoreError), actor.error
        world.close_sessions()
        world.check_end()
        moment += SPARSE * world.stride
    assert moment > 3
