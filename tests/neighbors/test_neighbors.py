"""Neighbour search against plain loops and scikit-learn, on every array library."""

from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import ThreadpoolController

from hubless.arrays import products, to_numpy
from hubless.neighbors import check_neighbors, differences, frame, nearest, ranking
from hubless.neighbors import search as module
from hubless.neighbors.precision import use_precision
from tests import reference
from tests.conftest import FOREIGN
from tests.neighbors.points import odd_points


@pytest.fixture(params=["float32", pytest.param("bfloat16", marks=pytest.mark.torch)], autouse=True)
def precision(request):
    """All searches of this file, with a first pass in each precision."""
    with use_precision(request.param):
        yield


def assert_exact(result, truth, tolerance=1e-12):
    distances, indices = (to_numpy(part) for part in result)
    np.testing.assert_array_equal(indices, truth[1])
    np.testing.assert_allclose(distances, truth[0], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 7), (50, 1), (300, 10), (300, 299)])
def test_same_as_loops(asarray, rng, dtype, n, k):
    objects, queries = rng.standard_normal((n, 5)).astype(dtype), rng.standard_normal((40, 5)).astype(dtype)
    result = nearest(asarray(queries), asarray(objects), k)
    assert_exact(result, reference.nearest(queries, objects, k), 1e-12 if dtype == np.float64 else 1e-6)
    assert result[0].dtype == asarray(objects).dtype


def test_ties_go_to_the_lower_index(asarray, rng):
    objects = rng.integers(0, 3, (200, 4)).astype(float)  # of 81 points: many duplicates and equal distances
    queries = rng.integers(0, 3, (60, 4)).astype(float)
    assert_exact(nearest(asarray(queries), asarray(objects), 17), reference.nearest(queries, objects, 17))


def test_ties_of_numbers_that_round(asarray, rng):
    objects = np.tile(rng.standard_normal((20, 33)).astype(np.float32), (9, 1))  # each object 9 times
    queries = rng.standard_normal((31, 33)).astype(np.float32)
    assert_exact(
        nearest(asarray(queries), asarray(objects), 12), reference.nearest(queries, objects, 12), 1e-6
    )


@pytest.mark.parametrize("k", [1, 4, 30])
def test_a_surplus_of_identical_objects_changes_nothing(asarray, rng, k):
    objects = rng.standard_normal((150, 5)).astype(np.float32)
    objects[rng.random(150) < 0.4] = 0.0
    objects[rng.random(150) < 0.2] = objects[7]
    objects[rng.random(150) < 0.2, 1:] = 1.0
    queries = np.concatenate([objects[::5], rng.standard_normal((20, 5)).astype(np.float32)])
    assert_exact(nearest(asarray(queries), asarray(objects), k), reference.nearest(queries, objects, k), 1e-6)
    result = nearest(asarray(objects), asarray(objects), k, exclude_self=True)
    assert_exact(result, reference.nearest(objects, objects, k, exclude_self=True), 1e-6)
    norms = asarray(np.sum(objects**2, axis=1))
    reachable = module._reachable(module.namespace(norms), asarray(objects), norms, k)
    assert reachable.shape[0] < 150  # a surplus is left out, or this test shows nothing


@pytest.mark.parametrize("library", FOREIGN)
def test_libraries_see_the_same_ties(library):
    X = load_iris().data  # decimal fractions: sums of squares in another order differ in the last bit
    options = {"return_distance": False, "exclude_self": True}
    indices = to_numpy(nearest(library(X), library(X), 10, **options))
    np.testing.assert_array_equal(indices, nearest(X, X, 10, **options))


def test_self_is_left_out_by_number_and_duplicates_stay(asarray):
    objects = np.array([[0.0], [0.0], [0.0], [5.0]])
    distances, indices = nearest(asarray(objects), asarray(objects), 2, exclude_self=True)
    np.testing.assert_array_equal(to_numpy(indices), [[1, 2], [0, 2], [0, 1], [0, 1]])
    np.testing.assert_array_equal(to_numpy(distances), [[0, 0], [0, 0], [0, 0], [5, 5]])


def test_exclude_self_same_as_loops(asarray, rng):
    objects = rng.integers(0, 4, (120, 3)).astype(float)
    result = nearest(asarray(objects), asarray(objects), 9, exclude_self=True)
    assert_exact(result, reference.nearest(objects, objects, 9, exclude_self=True))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that every loop runs several times on small data."""
    monkeypatch.setattr(module, "QUERY_ROWS", 7)
    monkeypatch.setattr(module, "OBJECT_ROWS", 50)
    monkeypatch.setattr(ranking, "BLOCK", 4)
    monkeypatch.setattr(differences, "PAIR_NUMBERS", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [1, 5, 60])
def test_blocks_of_any_size_give_the_same(asarray, rng, k):
    objects, queries = rng.integers(0, 5, (333, 3)).astype(float), rng.integers(0, 5, (40, 3)).astype(float)
    assert_exact(nearest(asarray(queries), asarray(objects), k), reference.nearest(queries, objects, k))


@pytest.mark.usefixtures("small_blocks")
def test_more_ties_than_fit_in_memory_are_taken_a_few_queries_at_a_time(asarray, rng, monkeypatch):
    monkeypatch.setattr(ranking, "MAX_CANDIDATES", 100)
    objects, queries = np.ones((333, 3)), rng.integers(0, 2, (20, 3)).astype(float)
    indices = nearest(asarray(queries), asarray(objects), 4, return_distance=False)
    np.testing.assert_array_equal(to_numpy(indices), np.tile(np.arange(4), (20, 1)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_data_far_away_tiny_or_huge(asarray, rng, dtype, shift, scale):
    points = ((rng.standard_normal((150, 8)) + shift) * scale).astype(dtype)
    objects, queries = points[:120], points[120:]
    distances, indices = nearest(asarray(queries), asarray(objects), 10)
    truth = reference.nearest(queries, objects, 10)
    np.testing.assert_array_equal(to_numpy(indices), truth[1])
    np.testing.assert_allclose(to_numpy(distances), truth[0], rtol=1e-6)


def test_scales_that_differ_by_sixty_orders(asarray, rng):
    objects = rng.standard_normal((50, 3)) * 10.0 ** rng.integers(-30, 30, (50, 1))
    queries = rng.standard_normal((20, 3)) * 10.0 ** rng.integers(-30, 30, (20, 1))
    for dtype in (np.float64, np.float32):
        q, z = queries.astype(dtype), objects.astype(dtype)
        indices = to_numpy(nearest(asarray(q), asarray(z), 50, return_distance=False))
        result = [[reference.distance(x, z[i]) for i in row] for x, row in zip(q, indices, strict=True)]
        # 1 and 1 + 1e-60 are one number in float64, so their order is free; the distances are not
        np.testing.assert_allclose(result, reference.nearest(q, z, 50)[0], rtol=1e-15)


@pytest.mark.parametrize("by_class", [False, True])
def test_same_as_scikit_learn_on_larger_data(asarray, rng, by_class):
    centres = 3 * rng.standard_normal((20, 30))
    y = rng.integers(0, 20, 5000)
    y = np.sort(y) if by_class else y
    objects = (centres[y] + rng.standard_normal((5000, 30))).astype(np.float32)
    queries = (centres[rng.integers(0, 20, 700)] + rng.standard_normal((700, 30))).astype(np.float32)
    oracle = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(objects.astype(float))
    truth = oracle.kneighbors(queries.astype(float))
    assert_exact(nearest(asarray(queries), asarray(objects), 10), truth, 1e-5)
    indices = nearest(asarray(queries), asarray(objects), 10, return_distance=False)
    np.testing.assert_array_equal(to_numpy(indices), truth[1])


@pytest.mark.torch
def test_torch_precision_set_by_its_newer_interface(rng):
    import torch

    objects, queries = (rng.standard_normal((n, 12)).astype(np.float32) for n in (400, 50))
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        result = nearest(torch.as_tensor(queries), torch.as_tensor(objects), 5)
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = before
    assert_exact(result, reference.nearest(queries, objects, 5), 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_that_vanish_beside_others(asarray, rng, dtype):
    size = 1e-22 if dtype == np.float32 else 1e-155
    objects, queries = (size * rng.standard_normal((n, 4)).astype(dtype) for n in (500, 40))
    objects[-2:] = [[1] * 4, [-1] * 4]
    result = nearest(asarray(queries.astype(dtype)), asarray(objects.astype(dtype)), 5, return_distance=False)
    np.testing.assert_array_equal(to_numpy(result), reference.nearest(queries, objects, 5)[1])


@pytest.mark.torch
@pytest.mark.parametrize("precision", ["high", "medium"])
def test_torch_with_short_products_is_still_exact(rng, precision):
    import torch

    objects, queries = (rng.standard_normal((n, 12)).astype(np.float32) for n in (400, 50))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        result = nearest(torch.as_tensor(queries), torch.as_tensor(objects), 5)
    finally:
        torch.set_float32_matmul_precision(before)
    assert_exact(result, reference.nearest(queries, objects, 5), 1e-6)


def test_threads_of_the_caller_leave_blas_as_it_was(rng):
    objects, queries = rng.standard_normal((2000, 8)), rng.standard_normal((1500, 8))
    blas = ThreadpoolController().select(user_api="blas")
    with blas.limit(limits=3):  # the workers of `make test` have one each, which no limit could change
        before = blas.info()
        alone = nearest(queries, objects, 3, return_distance=False)
        with ThreadPoolExecutor(4) as pool:
            result = list(pool.map(lambda _: nearest(queries, objects, 3, return_distance=False), range(24)))
        for indices in result:
            np.testing.assert_array_equal(indices, alone)
        assert {library["num_threads"] for library in before} == {3}
        assert blas.info() == before


def test_input_is_not_changed(rng):
    objects, queries = rng.standard_normal((50, 3)), rng.standard_normal((9, 3))
    for array in (objects, queries):
        array.flags.writeable = False
    nearest(queries, objects, 3)


def test_lists_frames_and_integers_are_accepted(rng):
    objects, queries = rng.integers(0, 9, (50, 3)), rng.integers(0, 9, (9, 3))
    truth = reference.nearest(queries, objects, 3)
    for convert in (np.asarray, np.ndarray.tolist, pd.DataFrame):
        assert_exact(nearest(convert(queries), convert(objects), 3), truth)


def test_mixed_precision_is_promoted(rng):
    objects, queries = rng.standard_normal((50, 3)).astype(np.float32), rng.standard_normal((9, 3))
    distances, _ = result = nearest(queries, objects, 3)
    assert distances.dtype == np.float64
    assert_exact(result, reference.nearest(queries, objects, 3))


@pytest.mark.parametrize(
    ("queries", "objects", "k", "options", "message"),
    [
        (
            np.ones((2, 3)),
            np.ones((4, 2)),
            1,
            {},
            r"same number of columns; got shapes \(2, 3\) and \(4, 2\)",
        ),
        (np.ones((2, 3)), np.ones((4, 3)), 5, {}, "cannot return 5 neighbours: there are 4 objects"),
        (np.ones((2, 3)), np.ones((4, 3)), 0, {}, "k must be a whole number of at least 1; got 0"),
        (np.full((2, 3), np.nan), np.ones((4, 3)), 1, {}, "Input queries contains NaN"),
        (np.ones((4, 3)), np.ones((4, 3)), 4, {"exclude_self": True}, "there are 3 objects"),
        (np.ones((2, 3)), np.ones((4, 3)), 1, {"exclude_self": True}, "got 2 queries and 4 objects"),
    ],
)
def test_impossible_searches_say_why(queries, objects, k, options, message):
    with pytest.raises(ValueError, match=message):
        nearest(queries, objects, k, **options)


@pytest.mark.parametrize("library", FOREIGN)
def test_libraries_are_not_mixed(library):
    with pytest.raises(
        TypeError, match=r"one array library; got .*numpy.ndarray on cpu.*Convert one side"
    ) as error:
        nearest(np.ones((2, 3)), library(np.ones((4, 3))), 1)
    assert type(library(np.ones(1))).__name__ in str(error.value)


def test_devices_are_not_mixed():
    here, there = (array_api_strict.Device(name) for name in ("CPU_DEVICE", "device1"))
    queries, objects = array_api_strict.ones((2, 3), device=here), array_api_strict.ones((4, 3), device=there)
    with pytest.raises(ValueError, match=r"one device; got .*CPU_DEVICE.* and .*device1"):
        nearest(queries, objects, 1)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (np.array([[0.5]]), "matrix of integers"),
        (np.array([0, 1]), "matrix of integers"),
        (np.array([[0, 9]]), "from 0 to 8, or -1 for none; got numbers from 0 to 9"),
        (np.array([[-2]]), "got numbers from -2 to -2"),
        ((np.ones((2, 1)), np.ones((2, 1), dtype=int)), "got a tuple of 2. Give the indices alone"),
    ],
)
def test_bad_precomputed_neighbours_say_why(indices, message):
    with pytest.raises(ValueError, match=message):
        check_neighbors(indices, 9)


SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_odd_points_in_odd_blocks(asarray, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    cores = 1 + 3 * (seed % 2)  # the workers of `make test` have one each
    monkeypatch.setattr(products, "blas_threads", lambda: cores)
    for name, high in {
        "QUERY_ROWS": 20,
        "OBJECT_ROWS": 60,
        "BLOCK": 9,
        "SAMPLE": 20,
        "PAIR_NUMBERS": 99,
    }.items():
        owner = next(room for room in (ranking, differences, frame, module) if hasattr(room, name))
        monkeypatch.setattr(owner, name, int(rng.integers(1, high)))
    monkeypatch.setattr(ranking, "MAX_CANDIDATES", int(rng.integers(5, 500)))
    n, d, dtype = rng.integers(1, 90), rng.integers(1, 7), rng.choice([np.float32, np.float64])
    objects, queries = odd_points(rng, n, d, dtype), odd_points(rng, 12, d, dtype)
    if seed % 3 == 0:
        queries = objects[rng.integers(0, n, 12)]
    k = int(rng.integers(1, n + 1))
    truth, _ = reference.nearest(queries, objects, k)
    distances, indices = (to_numpy(part) for part in nearest(asarray(queries), asarray(objects), k))
    np.testing.assert_allclose(distances, truth, rtol=1e-6)
    quick = to_numpy(nearest(asarray(queries), asarray(objects), k, return_distance=False))
    for rows in (indices, quick):  # the order of distances that float64 cannot tell apart is free
        assert all(len(set(row)) == k for row in rows)
        again = [
            [reference.distance(x, objects[i]) for i in row] for x, row in zip(queries, rows, strict=True)
        ]
        np.testing.assert_allclose(again, truth, rtol=1e-14)


def test_objects_of_very_different_norms(asarray, rng):
    """Their values err by very different amounts, so that a far one in the order may be the nearest."""
    for _ in range(40):
        x = rng.standard_normal(8)
        x /= np.linalg.norm(x)
        u = x + 0.3 * rng.standard_normal(8)
        near = [np.zeros(8), -1e-9 * x, x + u / np.linalg.norm(u)]
        far = 6 * rng.standard_normal((50, 8))
        objects = np.concatenate([near, far, [-near[2]], -far]).astype(np.float32)
        queries = x[None].astype(np.float32)
        assert_exact(
            nearest(asarray(queries), asarray(objects), 2), reference.nearest(queries, objects, 2), 1e-6
        )
