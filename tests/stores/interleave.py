"""Runs functions step by step, as the processes of a busy machine may run, and kills them in between.

A *step* is a system call on a watched folder: Python announces those that open, rename, link, remove or lock
to audit hooks, and `os.stat` and `os.lstat` are wrapped. An actor stops before each of its steps until it may
go on. One that is killed does nothing from then on: all its later steps, of `finally` blocks too, raise
`Killed`, except that the system closes its files, which frees its locks.
"""

import os
import sys
import threading
import zlib
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path

from hubless.stores.store import Store

PATHS = {  # audit events → which of their arguments are paths
    "open": (0,),
    "os.rename": (0, 1),
    "os.link": (0, 1),
    "os.remove": (0,),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.listdir": (0,),
    "os.scandir": (0,),
}
CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "exchange"}
EVERY = "HUBLESS_EVERY_STEP"  # a variable of the environment; where it is set, no moment is left out
LONG = 60  # seconds, for a machine that is busy

_running = threading.local()  # the actor of this thread


def stride_of(test, stride):
    """Return the first moment of a test, and the steps from one moment to the next.

    A test takes one moment of so many, another one of the same kind others; where EVERY is set, all.
    """
    if os.environ.get(EVERY):
        return 0, 1
    return zlib.crc32(test.encode()) % stride, stride


class Killed(BaseException):
    """The process of this actor is dead."""


class Actor:
    """A function in a thread that waits before each of its steps."""

    def __init__(self, work, root, *, sees_reads=False):
        self.root, self.sees_reads = os.path.realpath(root), sees_reads
        self.changes, self.is_dead, self.is_done, self.error = [], False, False, None
        self.is_blocked = False  # whether it waits for something else than its turn, as for a server
        self._may_go, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._wait()

    def _run(self, work):
        _running.actor = self
        try:
            self.step("begin")
            work()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            _running.actor = None
            self.is_done = True
            self._waits.release()

    def _wait(self):
        assert self._waits.acquire(timeout=LONG), "an actor hangs"

    def step(self, event):
        """Wait until the actor may go on."""
        if self.is_dead:
            raise Killed
        self._waits.release()
        self._may_go.acquire()
        if self.is_dead:
            raise Killed
        if event in CHANGES:
            self.changes.append(event)

    def go(self, steps=None, patience=LONG):
        """Let it take some steps, or all; return how many it took. It is blocked where one takes too long."""
        taken = 0
        while not self.is_done and taken != steps:
            if not self.is_blocked:
                self._may_go.release()
            self.is_blocked = not self._waits.acquire(timeout=patience)
            if self.is_blocked:
                assert patience < LONG, "an actor hangs"
                return taken
            taken += 1
        return taken

    def kill(self):
        """End it before its next step."""
        self.is_dead = True
        self.go()


def _hear(event, arguments):
    actor = getattr(_running, "actor", None)
    if actor is None:
        return
    if event == "ctypes.dlsym" and arguments[1] == "renameat2":
        actor.step("exchange")
    elif event == "fcntl.flock":
        actor.step(event)
    elif event in PATHS and any(_is_below(arguments[i], actor.root) for i in PATHS[event]):
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGES or writes or actor.sees_reads:
            actor.step("write" if writes else event)
        if writes:
            actor.changes.append(f"write {arguments[0]}")


def stepping(function):
    """A function of an engine as a step."""

    def step(*arguments, **options):
        actor = getattr(_running, "actor", None)
        if actor is not None:
            actor.step("call")
        return function(*arguments, **options)

    return step


def _is_below(path, root):
    return isinstance(path, str | bytes | Path) and os.fsdecode(path).startswith(root)


def _seeing(look):
    def seen(path, *args, **options):
        actor = getattr(_running, "actor", None)
        if actor is not None and actor.sees_reads and _is_below(path, actor.root):
            actor.step("look")
        return look(path, *args, **options)

    return seen


def install(monkeypatch):
    """Let actors of this process be heard; the disk is not waited for, since no power fails here."""
    if not getattr(sys, "_hubless_hears", False):  # an audit hook stays until Python ends
        sys.addaudithook(_hear)
        sys._hubless_hears = True
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, _seeing(getattr(os, name)))
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    # before Python 3.12, one lock serves a cached property of all objects; processes would not share it
    for kind in (Store, *kinds_below(Store)):
        for value in vars(kind).values():
            if isinstance(value, cached_property) and hasattr(value, "lock"):
                monkeypatch.setattr(value, "lock", nullcontext())


def kinds_below(kind):
    """All subclasses that are loaded."""
    for below in kind.__subclasses__():
        yield from (below, *kinds_below(below))
