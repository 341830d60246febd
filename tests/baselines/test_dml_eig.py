"""DML-eig against another solver, finite differences and loops."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from hubless.arrays import to_numpy
from hubless.baselines import DMLeig, dml_eig


def test_reaches_the_maximum_that_another_solver_finds(rng):
    V = rng.standard_normal((30, 3)) * [3.0, 1.0, 0.5]
    mu = 0.2

    def softmin(S):
        return -mu * np.log(np.mean(np.exp(-np.sum((V @ S) * V, axis=1) / mu)))

    def negative(flat):
        C = flat.reshape(3, 3)
        return -softmin(C @ C.T / np.trace(C @ C.T))

    best = -min(minimize(negative, rng.standard_normal(9), tol=1e-12).fun for _ in range(5))
    result = dml_eig.smoothed_eigenvalue(V, mu, 3000, 1e-5)
    assert softmin(result.S) == pytest.approx(result.values[-1])
    assert best - 1e-3 * abs(best) <= result.values[-1] <= best + 1e-7
    assert best <= result.values[-1] + result.gap + 1e-9  # the certificate
    assert np.trace(result.S) == pytest.approx(1)
    assert np.linalg.eigvalsh(result.S).min() > -1e-12
    assert all(b >= a - 1e-12 for a, b in pairwise(result.values))


def test_certificate_holds_from_the_first_step(rng):
    V = rng.standard_normal((50, 4))
    short, long = (dml_eig.smoothed_eigenvalue(V, 0.5, steps, 1e-9) for steps in (3, 2000))
    assert short.values[-1] < long.values[-1] <= short.values[-1] + short.gap


def test_gradient_is_the_slope(rng):
    V, mu = rng.standard_normal((20, 3)), 0.3
    root = rng.standard_normal((3, 3))
    S = root @ root.T

    def softmin(flat):
        distances = np.einsum("ij,jk,ik->i", V, flat.reshape(3, 3), V)
        return -mu * np.log(np.mean(np.exp(-distances / mu)))

    distances = np.einsum("ij,jk,ik->i", V, S, V)
    result = dml_eig.weighted_spread(V, dml_eig.softmin_weights(distances, mu))
    np.testing.assert_allclose(result.ravel(), approx_fprime(S.ravel(), softmin, 1e-7), atol=1e-5)


def test_pairs_same_as_loops(three_classes, asarray):
    X, y = three_classes
    rows, columns = map(to_numpy, dml_eig.dissimilar_pairs(asarray(X), asarray(y), 2))
    truth = set()
    for i in range(40):
        others = sorted((j for j in range(40) if y[j] != y[i]), key=lambda j: np.sum((X[i] - X[j]) ** 2))
        truth |= {(i, j) for j in others[:2]}
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == truth


def test_whitening_makes_similar_pairs_spread_equally(rng):
    similar = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 4))
    moved = similar @ dml_eig.whitening(similar, ridge=0.0)
    np.testing.assert_allclose(moved.T @ moved / 200, np.eye(4), atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_identical_objects(dtype):
    """Classes of one point each are kept apart; objects of two classes at one point do no harm."""
    X, y = np.repeat(np.eye(3), 5, axis=0).astype(dtype), np.repeat([0, 1, 2], 5)
    model = DMLeig().fit(X, y)
    moved = model.transform(np.eye(3, dtype=dtype))
    assert np.isfinite(model.history_).all()
    assert all(np.linalg.norm(moved[i] - moved[j]) > 0.1 for i, j in ((0, 1), (0, 2), (1, 2)))
    rng = np.random.default_rng(0)
    mixed = DMLeig().fit(np.eye(40, dtype=dtype)[rng.integers(0, 40, 300)], rng.integers(0, 3, 300))
    assert np.isfinite(mixed.components_).all()
