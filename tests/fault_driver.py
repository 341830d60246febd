"""Runs applies in processes of their own, and ends them when it is told to.

    python -m tests.fault_driver MODULE ...

It imports the modules, then reads jobs from stdin, one JSON object a line, and tells for each what became of
it. A job is forked from this process, which has the slow imports behind it and never opened a store itself.

A job has "source", "options", "model", "target" and "size", the rows of a batch; "after", seconds from the
moment in which the apply began until it gets "signal", if it gets one; "limit", the bytes that a file may
have; "twice", whether two begin at once.
"""

import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import warnings

from hubless import load
from hubless.index.apply import apply
from hubless.stores.opening import open_store

REFUSED = 1


def work(job, say):
    """The job itself: it says when it begins, and how it ended."""
    model, blue = load(job["model"]), open_store(job["source"], **job["options"])
    kind, batches = type(blue), type(blue).batches
    kind.batches = lambda self, columns=(), size=job["size"]: batches(self, columns, size)
    if job.get("limit") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    say("began")
    try:
        apply(model, blue, job["target"])
    except (OSError, ValueError, ImportError) as error:  # as the command line does
        say(f"refused: {type(error).__name__}: {error}")
        return REFUSED
    say("ended")
    return 0


def fork(job):
    """A process that works, and what it says."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():  # LanceDB fears for what it is doing, which is nothing here
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
    found = [json.loads(said.readline() or '"nothing"')]
    began = time.monotonic()
    if job.get("after") is not None:
        readable, _, _ = select.select([said], [], [], job["after"])
        if not readable:
            os.kill(child, job["signal"])
    found += [json.loads(line) for line in said]
    seconds = time.monotonic() - began
    _, status = os.waitpid(child, 0)
    return {"said": found, "code": os.waitstatus_to_exitcode(status), "seconds": seconds}


def spare_the_disk():
    """Qdrant in a folder does not wait for the disk after each point: processes are killed here, no power."""
    from qdrant_client.local.persistence import CollectionPersistence

    prepare = CollectionPersistence._ensure_table

    def faster(self):
        self.storage.execute("PRAGMA synchronous=OFF")
        prepare(self)

    CollectionPersistence._ensure_table = faster


def main(modules):
    for name in modules:
        importlib.import_module(name)
    if "qdrant_client" in modules:
        spare_the_disk()
    for line in sys.stdin:
        job = json.loads(line)
        children = [fork(job) for _ in range(2 if job.get("twice") else 1)]
        sys.stdout.write(json.dumps([attend(*child, job) for child in children]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
