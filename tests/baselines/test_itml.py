"""ITML against its conditions of an optimum and metric-learn."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from hubless.baselines import ITML, itml

ORACLE = json.loads((Path(__file__).parent / "oracle" / "metric_learn.json").read_text())


def constraints_of(answer):
    X = load_iris().data
    signs = np.array(answer["signs"], dtype=float)
    bounds = np.where(signs > 0, *answer["bounds"])
    return itml.Constraints(X[answer["a"]] - X[answer["b"]], signs, bounds)


@pytest.mark.parametrize("answer", ORACLE["itml"], ids=lambda answer: f"gamma={answer['gamma']}")
def test_same_metric_as_metric_learn(answer):
    result = itml.itml(constraints_of(answer), answer["gamma"], 20_000, 1e-9)
    np.testing.assert_allclose(result.M, answer["M"], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("answer", ORACLE["itml"], ids=lambda answer: f"gamma={answer['gamma']}")
def test_meets_the_conditions_of_optimality(answer):
    V, signs, bounds = constraints = constraints_of(answer)
    gamma = answer["gamma"]
    M, duals, slacks, changes = itml.itml(constraints, gamma, 20_000, 1e-9)
    assert changes[-1] < 1e-9
    # stationary: M⁻¹ = I + Σ δλ vvᵀ and γ/ξ = γ/ξ₀ − δλ, from the gradients of both divergences
    np.testing.assert_allclose(np.linalg.inv(M), np.eye(4) + (V.T * signs * duals) @ V, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gamma / slacks, gamma / bounds - signs * duals, rtol=1e-8)
    # feasible in both, and a constraint that pulls is met exactly
    distances = np.einsum("ij,jk,ik->i", V, M, V)
    assert duals.min() >= 0
    assert (signs * (distances - slacks)).max() < 1e-4
    np.testing.assert_allclose(duals * (distances - slacks), 0, atol=1e-5)
    assert (duals > 0).sum() > 3  # the problem is not an empty one


def test_samples_what_it_says(rng):
    X, y = load_iris(return_X_y=True)
    differences, signs, bounds = itml.sample_constraints(X, y, 400, 0)
    pairs = {tuple(np.round(X[i] - X[j], 9)): y[i] == y[j] for i, j in product(range(150), repeat=2)}
    assert 0.45 < np.mean(signs > 0) < 0.55
    assert len(signs) > 380  # a few pairs are of identical flowers
    ambiguous = 0
    for v, sign in zip(differences, signs, strict=True):
        ambiguous += pairs[tuple(np.round(v, 9))] != (sign > 0)  # two pairs may have one difference
    assert ambiguous < 10
    squared = [np.sum((a - b) ** 2) for a, b in product(X, X)]
    np.testing.assert_allclose(np.unique(bounds), np.percentile(squared, [5, 95]), atol=0.1, rtol=0.1)
    assert set(bounds[signs > 0]) == {bounds.min()}


@pytest.mark.parametrize("minority", [1, 2, 50])
def test_samples_two_classes_however_rare_one_is(rng, minority):
    X = rng.standard_normal((1000, 3))
    _, signs, _ = itml.sample_constraints(X, (np.arange(1000) < minority).astype(int), 80, 0)
    assert (signs < 0).sum() == 40
    assert 38 <= (signs > 0).sum() <= 40  # an object may be drawn as its own partner
    assert len(itml.sample_constraints(X, np.arange(1000) % 2, 1, 0).signs) == 1


def test_stays_near_the_identity_for_small_gamma():
    X, y = load_iris(return_X_y=True)
    far, near = (ITML(gamma, random_state=0).fit(X, y).get_mahalanobis_matrix() for gamma in (1.0, 1e-6))
    np.testing.assert_allclose(near, np.eye(4), atol=1e-3)
    assert np.abs(far - np.eye(4)).max() > 0.1
