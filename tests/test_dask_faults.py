"""Processes that die under Dask, workers at random moments, the scheduler, the client: the same results."""

import random
import signal
import threading
import time
from contextlib import contextmanager

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

from hubless.distributed import files, learn
from hubless.index.apply import apply
from hubless.index.collection import collect
from hubless.index.repair import Own, Repair
from hubless.large import plan
from hubless.large.fit import fit_large
from hubless.movers import LabelRidge, MoveLabeled
from hubless.stores.opening import open_store
from tests.dask_cluster import FORKS, running

D = 24


def fit_in_a_process(address, data, scratch):
    """A client of its own, which does not live long."""
    cut_finely(setattr)
    with Client(address):
        fit(data, scratch)


@pytest.fixture(scope="module")
def cluster():
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def data():
    """10,000 objects of Zipf classes, in 8 blocks."""
    rng = np.random.default_rng(0)
    y = np.minimum(rng.zipf(1.5, 10_000), 30)
    X = rng.standard_normal((31, D))[y] + rng.standard_normal((len(y), D))
    return X.astype(np.float32), y


def cut_finely(setattr):
    """Many bins, large classes in chunks: there is always something under way."""
    setattr(plan, "LITTLE", 1 << 22)
    setattr(learn, "BIN", 1500 * D * 4)


@pytest.fixture(autouse=True)
def many_bins(monkeypatch):
    cut_finely(monkeypatch.setattr)


def fit(data, scratch=None, progress=False):
    X, y = data
    x, labels = da.from_array(X, chunks=(1250, D)), da.from_array(y, chunks=1250)
    mover = LabelRidge(n_targets=2)
    fit_large(mover, x, labels, max_pairs=None, scratch=scratch, progress=progress)
    return np.concatenate([mover.W_, mover.means_])


class Killer:
    """Kills a worker some time after it is told to begin."""

    def __init__(self, cluster, after, number):
        self.cluster, self.number = cluster, number
        self.timer = threading.Timer(after, self._kill)
        self.at = None

    def _kill(self):
        self.at = time.monotonic()
        self.cluster.kill_one(self.number)

    def stop(self):
        """Whether it was in time."""
        ended = time.monotonic()
        self.timer.cancel()
        self.timer.join()
        return self.at is not None and self.at < ended


@contextmanager
def client_of(cluster):
    with Client(cluster.address, timeout=20) as client:
        client.wait_for_workers(1, timeout=60)
        yield client


# --- workers -----------------------------------------------------------------------------------------------


def test_workers_killed_while_they_learn(cluster, data):
    """Ten times at random moments, without waiting for others to take their place."""
    chance, in_time = random.Random(0), 0
    with client_of(cluster):
        want = fit(data)
        started = time.monotonic()
        np.testing.assert_array_equal(fit(data), want)
        quiet = time.monotonic() - started
        for _ in range(10):
            killer = Killer(cluster, chance.uniform(0.02, 0.9) * quiet, chance.randrange(2))
            killer.timer.start()
            found = fit(data)
            in_time += killer.stop()
            np.testing.assert_array_equal(found, want)
    in_memory = LabelRidge(n_targets=2).fit(*data).W_
    assert np.linalg.norm(want[:D] - in_memory) <= 1e-6 * np.linalg.norm(in_memory)
    assert in_time >= 7


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


@pytest.mark.parametrize("kind", ["parts", "npy"])
def test_workers_killed_while_they_move(cluster, data, tmp_path, monkeypatch, kind):
    """Five times each: the same files, and nothing beside them."""
    X, y = np.tile(data[0], (12, 1)), np.tile(data[1], 12)
    if kind == "parts":
        source, end = write_parts(tmp_path / "blue", X, y, 10), ""
    else:
        source, end = tmp_path / "blue.npy", ".npy"
        np.save(source, X)
        monkeypatch.setattr(files, "BLOCK", 6000 * D * 4)
    labels = [f"c{v}" for v in y]
    by_class = Repair(LabelRidge().fit(data[0], labels[: len(data[0])]), "l2", "label")
    model = by_class if kind == "parts" else Repair(MoveLabeled().fit(*data), "l2")
    killers, compute = [], files.compute

    def computed(*args):
        if killers:
            killers[-1].timer.start()
        return compute(*args)

    monkeypatch.setattr(files, "compute", computed)
    monkeypatch.setattr("hubless.index.apply.compare_recall", lambda *_: [])
    chance, in_time = random.Random(1), 0
    with client_of(cluster):
        apply(model, open_store(source), f"quiet{end}", on_dask=True)
        want = content(tmp_path / f"quiet{end}")
        for i in range(5):
            killers.append(Killer(cluster, chance.uniform(0.0, 0.5), chance.randrange(2)))
            told = apply(model, open_store(source), f"green{i}{end}", on_dask=True)
            in_time += killers[-1].stop()
            assert told["written"] == len(X)
            assert content(tmp_path / f"green{i}{end}") == want
    moved = moved_of(tmp_path / f"quiet{end}")
    np.testing.assert_allclose(moved, model.mover.move(X, labels), rtol=1e-5, atol=1e-5)
    assert not list(tmp_path.glob(".*"))
    assert in_time >= 3


def moved_of(path):
    return np.concatenate([vectors for vectors, _ in open_store(path).blocks()])


def test_items_with_steps_of_their_own_by_their_row_number(cluster, data, tmp_path):
    """Rows are counted through all parts."""
    X, y = data[0][:3000], data[1][:3000]
    folder = write_parts(tmp_path / "blue", X, y, 4)
    own = Own(np.array([1, 760, 2999]), np.full((3, D), 50.0, np.float32), 0.5)
    about = collect(open_store(folder)).in_space("l2").about()
    model = Repair(MoveLabeled().fit(X, y), "l2", None, own, {"data": about})
    with client_of(cluster):
        apply(model, open_store(folder), "green", on_dask=True)
    apply(model, open_store(folder), "plain")
    np.testing.assert_array_equal(moved_of(tmp_path / "green"), moved_of(tmp_path / "plain"))
    far = np.flatnonzero(moved_of(tmp_path / "green").max(axis=1) > 20)
    assert far.tolist() == [1, 760, 2999]


# --- the scheduler, the client -----------------------------------------------------------------------------


def kept_in(folder):
    return {file.name for file in folder.glob("*.npz")} if folder.exists() else set()


def once_some_are_kept(folder, most, act):
    """Act in a thread as soon as some results of parts are there."""

    def watch():
        until = time.monotonic() + 60
        while len(kept_in(folder)) < most and time.monotonic() < until:
            time.sleep(0.005)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("progress", [False, True])
def test_a_lost_scheduler_is_told_and_the_rerun_goes_on(cluster, data, tmp_path, progress):
    with client_of(cluster):
        want = fit(data)
        fit(data, tmp_path / "whole")
    whole = kept_in(tmp_path / "whole")
    scratch = tmp_path / "scratch"
    with running() as first, client_of(first):
        thread = once_some_are_kept(scratch, 3, first.kill_scheduler)
        started = time.monotonic()
        with pytest.raises(ConnectionError, match=r"scheduler was lost.*run the same again"):
            fit(data, scratch, progress)
        assert time.monotonic() - started < 30
        thread.join()
    before = {name: (scratch / name).stat().st_mtime_ns for name in kept_in(scratch)}
    assert 3 <= len(before) < len(whole)
    with client_of(cluster):
        np.testing.assert_array_equal(fit(data, scratch), want)
    assert kept_in(scratch) == whole  # those that were missing, and no others
    assert all((scratch / name).stat().st_mtime_ns == at for name, at in before.items())


def test_a_client_that_is_killed_goes_on(cluster, data, tmp_path):
    with client_of(cluster):
        want = fit(data)
    scratch = tmp_path / "scratch"
    process = FORKS.Process(target=fit_in_a_process, args=(cluster.address, data, scratch))
    process.start()
    thread = once_some_are_kept(scratch, 3, process.kill)
    process.join()
    thread.join()
    assert process.exitcode == -signal.SIGKILL
    before = {name: (scratch / name).stat().st_mtime_ns for name in kept_in(scratch)}
    assert len(before) >= 3
    with client_of(cluster):
        np.testing.assert_array_equal(fit(data, scratch), want)
    assert all((scratch / name).stat().st_mtime_ns == at for name, at in before.items())
