"""Fits part by part that go wrong: bad parts, killed runs, a full disk, too little memory."""

import errno
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from hubless import MoveLabeled
from hubless.movers import LabelRidge, Shrink
from hubless.outofcore import checkpoints, copy, pair_sums, survey
from hubless.outofcore.block import Block, Look
from hubless.outofcore.dask.dask_files import Place, read_block
from hubless.outofcore.fit import fit_large
from hubless.outofcore.memory import as_bytes, rows_to_choose_on
from hubless.outofcore.survey import look_at
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.support import progress
from tests.outofcore.made_objects import fresh, searches
from tests.outofcore.test_large import hold

ROWS = 20  # of a part


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The default scratch folder: empty again after every test, whatever happened."""
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


@pytest.mark.parametrize(("suffix", "damage", "message"), BAD.values(), ids=BAD)
def test_a_bad_part_is_named_or_skipped(data, tmp_path, monkeypatch, suffix, damage, message):
    """It is skipped as a whole, also where other blocks of it, of 7 rows here, are good."""
    hold(monkeypatch, 7, 30)
    X, y = data
    folder = write_parts(tmp_path / "parts", X, y, suffix)
    bad = folder / f"part-2.{suffix}"
    damage(bad, X[40:60], y[40:60])
    before = bytes_in(folder)
    scratch = tmp_path / "scratch"
    with pytest.raises(ValueError, match=re.escape(str(bad))) as refused:
        fit_large(MoveLabeled(), folder, "label", scratch=scratch)
    assert message is None or re.search(message, str(refused.value)), refused.value
    got = fit_large(LabelRidge(), folder, "label", skip_bad=True, max_pairs=None, scratch=scratch)
    ((part, why),) = got.skipped_
    assert (part, str(bad) in why) == (str(bad), True)
    kept = np.r_[:40, 60:100]
    want = LabelRidge().fit(X[kept], y[kept].astype(str))
    np.testing.assert_allclose(got.W_, want.W_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(got.means_, want.means_, rtol=1e-6)
    assert bytes_in(folder) == before


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_whichever_byte_of_an_npz_file_is_changed(data, tmp_path, save):
    """It is read, or refused."""
    X, y = data
    file = tmp_path / "part.npz"
    save(file, vectors=X[:5], label=y[:5])
    content, n_read = file.read_bytes(), 0
    for place in range(len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with suppress(StoreError):
            open_store(file).facts()
            n_read += 1
    assert 0 < n_read < len(content) / 2


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 4), pa.list_(pa.float32())], ids=["fixed", "lists"])
def test_offsets_that_lead_out_of_an_arrow_file(data, tmp_path, kind):
    """Where a text or a list begins: Arrow itself does not look, and the process would die."""
    X, y = data
    for i in range(2):
        rows = slice(50 * i, 50 * i + 50)
        table = pa.table(
            {"v": vectors_of(X[rows]).cast(kind), "label": [f"class {code}" for code in y[rows]]}
        )
        feather.write_feather(table, tmp_path / f"{i}.arrow", compression="uncompressed")
    bad = tmp_path / "1.arrow"
    content = bad.read_bytes()
    for step in (7, 4) if kind == pa.list_(pa.float32()) else (7,):  # letters of a label, numbers of a vector
        offsets = np.arange(0, 51 * step, step, dtype=np.int32)
        assert content.count(offsets.tobytes()) == 1
        torn = np.where(np.arange(51) == 30, 2**30, offsets).astype(np.int32)
        bad.write_bytes(content.replace(offsets.tobytes(), torn.tobytes()))
        with pytest.raises(ValueError, match=re.escape(str(bad))):
            fit_large(MoveLabeled(), tmp_path, "label")
        assert [part for part, _ in fit_large(Shrink(), tmp_path, "label", skip_bad=True).skipped_] == [
            str(bad)
        ]
        assert str(bad) in read_block(Place.of(open_store(bad)), "part", 0, 50, "label", None).error


def test_all_parts_bad(data, tmp_path):
    X, y = data
    folder = write_parts(tmp_path / "parts", X, y, "npz")
    for file in folder.iterdir():
        with_numbers(put(1, NOTHING))(file, X[:20], y[:20])
    with pytest.raises(ValueError, match=r"no object with a label.*5 parts were skipped.*row 1 of .*part-0"):
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
    """The parts of one file are its blocks."""
    hold(monkeypatch, ROWS, 30)
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
    with pytest.raises((ValueError, OSError), match=r"the table of items has 99 rows, .*v.npy has 100"):
        fit_large(MoveLabeled(), open_store(store.path, items=store.items), "label")


@pytest.mark.parametrize(
    ("value", "message"),
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
def test_bad_labels_of_an_array(data, monkeypatch, value, message):
    hold(monkeypatch, ROWS, 30)
    X, y = data
    labels = y.astype(object)
    labels[47] = value
    with pytest.raises(ValueError, match=message):
        fit_large(MoveLabeled(), X, labels)
    got = fit_large(Shrink(), X, labels, skip_bad=True)
    assert [part for part, _ in got.skipped_] == ["rows 40 to 59 of X"]
    kept = np.r_[:40, 60:100]
    np.testing.assert_allclose(got.means_, Shrink().fit(X[kept], y[kept]).means_, rtol=1e-6)


@pytest.mark.parametrize("kind", [object, "Int64", "string", "category"], ids=str)
def test_a_series_that_lacks_a_label(data, monkeypatch, kind):
    """The rows of a series are counted, whatever its index says."""
    hold(monkeypatch, ROWS, 30)
    X, y = data
    labels = pd.Series(y, index=y + 0.5)
    labels = (labels.astype(str) if kind in ("string", "category") else labels).astype(kind)
    labels.iloc[47] = None
    with pytest.raises(ValueError, match="row 47 of rows 40 to 59 of X has no label"):
        fit_large(MoveLabeled(), X, labels)
    got = fit_large(Shrink(), X, labels, skip_bad=True)
    kept = np.r_[:40, 60:100]
    np.testing.assert_allclose(got.means_, Shrink().fit(X[kept], y[kept]).means_, rtol=1e-6)


def test_texts_after_numbers(data, monkeypatch):
    """All labels of a part are of the other kind."""
    hold(monkeypatch, ROWS, 30)
    X, y = data
    labels = y.astype(object)
    labels[60:80] = [str(value) for value in y[60:80]]
    with pytest.raises(ValueError, match="rows 60 to 79 of X has texts where earlier labels are numbers"):
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


# --- results that are kept ---------------------------------------------------------------------------------


@pytest.fixture
def searched(monkeypatch):
    """The blocks that are searched, of 25 objects in order of class, for groups of 40 sources."""
    hold(monkeypatch, 25, 40)
    blocks, search = [], pair_sums.nearest_of_sources

    def counted(block, number, *shared):
        blocks.append(number)
        return search(block, number, *shared)

    monkeypatch.setattr(pair_sums, "nearest_of_sources", counted)
    return blocks


@pytest.fixture
def skewed(rng):
    """Classes of 60, 20, 11, 10 and 1."""
    y = rng.permutation(np.repeat(np.arange(5), [60, 20, 11, 10, 1]))
    return rng.standard_normal((102, 4)) + y[:, None], y


GROUPS = 3  # of these data


def searches_of(data):
    """The blocks of each group that have objects of its classes."""
    return searches(data[1], 25, 40)


def fit_all(data, scratch=None, mover=None):
    mover = MoveLabeled() if mover is None else mover
    return fit_large(mover, *data, max_pairs=None, scratch=scratch).W_.tobytes()


def test_a_second_run_searches_nothing(skewed, tmp_path, searched):
    first = fit_all(skewed, tmp_path / "s", LabelRidge(n_targets=2))
    assert searched == [block for group in searches_of(skewed) for block in group]
    searched.clear()
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "s").iterdir()}
    assert len(files) == GROUPS  # the results of blocks make way for the sums of their group
    assert fit_all(skewed, tmp_path / "s", LabelRidge(n_targets=2)) == first
    assert searched == []
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "s").iterdir()} == files


@pytest.mark.parametrize(
    "mover",
    [
        LabelRidge(n_targets=1),
        MoveLabeled(n_targets=2),
        MoveLabeled(n_targets=2, center=False),
        MoveLabeled(3.0, n_targets=2),
    ],
    ids=repr,
)
def test_another_question_has_its_own_results(skewed, tmp_path, searched, mover):
    alone = fit_all(skewed, None, fresh(mover))
    fit_all(skewed, tmp_path / "s", LabelRidge(n_targets=2))
    assert fit_all(skewed, tmp_path / "s", fresh(mover)) == alone
    for options in ({"max_pairs": 30}, {"max_pairs": 30, "random_state": 1}):
        got = fit_large(fresh(mover), *skewed, scratch=tmp_path / "s", **options)
        assert got.W_.tobytes() == fit_large(fresh(mover), *skewed, **options).W_.tobytes()


@pytest.mark.parametrize("after", [1, 3, 5, 8])
def test_an_interrupted_run_resumes(skewed, tmp_path, searched, monkeypatch, after):
    """It is stopped after some searches: these are not made again."""
    alone = fit_all(skewed)
    searched.clear()
    search = pair_sums.nearest_of_sources

    def stop(*arguments):
        if len(searched) == after:
            raise KeyboardInterrupt
        return search(*arguments)

    monkeypatch.setattr(pair_sums, "nearest_of_sources", stop)
    with pytest.raises(KeyboardInterrupt):
        fit_all(skewed, tmp_path / "s")
    monkeypatch.setattr(pair_sums, "nearest_of_sources", search)
    assert fit_all(skewed, tmp_path / "s") == alone
    # each once, some before and the others after
    assert sorted(searched) == sorted(block for group in searches_of(skewed) for block in group)


def test_other_content_is_learned_anew(skewed, tmp_path, searched):
    X, y = skewed
    for place in ((5, 1), (80, 3)):
        fit_all((X, y), tmp_path / "s")
        X = X.copy()
        X[place] = np.nextafter(X[place], 9) if place[0] == 5 else X[place] + 1
        assert fit_all((X, y), tmp_path / "s") == fit_all((X, y))
    y = y.copy()
    y[[3, 4]] = y[[3, 4]][::-1]
    assert fit_all((X, y), tmp_path / "s") == fit_all((X, y))
    texts = np.array(["é", "b", "aa", "ab", "z z"])[y]  # the same classes in another order
    assert fit_all((X, texts), tmp_path / "s") == fit_all((X, texts))
    got = fit_large(LabelRidge(), X, y.astype(str), scratch=tmp_path / "s")
    np.testing.assert_allclose(got.means_, LabelRidge().fit(X, y.astype(str)).means_)
    assert fit_all((X.astype(np.float32), y), tmp_path / "s") == fit_all((X.astype(np.float32), y))


@pytest.mark.parametrize("first", [MoveLabeled(), LabelRidge()], ids=repr)
def test_the_same_labels_as_texts_are_other_content(skewed, tmp_path, searched, first):
    """As texts, the classes are in another order: 1, 10, 2, 20, 3."""
    X, y = skewed
    y = np.array([2, 10, 3, 20, 1])[y]
    fit_all((X, y), tmp_path / "s", fresh(first))
    want = LabelRidge().fit(X, y.astype(str))
    got = fit_large(LabelRidge(), X, y.astype(str), max_pairs=None, scratch=tmp_path / "s")
    assert got.classes_.tolist() == ["1", "10", "2", "20", "3"]
    np.testing.assert_allclose(got.means_, want.means_)
    np.testing.assert_allclose(got.W_, want.W_, rtol=1e-9, atol=1e-12)


def test_labels_with_any_letter_have_their_own_digest():
    X = np.zeros((2, 1))
    digests = {
        look_at(Block("X", X, labels), 0, Look(1)).blocks[0].digest
        for labels in (
            ["a", "b"],
            ["b", "a"],
            ["a\x00b", "c"],
            ["a", "b\x00c"],
            ["1", "2"],
            [1, 2],
            [True, 2],
        )
    }
    assert len(digests) == 6  # True is 1


def test_damaged_results_are_computed_again(skewed, tmp_path, searched, monkeypatch):
    """Whichever byte of a file is changed, the result is right, or the block is searched again."""
    alone = fit_all(skewed)
    with monkeypatch.context() as patched:
        patched.setattr(pair_sums, "pair_moments", lambda *_: 1 / 0)  # after the search of the first group
        with pytest.raises(ZeroDivisionError):
            fit_all(skewed, tmp_path / "s")
    files = sorted((tmp_path / "s").iterdir())
    first, *others = searches_of(skewed)
    assert len(files) == len(first)
    content = {file: file.read_bytes() for file in files}
    n_searched, chance = 0, np.random.default_rng(0)
    for damage in range(25):
        for file in files:
            place = int(chance.integers(len(content[file])))
            changed = bytes([content[file][place] ^ 0xFF])
            cut = content[file][:place]
            file.write_bytes(cut if damage % 5 == 0 else cut + changed + content[file][place + 1 :])
        searched.clear()
        for file in (tmp_path / "s").iterdir():
            if file not in content:  # sums of the run before
                file.unlink()
        assert fit_all(skewed, tmp_path / "s") == alone
        n_searched += len(searched) - sum(map(len, others))
    assert 25 * len(first) / 2 < n_searched <= 25 * len(first)


def test_damaged_sums_are_computed_again(skewed, tmp_path, searched):
    alone = fit_all(skewed, tmp_path / "s")
    searched.clear()
    for file in (tmp_path / "s").iterdir():
        file.write_bytes(file.read_bytes()[:-30])
        assert fit_all(skewed, tmp_path / "s") == alone
    assert sorted(searched) == sorted(block for group in searches_of(skewed) for block in group)


def test_two_runs_with_one_scratch(skewed, tmp_path, searched, monkeypatch):
    """Another run does the same from its beginning to its end, and clears the folder, at every moment."""
    alone, scratch = fit_all(skewed), tmp_path / "s"
    search, is_outer = pair_sums.nearest_of_sources, [True]

    def disturbed(*arguments):
        if is_outer[0]:
            is_outer[0] = False
            assert fit_all(skewed, scratch) == alone
            checkpoints.clear(scratch)
            is_outer[0] = True
        return search(*arguments)

    monkeypatch.setattr(pair_sums, "nearest_of_sources", disturbed)
    assert fit_all(skewed, scratch) == alone
    assert fit_all(skewed, scratch) == alone


def test_what_is_cleared(tmp_path):
    ours = [f"hubless-{'0a' * 32}.npz", f".hubless-{'0a' * 32}.npz.1234abcd.part"]
    others = ["hubless-0a.npz", f"{'0a' * 32}.npz", "rows.bin", "hubless.txt"]
    for name in (*ours, *others):
        (tmp_path / name).write_text(name)
    checkpoints.clear(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == sorted(others)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / ours[0]).write_text("")
    checkpoints.clear(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    checkpoints.clear(tmp_path / "s")  # nothing to do


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG], ids=errno.errorcode.get)
def test_a_full_disk(skewed, tmp_path, searched, monkeypatch, number):
    """Nothing is kept, and the result is right."""
    alone = fit_all(skewed)

    def full(file, **_):
        file.write(b"some")
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr("hubless.support.cache.np.savez", full)
        assert fit_all(skewed, tmp_path / "s") == alone
    assert list((tmp_path / "s").iterdir()) == []
    assert fit_all(skewed, tmp_path / "s") == alone


def test_a_folder_that_cannot_be_made_is_refused(skewed, tmp_path, searched):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="scratch must be a folder"):
        fit_all(skewed, tmp_path / "file")
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "file" / "s"))):
        fit_all(skewed, tmp_path / "file" / "s")


@pytest.mark.parametrize("form", ["mapped", "labels", "other labels", "store"])
@pytest.mark.parametrize(
    ("module", "moment"), [(copy, "all_rows"), (pair_sums, "nearest_of_sources"), (pair_sums, "pair_moments")]
)
def test_data_that_changes_during_a_run(skewed, tmp_path, searched, monkeypatch, form, module, moment):
    """It is noticed, and nothing that was found in the other data is kept: not even if they come back."""
    X, y = skewed
    files, scratch = [tmp_path / "X.npy", tmp_path / "y.npy"], tmp_path / "s"
    np.save(files[0], X)
    np.save(files[1], y)
    changing, other = files["labels" in form], tmp_path / "other.npy"
    old = changing.read_bytes()
    labels = np.where((form == "other labels") & (np.arange(len(y)) > 95), 99, y[::-1])
    np.save(other, labels if "labels" in form else X[::-1])

    def data():
        mapped = [np.load(file, mmap_mode="r") for file in files]
        return (open_store(files[0], items=files[1]), "label") if form == "store" else mapped

    alone, step = fit_all(data()), getattr(module, moment)

    def other_data(*arguments):
        changing.write_bytes(other.read_bytes())
        return step(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(module, moment, other_data)
        with pytest.raises(OSError, match=r"changed while .* read"):
            fit_all(data(), scratch)
    changing.write_bytes(old)
    assert fit_all(data(), scratch) == alone


# --- killed ------------------------------------------------------------------------------------------------

KILLED = """
import hashlib, os, shutil, signal, sys
from pathlib import Path
import numpy as np
from hubless import MoveLabeled, fit_large
from hubless.outofcore import pair_sums, sources
from hubless.support import writing

sources.rows_and_room = lambda *_: (400, 1)
pair_sums.group_size = lambda *_: 700
folder = sys.argv[1]
X, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "Xy")
left = 0

def event(function):
    "A moment to be killed at: before a function, and after it."
    def called(*arguments):
        global left
        for half in range(2):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments) if half == 0 else result
        return result
    return called

pair_sums.nearest_of_sources = event(pair_sums.nearest_of_sources)
pair_sums.pair_moments = event(pair_sums.pair_moments)
writing.os.replace = event(os.replace)
Path.unlink = event(Path.unlink)

def run(scratch, events):
    "Fit in a child that dies after some events; its exit status, and W and the events that were left."
    read, write = os.pipe()
    child = os.fork()  # before anything was computed here: no threads are lost
    if not child:
        global left
        left = events
        W = fit_large(MoveLabeled(), X, y, max_pairs=None, scratch=scratch).W_
        os.write(write, f"{hashlib.sha256(W.tobytes()).hexdigest()} {left}".encode())
        os._exit(0)
    os.close(write)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(read) as file:
        return os.WIFSIGNALED(status), file.read().split()

_, (alone, left_over) = run(f"{folder}/alone", 10**9)
n_events = 10**9 - int(left_over)
assert n_events > 60
killed, rng = 0, np.random.default_rng(int(sys.argv[2]))
while killed < 12:
    was_killed, found = run(f"{folder}/killed", int(rng.integers(1, n_events // 2)))
    killed += was_killed
    if not was_killed:
        assert found[0] == alone
        shutil.rmtree(f"{folder}/killed")
was_killed, found = run(f"{folder}/killed", 10**9)
assert found[0] == alone
print("as if nothing had happened")
"""


@pytest.mark.faults
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_twelve_times(tmp_path, seed):
    """SIGKILL at random moments: the run after them gives the W of one that was not disturbed, bit by bit."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(40), [500] + [40] * 39))
    np.save(tmp_path / "X.npy", rng.standard_normal((40, 8))[y] + rng.standard_normal((len(y), 8)))
    np.save(tmp_path / "y.npy", y)
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "as if nothing had happened\n", done.stderr


# --- memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "size"),
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
def test_sizes_of_memory(given, size):
    assert as_bytes(given) == size


@pytest.mark.parametrize(
    "given", ["", "lots", "2 G B", "-2GB", "GB", "1e9", "2PB", "0", 0, -1, INF, NOTHING, True, None, [1]]
)
def test_invalid_sizes_of_memory(given):
    with pytest.raises(ValueError, match='text such as "2GB"'):
        as_bytes(given)


@pytest.mark.parametrize(
    ("n_columns", "itemsize", "most", "needed"),
    [(2_000, 8, 20_000, 1_354), (2_000, 4, 500, 1_114), (10, 4, 20_000, 651)],
)
def test_to_choose_a_mover_takes_matrices_too(n_columns, itemsize, most, needed):
    """Of 2,000 × 2,000 numbers, as measured: 1.3 GB."""
    with pytest.raises(
        ValueError, match=rf"at least {needed:,} MB to choose a mover for {n_columns} columns"
    ):
        rows_to_choose_on((needed - 1) * 10**6, n_columns, itemsize, most)
    assert rows_to_choose_on((needed + 1) * 10**6, n_columns, itemsize, most) >= min(most, 1_000)


def resident(path):
    """Return the bytes of a mapped file that are in the memory of this process."""
    lines, is_inside, total = Path("/proc/self/smaps").read_text().splitlines(), False, 0
    for line in lines:
        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
            is_inside = line.endswith(str(path))
        elif is_inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell")
@pytest.mark.parametrize("form", ["store", "mapped"])
def test_pages_of_mapped_files_are_given_back(rng, tmp_path, monkeypatch, form):
    """Of vectors that are stored column by column, and of labels, which are texts of 50 letters."""
    hold(monkeypatch, 5_000, 50)
    X, y = rng.standard_normal((100_000, 25)), rng.integers(0, 5, 100_000)
    files = [tmp_path / "X.npy", tmp_path / "y.npy"]
    np.save(files[0], np.asarray(X, order="F"))
    np.save(files[1], np.array([f"{code:050}" for code in y]))
    data = [np.load(file, mmap_mode="r") for file in files]
    if form == "store":
        data = open_store(files[0], items=files[1]), "label"
    held, look = [0, 0], survey.look_at

    def looked_at(*arguments):
        seen = look(*arguments)
        held[:] = map(max, held, map(resident, files))
        return seen

    monkeypatch.setattr(survey, "look_at", looked_at)
    got = fit_large(MoveLabeled(), *data, max_pairs=50)
    np.testing.assert_allclose(got.mean_, X.mean(axis=0), atol=1e-12)
    assert all(size < 5e6 for size in held)  # of 20 MB each; the system may map 2 MB at once


def test_means_of_many_classes_count(rng):
    """They take 2,000 × 400 numbers, more than the objects that are held at a time."""
    X, y = rng.standard_normal((4_000, 400), dtype=np.float32), np.arange(4_000) % 2_000
    for mover in (Shrink(), LabelRidge()):
        with pytest.raises(ValueError, match=r"at least 504 MB for the means of 2,000 classes.*got 475 MB"):
            fit_large(mover, X, y, memory="475MB", max_pairs=50)
        got = fit_large(mover, X, y, memory="504MB", max_pairs=50)
        np.testing.assert_allclose(got.means_, (X[:2_000] + X[2_000:].astype(float)) / 2, atol=1e-6)
    assert fit_large(MoveLabeled(), X, y, memory="475MB", max_pairs=50).n_pairs_ == 50


MEMORY = """
import json, os, resource, sys
import numpy as np
from hubless import MoveLabeled
from hubless.outofcore.fit import fit_large
from hubless.stores.opening import open_store

folder = sys.argv[1]
mapped = [np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("X", "y", "few")]
store = open_store(f"{folder}/X.npy", items=f"{folder}/few.npy")
for form, data, max_pairs in (
    ("store", (store, "label"), 400),
    ("mapped", (mapped[0], mapped[2]), 400),
    ("parquet", (f"{folder}/X.parquet", "label"), 400),
    ("groups", mapped[:2], 80_000),
):
    if not os.fork():  # a process of its own, with a peak of its own
        how = {"max_pairs": max_pairs, "memory": "600MB", "scratch": f"{folder}/scratch"}
        mover = fit_large(MoveLabeled(), *data, **how)
        print(json.dumps([form, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, mover.n_pairs_]))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_memory_is_respected(tmp_path):
    """600 MB for 655 MB of objects.

    First 614 MB of them are one class; then there are 64,000 classes, and sources that are held in groups.
    And for 256 MB that are one row group of Parquet.
    """
    rng, block = np.random.default_rng(0), 40_000
    few = rng.permutation(np.repeat(np.arange(4, dtype=np.int32), [1_200_000, 60_000, 15_000, 5_000]))
    head = {"descr": "<f4", "fortran_order": False, "shape": (len(few), 128)}
    rows = rng.standard_normal((block, 128), dtype=np.float32)
    with TemporaryDirectory(dir=tmp_path) as folder:  # removed at once: pytest keeps others for a while
        np.save(f"{folder}/few.npy", few)
        np.save(f"{folder}/y.npy", rng.integers(0, 64_000, len(few), dtype=np.int32))
        with open(f"{folder}/X.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, head)
            for first in range(0, len(few), block):
                file.write(rows + few[first : first + block, None].astype(np.float32))
        table = pa.table({"v": vectors_of(np.tile(rows, (13, 1))[:500_000]), "label": few[:500_000]})
        pq.write_table(table, f"{folder}/X.parquet", compression="none", use_dictionary=False)
        del table
        done = subprocess.run([sys.executable, "-c", MEMORY, folder], capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    pairs = {form: n_pairs for form, _, n_pairs in found}
    assert pairs == {"store": 400, "mapped": 400, "parquet": 400, "groups": 80_000}, done.stderr
    assert {form: peak for form, peak, _ in found if peak > 600e6} == {}


# --- steps --------------------------------------------------------------------------------------------------


def test_every_pass_is_a_step(data, monkeypatch, capfd):
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)
    hold(monkeypatch, ROWS, 60)
    fit_large(LabelRidge(), *data)
    assert capfd.readouterr() == ("", "")
    fit_large(LabelRidge(), *data, progress=True)
    written = capfd.readouterr().err
    for title in ("looking through", "adding up classes", "drawing sources 1/2"):
        assert title in written
    for title in ("searching for targets 2/2", "adding up pairs 2/2"):
        assert title in written
