"""Classifiers and searches on Dask: exactly what they are in memory, ties and duplicates included."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, fit_large, measure_hubness, nearest, save
from hubless.movers import LabelRidge, Shrink, Smooth, Stay
from hubless.outofcore.dask import dask_search as search
from hubless.selection.candidates import movers_in_parts
from tests import reference
from tests.outofcore.made_objects import objects
from tests.outofcore.test_dask import Counted, frames

KNN = {
    "uniform": MoveLabeledClassifier(n_neighbors=4),
    "distance": MoveLabeledClassifier(n_neighbors=7, weights="distance"),
    "one": MoveLabeledClassifier(n_neighbors=1, mover=Stay(), weights="distance"),
    "all": MoveLabeledClassifier(n_neighbors=148, mover=Shrink(0.3)),
    "by class": MoveLabeledClassifier(mover=LabelRidge(keep=0.5)),
}


@pytest.fixture
def data(rng):
    """Objects on a grid with copies, and queries of which some are objects."""
    X, y = objects(rng, grid=True)
    queries = np.concatenate([X[:40], np.round(X[40:80] + rng.standard_normal((40, 5)))])
    return X, np.array([f"c{code}" for code in y]), queries, y


def fitted(model, X, y, where):
    model = clone(model)
    if where == "memory":
        return model.fit(X, y)
    model.fit(da.from_array(X, chunks=((30, 0, 1, 117), (2, 3))), da.from_array(y, chunks=50))
    assert isinstance(model.moved_, da.Array)
    assert isinstance(model.codes_, da.Array)
    return model


def same(got, want):
    for one, other in zip(got, want, strict=True):
        one = one.compute() if isinstance(one, da.Array) else one
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def answers_of(model, X):
    return [model.predict(X), model.predict_proba(X), *model.kneighbors(X), model.kneighbors(X, 3, False)]


# W of a fit on Dask is that of one in memory to 1e-12, but not to the bit: here it is given the same
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("where", ["memory", "dask"])
@pytest.mark.parametrize("model", KNN.values(), ids=KNN)
def test_classifiers_as_in_memory(data, model, where, dtype):
    X, y, queries, _ = data
    X, queries = X.astype(dtype), queries.astype(dtype)
    want, got = fitted(model, X, y, "memory"), fitted(model, X, y, where)
    if where == "dask":
        rtol = 1e-12 if dtype is np.float64 else 1e-6
        np.testing.assert_allclose(got.moved_.compute(), want.moved_, rtol=rtol)
        got.moved_ = da.from_array(want.moved_, chunks=got.moved_.chunks)
        np.testing.assert_array_equal(got.codes_.compute(), want.codes_)
    on_dask = da.from_array(queries, chunks=((33, 0, 47), (4, 1)))
    answers = answers_of(want, queries)
    with Counted() as ran:
        lazy = answers_of(got, on_dask)
        assert ran.n == 0
    assert all(isinstance(part, da.Array) for part in lazy)
    same(lazy, answers)
    if where == "dask":
        host = answers_of(got, queries)
        assert all(isinstance(part, np.ndarray) for part in host)
        same(host, answers)
    truth = y[:80]
    accuracy = float((answers[0] == truth).mean())
    for X_given, y_given in ((on_dask, truth), (on_dask, da.from_array(truth, chunks=9)), (queries, truth)):
        assert got.score(X_given, y_given) == pytest.approx(accuracy, abs=1e-15)


@pytest.mark.parametrize(
    "make", [np.array, lambda y: 7 * y, lambda y: y > 0], ids=["ints", "sevens", "bools"]
)
def test_labels_of_other_kinds(data, make):
    X, _, queries, codes = data
    y = make(codes)
    want, got = (fitted(KNN["uniform"], X, y, where) for where in ("memory", "dask"))
    np.testing.assert_array_equal(got.predict(queries), want.predict(queries))
    assert got.predict(queries).dtype == want.predict(queries).dtype
    np.testing.assert_array_equal(got.classes_, want.classes_)


@pytest.mark.parametrize("queries_dtype", [np.int64, np.float32, np.float16, bool])
def test_queries_of_other_numbers(data, queries_dtype):
    X, y, queries, _ = data
    queries = np.clip(queries, 0, 9).astype(queries_dtype)
    want, got = (fitted(KNN["one"], X, y, where) for where in ("memory", "dask"))
    on_dask = da.from_array(queries, chunks=(20, 5))
    same([got.predict(on_dask), *got.kneighbors(on_dask)], [want.predict(queries), *want.kneighbors(queries)])
    same(got.kneighbors(queries), want.kneighbors(queries))
    same(want.kneighbors(on_dask), want.kneighbors(queries))


def test_data_frames(data):
    X, y, queries, _ = data
    table, labels = frames(X, pd.Series(y), [20, 20, 90])
    on_dask, truth = frames(queries, pd.Series(y[:80]), [7, 7])
    want = clone(KNN["uniform"]).fit(X, y)
    got = clone(KNN["uniform"]).fit(table, labels)
    np.testing.assert_array_equal(got.predict(on_dask).compute(), want.predict(queries))
    assert got.score(on_dask, truth) == pytest.approx(want.score(queries, y[:80]))
    assert got.moved_.shape == X.shape  # lengths are known since the fit
    named = clone(KNN["uniform"]).fit(pd.DataFrame(X, columns=on_dask.columns), y)  # in memory, with names
    np.testing.assert_array_equal(named.predict(on_dask).compute(), want.predict(queries))
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(on_dask[on_dask.columns[::-1]])


@pytest.mark.parametrize("where", ["memory", "dask"])
def test_what_classifiers_refuse(data, where, tmp_path):
    X, y, queries, _ = data
    model, on_dask = fitted(KNN["uniform"], X, y, where), da.from_array(queries, chunks=(30, 5))
    for X_given in (on_dask[:, :4], queries[:, :4]) if where == "dask" else (on_dask[:, :4],):
        for method in (model.predict, model.predict_proba, model.kneighbors):
            with pytest.raises(ValueError, match="4 features, but MoveLabeledClassifier is expecting 5"):
                method(X_given)
    holed = queries.copy()
    holed[33, 2] = np.nan
    for method in (model.predict, model.predict_proba, lambda X: model.kneighbors(X)[1]):
        with pytest.raises(ValueError, match="NaN"):
            method(da.from_array(holed, chunks=(30, 5))).compute()
        with pytest.raises(ValueError, match="NaN"):
            method(holed)
    with pytest.raises(ValueError, match="n_neighbors <= n_samples_fit"):
        model.kneighbors(on_dask, 149)
    with pytest.raises(ValueError, match="neighbors cannot be given with Dask"):
        model.predict(on_dask, neighbors=np.zeros((80, 1), int))
    with pytest.raises(ValueError, match="sample_weight cannot be given with Dask"):
        model.score(on_dask, y[:80], sample_weight=np.ones(80))
    with pytest.raises(ValueError, match="80 rows, y 79"):
        model.score(on_dask, y[:79])
    unknown = on_dask[da.ones(80, chunks=30) > 0]
    uneven = da.concatenate([da.from_array(y[:n])[da.ones(n, chunks=n) > 0] for n in (1, 49, 30)])
    with pytest.raises(ValueError, match="do not pair up"):
        model.score(unknown, uneven)
    assert model.score(unknown, da.from_array(y[:80], 30)) == model.score(on_dask, y[:80])


def test_what_fitting_refuses(data):
    X, y, _, _ = data
    x = da.from_array(X, chunks=50)
    for given, message in [
        ({"sample_weight": np.ones(len(X))}, "sample_weight cannot be given with Dask"),
        ({"targets": np.zeros((len(X), 1), int)}, "targets cannot be given with Dask"),
    ]:
        with pytest.raises(ValueError, match=message):
            MoveLabeledClassifier().fit(x, y, **given)
    with pytest.raises(ValueError, match="device cannot be given with Dask"):
        MoveLabeledClassifier(device="cpu").fit(x, y)
    with pytest.raises(ValueError, match="n_neighbors = 149"):
        MoveLabeledClassifier(149).fit(x, y)
    with pytest.raises(ValueError, match="Smooth needs all objects at once"):
        MoveLabeledClassifier(mover=Smooth()).fit(x, y)


def test_a_classifier_on_dask_is_an_estimator(data, tmp_path):
    X, y, queries, _ = data
    model = fitted(KNN["uniform"], X, y, "dask")
    assert repr(model) == "MoveLabeledClassifier(n_neighbors=4)"
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(queries), model.predict(queries))
    save(model.mover_, tmp_path / "model")
    model.fit(X, y)
    assert isinstance(model.moved_, np.ndarray)


def test_a_classifier_on_dask_is_not_saved(data, tmp_path):
    X, y, _, _ = data
    model = fitted(KNN["uniform"], X, y, "dask")
    with Counted() as ran, pytest.raises(ValueError, match="mover_"):
        save(model, tmp_path / "model")
    assert ran.n == 0


# --- searches ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtypes", [(np.float64, np.float64), (np.float32, np.float32), (np.int32, np.float32)]
)
@pytest.mark.parametrize("exclude_self", [False, True])
def test_nearest(data, exclude_self, dtypes):
    X = np.repeat(data[0], 2, axis=0)  # each object twice, many more often
    objects, queries = X.astype(dtypes[1]), X.astype(dtypes[0])
    for k in (1, 6, len(X) - 1):
        want = nearest(queries, objects, k, exclude_self=exclude_self)
        got = nearest(
            da.from_array(queries, chunks=(90, 2)),
            da.from_array(objects, (71, 5)),
            k,
            exclude_self=exclude_self,
        )
        same(got, want)
        same(
            [
                nearest(
                    da.from_array(queries),
                    da.from_array(objects),
                    k,
                    return_distance=False,
                    exclude_self=exclude_self,
                )
            ],
            [want[1]],
        )
    _, naive = reference.nearest(queries.astype(float), objects.astype(float), 3, exclude_self)
    np.testing.assert_array_equal(want[1][:, :3], naive)


@pytest.mark.parametrize("on_dask", ["queries", "objects"])
def test_nearest_of_one_side_on_dask(data, on_dask):
    X, _, queries, _ = data
    blocks = {"queries": da.from_array(queries, chunks=(30, 2)), "objects": da.from_array(X, chunks=(37, 5))}
    given = {"queries": queries, "objects": X, on_dask: blocks[on_dask]}
    with Counted() as ran:
        got = nearest(given["queries"], given["objects"], 4)
        assert ran.n == 0
    same(got, nearest(queries, X, 4))
    _, naive = reference.nearest(queries, X, 4)
    np.testing.assert_array_equal(got[1].compute(), naive)


def test_nearest_of_unknown_lengths(data):
    X, _, queries, _ = data
    table = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    x = da.from_array(queries, chunks=30)[da.ones(80, chunks=30) > 0]
    same(nearest(x, table, 4), nearest(queries, X, 4))


def test_what_nearest_refuses(data):
    X, _, queries, _ = data
    x, z = da.from_array(queries), da.from_array(X)
    for args, more, message in [
        ((x[:, :4], z, 2), {}, r"same number of columns; got shapes \(80, 4\) and \(148, 5\)"),
        ((x, z, 149), {}, "cannot return 149 neighbours: there are 148 objects"),
        ((z, z, 148), {"exclude_self": True}, "there are 147 objects"),
        ((x, z, 0), {}, "k must be"),
        ((x, z, 2), {"exclude_self": True}, "80 queries and 148 objects"),
        ((x[0], z, 2), {}, "one row per object"),
    ]:
        with pytest.raises(ValueError, match=message):
            nearest(*args, **more)
    for one, other, message in [(x + np.inf, z, "queries contain"), (x, z * np.nan, "objects contain")]:
        with pytest.raises(ValueError, match=message):
            nearest(one, other, 2, return_distance=False).compute()


@pytest.mark.parametrize("width", [1 << 24, 50])
def test_hubness(data, monkeypatch, width):
    monkeypatch.setattr(search, "RANGE", width)
    X, _, queries, _ = data
    neighbors = nearest(queries, X, 6, return_distance=False)
    want = measure_hubness(neighbors, len(X))
    for given in (da.from_array(neighbors, chunks=(7, 4)), da.from_array(neighbors)[da.ones(80) > 0]):
        got = measure_hubness(given, len(X))
        assert got == want
        assert isinstance(got.occurrence, da.Array)
        np.testing.assert_array_equal(got.occurrence.compute(), want.occurrence)
    np.testing.assert_array_equal(got.occurrence.compute(), reference.k_occurrence(neighbors, len(X)))
    with pytest.raises(ValueError, match="row numbers from 0 to 99"):
        measure_hubness(da.from_array(neighbors, chunks=(7, 4)), 100)


@pytest.mark.parametrize("mover", ["ridge", "auto"])
def test_parameters_are_chosen_on_a_sample_and_learned_from_all(data, mover):
    """Where all objects are the sample, the choice is that of NumPy arrays."""
    X, y, Q, _ = data
    grid = {"n_neighbors": (1, 3, 5), "n_targets": (1, 2), "mover": mover}
    got = MoveLabeledClassifierCV(**grid).fit(da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40))
    movers = [Stay(), *movers_in_parts()] if mover == "auto" else mover
    want = MoveLabeledClassifierCV(**(grid | {"mover": movers, "lift": mover == "ridge"})).fit(X, y)
    assert got.n_neighbors_ == want.n_neighbors_
    assert repr(got.mover_) == repr(want.mover_)
    assert got.best_score_ == want.best_score_
    assert f"chosen on {len(X):,} of {len(X):,} objects" in got.explain()
    alone = fit_large(clone(got.mover_), X, y)  # the same sample of pairs, in memory
    np.testing.assert_allclose(got.mover_.move(X, y), alone.move(X, y), rtol=1e-9, atol=1e-9)
    moved = alone.move(X, y)
    near = nearest(Q, moved, got.n_neighbors_, return_distance=False)
    votes = [[y[row] for row in rows] for rows in near]
    naive = [max(row, key=lambda label, row=row: (row.count(label), -row.index(label))) for row in votes]
    assert got.predict(Q).tolist() == naive
    with pytest.raises(ValueError, match="alphas"):
        MoveLabeledClassifierCV(alphas=[1.0]).fit(
            da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40)
        )
