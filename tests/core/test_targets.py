"""Targets against plain loops."""

import numpy as np
import pytest

from hubless.arrays import to_numpy
from hubless.targets import labeled_objects, pairs, restrict, same_class_targets
from tests import reference


@pytest.mark.parametrize("n_targets", [1, 3, 40])
def test_same_as_loops(asarray, blobs, n_targets):
    X, y, _ = blobs
    result = to_numpy(same_class_targets(asarray(X), asarray(y), n_targets))
    np.testing.assert_array_equal(result, reference.targets(X, y, n_targets))


def test_ties_and_duplicates(asarray, rng):
    X, y = rng.integers(0, 2, (80, 3)).astype(float), rng.integers(0, 5, 80)
    result = to_numpy(same_class_targets(asarray(X), asarray(y), 4))
    np.testing.assert_array_equal(result, reference.targets(X, y, 4))


def test_a_class_number_without_objects(asarray):
    X, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 3])
    np.testing.assert_array_equal(to_numpy(same_class_targets(asarray(X), asarray(y), 1)), [[1], [0], [-1]])


def test_pairs(asarray):
    source, target = pairs(asarray(np.array([[2, 1], [0, -1], [-1, -1]])))
    assert list(zip(to_numpy(source), to_numpy(target), strict=True)) == [(0, 2), (0, 1), (1, 0)]


def test_restricting_long_lists_equals_searching_the_part(asarray, blobs):
    X, y, _ = blobs
    kept = np.flatnonzero(np.arange(60) % 3 != 1)
    whole = same_class_targets(asarray(X), asarray(y), 59)
    result = to_numpy(restrict(whole, asarray(kept), 2))
    np.testing.assert_array_equal(result, reference.targets(X[kept], y[kept], 2))


def test_objects_of_weight_zero_are_left_out(asarray, blobs):
    X, y, _ = blobs
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.5)
    kept = weights > 0
    labeled = labeled_objects(asarray(X), asarray(y), asarray(weights), None, 2)
    np.testing.assert_array_equal(to_numpy(labeled.targets), reference.targets(X[kept], y[kept], 2))
    whole = same_class_targets(asarray(X), asarray(y), 59)
    given = labeled_objects(asarray(X), asarray(y), asarray(weights), whole, 2)
    np.testing.assert_array_equal(to_numpy(given.targets), to_numpy(labeled.targets))
    assert labeled.n_without_target() == int(np.sum(reference.targets(X[kept], y[kept], 1) < 0))
