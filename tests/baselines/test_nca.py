"""NCA against its definition as loops, finite differences and scikit-learn."""

import tracemalloc
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from hubless.arrays import products, to_numpy
from hubless.baselines import NCA, nca
from tests import reference


def standardized(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_objective_same_as_loops_and_gradient_as_differences(three_classes, rng, asarray, size):
    X, y = three_classes
    L = size * rng.standard_normal((3, 3))
    value, gradient = nca.nca_objective(asarray(X), asarray(y), L)
    slope = approx_fprime(L.ravel(), lambda flat: reference.nca_objective(X, y, flat.reshape(3, 3)), 1e-6)
    assert isinstance(value, float)
    assert value == pytest.approx(reference.nca_objective(X, y, L), rel=1e-10)
    np.testing.assert_allclose(gradient.ravel(), slope, rtol=1e-4, atol=1e-4 * np.abs(slope).max())


def test_objective_of_three_objects_by_hand():
    """On a line at 0, 1 and 3, the last of another class: shares e⁻¹ : e⁻⁹ and e⁻¹ : e⁻⁴, and none."""
    value, _ = nca.nca_objective(np.array([[0.0], [1.0], [3.0]]), np.array([0, 0, 1]), np.eye(1))
    assert value == pytest.approx(1 / (1 + np.exp(-8)) + 1 / (1 + np.exp(-3)))


def test_gradient_keeps_its_digits_where_nearly_all_objects_are_right(rng):
    """There 1 − p_i is 1e-7 and smaller, and float32 has no more than that beside 1."""
    X = np.concatenate([rng.standard_normal((20, 3)) / 2, rng.standard_normal((20, 3)) / 2 + 3])
    y = np.repeat([0, 1], 20)
    value, exact = nca.nca_objective(X, y, 1.2 * np.eye(3))
    assert 40 - 1e-3 < value < 40
    _, short = nca.nca_objective(X.astype(np.float32), y, 1.2 * np.eye(3))
    np.testing.assert_allclose(short, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize("rows", [1, 7, 39, 40, 1000])
def test_blocks_of_any_size_give_the_same(three_classes, rng, asarray, rows, monkeypatch):
    X, y = three_classes
    L = rng.standard_normal((3, 3))
    whole = nca.nca_objective(X, y, L)
    monkeypatch.setattr(products, "blas_threads", lambda: 4)  # blocks on four threads
    for name in ("CPU_CELLS", "DEVICE_CELLS"):
        monkeypatch.setattr(nca, name, rows * 40)
    value, gradient = nca.nca_objective(asarray(X), asarray(y), L)
    assert value == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(gradient, whole[1], rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(nca, "CPU_CELLS", 1)  # never less than a row
    assert nca.nca_objective(X, y, L)[0] == pytest.approx(whole[0], rel=1e-12)


def test_no_matrix_of_all_pairs_is_held(rng, monkeypatch):
    X, y = rng.standard_normal((4000, 3)), rng.integers(0, 3, 4000)
    monkeypatch.setattr(nca, "CPU_CELLS", 1 << 17)
    tracemalloc.start()
    nca.nca_objective(X, y, np.eye(3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 4000**2 / 4  # a quarter of one such matrix


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_goes_as_high_as_scikit_learn(load):
    X, y = standardized(load)
    theirs = NeighborhoodComponentsAnalysis(init="identity", max_iter=500).fit(X, y).components_
    ours = NCA(None, max_iter=500).fit(X, y).components_
    assert reference.nca_objective(X, y, ours) >= reference.nca_objective(X, y, theirs) - 1e-3 * len(y)


@cache
def target_distance_of_wine():
    """The root mean squared distance of an object to its nearest other object of its class, by loops."""
    X, y = standardized(load_wine)
    near = reference.targets(X, y, 1)[:, 0]
    return np.sqrt(np.mean([reference.distance(x, X[j]) ** 2 for x, j in zip(X, near, strict=True)]))


@pytest.mark.parametrize("scale", [None, 0.3, 1.0, 3.0])
def test_history_rises_to_the_objective_of_loops(scale):
    X, y = standardized(load_wine)
    model = NCA(scale, max_iter=15).fit(X, y)
    r = target_distance_of_wine()
    start = np.eye(13) if scale is None else scale * np.eye(13) / r
    assert model.history_[0] == pytest.approx(reference.nca_objective(X, y, start), rel=1e-9)
    assert model.history_[-1] == pytest.approx(reference.nca_objective(X, y, model.components_), rel=1e-9)
    assert all(after > before for before, after in pairwise(model.history_))
    assert len(model.history_) == model.n_iter_ + 1 <= 16


def test_tol_ends_the_steps():
    X, y = standardized(load_iris)
    loose, tight = NCA(tol=1e-2).fit(X, y), NCA(tol=1e-6).fit(X, y)
    assert loose.n_iter_ < tight.n_iter_ <= 50
    assert loose.history_[-1] < tight.history_[-1]
    assert NCA(max_iter=3, tol=0.0).fit(X, y).n_iter_ == 3


def test_float32_near_float64(asarray):
    X, y = standardized(load_wine)
    for steps, rel in ((3, 1e-4), (30, 1e-2)):  # the paths part slowly
        long, short = (NCA(max_iter=steps).fit(asarray(X.astype(t)), y) for t in (np.float64, np.float32))
        assert to_numpy(short.components_).dtype == np.float32
        assert short.history_[-1] == pytest.approx(long.history_[-1], rel=rel)
        L = to_numpy(short.components_).astype(float)
        assert short.history_[-1] == pytest.approx(reference.nca_objective(X, y, L), rel=1e-4)


def test_float32_between_far_groups_is_counted_in_float64(rng):
    X = (rng.standard_normal((90, 4)) + np.repeat([0.0, 1e4], 45)[:, None]).astype(np.float32)
    y = np.tile([0, 1, 2], 30)
    model = NCA(max_iter=10).fit(X, y)
    truth = reference.nca_objective(X.astype(float), y, model.components_.astype(float))
    assert model.history_[-1] == pytest.approx(truth, rel=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_identical_objects(dtype, asarray):
    """Classes of one point each are right at once; objects of two classes at one point do no harm."""
    X, y = np.repeat(np.eye(3), 5, axis=0).astype(dtype), np.repeat([0, 1, 2], 5)
    model = NCA().fit(asarray(X), asarray(y))
    assert model.history_[0] > 0.6 * 15
    assert model.history_[-1] == pytest.approx(15, abs=0.1)
    rng = np.random.default_rng(0)
    mixed = NCA().fit(np.eye(40, dtype=dtype)[rng.integers(0, 40, 200)], rng.integers(0, 3, 200))
    assert np.isfinite(mixed.components_).all()
    twice = NCA().fit(np.tile(X, (2, 1)), np.repeat([0, 1], 15))  # every object in both classes
    assert np.isfinite(twice.components_).all()
    assert twice.history_[-1] >= twice.history_[0]


def test_objects_alone_in_their_class_are_others_to_all(three_classes):
    X, y = three_classes
    model = NCA().fit(X, y)
    assert model.history_[-1] <= 39
    assert model.history_[-1] == pytest.approx(reference.nca_objective(X, y, model.components_), rel=1e-8)
    few = NCA().fit(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), [0, 0, 1])
    assert np.isfinite(few.components_).all()
    assert few.history_[-1] == pytest.approx(2, abs=0.01)  # the third has nobody to be found by


@pytest.mark.parametrize("scale", [1e-10, 1e-6, 1e-2, 1e2, 1e6, 1e10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_scale_gives_a_finite_answer_no_worse_than_its_start(scale, dtype):
    X, y = standardized(load_iris)
    model = NCA(scale).fit(X.astype(dtype), y)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.history_).all()
    assert model.history_[-1] >= model.history_[0]
    assert model.history_[-1] > 130  # all directions, or the nearest neighbour alone, are not so bad here


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_better_than_euclidean_where_a_direction_is_noise(rng, scale):
    y = rng.integers(0, 3, 400)
    X = np.concatenate(
        [np.eye(3)[y] * 2 + rng.standard_normal((400, 3)) / 2, 5 * rng.standard_normal((400, 5))], 1
    )
    model = NCA(scale).fit(X[:200], y[:200])
    plain = KNeighborsClassifier(5).fit(X[:200], y[:200]).score(X[200:], y[200:])
    vote = KNeighborsClassifier(5).fit(model.transform(X[:200]), y[:200])
    assert vote.score(model.transform(X[200:]), y[200:]) > plain + 0.3
