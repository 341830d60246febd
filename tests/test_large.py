"""Movers fitted part by part: equal to fits in memory; samples equal to loops over the same sources."""

import json

import h5py
import lancedb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from hubless import MoveLabeled, load, save
from hubless.large import stream
from hubless.large.fit import fit_large
from hubless.large.sampling import Sample, allot
from hubless.movers import Chain, LabelRidge, Scale, Shrink, Stay
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests import reference

SIZES = [90, 40, 9, 3, 2, 2, 1, 1]
MOVERS = {
    "one target": MoveLabeled(),
    "three targets": MoveLabeled(n_targets=3),
    "more targets than objects": MoveLabeled(n_targets=60),
    "no centre": MoveLabeled(center=False),
    "toward identity": MoveLabeled(2.0, toward="identity"),
    "label ridge": LabelRidge(n_targets=2, keep=0.7),
    "shrink": Shrink(0.4),
    "scale": Scale(0.3),
    "stay": Stay(),
}
LABELS = {
    "ints": lambda codes: 7 * codes - 9,
    "texts": lambda codes: np.array(["é", "b", "aa", "ab", "z z", "10", "9", "Z"])[codes],
    "truth": lambda codes: codes > 0,
    "whole floats": lambda codes: codes * 2.0,
}


def objects(rng, sizes=SIZES, d=5, *, grid=False, dtype=np.float64):
    """Rows of classes in no order, far from the origin; on a grid with many ties and copies."""
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = 3 + 2 * rng.standard_normal((len(sizes), d))[codes] + rng.standard_normal((len(codes), d))
    X = np.round(X) if grid else X
    X[1::7] = X[codes.tolist().index(0)] if grid else X[1::7]  # copies, also across classes
    return X.astype(dtype), codes


def fresh(mover, **changes):
    return type(mover)(**{**mover.get_params(), **changes})


def assert_same(got, want, X, y, rounding):
    for name in ("W_", "mean_", "means_", "alpha_"):
        assert hasattr(got, name) == hasattr(want, name)
        if hasattr(want, name):
            own, others = np.asarray(getattr(got, name)), np.asarray(getattr(want, name))
            assert own.dtype == others.dtype
            assert np.linalg.norm(own - others) <= rounding * np.linalg.norm(others), name
    np.testing.assert_array_equal(got.classes_, want.classes_)
    assert got.classes_.dtype.kind == want.classes_.dtype.kind
    assert got.n_singletons_ == want.n_singletons_
    assert got.n_features_in_ == want.n_features_in_
    there, here = got.move(X[:30] + 1, y[:30]), want.move(X[:30] + 1, y[:30])
    assert np.abs(there - here).max() <= rounding * np.abs(here).max()


@pytest.fixture(params=[10**6, 64, 24], ids=["at once", "some at a time", "all cut"])
def room(request, monkeypatch):
    """How many objects are held at once: all, those of classes but not of the largest, or fewer than most."""
    monkeypatch.setattr(stream, "rows_within", lambda *_: request.param)
    monkeypatch.setattr(stream, "SOURCES", 30)
    return request.param


# --- equal to a fit in memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [False, True], ids=["all apart", "ties and copies"])
@pytest.mark.parametrize("mover", MOVERS.values(), ids=MOVERS)
def test_equal_to_a_fit_in_memory(rng, room, mover, grid):
    X, y = objects(rng, grid=grid)
    got = fit_large(fresh(mover), X, y, max_pairs=None)
    assert_same(got, fresh(mover).fit(X, y), X, y, 1e-12)
    k = getattr(mover, "n_targets", 0)
    assert got.n_pairs_ == sum(n * min(k, n - 1) for n in SIZES)
    assert got.skipped_ == []


def test_equal_to_plain_loops(rng, room):
    X, y = objects(rng, grid=True)
    got = fit_large(MoveLabeled(0.5, n_targets=2), X, y, max_pairs=None)
    want = reference.move_labeled(X, y, 0.5, n_targets=2)
    np.testing.assert_allclose(got.move(X), want, rtol=1e-9)
    got = fit_large(LabelRidge(0.5, n_targets=2, keep=0.6), X, y, max_pairs=None)
    np.testing.assert_allclose(got.move(X, y), reference.label_ridge(X, y, 0.5, 2, 0.6), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int16, np.uint8, np.dtype(">f4")])
@pytest.mark.parametrize("mover", [MoveLabeled(n_targets=2), LabelRidge(), Shrink()], ids=repr)
def test_numbers_of_all_kinds(rng, room, mover, dtype):
    X, y = objects(rng, grid=True)
    X = np.clip(X, 0, 100).astype(dtype)
    got, want = fit_large(fresh(mover), X, y, max_pairs=None), fresh(mover).fit(X, y)
    assert_same(got, want, X.astype(got.move(X, y).dtype), y, 1e-6 if got.move(X, y).dtype == "f4" else 1e-12)


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("form", [np.asarray, list, lambda y: y.astype("O")], ids=["array", "list", "object"])
def test_labels_of_all_kinds(rng, room, make, form):
    X, codes = objects(rng)
    y = make(codes)
    got = fit_large(LabelRidge(), X, form(y), max_pairs=None)
    assert_same(got, LabelRidge().fit(X, y), X, y, 1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_mapped_arrays_and_steps(rng, room, tmp_path, order):
    X, y = objects(rng)
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    np.save(tmp_path / "y.npy", y)
    mapped, labels = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xy")
    want = MoveLabeled(n_targets=2).fit(X, y)
    assert_same(fit_large(MoveLabeled(n_targets=2), mapped, labels, max_pairs=None), want, X, y, 1e-12)
    wide = np.repeat(X, 3, axis=1)[::-1]
    got = fit_large(MoveLabeled(n_targets=2), wide[::-1, ::3], y, max_pairs=None)
    assert_same(got, want, X, y, 1e-12)


def test_one_huge_class_and_twins(rng, room):
    """Nearly all objects are of one class, and half of them lie on one point."""
    X, y = objects(rng, [130, 2, 1])
    X[y == 0] = X[y == 0][np.minimum(np.arange(130), 60)]
    for mover in (MoveLabeled(n_targets=3), LabelRidge(n_targets=3)):
        got = fit_large(fresh(mover), X, y, max_pairs=None)
        assert_same(got, fresh(mover).fit(X, y), X, y, 1e-12)


def test_fewer_pairs_than_columns(rng, room):
    X, y = objects(rng, [3, 2, 1], d=20)
    got = fit_large(MoveLabeled(), X, y, max_pairs=None)
    assert_same(got, MoveLabeled().fit(X, y), X, y, 1e-9)


def test_it_learns_on_afterwards(rng, room, tmp_path):
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
    on = fit_large(fresh(memory), X, y, max_pairs=None).partial_fit(Z, labels)
    np.testing.assert_allclose(on.W_, want.W_, rtol=1e-10)
    np.testing.assert_allclose(on.forget(Z, labels).W_, wants[0].W_, rtol=1e-8)
    save(first, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").move(X), first.move(X))


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
    lancedb.connect(folder).create_table(
        "items", table_of(X, labels).append_column("id", [np.arange(len(X))])
    )
    return f"lancedb:{folder}#items"


STORES = [npy_with_csv, npy_with_npy, npz, hdf5, parquet, arrow, parts, npy_parts, lance]


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_every_store(rng, room, tmp_path, make):
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


def test_rows_without_a_vector_or_a_label_are_missing(rng, room, tmp_path):
    """A null is no defect: such rows are left out, and so are texts that are empty."""
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


# --- samples -----------------------------------------------------------------------------------------------


def test_allotted_sources(rng):
    """Every class with a pair has one, in proportion within 1, and no more in all than asked for."""
    for _ in range(2000):
        sizes = np.ceil(10 ** rng.uniform(-0.5, rng.uniform(0, 6), rng.integers(1, 40))).astype(np.int64)
        most = int(10 ** rng.uniform(0, 6.5))
        counts = allot(sizes, most)
        paired = sizes > 1
        assert counts.dtype == np.int64
        assert (counts[~paired] == 0).all()
        assert (counts[paired] >= 1).all()
        assert (counts <= sizes).all()
        if sizes[paired].sum() <= most:
            assert (counts[paired] == sizes[paired]).all()
            continue
        assert counts.sum() <= max(most, paired.sum())
        assert counts.sum() > most - 2 * len(sizes)  # and not far fewer
        room = max(0, most - int(paired.sum()))
        for size, count in zip(sizes[paired].tolist(), counts[paired].tolist(), strict=True):
            exact = 1 + room * (size - 1) / int((sizes[paired] - 1).sum())
            assert exact - 1 - 1e-9 <= count <= exact + 1e-9


def test_allotted_sources_of_a_billion():
    sizes = np.array([10**9, 2, 1, 5 * 10**8])
    counts = allot(sizes, 10**8)
    assert counts[1] == 1
    assert counts[2] == 0
    assert 10**8 - 4 <= counts.sum() <= 10**8
    assert abs(counts[0] / counts[3] - 2) < 1e-6
    assert (allot(sizes, None) == [10**9, 2, 0, 5 * 10**8]).all()


def naive_sample(X, y, sample, k):
    """Moments about the mean over the sources of a sample, their targets found among their whole class."""
    mean, A, K, weight, n_pairs = X.mean(axis=0), 0.0, 0.0, 0.0, 0
    for number, label in enumerate(np.unique(y)):
        own = np.flatnonzero(y == label)  # the object of rank r is own[r]
        ranks = sample.ranks(number)
        assert len(set(ranks.tolist())) == len(ranks) == sample.counts[number]
        for i in own[ranks]:
            others = own[own != i]
            squared = ((X[others] - X[i]) ** 2).sum(axis=1)
            for j in others[np.lexsort((others, squared))[:k]]:
                x, z, w = X[i] - mean, X[j] - mean, len(own) / len(ranks)
                A, K = A + w * np.outer(x, z), K + w * np.outer(z, z)
                weight, n_pairs = weight + w, n_pairs + 1
    return A, K, weight, n_pairs


@pytest.mark.parametrize(("k", "max_pairs"), [(1, 60), (3, 150), (1, 4), (2, 1)])
def test_a_sample_equals_a_naive_loop(rng, room, k, max_pairs):
    sizes = [400, 120, 30, 3, 2, 1]  # 400 are more than are searched as a whole
    X, y = objects(rng, sizes, d=3, grid=True)
    sample = Sample.of(np.array(sizes), max_pairs, k, 11)
    mover = MoveLabeled(0.7, n_targets=k, keep_moments=True)
    got = fit_large(mover, X, y, max_pairs=max_pairs, random_state=11)
    A, K, weight, n_pairs = naive_sample(X, y, sample, k)
    assert got.n_pairs_ == n_pairs
    assert n_pairs <= max(max_pairs, 5 * k)
    assert got.moments_.weight == pytest.approx(weight)
    np.testing.assert_allclose(got.moments_.A, A, rtol=1e-10, atol=1e-10 * np.abs(A).max())
    np.testing.assert_allclose(got.moments_.K, K, rtol=1e-10, atol=1e-10 * np.abs(K).max())
    np.testing.assert_allclose(got.W_, reference.solve(A, K, 0.7), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.mean_, X.mean(axis=0))  # the mean is that of all objects
    assert (got.n_singletons_, got.mean_weight_) == (1, len(X))


def test_a_sample_of_label_ridge_equals_a_naive_loop(rng, room):
    """Class means are those of all objects; pairs are taken about them."""
    X, y = objects(rng, [300, 50, 2, 1], d=3)
    means = np.array([X[y == c].mean(axis=0) for c in range(4)])
    sample = Sample.of(np.array([300, 50, 2, 1]), 40, 1, 0)
    A = K = 0.0
    for c in range(3):
        own = np.flatnonzero(y == c)
        for i in own[sample.ranks(c)]:
            others = own[own != i]
            j = others[np.argmin(((X[others] - X[i]) ** 2).sum(axis=1))]
            x, z, w = X[i] - means[c], X[j] - means[c], sample.sizes[c] / sample.counts[c]
            A, K = A + w * np.outer(x, z), K + w * np.outer(z, z)
    got = fit_large(LabelRidge(0.3), X, y, max_pairs=40)
    np.testing.assert_allclose(got.W_, reference.solve(A, K, 0.3), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got.means_, means)


def test_samples_estimate_all_pairs_without_bias(rng):
    X, y = objects(rng, [200, 60, 8, 2], d=3)
    full = fit_large(MoveLabeled(keep_moments=True), X, y, max_pairs=None).moments_
    found = []
    for seed in range(150):
        mover = fit_large(MoveLabeled(keep_moments=True), X, y, max_pairs=30, random_state=seed)
        found.append(np.stack([mover.moments_.A, mover.moments_.K]))
        assert mover.moments_.weight == pytest.approx(full.weight)
    found = np.array(found)
    assert len(np.unique(found[:, 0, 0, 0])) == 150  # every seed has a sample of its own
    off = (found.mean(axis=0) - np.stack([full.A, full.K])) / (found.std(axis=0) / np.sqrt(len(found)))
    assert np.mean(off**2) < 3  # 1 is expected


def test_the_default_sample(rng, monkeypatch):
    """About 50 pairs per column; the same whatever is held at once, and all where there are fewer."""
    X, y = objects(rng, [500, 90, 2, 1], d=3)
    found = []
    for room in (10**6, 300, 60):
        monkeypatch.setattr(stream, "rows_within", lambda *_, room=room: room)
        found.append(fit_large(MoveLabeled(), X, y))
        assert 147 <= found[-1].n_pairs_ <= 150
    for other in found[1:]:
        np.testing.assert_allclose(other.W_, found[0].W_, rtol=1e-10)
    assert fit_large(MoveLabeled(), X[:100], y[:100]).n_pairs_ == sum(
        n for n in np.bincount(y[:100]).tolist() if n > 1
    )


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
        ({"mover": "MoveLabeled"}, "a mover, as MoveLabeled"),
        ({"mover": MoveLabeled(n_targets=0)}, "n_targets must be"),
        ({"y": None}, "no labels"),
        ({"y": [1, 2]}, "2 labels for 148 rows"),
        ({"X": np.zeros(148)}, "must be a matrix"),
        ({"X": np.full((148, 2), "a")}, "must be a matrix"),
        ({"y": np.arange(148)}, "pair"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_senseless_arguments_are_refused(rng, options, match):
    X, y = objects(rng, [100, 48])
    given = {"mover": MoveLabeled(), "X": X, "y": y, **options}
    with pytest.raises(ValueError, match=match):
        fit_large(given.pop("mover"), given.pop("X"), given.pop("y"), **given)


def test_a_store_needs_the_name_of_its_labels(rng, tmp_path):
    X, y = objects(rng, dtype=np.float32)
    for labels in (None, y):
        with pytest.raises(ValueError, match="name of the column"):
            fit_large(MoveLabeled(), parquet(tmp_path, X, y), labels)
