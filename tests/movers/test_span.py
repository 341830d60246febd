"""Fewer objects than columns: movers learn, and races run, in the span of the objects; all is the same."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.tree import DecisionTreeRegressor

from hubless import MoveLabeledClassifierCV, classifier_cv
from hubless.arrays import to_numpy
from hubless.movers import Chain, Denoise, LabelRidge, MoveLabeled, Regress, Shrink, Stay, Whiten
from hubless.movers.span import coordinates, extend_map, in_span
from hubless.selection.folds import folds
from hubless.selection.race import Race
from hubless.selection.validation import CrossValidation
from hubless.targets import labeled_objects
from tests import reference
from tests.tables import CASES, Row, each

# penalties in units that go by the number of columns, beside those of the table
BY_COLUMNS = {
    "MoveLabeled by scale": Row(MoveLabeled(), reference.move_labeled),
    "LabelRidge by scale": Row(LabelRidge(), reference.label_ridge),
}


@pytest.fixture
def wide(rng):
    """24 objects of 3 classes in 40 columns, far from 0; 12 queries."""
    y = np.arange(24) % 3
    means = rng.standard_normal((3, 40))
    X, queries = (means[c] + rng.standard_normal((len(c), 40)) + 2.0 for c in (y, y[:12]))
    return X, y, queries


def order(queries, stored):
    return np.argsort(cdist(queries, stored), axis=1)


def test_coordinates_have_the_distances_lengths_and_precision_of_the_rows(asarray, wide):
    X, _, _ = wide
    X[7] = X[3]
    C, Q = map(to_numpy, coordinates(asarray(X)))
    assert (C.shape, Q.shape) == ((24, 24), (40, 24))
    np.testing.assert_allclose(C @ Q.T, X, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(24), atol=1e-12)
    origin = np.zeros((1, 24))
    np.testing.assert_allclose(cdist(C, C), cdist(X, X), atol=1e-12)
    np.testing.assert_allclose(cdist(C, origin)[:, 0], np.linalg.norm(X, axis=1), atol=1e-12)
    assert cdist(C, C)[3, 7] < 1e-13  # squares of the rows would leave 1e-7


def test_a_map_of_the_span_is_one_number_outside_of_it(asarray, rng):
    Q, M = np.linalg.qr(rng.standard_normal((9, 3)))[0], rng.standard_normal((3, 3))
    L = to_numpy(extend_map(asarray(M), 0.7, asarray(Q)))
    inside, outside = Q @ rng.standard_normal(3), rng.standard_normal(9)
    outside -= Q @ (Q.T @ outside)
    np.testing.assert_allclose(L @ inside, Q @ M @ (Q.T @ inside), atol=1e-12)
    np.testing.assert_allclose(L @ outside, 0.7 * outside, atol=1e-12)


@each({name: row for name, row in CASES.items() if not row.adds_column})
def test_few_objects_move_as_in_loops(wide, row):
    X, y, _ = wide
    # WithoutColumn lifts objects by 100 standard deviations, and their rounding with them
    atol = 1e-6 if "WithoutColumn" in repr(row.mover) else 1e-9
    np.testing.assert_allclose(row.new().fit_transform(X, y), row.of_loops(X, y), atol=atol)


@each({name: row for name, row in CASES.items() if row.adds_column})
def test_few_objects_order_queries_as_the_scores_of_loops(asarray, wide, row):
    """Queries lie outside of the span, too."""
    X, y, queries = wide
    mover = row.new()
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y)))
    truth = np.argsort(row.of_loops(X, y, queries), axis=1)
    np.testing.assert_array_equal(order(to_numpy(mover.transform(asarray(queries))), stored), truth)


def test_maps_of_few_objects_are_those_of_loops(wide):
    X, y, _ = wide
    np.testing.assert_allclose(Whiten(0.2).fit(X, y).L_, reference.whitener(X, y, 0.2), atol=1e-9)
    for whiten in (False, True):
        mover = Denoise(1.5, 4, whiten=whiten, alpha=0.05).fit(X, y)
        L = reference.denoiser(X, y, 1.5, 4, whiten, 0.05, 2)
        np.testing.assert_allclose(mover.L_ @ mover.L_.T, L @ L.T, atol=1e-9)
        assert mover.correlations_.shape == (40,)
        assert (np.diff(mover.correlations_) >= 0).all()
        np.testing.assert_array_equal(mover.correlations_[:16], 1e-6)  # outside of the span


@each(CASES | BY_COLUMNS)
def test_settings_are_scored_in_the_span_as_in_the_full_space(wide, row):
    X, y, _ = wide
    labeled = labeled_objects(X, y, None, None, 10)
    answers = []
    for objects in (labeled, labeled._replace(X=coordinates(X)[0])):
        shared = CrossValidation(
            objects, 3, folds(y, np.arange(24), 4, 0), (1, 3, 5), n_targets=10, columns=40
        )
        trial = shared.new_trial(row.new(), 0)
        shared.extend(trial, 24)
        assert not trial.error
        answers.append(trial.correct)
    np.testing.assert_array_equal(*answers)


def test_without_the_columns_of_the_input_penalties_would_differ(wide):
    """Else the test above could not fail."""
    X, y, _ = wide
    labeled = labeled_objects(coordinates(X)[0], y, None, None, 10)
    maps = []
    for columns in (None, 40):
        shared = CrossValidation(labeled, 3, [(np.arange(24), np.arange(24))], (1,), columns=columns)
        trial = shared.new_trial(Whiten(0.2), 0)
        maps.append(shared._moved(trial, 1, 0).L)
    assert not np.allclose(*maps, rtol=1e-3)


def test_only_movers_that_ignore_axes_are_raced_in_the_span(wide):
    X, y, _ = wide
    labeled = labeled_objects(X, y)
    assert in_span(labeled, []).X.shape == in_span(labeled, [Shrink(), Chain([Whiten()])]).X.shape == (24, 24)
    by_column = Regress(DecisionTreeRegressor())
    assert in_span(labeled, [Stay(), by_column]) is labeled
    assert in_span(labeled, [Chain([Shrink(), by_column])]) is labeled
    many = labeled_objects(X[:, :24], y)
    assert in_span(many, []) is many
    huge = labeled_objects(np.full((24, 40), 3e38, dtype=np.float32), y)
    assert in_span(huge, []) is huge  # √40 × 3e38 is no float32


def test_auto_races_in_the_span_and_fits_in_the_full_space(wide, monkeypatch):
    X, y, queries = wide
    seen = []

    class Kept(Race):
        def run(self, movers):
            seen.append(self.folds.labeled.X)
            return super().run(movers)

    monkeypatch.setattr(classifier_cv, "Race", Kept)
    model = MoveLabeledClassifierCV(mover="auto").fit(X.astype(np.float32), y)
    assert [(part.shape, part.dtype) for part in seen] == [((24, 24), np.float32)]
    assert model.moved_.shape[1] >= 40
    assert model.predict(queries.astype(np.float32)).shape == (12,)
