"""Little data on an accelerator: the neighbours of a few large steps against plain loops."""

import numpy as np
import pytest

from hubless import nearest
from hubless.arrays import to_numpy
from hubless.arrays.library import Streamed
from hubless.neighbors import few_steps, knn, ranking, search
from hubless.neighbors.knn import vote
from tests import reference
from tests.neighbors.points import odd_points
from tests.neighbors.test_within import assert_same_order

SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 100))]


@pytest.fixture
def results(monkeypatch):
    """As on an accelerator; records what the few steps found."""
    found = []

    def record(*arguments):
        found.append(few_steps.search_in_few_steps(*arguments))
        return found[-1]

    for module in (few_steps, knn):
        monkeypatch.setattr(module, "is_on_cpu", lambda array: False)
    monkeypatch.setattr(search, "search_in_few_steps", record)
    monkeypatch.setattr(few_steps, "SPARE", 3)
    monkeypatch.setattr(few_steps, "BLOCK", 4)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_odd_points(asarray, seed, results):
    rng = np.random.default_rng(seed)
    n, d, dtype = int(rng.integers(8, 150)), rng.integers(1, 7), rng.choice([np.float32, np.float64])
    k = int(rng.integers(1, min(n - 4, 12)))
    objects = odd_points(rng, n, d, dtype)
    queries = np.concatenate([objects[::7], odd_points(rng, 5, d, dtype)])
    distances, index = map(to_numpy, nearest(asarray(queries), asarray(objects), k, precision="float32"))
    truth = reference.nearest(queries, objects, k)
    np.testing.assert_allclose(distances, truth[0], rtol=1e-6 if dtype == np.float32 else 1e-13)
    for i, query in enumerate(queries):
        assert_same_order(query, objects, index[i], truth[1][i])
    assert results


def test_plain_points_need_no_other_steps(asarray, results, rng):
    objects, queries = rng.standard_normal((300, 20)), rng.standard_normal((40, 20))
    index = nearest(asarray(queries), asarray(objects), 5, return_distance=False, precision="float32")
    np.testing.assert_array_equal(to_numpy(index), reference.nearest(queries, objects, 5)[1])
    assert results[0] is not None


def test_itself_is_left_out(asarray, results, rng):
    objects = rng.standard_normal((90, 6)).astype(np.float32)
    found = nearest(asarray(objects), asarray(objects), 5, exclude_self=True, precision="float32")
    truth = reference.nearest(objects, objects, 5, exclude_self=True)
    np.testing.assert_array_equal(to_numpy(found[1]), truth[1])
    np.testing.assert_allclose(to_numpy(found[0]), truth[0], rtol=1e-6)
    assert results[0] is not None


@pytest.mark.parametrize(
    "objects",
    [
        np.repeat(np.arange(6.0), 20)[:, None],  # more equal distances than places
        1 + 1e-9 * np.arange(120.0)[:, None].astype(np.float32),  # products cannot tell these apart
        np.where(np.arange(120) < 60, 1e25, 1.0)[:, None].astype(np.float32),  # squares overflow
    ],
    ids=["equal", "close", "huge"],
)
def test_what_these_steps_cannot_tell_is_searched_otherwise(asarray, results, objects):
    queries = objects[[0, 50, 119]]
    index = nearest(asarray(queries), asarray(objects), 8, return_distance=False, precision="float32")
    np.testing.assert_array_equal(to_numpy(index), reference.nearest(queries, objects, 8)[1])
    assert results == [None]


def test_large_searches_are_left_to_blocks(results, monkeypatch, rng):
    monkeypatch.setattr(few_steps, "CELLS", 1000)
    monkeypatch.setattr(ranking, "is_on_cpu", lambda array: False)
    objects, queries = rng.standard_normal((101, 3)), rng.standard_normal((10, 3))
    index = nearest(queries, objects, 5, return_distance=False)
    np.testing.assert_array_equal(index, reference.nearest(queries, objects, 5)[1])
    assert not results


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize("weighted", [False, True])
def test_votes_of_several_k_at_once(asarray, rng, weighted, monkeypatch):
    monkeypatch.setattr(knn, "DEVICE_CELLS", 100)  # a few queries at a time
    labels, ks = rng.integers(0, 4, (60, 9)), (1, 3, 4, 9)
    weights = rng.integers(1, 4, labels.shape) / 2.0 if weighted else None
    given = None if weights is None else asarray(weights)
    winners = vote(asarray(labels), given, ks=ks)
    for k, winner in zip(ks, winners, strict=True):
        for i, row in enumerate(labels):
            share = np.ones(k) if weights is None else weights[i, :k]
            votes = [share[row[:k] == label].sum() for label in row[:k]]
            assert to_numpy(winner)[i] == row[int(np.argmax(votes))]


def test_rows_that_are_still_on_the_host_need_other_steps(results):
    host = np.zeros((300, 4), dtype=np.float32)
    assert few_steps.fits_few_steps(host, host, 5)
    assert not few_steps.fits_few_steps(host, Streamed(host, host[:0], None), 5)
    assert not results
