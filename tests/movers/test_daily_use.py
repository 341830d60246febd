"""Daily use of movers: scikit-learn's checks, pipelines, grid search, data frames, names of classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.movers import (
    MOVERS,
    Balance,
    Chain,
    Denoise,
    MoveLabeled,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Whiten,
    WithoutColumn,
)
from tests.tables import CASES, each

WEIGHTS_ARE_NOT_COPIES = (
    "a weight of 2 is not a second copy: a copy is one more neighbour, while a weight counts the vote of one "
    "neighbour twice"
)
TWO_TRANSFORMS = (
    "fit_transform gives stored objects and transform gives queries, and only one of the two is moved "
    "(TargetEncoder is scikit-learn's precedent)"
)
CHECKED = [
    *(kind() for kind in MOVERS.values()),
    *(Smooth(3, "distance"), MoveLabeled(toward="identity"), Chain([Whiten(), Shrink(), Balance(), Steer()])),
]
OF_CLASSIFIERS = [
    MoveLabeledClassifier(mover=Chain([Whiten(), Shrink()])),
    MoveLabeledClassifierCV(mover="auto", cv=2),
    MoveLabeledClassifierCV(mover=[Stay(), Shrink(0.3)], cv=2),
]


def exceptions(estimator):
    if isinstance(estimator, MoveLabeledClassifier):
        return {"check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_COPIES}
    if isinstance(estimator, Stay | WithoutColumn | MoveLabeledClassifierCV) or repr(estimator) == "Chain()":
        return {}
    return {
        "check_transformer_general": TWO_TRANSFORMS,
        "check_transformer_data_not_an_array": TWO_TRANSFORMS,
    }


@parametrize_with_checks(CHECKED, expected_failed_checks=exceptions, xfail_strict=True)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OF_CLASSIFIERS, expected_failed_checks=exceptions, xfail_strict=True)
def test_scikit_learn_checks_of_classifiers_with_movers(estimator, check, monkeypatch):
    few = [Stay(), MoveLabeled(), Chain([Whiten(), Shrink()])]
    monkeypatch.setattr("hubless.selection.race.simple_movers", lambda: few)  # all of them take their time
    monkeypatch.setattr("hubless.selection.race.EXTENDED", 1)
    check(estimator)


@each(CASES)
def test_copies_learn_the_same_and_fitting_changes_no_parameter(blobs, row):
    X, y, _ = blobs
    mover = row.new()
    before = repr(mover)
    stored = mover.fit_transform(X, y)
    again = clone(mover)
    assert repr(mover) == repr(again) == before
    np.testing.assert_array_equal(again.fit_transform(X, y), stored)
    np.testing.assert_array_equal(mover.fit(X * 3, y).fit_transform(X, y), stored)  # nothing is left over


@each(CASES)
def test_classifier_same_as_a_pipeline(blobs, row):
    X, y, queries = blobs
    mover = row.new()
    pipeline = make_pipeline(clone(mover), KNeighborsClassifier(1, algorithm="brute")).fit(X, y)
    model = MoveLabeledClassifier(1, mover=mover).fit(X, y)
    np.testing.assert_array_equal(model.predict(queries), pipeline.predict(queries))
    assert not hasattr(mover, "space_")  # the given mover is a pattern, and is not fitted
    np.testing.assert_array_equal(model.moved_, model.mover_.fit_transform(X, y))


def test_grid_search_over_parameters_of_movers():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), MoveLabeledClassifier(3, mover=Shrink()))
    grid = {"movelabeledclassifier__mover__step": [0.1, 0.9], "movelabeledclassifier__n_neighbors": [1, 5]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    for step, k, score in zip(
        search.cv_results_["param_movelabeledclassifier__mover__step"],
        search.cv_results_["param_movelabeledclassifier__n_neighbors"],
        search.cv_results_["mean_test_score"],
        strict=True,
    ):
        pipeline = make_pipeline(StandardScaler(), Shrink(step), KNeighborsClassifier(k, algorithm="brute"))
        assert cross_val_score(pipeline, X, y, cv=3).mean() == pytest.approx(score, abs=0.02)  # ties differ
    assert isinstance(search.best_estimator_[-1].mover_, Shrink)
    chains = {"chain__movers": [[Whiten(1.0), Shrink(0.5)], [Scale(0.5)], []]}
    search = GridSearchCV(make_pipeline(StandardScaler(), Chain(), KNeighborsClassifier()), chains, cv=3)
    assert search.fit(X, y).best_score_ > 0.9


def test_parameters_can_be_read_and_set():
    model = MoveLabeledClassifier(mover=Denoise())
    model.set_params(mover__power=2.0, mover__whiten=True)
    assert model.get_params()["mover__power"] == 2.0
    assert repr(model.mover) == "Denoise(power=2.0, whiten=True)"
    with pytest.raises(ValueError, match="Invalid parameter 'strength'"):
        Shrink().set_params(strength=1)


@pytest.mark.parametrize(("mover", "lifted"), [(Shrink(), False), (Chain([Whiten(), Balance()]), True)])
def test_data_frames_name_the_column(mover, lifted):
    values, y = load_wine(return_X_y=True)
    X = pd.DataFrame(values, columns=list("abcdefghijklm"))
    names = [*"abcdefghijklm", *["lift"] * lifted]
    mover = clone(mover).set_output(transform="pandas")
    stored = mover.fit_transform(X, y)
    assert list(stored.columns) == list(mover.transform(X).columns) == names
    assert list(mover.get_feature_names_out()) == names
    np.testing.assert_allclose(stored, clone(mover).set_output(transform="default").fit_transform(values, y))
    assert (mover.transform(X).to_numpy()[:, :13] == values).all()
    with pytest.raises(ValueError, match="feature names"):
        mover.transform(X[list("bacdefghijklm")])


def test_the_mover_of_a_classifier_can_be_used_on_its_own(blobs):
    X, y, _ = blobs
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = MoveLabeledClassifier(mover=Shrink()).fit(frame, y)
    np.testing.assert_allclose(model.mover_.move(frame, y), model.moved_)
    assert list(model.mover_.get_feature_names_out()) == list("abcdef")


NAMES = np.array(["ant", "bee", "cat", "dog"])


@each(CASES)
def test_classes_may_have_names(blobs, later, row):
    X, y, _ = blobs
    mover, truth = row.new(), row.new()
    np.testing.assert_array_equal(mover.fit_transform(X, NAMES[y]), truth.fit_transform(X, y))
    moved = mover.move(later[0], NAMES[later[1]].tolist())
    np.testing.assert_array_equal(moved, truth.move(*later))
    assert list(mover.classes_) == list(NAMES)


@pytest.mark.torch
@each(CASES)
def test_classes_of_tensors_may_have_names(blobs, later, row):
    torch = pytest.importorskip("torch")
    X, y, _ = blobs
    mover, truth = row.new(), row.new()
    stored = mover.fit_transform(torch.as_tensor(X), NAMES[y])
    np.testing.assert_allclose(to_numpy(stored), truth.fit_transform(X, y), atol=1e-7)
    moved = mover.move(torch.as_tensor(later[0]), NAMES[later[1]].tolist())
    np.testing.assert_allclose(to_numpy(moved), truth.move(*later), atol=1e-7)
    assert list(mover.classes_) == list(NAMES)


def test_attributes_of_the_paper_are_removed_with_its_mover(blobs):
    X, y, _ = blobs
    model = MoveLabeledClassifier().fit(X, y)
    assert hasattr(model, "W_")
    model.set_params(mover=Shrink()).fit(X, y)
    assert not {"W_", "mean_", "alpha_"} & set(vars(model))
