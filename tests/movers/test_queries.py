"""Queries without labels: Balance learns from them in the place of objects, alone, in chains and in races."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, load, save
from hubless.arrays import to_numpy
from hubless.movers import Balance, Chain, Denoise, Shrink, Stay, Steer, Whiten, WithoutColumn
from hubless.movers.span import beside_span, coordinates, in_span
from hubless.selection.folds import folds
from hubless.selection.validation import CrossValidation
from hubless.targets import labeled_objects
from tests import reference
from tests.conftest import EACH_LIBRARY, FOREIGN
from tests.tables import CASES, TABLE, Row, each

USERS = {name: row for name, row in CASES.items() if row.uses_queries}
LIFTED = {name: row for name, row in USERS.items() if row.adds_column}


@pytest.fixture
def log(rng, blobs):
    """40 queries without labels, most of them where one class is."""
    X, y, _ = blobs
    return X[y == np.bincount(y).argmax()][rng.integers(0, 30, 40)] + rng.standard_normal((40, 6))


@pytest.fixture
def wide(rng):
    """24 objects of 3 classes in 40 columns, 12 queries and a log of 15 that is outside of their span."""
    y = np.arange(24) % 3
    means = rng.standard_normal((3, 40))
    X, queries, log = (means[c] + rng.standard_normal((len(c), 40)) + 2 for c in (y, y[:12], y[:15]))
    return X, y, queries, log


def order(queries, stored):
    return np.argsort(cdist(queries, stored), axis=1)


# --- plain loops --------------------------------------------------------------------------------------------


@each(LIFTED)
def test_rows_learned_from_queries_order_queries_as_the_scores_of_loops(asarray, blobs, log, later, row):
    X, y, queries = blobs
    mover = row.new()
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y), queries=asarray(log)))
    asked = np.column_stack([queries, np.zeros(25)])
    np.testing.assert_array_equal(to_numpy(mover.transform(asarray(queries))), asked)
    truth = row.of_loops(X, y, queries, proxies=log)
    np.testing.assert_array_equal(order(asked, stored), np.argsort(truth, axis=1))
    assert not np.array_equal(np.argsort(truth, axis=1), np.argsort(row.of_loops(X, y, queries), axis=1))
    moved = to_numpy(mover.move(*map(asarray, later)))
    shown = moved[:, -1] > 0
    assert shown.sum() >= 5
    added = row.of_loops(X, y, queries, proxies=log, later=later)[:, shown]
    together = np.vstack([stored, moved[shown]])
    np.testing.assert_array_equal(order(asked, together), np.argsort(np.hstack([truth, added]), axis=1))


def test_without_a_column_too(asarray, blobs, log):
    X, y, _ = blobs
    row = CASES["Balance, WithoutColumn"]
    moved = to_numpy(row.new().fit_transform(asarray(X), asarray(y), queries=asarray(log)))
    np.testing.assert_allclose(moved, row.of_loops(X, y, proxies=log), atol=1e-9)


def test_weights_of_objects_leave_the_queries_as_they_are(blobs, log, weights):
    X, y, queries = blobs
    weights[:7] = 0  # these are not learned from
    row = CASES["Whiten, Shrink, Balance, Steer"]
    mover = row.new()
    stored = mover.fit_transform(X, y, weights, queries=log)[7:]
    truth = row.of_loops(X[7:], y[7:], queries, sample_weight=weights[7:], proxies=log)
    np.testing.assert_array_equal(order(mover.transform(queries), stored), np.argsort(truth, axis=1))


def test_a_sample_of_many_queries(blobs, log):
    X, y, queries = blobs
    mover = Balance(0.6, n_neighbors=2, n_proxies=15)
    stored = mover.fit_transform(X, y, queries=log)
    rows = [np.flatnonzero((proxy == log).all(axis=1))[0] for proxy in mover.proxies_]
    assert len(set(rows)) == 15
    near = [reference.near_spread(x, log[rows], 2) for x in X]
    truth = cdist(queries, X) ** 2 - 0.6 * np.minimum(near, sorted(near)[59])
    np.testing.assert_array_equal(order(mover.transform(queries), stored), np.argsort(truth, axis=1))


def test_one_query_and_queries_that_are_the_objects(blobs):
    X, y, queries = blobs
    for log in (queries[:1], X):
        mover = Balance(0.6, n_neighbors=3)
        near = [reference.near_spread(x, log, min(3, len(log))) for x in X]
        truth = cdist(queries, X) ** 2 - 0.6 * np.minimum(near, sorted(near)[59])
        stored = mover.fit_transform(X, y, queries=log)
        np.testing.assert_array_equal(order(mover.transform(queries), stored), np.argsort(truth, axis=1))


def test_each_step_of_a_chain_sees_queries_in_its_space(blobs, log):
    X, y, _ = blobs
    steps = [Balance(), Whiten(0.2), Shrink(), Balance(), WithoutColumn(1.0), Balance()]
    first, metric, _, second, _, third = Chain(steps).fit(X, y, queries=log).movers_
    np.testing.assert_array_equal(first.proxies_, log)
    np.testing.assert_allclose(second.proxies_, log @ metric.L_, atol=1e-12)
    np.testing.assert_array_equal(third.proxies_, log)


# --- classifiers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_classifier_moves_as_its_mover_does(asarray, blobs, log, dtype):
    X, y, queries = (asarray(array) for array in blobs)
    X, queries = (asarray(to_numpy(array).astype(dtype)) for array in (X, queries))
    mover = Chain([Whiten(0.2), Shrink(0.3), Balance(0.5)])
    model = MoveLabeledClassifier(3, mover=mover).fit(X, y, queries=asarray(log))  # in float64
    truth = clone(mover).fit_transform(X, y, queries=asarray(log.astype(dtype)))
    assert to_numpy(model.moved_).dtype == to_numpy(model.mover_.movers_[-1].proxies_).dtype == dtype
    np.testing.assert_allclose(to_numpy(model.moved_), to_numpy(truth), rtol=1e-6)
    assert not np.allclose(to_numpy(model.moved_), to_numpy(clone(model).fit(X, y).moved_), rtol=1e-3)


@each(LIFTED)
def test_folds_are_answered_with_the_given_queries_as_proxies(blobs, log, row):
    X, y, _ = blobs
    train = np.flatnonzero((np.arange(60) % 3 > 0) | (y == 3))
    test = np.setdiff1d(np.arange(60), train)
    model = MoveLabeledClassifierCV((1,), mover=[row.new()], cv=[(train, test)]).fit(X, y, queries=log)
    scores = row.of_loops(X[train], y[train], X[test], proxies=log)
    assert model.best_score_ == np.mean(y[train][scores.argmin(axis=1)] == y[test])
    truth = row.new().fit_transform(X, y, queries=log)
    np.testing.assert_allclose(model.moved_, truth, atol=1e-9)


def test_auto_hands_queries_to_the_settings_that_use_them(blobs, log):
    X, y, queries = blobs
    with_log = MoveLabeledClassifierCV(mover="auto").fit(X, y, queries=log)
    without = MoveLabeledClassifierCV(mover="auto").fit(X, y)
    scores = [
        dict(zip(m.cv_results_["mover"], m.cv_results_["mean_test_score"], strict=True))
        for m in (with_log, without)
    ]
    alike = scores[0].keys() & scores[1].keys()
    plain = {name for name in alike if "Balance" not in name}
    assert plain
    assert all(scores[0][name] == scores[1][name] for name in plain)
    assert any(scores[0][name] != scores[1][name] for name in alike - plain)
    assert with_log.predict(queries).shape == (25,)


def test_few_objects_are_as_far_from_queries_in_their_span(asarray, wide):
    X, y, _, log = wide
    labeled = in_span(labeled_objects(asarray(X), asarray(y), queries=asarray(log)), [Balance()])
    C, seen = map(to_numpy, (labeled.X, labeled.queries))
    assert (C.shape, seen.shape) == ((24, 25), (15, 25))
    np.testing.assert_allclose(cdist(C, seen), cdist(X, log), atol=1e-12)
    np.testing.assert_allclose(cdist(C, C), cdist(X, X), atol=1e-12)
    inside = to_numpy(beside_span(asarray(X), coordinates(asarray(X))[1]))
    np.testing.assert_allclose(inside[:, -1], 0, atol=1e-12)


@each(USERS | {"Denoise, Balance": Row(Chain([Denoise(), Balance()]), None)})
def test_settings_are_scored_in_the_span_as_in_the_full_space(wide, row):
    X, y, _, log = wide
    labeled, answers = labeled_objects(X, y, None, None, 10, log), []
    for objects in (labeled, in_span(labeled, [])):
        shared = CrossValidation(
            objects, 3, folds(y, np.arange(24), 4, 0), (1, 3, 5), n_targets=10, columns=40
        )
        trial = shared.new_trial(row.new(), 0)
        shared.extend(trial, 24)
        assert not trial.error
        answers.append(trial.correct)
    np.testing.assert_array_equal(*answers)


def test_what_is_too_large_for_the_span_is_raced_as_it_is(wide):
    X, y, _, _ = wide
    labeled = labeled_objects(X.astype(np.float32), y, queries=np.full((2, 40), 3e38, np.float32))
    assert in_span(labeled, []) is labeled


def test_a_saved_model_keeps_the_queries_it_learned_from(blobs, log, later, tmp_path):
    X, y, queries = blobs
    model = MoveLabeledClassifier(3, mover=Chain([Whiten(), Shrink(), Balance()])).fit(X, y, queries=log)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(queries), model.predict(queries))
    np.testing.assert_array_equal(again.mover_.move(*later), model.mover_.move(*later))


@pytest.mark.torch
@pytest.mark.parametrize("streamed", [False, True])
def test_queries_of_the_host_are_sent_to_the_device(blobs, log, monkeypatch, streamed):
    from hubless.arrays import devices

    X, y, queries = blobs
    model = MoveLabeledClassifier(3, mover=Chain([Whiten(), Shrink(), Balance()]))
    on_host = clone(model).fit(X, y, queries=log)
    if streamed:  # queries that do not fit on the device are read from the host
        monkeypatch.setattr(devices, "fits", lambda array, anchor: len(array) != 40)
    on_device = clone(model).set_params(device="cpu").fit(X, y, queries=log)
    assert isinstance(on_device.mover_.movers_[-1].proxies_, np.ndarray)
    np.testing.assert_allclose(on_device.moved_, on_host.moved_, atol=1e-9)
    chosen = MoveLabeledClassifierCV(mover=[Balance()], device="cpu")
    if streamed:
        with pytest.raises(ValueError, match="does not fit on 'cpu'"):
            chosen.fit(X, y, queries=log)
    else:
        np.testing.assert_array_equal(chosen.fit(X, y, queries=log).predict(queries).shape, (25,))


# --- what is refused ----------------------------------------------------------------------------------------


FITS = [
    Balance(),
    Chain([Shrink(), Balance()]),
    MoveLabeledClassifier(mover=Balance()),
    MoveLabeledClassifierCV(mover="auto"),
    MoveLabeledClassifierCV(mover=[Stay(), Balance()]),
]
BAD = {
    "other columns": (np.ones((5, 4)), ValueError, "queries must have the columns of X; got 4.*X has 6"),
    "nan": (np.full((5, 6), np.nan), ValueError, "Input queries contains NaN"),
    "1-D": (np.ones(6), ValueError, "Expected 2D array, got 1D array"),
    "no rows": (np.ones((0, 6)), ValueError, r"Found array with 0 sample\(s\)"),
    "sparse": (scipy.sparse.eye_array(6), TypeError, r"Sparse data was passed for queries \(6 x 6\)"),
    "text": ([["a"] * 6], ValueError, "could not convert string to float"),
}


@pytest.mark.parametrize("model", FITS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("given", "error", "message"), BAD.values(), ids=BAD)
def test_bad_queries_are_refused(blobs, model, given, error, message):
    X, y, _ = blobs
    with pytest.raises(error, match=message):
        clone(model).fit(X, y, queries=given)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("model", FITS, ids=lambda model: type(model).__name__)
def test_queries_of_another_library_are_refused(blobs, library, model):
    X, y, queries = blobs
    message = "queries and X must be of one array library and on one device; got numpy.ndarray on cpu and "
    with pytest.raises(ValueError, match=message):
        clone(model).fit(library(X), library(y), queries=queries)
    with pytest.raises(ValueError, match=r"one device; got .* and numpy.ndarray on cpu\. Convert queries"):
        clone(model).fit(X, y, queries=library(queries))


@pytest.mark.parametrize("library", EACH_LIBRARY)
def test_bad_queries_of_every_library(blobs, library):
    X, y, queries = blobs
    queries[3, 2] = np.inf
    with pytest.raises(ValueError, match=r"queries.*infinity|infinity.*queries"):
        Balance().fit(library(X), library(y), queries=library(queries))
    queries[3, 2] = 1e39
    with pytest.raises(ValueError, match=r"queries are too large for .*float32, the precision of X"):
        Balance().fit(library(X.astype(np.float32)), library(y), queries=library(queries))


def test_columns_of_a_data_frame_must_have_the_names_of_those_of_the_objects(blobs):
    X, y, queries = blobs
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    named = MoveLabeledClassifier(mover=Balance()).fit(
        frame, y, queries=pd.DataFrame(queries, columns=[*"abcdef"])
    )
    np.testing.assert_array_equal(named.mover_.proxies_, queries)
    with pytest.raises(ValueError, match="feature names should match"):
        clone(named).fit(frame, y, queries=pd.DataFrame(queries, columns=[*"fedcba"]))


NOT_USED = [  # and the movers that the message names
    (MoveLabeledClassifier(), "MoveLabeled"),
    (MoveLabeledClassifier(mover=Chain([Whiten(), Steer()])), "Chain"),
    (MoveLabeledClassifierCV(), "MoveLabeled"),
    (MoveLabeledClassifierCV(mover=[Stay(), Shrink()]), "Shrink, Stay"),
    *((row.mover, name) for name, row in TABLE.items() if not row.uses_queries),
]


@pytest.mark.parametrize(("model", "names"), NOT_USED)
def test_queries_that_no_mover_uses_are_refused_before_anything_is_read(model, names):
    message = (
        rf"queries are learned from by Balance, alone or in a Chain, and not by {names}: leave queries out, "
        r"or use a mover that learns from them, such as Balance\(\)"
    )
    with pytest.raises(ValueError, match=message):
        clone(model).fit(None, None, queries=[[0.0]])
