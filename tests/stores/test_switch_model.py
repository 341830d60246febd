"""A model of the switch, checked: a second process at every step of a first one, and every crash.

The real functions run, on real files, one system call at a time (interleave.py). At every moment the served
name must answer with all rows of one version, and each version that existed must still be somewhere. After
recovery nothing may be lost, doubled or left over, and the way back and forth must be open.
"""

import io
import os
import re
import shutil
import tempfile
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hubless.repair.apply import (
    apply_index,
    index_status,
    promote_index,
    recover_index,
    rollback_index,
)
from hubless.stores import opening, switch
from hubless.stores.journal import recover_switch
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.interleave import Actor, install, stride_of

# what a killed process had open is closed by the system
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

_, X, Y, _ = sample(12, 3)
MODEL = model_for(X, Y, "l2")
MOVED = MODEL.move(X)
VERSIONS = {X.tobytes(): "original", MOVED.tobytes(): "moved"}


@cache
def rows_of(content):
    """What NumPy reads from the bytes of a file; None where it cannot. There are few files, read often."""
    try:
        return np.load(io.BytesIO(content)).tobytes()
    except (EOFError, ValueError):
        return None


class OneFile:
    """Vectors in a file."""

    served, green = "v.npy", "green.npy"

    def make(self, path):
        np.save(path, X)

    def version(self, path):
        """Which version a path holds, read by NumPy; None where it is neither, or not there."""
        try:
            return VERSIONS.get(rows_of(path.read_bytes()))
        except OSError:
            return None


class Folder(OneFile):
    """Vectors in a folder of two files."""

    served, green = "v", "green"

    def make(self, path):
        path.mkdir()
        for name, rows in (("0.npy", X[:7]), ("1.npy", X[7:])):
            np.save(path / name, rows)

    def version(self, path):
        try:
            parts = [rows_of((path / name).read_bytes()) for name in sorted(os.listdir(path))]
            return None if None in parts else VERSIONS.get(b"".join(parts))
        except OSError:
            return None


class IndexOfAnEngine(OneFile):
    """Vectors in a file that an engine wrote, in another way each time: known by its bytes."""

    def __init__(self, suffix):
        self.served, self.green = f"v{suffix}", f"green{suffix}"

    def make(self, path):
        cases = import_module("tests.stores.index_cases")
        write = cases.write_usearch if path.suffix == ".usearch" else cases.write_hnswlib
        write(path, np.arange(len(X)), X, "l2")

    def version(self, path):
        try:
            return version_of_index(path.read_bytes(), path.suffix)
        except OSError:
            return None


@cache
def version_of_index(content, suffix):
    """Which version the bytes of an index hold, as its engine reads it."""
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(content)
        file.flush()
        try:
            rows = import_module("tests.stores.index_cases").vectors_of(file.name, X.shape[1])
        except RuntimeError:
            return None
    return VERSIONS.get(rows.tobytes())


def cannot_exchange(monkeypatch):
    monkeypatch.setattr(switch, "exchange_names", lambda one, other: False)


def cannot_link(monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)


SYSTEMS = {
    "file": (OneFile(), ()),
    "file, no links": (OneFile(), (cannot_link,)),
    "file, no exchange": (OneFile(), (cannot_exchange,)),
    "file, neither": (OneFile(), (cannot_exchange, cannot_link)),
    "folder": (Folder(), ()),
    "folder, no exchange": (Folder(), (cannot_exchange,)),
}
OF_ENGINES = {kind: (IndexOfAnEngine(f".{kind}"), ()) for kind in ("usearch", "hnsw")}
MAY_BE_MISSING = "folder, no exchange"  # for a moment, as docs/reliability.md says


class World:
    """A folder in which processes work, made anew for every run."""

    def __init__(self, system, folder):
        self.system, (self.kind, self.limits) = system, (SYSTEMS | OF_ENGINES)[system]
        self.root, self.starts = folder / "world", folder / "starts"
        self.starts.mkdir()
        self.ends = set()  # states from which `check_end` has been run

    def start(self, name):
        """Begin from a state: "applied" or "promoted"."""
        shutil.rmtree(self.root, ignore_errors=True)
        start = self.starts / name
        if not start.exists():
            self.root.mkdir()
            self.kind.make(self.served)
            apply_index(MODEL, open_store(self.served, metric="l2"), self.kind.green)
            if name == "promoted":
                promote_index(str(self.served), self.kind.green)
            shutil.copytree(self.root, start)
            shutil.rmtree(self.root)
        # where marks say where they come from, that is the same path in every run
        shutil.copytree(start, self.root)

    @property
    def served(self):
        return self.root / self.kind.served

    def versions(self):
        """The versions that are anywhere, each as often as it is there."""
        files = [path for path in self.root.iterdir() if path.suffix != ".json" and path.name[0] != "."]
        known = {path.stat().st_ino: self.kind.version(path) for path in files if path.exists()}
        return sorted(filter(None, known.values()))

    def check_now(self):
        """What must hold at every moment."""
        if self.system != MAY_BE_MISSING or self.served.exists():
            assert self.kind.version(self.served) is not None, "the served name has no whole version"
        assert {"original", "moved"} <= set(self.versions()), "a version vanished"

    def state(self):
        """All that is there: names without what is random in them, contents, and which names are one file."""
        numbers, found = {}, []
        for path in sorted(self.root.rglob("*")):
            status = path.lstat()
            numbers.setdefault(str(status.st_ino), f"file {len(numbers)}")
            content = path.read_bytes() if path.is_file() else b""
            found.append((str(path.relative_to(self.root)), str(status.st_ino), content.decode("latin-1")))
        text = re.sub(r"\.[0-9a-f]{8}\.part", ".part", repr(found))
        return re.sub(r"\d{3,}", lambda number: numbers.get(number[0], number[0]), text)

    def check_end(self):
        """What must hold when all processes are gone, after recovery."""
        if (state := self.state()) in self.ends:
            return
        self.ends.add(state)
        recover_index(str(self.served))
        self.check_now()
        hidden = [path.name for path in self.root.iterdir() if path.name.startswith(".")]
        assert [
            name for name in hidden if not name.endswith(".hubless-lock")
        ] == []  # which the next one takes
        served = self.kind.version(self.served)
        status = index_status(str(self.served))
        assert status["status"] == ("original" if served == "original" else "serving moved")
        assert not status["interrupted"]
        if served == "moved":
            assert status["original_is_there"]
            rollback_index(str(self.served))
        assert self.kind.version(self.served) == "original"
        assert len(self.versions()) <= 3  # a promote that is refused may leave a copy; rows are never doubled
        target = next(
            path
            for path in sorted(self.root.iterdir())
            if path.suffix != ".json" and self.kind.version(path) == "moved"
        )
        promote_index(str(self.served), target.name)
        rollback_index(str(self.served))
        self.check_now()
        assert self.kind.version(self.served) == "original"


def read(world):
    """Read as every verb that only looks does: it gets one whole version, or an error that says why."""
    try:
        store = open_store(str(world.served), metric="l2")
        store.mark()
        rows = np.concatenate([batch.vectors for batch in store.batches(size=5)])
        index_status(str(world.served))
    except StoreError as error:
        if any(word in str(error) for word in ("was replaced", "is happening", "does not exist")):
            return
        raise AssertionError(f"a reader is told {error}") from error
    assert rows.tobytes() in VERSIONS, "rows of two versions"


WORK = {
    "promote": lambda world: promote_index(str(world.served), world.kind.green),
    "rollback": lambda world: rollback_index(str(world.served)),
    "recover": lambda world: recover_index(str(world.served)),
    "apply": lambda world: apply_index(MODEL, str(world.served), world.kind.green),
    "read": read,
}
STRIDE = 4  # steps from one moment to the next, unless all are wanted
STARTS = {"promote": "applied", "rollback": "promoted"}


def refusals_allowed(actor):
    """An actor ends well, or with an error for its user."""
    assert actor.error is None or isinstance(actor.error, StoreError), repr(actor.error)


def take(world, actor, steps=None, *, seen=0):
    """Let an actor take steps, with a look at the world after each but the first, `seen` in another run."""
    taken = actor.go(max(seen, 0))
    while not actor.is_done and taken != steps:
        taken += actor.go(1)
        world.check_now()
    return taken


@pytest.fixture
def world(request, tmp_path, monkeypatch):
    world = World(request.param, tmp_path)
    world.moments = stride_of(request.node.nodeid, STRIDE)
    world.start("applied")  # which loads the classes of stores
    install(monkeypatch)
    for limit in world.limits:
        limit(monkeypatch)
    return world


every_system = pytest.mark.parametrize("world", SYSTEMS, indirect=True)


def crashes(world, work, then, *, sees_reads=True):
    """Kill one process before its steps, let another run, then recover."""
    (moment, stride), is_done = world.moments, False
    while not is_done:
        world.start(STARTS[work])
        actor = Actor(partial(WORK[work], world), world.root, sees_reads=sees_reads)
        take(world, actor, moment, seen=moment - stride)
        is_done = actor.is_done
        actor.kill()
        world.check_now()
        other = Actor(partial(WORK[then], world), world.root)
        take(world, other)
        refusals_allowed(other)
        if then == "read":
            assert other.changes == [], "a reader wrote"
        world.check_end()
        moment += stride
    return moment


@pytest.mark.parametrize("world", ["file", "folder"], indirect=True)
@pytest.mark.parametrize("work", STARTS)
def test_a_crash_at_every_change(world, work):
    assert crashes(world, work, "read", sees_reads=False) > 10


@pytest.mark.services
@pytest.mark.parametrize("world", OF_ENGINES, indirect=True)
@pytest.mark.parametrize("work", STARTS)
def test_a_crash_at_every_change_of_an_index(world, work):
    assert crashes(world, work, "read", sees_reads=False) > 10


@pytest.mark.faults
@every_system
@pytest.mark.parametrize("work", STARTS)
def test_a_crash_at_every_step(world, work):
    assert crashes(world, work, "read") > 20


@pytest.mark.faults
@every_system
@pytest.mark.parametrize("work", STARTS)
@pytest.mark.parametrize("then", ["promote", "rollback", "apply"])
def test_a_crash_at_every_change_and_then_another_verb(world, work, then):
    crashes(world, work, then, sees_reads=False)


@pytest.mark.faults
@every_system
@pytest.mark.parametrize("work", STARTS)
def test_a_crash_at_every_change_and_again_while_it_is_recovered(world, work):
    (first, stride), is_done = world.moments, False
    while not is_done:
        second, is_recovered = 0, False
        while not is_recovered:
            world.start(STARTS[work])
            actor = Actor(partial(WORK[work], world), world.root)
            take(world, actor, first, seen=first - (stride if second == 0 else 0))
            is_done = actor.is_done
            actor.kill()
            recovery = Actor(partial(WORK["recover"], world), world.root)
            take(world, recovery, second, seen=second - 1)
            is_recovered = recovery.is_done
            recovery.kill()
            world.check_end()
            second += 1
        first += stride


def interleave(world, work, other):
    """Let one process stop before its steps while another runs to its end."""
    (moment, stride), is_done = world.moments, False
    while not is_done:
        world.start(STARTS[work])
        actors = [Actor(partial(WORK[name], world), world.root, sees_reads=True) for name in (work, other)]
        take(world, actors[0], moment, seen=moment - stride)
        is_done = actors[0].is_done
        for actor in reversed(actors):
            take(world, actor)
            refusals_allowed(actor)
        if other == "read":
            assert actors[1].changes == [], "a reader wrote"
        world.check_end()
        moment += stride


@pytest.mark.faults
@every_system
@pytest.mark.parametrize("work", STARTS)
@pytest.mark.parametrize("other", WORK)
def test_another_process_at_every_step(world, work, other):
    interleave(world, work, other)


@pytest.mark.parametrize("world", ["folder", "folder, no exchange"], indirect=True)
@pytest.mark.parametrize("work", STARTS)
def test_the_model_finds_a_reader_that_settles_switches(world, work, monkeypatch):
    """The defect that this model was written for: `open_store` settled switches, without a lock."""
    world.moments = (0, 1)
    kind_of = opening._class_for

    def settling(text):
        recover_switch(world.served)
        return kind_of(text)

    monkeypatch.setattr(opening, "_class_for", settling)
    with pytest.raises(AssertionError):
        interleave(world, work, "read")


# --- long histories -----------------------------------------------------------------------------------------


class Histories(RuleBasedStateMachine):
    """Verbs one after the other in any order, many of them killed somewhere, on every system."""

    @initialize(system=st.sampled_from(sorted(SYSTEMS)))
    def begin(self, system):
        self.patch = pytest.MonkeyPatch()
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(system, self.folder)
        self.world.start("applied")
        install(self.patch)
        for limit in self.world.limits:
            limit(self.patch)

    @rule(verb=st.sampled_from(sorted(WORK)), moment=st.none() | st.integers(0, 60))
    def run(self, verb, moment):
        actor = Actor(partial(WORK[verb], self.world), self.world.root)
        actor.go(moment)
        actor.kill()
        refusals_allowed(actor)
        assert verb != "read" or actor.changes == [], "a reader wrote"

    @rule(name=st.sampled_from(["v.original", "v.moved-00000000", "green"]))
    def plant(self, name):
        """Somebody puts a file of his own where hubless keeps things, unless something is there."""
        path = self.world.root / f"{name}{Path(self.world.kind.served).suffix}"
        if not os.path.lexists(path):
            path.write_bytes(b"theirs")

    @invariant()
    def the_served_name_answers(self):
        world = self.world
        if world.system != MAY_BE_MISSING or world.served.exists():
            assert world.kind.version(world.served) is not None, "the served name has no whole version"
        assert "original" in world.versions(), "the original vanished"

    def teardown(self):
        if not hasattr(self, "world"):
            return
        try:
            recover_index(str(self.world.served))
            assert self.world.kind.version(self.world.served) is not None
            for path in self.world.root.iterdir():
                assert not path.name.startswith(".") or path.name.endswith("lock"), path
        finally:
            self.patch.undo()
            shutil.rmtree(self.folder)


TestHistories = pytest.mark.faults(Histories.TestCase)
TestHistories.settings = settings(max_examples=60, stateful_step_count=12, deadline=None, derandomize=True)
