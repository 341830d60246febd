"""Probabilities learned on held-out queries: each formula beside plain loops, SciPy or scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits, make_blobs
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss as sklearn_log_loss

import hubless
from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.calibration import expected_calibration_error, log_loss, reliability
from hubless.calibration.evidence import Stored, class_shares, evidence_of
from hubless.calibration.learn_probability import FEWEST, fit_curve, fit_temperatures
from hubless.calibration.probability import make_likeliest
from hubless.movers import Chain, Shrink, Stay, Steer, Whiten
from hubless.movers.points import QuerySpace
from tests import reference


@pytest.fixture
def random_probabilities(rng):
    P = rng.dirichlet(np.ones(5), 300)
    return P, np.array([rng.choice(5, p=row) for row in P])


# --- measures ----------------------------------------------------------------------------------------------


def test_log_loss_as_scikit_learns(random_probabilities, rng):
    P, truth = random_probabilities
    w = rng.random(300)
    assert log_loss(P, truth) == pytest.approx(sklearn_log_loss(truth, P, labels=range(5)))
    assert log_loss(P, truth, w) == pytest.approx(
        sklearn_log_loss(truth, P, labels=range(5), sample_weight=w)
    )
    certain = np.eye(5)[truth]
    certain[0] = np.eye(5)[(truth[0] + 1) % 5]  # surely wrong
    assert log_loss(certain, truth) == pytest.approx(sklearn_log_loss(truth, certain, labels=range(5)))


def naive_calibration_error(P, truth, bins):
    error = 0.0
    for b in range(bins):
        inside = [
            i
            for i, row in enumerate(P)
            if b / bins < row.max() <= (b + 1) / bins or (b == 0 and row.max() == 0)
        ]
        if inside:
            confidence = sum(P[i].max() for i in inside) / len(inside)
            accuracy = sum(P[i].argmax() == truth[i] for i in inside) / len(inside)
            error += len(inside) / len(P) * abs(confidence - accuracy)
    return error


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_calibration_error_as_a_loop(random_probabilities, bins):
    P, truth = random_probabilities
    P[:3] = [[0.5, 0.5, 0, 0, 0], [0.75, 0.25, 0, 0, 0], [1, 0, 0, 0, 0]]  # on the bounds of bins
    assert expected_calibration_error(P, truth, bins) == pytest.approx(
        naive_calibration_error(P, truth, bins)
    )
    bars = reliability(P, truth, bins)
    assert bars.counts.sum() == 300
    assert bars.error == expected_calibration_error(P, truth, bins)


def test_measures_refuse_what_is_no_probability(random_probabilities):
    P, truth = random_probabilities
    for wrong in (truth[:-1], truth + 5, truth.astype(float)):
        with pytest.raises(ValueError, match="truth"):
            log_loss(P, wrong)
    with pytest.raises(ValueError, match="bins must be a whole number"):
        reliability(P, truth, 0)


# --- what is learned ----------------------------------------------------------------------------------------


def test_temperatures_as_scipy_finds_them(rng):
    F, true = rng.standard_normal((400, 6, 3)), np.array([2.0, -0.5, 0.7])
    weights = rng.random(400) + 0.5
    gumbel = rng.gumbel(size=(400, 6))
    truth = (F @ true + gumbel).argmax(axis=1)

    def naive(w):
        loss = 0.0
        for f, y, weight in zip(F, truth, weights, strict=True):
            powers = [np.exp(f[c] @ w) for c in range(6)]
            loss -= weight * np.log(powers[y] / sum(powers))
        return loss / weights.sum() + 0.01 * (w @ w) / 2 / 400

    found = fit_temperatures(F, truth, weights, np.full(3, 0.5))
    np.testing.assert_allclose(found, minimize(naive, np.zeros(3), method="BFGS").x, atol=1e-4)
    assert np.abs(found - true).max() < 0.4  # and near the truth


def test_curve_as_scikit_learns(rng):
    p = rng.random(200)
    is_right, w = rng.random(200) < p**2, rng.random(200) + 0.1
    curve = fit_curve(p, is_right, w, 0.01)
    oracle = IsotonicRegression(y_min=0.01, y_max=0.99, out_of_bounds="clip").fit(p, is_right, w)
    at = np.linspace(0, 1, 77)
    np.testing.assert_allclose(np.interp(at, curve.knots, curve.values), oracle.predict(at))


def test_the_winner_becomes_likeliest_by_the_smallest_change(asarray, rng):
    P, winners = rng.dirichlet(np.ones(4), 40), rng.integers(0, 4, 40)
    Q = to_numpy(make_likeliest(asarray(P), asarray(winners)))
    for p, q, w in zip(P, Q, winners, strict=True):
        assert q[w] == pytest.approx(q.max())
        assert q.sum() == pytest.approx(1)
        ahead = {"type": "ineq", "fun": lambda x, w=w: x[w] - x}
        whole = {"type": "eq", "fun": lambda x: x.sum() - 1}
        nearest = minimize(lambda x, p=p: ((x - p) ** 2).sum(), np.full(4, 0.25), constraints=[ahead, whole])
        np.testing.assert_allclose(q, nearest.x, atol=1e-4)


@pytest.mark.parametrize("has_column", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_as_loops(asarray, blobs, has_column, weighted, rng):
    X, y, queries = blobs
    mean, column = X.mean(axis=0), rng.random((60, 1)) * has_column
    moved = np.hstack([X, column]) if has_column else X
    w = rng.random(60) + 0.5 if weighted else None
    floor = -0.7 if has_column else None
    space = QuerySpace(asarray(mean), 1.0, floor)
    n_classes = 6  # two of them have no objects
    stored = Stored(asarray(moved), asarray(y), None if w is None else asarray(w), n_classes, space, 3)
    evidence = evidence_of(asarray(queries), stored).on_host()
    prior = to_numpy(class_shares(stored))
    weights = np.ones(60) if w is None else w
    for c in range(n_classes):
        assert prior[c] == pytest.approx((weights[y == c].sum() + 1) / (weights.sum() + n_classes))
    for i, query in enumerate(queries):
        x = np.append(query, 0.0) if has_column else query
        squares = [((x - z) ** 2).sum() for z in moved]
        near = [min(s for s, label in zip(squares, y, strict=True) if label == c) for c in range(4)]
        near += [max(near)] * 2
        np.testing.assert_allclose(evidence.gaps[i], np.array(near) - min(near), atol=1e-9)
        assert evidence.nearest[i] == pytest.approx(min(near) + (floor or 0.0))
        directions = [(query - mean) @ (z - mean) / np.linalg.norm(z - mean) for z in X]
        assert evidence.cosine[i] == pytest.approx(max(directions) / np.linalg.norm(query - mean))
        order = np.argsort(squares, kind="stable")
        for k, shares in ((3, evidence.votes[i]), (30, evidence.wide[i])):
            votes = np.bincount(y[order[:k]], weights=weights[order[:k]], minlength=n_classes)
            np.testing.assert_allclose(shares, (k * votes / votes.sum() + prior) / (k + 1), atol=1e-12)
        assert evidence.winners[i] == reference.vote([y[order[:3]].tolist()], [weights[order[:3]]])[0]


# --- classifiers -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hard():
    """Classes that overlap: held-out and new queries of which a fifth is answered wrongly."""
    X, y = make_blobs(1500, 30, centers=6, cluster_std=3.2, center_box=(-2, 2), random_state=1)
    return X[:900], y[:900], X[900:], y[900:]


MODELS = {
    "ridge": MoveLabeledClassifierCV(alphas=(1.0, 100.0)),
    "by distance": MoveLabeledClassifierCV((5,), alphas=(1.0, 100.0), weights="distance"),
    "not moved": MoveLabeledClassifierCV(mover=[Stay()]),
    "with a column": MoveLabeledClassifierCV([1], mover=Chain([Whiten(), Shrink(0.4), Steer()])),
}


@pytest.mark.parametrize("name", MODELS)
def test_calibrated_probabilities_are_better_than_shares(hard, name):
    X, y, queries, truth = hard
    model = MODELS[name].fit(X, y)
    P, shares = model.predict_proba(queries), MoveLabeledClassifier(model.n_neighbors_, mover=model.mover_)
    shares.weights = model.weights
    raw = shares.fit(X, y).predict_proba(queries)
    assert model.calibration_.method in ("shares", "temperature", "isotonic")
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert P.min() > 0
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(queries))
    assert log_loss(P, truth) < 0.9 * log_loss(raw, truth)
    assert expected_calibration_error(P, truth) < 0.06


def test_the_largest_probability_is_that_of_the_answer(asarray, rng):
    X = np.round(rng.standard_normal((240, 2)))  # copies, so that votes and distances tie
    y = rng.integers(0, 5, 240)
    for dtype in (np.float32, np.float64):
        for k in ([1], [2], [4]):
            model = MoveLabeledClassifierCV(k, mover=[Stay()]).fit(asarray(X.astype(dtype)), asarray(y))
            P = to_numpy(model.predict_proba(asarray(X[:80].astype(dtype))))
            answers = to_numpy(model.predict(asarray(X[:80].astype(dtype))))
            assert P.dtype == dtype
            np.testing.assert_array_equal(P.argmax(axis=1), answers)
            assert ((P.max(axis=1, keepdims=True) == P).sum(axis=1) == 1).all()


def test_precomputed_neighbours_give_calibrated_shares(hard):
    X, y, queries, truth = hard
    model = MoveLabeledClassifierCV([15], alphas=(1.0,)).fit(X, y)
    distances, indices = model.kneighbors(queries)
    P = model.predict_proba(neighbors=indices)
    np.testing.assert_array_equal(P, model.predict_proba(neighbors=(distances, indices)))
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(queries))
    raw = MoveLabeledClassifier(15, mover=model.mover_).fit(X, y).predict_proba(queries)
    assert log_loss(P, truth) < log_loss(raw, truth)


def test_calibrate_with_queries_of_ones_own(hard):
    X, y, queries, truth = hard
    model = MoveLabeledClassifier(1).fit(X, y)
    raw = model.predict_proba(queries[300:])
    assert set(np.unique(raw)) == {0.0, 1.0}  # one neighbour
    model.calibrate(queries[:300], truth[:300])
    P = model.predict_proba(queries[300:])
    assert log_loss(P, truth[300:]) < 0.3 * log_loss(raw, truth[300:])
    np.testing.assert_array_equal(P.argmax(axis=1), model.predict(queries[300:]))
    model.fit(X, y)  # another fit forgets it
    np.testing.assert_array_equal(model.predict_proba(queries[300:]), raw)
    with pytest.raises(ValueError, match="y has classes that MoveLabeledClassifier was not fitted with"):
        model.calibrate(queries, truth + 1)


def test_few_queries_give_smoothed_shares(rng):
    X, y = rng.standard_normal((12, 3)), np.arange(12) % 3
    model = MoveLabeledClassifierCV([2], alphas=(1.0,), cv=2).fit(X, y)
    assert model.calibration_.method == "shares"
    queries = rng.standard_normal((5, 3))
    near = model.kneighbors(queries, return_distance=False)
    for row, p in zip(near, model.predict_proba(queries), strict=True):
        smoothed = [(np.sum(y[row] == c) + (4 + 1) / (12 + 3)) / (2 + 1) for c in range(3)]
        np.testing.assert_allclose(p, smoothed)
    alone = MoveLabeledClassifier(1, mover=Stay()).fit(np.eye(4), np.arange(4))  # one object per class
    alone.calibrate(np.eye(4)[:1], [0])
    assert alone.calibration_.method == "shares"
    np.testing.assert_array_equal(alone.predict_proba(np.eye(4)).argmax(axis=1), np.arange(4))


def test_one_class(rng):
    model = MoveLabeledClassifierCV([1], alphas=(1.0,)).fit(rng.standard_normal((150, 2)), np.zeros(150))
    np.testing.assert_allclose(model.predict_proba(rng.standard_normal((3, 2))), 1)


def test_arrays_of_other_libraries_learn_the_same(asarray, hard):
    X, y, queries, _ = hard
    truth = MoveLabeledClassifierCV([5], alphas=(10.0,)).fit(X, y)
    model = MoveLabeledClassifierCV([5], alphas=(10.0,)).fit(asarray(X), asarray(y))
    assert type(model.predict_proba(asarray(queries))) is type(asarray(X))
    np.testing.assert_allclose(
        to_numpy(model.predict_proba(asarray(queries))), truth.predict_proba(queries), atol=1e-6
    )
    np.testing.assert_allclose(to_numpy(model.familiarity(asarray(queries))), truth.familiarity(queries))


@pytest.mark.parametrize("method", ["shares", "temperature", "isotonic"])
def test_saved_models_give_the_same_probabilities(asarray, hard, method, tmp_path):
    X, y, queries, truth = hard
    model = MoveLabeledClassifier(5).fit(asarray(X), asarray(y)).calibrate(asarray(queries), asarray(truth))
    learned = model.calibration_
    curve = fit_curve(np.linspace(0, 1, 50), np.arange(50) % 3 > 0, np.ones(50), 0.01)
    curves = curve if method == "isotonic" else (None, None)
    model.calibration_ = learned._replace(method=method, knots=curves[0], values=curves[1])
    hubless.save(model, tmp_path / "model")
    kind = str(getattr(asarray(X), "device", "cpu"))
    loaded = hubless.load(tmp_path / "model", kind if "cuda" in kind else "cpu")
    new = 0.97 * queries  # equal to none that were learned from, so that rounding breaks no tie
    later = asarray(new) if "cuda" in kind else new
    rtol = 0 if isinstance(asarray(X), np.ndarray) else 1e-12  # the same library gives the same bits
    for name in ("predict_proba", "familiarity"):
        answers = [to_numpy(getattr(loaded, name)(later)), to_numpy(getattr(model, name)(asarray(new)))]
        np.testing.assert_allclose(*answers, rtol=rtol)


def test_loaded_calibrations_are_checked(hard):
    X, y, queries, truth = hard
    good = MoveLabeledClassifier(5).fit(X, y).calibrate(queries, truth).calibration_
    good.check()
    falling = {"numbers": good.numbers[::-1].copy(), "sums": good.sums[::-1].copy()}
    wrong = [{"method": "guess"}, {"unit": 0.0}, {"doubt": 1.0}, {"coefficients": np.ones(3)}, {"sums": None}]
    wrong += [{"method": None}, {"unit": None}, {"method": "isotonic", "knots": None, "values": None}]
    for change in (*wrong, *({name: value} for name, value in falling.items())):
        with pytest.raises(ValueError, match="calibration_ is not what a calibration learns"):
            good._replace(**change).check()


def test_digits_by_the_default_choice():
    X, y = load_digits(return_X_y=True)
    model = MoveLabeledClassifierCV(alphas=(0.1, 10.0)).fit(X[:1000], y[:1000])
    assert model.calibration_.n_queries >= FEWEST
    assert log_loss(model.predict_proba(X[1000:]), y[1000:]) < 0.25
