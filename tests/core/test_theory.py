"""Section 4 of the paper, measured."""

import numpy as np
import pytest

from hubless import MoveLabeled, MoveQuery
from hubless.hubness import k_occurrence, skewness
from hubless.neighbors import nearest
from hubless.theory import centrality_bias, simulate_centrality_bias, variance_ratio


@pytest.mark.parametrize("d", [50, 300])
@pytest.mark.parametrize("s", [0.5, 2.0])
@pytest.mark.parametrize("gamma", [-1.0, 0.5, 2.0])
@pytest.mark.parametrize("query_scale", [0.3, 1.0])
def test_proposition_1_holds_in_simulation(gamma, s, d, query_scale):
    measured = simulate_centrality_bias(gamma, s, d, query_scale=query_scale, n_queries=20_000)
    # σ is estimated from 4096 objects: its relative error is about 1 / √8192
    tolerance = 4 * measured.standard_error + 0.05 * abs(measured.mean)
    assert measured.mean == pytest.approx(centrality_bias(gamma, s, d), abs=tolerance)


def test_proposition_1_refuses_a_negative_norm():
    with pytest.raises(ValueError, match="give a smaller gamma"):
        simulate_centrality_bias(50.0, 1.0, 4)


@pytest.fixture
def gaussian_classes(rng):
    """Five classes in 200 dimensions, where hubs are plain to see."""
    y = rng.integers(0, 5, 1000)
    centres = 0.4 * rng.standard_normal((5, 200))
    return centres[y] + rng.standard_normal((1000, 200)), y, centres[y] + rng.standard_normal((1000, 200))


def n10_skewness(queries, objects):
    return skewness(k_occurrence(nearest(queries, objects, 10, return_distance=False), len(objects)))


def test_ridge_shrinks_what_it_moves_and_that_decides_about_hubs(gaussian_classes):
    X, y, queries = gaussian_classes
    moved = MoveLabeled().fit_transform(X, y)
    assert variance_ratio(moved, queries) < 0.5
    query_mover = MoveQuery().fit(X, y)
    assert variance_ratio(query_mover.transform(queries), X) < 0.5
    before = n10_skewness(queries, X)
    assert n10_skewness(queries, moved) < before / 2  # Sec. 4.2: moving the labeled objects removes hubs
    assert n10_skewness(query_mover.transform(queries), X) > before * 1.2  # moving the queries makes them


def test_variance_ratio_of_scaled_points(asarray, rng):
    X = rng.standard_normal((100, 4))
    assert variance_ratio(asarray(0.5 * X + 3), asarray(X)) == pytest.approx(0.25)
    assert np.isclose(variance_ratio(asarray(X), asarray(X)), 1)
