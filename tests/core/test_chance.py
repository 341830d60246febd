"""What chance gives, against sums in whole numbers, SciPy's binomial and simulated answers."""

import numpy as np
import pytest
from scipy.stats import binom

from hubless.chance import (
    chance_antihub_share,
    chance_gini,
    chance_largest,
    chance_of_occurrence,
    chance_skewness,
    hub_threshold,
    measure_chance,
)
from tests import reference

SIZES = [(30, 40, 3), (7, 5, 2), (60, 300, 10), (25, 10, 1)]  # queries, objects, answers


@pytest.mark.parametrize("sizes", SIZES)
def test_probabilities_are_those_of_loops(sizes):
    for least in range(sizes[0] + 2):
        expected = reference.chance_of_occurrence(least, *sizes)
        assert chance_of_occurrence(least, *sizes) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("false_alarms", [0.05, 0.5, 1e-6])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_threshold_is_the_least_that_chance_rarely_reaches(sizes, false_alarms):
    n = sizes[1]
    rare = [t for t in range(sizes[0] + 2) if n * reference.chance_of_occurrence(t, *sizes) <= false_alarms]
    assert hub_threshold(*sizes, false_alarms) == rare[0]


def test_measures_are_those_of_a_binomial():
    m, n, k = 809, 5183, 10
    law = binom(m, k / n)
    assert chance_skewness(m, n, k) == pytest.approx(float(law.stats("s")))
    assert chance_antihub_share(m, n, k) == pytest.approx(law.pmf(0))
    largest = chance_largest(m, n, k)
    assert law.cdf(largest) ** n >= 0.5 > law.cdf(largest - 1) ** n
    assert hub_threshold(m, n, k) == int(law.isf(0.05 / n)) + 1


def drawn_counts(rng, m, n, k):
    """N_k where every query draws k different objects."""
    answers = np.argpartition(rng.random((m, n)), k, axis=1)[:, :k]
    return np.bincount(answers.ravel(), minlength=n)


@pytest.mark.parametrize(("m", "n", "k"), [(200, 300, 5), (30, 700, 10)])
def test_simulated_answers_agree(rng, m, n, k):
    rounds = 300
    chance = measure_chance(m, n, k)
    counts = [drawn_counts(rng, m, n, k) for _ in range(rounds)]
    largest = [max(each) for each in counts]
    assert np.mean([reference.antihub_share(each) for each in counts]) == pytest.approx(
        chance.antihub_share, abs=0.002
    )
    assert np.mean([reference.busiest_share(each) for each in counts]) == pytest.approx(
        chance.busiest_share, rel=0.01
    )
    assert np.mean([reference.gini(each) for each in counts]) == pytest.approx(chance_gini(m, n, k), rel=0.01)
    assert np.mean([reference.skewness(each) for each in counts]) == pytest.approx(chance.skewness, abs=0.02)
    assert abs(np.median(largest) - chance.largest_occurrence) <= 1
    alarms = np.mean(np.array(largest) >= chance.threshold)
    assert alarms <= 0.05 + 3 * (0.05 * 0.95 / rounds) ** 0.5
    assert np.mean(np.array(largest) >= chance.threshold - 1) > 0.05  # no smaller one would do


def test_large_numbers_take_no_time_and_all_objects_are_no_chance():
    assert 5 <= measure_chance(5_000, 100_000, 10).threshold <= 12
    assert measure_chance(10**7, 10**6, 10).threshold < 200
    everything = measure_chance(20, 4, 4)
    assert (everything.skewness, everything.antihub_share, everything.largest_occurrence) == (0.0, 0.0, 20)
    assert everything.threshold == 21  # nothing can be a hub


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((0, 5, 1), "n_queries must be a whole number"), ((5, 5, 6), "at most all 5 objects; got k=6")],
)
def test_impossible_sizes_are_refused(sizes, words):
    with pytest.raises(ValueError, match=words):
        measure_chance(*sizes)


def test_places_that_are_too_few_leave_items_out():
    """203 queries have 2,030 places, so 3,153 of 5,183 items at the least are in no answer."""
    assert measure_chance(203, 5183, 10).least_antihub_share == pytest.approx(3153 / 5183)
    assert measure_chance(1000, 5183, 10).least_antihub_share == 0


def test_impossible_rates_are_refused():
    with pytest.raises(ValueError, match=r"above 0 and below 1; got 5"):
        measure_chance(5, 5, 1, false_alarms=5)
