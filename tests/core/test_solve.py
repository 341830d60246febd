"""The map against linear algebra written out, scikit-learn's Ridge, and the conditions of an optimum."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from hubless.arrays import to_numpy
from hubless.arrays.products import solve_positive
from hubless.movers.points import weighted_mean
from hubless.solve import (
    mean_eigenvalue,
    problem_of_pairs,
    problem_of_targets,
    ridge,
    ridge_path,
    ridge_path_of_pairs,
)
from tests import reference

ALPHAS = [0.0, 1e-3, 1.0, 1e3]


@pytest.fixture
def system(rng):
    X, Z = rng.standard_normal((40, 6)), rng.standard_normal((40, 6))
    return X.T @ Z, Z.T @ Z


@pytest.mark.parametrize("alpha", ALPHAS)
def test_same_as_the_inverse(asarray, system, alpha):
    A, K = system
    truth = A @ np.linalg.inv(K + alpha * np.eye(6))
    np.testing.assert_allclose(to_numpy(ridge(asarray(A), asarray(K), alpha)), truth, atol=1e-10)
    np.testing.assert_allclose(to_numpy(ridge_path(asarray(A), asarray(K)).at(alpha)), truth, atol=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS[1:])
def test_same_as_scikit_learns_ridge(rng, alpha):
    X, Z, w = rng.standard_normal((40, 6)), rng.standard_normal((40, 6)), rng.random(40)
    oracle = Ridge(alpha=alpha, fit_intercept=False).fit(Z, X, sample_weight=w)
    W = problem_of_pairs(X, Z, w, np.zeros(6)).solve(alpha)
    np.testing.assert_allclose(W, oracle.coef_, atol=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradient_of_eq_5_is_zero(blobs, alpha):
    X, y, _ = blobs
    X = X - X.mean(axis=0)
    result = reference.targets(X, y, 2)
    W = problem_of_targets(X, result, None, np.zeros(6)).solve(alpha)

    def objective(W):
        loss = sum(np.sum((X[i] - W @ X[j]) ** 2) for i, j in reference.pairs(result))
        return loss + alpha * np.sum(W**2)

    step = 1e-4
    for r in range(6):
        for c in range(6):
            E = np.zeros((6, 6))
            E[r, c] = step
            slope = (objective(W + E) - objective(W - E)) / (2 * step)
            assert abs(slope) < 1e-5 * objective(W)


def test_no_penalty_on_a_singular_matrix_gives_the_least_norm(asarray, rng):
    Z = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 6))  # rank 3 in 6 dimensions
    X = rng.standard_normal((40, 6))
    W = to_numpy(ridge(asarray(X.T @ Z), asarray(Z.T @ Z), 0.0))
    np.testing.assert_allclose(W, np.linalg.lstsq(Z, X, rcond=None)[0].T, atol=1e-8)


def test_a_penalty_below_rounding_has_no_effect(asarray, rng):
    Z = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 6))
    A, K = (asarray(M) for M in (rng.standard_normal((40, 6)).T @ Z, Z.T @ Z))
    least = to_numpy(ridge(A, K, 0.0))
    for alpha in (1e-18, 1e-16, 1e-14):
        np.testing.assert_allclose(to_numpy(ridge(A, K, alpha)), least, atol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("weighted", [False, True])
def test_fewer_pairs_than_dimensions(asarray, rng, alpha, weighted):
    X, Z, w = rng.standard_normal((5, 12)), rng.standard_normal((5, 12)), rng.random(5)
    problem = problem_of_pairs(
        asarray(X), asarray(Z), asarray(w) if weighted else None, asarray(np.zeros(12))
    )
    A, K = reference.moments(X, Z, w if weighted else None)
    assert problem.moments is None  # never a matrix of 12 × 12 to decompose
    np.testing.assert_allclose(to_numpy(problem.solve(alpha)), reference.solve(A, K, alpha), atol=1e-9)
    assert problem.mean_eigenvalue() == pytest.approx(np.trace(K) / 12)


def test_cost_with_few_pairs_is_not_cubic_in_the_dimension(rng):
    X, Z = rng.standard_normal((8, 4000)), rng.standard_normal((8, 4000))
    path = ridge_path_of_pairs(X, Z)
    assert path.values.shape == (8,)
    assert path.right.shape == (8, 4000)


def test_mean_eigenvalue(system):
    _, K = system
    assert mean_eigenvalue(K) == pytest.approx(np.linalg.eigvalsh(K).mean())


def test_weighted_mean(asarray, rng):
    X, w = rng.standard_normal((50, 3)), rng.random(50)
    np.testing.assert_allclose(
        to_numpy(weighted_mean(asarray(X), asarray(w))), np.average(X, axis=0, weights=w)
    )


def test_a_matrix_that_rounding_made_indefinite_is_solved_all_the_same(asarray, rng):
    M = np.diag([3.0, 2.0, -1e-9])
    B = rng.standard_normal((3, 2))
    result = to_numpy(solve_positive(asarray(M), asarray(B)))
    np.testing.assert_allclose(result, np.linalg.solve(M, B))
