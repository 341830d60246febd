"""The neighbours of objects among themselves, where each product serves two pairs, against plain loops."""

import numpy as np
import pytest

from hubless import nearest
from hubless.arrays import products, to_numpy
from hubless.neighbors import all_pairs, few_steps, kept_cells, ranking, search
from hubless.neighbors.full_pass import FullPass
from hubless.neighbors.precision import use_precision
from tests import reference
from tests.neighbors.points import odd_points
from tests.neighbors.test_within import assert_same_order

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))]


@pytest.fixture(params=["float32", pytest.param("bfloat16", marks=pytest.mark.torch)])
def precision(request):
    """The precision of the first pass; array libraries without bfloat16 have their own in both cases."""
    with use_precision(request.param):
        yield


@pytest.fixture
def blocks_of(monkeypatch):
    """Sets the number of objects in a block, so that small data has many; records how often all pairs ran."""
    ran = []

    def record(*arguments):
        ran.append(all_pairs.search_all_pairs(*arguments))
        return ran[-1]

    def blocks_of(size):
        for name, rows in {"QUERY_ROWS": size, "OBJECT_ROWS": size, "DEVICE_ROWS": (size, size)}.items():
            monkeypatch.setattr(search, name, rows)
        monkeypatch.setattr(search, "DEVICE_SHORT_ROWS", (size, size))
        monkeypatch.setattr(few_steps, "CELLS", 0)  # as for large data on an accelerator
        return ran

    monkeypatch.setattr(search, "search_all_pairs", record)
    return blocks_of


@pytest.mark.usefixtures("precision")
@pytest.mark.parametrize("seed", SEEDS)
def test_odd_points_in_blocks_of_odd_sizes(asarray, blocks_of, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, d, dtype = int(rng.integers(20, 120)), rng.integers(1, 7), rng.choice([np.float32, np.float64])
    blocks_of(int(rng.integers(n // 8, n)))
    cores = 1 + 3 * (seed % 2)
    monkeypatch.setattr(products, "blas_threads", lambda: cores)
    monkeypatch.setattr(ranking, "BLOCK", int(rng.integers(1, 9)))
    monkeypatch.setattr(kept_cells, "CROWDED", rng.choice([0, 2]))
    X, k = odd_points(rng, n, d, dtype), int(rng.integers(1, min(n, 12)))
    Z = asarray(X)
    distances, index = (to_numpy(part) for part in nearest(Z, Z, k, exclude_self=True))
    truth = reference.nearest(X, X, k, exclude_self=True)
    np.testing.assert_allclose(distances, truth[0], rtol=1e-6 if dtype == np.float32 else 1e-13)
    assert not (index == np.arange(n)[:, None]).any()
    for i in range(n):
        assert_same_order(X[i], X, index[i], truth[1][i])


@pytest.mark.usefixtures("precision")
def test_ties_and_duplicates(asarray, blocks_of, rng):
    ran = blocks_of(25)
    X = rng.integers(0, 4, (130, 4)).astype(np.float32)
    Z = asarray(X)
    index = nearest(Z, Z, 9, exclude_self=True, return_distance=False)
    truth = reference.nearest(X, X, 9, exclude_self=True)[1]
    np.testing.assert_array_equal(to_numpy(index), truth)
    assert ran[0] is not None


def test_each_product_is_computed_once(blocks_of, monkeypatch):
    shapes = []
    values = all_pairs.FullPairs.values

    def record(*arguments):
        shapes.append(values(*arguments).shape)
        return values(*arguments)

    monkeypatch.setattr(all_pairs.FullPairs, "values", record)
    monkeypatch.setattr(FullPass, "candidates", None)  # the way without pairs
    blocks_of(10)
    X = np.random.default_rng(0).standard_normal((100, 3))
    nearest(X, X, 2, exclude_self=True, precision="float32")
    computed = sum(rows * columns for rows, columns in shapes)
    assert 100 * 99 / 2 <= computed <= 0.6 * 100 * 100


def test_other_queries_are_compared_with_all_objects(blocks_of, rng):
    ran = blocks_of(10)
    X = rng.standard_normal((50, 3))
    moved = X + 1  # the neighbours of queries among moved objects, each without its own
    index = nearest(X, moved, 3, exclude_self=True, return_distance=False)
    np.testing.assert_array_equal(index, reference.nearest(X, moved, 3, exclude_self=True)[1])
    assert not ran


@pytest.mark.usefixtures("precision")
def test_too_many_candidates_are_searched_in_fewer_rows(blocks_of, monkeypatch):
    ran = blocks_of(20)
    monkeypatch.setattr(ranking, "MAX_CANDIDATES", 60)
    angle = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32).round(1)
    index = nearest(X, X, 6, exclude_self=True, return_distance=False)
    np.testing.assert_array_equal(index, reference.nearest(X, X, 6, exclude_self=True)[1])
    assert ran == [None]
