"""Queries unlike anything stored: the promised rate of false alarms, and what predict answers for them."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import roc_auc_score

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.calibration.familiarity import fisher_sums, learn_known, p_values
from hubless.movers import Chain, Shrink, Stay, Steer, Whiten, WithoutColumn


@pytest.fixture(scope="module")
def classes():
    """Ten classes, of which the last three are never stored."""
    X, y = make_blobs(2000, 20, centers=10, cluster_std=1.5, center_box=(-2, 2), random_state=3)
    return X, y, y >= 7


def test_p_values_and_sums_as_loops(rng):
    numbers, held_out = rng.standard_normal((8, 3)), rng.standard_normal((31, 3))
    numbers[0] = held_out[4]  # ties count
    numbers[1] = [-50.0, 50.0, 50.0]  # strange in one way only
    known = learn_known(held_out)
    fit, rest = held_out[::2], held_out[1::2]

    def log_p(value, column):  # of 16 numbers, the lowest twentieth is one number
        lowest, edge = sorted(column)[:2]
        if value < edge:
            return np.log(2 / 17) - (edge - value) / (edge - lowest)
        return np.log((1 + sum(v <= value for v in column)) / 17)

    def total(row):
        return sum(log_p(row[j], fit[:, j]) for j in range(3))

    np.testing.assert_allclose(fisher_sums(numbers, known.numbers), [total(row) for row in numbers])
    np.testing.assert_allclose(known.sums, sorted(total(row) for row in rest))
    shares = p_values(np.array([total(row) for row in numbers]), known.sums)
    naive = [(1 + sum(total(other) <= total(row) for other in rest)) / 16 for row in numbers]
    np.testing.assert_allclose(shares, naive)
    assert shares[1] == 1 / 16
    assert learn_known(held_out[:3]) is None


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3])
def test_false_alarms_are_as_rare_as_promised(rng, rate):
    # exchangeable numbers, dependent on each other; 4,000 repetitions have a standard error below 0.008
    alarms, n = [], 59
    for _ in range(4000):
        drawn = rng.standard_normal((n + 1, 1)) + 0.5 * rng.standard_normal((n + 1, 3))
        known = learn_known(np.round(drawn[:n], 1))  # with ties
        sums = fisher_sums(np.round(drawn[n:], 1), known.numbers)
        alarms.append(p_values(sums, known.sums)[0] <= rate)
    assert np.mean(alarms) <= rate + 0.01
    assert np.mean(alarms) >= rate / 2  # nor is it silent


MODELS = {
    "ridge": MoveLabeledClassifierCV(alphas=(1.0, 100.0)),
    "not moved": MoveLabeledClassifierCV(mover=[Stay()]),
    "with a column": MoveLabeledClassifierCV([1], mover=Chain([Whiten(), Shrink(0.4), Steer()])),
    "in place of a column": MoveLabeledClassifierCV(
        [1], mover=Chain([Whiten(), Shrink(0.4), Steer(), WithoutColumn(1.0)])
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_classes_that_are_not_stored_are_noticed(classes, name):
    X, y, is_left_out = classes
    stored, later = np.arange(2000) < 1200, np.arange(2000) >= 1200
    model = MODELS[name].fit(X[stored & ~is_left_out], y[stored & ~is_left_out])
    familiarity = model.familiarity(X[later])
    unknown = is_left_out[later]
    assert roc_auc_score(~unknown, familiarity) > 0.8
    assert (familiarity[~unknown] <= 0.1).mean() < 0.14  # 560 queries: two standard errors are .025
    answers = model.predict(X[later], reject=0.1)
    np.testing.assert_array_equal(answers == -1, familiarity <= 0.1)
    np.testing.assert_array_equal(answers[answers >= 0], model.predict(X[later])[answers >= 0])


def test_held_out_queries_of_ones_own_promise_it(classes):
    X, y, is_left_out = classes
    X, y = X[~is_left_out], y[~is_left_out]
    model = MoveLabeledClassifier(5).fit(X[:400], y[:400]).calibrate(X[400:900], y[400:900])
    assert abs((model.familiarity(X[900:]) <= 0.2).mean() - 0.2) < 0.08  # 250 and 500 queries


LABELS = {
    "numbers": (np.arange(3), None, -1),
    "numbers and a label": (np.arange(3), 99, 99),
    "floats": (np.array([0.5, 1.5, 2.5]).round() + 1.0, float("inf"), float("inf")),
    "texts": (np.array(["a", "b", "c"]), None, "unknown"),
    "texts and a label": (np.array(["a", "b", "c"]), "none of these", "none of these"),
    "objects": (np.array(["a", "b", "c"], dtype=object), None, "unknown"),
}


@pytest.mark.parametrize("name", LABELS)
def test_every_kind_of_label_has_an_unknown(asarray, rng, name):
    names, given, expected = LABELS[name]
    X, codes = rng.standard_normal((300, 3)), np.arange(300) % 3
    names = np.unique(names)
    codes = codes % len(names)
    X[np.arange(300), codes] += 8
    y = names[codes]
    y = asarray(y) if y.dtype.kind == "i" else y
    model = MoveLabeledClassifierCV([3], alphas=(1.0,)).fit(asarray(X), y)
    far = np.vstack([X[:20], 100 * rng.standard_normal((5, 3))])
    answers = model.predict(asarray(far), reject=0.02, unknown=given)
    plain = model.predict(asarray(far))
    is_unknown = to_numpy(model.familiarity(asarray(far))) <= 0.02
    assert is_unknown[20:].all()
    assert is_unknown[:20].sum() < 4
    expected_answers = [
        expected if off else answer for off, answer in zip(is_unknown, to_numpy(plain).tolist(), strict=True)
    ]
    assert to_numpy(answers).tolist() == expected_answers


def test_what_cannot_be_answered_is_refused(classes):
    X, y, _ = classes
    plain = MoveLabeledClassifier(3).fit(X[:200], y[:200])
    for call in (plain.familiarity, lambda X: plain.predict(X, reject=0.1)):
        with pytest.raises(ValueError, match=r"Call calibrate\(queries, classes\) first"):
            call(X[:3])
    model = MoveLabeledClassifierCV([3], alphas=(1.0,)).fit(X[:200], y[:200])
    near = model.kneighbors(X[:3])
    cases = [
        ({"reject": 0.001}, "with 100 held-out queries to compare with at least 0.0099; got 0.001"),
        ({"reject": 1.0}, "reject must be a rate of false alarms below 1"),
        ({"reject": "few"}, "got 'few'"),
        ({"unknown": -1}, "unknown=-1 needs reject"),
        ({"reject": 0.1, "unknown": 3}, "unknown=3 is one of the classes"),
        ({"reject": 0.1, "unknown": "none"}, "unknown must be of the type of the classes, int64"),
        ({"reject": 0.1, "neighbors": near}, "give X without neighbors"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            model.predict(X[:3], **options)
    with pytest.raises(ValueError, match="predict needs queries X"):
        model.predict(reject=0.1)
    with pytest.raises(ValueError, match=r"Use familiarity\(X\) <= reject"):
        MoveLabeledClassifierCV([3], alphas=(1.0,)).fit(X[:200], y[:200] > 4).predict(X, reject=0.1)
