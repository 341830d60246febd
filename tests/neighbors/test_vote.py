"""Votes against plain loops."""

import numpy as np
import pytest

from hubless.arrays import to_numpy
from hubless.neighbors import knn as module
from hubless.neighbors.knn import distance_weights, probabilities, vote
from tests import reference


@pytest.mark.parametrize("weighted", [False, True])
def test_same_as_loops(asarray, rng, weighted, monkeypatch):
    monkeypatch.setattr(module, "CELLS", 1000)
    labels = rng.integers(0, 4, (300, 8))
    weights = rng.integers(1, 4, (300, 8)).astype(float) if weighted else None  # whole numbers tie often
    given = asarray(weights) if weighted else None
    result = to_numpy(vote(asarray(labels), given))
    np.testing.assert_array_equal(result, reference.vote(labels.tolist(), weights))
    given_labels = asarray(labels)
    shares = to_numpy(probabilities(given_labels, 5, given, asarray(np.ones(1)).dtype))
    np.testing.assert_allclose(shares, reference.probabilities(labels.tolist(), 5, weights))


def test_a_tie_goes_to_the_class_of_the_nearest(asarray):
    labels = np.array([[2, 1, 1, 2], [0, 1, 1, 0], [1, 0, 2, 2], [3, 0, 1, 2]])
    np.testing.assert_array_equal(to_numpy(vote(asarray(labels))), [2, 0, 2, 3])


def test_very_many_neighbours(asarray, rng):
    labels = rng.integers(0, 3, (5, 20_000))
    np.testing.assert_array_equal(to_numpy(vote(asarray(labels))), reference.vote(labels.tolist()))


def test_every_k_at_once(asarray, rng):
    labels = rng.integers(0, 3, (200, 9))
    ks = (1, 2, 5, 9)
    for k, result in zip(ks, vote(asarray(labels), ks=ks), strict=True):
        np.testing.assert_array_equal(to_numpy(result), reference.vote(labels[:, :k].tolist()))


def test_distance_weights_are_proportional_to_the_inverse(asarray, rng):
    distances = np.sort(rng.random((50, 5)), axis=1)
    distances[:10, :2] = 0.0
    result = to_numpy(distance_weights(asarray(distances)))
    for row, truth in zip(result, map(reference.inverse_distance_weights, distances.tolist()), strict=True):
        np.testing.assert_allclose(row / row.sum(), np.array(truth) / sum(truth))


def test_distance_weights_of_tiny_distances(asarray):
    result = to_numpy(distance_weights(asarray(np.array([[1e-310, 2e-310, 4e-310]]))))
    np.testing.assert_allclose(result, [[1, 0.5, 0.25]], rtol=1e-6)
