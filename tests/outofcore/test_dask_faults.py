"""Processes that die under Dask, workers at random moments, the scheduler, the client: the same results.

A process dies after a number of events (blocks that were searched, parts that were written), not after a
time: it dies in the middle of its work, however slow the machine is.
"""

import os
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

from hubless.movers import LabelRidge, MoveLabeled
from hubless.outofcore import pair_sums
from hubless.outofcore.dask import dask_files as files
from hubless.outofcore.dask.dask_objects import DaskObjects
from hubless.outofcore.fit import fit_large
from hubless.repair.apply import apply_index
from hubless.repair.index_items import read_items
from hubless.repair.repair import ItemSteps, Repair
from hubless.stores.opening import open_store
from tests.outofcore.dask_cluster import FORKS, running

pytestmark = pytest.mark.faults
D = 24
BLOCKS, GROUPS = 8, 3
STEPS = 2 + 3 * GROUPS  # the look and the means; then draw, search, sum for each group


def in_groups(setattr):
    """Learn from sums, for three groups of sources."""
    setattr(DaskObjects, "room", 1)
    setattr(pair_sums, "group_size", lambda *_: 1700)


@pytest.fixture(scope="module")
def cluster():
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def data():
    """4,000 objects of Zipf classes, in 8 blocks."""
    rng = np.random.default_rng(0)
    y = np.minimum(rng.zipf(1.5, 4000), 30)
    X = rng.standard_normal((31, D))[y] + rng.standard_normal((len(y), D))
    return X.astype(np.float32), y


@pytest.fixture(autouse=True)
def groups(monkeypatch):
    in_groups(monkeypatch.setattr)


def on_dask(data):
    return da.from_array(data[0], chunks=(500, D)), da.from_array(data[1], chunks=500)


def fit(data, scratch=None, progress=False):
    mover = LabelRidge(n_targets=2)
    fit_large(mover, *on_dask(data), max_pairs=None, scratch=scratch, progress=progress)
    return np.concatenate([mover.W_, mover.means_])


@contextmanager
def client_of(cluster):
    with Client(cluster.address, timeout=120) as client:
        client.wait_for_workers(1, timeout=600)
        yield client


class Doom:
    """A folder in which the calls of a function on workers are counted; at some of them a process is killed.

    `deaths` has numbers of events, of which every call has two, before and after it, and the process that
    dies then: its id, or None for the worker itself.
    """

    def __init__(self, folder, deaths=None):
        self.folder, self.deaths = Path(folder), deaths or {}
        self.folder.mkdir()

    def event(self):
        number = -1
        while True:
            number += 1
            with suppress(FileExistsError):
                os.close(os.open(self.folder / str(number), os.O_CREAT | os.O_EXCL))
                break
        if number in self.deaths:
            os.kill(self.deaths[number] or os.getpid(), signal.SIGKILL)

    @property
    def n_events(self):
        return len(list(self.folder.iterdir()))


class Deadly:
    """A function that workers call, with events."""

    def __init__(self, function, doom):
        self.function, self.doom, self.__name__ = function, doom, function.__name__

    def __call__(self, *arguments):
        self.doom.event()
        result = self.function(*arguments)
        self.doom.event()
        return result


def with_dooms(setattr, dooms):
    """Let steps of learning have events; `dooms` has them by the number of the step, or by its function."""
    map_blocks, step = DaskObjects.map, iter(range(10**6))

    def mapped(self, function, *rest, **options):
        doom = dooms.get(next(step)) or dooms.get(function.__name__)
        return map_blocks(self, function if doom is None else Deadly(function, doom), *rest, **options)

    setattr(DaskObjects, "map", mapped)
    return step


# --- workers -----------------------------------------------------------------------------------------------


@contextmanager
def replacing(cluster):
    """Let other workers take the place of those that die."""
    stop = threading.Event()

    def watch():
        while not stop.wait(0.02):
            for worker in [worker for worker in cluster.workers if not worker.is_alive()]:
                cluster.workers.remove(worker)
                cluster.add()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def replaced(cluster):
    with replacing(cluster):
        yield


def test_workers_killed_while_they_learn(cluster, replaced, data, tmp_path, monkeypatch):
    """Ten workers die, at random moments of the look, of the means, and of draws, searches and sums."""
    rng = np.random.default_rng(0)
    deadly = sorted(rng.choice(STEPS, 10, replace=False).tolist())
    with client_of(cluster):
        want = fit(data)
        # where sources are drawn, there may be as few as two blocks
        dooms = {step: Doom(tmp_path / f"step {step}", {int(rng.integers(0, 4)): None}) for step in deadly}
        steps = with_dooms(monkeypatch.setattr, dooms)
        np.testing.assert_array_equal(fit(data), want)
        assert next(steps) == STEPS
    in_memory = LabelRidge(n_targets=2).fit(*data).W_
    assert np.linalg.norm(want[:D] - in_memory) <= 1e-6 * np.linalg.norm(in_memory)
    for doom in dooms.values():  # all died, and others did their work
        assert doom.n_events > max(doom.deaths) + 1


def content(path):
    """Names and bytes of a file, or of all in a folder."""
    if path.is_file():
        return path.read_bytes()
    return {file.relative_to(path): file.is_file() and file.read_bytes() for file in path.rglob("*")}


def write_parts(folder, X, y, n):
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(X)), n)):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].reshape(-1)), D)
        pq.write_table(pa.table({"v": vectors, "label": [f"c{v}" for v in y[rows]]}), folder / f"{i}.parquet")
    (folder / "README.txt").write_text("beside the parts")
    return folder


class DeadlyModel:
    """A model of which moving has an event before and after it."""

    def __init__(self, model, doom):
        self.model, self.doom = model, doom

    def move_batch(self, batch):
        return Deadly(self.model.move_batch, self.doom)(batch)

    def __getattr__(self, name):
        if name in ("model", "doom"):
            raise AttributeError(name)  # while it is unpickled
        return getattr(self.model, name)


@pytest.mark.parametrize("kind", ["parts", "npy"])
def test_workers_killed_while_they_move(cluster, replaced, data, tmp_path, monkeypatch, kind):
    """Five times each: the same files, and nothing beside them."""
    X, y = np.tile(data[0], (5, 1)), np.tile(data[1], 5)
    if kind == "parts":
        source, end = write_parts(tmp_path / "blue", X, y, 10), ""
    else:
        source, end = tmp_path / "blue.npy", ".npy"
        np.save(source, X)
        monkeypatch.setattr(files, "BLOCK", 2000 * D * 4)
    labels = [f"c{v}" for v in y]
    by_class = Repair(LabelRidge().fit(data[0], labels[: len(data[0])]), "l2", "label")
    model = by_class if kind == "parts" else Repair(MoveLabeled().fit(*data), "l2")
    dooms, write_moved = [], files.write_moved
    monkeypatch.setattr(
        "hubless.repair.build_copy.write_moved",
        lambda model, *rest: write_moved(DeadlyModel(model, dooms[-1]), *rest),
    )
    monkeypatch.setattr("hubless.repair.apply.compare_recall", lambda *_: [])
    rng = np.random.default_rng(1)
    with client_of(cluster):
        dooms.append(Doom(tmp_path / "doom"))
        apply_index(model, open_store(source), f"quiet{end}", dask=cluster.address)
        want = content(tmp_path / f"quiet{end}")
        assert dooms[0].n_events == 20  # before and after each of 10 parts
        for i in range(5):
            dooms.append(Doom(tmp_path / f"doom {i}", {int(rng.integers(0, 18)): None}))
            report = apply_index(model, open_store(source), f"green{i}{end}", dask=cluster.address)
            assert dooms[-1].n_events > 20  # one died, and others did its work
            assert report["written"] == len(X)
            assert content(tmp_path / f"green{i}{end}") == want
    moved = moved_of(tmp_path / f"quiet{end}")
    np.testing.assert_allclose(moved, model.mover.move(X, labels), rtol=1e-5, atol=1e-5)
    assert not list(tmp_path.glob(".*"))


def moved_of(path):
    return np.concatenate([vectors for vectors, _ in open_store(path).blocks()])


def test_items_with_steps_of_their_own_by_their_row_number(cluster, data, tmp_path):
    """Rows are counted through all parts."""
    X, y = data[0][:3000], data[1][:3000]
    folder = write_parts(tmp_path / "blue", X, y, 4)
    steps = ItemSteps(np.array([1, 760, 2999]), np.full((3, D), 50.0, np.float32), 0.5)
    about = read_items(open_store(folder)).in_space("l2").about()
    model = Repair(MoveLabeled().fit(X, y), "l2", None, steps, {"data": about})
    with client_of(cluster):
        apply_index(model, open_store(folder), "green", dask=cluster.address)
    apply_index(model, open_store(folder), "plain")
    np.testing.assert_array_equal(moved_of(tmp_path / "green"), moved_of(tmp_path / "plain"))
    far = np.flatnonzero(moved_of(tmp_path / "green").max(axis=1) > 20)
    assert far.tolist() == [1, 760, 2999]


# --- the scheduler, the client -----------------------------------------------------------------------------


SEARCH = 2 + 3 + 1  # the step that searches for the second group: after the look, the means and a group


def check_that_it_resumes(cluster, data, scratch, want, monkeypatch):
    """The sums of the first group are not computed again, nor the results of blocks of the second."""
    before = {file: file.stat().st_mtime_ns for file in scratch.glob("hubless-*.npz")}
    n_kept = len(before) - 1  # without the sums
    assert 1 <= n_kept <= BLOCKS  # workers that lost their client or scheduler may still end what they began
    with monkeypatch.context() as patched, client_of(cluster):
        searched = Doom(scratch.with_name("resumed"))
        with_dooms(patched.setattr, {"nearest_of_sources": searched})
        np.testing.assert_array_equal(fit(data, scratch), want)
    assert 2 * BLOCKS <= searched.n_events <= 2 * (2 * BLOCKS - n_kept)
    after = {file: file.stat().st_mtime_ns for file in scratch.glob("hubless-*.npz")}
    assert len(after) == GROUPS
    assert len(before.items() & after.items()) == 1


@pytest.mark.parametrize("progress", [False, True])
def test_a_lost_scheduler_is_reported_and_the_next_run_resumes(
    cluster, data, tmp_path, monkeypatch, progress
):
    with client_of(cluster):
        want = fit(data)
    scratch = tmp_path / "scratch"
    with running() as first, client_of(first), monkeypatch.context() as patched:
        with_dooms(patched.setattr, {SEARCH: Doom(tmp_path / "doom", {3: first.scheduler.pid})})
        with pytest.raises(ConnectionError, match=r"scheduler was lost.*run the same again"):
            fit(data, scratch, progress)
    check_that_it_resumes(cluster, data, scratch, want, monkeypatch)


def fit_in_a_process(address, data, scratch, folder):
    """Fit with a client in a process of its own, which a worker kills."""
    in_groups(setattr)
    with_dooms(setattr, {SEARCH: Doom(folder, {3: os.getpid()})})
    with Client(address):
        fit(data, scratch)


def test_after_a_killed_client_the_next_run_resumes(cluster, data, tmp_path, monkeypatch):
    with client_of(cluster):
        want = fit(data)
    scratch = tmp_path / "scratch"
    process = FORKS.Process(target=fit_in_a_process, args=(cluster.address, data, scratch, tmp_path / "doom"))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    check_that_it_resumes(cluster, data, scratch, want, monkeypatch)
