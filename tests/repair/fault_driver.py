"""Runs applies in processes of their own, and ends them at a given moment.

    python -m tests.repair.fault_driver MODULE ...

It imports the modules, then reads jobs from stdin, one JSON object a line, and writes for each what became of
it. A job is forked from this process, which has the slow imports behind it and never opened a store itself.

A job has "source", "options", "model", "target" and "size", the rows of a batch. It may have "at", the number
of the moment at which the process gets "signal": moments are the steps of building a store (before and after
each) and the changes that Python makes to files, so they do not depend on how fast the machine is. Or it has
"after", seconds from the beginning until it gets "signal"; "limit", the bytes that a file may have; "twice",
whether two begin at once.
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
from hubless.repair.apply import apply_index
from hubless.stores.opening import open_store

REFUSED = 1
STEPS = ("begin", "write", "remove", "finish")  # of building a store
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}


class Moments:
    """Counts what happens during an apply, and ends the process at one of the moments."""

    def __init__(self, job):
        self.at, self.signal, self.count, self.is_armed = job.get("at"), job.get("signal"), 0, False
        sys.addaudithook(self.hear)

    def reach(self):
        if self.is_armed:
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), self.signal)

    def hear(self, event, arguments):
        is_change = event in CHANGES or (event == "open" and arguments[2] & os.O_CREAT)
        if is_change and not str(arguments[0]).endswith("hubless-lock"):  # which may be left
            self.reach()

    def watch(self, kind):
        """Count the steps of a class of stores."""
        for name in STEPS:
            setattr(kind, name, self.counted(getattr(kind, name)))

    def counted(self, step):
        def counted(*arguments):
            self.reach()
            result = step(*arguments)
            self.reach()
            return result

        return counted


def work(job, say):
    """The job itself: it says when it begins, how it ended, and how many moments it had."""
    model, blue = load(job["model"]), open_store(job["source"], **job["options"])
    kind, batches, moments = type(blue), type(blue).batches, Moments(job)
    kind.batches = lambda self, columns=(), size=job["size"]: batches(self, columns, size)
    moments.watch(kind)
    if job.get("limit") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    say("began")
    moments.is_armed = True
    try:
        apply_index(model, blue, job["target"])
    except (OSError, ValueError, ImportError) as error:  # as the command line does
        say(f"refused: {type(error).__name__}: {error}")
        return REFUSED
    finally:
        moments.is_armed = False
    say("ended")
    say(moments.count)
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
