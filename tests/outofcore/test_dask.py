"""Movers fitted on Dask: equal to fits in memory and part by part, whatever the blocks, labels and groups."""

import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback
from distributed import Client
from sklearn.base import clone

from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, MoveQuery, load, save
from hubless.movers import Balance, Chain, LabelRidge, Scale, Shrink, Smooth, Stay, Whiten
from hubless.outofcore import learn, pair_sums, sampling
from hubless.outofcore.dask import engine
from hubless.outofcore.dask.dask_objects import DaskObjects
from hubless.outofcore.fit import fit_large
from hubless.outofcore.sampling import SampledPairs, sampled_rows
from tests import reference
from tests.outofcore.dask_cluster import running
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


def hold(monkeypatch, group):
    """Learn from sums, for groups of so many sources."""
    monkeypatch.setattr(DaskObjects, "room", 1)
    monkeypatch.setattr(pair_sums, "group_size", lambda *_: group)
    monkeypatch.setattr(learn, "_fit_in_memory", lambda *_: pytest.fail("learned in memory"))


@pytest.fixture(params=[None, 90], ids=["in one process", "in groups"])
def way(request, monkeypatch):
    """How objects are learned from: in the memory of one worker, or by sums."""
    if request.param is not None:
        hold(monkeypatch, request.param)


def on_dask(X, y, rows=37, columns=None):
    """Arrays in blocks that are not those of the labels."""
    return da.from_array(X, chunks=(rows, columns or X.shape[1])), da.from_array(y, chunks=rows + 11)


def frames(X, y, cuts):
    """A data frame and a series of labels, cut into the same partitions, some of which may be empty."""
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    pieces = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(X)], strict=True)]
    vectors = dd.from_map(lambda piece: table.iloc[piece], pieces, meta=table.iloc[:0])
    return vectors, dd.from_map(lambda piece: y.iloc[piece], pieces, meta=y.iloc[:0])


class Counted(Callback):
    """How many tasks ran."""

    n = 0

    def _posttask(self, *_):
        self.n += 1


# --- equal to a fit in memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [False, True], ids=["all apart", "ties and copies"])
@pytest.mark.parametrize("mover", MOVERS.values(), ids=MOVERS)
def test_equal_to_a_fit_in_memory(rng, way, mover, grid):
    X, y = objects(rng, grid=grid)
    got, want = fresh(mover), fresh(mover)
    there = got.fit_transform(*on_dask(X, y))
    here = want.fit_transform(X, y)
    assert isinstance(there, da.Array)
    assert_same(got, want, X, y, 1e-12)
    np.testing.assert_allclose(there.compute(), here, rtol=1e-12, atol=1e-12)
    assert there.compute().dtype == there.dtype == here.dtype
    assert got.n_pairs_ == n_pairs(SIZES, getattr(mover, "n_targets", 0))


def test_the_default_is_the_answer_of_memory():
    """6,000 objects of 40 columns: all pairs are learned from, where 50 per column were before."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 6000)
    X = 0.4 * rng.standard_normal((5, 40))[y] + rng.standard_normal((6000, 40))
    x, labels = da.from_array(X, chunks=(1500, -1)), da.from_array(y, chunks=1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, want = MoveLabeledClassifier().fit(x, labels), MoveLabeledClassifier().fit(X, y)
    assert_same(got.mover_, want.mover_, X, y, 1e-12)
    assert got.mover_.n_pairs_ == 6000


def test_equal_to_plain_loops(rng, way):
    X, y = objects(rng, grid=True)
    got = MoveLabeled(0.5, n_targets=2).fit_transform(*on_dask(X, y))
    np.testing.assert_allclose(got.compute(), reference.move_labeled(X, y, 0.5, n_targets=2), rtol=1e-9)
    got = LabelRidge(0.5, n_targets=2, keep=0.6).fit_transform(*on_dask(X, y))
    np.testing.assert_allclose(got.compute(), reference.label_ridge(X, y, 0.5, 2, 0.6), rtol=1e-9)


@pytest.mark.parametrize(("k", "max_pairs"), [(1, 60), (3, 150), (1, 4), (2, 1)])
def test_a_sample_equals_a_naive_loop_and_one_part_by_part(rng, way, k, max_pairs):
    X, y = objects(rng, [400, 120, 30, 3, 2, 1], grid=True)
    mover = MoveLabeled(0.7, n_targets=k, keep_moments=True)
    got = fit_large(fresh(mover), *on_dask(X, y, 70), max_pairs=max_pairs, random_state=11)
    m = max(1, max_pairs // k)
    A, K, count = naive_moments(X, y, sampled_rows(len(X), m, 11), k)
    np.testing.assert_allclose(got.moments_.weight, count * len(X) / m, rtol=1e-12)
    np.testing.assert_allclose(got.moments_.A, A, rtol=1e-9, atol=1e-9 * np.abs(A).max())
    np.testing.assert_allclose(got.moments_.K, K, rtol=1e-9, atol=1e-9 * np.abs(K).max())
    assert got.n_pairs_ == count
    here = fit_large(fresh(mover), X, y, max_pairs=max_pairs, random_state=11)
    assert_same(got, here, X, y, 1e-9)


def test_where_all_pairs_cost_too_much_a_warning_says_so(rng, way, monkeypatch):
    monkeypatch.setattr(sampling, "OPERATIONS", 1.0)
    monkeypatch.setattr(sampling, "PAIRS", 20)
    X, y = objects(rng, [400, 120, 30, 3, 2, 1])
    x, labels = on_dask(X, y, 70)
    calls = [
        lambda: fit_large(MoveLabeled(), x, labels),
        lambda: MoveLabeled().fit(x, labels),
        lambda: MoveLabeledClassifier().fit(x, labels).mover_,
        lambda: fit_large(MoveLabeled(), X, y),
    ]
    found = []
    for call in calls:
        with pytest.warns(SampledPairs, match=r"a sample of 100 of 555 pairs") as caught:
            found.append(call())
        assert [warning.filename for warning in caught] == [__file__]
    for mover in found[1:]:
        assert_same(mover, found[0], X, y, 1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int16, np.uint8, bool])
@pytest.mark.parametrize("mover", [MoveLabeled(n_targets=2), LabelRidge(), Shrink()], ids=repr)
def test_numbers_of_all_kinds(rng, mover, dtype):
    X, y = objects(rng, grid=True)
    X = np.clip(X, 0, 100).astype(dtype)
    got, want = fresh(mover), fresh(mover).fit(X, y)
    there = got.fit_transform(*on_dask(X, y))
    assert there.dtype == there.compute().dtype == (np.float32 if X.dtype in ("f2", "f4") else np.float64)
    assert_same(got, want, X.astype(there.dtype), y, 1e-6 if there.dtype == "f4" else 1e-12)


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
def test_labels_of_all_kinds(rng, way, make):
    X, codes = objects(rng)
    y = make(codes)
    want = LabelRidge().fit(X, y)
    x, labels = on_dask(X, y)
    for given in (labels, y, y.tolist(), labels[:, None], labels.astype(object)):
        got = LabelRidge()
        moved = got.fit_transform(x, given)
        assert_same(got, want, X, y, 1e-12)
        np.testing.assert_allclose(moved.compute(), want.move(X, y), rtol=1e-12)


SERIES = {
    "int": lambda codes: pd.Series(7 * codes),
    "bool": lambda codes: pd.Series(codes > 0),
    "object": lambda codes: pd.Series([f"c{code}" for code in codes], dtype=object),
    "string": lambda codes: pd.Series([f"c{code}" for code in codes], dtype="string"),
    "arrow": lambda codes: pd.Series([f"c{code}" for code in codes], dtype="string[pyarrow]"),
    "str": lambda codes: pd.Series([f"c{code}" for code in codes], dtype="str"),
    "category": lambda codes: pd.Series([f"c{code}" for code in codes]).astype("category"),
    "nullable": lambda codes: pd.Series(codes, dtype="Int64"),
}


@pytest.mark.parametrize("make", SERIES.values(), ids=SERIES)
def test_data_frames(rng, way, make):
    """Partitions of unknown length, two of them empty."""
    X, codes = objects(rng)
    labels = make(codes)
    y = np.array(labels.tolist())
    table, series = frames(X, labels, [20, 20, 61, 148])
    X = pd.DataFrame(X, columns=list(table.columns))
    want = LabelRidge(n_targets=2).fit(X, y)
    for given in (series, series.to_frame("label")):
        got = LabelRidge(n_targets=2)
        moved = got.fit_transform(table, given)
        assert_same(got, want, X, y, 1e-12)
        assert got.feature_names_in_.tolist() == want.feature_names_in_.tolist()
        with pytest.raises(ValueError, match="feature names should match"):
            got.move(table[table.columns[::-1]], given)
        for there in (moved, got.move(table, given)):
            np.testing.assert_allclose(there.compute(), want.move(X, y), rtol=1e-12, atol=1e-12)


def test_blocks_of_all_shapes(rng, way):
    """Columns in blocks, blocks of unknown length, empty ones, of one object, of one class."""
    X, y = objects(rng)
    order = np.argsort(y, kind="stable")
    want = MoveLabeled(n_targets=2).fit(X, y)
    shapes = {
        "columns": (da.from_array(X, chunks=(31, 2)), y),
        "one block": (da.from_array(X, chunks=-1), da.from_array(y, chunks=3)),
        "of one object": (da.from_array(X, chunks=((1, 0, 146, 1), 5)), da.from_array(y, chunks=-1)),
        "of one class": (da.from_array(X[order], chunks=((90, 40, 18), 5)), y[order]),
        "unknown": (da.from_array(X, chunks=(50, 5))[da.ones(148, chunks=50) > 0], da.from_array(y, 50)),
    }
    for name, (x, labels) in shapes.items():
        got = MoveLabeled(n_targets=2)
        moved = got.fit_transform(x, labels)
        assert_same(got, want, X, y, 1e-10)
        rows = order if name == "of one class" else slice(None)
        np.testing.assert_allclose(moved.compute(), want.move(X)[rows], rtol=1e-10, err_msg=name)
    unknown = shapes["unknown"][0]
    assert np.isnan(got.move(unknown).shape[0])  # and stays unknown: nothing is computed


def test_many_blocks(rng, monkeypatch):
    """More blocks than are joined at a time, in a tree of three floors."""
    hold(monkeypatch, 1000)
    X, y = objects(rng)
    x, labels = on_dask(X, y, 2)
    assert x.numblocks[0] > engine.TOGETHER**2
    got = LabelRidge(n_targets=2).fit(x, labels)
    assert_same(got, LabelRidge(n_targets=2).fit(X, y), X, y, 1e-12)


# --- lazy, small, as other estimators ----------------------------------------------------------------------


def test_moving_is_lazy(rng):
    X, y = objects(rng)
    x, labels = on_dask(X, y)
    mover = LabelRidge().fit(x, labels)
    with Counted() as ran:
        moved, asked = mover.move(x, labels), mover.transform(x)
        assert ran.n == 0
        np.testing.assert_allclose(moved.compute(), mover.move(X, y), rtol=1e-12)
        assert ran.n > 0
    np.testing.assert_array_equal(asked.compute(), X)


def test_only_small_results_come_to_the_client(rng, monkeypatch):
    """Of 20,000 objects in the memory of workers, what is taken from them is less than 1/50."""
    hold(monkeypatch, 15_000)
    X, y = objects(rng, [9000, 8000, 2000, 1000], dtype=np.float32)
    sizes, take = [], DaskObjects.take

    def taken(self, result):
        found = take(self, result)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(DaskObjects, "take", taken)
    LabelRidge().fit(*on_dask(X, y, 1000))
    assert len(sizes) == 1 + 2 * 2 + 1  # the look; of two groups, blocks and moments; the means
    assert sum(sizes) < X.nbytes / 50


def test_estimators_as_others(rng, tmp_path):
    X, y = objects(rng)
    mover = MoveLabeled(n_targets=2).fit(*on_dask(X, y))
    assert repr(clone(mover)) == repr(mover) == "MoveLabeled(n_targets=2)"
    again = pickle.loads(pickle.dumps(mover))
    np.testing.assert_array_equal(again.move(X), mover.move(X))
    save(mover, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").move(X), mover.move(X))
    mover.fit(X[:, :3], y)  # and in memory again, of other columns
    assert mover.n_features_in_ == 3
    assert not hasattr(mover, "n_pairs_")


# --- what is refused ---------------------------------------------------------------------------------------


def bad_blocks():
    """What is done to X and y of the third block of 20, and what is said of it."""

    def put(value, where="X"):
        def change(X, y):
            X, y = X.copy(), y.astype(object)
            (X[47:48, 1:2] if where == "X" else y[47:48])[...] = value
            return X, y

        return change

    def text(X, y):
        X = X.astype(object)
        X[47, 1] = "many"
        return X, y

    return {
        "NaN": (put(np.nan), "row 7 of block 2 of X has NaN"),
        "infinite": (put(-np.inf), "row 7 of block 2 of X has an infinite number"),
        "no number": (text, "block 2 of X: vectors are real numbers"),
        "no label": (put(None, "y"), "row 7 of block 2 of X has no label"),
        "half a label": (put(0.5, "y"), r"Unknown label type: row 7 of block 2 of X has 0\.5"),
        "a text": (put("a", "y"), "block 2 of X has texts and numbers"),
        "texts": (
            lambda X, y: (X, np.r_[y[:40].astype("O"), y[40:60].astype(str), y[60:]]),
            "block 2 .*has texts where earlier labels are numbers",
        ),
    }


@pytest.mark.parametrize(("change", "message"), bad_blocks().values(), ids=bad_blocks())
def test_a_bad_block_is_named_or_skipped(rng, way, change, message):
    X, y = objects(rng)
    Z, labels = change(X, y)
    given = da.from_array(Z, chunks=(20, 5)), da.from_array(labels, chunks=20)
    with pytest.raises(ValueError, match=message):
        LabelRidge().fit(*given)
    got = fit_large(LabelRidge(), *given, max_pairs=None, skip_bad=True)
    ((part, why),) = got.skipped_
    assert part == "block 2 of X"
    assert part in why
    kept = np.r_[:40, 60 : len(X)]
    assert_same(got, LabelRidge().fit(X[kept], y[kept]), X[kept], y[kept], 1e-12)


def test_a_block_of_other_columns(rng):
    X, y = objects(rng)
    pieces = [X[:50], X[50:90, :4], X[90:]]
    blocks = [da.from_delayed(dask.delayed(piece), (len(piece), 5), float) for piece in pieces]
    x = da.concatenate(blocks)
    with pytest.raises(ValueError, match=r"block 1 of X has vectors of 4 columns, the others 5"):
        Shrink().fit(x, y)
    got = fit_large(Shrink(), x, y, skip_bad=True)
    kept = np.r_[:50, 90 : len(X)]
    np.testing.assert_allclose(got.means_, Shrink().fit(X[kept], y[kept]).means_, rtol=1e-12)


def test_labels_that_do_not_pair_up(rng):
    X, y = objects(rng)
    x, labels = on_dask(X, y)
    table, series = frames(X, pd.Series(y), [50, 90])
    _, uneven = frames(X, pd.Series(y), [40, 90])
    _, fewer = frames(X, pd.Series(y), [50])
    for given, its_labels, message in [
        (x, None, "requires y to be passed"),
        (x, labels[1:], "148 rows, y 147"),
        (x, y[:3], "148 rows, y 3"),
        (x, "label", "one label per object"),
        (x, da.from_array(np.c_[y, y]), "one label per object.* 2 axes"),
        (table, fewer, "3 blocks and y 2"),
        (table, uneven, "block 0 of X has 50 vectors and 40 labels"),
        (x[:, 0], labels, "one row per object"),
        (x[:0], labels[:0], "no object with a label"),
        (x.astype(complex), labels, "real numbers; got complex128"),
    ]:
        with pytest.raises(ValueError, match=message):
            LabelRidge().fit(given, its_labels)
    missing = series.where(series > 0).astype("Int64")
    with pytest.raises(ValueError, match=r"row \d+ of block 0 of X has no label"):
        LabelRidge().fit(table, missing)


@pytest.mark.parametrize("mover", [Smooth(), Whiten(), Chain([Scale(), MoveLabeled()])], ids=repr)
def test_other_movers_refuse_before_anything_is_read(rng, mover):
    with Counted() as ran, pytest.raises(ValueError, match="needs all objects at once, in memory"):
        mover.fit(*on_dask(*objects(rng)))
    assert ran.n == 0


def test_what_is_not_done_on_dask_is_refused(rng):
    X, y = objects(rng)
    x, labels = on_dask(X, y)
    with pytest.raises(ValueError, match="sample_weight cannot be given with Dask"):
        MoveLabeled().fit(x, labels, sample_weight=np.ones(len(X)))
    for model in (MoveLabeled(), Balance(), MoveLabeledClassifier(), MoveLabeledClassifierCV(mover="auto")):
        with pytest.raises(ValueError, match="queries cannot be given with Dask"):
            model.fit(x, labels, queries=np.ones((3, X.shape[1])))
        with pytest.raises(ValueError, match=r"queries is on Dask, but X is in memory.*queries.compute\(\)"):
            model.fit(np.ones((4, 3)), [0, 0, 1, 1], queries=da.ones((3, 3)))
    with pytest.raises(ValueError, match="targets cannot be given with Dask"):
        MoveLabeled().fit(x, labels, targets=np.zeros((len(X), 1), int))
    with pytest.raises(ValueError, match="device cannot be given with Dask"):
        MoveLabeled(device="cpu").fit(x, labels)
    mover = Stay().fit(x, labels)
    with pytest.raises(ValueError, match="4 features, but Stay is expecting 5"):
        mover.move(x[:, :4])
    message = r"X is on Dask, but MoveQuery\.fit\(\) works in memory"
    with Counted() as ran, pytest.raises(ValueError, match=message):
        MoveQuery().fit(x, labels)
    assert ran.n == 0


# --- workers -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_two_and_four_workers(rng, monkeypatch):
    """The same bits from each, and the W of a fit in memory."""
    hold(monkeypatch, 800)
    X, y = objects(rng, [900, 400, 90, 30, 2, 1], d=12, dtype=np.float32)
    x, labels = on_dask(X, y, 130)
    want, found = LabelRidge(n_targets=2).fit(X, y), []
    sample = fit_large(LabelRidge(), X, y, max_pairs=500)
    with running(0) as cluster, Client(cluster.address) as client:
        for n in (1, 2, 4):
            while len(cluster.workers) < n:
                cluster.add()
            client.wait_for_workers(n, timeout=600)
            got = LabelRidge(n_targets=2).fit(x, labels)
            assert_same(got, want, X, y, 1e-6)
            found.append(np.concatenate([got.W_, got.means_]))
        moved = got.move(x, labels).compute()
        # blocks of another size are rounded otherwise by the products of some processors
        np.testing.assert_allclose(moved, got.move(X, y), rtol=1e-6, atol=1e-6)
        assert_same(fit_large(LabelRidge(), x, labels, max_pairs=500), sample, X, y, 1e-6)
    assert all((one == found[0]).all() for one in found)
