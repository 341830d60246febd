"""One object per class, two or three objects in all: plain k-NN, said in plain words, and no warning."""

import numpy as np
import pytest
from sklearn.base import clone

from hubless import MoveLabeledClassifierCV, compare, load, save
from hubless.arrays import to_numpy
from hubless.movers import Scale, Shrink, Stay
from tests import reference

RNG = np.random.default_rng(0)
X, QUERIES = RNG.standard_normal((30, 4)), RNG.standard_normal((50, 4))
ALONE = (
    "There is no second object of any class, so nothing could be compared. It answers as plain k-NN with 1 "
    "neighbour, and moves nothing. Give more objects per class to learn how to move them."
)
TOO_FEW = ALONE.replace(
    "There is no second object of any class",
    "There are too few objects to hold some out as queries and still have a pair to learn from",
)
EACH = pytest.mark.parametrize("mover", ["ridge", "auto"])


@EACH
@pytest.mark.parametrize(
    "labels",
    [np.arange(30), np.arange(30) - 7.0, np.array([f"class {i}" for i in range(30)]), [*range(30)]],
    ids=["int", "float", "str", "list"],
)
@pytest.mark.parametrize("settings", [{}, {"cv": 5}, {"weights": "distance"}, {"n_neighbors": [1, 3]}])
def test_one_object_per_class_answers_as_plain_neighbours(mover, labels, settings):
    model = MoveLabeledClassifierCV(mover=mover, **settings).fit(X, labels)
    _, nearest = reference.nearest(QUERIES, X, 1)
    np.testing.assert_array_equal(model.predict(QUERIES), np.array(labels)[nearest[:, 0]])
    places = np.searchsorted(np.sort(labels), np.array(labels)[nearest[:, 0]])
    np.testing.assert_array_equal(model.predict_proba(QUERIES), np.eye(30)[places])
    np.testing.assert_array_equal(model.moved_, X)
    assert model.explain() == ALONE
    assert (model.n_neighbors_, model.n_singletons_, type(model.mover_)) == (1, 30, Stay)
    assert np.isnan(model.best_score_)


@EACH
def test_one_object_per_class_in_every_library(asarray, mover):
    for dtype in (np.float32, np.float64):
        model = MoveLabeledClassifierCV(mover=mover).fit(asarray(X.astype(dtype)), asarray(np.arange(30)))
        _, nearest = reference.nearest(QUERIES, X, 1)
        result = model.predict(asarray(QUERIES.astype(dtype)))
        np.testing.assert_array_equal(to_numpy(result), nearest[:, 0])
        assert type(result) is type(model.moved_) is type(asarray(X))
        assert model.explain() == ALONE
        if mover == "ridge":
            np.testing.assert_array_equal(to_numpy(model.W_), np.eye(4, dtype=dtype))
            np.testing.assert_array_equal(to_numpy(model.mean_), np.zeros(4, dtype=dtype))
            assert model.W_.dtype == model.moved_.dtype


@EACH
@pytest.mark.parametrize("labels", [[False, True], ["no", "yes"], [0, 1]])
def test_two_objects_of_two_classes(mover, labels):
    model = MoveLabeledClassifierCV(mover=mover).fit(X[:2], labels)
    _, nearest = reference.nearest(QUERIES, X[:2], 1)
    np.testing.assert_array_equal(model.predict(QUERIES), np.array(labels)[nearest[:, 0]])
    assert model.explain() == ALONE


@EACH
def test_weights_of_zero_that_leave_one_object_per_class(asarray, mover):
    y, weights = np.arange(30) % 5, np.where(np.arange(30) < 5, 2.0, 0.0)
    model = MoveLabeledClassifierCV(mover=mover).fit(asarray(X), asarray(y), sample_weight=asarray(weights))
    _, nearest = reference.nearest(QUERIES, X[:5], 1)
    np.testing.assert_array_equal(to_numpy(model.predict(asarray(QUERIES))), nearest[:, 0])
    assert model.explain() == ALONE
    # one object in all
    alone = MoveLabeledClassifierCV(mover=mover).fit(X, y, sample_weight=np.arange(30) == 7)
    assert set(alone.predict(QUERIES)) == {2}


@EACH
def test_what_is_learned_where_nothing_is_compared(mover, tmp_path):
    model = MoveLabeledClassifierCV(mover=mover).fit(X, np.arange(30) % 3)
    model.fit(X, np.arange(30))  # after a fit that compared
    assert not {name for name in ("n_targets_", "grid_", "scores_") if hasattr(model, name)}
    table = {name: column[0] for name, column in model.cv_results_.items()}
    assert {name: value for name, value in table.items() if value == value} == {
        "mover": "Stay()",
        "n_neighbors": 1,
        "n_steps": 0,
        "n_queries": 0,
        "seconds": 0.0,
        "error": "",
    }
    assert hasattr(model, "W_") == (mover == "ridge")
    save(model, tmp_path / "model")
    same = load(tmp_path / "model")
    np.testing.assert_array_equal(same.predict(QUERIES), model.predict(QUERIES))
    assert np.isnan(same.best_score_)
    assert same.explain() == ALONE
    if mover == "ridge":
        np.testing.assert_array_equal(same.W_, np.eye(4))
        assert np.isnan(same.alpha_)


@EACH
def test_a_page_of_a_model_that_compared_nothing(mover):
    model = MoveLabeledClassifierCV(mover=mover).fit(X, np.arange(30))
    page = compare(model, X, np.arange(30), X, np.arange(30)).html()
    assert "There is no second object of any class" in page


@EACH
def test_numbers_that_were_given_are_kept_to(mover):
    y = np.arange(30)
    assert MoveLabeledClassifierCV([3, 5], mover=mover).fit(X, y).n_neighbors_ == 3
    with pytest.raises(ValueError, match="n_neighbors = 40, n_samples_fit = 30: ask for fewer"):
        MoveLabeledClassifierCV([40], mover=mover).fit(X, y)
    with pytest.raises(ValueError, match="cv must be from 2 to the number of labeled objects, 3; got 5"):
        MoveLabeledClassifierCV(cv=5, mover=mover).fit(X[:3], y[:3])


# --- two and three objects, and a few more ------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(
    "labels",
    [[0, 0], [0, 1], [0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1, 2], [0] * 9],
)
def test_default_folds_suit_few_objects(mover, labels):
    n = len(labels)
    model = MoveLabeledClassifierCV(mover=mover).fit(X[:n], labels)
    assert set(model.predict(QUERIES)) <= set(labels)
    assert ("nothing could be compared" in model.explain()) == bool(np.isnan(model.best_score_))
    if hasattr(model, "scores_"):
        assert model.scores_.shape[0] == n  # leave-one-out


@pytest.mark.parametrize("labels", [[0, 0], [0, 0, 1], [0, 0, *range(1, 9)]])
def test_no_pair_is_left_to_learn_from(labels):
    n = len(labels)
    model = MoveLabeledClassifierCV().fit(X[:n], labels)
    assert model.explain() == TOO_FEW
    _, nearest = reference.nearest(QUERIES, X[:n], 1)
    np.testing.assert_array_equal(model.predict(QUERIES), np.array(labels)[nearest[:, 0]])


def test_folds_that_were_asked_for_must_leave_a_pair():
    with pytest.raises(ValueError, match=r"no training part.*nothing to learn from: use more folds"):
        MoveLabeledClassifierCV(cv=2).fit(X[:4], [0, 0, 1, 1])


def test_given_movers_that_cannot_be_compared():
    words = MoveLabeledClassifierCV(mover=[Shrink(), Scale(0.5)]).fit(X, np.arange(30)).explain()
    assert words.startswith(
        "Shrink() with 1 neighbour: the simplest setting. None answers any of 30 held-out queries "
        "correctly, so nothing could be compared. 2 settings were tried in "
    )
    assert "most accurate" not in words


def test_the_default_is_a_parameter_like_others():
    model = MoveLabeledClassifierCV()
    assert model.get_params()["cv"] is None
    assert clone(model.set_params(cv=3)).cv == 3
    five, default = (MoveLabeledClassifierCV(cv=cv).fit(X, np.arange(30) % 3) for cv in (5, None))
    np.testing.assert_array_equal(five.scores_, default.scores_)
