"""Classifiers and searches on Dask: exactly what they are in memory, ties and duplicates included."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hubless.distributed as on_dask
from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, fit_large, measure_hubness, nearest, save
from hubless.candidates import learned_in_parts
from hubless.distributed import search
from hubless.movers import LabelRidge, Shrink, Smooth, Stay
from tests import reference
from tests.test_dask import Counted, frames
from tests.test_large import objects

KNN = {
    "uniform": MoveLabeledClassifier(n_neighbors=4),
    "distance": MoveLabeledClassifier(n_neighbors=7, weights="distance"),
    "one": MoveLabeledClassifier(n_neighbors=1, mover=Stay(), weights="distance"),
    "all": MoveLabeledClassifier(n_neighbors=148, mover=Shrink(0.3)),
    "by class": MoveLabeledClassifier(mover=LabelRidge(keep=0.5)),
}


@pytest.fixture(autouse=True)
def all_pairs(monkeypatch):
    monkeypatch.setattr("hubless.large.sampling.PAIRS", 10**6)


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


def told_by(model, X):
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
        np.testing.assert_allclose(got.moved_.compute(), want.moved_, rtol=1e-5 if dtype == "f4" else 1e-12)
        got.moved_ = da.from_array(want.moved_, chunks=got.moved_.chunks)
        np.testing.assert_array_equal(got.codes_.compute(), want.codes_)
    asked = da.from_array(queries, chunks=((33, 0, 47), (4, 1)))
    answers = told_by(want, queries)
    with Counted() as ran:
        lazy = told_by(got, asked)
        assert ran.n == 0
    assert all(isinstance(part, da.Array) for part in lazy)
    same(lazy, answers)
    if where == "dask":
        host = told_by(got, queries)
        assert all(isinstance(part, np.ndarray) for part in host)
        same(host, answers)
    truth = y[:80]
    accuracy = float((answers[0] == truth).mean())
    for X_given, y_given in ((asked, truth), (asked, da.from_array(truth, chunks=9)), (queries, truth)):
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
    asked = da.from_array(queries, chunks=(20, 5))
    same([got.predict(asked), *got.kneighbors(asked)], [want.predict(queries), *want.kneighbors(queries)])
    same(got.kneighbors(queries), want.kneighbors(queries))
    same(want.kneighbors(asked), want.kneighbors(queries))


def test_data_frames(data):
    X, y, queries, _ = data
    table, labels = frames(X, pd.Series(y), [20, 20, 90])
    asked, truth = frames(queries, pd.Series(y[:80]), [7, 7])
    want = clone(KNN["uniform"]).fit(X, y)
    got = clone(KNN["uniform"]).fit(table, labels)
    np.testing.assert_array_equal(got.predict(asked).compute(), want.predict(queries))
    assert got.score(asked, truth) == pytest.approx(want.score(queries, y[:80]))
    assert got.moved_.shape == X.shape  # lengths are known since the fit
    named = clone(KNN["uniform"]).fit(pd.DataFrame(X, columns=asked.columns), y)  # in memory, with names
    np.testing.assert_array_equal(named.predict(asked).compute(), want.predict(queries))
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(asked[asked.columns[::-1]])


@pytest.mark.parametrize("where", ["memory", "dask"])
def test_what_classifiers_refuse(data, where, tmp_path):
    X, y, queries, _ = data
    model, asked = fitted(KNN["uniform"], X, y, where), da.from_array(queries, chunks=(30, 5))
    for X_given in (asked[:, :4], queries[:, :4]) if where == "dask" else (asked[:, :4],):
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
        model.kneighbors(asked, 149)
    with pytest.raises(ValueError, match="neighbors cannot be given with Dask"):
        model.predict(asked, neighbors=np.zeros((80, 1), int))
    with pytest.raises(ValueError, match="sample_weight cannot be given with Dask"):
        model.score(asked, y[:80], sample_weight=np.ones(80))
    with pytest.raises(ValueError, match="80 rows, y 79"):
        model.score(asked, y[:79])
    unknown = asked[da.ones(80, chunks=30) > 0]
    uneven = da.concatenate([da.from_array(y[:n])[da.ones(n, chunks=n) > 0] for n in (1, 49, 30)])
    with pytest.raises(ValueError, match="do not pair up"):
        model.score(unknown, uneven)
    assert model.score(unknown, da.from_array(y[:80], 30)) == model.score(asked, y[:80])


def test_what_fitting_refuses(data):
    X, y, _, _ = data
    x = da.from_array(X, chunks=50)
    for given, told in [
        ({"sample_weight": np.ones(len(X))}, "sample_weight cannot be given with Dask"),
        ({"targets": np.zeros((len(X), 1), int)}, "targets cannot be given with Dask"),
    ]:
        with pytest.raises(ValueError, match=told):
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
        got = on_dask.nearest(
            da.from_array(queries, chunks=(90, 2)),
            da.from_array(objects, (71, 5)),
            k,
            exclude_self=exclude_self,
        )
        same(got, want)
        same(
            [
                on_dask.nearest(
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


def test_nearest_of_unknown_lengths(data):
    X, _, queries, _ = data
    table = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    x = da.from_array(queries, chunks=30)[da.ones(80, chunks=30) > 0]
    same(on_dask.nearest(x, table, 4), nearest(queries, X, 4))


def test_what_nearest_refuses(data):
    X, _, queries, _ = data
    x, z = da.from_array(queries), da.from_array(X)
    for args, more, told in [
        ((x[:, :4], z, 2), {}, "queries have 4 columns, objects 5"),
        ((x, z, 149), {}, "from 1 to the 148 objects; got 149"),
        ((z, z, 148), {"exclude_self": True}, "from 1 to the 147"),
        ((x, z, 0), {}, "k must be"),
        ((x, z, 2), {"exclude_self": True}, "80 queries and 148 objects"),
        ((x[0], z, 2), {}, "one row per object"),
    ]:
        with pytest.raises(ValueError, match=told):
            on_dask.nearest(*args, **more)
    for one, other, told in [(x + np.inf, z, "queries have"), (x, z * np.nan, "objects have")]:
        with pytest.raises(ValueError, match=told):
            on_dask.nearest(one, other, 2, return_distance=False).compute()


@pytest.mark.parametrize("width", [1 << 24, 50])
def test_hubness(data, monkeypatch, width):
    monkeypatch.setattr(search, "RANGE", width)
    X, _, queries, _ = data
    neighbors = nearest(queries, X, 6, return_distance=False)
    want = measure_hubness(neighbors, len(X))
    for given in (da.from_array(neighbors, chunks=(7, 4)), da.from_array(neighbors)[da.ones(80) > 0]):
        got = on_dask.measure_hubness(given, len(X))
        assert got == want
        assert isinstance(got.occurrence, da.Array)
        np.testing.assert_array_equal(got.occurrence.compute(), want.occurrence)
    np.testing.assert_array_equal(got.occurrence.compute(), reference.k_occurrence(neighbors, len(X)))
    with pytest.raises(ValueError, match="row numbers from 0 to 99"):
        on_dask.measure_hubness(da.from_array(neighbors, chunks=(7, 4)), 100)


def test_hubness_in_memory_of_neighbours_on_dask():
    with pytest.raises(ValueError, match=r"Dask.*hubless\.distributed"):
        measure_hubness(da.ones((9, 2), dtype=int), 3)


@pytest.mark.parametrize("mover", ["ridge", "auto"])
def test_parameters_are_chosen_on_a_sample_and_learned_from_all(data, mover):
    """Where all objects are the sample, the choice is that of NumPy arrays."""
    X, y, Q, _ = data
    own = {"n_neighbors": (1, 3, 5), "n_targets": (1, 2), "mover": mover}
    got = MoveLabeledClassifierCV(**own).fit(da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40))
    movers = [Stay(), *learned_in_parts()] if mover == "auto" else mover
    want = MoveLabeledClassifierCV(**(own | {"mover": movers, "lift": mover == "ridge"})).fit(X, y)
    assert got.n_neighbors_ == want.n_neighbors_
    assert repr(got.mover_) == repr(want.mover_)
    assert got.best_score_ == want.best_score_
    assert f"chosen on {len(X):,} of {len(X):,} objects" in got.explain()
    alone = fit_large(clone(got.mover_), X, y)  # the same sample of pairs, in memory
    np.testing.assert_allclose(got.mover_.move(X, y), alone.move(X, y), rtol=1e-9, atol=1e-9)
    moved = alone.move(X, y)
    near = nearest(Q, moved, got.n_neighbors_, return_distance=False)
    votes = [[y[row] for row in rows] for rows in near]
    naive = [max(own, key=lambda label, own=own: (own.count(label), -own.index(label))) for own in votes]
    assert got.predict(Q).tolist() == naive
    with pytest.raises(ValueError, match="alphas"):
        MoveLabeledClassifierCV(alphas=[1.0]).fit(
            da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40)
        )
