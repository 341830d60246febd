"""The choice of parameters by cross-validation against fitting every setting."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.selection.folds import folds
from tests import reference


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_cross_validation_same_as_fitting_every_setting(asarray, blobs, weights):
    X, y, _ = blobs
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X[y < 3], y[y < 3]))
    X, y = X[y < 3], y[y < 3]
    grid = {"n_neighbors": (1, 4), "alphas": (0.1, 10.0), "n_targets": (1, 3)}
    model = MoveLabeledClassifierCV(**grid, weights=weights, cv=folds).fit(asarray(X), asarray(y))
    truth = np.empty((3, 2, 2, 2))
    for f, (train, test) in enumerate(folds):
        for t, n_targets in enumerate(grid["n_targets"]):
            for a, alpha in enumerate(grid["alphas"]):
                for k, n_neighbors in enumerate(grid["n_neighbors"]):
                    single = MoveLabeledClassifier(n_neighbors, alpha, n_targets, weights=weights)
                    truth[f, t, a, k] = single.fit(X[train], y[train]).score(X[test], y[test])
    np.testing.assert_allclose(to_numpy(model.scores_), truth, atol=1e-12)
    assert model.best_score_ == pytest.approx(truth.mean(axis=0).max())
    chosen = MoveLabeledClassifier(model.n_neighbors_, model.alpha_, model.n_targets_, weights=weights).fit(
        X, y
    )
    np.testing.assert_allclose(to_numpy(model.W_), chosen.W_, atol=1e-10)


def test_default_grid_is_relative_to_each_folds_mean_eigenvalue(blobs):
    X, y, _ = blobs
    rows = np.arange(60)
    train, test = rows[rows % 3 > 0], rows[rows % 3 == 0]
    model = MoveLabeledClassifierCV(cv=[(train, test)], n_neighbors=[3]).fit(X, y)
    unit = MoveLabeledClassifier().fit(X[train], y[train]).alpha_
    truth = [
        MoveLabeledClassifier(3, alpha * unit).fit(X[train], y[train]).score(X[test], y[test])
        for alpha in np.logspace(-4, 2, 13)
    ]
    np.testing.assert_allclose(model.scores_[0, 0, :, 0], truth)
    whole = MoveLabeledClassifier().fit(X, y).alpha_
    assert np.min(np.abs(np.logspace(-4, 2, 13) * whole / model.alpha_ - 1)) < 1e-9


def test_results_can_be_read_as_a_table(blobs):
    X, y, _ = blobs
    model = MoveLabeledClassifierCV(n_neighbors=(1, 3), n_targets=(1, 2), cv=3).fit(X, y)
    table = pd.DataFrame(model.cv_results_)
    assert len(table) == 2 * 13 * 2
    best = table.sort_values("rank_test_score").iloc[0]
    assert best.mean_test_score == pytest.approx(model.best_score_)
    rows = table[
        (table.param_n_targets == model.n_targets_) & (table.param_n_neighbors == model.n_neighbors_)
    ]
    assert model.best_score_ == pytest.approx(rows.mean_test_score.max())
    assert list(model.grid_) == ["n_targets", "alpha", "n_neighbors"]
    assert model.scores_.shape == (3, 2, 13, 2)


def test_equal_scores_go_to_the_simpler_setting():
    X = np.concatenate([np.arange(10.0), 100 + np.arange(10.0)]).reshape(-1, 1)
    y = np.repeat([0, 1], 10)
    model = MoveLabeledClassifierCV((1, 3), alphas=(1e-6, 1e-3), n_targets=(1, 2)).fit(X, y)
    assert (model.best_score_, model.n_targets_, model.alpha_, model.n_neighbors_) == (1.0, 1, 1e-3, 1)


def test_seed_decides_the_folds(blobs):
    X, y, _ = blobs
    first, again, other = (MoveLabeledClassifierCV(random_state=seed).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.scores_, again.scores_)
    assert not np.array_equal(first.scores_, other.scores_)


def test_folds_survive_tiny_classes(rng):
    y = np.concatenate([np.zeros(40), np.ones(3), [2, 2], [3]]).astype(int)
    X = rng.standard_normal((46, 3)) + 30 * y[:, None]
    for part, (train, test) in enumerate(folds(y, np.arange(46), 5, 0)):
        assert len(train) + len(test) == 46
        assert len(test) in (9, 10)
        assert np.sum(y[test] == 0) == 8
        assert np.sum(y[test] == 1) <= 1, part
    model = MoveLabeledClassifierCV(cv=5, n_neighbors=[1]).fit(X, y)
    # an object whose class is not in the training part, and no other, is always wrong: the singleton
    assert model.best_score_ == pytest.approx(np.mean([1, 1, 1, 1, 1]) - 1 / 9 / 5, abs=0.003)


def test_parts_without_a_pair_are_passed_over(rng):
    X, y = rng.standard_normal((6, 2)), [0, 0, 1, 2, 3, 4]
    model = MoveLabeledClassifierCV(n_neighbors=[1], cv=5).fit(X, y)
    assert 0 < np.isnan(model.scores_).all(axis=(1, 2, 3)).sum() < 5
    assert np.isfinite(model.best_score_)
    with pytest.raises(ValueError, match="no training part of the cross-validation has two objects"):
        MoveLabeledClassifierCV(cv=2).fit(X[:4], [0, 0, 1, 1])


def test_given_folds_mean_the_rows_that_were_given(blobs, rng):
    X, y, _ = blobs
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    mask = rng.random(60) < 0.6
    single = MoveLabeledClassifier(3, 1.0)
    for train, test in ((mask, ~mask), (np.flatnonzero(mask), np.flatnonzero(~mask))):
        plain = MoveLabeledClassifierCV([3], [1.0], cv=[(train, test)])
        assert plain.fit(X, y).best_score_ == single.fit(X[train], y[train]).score(X[test], y[test])
        result = plain.fit(X, y, sample_weight=weights).best_score_
        fit, ask = mask & (weights > 0), ~mask & (weights > 0)
        assert result == single.fit(X[fit], y[fit]).score(X[ask], y[ask])


def test_precomputed_targets_in_cross_validation(blobs):
    X, y, _ = blobs
    result = MoveLabeledClassifierCV(n_targets=(1, 2)).fit(X, y, targets=reference.targets(X, y, 59))
    truth = MoveLabeledClassifierCV(n_targets=(1, 2)).fit(X, y)
    np.testing.assert_array_equal(result.scores_, truth.scores_)
    np.testing.assert_allclose(result.W_, truth.W_, atol=1e-12)
