"""What holds for every Mahalanobis learner: scikit-learn's checks, units, array libraries, bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from hubless.arrays import to_numpy
from hubless.baselines import ITML, LMNN, MMC, NCA, DMLeig

ORACLE = json.loads((Path(__file__).parent / "oracle" / "metric_learn.json").read_text())
LEARNERS = [LMNN(), ITML(random_state=0), DMLeig(), NCA(), MMC(0.8)]
SHORT = [
    *(LMNN(max_iter=20), ITML(max_iter=5, random_state=0), DMLeig(max_iter=20), NCA(max_iter=20)),
    *(MMC(random_state=0), MMC(0.5, diagonal=True, random_state=0)),
]


@parametrize_with_checks(SHORT)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_learners_do_not_depend_on_the_unit(learner, dtype):
    X, y = load_wine(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(dtype)
    accuracy = {}
    for scale in (1, 1e-25, 1e-8, 1e12):
        stored = learner.fit(X * dtype(scale), y).transform(X * dtype(scale)).astype(np.float64)
        accuracy[scale] = KNeighborsClassifier(5).fit(stored, y).score(stored, y)
    assert accuracy[1] > 0.97
    for scale, scaled in accuracy.items():
        assert scaled == pytest.approx(accuracy[1], abs=0.03), scale


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_identical_objects_are_refused(learner):
    with pytest.raises(ValueError, match="all 4 objects are identical"):
        learner.fit(np.ones((4, 2)), [0, 0, 1, 1])


@pytest.mark.parametrize("learner", [LMNN(400, max_iter=2), DMLeig(n_neighbors=400, max_iter=2)])
def test_more_neighbours_than_there_are(learner, three_classes):
    X, y = three_classes
    assert np.isfinite(learner.fit(X, y).components_).all()


@pytest.mark.parametrize("learner", SHORT, ids=lambda learner: type(learner).__name__)
def test_learners_follow_the_library_of_the_data(learner, asarray):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    in_numpy = learner.fit(X, y).history_
    in_library = learner.fit(asarray(X), asarray(y))
    assert in_library.history_[:3] == pytest.approx(in_numpy[:3], rel=1e-6)
    assert in_library.history_[-1] == pytest.approx(
        in_numpy[-1], rel=1e-2
    )  # hinges turn roundings into other paths
    moved = in_library.transform(asarray(X[:5]))
    assert type(moved) is type(asarray(X))
    L = to_numpy(in_library.components_)
    np.testing.assert_allclose(to_numpy(moved), X[:5] @ L.T, rtol=1e-6)
    np.testing.assert_allclose(to_numpy(in_library.get_mahalanobis_matrix()), L.T @ L, rtol=1e-6, atol=1e-9)


def test_learners_are_as_good_on_digits_as_metric_learn():
    X, y = load_digits(return_X_y=True)
    X, queries, y, truth = train_test_split(X / 16, y, test_size=0.5, random_state=0)
    theirs = ORACLE["digits"]
    assert KNeighborsClassifier(3).fit(X, y).score(queries, truth) == pytest.approx(theirs["euclidean"])
    for name, model in (("lmnn", LMNN()), ("itml", ITML(0.1, random_state=0))):
        stored = model.fit_transform(X, y)
        share = KNeighborsClassifier(3).fit(stored, y).score(model.transform(queries), truth)
        assert share >= theirs[name] - 0.004, name


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LMNN(push=1.0), "push must be between 0 and 1; got 1.0"),
        (LMNN(n_targets=0), "n_targets must be a whole number of at least 1; got 0"),
        (LMNN(max_iter=0), "max_iter"),
        (ITML(gamma=0.0), "gamma must be a finite number above 0; got 0.0"),
        (ITML(gamma=np.inf), "gamma must be a finite number above 0; got inf"),
        (ITML(n_constraints=-1), "n_constraints must be a whole number"),
        (DMLeig(mu=-1), "mu must be a finite number above 0; got -1"),
        (DMLeig(mu=np.inf), "mu must be a finite number"),
        (DMLeig(n_neighbors=0), "n_neighbors must be"),
        (NCA(0.0), "scale must be None or a number from 1e-10 to 1e10; got 0.0"),
        (NCA(np.nan), "scale must be None or a number from 1e-10 to 1e10; got nan"),
        (NCA(max_iter=0), "max_iter must be a whole number of at least 1; got 0"),
        (MMC(1.5), "keep must be a number from 0 to 1; got 1.5"),
        (MMC(diagonal="yes"), "diagonal must be one of False, True; got 'yes'"),
        (MMC(n_pairs=0), "n_pairs must be a whole number of at least 1; got 0"),
    ],
)
def test_invalid_parameters_are_refused(model, message, three_classes):
    with pytest.raises(ValueError, match=message):
        model.fit(*three_classes)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize("y", [[0, 0, 0], [0, 1, 2]], ids=["one class", "all alone"])
def test_labels_without_pairs_are_refused(learner, y):
    with pytest.raises(ValueError, match="at least two classes, one of them with two objects; got"):
        learner.fit(np.eye(3), y)
