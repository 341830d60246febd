"""The protocol of one cell, and that every method obeys it."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from hubless import MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.movers import Scale
from hubless.paper import experiment
from hubless.paper.experiment import METHODS, Split, choose, measure
from hubless.selection.folds import NEIGHBORS, folds
from tests import reference


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X, queries, y, truth = train_test_split(X, y, test_size=0.3, random_state=0)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    return Split((X - mean) / scale, y, (queries - mean) / scale, truth)


SLOW = {"dml-eig"}  # its cross-validation takes seconds


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in METHODS]
)
def test_every_method_is_measured(wine, method):
    result = measure(method, wine, seed=0)
    assert result["accuracy"] > 0.9
    assert abs(result["skewness"]) < 3
    assert result["choice_seconds"] > 0
    assert result["fit_seconds"] > 0
    assert 0.9 < result["cv_accuracy"] <= 1
    chosen = result["chosen"]
    assert chosen.pop("n_neighbors") in NEIGHBORS
    assert set(chosen) == set(METHODS[method].settings[0])
    assert all(isinstance(value, float) for value in chosen.values())


def test_original_metric_same_as_loops(wine):
    result = measure("original-metric", wine, seed=0)
    _, index = reference.nearest(wine.queries, wine.X, 10)
    votes = reference.vote(wine.y[index[:, : result["chosen"]["n_neighbors"]]])
    assert result["accuracy"] == pytest.approx(np.mean(np.array(votes) == wine.truth))
    skewness = reference.skewness(reference.k_occurrence(index, len(wine.X)))
    assert result["skewness"] == pytest.approx(skewness)


@pytest.mark.parametrize(
    "settings",
    [METHODS["scale"].settings[3::4], pytest.param(METHODS["scale"].settings, marks=pytest.mark.slow)],
    ids=["each fourth", "all"],
)
def test_choice_same_as_scikit_learn_s_grid_search(wine, monkeypatch, settings):
    """The same folds, every k and g: the best mean accuracy is the same, and belongs to our choice."""
    monkeypatch.setitem(METHODS, "scale", METHODS["scale"]._replace(settings=settings))
    k, setting, accuracy = choose("scale", wine.X, wine.y, 0)
    search = GridSearchCV(
        make_pipeline(Scale(), KNeighborsClassifier()),
        {
            "scale__g": [s["g"] for s in settings],
            "kneighborsclassifier__n_neighbors": [k for k in NEIGHBORS if k <= 99],
        },
        cv=folds(wine.y, np.arange(len(wine.y)), 5, 0),
    ).fit(wine.X, wine.y)
    tried = list(
        zip(*(search.cv_results_[f"param_{name}"].tolist() for name in search.param_grid), strict=True)
    )
    place = tried.index((setting["g"], k))
    # votes that tie may fall differently: scikit-learn's go to the lower class, ours to the nearer neighbour
    assert search.cv_results_["mean_test_score"][place] == pytest.approx(accuracy, abs=0.01)
    assert search.best_score_ == pytest.approx(accuracy, abs=0.01)


@pytest.mark.parametrize("seed", [0, 1])
def test_choice_same_as_that_of_the_classifier(wine, seed):
    result = measure("move-labeled", wine, seed)
    model = MoveLabeledClassifierCV(random_state=seed).fit(wine.X, wine.y)
    assert result["chosen"] == {"n_neighbors": model.n_neighbors_, "alpha": pytest.approx(model.alpha_)}
    assert result["accuracy"] == pytest.approx(model.score(wine.queries, wine.truth))


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("nca", "lmnn")])
def test_array_libraries_agree(wine, method, asarray):
    converted = Split(*(asarray(part) for part in wine))
    expected, result = (
        experiment.fitted(method, METHODS[method].settings[-1], *split[:2], seed=0)[0]
        for split in (wine, converted)
    )
    np.testing.assert_allclose(to_numpy(result), expected, rtol=1e-6, atol=1e-6)


def test_large_training_parts_have_three_folds(wine, monkeypatch):
    cuts = []
    monkeypatch.setattr(experiment, "folds", lambda *a: cuts.append(a[2]) or folds(*a))
    choose("original-metric", wine.X, wine.y, 0)
    monkeypatch.setattr(experiment, "LARGE", 100)
    choose("original-metric", wine.X, wine.y, 0)
    assert cuts == [5, 3]


def test_unknown_method_is_refused(wine):
    with pytest.raises(ValueError, match=r"method must be one of original-metric, lmnn, .*; got 'magic'"):
        measure("magic", wine, 0)
