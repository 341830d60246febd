"""Runs operations in processes of their own, and disturbs them at a given moment.

    python -m tests.repair.fault_driver MODULE ...

It imports the modules, then reads jobs from stdin, one JSON object a line, and writes for each what became of
it. A job is forked from this process, which has the slow imports behind it and never opened a store itself.

A job has "verb", one of `OPERATIONS` (default: apply), and what that needs. It may have "at", the number of
the moment at which "fault" happens (default: the process gets "signal"). Moments are the steps of building
and switching a store (before and after each), the calls of some engines, and the changes that Python makes to
files, so they do not depend on how fast the machine is. Or it has "after", seconds from the beginning until
it gets "signal"; "limit", the bytes that a file may have; "user", the id of the user that it runs as;
"back", seconds that its clock is behind; "twice", whether two begin at once; "beside", other jobs that begin
at the same time, and "until", a file that tells these that the first has ended.
"""

import encodings
import importlib
import io
import json
import os
import pkgutil
import resource
import select
import signal
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress

from hubless import load, save
from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.stores.opening import open_store

REFUSED = 1
STEPS = ("begin", "write", "remove", "finish", "promote", "rollback")  # of building and switching a store
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
CALLS = {  # of engines, by the module and class that have them
    "psycopg:Cursor": ("execute",),
    "psycopg:ServerCursor": ("execute", "fetchmany"),
    "psycopg:Copy": ("write_row",),
    "psycopg:Connection": ("commit",),
    "lancedb.table:LanceTable": ("add", "delete", "create_index", "restore", "merge_insert", "optimize"),
    "duckdb:DuckDBPyConnection": ("begin", "execute", "sql", "commit"),
    "qdrant_client:QdrantClient": ("upsert", "delete", "create_collection", "update_collection_aliases"),
}


# --- faults ------------------------------------------------------------------------------------------------


def kill(job, _):
    os.kill(os.getpid(), job["signal"])


def deny(job, _):
    """Make folders and the files in them read-only; the process does not run as root."""
    for folder, _, files in os.walk(job["folder"], topdown=False):
        for name in files:
            with suppress(FileNotFoundError):
                os.chmod(os.path.join(folder, name), 0o444)
        os.chmod(folder, 0o555)


def disconnect(job, _):
    """Let the server end all sessions of the database."""
    psycopg = importlib.import_module("psycopg")
    with psycopg.connect(job["database"], autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
            "backend_type = 'client backend' AND datname = current_database() AND application_name <> 'look'"
        )


def refuse_writes(job, cursor):
    """Let the session be read-only, as on a server that became a standby."""
    if cursor is None:  # it has ended
        return
    connection = getattr(cursor, "connection", cursor)
    connection.pgconn.exec_(b"SET default_transaction_read_only = on")
    connection.pgconn.exec_(b"SET transaction_read_only = on")


FAULTS = {"kill": kill, "deny": deny, "disconnect": disconnect, "refuse writes": refuse_writes}


class Moments:
    """Counts what happens during an operation, and lets a fault happen at one of the moments."""

    def __init__(self, job):
        self.job, self.fault, self.at = job, FAULTS[job.get("fault", "kill")], job.get("at")
        self.count, self.is_armed = 0, False
        self.of_calls = job.get("fault") == "refuse writes"  # which needs a session
        if not self.of_calls:
            sys.addaudithook(self.hear)

    def reach(self, subject=None):
        if self.is_armed:
            self.count += 1
            if self.count == self.at:
                self.is_armed = False
                self.fault(self.job, subject)
                self.is_armed = True

    def hear(self, event, arguments):
        is_change = event in CHANGES or (event == "open" and (arguments[2] or 0) & os.O_CREAT)
        is_change |= event == "ctypes.dlsym" and arguments[1] == "renameat2"
        if is_change and not str(arguments[0]).endswith("hubless-lock"):  # which may be left
            self.reach()

    def watch(self, kind):
        """Count the steps of a class of stores, and the calls of engines that are loaded."""
        for name in () if self.of_calls else STEPS:
            setattr(kind, name, self.counted(getattr(kind, name)))
        for place, names in CALLS.items():
            module, _, owner = place.partition(":")
            if module in sys.modules:
                engine = getattr(sys.modules[module], owner)
                for name in names:
                    setattr(engine, name, self.counted(getattr(engine, name)))
        if "hubless.stores.sqlite_vec.vec_session" in sys.modules:
            self.trace(sys.modules["hubless.stores.sqlite_vec.vec_session"])

    def trace(self, session):
        """Count all statements of SQLite: those of hubless, and those of sqlite-vec inside them."""
        connect = session.connect

        def traced(*arguments, **options):
            connection = connect(*arguments, **options)
            connection.set_trace_callback(lambda _: self.reach())
            return connection

        session.connect = traced

    def counted(self, step):
        def counted(*arguments, **options):
            self.reach(arguments[0])
            result = step(*arguments, **options)
            if not self.of_calls:
                self.reach(arguments[0])
            return result

        return counted


# --- operations --------------------------------------------------------------------------------------------


def read_on(job):
    """Open the store, its status and its rows, again and again, until a file appears."""
    for number in range(10**9):
        if os.path.exists(job["until"]):
            return number
        store = open_store(job["source"], **job["options"])
        if not job.get("opens"):  # and does nothing else
            index_status(store)
            for _ in store.batches():
                pass
    return None


def switch_on(job):
    """Apply, promote and roll back, again and again."""
    model = load(job["model"])
    for _ in range(job["times"]):
        apply_index(model, open_store(job["source"], **job["options"]), job["target"])
        patiently(promote_index, job, job["target"])
        patiently(rollback_index, job)


def patiently(switch, job, *arguments):
    """Switch, and try again where a database says that it is busy."""
    for attempt in range(10):
        try:
            return switch(open_store(job["source"], **job["options"]), *arguments)
        except ValueError as error:
            if "try again" not in str(error) or attempt == 9:
                raise
    return None


def command(job):
    """Run a line of the command line; what it prints is shown where it fails."""
    from hubless import cli

    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as shown:
        code = cli.main(job["arguments"])
    if code:
        raise ValueError(shown.getvalue())


OPERATIONS = {
    "apply": lambda job, blue: apply_index(load(job["model"]), blue, job["target"]),
    "promote": lambda job, blue: promote_index(blue, job["target"]),
    "rollback": lambda job, blue: rollback_index(blue),
    "recover": lambda job, blue: blue.recover(),
    "read": lambda job, _: read_on(job),
    "switch": lambda job, _: switch_on(job),
    "save": lambda job, _: save(load(job["model"]), job["target"]),
    "command": lambda job, _: command(job),
}


def prepare(job):
    """Return the store of a job and the moments of the operation."""
    blue = open_store(job["source"], **job["options"]) if job.get("source") else None
    moments = Moments(job)
    if blue is not None and "size" in job:
        kind, batches = type(blue), type(blue).batches
        kind.batches = lambda self, columns=(), size=job["size"]: batches(self, columns, size)
        moments.watch(kind)
    return blue, moments


def restrict(job):
    """Let the process have what a job says: a limit of files, a user, a clock."""
    if job.get("limit") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    if job.get("user") is not None:
        os.setgroups([])
        os.setgid(job["user"])
        os.setuid(job["user"])
    if job.get("back"):
        true_time, true_ns = time.time, time.time_ns
        time.time = lambda: true_time() - job["back"]
        time.time_ns = lambda: true_ns() - job["back"] * 10**9
    signal.signal(signal.SIGINT, signal.default_int_handler)


def work(job, say):
    """The job itself: it says when it begins, how it ended, how many moments it had, and what it returned."""
    restrict(job)
    blue, moments = prepare(job)
    say("began")
    moments.is_armed = True
    try:
        if job.get("at") == 0:
            moments.fault(job, None)
        result = OPERATIONS[job.get("verb", "apply")](job, blue)
        moments.reach()
    except (OSError, ValueError, ImportError) as error:  # as the command line does
        say(f"refused: {type(error).__name__}: {error}")
        return REFUSED
    except Exception as error:
        say(f"broke: {type(error).__name__}: {error}")
        return 70
    finally:
        moments.is_armed = False
    say("ended")
    say(moments.count)
    say(result if isinstance(result, dict | str | int) else None)
    return 0


def fork(job):
    """A process that works, and what it prints."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():  # LanceDB warns of forks, which are harmless before it is used
        warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
        child = os.fork()
    if child:
        os.close(theirs)
        return child, os.fdopen(ours, "r")
    os.close(ours)
    code = 70  # of a program that broke
    try:
        code = work(job, lambda text: os.write(theirs, f"{json.dumps(text)}\n".encode()))
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def attend(child, said, job):
    """Let a process work, or end it; what became of it."""
    heard = [json.loads(said.readline() or '"nothing"')]
    began = time.monotonic()
    if job.get("after") is not None:
        readable, _, _ = select.select([said], [], [], job["after"])
        if not readable:
            os.kill(child, job["signal"])
    heard += [json.loads(line) for line in said]
    seconds = time.monotonic() - began
    _, status = os.waitpid(child, 0)
    return {"said": heard, "code": os.waitstatus_to_exitcode(status), "seconds": seconds}


def spare_the_disk():
    """Qdrant in a folder does not wait for the disk after each point: processes are killed here, no power."""
    from qdrant_client.local.persistence import CollectionPersistence

    prepare = CollectionPersistence._ensure_table

    def faster(self):
        self.storage.execute("PRAGMA synchronous=OFF")
        prepare(self)

    CollectionPersistence._ensure_table = faster


def load_all_encodings():
    """Python loads one when it is first used, which a process without rights may not be able to do."""
    for module in pkgutil.iter_modules(encodings.__path__):
        with suppress(ImportError):  # those of other systems
            importlib.import_module(f"encodings.{module.name}")


def main(modules):
    load_all_encodings()
    for name in modules:
        importlib.import_module(name)
    if "qdrant_client" in modules:
        spare_the_disk()
    for line in sys.stdin:
        job = json.loads(line)
        jobs = [job] * (2 if job.get("twice") else 1) + job.get("beside", [])
        children = [(*fork(each), each) for each in jobs]
        results = []
        for child in children:
            results.append(attend(*child))
            if "until" in job:  # the first has ended
                open(job["until"], "w").close()
        sys.stdout.write(json.dumps(results) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
