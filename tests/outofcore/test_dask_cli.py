"""`hubless fit … --dask` and `hubless apply … --dask`: on a running cluster or one that they start."""

import subprocess
import sys

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster

from hubless import load, save
from hubless.corrections import NNN
from hubless.movers import MoveLabeled, Stay
from hubless.outofcore.dask import dask_files as files
from hubless.outofcore.dask import engine
from hubless.repair.repair import Repair
from tests.outofcore.dask_cluster import running

D, ROWS, PARTS = 8, 150, 6
RIDGE = ["--labels", "label", "--mover", "ridge", "--max-pairs", "all"]
WAYS = {"disk": ["--memory", "1GB"], "dask": ["--dask"]}


@pytest.fixture(scope="module")
def address():
    """A cluster whose two workers are threads of this process."""
    how = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(protocol="tcp", **how) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def processes():
    """A cluster whose two workers are processes."""
    with running() as cluster:
        yield cluster.address


@pytest.fixture
def data(rng):
    y = rng.integers(0, 5, ROWS * PARTS)
    X = 2 * rng.standard_normal((5, D))[y] + rng.standard_normal((len(y), D)) + 3
    return X.astype(np.float32), np.array([f"c{code}" for code in y])


def table_of(X, labels):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(X).reshape(-1)), X.shape[1])
    return pa.table({"v": vectors, "label": labels})


@pytest.fixture
def folder(data, tmp_path):
    X, y = data
    (tmp_path / "parts").mkdir()
    for i in range(PARTS):
        rows = slice(i * ROWS, (i + 1) * ROWS)
        pq.write_table(table_of(X[rows], y[rows]), tmp_path / "parts" / f"{i}.parquet")
    return tmp_path / "parts"


def assert_near(mover, want):
    assert np.linalg.norm(mover.W_ - want.W_) <= 1e-6 * np.linalg.norm(want.W_)
    np.testing.assert_allclose(mover.mean_, want.mean_, rtol=1e-6)


def same_as_in_memory(data, mover):
    """The W of a fit in memory to all rows with the parameters that were chosen."""
    assert_near(mover, MoveLabeled(**{**mover.get_params(), "keep_moments": False}).fit(*data))


@pytest.mark.parametrize("workers", ["address", pytest.param("processes", marks=pytest.mark.slow)])
def test_fit_and_apply_on_a_running_cluster(run, workers, folder, data, tmp_path, request):
    made, address = {}, request.getfixturevalue(workers)
    for name, options in WAYS.items():
        how = [*RIDGE, *options, *([address] if name == "dask" else [])]
        made[name] = run("fit", folder, *how, "-o", tmp_path / name)
        same_as_in_memory(data, load(tmp_path / name).mover)
    assert made["dask"]["learned"]["pairs"] == made["disk"]["learned"]["pairs"]
    assert made["dask"]["learned"]["n"] == len(data[0])
    assert not (tmp_path / "dask.scratch").exists()
    plain = run("apply", tmp_path / "dask", folder, "-o", "plain")
    moved = run("apply", tmp_path / "dask", folder, "-o", "moved", "--dask", address)
    assert moved["written"] == plain["written"] == len(data[0])
    for i in range(PARTS):
        one, other = (pq.read_table(tmp_path / name / f"{i}.parquet") for name in ("plain", "moved"))
        assert one.equals(other)
    assert run("apply", tmp_path / "dask", folder, "-o", "moved", "--dask", address)["written"] == 0
    assert run("promote", folder, "moved")["serving"] == str(folder)


def test_the_same_parameters_are_chosen(run, address, folder, tmp_path):
    run("fit", folder, *RIDGE, "--memory", "1GB", "-o", tmp_path / "disk")
    run("fit", folder, *RIDGE, "--dask", address, "-o", tmp_path / "dask")
    assert_near(load(tmp_path / "dask").mover, load(tmp_path / "disk").mover)


def test_a_matrix_of_many_blocks(run, address, data, tmp_path, monkeypatch):
    X, y = data
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "items.csv").write_text("label\n" + "".join(f"{label}\n" for label in y))
    monkeypatch.setattr(files, "BLOCK", 100 * D * 4)
    source = [tmp_path / "v.npy", "--items", tmp_path / "items.csv"]
    run("fit", *source, *RIDGE, "--dask", address, "-o", tmp_path / "model")
    mover = load(tmp_path / "model").mover
    same_as_in_memory(data, mover)
    run("apply", tmp_path / "model", *source, "-o", "moved.npy", "--dask", address)
    np.testing.assert_allclose(np.load(tmp_path / "moved.npy"), mover.move(X), rtol=1e-5, atol=1e-5)


def test_moved_copies_of_another_width(run, address, folder, data, tmp_path, monkeypatch):
    X, _ = data
    np.save(tmp_path / "v.npy", X)
    monkeypatch.setattr(files, "BLOCK", 100 * D * 4)
    queries = (X @ np.random.default_rng(0).standard_normal((D, 13))).astype(np.float32)
    model = Repair(MoveLabeled(1.0).fit_pairs(queries, X))
    save(model, tmp_path / "model")
    for source, target in ((tmp_path / "v.npy", "moved.npy"), (folder, "moved")):
        run("apply", tmp_path / "model", source, "-o", target, "--dask", address)
    wanted = model.move(X)
    np.testing.assert_allclose(np.load(tmp_path / "moved.npy"), wanted, rtol=1e-5, atol=1e-5)
    table = pq.read_table(tmp_path / "moved")
    np.testing.assert_allclose(table["v"].to_pylist(), wanted, rtol=1e-5, atol=1e-5)
    assert table["label"].to_pylist() == data[1].tolist()
    assert run("promote", folder, "moved")["serving"] == str(folder)
    assert run("status", folder)["dimension"] == 13


def test_parts_are_written_as_they_were(run, address, folder, data, tmp_path):
    X, y = data
    pq.write_table(table_of(X[:ROWS], y[:ROWS]), folder / "0.parquet", compression="zstd", row_group_size=40)
    save(Repair(MoveLabeled(1.0).fit(X, y)), tmp_path / "model")
    run("apply", tmp_path / "model", folder, "-o", "moved", "--dask", address)
    for name, codec, rows in (("0.parquet", "ZSTD", [40, 40, 40, 30]), ("1.parquet", "SNAPPY", [ROWS])):
        metadata = pq.read_metadata(tmp_path / "moved" / name)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        assert [group.num_rows for group in groups] == rows
        assert {group.column(0).compression for group in groups} == {codec}


@pytest.mark.parametrize("column", [False, True])
def test_moved_copies_with_a_correction(run, address, folder, data, tmp_path, monkeypatch, column):
    X, _ = data
    np.save(tmp_path / "v.npy", X)
    monkeypatch.setattr(files, "BLOCK", 100 * D * 4)
    queries = X[::3] + np.random.default_rng(0).standard_normal(X[::3].shape).astype(np.float32)
    correction = NNN(0.5, 3, metric="l2", column=column).fit(queries, X)
    model = Repair(Stay().fit(X, np.zeros(len(X))), correction=correction)
    save(model, tmp_path / "model")
    for source, target in ((tmp_path / "v.npy", "moved.npy"), (folder, "moved")):
        run("apply", tmp_path / "model", source, "-o", target, "--dask", address)
    wanted = model.move(X)
    assert (np.abs(wanted[:, :D] - X).max() if not column else wanted[:, D].max()) > 0.1
    np.testing.assert_allclose(np.load(tmp_path / "moved.npy"), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(pq.read_table(tmp_path / "moved")["v"].to_pylist(), wanted, atol=1e-5)
    assert run("promote", folder, "moved")["serving"] == str(folder)
    assert run("status", folder)["dimension"] == D + column


def test_bad_parts(run, refused, address, folder, data, tmp_path):
    X, y = data
    holed = X[ROWS : 2 * ROWS].copy()
    holed[7, 2] = np.nan
    pq.write_table(table_of(holed, y[ROWS : 2 * ROWS]), folder / "1.parquet")
    (folder / "3.parquet").write_bytes(b"junk")
    pq.write_table(table_of(X[600:750, :5], y[600:750]), folder / "4.parquet")
    how = [*RIDGE, "--dask", address]
    message = refused("fit", folder, *how, "-o", tmp_path / "model")
    assert message.count("\n") == 1
    assert f"row 7 of {folder / '1.parquet'} has NaN" in message
    found = run("fit", folder, *how, "--skip-bad", "-o", tmp_path / "model")
    left_out = {entry["part"]: entry["why"] for entry in found["learned"]["left out"]}
    assert list(left_out) == [str(folder / f"{i}.parquet") for i in (1, 3, 4)]
    assert "5 columns, the others 8" in left_out[str(folder / "4.parquet")]
    kept = np.r_[:150, 300:450, 750:900]
    same_as_in_memory((X[kept], y[kept]), load(tmp_path / "model").mover)


@pytest.mark.parametrize("way", WAYS)
def test_a_part_of_another_space(run, refused, address, folder, data, tmp_path, way):
    """Its vectors are compared by inner product, and not of one length as the others are."""
    X, y = data
    for i in range(PARTS):
        Z = X[i * ROWS : (i + 1) * ROWS]
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        pq.write_table(table_of(7 * X[:ROWS] if i == 2 else Z, y[:ROWS]), folder / f"{i}.parquet")
    how = ["--dask", address] if way == "dask" else WAYS[way]
    options = [folder, *RIDGE, *how, "--metric", "ip", "-o", tmp_path / "m"]
    assert str(folder / "2.parquet") in refused("fit", *options)
    run("fit", *options, "--skip-bad")
    (left_out,) = load(tmp_path / "m").facts["learned"]["left out"]
    assert left_out["part"] == str(folder / "2.parquet")
    assert "compares by inner product" in left_out["why"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_to_learn_from(refused, address, data, tmp_path, way):
    how = ["--dask", address] if way == "dask" else WAYS[way]
    options = [tmp_path / "X.npy", "--items", tmp_path / "y.npy", *RIDGE, *how, "-o", tmp_path / "m"]
    for n, words in ((0, "X.npy is empty"), (20, "there is no object with a label to learn from")):
        np.save(tmp_path / "X.npy", data[0][:n])
        np.save(tmp_path / "y.npy", np.full(n, ""))
        assert words in refused("fit", *options)


@pytest.mark.slow
def test_a_cluster_that_fit_starts(folder, data, tmp_path):
    line = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "hubless",
        "fit",
        str(folder),
        *RIDGE,
        "--dask",
        "-o",
        "model",
    ]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    names = {line.rpartition(": ")[0] for line in done.stderr.splitlines()}  # of steps that took a second
    assert all(name and "Warning" not in name for name in names), done.stderr
    assert "Learned from 900 pairs of 900 items." in done.stdout
    same_as_in_memory(data, load(tmp_path / "model").mover)


@pytest.mark.parametrize("place", ["tcp://127.0.0.1:1", "nonsense", "tcp://127.0.0.1"])
def test_a_wrong_address(refused, folder, tmp_path, monkeypatch, place):
    monkeypatch.setattr(engine, "CONNECT", 1)  # seconds; 20 for users, who may be faster than a scheduler
    message = refused("fit", folder, "--labels", "label", "--dask", place, "-o", tmp_path / "model")
    assert f"there is no Dask scheduler at {place}" in message
    assert message.count("\n") == 1
    assert not (tmp_path / "model").exists()
    assert dask.config.get("scheduler", None) is None  # what the process computes next is not affected


@pytest.fixture
def database(data, tmp_path):
    import lancedb

    table = table_of(*data).append_column("id", pa.array(np.arange(len(data[0]))))
    lancedb.connect(tmp_path / "db").create_table("items", table)
    return f"lancedb:{tmp_path / 'db'}#items"


@pytest.fixture
def model(run, folder, tmp_path):
    run("fit", folder, *RIDGE, "-o", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("kind", ["parts", "npy"])
def test_workers_count_what_they_do_not_move(run, address, data, tmp_path, kind):
    """As one process does: rows with NaN or infinite numbers."""
    X, y = data
    X = X.copy()
    X[0], X[200, 1], X[400, 2] = np.nan, np.nan, np.inf
    source, end = tmp_path / "v.npy", ".npy"
    if kind == "npy":
        np.save(source, X)
    else:
        source, end = tmp_path / "hurt", ""
        source.mkdir()
        for i, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
            pq.write_table(table_of(X[rows], y[rows]), source / f"{i}.parquet")
    save(Repair(MoveLabeled().fit(*data), "l2"), tmp_path / "m")
    verb = ["apply", tmp_path / "m", source, "--metric", "l2"]
    made = run(*verb, "-o", f"moved{end}", "--dask", address)
    assert made["unmoved"] == {"no vector": 2, "infinite": 1, "too large": 0, "zero": 0, "unknown class": 0}
    assert made["notes"] == run(*verb, "-o", f"other{end}")["notes"]
    assert run(*verb, "-o", f"moved{end}", "--dask", address)["unmoved"] is None  # nothing was read


@pytest.mark.services
def test_a_database_cannot_be_read_by_workers(refused, address, database, tmp_path):
    message = refused("fit", database, *RIDGE, "--dask", address, "-o", tmp_path / "model")
    assert "cannot be read by many workers" in message
    assert "leave out --dask" in message


@pytest.mark.services
def test_nothing_is_begun_in_a_database(refused, address, database, model, tmp_path):
    import lancedb

    assert "leave out --dask" in refused("apply", model, database, "-o", "moved", "--dask", address)
    assert lancedb.connect(tmp_path / "db").list_tables().tables == ["items"]


def test_one_parquet_file_cannot_be_written_by_workers(refused, address, data, model, tmp_path):
    pq.write_table(table_of(*data), tmp_path / "one.parquet")
    before = sorted(tmp_path.iterdir())
    message = refused("apply", model, tmp_path / "one.parquet", "-o", "m.parquet", "--dask", address)
    assert "leave out --dask" in message
    assert sorted(tmp_path.iterdir()) == before
