"""What all ways to choose share: folds, training parts, votes and standard errors."""

from math import sqrt

import numpy as np
import pytest

from hubless.arrays import to_numpy
from hubless.selection.folds import (
    TIE,
    accuracy,
    feasible_neighbors,
    mean_and_error,
    predict_by_ks,
    query_folds,
    share_error,
    training_part,
    tried_row,
)
from hubless.targets import labeled_objects
from tests import reference


def test_query_folds_are_disjoint_and_cover_all():
    folds = query_folds(23, 5, np.random.default_rng(0))
    assert sorted(row for _, test in folds for row in test) == list(range(23))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(23))
        assert len(test) in (4, 5)
    again = query_folds(23, 5, np.random.default_rng(0))
    assert [test.tolist() for _, test in folds] == [test.tolist() for _, test in again]


def test_targets_of_a_training_part_are_inside_it(asarray, blobs, rng):
    X, y, _ = blobs
    weights = rng.random(60) + 0.1
    train = np.flatnonzero(np.arange(60) % 3 > 0)
    truth = reference.targets(X[train], y[train], 2)
    for given in (None, reference.targets(X, y, 29)):
        width = 2 if given is None else 29
        labeled = labeled_objects(
            *map(asarray, (X, y, weights)), None if given is None else asarray(given), width
        )
        part = training_part(labeled, train, 2, given is not None)
        for result, expected in zip(part[:4], (X[train], y[train], weights[train], truth), strict=True):
            np.testing.assert_array_equal(to_numpy(result), expected)


def test_no_targets_are_searched_for_where_none_are_needed(blobs):
    X, y, _ = blobs
    part = training_part(labeled_objects(X, y, n_targets=0), np.arange(0, 60, 2), 0, False)
    assert part.targets.shape == (30, 0)


@pytest.mark.parametrize("by_distance", [False, True])
def test_one_search_answers_for_every_k(asarray, blobs, by_distance):
    X, y, queries = blobs
    predicted = predict_by_ks(*map(asarray, (queries, X, y)), None, (1, 4, 9), by_distance)
    for k, classes in zip((1, 4, 9), predicted, strict=True):
        distances, indices = reference.nearest(queries, X, k)
        votes = [reference.inverse_distance_weights(row) for row in distances] if by_distance else None
        np.testing.assert_array_equal(to_numpy(classes), reference.vote(y[indices], votes))


def test_standard_errors_are_those_of_loops(rng):
    apart, w = rng.standard_normal(40), rng.random(40) + 0.1
    mean = sum(apart) / 40
    error = sqrt(sum((d - mean) ** 2 for d in apart) / 39 / 40)
    assert mean_and_error(apart) == pytest.approx((mean, error))
    share = [value / sum(w) for value in w]
    mean = sum(s * d for s, d in zip(share, apart, strict=True))
    error = sqrt(sum((s * (d - mean)) ** 2 for s, d in zip(share, apart, strict=True)))
    assert mean_and_error(apart, w) == pytest.approx((mean, error))
    assert mean_and_error(apart[:1]) == (0.0, 0.0)
    assert share_error(np.array([0.3]), np.array([50]))[0] == pytest.approx(sqrt(0.3 * 0.7 / 50))


def test_accuracy_counts_by_weight():
    assert accuracy(np.array([1, 2, 3]), np.array([1, 2, 0])) == pytest.approx(2 / 3)
    assert accuracy(np.array([1, 2, 3]), np.array([1, 2, 0]), np.array([1.0, 1.0, 6.0])) == pytest.approx(
        1 / 4
    )
    assert TIE < 1e-9


def test_numbers_of_neighbours_fit_the_smallest_training_part():
    assert feasible_neighbors(None, 12) == (1, 3, 5, 7, 10)
    assert feasible_neighbors(None, 1000, 30) == (1, 3, 5, 7, 10, 15, 20, 30)
    assert feasible_neighbors([2, 9], 9) == (2, 9)
    with pytest.raises(ValueError, match=r"n_neighbors may be at most 8.*got 9. Ask for fewer"):
        feasible_neighbors([2, 9], 8)


def test_what_is_not_finite_is_null_on_a_page():
    row = tried_row("Shrink()", np.nan, np.inf, np.int64(7), chosen=False, why_not="no pair")
    assert (row["score"], row["error"], row["queries"], row["why_not"]) == (None, None, 7, "no pair")
