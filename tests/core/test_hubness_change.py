"""Intervals of changes of hubness, against leaving each query out in loops, and against simulated queries."""

import math

import numpy as np
import pytest

from hubless.hubness_change import change_intervals
from hubless.neighbors import nearest
from tests import reference

MEASURES = {
    "skewness": reference.skewness,
    "busiest_share": reference.busiest_share,
    "antihub_share": reference.antihub_share,
}


def left_out(measure, before, after, n):
    """The 95 % interval of a change by leaving out one query after the other."""

    def change(rows):
        first, then = (measure(reference.k_occurrence(near[rows], n)) for near in (before, after))
        return then - first

    m = len(before)
    every = list(range(m))
    without = [change(every[:row] + every[row + 1 :]) for row in range(m)]
    mean = math.fsum(without) / m
    error = 1.96 * math.sqrt((m - 1) / m * math.fsum((value - mean) ** 2 for value in without))
    return change(every) - error, change(every) + error


@pytest.mark.parametrize(("m", "n", "k"), [(23, 40, 3), (12, 250, 10), (30, 5, 4), (9, 12, 1)])
def test_intervals_are_those_of_loops(rng, m, n, k):
    weights = rng.random(n) ** 3 + 1e-3  # some objects are hubs
    before, after = (
        np.array([rng.choice(n, k, replace=False, p=odds / odds.sum()) for _ in range(m)])
        for odds in (weights, np.ones(n))
    )
    measured = change_intervals(before, after, n)
    for name, measure in MEASURES.items():
        assert measured[name] == pytest.approx(left_out(measure, before, after, n), abs=1e-9), name


def test_the_same_answers_have_no_interval_and_one_query_an_infinite_one():
    near = np.array([[0, 1], [0, 2], [3, 0]])
    assert set(change_intervals(near, near, 5).values()) == {(0.0, 0.0)}
    assert change_intervals(near[:1], near[:1], 5)["skewness"] == (-np.inf, np.inf)


def test_intervals_hold_the_change_of_other_queries():
    """Of 60 draws of queries, at least 50 intervals hold the mean change over all draws."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30))
    found, intervals = [], []
    for _ in range(60):
        queries = rng.standard_normal((150, 30))
        before, after = (nearest(queries, Z, 10)[1] for Z in (X, 0.8 * X))
        intervals.append(change_intervals(before, after, 400))
        counts = [np.bincount(near.ravel(), minlength=400).tolist() for near in (before, after)]
        found.append({name: measure(counts[1]) - measure(counts[0]) for name, measure in MEASURES.items()})
    for name in MEASURES:
        change = np.mean([each[name] for each in found])
        assert abs(change) > 0.005, name  # there is something to hold
        assert sum(low <= change <= high for low, high in (each[name] for each in intervals)) >= 50, name
