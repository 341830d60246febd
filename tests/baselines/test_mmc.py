"""MMC against its definition as loops, another solver, its conditions of an optimum and metric-learn."""

import json
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits, load_iris, load_wine

from hubless.arrays import to_numpy
from hubless.baselines import MMC, mmc

ORACLE = json.loads((Path(__file__).parent / "oracle" / "metric_learn.json").read_text())["mmc"]
LOADERS = {"iris": load_iris, "wine": load_wine}


def mean_distances(X, y, M):
    """The mean squared distance within classes and the mean distance between classes, over all pairs."""
    within, between = [], []
    for i, j in combinations(range(len(X)), 2):
        squared = (X[i] - X[j]) @ M @ (X[i] - X[j])
        if y[i] == y[j]:
            within.append(squared)
        else:
            between.append(np.sqrt(max(squared, 0.0)))
    return np.mean(within), np.mean(between)


def separation(X, y, M):
    """The mean distance between classes if M is scaled to a mean squared distance of 1 within classes."""
    within, between = mean_distances(X, y, M)
    return between / np.sqrt(within)


@pytest.mark.parametrize("answer", ORACLE)
def test_as_far_apart_as_metric_learn_s(answer):
    theirs = ORACLE[answer]
    X, y = LOADERS[answer.split(",")[0]](return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[theirs["objects"]]
    y = y[theirs["objects"]]
    model = MMC(diagonal=theirs["diagonal"], max_iter=1000, tol=1e-7).fit(X, y)
    M, their_M = model.get_mahalanobis_matrix(), np.array(theirs["M"])
    ours, others = separation(X, y, M), separation(X, y, their_M)
    assert others <= ours + model.gap_ + 1e-4 * ours  # the ridge costs less than that
    assert others == pytest.approx(ours, rel=0.005)  # they allow the constraint an error of 1 %
    assert separation(X, y, np.eye(len(M))) < 0.6 * ours
    if not theirs["diagonal"]:  # their line search for weights has a wrong sign, and ends early
        assert np.sum(M * their_M) / np.linalg.norm(M) / np.linalg.norm(their_M) > 0.998


@pytest.mark.parametrize("keep", [0.0, 0.4])
@pytest.mark.parametrize("diagonal", [False, True])
def test_means_of_the_learned_distances_same_as_loops(three_classes, keep, diagonal):
    X, y = three_classes
    model = MMC(keep, diagonal).fit(X, y)
    M = model.get_mahalanobis_matrix()
    within, between = mean_distances(X, y, M)
    assert within == pytest.approx(1, abs=2e-5)  # but for the ridge
    assert between == pytest.approx(model.history_[-1], rel=1e-9)
    identity = np.eye(3) / mean_distances(X, y, np.eye(3))[0]
    assert np.linalg.eigvalsh(M - keep * identity).min() > -1e-5  # M keeps its share of the identity
    assert np.all((np.abs(M) < 1e-12) == (np.eye(3) == 0)) == diagonal


def objective(W, kept, c, N):
    return np.mean([np.sqrt(c * b + (1 - c) * w @ N @ w) for w, b in zip(W, kept, strict=True)])


@pytest.fixture
def problem(rng):
    """30 pairs in 3 dimensions and the squared distances that they keep."""
    W = rng.standard_normal((30, 3)) * [3.0, 2.5, 0.5]
    return W, np.sum(W**2, axis=1) / 20


@pytest.mark.parametrize("c", [0.0, 0.3])
@pytest.mark.parametrize("diagonal", [False, True])
def test_reaches_the_maximum_that_another_solver_finds(rng, problem, c, diagonal):
    def metric(flat):
        C = np.diag(flat) if diagonal else flat.reshape(3, 3)
        return C @ C.T / np.sum(C**2)

    def negative(flat):
        return -objective(*problem, c, metric(flat))

    size = 3 if diagonal else 9
    best = -min(minimize(negative, rng.standard_normal(size), tol=1e-12).fun for _ in range(3))
    B, values, gap = mmc.separate(*problem, c, diagonal, 2000, 1e-7)
    assert objective(*problem, c, B.T @ B) == pytest.approx(values[-1], rel=1e-12)
    assert values[-1] == pytest.approx(best, rel=1e-6)
    assert best <= values[-1] + gap + 1e-9  # the certificate
    assert np.trace(B.T @ B) == pytest.approx(1)
    assert all(after >= before - 1e-12 for before, after in pairwise(values))
    assert len(values) > 5


@pytest.mark.parametrize("c", [0.0, 0.3])
def test_no_feasible_direction_improves(rng, problem, c):
    B, values, _ = mmc.separate(*problem, c, False, 2000, 1e-9)
    N = B.T @ B
    worse = []
    for _ in range(50):
        root = rng.standard_normal((3, rng.integers(1, 4)))
        other = root @ root.T / np.sum(root**2)
        steps = [objective(*problem, c, (1 - a) * N + a * other) for a in (1e-3, 0.03, 1.0)]
        assert max(steps) <= values[-1] * (1 + 1e-9)
        worse.append(steps[-1])
    assert min(worse) < 0.9 * values[-1]


@pytest.mark.parametrize("c", [0.0, 0.3])
def test_certificate_holds_from_the_first_step(problem, c):
    short, long = (mmc.separate(*problem, c, False, steps, 0.0) for steps in (1, 300))
    assert short.values[-1] < long.values[-1] <= short.values[-1] + short.gap
    assert len(short.values) == 2


def test_similar_spread_same_as_loops(three_classes, asarray):
    X, y = three_classes
    similar = [X[i] - X[j] for i, j in combinations(range(40), 2) if y[i] == y[j]]
    expected = sum(np.outer(v, v) for v in similar) / len(similar)
    np.testing.assert_allclose(mmc.similar_spread(asarray(X), asarray(y)), expected, rtol=1e-10, atol=1e-12)


def test_all_pairs_same_as_loops(three_classes):
    _, y = three_classes
    expected = {(i, j) for i, j in combinations(range(40), 2) if y[i] != y[j]}
    a, b = mmc.pairs_between_classes(y, len(expected), None)
    assert len(a) == len(expected)
    assert {(min(pair), max(pair)) for pair in zip(a.tolist(), b.tolist(), strict=True)} == expected


def test_samples_all_pairs_equally_often():
    y = np.array([2, 0, 0, 1, 0, 2, 0])
    pairs = [(i, j) for i, j in combinations(range(7), 2) if y[i] != y[j]]
    counts = np.zeros((7, 7))
    for seed in range(700):
        a, b = mmc.pairs_between_classes(y, len(pairs) - 1, seed)
        np.add.at(counts, (np.minimum(a, b), np.maximum(a, b)), 1)
    drawn = np.array([counts[pair] for pair in pairs])
    assert drawn.sum() == counts.sum()  # no pair of one class
    np.testing.assert_allclose(drawn, 700 * (len(pairs) - 1) / len(pairs), rtol=0.2)


@pytest.mark.parametrize("minority", [1, 2, 50])
def test_samples_two_classes_however_rare_one_is(minority):
    y = (np.arange(1000) < minority).astype(int)
    a, b = mmc.pairs_between_classes(y, 80, 0)
    assert len(a) == 80
    assert (y[a] != y[b]).all()


def test_a_sample_is_nearly_as_good_as_all_pairs():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    every, again, some, same, other = (
        MMC(0.5, n_pairs=n_pairs, random_state=seed).fit(X, y).get_mahalanobis_matrix()
        for n_pairs, seed in ((50_000, 0), (50_000, 1), (5000, 0), (5000, 0), (5000, 1))
    )
    np.testing.assert_array_equal(every, again)  # nothing is drawn
    np.testing.assert_array_equal(some, same)
    assert np.abs(some - other).max() > 0
    assert separation(X, y, some) == pytest.approx(separation(X, y, every), rel=0.03)


def test_keeps_the_euclidean_metric_if_told():
    X, y = load_iris(return_X_y=True)
    M = MMC(1.0).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(4), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
def test_float32_finds_the_same_metric(diagonal):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    long, short = (MMC(0.3, diagonal).fit(X.astype(t), y) for t in (np.float64, np.float32))
    assert short.components_.dtype == np.float32
    assert short.history_[-1] == pytest.approx(long.history_[-1], rel=1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_identical_objects(dtype, diagonal, asarray):
    """Classes of one point each are kept apart; objects of two classes at one point do no harm."""
    X, y = np.repeat(np.eye(3), 5, axis=0).astype(dtype), np.repeat([0, 1, 2], 5)
    model = MMC(diagonal=diagonal).fit(asarray(X), asarray(y))
    moved = to_numpy(model.transform(asarray(np.eye(3, dtype=dtype))))
    assert np.isfinite(model.history_).all()
    apart = [np.linalg.norm(moved[i] - moved[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert min(apart) > 0.5 * max(apart) > 0
    rng = np.random.default_rng(0)
    mixed = MMC(diagonal=diagonal, n_pairs=100, random_state=0)
    mixed.fit(np.eye(40, dtype=dtype)[rng.integers(0, 40, 300)], rng.integers(0, 3, 300))
    assert np.isfinite(mixed.components_).all()
    twice = MMC(diagonal=diagonal).fit(np.tile(X, (2, 1)), np.repeat([0, 1], 15))  # each in both classes
    assert np.isfinite(twice.components_).all()


def test_where_all_drawn_pairs_are_of_identical_objects():
    X, y = np.zeros((1000, 2)), np.arange(1000) % 2
    X[0] = 1.0
    model = MMC(n_pairs=3, random_state=0).fit(X, y)
    assert model.history_ == [0.0]
    assert np.linalg.matrix_rank(model.components_) == 2


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_constant_columns_and_few_objects(rng, dtype, diagonal):
    X = np.concatenate([rng.standard_normal((12, 30)), np.full((12, 2), 7.0)], axis=1).astype(dtype)
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4])  # two objects are alone in their classes
    model = MMC(diagonal=diagonal).fit(X, y)
    moved = model.transform(X)
    assert np.isfinite(moved).all()
    assert all(after >= before * (1 - 1e-5) for before, after in pairwise(model.history_))
    distances = [np.linalg.norm(moved[i] - moved[j]) for i, j in combinations(range(12), 2) if y[i] != y[j]]
    assert np.mean(distances) == pytest.approx(model.history_[-1], rel=1e-3)
