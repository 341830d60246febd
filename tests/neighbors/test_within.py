"""Neighbours inside groups against plain loops: groups of all sizes, odd points, and stacks of all kinds."""

import numpy as np
import pytest

from hubless.arrays import products, to_numpy
from hubless.neighbors import ranking
from hubless.neighbors import within as module
from hubless.neighbors.precision import use_precision
from hubless.targets import same_class_targets
from tests import reference
from tests.neighbors.points import odd_points

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 40))]


@pytest.fixture(params=["float32", pytest.param("bfloat16", marks=pytest.mark.torch)], autouse=True)
def precision(request):
    """All searches of this file, with a first pass in each precision."""
    with use_precision(request.param):
        yield


@pytest.fixture(params=["processor", "accelerator", "accelerator, many steps"])
def kind(request, monkeypatch):
    """Stacks as on the processor, and as on an accelerator: larger, padded, of groups of unlike size."""
    if request.param != "processor":
        monkeypatch.setattr(module, "is_on_cpu", lambda array: False)
    if request.param == "accelerator, many steps":
        monkeypatch.setattr(module, "nearest_of_rows", lambda *arguments: None)
    return request.param


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("seed", SEEDS)
def test_odd_points_in_odd_stacks(asarray, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    cores = 1 + 3 * (seed % 2)  # the workers of `make test` have one each
    monkeypatch.setattr(products, "blas_threads", lambda: cores)
    for name, high in {"CELLS": 3000, "NUMBERS": 2000, "TINY": 12}.items():
        monkeypatch.setattr(module, name, int(rng.integers(1, high)))
    monkeypatch.setattr(ranking, "BLOCK", int(rng.integers(1, 9)))
    monkeypatch.setattr(ranking, "MAX_CANDIDATES", int(rng.integers(20, 2000)))
    n, d, dtype = rng.integers(2, 120), rng.integers(1, 7), rng.choice([np.float32, np.float64])
    X, y = odd_points(rng, n, d, dtype), rng.integers(0, rng.integers(1, 30), n)
    k = int(rng.integers(1, 8))
    targets, truth = to_numpy(same_class_targets(asarray(X), asarray(y), k)), reference.targets(X, y, k)
    np.testing.assert_array_equal(targets < 0, truth < 0)
    for i in range(n):  # the order of distances that float64 cannot tell apart is free
        near, expected = targets[i][targets[i] >= 0], truth[i][truth[i] >= 0]
        assert i not in near
        assert set(y[near]) <= {y[i]}
        assert_same_order(X[i], X, near, expected)


def assert_same_order(x, X, near, expected):
    """The same distances from x, rank by rank: the order of what float64 cannot tell apart is free."""
    assert len(set(near)) == len(near)
    distances = [[reference.distance(x, X[j]) for j in row] for row in (near, expected)]
    np.testing.assert_allclose(*distances, rtol=1e-14)


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_tiny_groups_and_one_huge_one(asarray, rng, monkeypatch, dtype):
    monkeypatch.setattr(module, "CELLS", 100**2)  # the huge one goes through the blocks of `search`
    sizes = rng.integers(1, 6, 200)
    y = rng.permutation(np.concatenate([np.repeat(np.arange(200), sizes), np.full(150, 200)]))
    X = rng.integers(0, 4, (len(y), 3)).astype(dtype)  # many ties
    targets = to_numpy(same_class_targets(asarray(X), asarray(y), 2))
    np.testing.assert_array_equal(targets, reference.targets(X, y, 2))


def test_stacks_cover_every_group_once_and_keep_to_their_limits(rng):
    sizes = rng.zipf(1.3, 3000) % 900
    for like in (0.5, 1.0):
        stacks = list(module._stacks(sizes, 16, (10**5, 10**5), like))
        seen = np.concatenate(stacks)
        assert sorted(seen) == np.flatnonzero(sizes).tolist()
        for stack in stacks:
            largest, smallest = sizes[stack].max(), sizes[stack].min()
            assert len(stack) == 1 or len(stack) * largest**2 <= 10**5
            assert len(stack) == 1 or len(stack) * largest * 16 <= 10**5
            assert largest <= module.TINY or smallest >= like * largest


def test_objects_of_very_different_norms(asarray, rng):
    for _ in range(30):
        x = rng.standard_normal(8)
        x /= np.linalg.norm(x)
        u = x + 0.3 * rng.standard_normal(8)
        near = [np.zeros(8), -1e-9 * x, x + u / np.linalg.norm(u), x]
        far = 6 * rng.standard_normal((20, 8))
        X = np.concatenate([near, far, [-near[2], -x], -far]).astype(np.float32)
        y = np.zeros(len(X), dtype=int)
        targets = to_numpy(same_class_targets(asarray(X), asarray(y), 1))
        np.testing.assert_array_equal(targets, reference.targets(X, y, 1))


def test_a_stack_with_too_many_candidates_is_halved_and_not_looped(rng, monkeypatch):
    """Groups with fewer others than targets keep all their cells."""
    X, y = rng.standard_normal((921, 2)), np.concatenate([np.repeat(np.arange(100), 9), np.full(21, 100)])
    monkeypatch.setattr(ranking, "MAX_CANDIDATES", 1000)
    monkeypatch.setattr(module, "_search_group", None)
    np.testing.assert_array_equal(same_class_targets(X, y, 20), reference.targets(X, y, 20))
