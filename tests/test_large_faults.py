"""Fits part by part that go wrong: bad parts, killed runs, a full disk, too little memory."""

import errno
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubless import MoveLabeled
from hubless.large import checkpoints, lesson, partition, stream
from hubless.large.fit import fit_large, source_of
from hubless.large.memory import as_bytes
from hubless.movers import LabelRidge, Shrink
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError

ROWS = 20  # of a part


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where scratch goes that nobody named: empty again after every test, whatever happened."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def data(rng):
    """100 objects of 3 classes, in five parts of 20."""
    y = np.arange(100) % 7 % 3
    return (3 * rng.standard_normal((3, 4))[y] + rng.standard_normal((100, 4))).astype(np.float32), y


def bytes_in(folder):
    return {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def vectors_of(X):
    return pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])


def write_parts(folder, X, y, suffix):
    folder.mkdir()
    for i in range(0, len(X), ROWS):
        file, rows = folder / f"part-{i // ROWS}.{suffix}", slice(i, i + ROWS)
        if suffix == "npz":
            np.savez_compressed(file, vectors=X[rows], label=y[rows])
        else:
            pq.write_table(pa.table({"v": vectors_of(X[rows]), "label": y[rows]}), file)
    return folder


# --- bad parts ---------------------------------------------------------------------------------------------


def with_numbers(change, width=4):
    """A part whose vectors are changed, or are of another width."""

    def damage(file, X, y):
        X = np.resize(X, (len(X), width)).copy()
        change(X)
        if file.suffix == ".npz":
            np.savez(file, vectors=X, label=y)
        else:
            pq.write_table(pa.table({"v": vectors_of(X), "label": y}), file)

    return damage


def with_labels(labels):
    """A Parquet part with other labels."""

    def damage(file, X, y):
        pq.write_table(pa.table({"v": vectors_of(X), "label": labels}), file)

    return damage


def with_bytes(change):
    return lambda file, X, y: file.write_bytes(change(file.read_bytes()))


def put(row, *values):
    def change(X):
        X[row, : len(values)] = values

    return change


def half(content):
    return content[: len(content) // 2]


def torn(content):
    """The same length, with other bytes in the middle."""
    middle = len(content) // 3
    return content[:middle] + bytes(200) + content[middle + 200 :]


def no_labels(file, X, y):
    pq.write_table(pa.table({"v": vectors_of(X), "other": y}), file)


NOTHING, INF = float("nan"), float("inf")
BAD = {
    "cut off, npz": ("npz", with_bytes(half), None),
    "torn, npz": ("npz", with_bytes(torn), None),
    "empty, npz": ("npz", with_bytes(lambda _: b""), None),
    "wide, npz": ("npz", with_numbers(put(0, 1.0), width=5), "5 columns, the others 4"),
    "a NaN, npz": ("npz", with_numbers(put(3, 1, NOTHING)), "row 3 of .*NaN"),
    "a row of NaN, npz": ("npz", with_numbers(put(19, *[NOTHING] * 4)), "row 19 of .*NaN"),
    "infinite, npz": ("npz", with_numbers(put(4, INF)), "row 4 of .*infinite"),
    "cut off, parquet": ("parquet", with_bytes(half), None),
    "torn, parquet": ("parquet", with_bytes(torn), None),
    "empty, parquet": ("parquet", with_bytes(lambda _: b""), None),
    "junk, parquet": ("parquet", with_bytes(lambda content: b"junk" * len(content)), None),
    "narrow, parquet": ("parquet", with_numbers(put(0, 1.0), width=3), "3 columns, the others 4"),
    "a NaN, parquet": ("parquet", with_numbers(put(3, 1, NOTHING)), "row 3 of .*NaN"),
    "both infinities, parquet": ("parquet", with_numbers(put(5, INF, -INF)), "row 5 of .*infinite"),
    "no labels, parquet": ("parquet", no_labels, "no column 'label'"),
    "half a label": ("parquet", with_labels([0.0] * 6 + [0.5] * 14), r"Unknown label type: row 6 of .*0\.5"),
    "lists": ("parquet", with_labels([[1]] * ROWS), r"Unknown label type: row 0 of .*\[1\] \(list\)"),
    "dicts": ("parquet", with_labels([{"a": 1}] * ROWS), r"Unknown label type: row 0 of .*\(dict\)"),
    "bytes": ("parquet", with_labels([b"a"] * ROWS), r"Unknown label type: row 0 of .*\(bytes\)"),
}


@pytest.mark.parametrize(("suffix", "damage", "told"), BAD.values(), ids=BAD)
def test_a_bad_part_is_named_or_left_out(data, tmp_path, suffix, damage, told):
    X, y = data
    folder = write_parts(tmp_path / "parts", X, y, suffix)
    bad = folder / f"part-2.{suffix}"
    damage(bad, X[40:60], y[40:60])
    before = bytes_in(folder)
    scratch = tmp_path / "scratch"
    with pytest.raises(ValueError, match=re.escape(str(bad))) as refused:
        fit_large(MoveLabeled(), folder, "label", scratch=scratch)
    assert told is None or re.search(told, str(refused.value)), refused.value
    got = fit_large(LabelRidge(), folder, "label", skip_bad=True, max_pairs=None, scratch=scratch)
    ((part, why),) = got.skipped_
    assert (part, str(bad) in why) == (str(bad), True)
    kept = np.r_[:40, 60:100]
    want = LabelRidge().fit(X[kept], y[kept].astype(str))
    np.testing.assert_allclose(got.W_, want.W_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(got.means_, want.means_, rtol=1e-6)
    assert bytes_in(folder) == before
    assert not list(scratch.glob("*lock*"))


def test_all_parts_bad(data, tmp_path):
    X, y = data
    folder = write_parts(tmp_path / "parts", X, y, "npz")
    for file in folder.iterdir():
        with_numbers(put(1, NOTHING))(file, X[:20], y[:20])
    with pytest.raises(ValueError, match=r"no object with a label.*5 parts were left out.*row 1 of .*part-0"):
        fit_large(MoveLabeled(), folder, "label", skip_bad=True)
    for file in folder.iterdir():
        file.write_bytes(b"junk")
    for skip in (False, True):
        with pytest.raises((ValueError, OSError), match=re.escape(str(folder))):
            fit_large(MoveLabeled(), folder, "label", skip_bad=skip)


def npy_store(folder, X, y):
    np.save(folder / "v.npy", X)
    np.save(folder / "labels.npy", y)
    return open_store(folder / "v.npy", items=folder / "labels.npy")


@pytest.mark.parametrize("values", [(NOTHING,), (NOTHING,) * 4, (INF, -INF), (-INF,)], ids=str)
def test_bad_rows_of_one_file(data, tmp_path, monkeypatch, values):
    """Of one file, some rows are a part."""
    monkeypatch.setattr(stream, "BLOCK", ROWS * 16)
    X, y = data
    X[47, : len(values)] = values
    store = npy_store(tmp_path, X, y)
    before = bytes_in(tmp_path)
    named = f"row 47 of rows 40 to 59 of {re.escape(store.name)} has (NaN|an infinite)"
    with pytest.raises(ValueError, match=named):
        fit_large(MoveLabeled(), store, "label")
    got = fit_large(Shrink(), store, "label", skip_bad=True)
    assert [part for part, _ in got.skipped_] == [f"rows 40 to 59 of {store.name}"]
    kept = np.r_[:40, 60:100]
    np.testing.assert_allclose(got.means_, Shrink().fit(X[kept], y[kept].astype(str)).means_, rtol=1e-6)
    assert bytes_in(tmp_path) == before


def test_files_cut_off(data, tmp_path):
    X, y = data
    store = npy_store(tmp_path, X, y)
    for name in ("v.npy", "labels.npy"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-30])
        with pytest.raises((ValueError, OSError), match=re.escape(str(tmp_path / name))):
            fit_large(MoveLabeled(), open_store(store.path, items=store.items), "label")
        (tmp_path / name).write_bytes(content)
    fit_large(MoveLabeled(), open_store(store.path, items=store.items), "label")
    np.save(tmp_path / "labels.npy", y[1:])
    with pytest.raises((ValueError, OSError), match="99 rows, the index 100"):
        fit_large(MoveLabeled(), open_store(store.path, items=store.items), "label")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.5, r"row 47 of rows 40 to 59 of X has 0\.5 \(float\)"),
        ([1], r"row 47 of rows 40 to 59 of X has \[1\] \(list\)"),
        ({"a": 1}, r"row 47 of rows 40 to 59 of X has \{'a': 1\} \(dict\)"),
        (b"a", r"row 47 of rows 40 to 59 of X has b'a' \(bytes\)"),
        (INF, r"row 47 of rows 40 to 59 of X has inf"),
        (None, "row 47 of rows 40 to 59 of X has no label"),
        (NOTHING, "row 47 of rows 40 to 59 of X has no label"),
        ("text", "rows 40 to 59 of X has texts and numbers"),
    ],
    ids=repr,
)
def test_bad_labels_of_an_array(data, monkeypatch, value, told):
    monkeypatch.setattr(stream, "BLOCK", ROWS * 16)
    X, y = data
    labels = y.astype(object)
    labels[47] = value
    with pytest.raises(ValueError, match=told):
        fit_large(MoveLabeled(), X, labels)
    got = fit_large(Shrink(), X, labels, skip_bad=True)
    assert [part for part, _ in got.skipped_] == ["rows 40 to 59 of X"]
    kept = np.r_[:40, 60:100]
    np.testing.assert_allclose(got.means_, Shrink().fit(X[kept], y[kept]).means_, rtol=1e-6)


def test_texts_after_numbers(data, monkeypatch):
    """A part that has labels of the other kind, all of them."""
    monkeypatch.setattr(stream, "BLOCK", ROWS * 16)
    X, y = data
    labels = y.astype(object)
    labels[60:80] = [str(value) for value in y[60:80]]
    with pytest.raises(ValueError, match="rows 60 to 79 of X has other labels than those before"):
        fit_large(MoveLabeled(), X, labels)
    assert [part for part, _ in fit_large(MoveLabeled(), X, labels, skip_bad=True).skipped_] == [
        "rows 60 to 79 of X"
    ]


def test_a_failed_fit_leaves_the_mover_as_it_was(data):
    X, y = data
    mover = MoveLabeled().fit(X, y)
    before = mover.move(X)
    X = X.copy()
    X[3] = NOTHING
    with pytest.raises(ValueError, match="NaN"):
        fit_large(mover, X, y)
    np.testing.assert_array_equal(mover.move(np.nan_to_num(X))[4:], before[4:])


# --- results of parts that are kept ------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """What is learned anew, in parts of at most 25 objects."""
    found = []
    monkeypatch.setattr(stream, "rows_within", lambda *_: 25)
    monkeypatch.setattr(stream, "SOURCES", 10)
    for name in ("learn_classes", "learn_found"):
        original = getattr(lesson, name)

        def learn(*arguments, name=name, original=original):
            found.append(name)
            return original(*arguments)

        monkeypatch.setattr(stream, name, learn)
    return found


@pytest.fixture
def skewed(rng):
    """Classes of 60, 20, 11, 10 and 1: one is cut into chunks."""
    y = rng.permutation(np.repeat(np.arange(5), [60, 20, 11, 10, 1]))
    return rng.standard_normal((102, 4)) + y[:, None], y


def test_a_second_run_learns_nothing_anew(skewed, tmp_path, counted):
    X, y = skewed
    first = fit_large(LabelRidge(n_targets=2), X, y, max_pairs=None, scratch=tmp_path / "s")
    assert (
        sorted(counted) == ["learn_classes"] * 2 + ["learn_found"] * 60
    )  # 20 | 11 + 10 + 1, and 60 one by one
    counted.clear()
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "s").iterdir()}
    second = fit_large(LabelRidge(n_targets=2), X, y, max_pairs=None, scratch=tmp_path / "s")
    assert counted == []
    assert second.W_.tobytes() == first.W_.tobytes()
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "s").iterdir()} == written
    # another question about the same data is another result
    fit_large(LabelRidge(n_targets=1), X, y, max_pairs=None, scratch=tmp_path / "s")
    assert len(counted) == 32  # two of one class at a time
    other = fit_large(MoveLabeled(n_targets=2), X, y, max_pairs=30, scratch=tmp_path / "s")
    alone = fit_large(MoveLabeled(n_targets=2), X, y, max_pairs=30)
    assert other.W_.tobytes() == alone.W_.tobytes()


def test_a_run_goes_on_where_it_was_stopped(skewed, tmp_path, counted, monkeypatch):
    X, y = skewed
    alone = fit_large(MoveLabeled(), X, y, max_pairs=None)
    learn, done = stream.learn_found, len(counted)
    counted.clear()

    def stop(*arguments):
        if len(counted) == 3:
            raise KeyboardInterrupt
        return learn(*arguments)

    monkeypatch.setattr(stream, "learn_found", stop)
    with pytest.raises(KeyboardInterrupt):
        fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=tmp_path / "s")
    monkeypatch.setattr(stream, "learn_found", learn)
    got = fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=tmp_path / "s")
    assert len(counted) == done  # each part once, three before and the others after
    assert got.W_.tobytes() == alone.W_.tobytes()


def test_other_content_is_learned_anew(skewed, tmp_path, counted):
    X, y = skewed
    for place in ((5, 1), (80, 3)):
        fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=tmp_path / "s")
        X = X.copy()
        X[place] = np.nextafter(X[place], 9) if place[0] == 5 else X[place] + 1
        got = fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=tmp_path / "s")
        assert got.W_.tobytes() == fit_large(MoveLabeled(), X, y, max_pairs=None).W_.tobytes()
    y = y.copy()
    y[[3, 4]] = y[[3, 4]][::-1]
    got = fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=tmp_path / "s")
    assert got.W_.tobytes() == fit_large(MoveLabeled(), X, y, max_pairs=None).W_.tobytes()


def test_the_same_labels_as_texts_are_other_content(skewed, tmp_path):
    """2 is before 10, but "10" is before "2": objects by class are in another order."""
    X, y = skewed
    y = np.array([2, 10, 3, 20, 1])[y]
    fit_large(MoveLabeled(), X, y, scratch=tmp_path / "s")
    got = fit_large(LabelRidge(), X, y.astype(str), scratch=tmp_path / "s")
    np.testing.assert_allclose(got.means_, LabelRidge().fit(X, y.astype(str)).means_)


def test_rows_by_class_that_were_cut_off_are_gathered_anew(skewed, tmp_path):
    X, y = skewed
    want = fit_large(MoveLabeled(), X, y, scratch=tmp_path / "s").W_
    for content in (b"", (tmp_path / "s" / "hubless-rows.bin").read_bytes()[:-8]):
        (tmp_path / "s" / "hubless-rows.bin").write_bytes(content)
        np.testing.assert_array_equal(fit_large(MoveLabeled(), X, y, scratch=tmp_path / "s").W_, want)
    for text in ("", "{", "[]", json.dumps({"digest": "0"})):
        (tmp_path / "s" / "hubless-partition.json").write_text(text)
        np.testing.assert_array_equal(fit_large(MoveLabeled(), X, y, scratch=tmp_path / "s").W_, want)


def test_damaged_results_are_learned_anew(rng, tmp_path):
    """Whichever byte of a result is another one, the result is right, or it is learned again."""
    lesson_ = lesson.Lesson(np.zeros(2), 1)
    moments = lesson.Sums.none(lesson_).moments
    moments = type(moments)(np.ones(2), 3.0, *rng.standard_normal((2, 2)), *rng.standard_normal((2, 2, 2)))
    truth = lesson.Sums(moments, 3, np.array([1]), rng.standard_normal((1, 2)))
    (tmp_path / "s").mkdir()
    file, kept = tmp_path / "s" / "hubless-key.npz", checkpoints.Checkpoints(tmp_path / "s")
    kept.get("key", lambda: truth)
    content = file.read_bytes()
    assert list(file.parent.iterdir()) == [file]
    n_learned = 0

    def learn():
        nonlocal n_learned
        n_learned += 1
        return truth

    damaged = [content[:cut] for cut in range(0, len(content), 97)]
    for place in range(0, len(content), 3):
        damaged.append(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
    for bad in damaged:
        file.write_bytes(bad)
        got = kept.get("key", learn)
        assert (got.n_pairs, got.moments.weight) == (3, 3.0)
        for name in ("origin", "x_sum", "z_sum", "A", "K"):
            np.testing.assert_array_equal(getattr(got.moments, name), getattr(truth.moments, name))
        np.testing.assert_array_equal(got.codes, truth.codes)
        np.testing.assert_array_equal(got.class_sums, truth.class_sums)
    assert len(damaged) / 2 < n_learned <= len(damaged)


# --- killed ------------------------------------------------------------------------------------------------

KILLED = """
import hashlib, os, shutil, signal, sys, time
import numpy as np
from hubless import MoveLabeled
from hubless.large import stream
from hubless.large.fit import fit_large

stream.rows_within = lambda *_: 10_000
stream.SOURCES = 3_000
folder = sys.argv[1]

def begin(scratch):
    child = os.fork()  # before anything was computed here: no threads are lost
    if child:
        return child
    X, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "Xy")
    W = fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=scratch).W_
    print(hashlib.sha256(W.tobytes()).hexdigest(), flush=True)
    os._exit(0)

started = time.monotonic()
os.waitpid(begin(f"{folder}/alone"), 0)
whole = time.monotonic() - started
killed, rng = 0, np.random.default_rng()
while killed < 10:
    child = begin(f"{folder}/killed")
    time.sleep(rng.uniform(0.0, 0.6 * whole))
    os.kill(child, signal.SIGKILL)
    was_alive = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    killed += was_alive
    kept = [name for name in os.listdir(f"{folder}/killed") if len(name) == 76]
    print("killed" if was_alive else "done", len(kept), flush=True)
    if not was_alive:  # all is done: from the beginning
        shutil.rmtree(f"{folder}/killed")
os.waitpid(begin(f"{folder}/killed"), 0)
"""


def test_killed_ten_times(tmp_path):
    """SIGKILL at random moments: the run after them gives the W of one that nobody disturbed, bit by bit."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(189), [12_000] + [1000] * 188))
    X = rng.standard_normal((189, 16))[y] + rng.standard_normal((200_000, 16))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = told.stdout.splitlines()
    assert [line.split()[0] for line in lines if " " in line].count("killed") == 10, told.stderr
    assert {line for line in lines if line.startswith("killed")} != {"killed 0"}  # some while it learned
    alone, *others = [line for line in lines if " " not in line]
    assert others
    assert set(others) == {alone}


def test_two_runs_with_one_scratch(data, tmp_path):
    X, y = data
    plan = stream.Plan(None, 10**9, tmp_path / "s", 0, skip_bad=False, progress=False)
    with (
        stream.gathered(source_of(X, y), plan),
        pytest.raises(StoreError, match=f"another process is at work on {re.escape(str(tmp_path))}"),
    ):
        fit_large(MoveLabeled(), X, y, scratch=tmp_path / "s")
    fit_large(MoveLabeled(), X, y, scratch=tmp_path / "s")


# --- a full disk -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False], ids=["scratch", "temporary"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite"])
def test_a_full_disk(data, tmp_path, monkeypatch, call, number, given):
    X, y = data

    def full(*_):
        raise OSError(number, os.strerror(number))

    scratch = tmp_path / "s" if given else None
    with monkeypatch.context() as patched:
        patched.setattr(partition.os, call, full)
        named = str(scratch) if given else str(tmp_path / "temporary")
        with pytest.raises(OSError, match=f"{re.escape(named)}.*scratch"):
            fit_large(MoveLabeled(), X, y, scratch=scratch)
    got = fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=scratch)
    np.testing.assert_allclose(got.W_, MoveLabeled().fit(X, y).W_, rtol=1e-6, atol=1e-7)


# --- memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "size"),
    [
        ("2GB", 2 * 10**9),
        ("1.5GiB", 3 * 2**29),
        ("500 MB", 5 * 10**8),
        ("500mb", 5 * 10**8),
        ("3 kib", 3072),
        ("1T", 10**12),
        (" 12345 ", 12345),
        ("12345b", 12345),
        (10**9, 10**9),
        (1e9, 10**9),
    ],
)
def test_memory_in_words(told, size):
    assert as_bytes(told) == size


@pytest.mark.parametrize(
    "told", ["", "lots", "2 G B", "-2GB", "GB", "1e9", "2PB", "0", 0, -1, INF, NOTHING, True, None, [1]]
)
def test_nonsense_for_memory(told):
    with pytest.raises(ValueError, match='text as "2GB"'):
        as_bytes(told)


MEMORY = """
import json, os, resource, sys
import numpy as np
from hubless import MoveLabeled
from hubless.large.fit import fit_large
from hubless.stores.opening import open_store

folder = sys.argv[1]
for form in ("store", "mapped", "parquet"):
    if not os.fork():  # a process of its own, with a peak of its own
        if form == "store":
            data = open_store(f"{folder}/X.npy", items=f"{folder}/y.npy"), "label"
        elif form == "parquet":
            data = f"{folder}/X.parquet", "label"
        else:
            data = tuple(np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "Xy")
        mover = fit_large(MoveLabeled(), *data, max_pairs=400, memory="600MB", scratch=f"{folder}/scratch")
        print(json.dumps([form, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, mover.n_pairs_]))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def test_memory_is_respected(tmp_path):
    """600 MB for 655 MB of objects, 614 MB of them in one class; and for 256 MB, one row group of Parquet."""
    rng, block = np.random.default_rng(0), 40_000
    y = rng.permutation(np.repeat(np.arange(4, dtype=np.int32), [1_200_000, 60_000, 15_000, 5_000]))
    head = {"descr": "<f4", "fortran_order": False, "shape": (len(y), 128)}
    rows = rng.standard_normal((block, 128), dtype=np.float32)
    with TemporaryDirectory(dir=tmp_path) as folder:  # which goes at once: pytest keeps others for a while
        np.save(f"{folder}/y.npy", y)
        with open(f"{folder}/X.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, head)
            for first in range(0, len(y), block):
                file.write(rows + y[first : first + block, None].astype(np.float32))
        table = pa.table({"v": vectors_of(np.tile(rows, (13, 1))[:500_000]), "label": y[:500_000]})
        pq.write_table(table, f"{folder}/X.parquet", compression="none", use_dictionary=False)
        del table
        told = subprocess.run([sys.executable, "-c", MEMORY, folder], capture_output=True, text=True)
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert [form for form, _, _ in found] == ["store", "mapped", "parquet"], told.stderr
    assert all(390 <= n_pairs <= 400 for _, _, n_pairs in found)
    assert {form: peak for form, peak, _ in found if peak > 600e6} == {}


# --- a bar -------------------------------------------------------------------------------------------------


def test_a_bar_on_a_terminal_and_none_in_a_pipe(data, monkeypatch, capfd):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with open(theirs, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        fit_large(MoveLabeled(), *data, progress=None)
        readable, _, _ = select.select([ours], [], [], 10)  # never waits for a bar that does not come
        assert readable
        shown = os.read(ours, 1 << 16)
        for word in (b"look", b"gather", b"learn"):
            assert word in shown
        fit_large(MoveLabeled(), *data, progress=False)
        assert select.select([ours], [], [], 0.1)[0] == []
    os.close(ours)
    fit_large(MoveLabeled(), *data, progress=None)
    assert capfd.readouterr() == ("", "")
    fit_large(MoveLabeled(), *data, progress=True)
    assert "learn" in capfd.readouterr().err
