"""The nearest objects of the same class against plain loops, by both ways of comparing."""

import numpy as np
import pytest

from hubless.arrays import to_numpy
from hubless.neighbors import within
from hubless.neighbors.within import nearest_of_class
from tests import reference

LOOPS, PRODUCTS, BOTH = 1 << 40, 0, 60  # SMALL: all classes compared one by one, none, or the small ones


def loops(Z, codes, objects, object_codes, k):
    rows = []
    for z, code in zip(Z, codes, strict=True):
        of_class = np.flatnonzero(object_codes == code)
        near = []
        if len(of_class):
            near = of_class[reference.nearest([z], objects[of_class], k)[1][0]].tolist()
        rows.append(near + [-1] * (k - len(near)))
    return np.array(rows)


@pytest.mark.parametrize("small", [LOOPS, PRODUCTS, BOTH])
@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_as_loops(asarray, rng, monkeypatch, small, k, dtype):
    monkeypatch.setattr(within, "SMALL", small)
    Z, objects = rng.standard_normal((50, 3)).astype(dtype), rng.standard_normal((70, 3)).astype(dtype)
    codes, object_codes = rng.integers(0, 6, 50), rng.integers(0, 8, 70)
    object_codes[object_codes == 2] = 3  # class 2 has no objects; 6 and 7 have no queries
    arrays = (Z, codes, objects, object_codes)
    index = nearest_of_class(*map(asarray, arrays), k)
    assert type(index) is type(asarray(codes))
    np.testing.assert_array_equal(to_numpy(index), loops(*arrays, k))


@pytest.mark.parametrize("small", [LOOPS, PRODUCTS, BOTH])
def test_ties_go_to_the_lower_number(asarray, rng, monkeypatch, small):
    monkeypatch.setattr(within, "SMALL", small)
    Z, objects = rng.integers(0, 2, (40, 3)).astype(float), rng.integers(0, 2, (90, 3)).astype(float)
    arrays = Z, rng.integers(0, 4, 40), objects, rng.integers(0, 4, 90)
    np.testing.assert_array_equal(to_numpy(nearest_of_class(*map(asarray, arrays), 7)), loops(*arrays, 7))


@pytest.mark.parametrize("small", [LOOPS, PRODUCTS, BOTH])
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_that_overflow_or_vanish(rng, monkeypatch, small, scale):
    monkeypatch.setattr(within, "SMALL", small)
    arrays = (
        rng.standard_normal((40, 3)),
        rng.integers(0, 4, 40),
        rng.standard_normal((90, 3)),
        np.arange(90) % 4,
    )
    Z, codes, objects, object_codes = arrays
    index = nearest_of_class(Z * scale, codes, objects * scale, object_codes, 5)
    np.testing.assert_array_equal(index, loops(*arrays, 5))


def test_small_and_large_classes_meet_in_one_answer(rng, monkeypatch):
    """Classes on both sides of the bound, one of them exactly at it."""
    sizes = {0: 4, 1: 5, 2: 6}  # of queries and of objects: 16, 25 and 36 comparisons
    monkeypatch.setattr(within, "SMALL", 25)
    codes = rng.permutation(np.repeat([*sizes], [*sizes.values()]))
    Z, objects = rng.standard_normal((15, 2)), rng.standard_normal((15, 2))
    arrays = Z, codes, objects, rng.permutation(codes)
    np.testing.assert_array_equal(nearest_of_class(*arrays, 3), loops(*arrays, 3))


def test_no_class_in_common(asarray, rng):
    Z, objects = asarray(rng.standard_normal((3, 2))), asarray(rng.standard_normal((4, 2)))
    index = nearest_of_class(Z, asarray(np.array([0, 1, 0])), objects, asarray(np.full(4, 5)), 2)
    np.testing.assert_array_equal(to_numpy(index), np.full((3, 2), -1))


@pytest.mark.parametrize("held", [1, 7, 100])
def test_small_classes_are_compared_a_few_rows_at_a_time(rng, monkeypatch, held):
    monkeypatch.setattr(within, "HELD", held)
    compared, squared_distances = [], within.squared_distances

    def counted(Z, objects, row, column, scale):
        compared.append((len(row), len(np.unique(row))))
        return squared_distances(Z, objects, row, column, scale)

    monkeypatch.setattr(within, "squared_distances", counted)
    Z, objects = rng.standard_normal((50, 3)), rng.standard_normal((70, 3))
    arrays = Z, rng.choice([-1, 2, 7, 9], 50), objects, rng.choice([-1, 2, 7], 70)
    np.testing.assert_array_equal(nearest_of_class(*arrays, 4), loops(*arrays, 4))
    most = max(np.bincount(arrays[3] + 1))  # objects of a class
    assert len(compared) > 1
    assert all(pairs <= held + most or rows == 1 for pairs, rows in compared)
