"""An apply that is killed, interrupted, run twice at once or out of disk, for every kind of store.

Each kind says how it is made and looked at, by its own library; what is required of it is the same for all.
Processes are ended at moments that do not depend on the speed of the machine (see `fault_driver.py`), and a
few times by the clock, wherever they are then.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import hubless
from hubless.corrections import NNN
from hubless.movers import Stay
from hubless.repair.apply import promote_index, rollback_index
from hubless.repair.repair import Repair
from hubless.stores.opening import open_store
from hubless.testing.store_cases import model_between, model_for, sample
from tests.repair.fault_stores import KINDS, Pgvector, Qdrant, digest, remove

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[2]
MOMENTS = 12  # of all, spread evenly from the first to the last
BY_CLOCK = 3
FILES = ["npy", "parts", "faiss"]
TESTED = [*FILES, "lance", "pgvector", "qdrant", "sqlite", "duckdb"]  # `python -m benchmarks faults` has all
WRITTEN_BY_ENGINES = ["usearch", "hnswlib"]  # of the same class as FAISS, but for what their engines write


@pytest.fixture(scope="module")
def driver():
    """The process that applies, for all tests: it takes seconds to start."""
    packages = ["pyarrow.dataset", "pyarrow.parquet", "faiss", "usearch.index", "hnswlib"]
    packages += ["lancedb", "psycopg.sql", "qdrant_client"]
    packages += ["sqlite_vec", "duckdb", "hubless.stores.sqlite_vec.vec_session"]
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


every = pytest.mark.parametrize("trial", TESTED, indirect=True)
files = pytest.mark.parametrize("trial", FILES, indirect=True)
full_disks = pytest.mark.parametrize(
    "trial",
    [*FILES, "hdf5", *WRITTEN_BY_ENGINES],
    indirect=True,
)  # HDF5 buffers what it writes
every_to_another_width = pytest.mark.parametrize(
    "trial", [f"{name} to {width}" for name, width in zip(TESTED, [21, 5] * 4, strict=True)], indirect=True
)

every_corrected = pytest.mark.parametrize(
    "trial",
    [f"{name} to {how}" for name in TESTED for how in ("corrected", "corrected by a column")],
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


@pytest.mark.parametrize("trial", [*TESTED, *WRITTEN_BY_ENGINES], indirect=True)
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


@full_disks
def test_a_full_disk_is_reported_and_leaves_nothing(trial):
    trial.resume()
    largest = largest_file(trial)
    trial.kind.clear()
    for limit in (0, 100, largest // 2, int(0.9 * largest)):
        done = trial.apply(limit=limit)
        assert (done["code"], done["said"][0]) == (1, "began")
        assert "too large" in done["said"][1]  # which is a full disk here
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
