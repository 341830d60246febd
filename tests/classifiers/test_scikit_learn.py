"""Estimators in scikit-learn: its checks, pipelines, searches, data frames, and pairs instead of labels."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hubless import MoveLabeled, MoveLabeledClassifier, MoveLabeledClassifierCV, MoveQuery
from hubless.arrays import to_numpy
from tests import reference

FRAMES = ["pandas", pytest.param("polars", marks=pytest.mark.services)]

WEIGHTS_ARE_NOT_COPIES = (
    "a weight of 2 is not a second copy: a copy becomes the nearest same-class object, and so the target, of "
    "its original, while a weight only counts the pairs and the vote of one object twice"
)
TWO_TRANSFORMS = (
    "fit_transform returns stored objects and transform returns queries, and only one of the two is moved "
    "(as in scikit-learn's TargetEncoder, fit_transform is not fit and then transform)"
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
    [MoveLabeledClassifier(), MoveLabeledClassifierCV(alphas=(0.1, 10.0), cv=2), MoveLabeled(), MoveQuery()],
    expected_failed_checks=lambda estimator: EXCEPTIONS[type(estimator).__name__],
    xfail_strict=True,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([MoveLabeledClassifierCV(cv=2)])
def test_scikit_learn_checks_of_the_default_penalties(estimator, check):
    check(estimator)


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


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("mover", [MoveLabeled, MoveQuery])
def test_data_frames_keep_their_names(library, mover):
    values, y = load_wine(return_X_y=True)
    frame = import_module(library).DataFrame
    X = frame(dict(zip("abcdefghijklm", values.T, strict=True)))
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


@pytest.mark.parametrize("library", FRAMES)
def test_data_frames_keep_their_precision(library, rng):
    frame = import_module(library).DataFrame
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    for dtype in ("float16", "float32") if library == "pandas" else ("float32",):
        assert MoveLabeledClassifier().fit(frame(X.astype(dtype)), y).moved_.dtype == np.float32
    assert MoveLabeledClassifier().fit(frame(X), y).moved_.dtype == np.float64


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_instead_of_labels(asarray, rng, weighted):
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
