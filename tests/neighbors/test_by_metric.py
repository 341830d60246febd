"""Exact search by the metric of an index against plain loops."""

import numpy as np
import pytest

from hubless.neighbors.knn import exhaustive, unit
from tests import reference


def score(x, z, metric):
    """What a metric orders by, smallest first."""
    if metric == "l2":
        return reference.distance(x, z)
    product = float(np.dot(x, z))
    length = float(np.linalg.norm(z))
    return -product if metric == "ip" else -product / length if length else 0.0


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_as_loops(rng, metric, dtype):
    queries, vectors = rng.standard_normal((25, 5)), rng.standard_normal((60, 5)) * rng.random((60, 1)) * 9
    vectors[[3, 40]] = np.nan  # rows without a vector
    vectors[7] = 0
    queries, vectors = queries.astype(np.float64), vectors.astype(dtype)
    indices = exhaustive(queries, vectors, 6, metric)
    queries = queries.astype(dtype).astype(float)
    for x, row in zip(queries, indices, strict=True):
        scores = {i: score(x, vectors[i].astype(float), metric) for i in range(60) if i not in (3, 40)}
        assert row.tolist() == sorted(scores, key=lambda i: (scores[i], i))[:6]


def test_no_more_than_there_are(rng):
    vectors = rng.standard_normal((4, 2))
    vectors[1] = np.nan
    assert sorted(exhaustive(vectors[:1], vectors, 9, "l2")[0]) == [0, 2, 3]
    assert exhaustive(vectors[:1], np.full((4, 2), np.nan), 9, "cosine").shape == (1, 0)


def test_unit_rows(rng):
    for dtype in (np.float32, np.float64):
        X = (rng.standard_normal((20, 4)) * 1e3).astype(dtype)
        X[3] = 0
        rows = unit(X)
        assert rows.dtype == dtype
        truth = [x / (np.linalg.norm(x) or 1) for x in X.astype(float)]
        np.testing.assert_allclose(rows, truth, rtol=1e-6)
        np.testing.assert_array_equal(rows[3], 0)
