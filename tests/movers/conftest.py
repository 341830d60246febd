"""Weights of objects, and objects that come later."""

import pytest


@pytest.fixture
def weights(rng):
    return rng.random(60) + 0.1


@pytest.fixture
def later(rng, blobs):
    """20 objects of known classes that come later."""
    X, y, _ = blobs
    chosen = rng.integers(0, 60, 20)
    return X[chosen] + rng.standard_normal((20, 6)), y[chosen]
