"""The protocol of one cell, and that every method obeys it."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import reference
from hubless import MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.movers import Scale
from hubless.paper import experiment
from hubless.paper.experiment import METHODS, Split, choose, run
from hubless.selection import NEIGHBORS, folds


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X, queries, y, truth = train_test_split(X, y, test_size=0.3, random_state=0)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    return Split((X - mean) / scale, y, (queries - mean) / scale, truth)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_measured(wine, method):
    found = run(method, wine, seed=0)
    assert found.accuracy > 0.9
    assert abs(found.skewness) < 3
    assert found.n_neighbors in NEIGHBORS
    assert found.choice_seconds > 0
    assert found.fit_seconds > 0
    assert 0.9 < found.cv_accuracy <= 1
    assert set(found.setting) == set(METHODS[method].settings[0])
    assert all(isinstance(value, float) for value in found.setting.values())


def test_original_metric_same_as_loops(wine):
    found = run("original-metric", wine, seed=0)
    _, index = reference.nearest(wine.queries, wine.X, 10)
    votes = reference.vote(wine.y[index[:, : found.n_neighbors]])
    assert found.accuracy == pytest.approx(np.mean(np.array(votes) == wine.truth))
    assert found.skewness == pytest.approx(reference.skewness(reference.k_occurrence(index, len(wine.X))))


def test_choice_same_as_scikit_learn_s_grid_search(wine):
    """The same folds, every k and g: the best mean accuracy is the same, and belongs to our choice."""
    k, setting, accuracy = choose("scale", wine.X, wine.y, 0)
    search = GridSearchCV(
        make_pipeline(Scale(), KNeighborsClassifier()),
        {
            "scale__g": [s["g"] for s in METHODS["scale"].settings],
            "kneighborsclassifier__n_neighbors": [k for k in NEIGHBORS if k <= 99],
        },
        cv=folds(wine.y, np.arange(len(wine.y)), 5, 0),
    ).fit(wine.X, wine.y)
    settings = list(
        zip(*(search.cv_results_[f"param_{name}"].tolist() for name in search.param_grid), strict=True)
    )
    place = settings.index((setting["g"], k))
    # votes that tie may fall differently: scikit-learn's go to the lower class, ours to the nearer neighbour
    assert search.cv_results_["mean_test_score"][place] == pytest.approx(accuracy, abs=0.01)
    assert search.best_score_ == pytest.approx(accuracy, abs=0.01)


@pytest.mark.parametrize("seed", [0, 1])
def test_choice_same_as_that_of_the_classifier(wine, seed):
    found = run("move-labeled", wine, seed)
    model = MoveLabeledClassifierCV(random_state=seed).fit(wine.X, wine.y)
    assert found.n_neighbors == model.n_neighbors_
    assert found.setting["alpha"] == pytest.approx(model.alpha_)
    assert found.accuracy == pytest.approx(model.score(wine.queries, wine.truth))


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("nca", "lmnn")])
def test_array_libraries_agree(wine, method, asarray):
    there = Split(*(asarray(part) for part in wine))
    here, found = (
        experiment.fitted(method, METHODS[method].settings[-1], *split[:2], seed=0)[0]
        for split in (wine, there)
    )
    np.testing.assert_allclose(to_numpy(found), here, rtol=1e-6, atol=1e-6)


def test_large_training_parts_have_three_folds(wine, monkeypatch):
    cuts = []
    monkeypatch.setattr(experiment, "folds", lambda *a: cuts.append(a[2]) or folds(*a))
    choose("original-metric", wine.X, wine.y, 0)
    monkeypatch.setattr(experiment, "LARGE", 100)
    choose("original-metric", wine.X, wine.y, 0)
    assert cuts == [5, 3]


def test_unknown_method_is_refused(wine):
    with pytest.raises(ValueError, match=r"method must be one of original-metric, lmnn, .*; got 'magic'"):
        run("magic", wine)
