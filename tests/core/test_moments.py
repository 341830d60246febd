"""Moments against plain loops and against Eq. 6 as it is printed."""

import numpy as np
import pytest

from hubless import moments as module
from hubless.arrays import products, to_numpy
from hubless.moments import moments_of_pairs, moments_of_targets
from hubless.targets import same_class_targets
from tests import reference


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(products, "NUMBERS", 52)
    monkeypatch.setattr(products, "MIN_ROWS", 1)


def assert_moments(result, A, K):
    np.testing.assert_allclose(to_numpy(result.A), A, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(to_numpy(result.K), K, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_same_as_loops(asarray, rng, weighted):
    X, Z, w = rng.standard_normal((50, 4)), rng.standard_normal((50, 4)), rng.random(50)
    result = moments_of_pairs(asarray(X), asarray(Z), asarray(w) if weighted else None)
    assert_moments(result, *reference.moments(X, Z, w if weighted else None))
    assert result.weight == pytest.approx(w.sum() if weighted else 50)


@pytest.mark.parametrize("n_targets", [1, 4])
def test_targets_same_as_eq_6(asarray, blobs, n_targets):
    X, y, _ = blobs
    X = X - X.mean(axis=0)
    targets = same_class_targets(asarray(X), asarray(y), n_targets)
    result = moments_of_targets(asarray(X), targets)
    assert_moments(result, *reference.indicator_moments(X, reference.targets(X, y, n_targets)))


@pytest.mark.parametrize("reverse", [False, True])
def test_weighted_targets_about_a_centre_same_as_loops(asarray, blobs, rng, reverse):
    X, y, _ = blobs
    w, mean = rng.random(60), X.mean(axis=0)
    index = reference.pairs(reference.targets(X, y, 3))
    x, z = np.array([X[i] - mean for i, _ in index]), np.array([X[j] - mean for _, j in index])
    weights = np.array([w[i] for i, _ in index])
    targets = same_class_targets(asarray(X), asarray(y), 3)
    result = moments_of_targets(asarray(X), targets, asarray(w), asarray(mean), reverse=reverse)
    x, z = (z, x) if reverse else (x, z)
    assert_moments(result, *reference.moments(x, z, weights))
    np.testing.assert_allclose(to_numpy(result.x_sum), weights @ x, atol=1e-9)
    np.testing.assert_allclose(to_numpy(result.z_sum), weights @ z, atol=1e-9)


def test_another_origin(asarray, rng):
    X, Z, w = rng.standard_normal((50, 4)), rng.standard_normal((50, 4)), rng.random(50)
    first, second = rng.standard_normal(4), rng.standard_normal(4)
    result = moments_of_pairs(asarray(X), asarray(Z), asarray(w), asarray(first)).about(asarray(second))
    assert_moments(result, *reference.moments(X - second, Z - second, w))
    np.testing.assert_allclose(to_numpy(result.x_sum), w @ (X - second), atol=1e-12)


def test_float32_is_summed_in_float64(asarray, rng):
    X = (1000 + rng.standard_normal((4000, 2))).astype(np.float32)
    result = moments_of_pairs(asarray(X), asarray(X))
    np.testing.assert_allclose(to_numpy(result.K), X.astype(float).T @ X.astype(float), rtol=1e-14)


@pytest.mark.torch
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_fast_products_of_data_far_from_the_origin(rng, monkeypatch, offset):
    """What an accelerator does under TF32: products in float32, about a centre that float32 can hold."""
    import torch

    X = torch.as_tensor((rng.standard_normal((3000, 16)) + offset).astype(np.float32))
    targets = torch.as_tensor(rng.integers(0, 30, (3000, 1)))  # hubs, each the target of a hundred
    monkeypatch.setattr(products, "NUMBERS", 1 << 19)
    mean = X.double().mean(dim=0)
    truth = moments_of_targets(X, targets, None, mean)
    monkeypatch.setattr(module, "_is_fast", lambda x: True)
    result = moments_of_targets(X, targets, None, mean)
    for name in ("A", "K", "x_sum", "z_sum"):
        one, other = getattr(result, name), getattr(truth, name)
        assert float((one - other).abs().max()) < 1e-4 * float(truth.K.abs().max())
