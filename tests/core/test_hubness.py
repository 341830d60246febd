"""Measures of hubness against plain loops, SciPy and cases that can be counted by hand."""

import numpy as np
import pytest
from scipy.stats import skew

from hubless import measure_hubness
from hubless.arrays import to_numpy
from hubless.hubness import (
    MEASURES,
    antihub_share,
    bad_k_occurrence,
    busiest_share,
    hub_occurrence,
    k_occurrence,
    largest_occurrence,
    n_hubs,
    robin_hood,
    skewness,
)
from tests import reference


@pytest.fixture
def neighbors(rng):
    """10 neighbours of 80 queries among 50 objects, some far more often than others."""
    shares = rng.dirichlet(np.full(50, 0.3)) + 1e-3
    return np.array([rng.choice(50, 10, replace=False, p=shares / shares.sum()) for _ in range(80)])


def test_every_measure_same_as_loops(asarray, neighbors, rng):
    objects, queries = rng.integers(0, 3, 50), rng.integers(0, 3, 80)
    counts = reference.k_occurrence(neighbors, 50)
    labels = {"object_labels": asarray(objects), "query_labels": asarray(queries)}
    report = measure_hubness(asarray(neighbors), 50, **labels)
    np.testing.assert_array_equal(to_numpy(report.occurrence), counts)
    assert report.skewness == pytest.approx(reference.skewness(counts))
    assert report.skewness == pytest.approx(skew(counts))
    assert report.antihub_share == pytest.approx(reference.antihub_share(counts))
    assert report.largest_occurrence == max(counts)
    assert report.robin_hood == pytest.approx(reference.robin_hood(counts))
    assert report.n_hubs == len(reference.hubs(counts, 80, 10)) > 2
    assert report.hub_occurrence == pytest.approx(reference.hub_occurrence(counts, 80, 10))
    assert report.busiest_share == pytest.approx(reference.busiest_share(counts))
    bad = reference.bad_k_occurrence(neighbors, objects, queries)
    np.testing.assert_array_equal(to_numpy(report.bad_occurrence), bad)
    assert report.bad_share == pytest.approx(sum(bad) / 800)


def test_one_object_takes_all():
    counts = k_occurrence(np.zeros((12, 1), dtype=int), 4)
    assert skewness(counts) == pytest.approx(2 / 3**0.5)
    assert (antihub_share(counts), largest_occurrence(counts)) == (0.75, 12)
    assert (robin_hood(counts), hub_occurrence(counts, 9), busiest_share(counts)) == (0.75, 1.0, 1.0)
    assert (n_hubs(counts, 12), n_hubs(counts, 13)) == (1, 0)
    assert (hub_occurrence(counts, 12), hub_occurrence(counts, 13)) == (1.0, 0.0)


@pytest.mark.parametrize(("n", "busiest"), [(1, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
def test_the_busiest_1_percent_are_one_at_least(n, busiest):
    counts = np.arange(1, n + 1)
    assert busiest_share(counts) == pytest.approx(sum(range(n - busiest + 1, n + 1)) / (n * (n + 1) / 2))


def test_no_hubs_at_all():
    counts = k_occurrence(np.arange(12).reshape(12, 1) % 4, 4)
    assert (skewness(counts), antihub_share(counts), robin_hood(counts)) == (0, 0, 0)


def test_hubs_do_not_depend_on_the_number_of_queries(neighbors):
    once, thrice = k_occurrence(neighbors, 50), k_occurrence(np.tile(neighbors, (3, 1)), 50)
    for measure in (skewness, antihub_share, robin_hood, busiest_share):
        assert measure(thrice) == pytest.approx(measure(once))


def test_places_without_a_neighbour_are_not_counted(asarray):
    counts = k_occurrence(asarray(np.array([[0, -1], [1, 0], [-1, -1]])), 3)
    np.testing.assert_array_equal(to_numpy(counts), [2, 1, 0])
    bad = bad_k_occurrence(asarray(np.array([[0, -1], [1, 0]])), ["a", "b"], ["b", "b"])
    np.testing.assert_array_equal(to_numpy(bad), [2, 0])


def test_printed_report_explains_each_measure(neighbors):
    text = str(measure_hubness(neighbors, 50, object_labels=["a"] * 50, query_labels=["b"] * 80))
    assert "N_10 of 50 objects over 80 queries" in text
    for measure in MEASURES:
        assert measure.__name__ in text
        assert measure.__doc__.splitlines()[0] in text
    assert len(text.splitlines()) == 1 + len(MEASURES)
    assert "bad_share" not in str(measure_hubness(neighbors, 50))


def test_report_as_plain_numbers(neighbors):
    numbers = measure_hubness(neighbors, 50).as_dict()
    assert numbers["k"] == 10
    assert numbers["bad_share"] is None
    assert all(value is None or isinstance(value, int | float) for value in numbers.values())


def test_lists_are_accepted(neighbors):
    assert measure_hubness(neighbors.tolist(), 50) == measure_hubness(neighbors, 50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_objects": 5}, "from 0 to 4"),
        ({"n_objects": 50, "object_labels": [0] * 50}, "got one of the two"),
        ({"n_objects": 50, "object_labels": [0], "query_labels": [0] * 80}, "got 1 for 50 objects"),
        ({"n_objects": 50, "object_labels": [0] * 50, "query_labels": [0]}, "got 1 labels for 80 queries"),
    ],
)
def test_bad_input_says_why(neighbors, arguments, message):
    with pytest.raises(ValueError, match=message):
        measure_hubness(neighbors, **arguments)
