"""Movers fitted part by part: equal to fits in memory; samples equal to loops over the same sources."""

import json
import tracemalloc
import warnings

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from hubless import MoveLabeled, load, save
from hubless.movers import Chain, LabelRidge, Shrink, Stay
from hubless.outofcore import learn, one_pass, pair_sums, sampling, sources
from hubless.outofcore.fit import fit_large
from hubless.outofcore.sampling import SampledPairs, sampled_rows
from hubless.stores.files import arrow_files
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests import reference
from tests.outofcore.made_objects import (
    LABELS,
    MOVERS,
    SIZES,
    assert_same,
    fresh,
    n_pairs,
    naive_moments,
    objects,
)

# rows of a block, and sources of a group; None where all objects are learned from in memory
WAYS = {"in memory": (10**6, None), "few blocks": (64, 10**6), "many blocks and groups": (23, 37)}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request, monkeypatch):
    """How objects are held: all at once, in a few blocks, or in many, with the sources in groups."""
    rows, group = request.param
    hold(monkeypatch, rows, group)
    return request.param


def hold(monkeypatch, rows, group):
    """Read blocks of so many rows, and sum up for groups of sources, or learn in memory."""
    room = 10**9 if group is None else 1
    monkeypatch.setattr(sources, "rows_and_room", lambda *_: (rows, room))
    if group is not None:
        for module in (pair_sums, learn, one_pass):
            monkeypatch.setattr(module, "group_size", lambda *_: group)
        monkeypatch.setattr(learn, "_fit_in_memory", lambda *_: pytest.fail("learned in memory"))


# --- equal to a fit in memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [False, True], ids=["all apart", "ties and copies"])
@pytest.mark.parametrize("mover", MOVERS.values(), ids=MOVERS)
def test_equal_to_a_fit_in_memory(rng, way, mover, grid):
    X, y = objects(rng, grid=grid)
    got = fit_large(fresh(mover), X, y, max_pairs=None)
    assert_same(got, fresh(mover).fit(X, y), X, y, 1e-12)
    assert got.n_pairs_ == n_pairs(SIZES, getattr(mover, "n_targets", 0))
    assert got.skipped_ == []


@pytest.mark.parametrize(("rows", "group"), [(1, 60), (2, 148), (148, 9), (149, 40), (90, 147)])
def test_blocks_and_groups_of_any_size(rng, monkeypatch, rows, group):
    hold(monkeypatch, rows, group)
    X, y = objects(rng, grid=True)
    for mover in (MoveLabeled(n_targets=3), LabelRidge()):
        got = fit_large(fresh(mover), X, y, max_pairs=None)
        assert_same(got, fresh(mover).fit(X, y), X, y, 1e-12)


def test_classes_in_order(rng, way):
    """Most classes are absent from most blocks."""
    X, y = objects(rng, grid=True)
    X, y = X[np.argsort(y)], np.sort(y)
    got = fit_large(MoveLabeled(n_targets=2), X, y, max_pairs=None)
    assert_same(got, MoveLabeled(n_targets=2).fit(X, y), X, y, 1e-12)


def test_equal_to_plain_loops(rng, way):
    X, y = objects(rng, grid=True)
    got = fit_large(MoveLabeled(0.5, n_targets=2), X, y, max_pairs=None)
    want = reference.move_labeled(X, y, 0.5, n_targets=2)
    np.testing.assert_allclose(got.move(X), want, rtol=1e-9)
    got = fit_large(LabelRidge(0.5, n_targets=2, keep=0.6), X, y, max_pairs=None)
    np.testing.assert_allclose(got.move(X, y), reference.label_ridge(X, y, 0.5, 2, 0.6), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int16, np.uint8, np.dtype(">f4")])
@pytest.mark.parametrize("mover", [MoveLabeled(n_targets=2), LabelRidge(), Shrink()], ids=repr)
def test_numbers_of_all_kinds(rng, way, mover, dtype):
    X, y = objects(rng, grid=True)
    X = np.clip(X, 0, 100).astype(dtype)
    got, want = fit_large(fresh(mover), X, y, max_pairs=None), fresh(mover).fit(X, y)
    assert_same(got, want, X.astype(got.move(X, y).dtype), y, 1e-6 if got.move(X, y).dtype == "f4" else 1e-12)


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("form", [np.asarray, list, lambda y: y.astype("O")], ids=["array", "list", "object"])
def test_labels_of_all_kinds(rng, way, make, form):
    X, codes = objects(rng)
    y = make(codes)
    got = fit_large(LabelRidge(), X, form(y), max_pairs=None)
    assert_same(got, LabelRidge().fit(X, y), X, y, 1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_mapped_arrays_and_steps(rng, way, tmp_path, order):
    X, y = objects(rng)
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    np.save(tmp_path / "y.npy", y)
    mapped, labels = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xy")
    want = MoveLabeled(n_targets=2).fit(X, y)
    assert_same(fit_large(MoveLabeled(n_targets=2), mapped, labels, max_pairs=None), want, X, y, 1e-12)
    wide = np.repeat(X, 3, axis=1)[::-1]
    got = fit_large(MoveLabeled(n_targets=2), wide[::-1, ::3], y, max_pairs=None)
    assert_same(got, want, X, y, 1e-12)


def test_one_huge_class_and_twins(rng, way):
    """Nearly all objects are of one class, and half of them are copies of one another."""
    X, y = objects(rng, [130, 2, 1])
    X[y == 0] = X[y == 0][np.minimum(np.arange(130), 60)]
    for mover in (MoveLabeled(n_targets=3), LabelRidge(n_targets=3)):
        got = fit_large(fresh(mover), X, y, max_pairs=None)
        assert_same(got, fresh(mover).fit(X, y), X, y, 1e-12)


def test_targets_and_not_only_vectors_must_fit_in_memory(rng, monkeypatch):
    """148 objects of 40 bytes take 1.7 MB with all that learning from 89 targets each holds."""
    X, y = objects(rng)
    monkeypatch.setattr(sources, "rows_and_room", lambda *_: (40, 100_000))
    want = {k: MoveLabeled(n_targets=k).fit(X, y) for k in (1, 89)}
    assert_same(fit_large(MoveLabeled(n_targets=1), X, y, max_pairs=None), want[1], X, y, 0.0)
    monkeypatch.setattr(learn, "_fit_in_memory", lambda *_: pytest.fail("learned in memory"))
    assert_same(fit_large(MoveLabeled(n_targets=89), X, y, max_pairs=None), want[89], X, y, 1e-12)


@pytest.mark.parametrize("center", [False, True], ids=["about 0", "about the mean"])
def test_an_object_far_away(rng, way, center):
    """The mean is far from all objects: sums about it, brought to 0 afterwards, would have no digit left."""
    X, y = objects(rng)
    X[5] *= 1e10
    got = fit_large(MoveLabeled(center=center), X, y, max_pairs=None)
    assert_same(got, MoveLabeled(center=center).fit(X, y), X, y, 1e-6)


def test_fewer_pairs_than_columns(rng, way):
    X, y = objects(rng, [3, 2, 1], d=20)
    got = fit_large(MoveLabeled(), X, y, max_pairs=None)
    assert_same(got, MoveLabeled().fit(X, y), X, y, 1e-9)


def test_it_learns_more_afterwards(rng, way, tmp_path):
    X, y = objects(rng)
    Z, labels = objects(rng, [50, 30, 1])
    first, second = (
        fit_large(MoveLabeled(2.0, n_targets=2, keep_moments=True), *data, max_pairs=None)
        for data in ((X, y), (Z, labels))
    )
    memory = MoveLabeled(2.0, n_targets=2, keep_moments=True)
    wants = [fresh(memory).fit(X, y), fresh(memory).fit(Z, labels)]
    assert_same(first.with_alpha("scale"), MoveLabeled(n_targets=2).fit(X, y), X, y, 1e-12)
    merged, want = first.merge(second), wants[0].merge(wants[1])
    assert merged.mean_weight_ == want.mean_weight_ == len(X) + len(Z)
    for name in ("W_", "mean_"):
        np.testing.assert_allclose(getattr(merged, name), getattr(want, name), rtol=1e-10)
    more = fit_large(fresh(memory), X, y, max_pairs=None).partial_fit(Z, labels)
    np.testing.assert_allclose(more.W_, want.W_, rtol=1e-10)
    np.testing.assert_allclose(more.forget(Z, labels).W_, wants[0].W_, rtol=1e-8)
    save(first, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").move(X), first.move(X))


def test_nothing_of_an_earlier_fit_is_left(rng, way):
    X, y = objects(rng)
    mover = MoveLabeled(keep_moments=True).fit(X[:50], y[:50])
    mover.set_params(keep_moments=False)
    mover.feature_names_in_ = np.array(["a"] * 5, dtype=object)
    fit_large(mover, X, y, max_pairs=None)
    assert not {"moments_", "mean_weight_", "feature_names_in_"} & vars(mover).keys()


# --- equal from every store --------------------------------------------------------------------------------


def table_of(X, labels, kind=None):
    column = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])
    column = column if kind is None else column.cast(kind)
    return pa.table({"embedding": column, "label": labels})


def npy_with_csv(folder, X, labels):
    np.save(folder / "v.npy", X)
    (folder / "items.csv").write_text("id,label\n" + "".join(f"{i},{v}\n" for i, v in enumerate(labels)))
    return open_store(folder / "v.npy", items=folder / "items.csv")


def npy_with_npy(folder, X, labels):
    np.save(folder / "v.npy", np.asarray(X, order="F"))
    np.save(folder / "labels.npy", labels)
    return open_store(folder / "v.npy", items=folder / "labels.npy")


def npz(folder, X, labels):
    np.savez(folder / "v.npz", vectors=X, label=labels)
    return str(folder / "v.npz")


def hdf5(folder, X, labels):
    with h5py.File(folder / "v.hdf5", "w") as file:
        file["train"] = X
    (folder / "items.json").write_text(json.dumps({"label": labels.tolist()}))
    return open_store(folder / "v.hdf5", items=folder / "items.json")


def parquet(folder, X, labels):
    pq.write_table(table_of(X, labels, pa.list_(pa.float32())), folder / "v.parquet", row_group_size=17)
    return folder / "v.parquet"


def arrow(folder, X, labels):
    pyarrow.feather.write_feather(table_of(X, labels), folder / "v.arrow", compression="uncompressed")
    return folder / "v.arrow"


def parts(folder, X, labels):
    (folder / "parts").mkdir()
    for i, rows in enumerate(np.split(np.arange(len(X)), [20, 21, 90])):
        pq.write_table(table_of(X[rows], labels[rows]), folder / "parts" / f"{i}.parquet")
    return folder / "parts"


def npy_parts(folder, X, labels):
    (folder / "parts").mkdir()
    for i, rows in enumerate(np.split(X, [20, 21, 90])):
        np.save(folder / "parts" / f"{i}.npy", rows)
    np.save(folder / "labels.npy", labels)
    return open_store(folder / "parts", items=folder / "labels.npy")


def lance(folder, X, labels):
    import lancedb

    lancedb.connect(folder).create_table(
        "items", table_of(X, labels).append_column("id", [np.arange(len(X))])
    )
    return f"lancedb:{folder}#items"


FILES = [npy_with_csv, npy_with_npy, npz, hdf5, parquet, arrow, parts, npy_parts]
STORES = [*FILES, pytest.param(lance, marks=pytest.mark.services)]


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_every_store(rng, way, tmp_path, make):
    """Labels of a store are compared as texts."""
    X, codes = objects(rng, dtype=np.float32)
    y = 7 * codes + 5  # 5, 12 and 19 are in another order as texts
    for mover in (MoveLabeled(n_targets=2), LabelRidge()):
        folder = tmp_path / type(mover).__name__
        folder.mkdir()
        got = fit_large(fresh(mover), make(folder, X, y), "label", max_pairs=None)
        assert_same(got, fresh(mover).fit(X, y.astype(str)), X, y.astype(str), 1e-6)


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_blocks_are_batches_without_ids(rng, tmp_path, make):
    X, codes = objects(rng, dtype=np.float32)
    store = make(tmp_path, X, codes)
    store = open_store(store) if not hasattr(store, "blocks") else store
    batches = [(batch.vectors, batch.columns) for batch in store.batches(["label"], 50)]
    for blocks in (batches, list(store.blocks(["label"], 50))):
        assert all(0 < len(vectors) == len(values["label"]) <= 50 for vectors, values in blocks)
        np.testing.assert_array_equal(np.concatenate([vectors for vectors, _ in blocks]), X)
        assert [int(value) for _, values in blocks for value in values["label"]] == codes.tolist()
    with pytest.raises(StoreError, match="nothing"):
        list(store.blocks(["nothing"], 50))


@pytest.mark.parametrize("make", [parquet, arrow], ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_equal_texts_are_held_once(rng, tmp_path, monkeypatch, make, kind):
    """In blocks of more rows than a batch has otherwise."""
    monkeypatch.setattr(arrow_files, "ROWS", 10)
    X, codes = objects(rng, dtype=np.float32)
    labels = [None if code == 1 else "" if code == 2 else f"é{code}" * 20 for code in codes]
    store = open_store(make(tmp_path, X, pa.array(labels).cast(kind)))
    blocks = [values["label"] for _, values in store.blocks(["label"], 50)]
    assert max(map(len, blocks)) == 50
    assert all(len({*map(id, block)}) == len({*block}) for block in blocks if len(block) == 50)
    assert [value for _, values in store.blocks(["label"], 50) for value in values["label"]] == labels


@pytest.mark.parametrize("max_pairs", [None, 50], ids=["in memory", "a sample"])
def test_one_long_label_does_not_make_all_long(rng, max_pairs):
    """An array of texts has the length of the longest for each: 800 bytes here."""
    X, y = rng.standard_normal((30_000, 2)), rng.integers(0, 20, 30_000)
    names = np.array([*map(str, range(19)), "x" * 200])

    def peak(labels):
        tracemalloc.start()
        fit_large(MoveLabeled(), X, labels, max_pairs=max_pairs)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    assert peak(names[y].astype(object)) - peak(y) < 200 * len(y)


def test_parts_that_are_read_whole_are_held_one_at_a_time(rng, tmp_path, monkeypatch):
    """20 parts, of 0.4 MB each."""
    hold(monkeypatch, 10**6, 50)
    X, codes = rng.standard_normal((40_000, 50), dtype=np.float32), rng.integers(0, 9, 40_000)
    for i in range(20):
        part = slice(i * 2_000, i * 2_000 + 2_000)
        np.savez(tmp_path / f"{i:02}.npz", vectors=X[part], label=codes[part])
    want = X.mean(axis=0, dtype=np.float64)
    tracemalloc.start()
    got = fit_large(MoveLabeled(), tmp_path, "label", max_pairs=50)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(got.mean_, want, rtol=1e-5, atol=1e-6)
    assert held < 5e6


def test_a_store_reads_the_wanted_blocks_alone(rng, tmp_path, monkeypatch):
    """Parts without one are not opened once their number of blocks is known."""
    hold(monkeypatch, 23, 37)
    X, codes = objects(rng, dtype=np.float32)
    source = sources.StoreObjects(open_store(parts(tmp_path, X, codes)), "label", 10**9)
    every = dict(source.blocks())
    assert len(every) == 1 + 1 + 3 + 3
    opened = []
    read = source._read
    monkeypatch.setattr(source, "_read", lambda piece: opened.append(piece.name) or read(piece))
    for wanted in ({0}, {1}, {3}, {0, 7}, {4, 5}):
        opened.clear()
        got = dict(source.blocks(wanted))
        assert got.keys() == wanted
        assert all(np.array_equal(block.X, every[number].X) for number, block in got.items())
        pieces = {0: 0, 1: 1, 2: 2, 3: 2, 4: 2, 5: 3, 6: 3, 7: 3}
        assert opened == [source.pieces[i].name for i in sorted({pieces[number] for number in wanted})]


def test_rows_without_a_vector_or_a_label_are_missing(rng, way, tmp_path):
    """A null is not an error: such rows are left out, and so are empty texts."""
    X, codes = objects(rng, dtype=np.float32)
    labels = [f"c{code}" for code in codes]
    vectors = [row.tolist() for row in X]
    for row in (0, 30, 31, 110):
        vectors[row] = None
    for row, none in ((5, None), (31, None), (60, "")):
        labels[row] = none
    table = pa.table({"embedding": pa.array(vectors, pa.list_(pa.float32(), 5)), "label": labels})
    (tmp_path / "parts").mkdir()
    for i, (a, b) in enumerate([(0, 50), (50, len(X))]):
        pq.write_table(table.slice(a, b - a), tmp_path / "parts" / f"{i}.parquet")
    kept = np.setdiff1d(np.arange(len(X)), [0, 30, 31, 110, 5, 60])
    y = np.array([f"c{code}" for code in codes])
    got = fit_large(LabelRidge(), tmp_path / "parts", "label", max_pairs=None)
    assert_same(got, LabelRidge().fit(X[kept], y[kept]), X[kept], y[kept], 1e-6)
    assert got.skipped_ == []


def test_blocks_in_which_no_row_can_be_learned_from(rng, monkeypatch, tmp_path):
    """All labels of a block are missing."""
    hold(monkeypatch, 20, 37)
    X, codes = objects(rng, dtype=np.float32)
    labels = [None if 20 <= row < 60 else f"c{code}" for row, code in enumerate(codes)]
    pq.write_table(table_of(X, labels), tmp_path / "v.parquet")
    kept, y = np.r_[:20, 60 : len(X)], np.array([f"c{code}" for code in codes])
    got = fit_large(LabelRidge(), tmp_path / "v.parquet", "label", max_pairs=None)
    assert_same(got, LabelRidge().fit(X[kept], y[kept]), X[kept], y[kept], 1e-6)


# --- samples -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "max_pairs"), [(1, 60), (3, 150), (1, 4), (2, 1)])
def test_a_sample_equals_a_naive_loop(rng, way, k, max_pairs):
    X, y = objects(rng, [400, 120, 30, 3, 2, 1], d=3, grid=True)
    mover = MoveLabeled(0.7, n_targets=k, keep_moments=True)
    got = fit_large(mover, X, y, max_pairs=max_pairs, random_state=11)
    A, K, count = naive_moments(X, y, sampled_rows(len(X), max(1, max_pairs // k), 11), k)
    assert got.n_pairs_ == count <= max(max_pairs, k)
    assert got.moments_.weight == pytest.approx(count * len(X) / max(1, max_pairs // k))
    np.testing.assert_allclose(got.moments_.A, A, rtol=1e-10, atol=1e-10 * np.abs(A).max())
    np.testing.assert_allclose(got.moments_.K, K, rtol=1e-10, atol=1e-10 * np.abs(K).max())
    np.testing.assert_allclose(got.W_, reference.solve(A, K, 0.7), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.mean_, X.mean(axis=0))  # the mean is that of all objects
    assert (got.n_singletons_, got.mean_weight_) == (1, len(X))


def test_a_sample_of_label_ridge_equals_a_naive_loop(rng, way):
    """Class means are those of all objects; pairs are taken about them."""
    X, y = objects(rng, [300, 50, 2, 1], d=3)
    A, K, _ = naive_moments(X, y, sampled_rows(len(X), 40, 0), 1, about="class")
    got = fit_large(LabelRidge(0.3), X, y, max_pairs=40)
    np.testing.assert_allclose(got.W_, reference.solve(A, K, 0.3), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.means_, [X[y == c].mean(axis=0) for c in range(4)])


def test_samples_estimate_all_pairs_without_bias(rng):
    X, y = objects(rng, [200, 60, 8, 2], d=3)
    full = fit_large(MoveLabeled(keep_moments=True), X, y, max_pairs=None).moments_
    found = []
    for seed in range(120):
        mover = fit_large(MoveLabeled(keep_moments=True), X, y, max_pairs=30, random_state=seed)
        found.append(np.stack([mover.moments_.A, mover.moments_.K]))
        assert mover.moments_.weight == pytest.approx(full.weight)
    found = np.array(found)
    assert len(np.unique(found[:, 0, 0, 0])) == 120  # every seed has its own sample
    off = (found.mean(axis=0) - np.stack([full.A, full.K])) / (found.std(axis=0) / np.sqrt(len(found)))
    assert np.mean(off**2) < 3  # 1 is expected


def test_the_default_sample_is_the_same_however_objects_are_held(rng, monkeypatch):
    """Where all pairs cost too much: a part of them, and a warning at the line that asked for it."""
    X, y = objects(rng, [500, 90, 2, 1], d=3)
    monkeypatch.setattr(sampling, "OPERATIONS", 1.0)
    monkeypatch.setattr(sampling, "PAIRS", 50)
    found = []
    for rows, group in ((10**6, 10**6), (300, 60), (60, 43)):
        hold(monkeypatch, rows, group)
        with pytest.warns(SampledPairs, match=r"a sample of 150 of 592 pairs.*max_pairs=None") as caught:
            found.append(fit_large(MoveLabeled(), X, y))
        assert [warning.filename for warning in caught] == [__file__]
        assert found[-1].n_pairs_ == 150
    for other in found[1:]:
        np.testing.assert_allclose(other.W_, found[0].W_, rtol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # whoever names a number of pairs knows it, and all pairs are no sample
        assert fit_large(MoveLabeled(), X, y, max_pairs=150).n_pairs_ == 150
        assert fit_large(MoveLabeled(), X[:100], y[:100]).n_pairs_ == n_pairs(np.bincount(y[:100]), 1)
        assert fit_large(Shrink(), X, y).n_pairs_ == 0


def test_a_sample_without_a_pair(rng, way):
    """The only source is alone in its class."""
    X, y = objects(rng, [2] + [1] * 60)
    (row,) = sampled_rows(len(X), 1, 0)
    y[row], y[(row + 1) % len(X)], y[(row + 2) % len(X)] = 100, 101, 101
    with pytest.raises(ValueError, match="no pair to learn from: all of the 1 objects that were sampled"):
        fit_large(MoveLabeled(), X, y, max_pairs=1)


# --- refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_pairs": 0}, "max_pairs must be"),
        ({"max_pairs": "many"}, "max_pairs must be"),
        ({"max_pairs": 1.5}, "max_pairs must be"),
        ({"max_pairs": True}, "max_pairs must be"),
        ({"memory": "lots"}, "memory must be"),
        ({"memory": 10**6}, "memory must be at least"),
        ({"random_state": -5}, "random_state must be"),
        ({"mover": Chain([Stay()])}, "Chain needs all objects at once"),
        ({"mover": "MoveLabeled"}, "a mover, for example MoveLabeled"),
        ({"mover": MoveLabeled(n_targets=0)}, "n_targets must be"),
        ({"mover": MoveLabeled(device="cpu")}, "device='cpu' is ignored here"),
        ({"y": None}, "no labels"),
        ({"y": [1, 2]}, "2 labels for 148 rows"),
        ({"y": "label"}, "X is not a store"),
        ({"X": np.zeros(148)}, "must be a matrix"),
        ({"X": np.full((148, 2), "a")}, "must be a matrix"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_invalid_arguments_are_refused(rng, options, match):
    X, y = objects(rng, [100, 48])
    given = {"mover": MoveLabeled(), "X": X, "y": y, **options}
    with pytest.raises(ValueError, match=match):
        fit_large(given.pop("mover"), given.pop("X"), given.pop("y"), **given)


# of a fit in memory; which of the last two NumPy says depends on the processor
@pytest.mark.filterwarnings("ignore:The number of unique", "ignore:overflow", "ignore:invalid value")
def test_data_that_nothing_can_be_learned_from(rng, way):
    X, y = objects(rng, [100, 48])
    with pytest.raises(ValueError, match="there is no pair to learn from: every object is alone"):
        fit_large(MoveLabeled(), X, np.arange(len(X)).astype(str))
    with pytest.raises(ValueError, match="overflow float64"):
        fit_large(MoveLabeled(), 1e200 * X, y)


def test_a_store_needs_the_name_of_its_labels(rng, tmp_path):
    X, y = objects(rng, dtype=np.float32)
    for labels in (None, y):
        with pytest.raises(ValueError, match="name of the column"):
            fit_large(MoveLabeled(), parquet(tmp_path, X, y), labels)
