"""The estimators: scikit-learn's own checks, the whole path against plain loops, and daily use."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, MoveQuery
from hubless.arrays import to_numpy
from hubless.selection import folds

WEIGHTS_ARE_NOT_COPIES = (
    "a weight of 2 is not a second copy: a copy becomes the nearest same-class object, and so the target, of "
    "its original, while a weight only counts the pairs and the vote of one object twice"
)
TWO_TRANSFORMS = (
    "fit_transform gives stored objects and transform gives queries, and only one of the two is moved "
    "(TargetEncoder is scikit-learn's precedent)"
)
EXCEPTIONS = {
    "MoveLabeled": {
        "check_transformer_general": TWO_TRANSFORMS,
        "check_transformer_data_not_an_array": TWO_TRANSFORMS,
    },
    "MoveQuery": {
        "check_transformer_general": TWO_TRANSFORMS,
        "check_transformer_data_not_an_array": TWO_TRANSFORMS,
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_COPIES,
    },
    "MoveLabeledClassifier": {"check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_COPIES},
    "MoveLabeledClassifierCV": {},
}


@parametrize_with_checks(
    [MoveLabeledClassifier(), MoveLabeledClassifierCV(cv=2), MoveLabeled(), MoveQuery()],
    expected_failed_checks=lambda estimator: EXCEPTIONS[type(estimator).__name__],
    xfail_strict=True,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The whole path


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
    some, many = (MoveLabeledClassifier(n_targets=n).fit(X, y) for n in (29, 10**9))
    np.testing.assert_allclose(to_numpy(many.W_), to_numpy(some.W_), atol=1e-12)
    few = asarray(reference.targets(*blobs[:2], 2))
    given = MoveLabeledClassifier(n_targets=5).fit(X, y, targets=few)
    np.testing.assert_allclose(to_numpy(given.W_), to_numpy(MoveLabeledClassifier(n_targets=2).fit(X, y).W_))
    for targets in (None, few):
        chosen = MoveLabeledClassifierCV(n_targets=(10**8, 10**9), cv=3).fit(X, y, targets=targets)
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


# Weights and precomputed neighbours


def test_weights_weigh_pairs(blobs, rng):
    X, y, _ = blobs
    w = rng.random(60) + 0.1
    index = reference.pairs(reference.targets(X, y, 2))
    centred = X - np.average(X, axis=0, weights=w)
    x, z = centred[[i for i, _ in index]], centred[[j for _, j in index]]
    oracle = Ridge(alpha=1.5, fit_intercept=False).fit(z, x, sample_weight=w[[i for i, _ in index]])
    model = MoveLabeledClassifier(alpha=1.5, n_targets=2).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.W_, oracle.coef_, atol=1e-10)


def test_weights_weigh_votes(blobs, rng):
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


@pytest.mark.parametrize("model", [MoveLabeledClassifier(n_targets=2), MoveLabeled(n_targets=2), MoveQuery()])
def test_precomputed_targets(blobs, model):
    X, y, _ = blobs
    targets = reference.targets(X, y, 2)
    np.testing.assert_allclose(
        clone(model).fit(X, y, targets=targets).W_, clone(model).fit(X, y).W_, atol=1e-12
    )
    other = np.where(targets >= 0, np.roll(np.arange(60), 1)[:, None], -1)
    assert not np.allclose(clone(model).fit(X, y, targets=other).W_, clone(model).fit(X, y).W_)


def test_precomputed_targets_in_cross_validation(blobs):
    X, y, _ = blobs
    found = MoveLabeledClassifierCV(n_targets=(1, 2)).fit(X, y, targets=reference.targets(X, y, 59))
    truth = MoveLabeledClassifierCV(n_targets=(1, 2)).fit(X, y)
    np.testing.assert_array_equal(found.scores_, truth.scores_)
    np.testing.assert_allclose(found.W_, truth.W_, atol=1e-12)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_precomputed_neighbours_of_any_library(asarray, blobs, weights):
    X, y, queries = (asarray(array) for array in blobs)
    model = MoveLabeledClassifier(5, weights=weights).fit(X, y)
    found = model.predict(queries, neighbors=model.kneighbors(queries))
    np.testing.assert_array_equal(to_numpy(found), to_numpy(model.predict(queries)))


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


# Explicit pairs


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_your_own(asarray, rng, weighted):
    queries, objects, w = rng.standard_normal((50, 4)) + 3, rng.standard_normal((50, 4)) - 1, rng.random(50)
    mean = np.average(objects, axis=0, weights=w if weighted else None)
    oracle = Ridge(alpha=0.3, fit_intercept=False)
    oracle.fit(objects - mean, queries - mean, sample_weight=w if weighted else None)
    model = MoveLabeled(0.3).fit_pairs(asarray(queries), asarray(objects), asarray(w) if weighted else None)
    np.testing.assert_allclose(to_numpy(model.W_), oracle.coef_, atol=1e-10)
    new = rng.standard_normal((5, 4))
    np.testing.assert_allclose(to_numpy(model.move(asarray(new))), reference.move(new, oracle.coef_, mean))
    np.testing.assert_array_equal(to_numpy(model.transform(asarray(new))), new)


def test_columns_of_pairs_must_have_the_same_names(rng):
    frame = pd.DataFrame(rng.standard_normal((20, 3)), columns=list("abc"))
    MoveLabeled().fit_pairs(frame, frame)
    with pytest.raises(ValueError, match="feature names"):
        MoveLabeled().fit_pairs(frame[list("cba")], frame)


def test_pairs_made_from_labels_learn_the_same_map(blobs):
    X, y, _ = blobs
    index = reference.pairs(reference.targets(X, y, 2))
    i, j = [i for i, _ in index], [j for _, j in index]
    from_pairs = MoveLabeled(2.0, center=False).fit_pairs(X[i], X[j])
    from_labels = MoveLabeled(2.0, n_targets=2, center=False).fit(X, y)
    np.testing.assert_allclose(from_pairs.W_, from_labels.W_, atol=1e-12)


# Cross-validation


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
    model = MoveLabeledClassifierCV(n_neighbors=[1]).fit(X, y)
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
        found = plain.fit(X, y, sample_weight=weights).best_score_
        fit, ask = mask & (weights > 0), ~mask & (weights > 0)
        assert found == single.fit(X[fit], y[fit]).score(X[ask], y[ask])


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


# Daily use


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_pipeline_equals_classifier(load):
    X, y = load(return_X_y=True)
    pipeline = make_pipeline(MoveLabeled(alpha=5.0, n_targets=2), KNeighborsClassifier(1, algorithm="brute"))
    pipeline.fit(X[::2], y[::2])
    model = MoveLabeledClassifier(1, 5.0, 2).fit(X[::2], y[::2])
    np.testing.assert_array_equal(pipeline.predict(X[1::2]), model.predict(X[1::2]))


def test_grid_search_and_cross_validation():
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), MoveLabeled(), KNeighborsClassifier())
    search = GridSearchCV(pipeline, {"movelabeled__alpha": [0.1, 10.0], "movelabeled__n_targets": [1, 3]})
    assert search.fit(X, y).best_score_ > 0.9
    assert cross_val_score(make_pipeline(StandardScaler(), MoveLabeledClassifierCV()), X, y).mean() > 0.9


def test_transformers_move_one_side_only(blobs):
    X, y, queries = blobs
    labeled, query = MoveLabeled(), MoveQuery()
    np.testing.assert_allclose(labeled.fit_transform(X, y), reference.move(X, labeled.W_, labeled.mean_))
    np.testing.assert_array_equal(labeled.transform(queries), queries)
    np.testing.assert_allclose(labeled.move(queries), reference.move(queries, labeled.W_, labeled.mean_))
    np.testing.assert_array_equal(query.fit_transform(X, y), X)
    np.testing.assert_allclose(query.transform(queries), reference.move(queries, query.W_, query.mean_))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("mover", [MoveLabeled, MoveQuery])
def test_data_frames_keep_their_names(frame, mover):
    values, y = load_wine(return_X_y=True)
    X = frame(dict(zip("abcdefghijklm", values.T, strict=True)))
    library = "pandas" if frame is pd.DataFrame else "polars"
    model = mover().set_output(transform=library)
    stored = model.fit_transform(X, y)
    assert isinstance(stored, frame)
    assert list(stored.columns) == list("abcdefghijklm")
    assert isinstance(model.transform(X), frame)
    np.testing.assert_allclose(stored.to_numpy(), mover().fit_transform(values, y))
    assert list(model.get_feature_names_out()) == list(model.feature_names_in_) == list("abcdefghijklm")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X[list("bacdefghijklm")])
    classifier = MoveLabeledClassifier().fit(X, y)
    np.testing.assert_array_equal(
        classifier.predict(X), MoveLabeledClassifier().fit(values, y).predict(values)
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("int32", "float64"),
        ("bool", "float64"),
    ],
)
def test_precision_is_kept_or_lifted(asarray, rng, given, kept):
    X, y = (10 * rng.standard_normal((60, 4))).astype(given), np.arange(60) % 3
    model = MoveLabeledClassifier().fit(asarray(X), asarray(y))
    assert kept in str(model.moved_.dtype)
    assert kept in str(model.W_.dtype)
    assert kept in str(model.kneighbors(asarray(X))[0].dtype)
    assert kept in str(model.predict_proba(asarray(X)).dtype)
    truth = MoveLabeledClassifier().fit(X.astype(float), y)
    assert np.mean(to_numpy(model.predict(asarray(X))) == truth.predict(X.astype(float))) > 0.95


def test_short_floats_are_lifted(rng):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    assert MoveLabeledClassifier().fit(X.astype(np.float16), y).moved_.dtype == np.float32
    for dtype in (torch.float16, torch.bfloat16):
        assert MoveLabeledClassifier().fit(torch.as_tensor(X).to(dtype), y).moved_.dtype == torch.float32


def test_frames_keep_their_precision(rng):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    for dtype in ("float16", "float32"):
        for frame in (pd.DataFrame(X.astype(dtype)), pl.DataFrame(X.astype("float32"))):
            assert MoveLabeledClassifier().fit(frame, y).moved_.dtype == np.float32
    assert MoveLabeledClassifier().fit(pl.DataFrame(X), y).moved_.dtype == np.float64


def test_weights_of_any_size(blobs):
    X, y, queries = blobs
    X32 = X.astype(np.float32)
    truth = MoveLabeledClassifier(3, 1.0).fit(X32, y).predict(queries)
    for size in (1e-50, 1e50):
        weighted = MoveLabeledClassifier(3, size).fit(X32, y, sample_weight=np.full(60, size))
        np.testing.assert_array_equal(weighted.predict(queries), truth)
        assert weighted.predict_proba(queries).dtype == np.float32


def test_score_same_as_scikit_learns(blobs):
    X, y, queries = blobs
    model, truth = MoveLabeledClassifier().fit(X, y), np.arange(25) % 4
    assert model.score(queries, truth[:, None]) == model.score(queries, truth)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(queries, truth[:-1])


def test_labels_of_any_kind(asarray, blobs):
    X, y, queries = blobs
    truth = MoveLabeledClassifier().fit(X, y).predict(queries)
    names = np.array(["cat", "dog", "fox", "owl"])
    model = MoveLabeledClassifier().fit(asarray(X), names[y])
    np.testing.assert_array_equal(model.predict(asarray(queries)), names[truth])
    assert list(model.classes_) == list(names)
    as_list = MoveLabeledClassifier().fit(X.tolist(), names[y].tolist())
    np.testing.assert_array_equal(as_list.predict(queries.tolist()), names[truth])
    short = MoveLabeledClassifier().fit(asarray(X), y.astype(np.uint16))
    np.testing.assert_array_equal(to_numpy(short.predict(asarray(queries))), truth)
    as_category = MoveLabeledClassifier().fit(X, pd.Series(names[y], dtype="category"))
    np.testing.assert_array_equal(as_category.predict(queries), names[truth])


def test_results_stay_in_the_library_of_the_input(asarray, blobs):
    X, y, queries = (asarray(array) for array in blobs)
    kind = type(X)
    model = MoveLabeledClassifier(weights="distance").fit(X, y, sample_weight=asarray(np.ones(60)))
    results = [model.predict(queries), model.predict_proba(queries), *model.kneighbors(queries)]
    results += [model.W_, model.mean_, model.moved_, model.classes_, MoveLabeled().fit_transform(X, y)]
    assert {type(result) for result in results} == {kind}
    assert {str(getattr(result, "device", "cpu")) for result in results} == {str(getattr(X, "device", "cpu"))}
    assert model.score(queries, asarray(np.zeros(25, dtype=int))) <= 1


def test_gradients_are_not_followed(blobs):
    X, y, queries = blobs
    tensor = torch.tensor(X, requires_grad=True)
    model = MoveLabeledClassifier().fit(tensor, torch.as_tensor(y))
    assert not model.moved_.requires_grad
    np.testing.assert_array_equal(
        model.predict(torch.as_tensor(queries)), MoveLabeledClassifier().fit(X, y).predict(queries)
    )


def test_score_weighs_queries(blobs):
    X, y, queries = blobs
    model = MoveLabeledClassifier().fit(X, y)
    truth = np.arange(25) % 4
    right, w = model.predict(queries) == truth, np.arange(25.0)
    assert model.score(queries, truth, w) == pytest.approx((right * w).sum() / w.sum())
