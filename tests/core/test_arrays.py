"""What every array library can do here, against NumPy and plain loops."""

import numpy as np
import pytest

from hubless import arrays
from hubless.arrays import products, to_numpy
from tests.conftest import FOREIGN

# The library of an array


@pytest.mark.parametrize("library", FOREIGN)
def test_arrays_of_other_libraries_are_foreign(library):
    array = library(np.ones((2, 3)))
    assert arrays.is_foreign(array)
    assert not any(map(arrays.is_foreign, (np.ones(2), [1.0], 1.0, None)))
    assert not arrays.same_place(array, np.ones(2))
    assert arrays.same_place(array, library(np.zeros(1)))


def test_conversion_from_numpy_and_back(asarray, rng):
    host = rng.standard_normal((5, 3))
    for view in (host, host[::2], host.T, np.broadcast_to(host[0], (4, 3))):  # torch takes no other strides
        there = arrays.convert(view, asarray(np.ones(1)))
        assert type(there) is type(asarray(host))
        np.testing.assert_array_equal(to_numpy(there), view)
    there = asarray(host)
    assert arrays.convert(there, there) is there


def test_precision_to_compute_in(asarray):
    for given, kept in {
        "float32": "float32",
        "float64": "float64",
        "int32": "float64",
        "bool": "float64",
    }.items():
        assert arrays.float_type(np.dtype(given)) == np.dtype(kept)
        assert kept in str(arrays.lift(asarray(np.ones(3, dtype=given))).dtype)
    assert arrays.float_type(np.dtype("float16")) == np.float32


# Steps that the standard lacks


def test_kth_smallest(asarray, rng):
    values = rng.integers(0, 9, (20, 7)).astype(float)
    for k in (1, 4, 7):
        expected = [sorted(row)[k - 1] for row in values.tolist()]
        np.testing.assert_array_equal(to_numpy(arrays.kth_smallest(asarray(values), k)), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 32])
def test_smallest_of_blocks(asarray, rng, size, monkeypatch):
    monkeypatch.setattr(arrays.cells, "NUMBERS", 50)  # the rows are halved in several parts
    values = rng.integers(-99, 99, (9, size, 4)).astype(np.float32)
    values[3, size // 2, 1] = np.nan  # a value that overflowed
    expected = [[np.nan if (i, j) == (3, 1) else min(values[i, :, j]) for j in range(4)] for i in range(9)]
    np.testing.assert_array_equal(to_numpy(arrays.smallest_of_blocks(asarray(values))), expected)


def test_true_positions(asarray, rng):
    mask = rng.random((9, 5)) < 0.4
    row, column = map(to_numpy, arrays.true_positions(asarray(mask)))
    assert list(zip(row, column, strict=True)) == [(i, j) for i in range(9) for j in range(5) if mask[i, j]]


def test_picked_blocks(asarray, rng):
    view, row, block = rng.random((6, 3, 4)), rng.integers(0, 6, 8), rng.integers(0, 4, 8)
    picked = to_numpy(arrays.pick_blocks(asarray(view), asarray(row), asarray(block)))
    np.testing.assert_array_equal(picked, [view[i, :, j] for i, j in zip(row, block, strict=True)])


def test_put_leaves_the_original_alone(asarray):
    array = asarray(np.arange(5.0))
    changed = arrays.put(array, asarray(np.array([3, 0])), asarray(np.array([9.0, 8.0])))
    np.testing.assert_array_equal(to_numpy(changed), [8, 1, 2, 9, 4])
    np.testing.assert_array_equal(to_numpy(array), np.arange(5.0))


def test_rows(asarray, rng):
    X = rng.random((7, 2))
    np.testing.assert_array_equal(to_numpy(arrays.rows(asarray(X), slice(2, 5))), X[2:5])
    for taken in (arrays.take_rows, arrays.subset):
        np.testing.assert_array_equal(to_numpy(taken(asarray(X), asarray(np.array([6, 0, 0])))), X[[6, 0, 0]])
    blocks = [(part, to_numpy(block)) for part, block in arrays.row_blocks(asarray(X), 3)]
    assert [part for part, _ in blocks] == [slice(0, 3), slice(3, 6), slice(6, 7)]
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), X)


@pytest.mark.parametrize("weighted", [False, True])
def test_counts(asarray, rng, weighted):
    index, weights = rng.integers(-1, 4, 50), rng.random(50)
    given = asarray(weights) if weighted else None
    expected = [
        sum(w if weighted else 1 for i, w in zip(index, weights, strict=True) if i == j) for j in range(6)
    ]
    np.testing.assert_allclose(to_numpy(arrays.count(asarray(index), 6, given)), expected)
    kept = index >= 0
    given = asarray(weights[kept]) if weighted else None
    np.testing.assert_allclose(to_numpy(arrays.tally(asarray(index[kept]), 6, given)), expected)


# Products


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(products, "MIN_ROWS", 3)
    monkeypatch.setattr(products, "NUMBERS", 1)


@pytest.mark.usefixtures("small_blocks")
def test_affine_maps(asarray, rng):
    X, W, b, m = rng.random((10, 4)), rng.random((3, 4)), rng.random(3), rng.random(4)
    there = [asarray(array) for array in (X, W, b, m)]
    np.testing.assert_allclose(to_numpy(products.affine(*there[:3])), [W @ x + b for x in X])
    np.testing.assert_allclose(to_numpy(products.affine_rows(*there)), [W @ (x - m) + b for x in X])
    np.testing.assert_array_equal(to_numpy(there[0]), X)  # the input is not changed


def test_grams(asarray, rng):
    X, groups, b = rng.random((10, 4)), rng.random((3, 5, 4)), rng.random((3, 5))
    np.testing.assert_allclose(to_numpy(products.gram(asarray(X))), sum(np.outer(x, x) for x in X))
    result = to_numpy(products.minus_gram(asarray(groups), asarray(b)))
    for g, i, j in np.ndindex(3, 5, 5):
        assert result[g, i, j] == pytest.approx(b[g, j] - groups[g, i] @ groups[g, j])


@pytest.mark.torch
def test_symmetric_products_of_devices(rng, monkeypatch):
    """What an accelerator computes half or three quarters of, and copies the rest."""
    import torch

    X, groups = torch.as_tensor(rng.random((9, 1030))), torch.as_tensor(rng.random((3, 7, 4)))
    monkeypatch.setattr(products, "is_on_cpu", lambda array: False)
    np.testing.assert_allclose(products.gram(X), X.T @ X)
    np.testing.assert_allclose(products._symmetric(groups), groups @ groups.mT)


@pytest.mark.parametrize("with_columns", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_rows(asarray, rng, with_columns, weighted):
    X, rows = rng.random((8, 3)), rng.integers(0, 4, 8)
    columns, weights = rng.integers(0, 8, 8) if with_columns else None, rng.random(8) if weighted else None
    given = [None if array is None else asarray(array) for array in (columns, weights)]
    sums = to_numpy(products.sparse_rows(asarray(rows), *given, 5, asarray(X)))
    expected = np.zeros((5, 3))
    for i, row in enumerate(rows):
        expected[row] += (weights[i] if weighted else 1) * X[columns[i] if with_columns else i]
    np.testing.assert_allclose(sums, expected)
