"""The classifier: the whole path against plain loops and scikit-learn, weights, precomputed neighbours."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, MoveQuery
from hubless.arrays import to_numpy
from tests import reference


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 50.0])
@pytest.mark.parametrize(("k", "n_targets"), [(1, 1), (4, 3)])
def test_classifier_same_as_loops(asarray, blobs, k, alpha, n_targets, center):
    X, y, queries = blobs
    model = MoveLabeledClassifier(k, alpha, n_targets, center=center).fit(asarray(X), asarray(y))
    truth = reference.classify(X, y, queries, k, alpha, n_targets, center)
    np.testing.assert_array_equal(to_numpy(model.predict(asarray(queries))), truth)
    assert model.n_singletons_ == 1
    assert model.alpha_ == alpha


def expanded(X, y, n_targets):
    """The pairs (x, z) about the mean of X, one row each."""
    index = reference.pairs(reference.targets(X, y, n_targets))
    centred = X - X.mean(axis=0)
    return centred[[i for i, _ in index]], centred[[j for _, j in index]]


@pytest.mark.parametrize("n_targets", [1, 4])
def test_w_is_scikit_learns_ridge_on_the_expanded_pairs(blobs, n_targets):
    X, y, _ = blobs
    x, z = expanded(X, y, n_targets)
    oracle = Ridge(alpha=3.0, fit_intercept=False)
    labeled = MoveLabeledClassifier(alpha=3.0, n_targets=n_targets).fit(X, y)
    np.testing.assert_allclose(labeled.W_, oracle.fit(z, x).coef_, atol=1e-10)
    np.testing.assert_allclose(MoveLabeled(3.0, n_targets).fit(X, y).W_, oracle.fit(z, x).coef_, atol=1e-10)
    np.testing.assert_allclose(MoveQuery(3.0, n_targets).fit(X, y).W_, oracle.fit(x, z).coef_, atol=1e-10)


def test_objects_move_about_their_mean(blobs):
    X, y, _ = blobs
    model = MoveLabeledClassifier(alpha=2.0).fit(X, y)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))
    np.testing.assert_allclose(model.moved_, reference.move(X, model.W_, model.mean_))


def test_more_targets_than_there_are_cost_nothing(asarray, blobs):
    X, y, _ = (asarray(array) for array in blobs)
    most, more = (MoveLabeledClassifier(n_targets=n).fit(X, y) for n in (29, 10**9))
    np.testing.assert_allclose(to_numpy(more.W_), to_numpy(most.W_), atol=1e-12)
    few = asarray(reference.targets(*blobs[:2], 2))
    given = MoveLabeledClassifier(n_targets=5).fit(X, y, targets=few)
    np.testing.assert_allclose(to_numpy(given.W_), to_numpy(MoveLabeledClassifier(n_targets=2).fit(X, y).W_))
    for targets in (None, few):
        model = MoveLabeledClassifierCV([3], [1.0], (10**8, 10**9), cv=3)
        chosen = model.fit(X, y, targets=targets)
        assert chosen.n_targets_ == 10**8


def test_scale_is_the_mean_eigenvalue(blobs):
    X, y, _ = blobs
    _, z = expanded(X, y, 1)
    assert MoveLabeledClassifier().fit(X, y).alpha_ == pytest.approx(np.linalg.eigvalsh(z.T @ z).mean())


def test_more_dimensions_than_pairs(asarray, rng):
    X, y = rng.standard_normal((10, 40)), np.repeat([0, 1], 5)
    x, z = expanded(X, y, 1)
    model = MoveLabeledClassifier(1, 0.5).fit(asarray(X), asarray(y))
    oracle = Ridge(alpha=0.5, fit_intercept=False).fit(z, x)
    np.testing.assert_allclose(to_numpy(model.W_), oracle.coef_, atol=1e-10)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_probabilities_are_shares_of_votes(asarray, blobs, weights):
    X, y, queries = blobs
    model = MoveLabeledClassifier(5, weights=weights).fit(asarray(X), asarray(y))
    distances, indices = reference.nearest(queries, to_numpy(model.moved_), 5)
    w = (
        None
        if weights == "uniform"
        else [reference.inverse_distance_weights(row) for row in distances.tolist()]
    )
    labels = y[indices].tolist()
    shares = to_numpy(model.predict_proba(asarray(queries)))
    np.testing.assert_allclose(shares, reference.probabilities(labels, 4, w), atol=1e-12)
    np.testing.assert_array_equal(to_numpy(model.predict(asarray(queries))), reference.vote(labels, w))


def test_kneighbors_are_the_nearest_moved_objects(asarray, blobs):
    X, y, queries = blobs
    model = MoveLabeledClassifier(5).fit(asarray(X), asarray(y))
    distances, indices = model.kneighbors(asarray(queries), 7)
    truth = reference.nearest(queries, to_numpy(model.moved_), 7)
    np.testing.assert_array_equal(to_numpy(indices), truth[1])
    np.testing.assert_allclose(to_numpy(distances), truth[0])
    assert model.kneighbors(asarray(queries), return_distance=False).shape == (25, 5)


def test_sample_weights_multiply_pairs(blobs, rng):
    X, y, _ = blobs
    w = rng.random(60) + 0.1
    index = reference.pairs(reference.targets(X, y, 2))
    centred = X - np.average(X, axis=0, weights=w)
    x, z = centred[[i for i, _ in index]], centred[[j for _, j in index]]
    oracle = Ridge(alpha=1.5, fit_intercept=False).fit(z, x, sample_weight=w[[i for i, _ in index]])
    model = MoveLabeledClassifier(alpha=1.5, n_targets=2).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.W_, oracle.coef_, atol=1e-10)


def test_sample_weights_multiply_votes(blobs, rng):
    X, y, queries = blobs
    w = np.where(y == 3, 100.0, rng.integers(1, 4, 60))
    model = MoveLabeledClassifier(7).fit(X, y, sample_weight=w)
    _, indices = reference.nearest(queries, model.moved_, 7)
    truth = reference.vote(y[indices].tolist(), w[indices])
    np.testing.assert_array_equal(model.predict(queries), truth)
    assert not np.array_equal(truth, reference.vote(y[indices].tolist()))


@pytest.mark.parametrize("model", [MoveLabeledClassifier(), MoveLabeledClassifierCV(cv=3), MoveLabeled()])
def test_weight_zero_is_absence(blobs, model):
    X, y, queries = blobs
    w = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    kept = w > 0
    weighted = clone(model).fit(X, y, sample_weight=w)
    absent = clone(model).fit(X[kept], y[kept])
    np.testing.assert_allclose(weighted.W_, absent.W_, atol=1e-12)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(weighted.predict(queries), absent.predict(queries))
    else:
        assert clone(model).fit_transform(X, y, sample_weight=w).shape == X.shape


def test_weights_of_any_size(blobs):
    X, y, queries = blobs
    X32 = X.astype(np.float32)
    truth = MoveLabeledClassifier(3, 1.0).fit(X32, y).predict(queries)
    for size in (1e-50, 1e50):
        weighted = MoveLabeledClassifier(3, size).fit(X32, y, sample_weight=np.full(60, size))
        np.testing.assert_array_equal(weighted.predict(queries), truth)
        assert weighted.predict_proba(queries).dtype == np.float32


@pytest.mark.parametrize("model", [MoveLabeledClassifier(n_targets=2), MoveLabeled(n_targets=2), MoveQuery()])
def test_precomputed_targets(blobs, model):
    X, y, _ = blobs
    targets = reference.targets(X, y, 2)
    np.testing.assert_allclose(
        clone(model).fit(X, y, targets=targets).W_, clone(model).fit(X, y).W_, atol=1e-12
    )
    other = np.where(targets >= 0, np.roll(np.arange(60), 1)[:, None], -1)
    assert not np.allclose(clone(model).fit(X, y, targets=other).W_, clone(model).fit(X, y).W_)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_precomputed_neighbours_of_any_library(asarray, blobs, weights):
    X, y, queries = (asarray(array) for array in blobs)
    model = MoveLabeledClassifier(5, weights=weights).fit(X, y)
    result = model.predict(queries, neighbors=model.kneighbors(queries))
    np.testing.assert_array_equal(to_numpy(result), to_numpy(model.predict(queries)))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_precomputed_neighbours(blobs, weights):
    X, y, queries = blobs
    model = MoveLabeledClassifier(5, weights=weights).fit(X, y)
    neighbors = KNeighborsClassifier(5).fit(model.moved_, y).kneighbors(queries)  # another index
    np.testing.assert_array_equal(model.predict(neighbors=neighbors), model.predict(queries))
    np.testing.assert_allclose(model.predict_proba(neighbors=neighbors), model.predict_proba(queries))
    with pytest.raises(ValueError, match="one row per query; got 25 for 9"):
        model.predict(queries[:9], neighbors=neighbors)
    with pytest.raises(ValueError, match="weights must be one of"):
        clone(model).fit(X, y).set_params(weights="rank").predict(queries)
    assert model.score(None, y[:25], neighbors=neighbors) == model.score(queries, y[:25])
    if weights == "uniform":
        np.testing.assert_array_equal(model.predict(neighbors=neighbors[1]), model.predict(queries))
    else:
        with pytest.raises(ValueError, match="got indices alone"):
            model.predict(neighbors=neighbors[1])


def test_score_same_as_scikit_learns(blobs):
    X, y, queries = blobs
    model, truth = MoveLabeledClassifier().fit(X, y), np.arange(25) % 4
    assert model.score(queries, truth[:, None]) == model.score(queries, truth)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(queries, truth[:-1])


def test_score_takes_sample_weights(blobs):
    X, y, queries = blobs
    model = MoveLabeledClassifier().fit(X, y)
    truth = np.arange(25) % 4
    right, w = model.predict(queries) == truth, np.arange(25.0)
    assert model.score(queries, truth, w) == pytest.approx((right * w).sum() / w.sum())


def test_a_failed_fit_leaves_the_model_as_it_was(blobs):
    X, y, queries = blobs
    model = MoveLabeledClassifier(3).fit(X, y + 10)
    before = model.predict(queries)
    with pytest.raises(ValueError, match="n_neighbors = 100"):
        model.set_params(n_neighbors=100).fit(X, y)
    np.testing.assert_array_equal(model.set_params(n_neighbors=3).predict(queries), before)
    with pytest.raises(ValueError, match="no pair to learn from"):
        model.fit(X, y, targets=np.full((60, 1), -1))
    np.testing.assert_array_equal(model.predict(queries), before)
