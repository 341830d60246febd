"""Data for the learners."""

import numpy as np
import pytest


@pytest.fixture
def three_classes(rng):
    """40 objects in 3 dimensions of classes 0, 1, 2 and, alone, 3."""
    y = rng.permutation(np.array([0] * 18 + [1] * 12 + [2] * 9 + [3]))
    return rng.standard_normal((40, 3)) + np.eye(4, 3)[y] * 2, y
