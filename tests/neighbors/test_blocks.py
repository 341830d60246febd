"""Neighbours of objects in blocks: the nearest of all blocks are those of one search, ties included."""

import numpy as np
import pytest

from hubless.neighbors.blocks import Nearest, floats, nearest_in_block, nearest_of_blocks, without_self
from tests import reference

CUTS = {"one": [], "two": [30], "uneven": [1, 2, 40], "empty": [0, 20, 20, 50], "single rows": range(1, 50)}


def in_blocks(queries, objects, codes, k, cuts):
    starts, ends = [0, *cuts], [*cuts, len(objects)]
    return nearest_of_blocks(
        [
            nearest_in_block(queries, objects[a:b], None if codes is None else codes[a:b], a, k)
            for a, b in zip(starts, ends, strict=True)
        ]
    )


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("k", [1, 6, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_of_all_blocks_are_those_of_loops(rng, cuts, k, dtype):
    queries, objects = rng.standard_normal((20, 4)).astype(dtype), rng.standard_normal((50, 4)).astype(dtype)
    codes = rng.integers(0, 3, 50)
    distances, indices = reference.nearest(queries, objects, k)
    nearest = in_blocks(queries, objects, codes, k, cuts)
    np.testing.assert_array_equal(nearest.rows, indices)
    np.testing.assert_allclose(np.sqrt(nearest.squared), distances, rtol=1e-12)
    np.testing.assert_array_equal(nearest.codes, codes[indices])
    assert (nearest.squared.dtype, nearest.rows.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_ties_across_blocks_go_to_the_lower_number(rng, cuts):
    queries, objects = rng.integers(0, 2, (20, 3)), rng.integers(0, 2, (50, 3))
    nearest = in_blocks(queries, objects, None, 12, cuts)
    np.testing.assert_array_equal(nearest.rows, reference.nearest(queries, objects, 12)[1])
    assert nearest.codes is None


def test_the_order_of_the_blocks_is_free(rng):
    queries, objects = rng.integers(0, 2, (9, 3)), rng.integers(0, 2, (30, 3))
    blocks = [nearest_in_block(queries, objects[a : a + 10], None, a, 5) for a in (20, 0, 10)]
    pairwise = nearest_of_blocks([blocks[2], nearest_of_blocks(blocks[:2])])
    for merged in (nearest_of_blocks(blocks), pairwise):
        np.testing.assert_array_equal(merged.rows, reference.nearest(queries, objects, 5)[1])


def test_fewer_objects_than_neighbours_leave_empty_places(rng):
    queries, objects = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    nearest = in_blocks(queries, objects, np.array([5, 6, 7]), 5, [1])
    np.testing.assert_array_equal(nearest.rows[:, :3], reference.nearest(queries, objects, 3)[1])
    np.testing.assert_array_equal(nearest.rows[:, 3:], np.full((4, 2), -1))
    np.testing.assert_array_equal(nearest.codes[:, 3:], np.full((4, 2), -1))
    assert np.isinf(nearest.squared[:, 3:]).all()
    assert nearest_in_block(queries[:0], objects, None, 0, 2).rows.shape == (0, 2)


def test_a_query_among_its_own_neighbours_is_left_out(rng):
    X = rng.integers(0, 3, (40, 2))  # duplicates, which stay in
    codes = rng.integers(0, 3, 40)
    truth = reference.nearest(X, X, 4, exclude_self=True)[1]
    for first, last in ((0, 15), (15, 40)):  # queries in blocks, too
        nearest = without_self(in_blocks(X[first:last], X, codes, 5, [7, 22]), first)
        np.testing.assert_array_equal(nearest.rows, truth[first:last])
        np.testing.assert_array_equal(nearest.codes, codes[truth[first:last]])
        assert nearest.squared.shape == (last - first, 4)


def test_without_self_takes_the_last_where_the_query_is_not_there():
    nearest = Nearest(np.array([[1.0, 2.0, 3.0], [0.0, 2.0, 5.0]]), np.array([[4, 5, 6], [4, 1, 9]]))
    np.testing.assert_array_equal(without_self(nearest, 3).rows, [[4, 5], [1, 9]])
    np.testing.assert_array_equal(without_self(nearest, 3).squared, [[1, 2], [2, 5]])


def test_precision_of_any_numbers():
    for given, kept in (
        ("float16", "float32"),
        ("float32", "float32"),
        ("int8", "float64"),
        ("bool", "float64"),
    ):
        assert floats(np.ones((2, 2), dtype=given)).dtype == kept
    np.testing.assert_array_equal(floats(np.array([[1, "2.5"]], dtype=object)), [[1.0, 2.5]])
    same = np.ones((2, 2))
    assert floats(same) is same


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([["a"]]), "vectors are real numbers; got <U1"),
        (np.array([["a"]], dtype=object), "vectors are real numbers; could not convert"),
        (np.ones((1, 1)) + 1j, "vectors are real numbers; got complex128"),
        (np.array([[np.nan]]), "objects contain NaN or infinity; drop or repair such rows"),
        (np.array([[np.inf]]), "objects contain NaN or infinity"),
    ],
)
def test_bad_vectors(bad, message):
    with pytest.raises(ValueError, match=message):
        nearest_in_block(np.ones((1, 1)), bad, None, 0, 1)
    with pytest.raises(ValueError, match=message.replace("objects", "queries")):
        nearest_in_block(bad, np.ones((1, 1)), None, 0, 1)
