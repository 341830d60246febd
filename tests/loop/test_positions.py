"""Propensities, relevance, scores and intervals, against plain loops and other libraries."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from hubless.loop.click_log import LogRow
from hubless.loop.positions import LEAST, assumed_propensities, click_curve, propensities, relevance
from hubless.loop.questions import Lookup, Questions, ask, curve_of
from hubless.loop.slice_score import RISK, Differences, answer, click_gain, compare, look_level


def row(query, shown=(), clicked=(), judged=None):
    return LogRow(1, query, None, None, tuple(shown), frozenset(clicked), judged, b"")


def pooled(rates, weights):
    """Pool neighbours until rates fall: the plain way, one violation at a time."""
    blocks = [[rate, weight, 1] for rate, weight in zip(rates, weights, strict=True)]
    while True:
        wrong = next((i for i in range(len(blocks) - 1) if blocks[i][0] < blocks[i + 1][0]), None)
        if wrong is None:
            return [rate for rate, _, n in blocks for _ in range(n)]
        (a, v, n), (b, w, m) = blocks[wrong : wrong + 2]
        blocks[wrong : wrong + 2] = [[(a * v + b * w) / (v + w), v + w, n + m]]


def test_the_curve_of_clicks_falls_as_loops_pool_it(rng):
    shown = rng.integers(50, 100, 8).astype(float)
    clicks = np.floor(shown * [0.5, 0.2, 0.3, 0.1, 0.12, 0.15, 0.02, 0.03])
    curve = pooled(clicks / shown, shown)
    np.testing.assert_allclose(click_curve(clicks, shown), np.array(curve) / curve[0])


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 3.0])
def test_propensities_are_the_flatter_curve_and_never_below_a_tenth(eta):
    shown, clicks = np.full(12, 100.0), np.array([40, 30, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0.0])
    expected = [max(rank**-eta, rate / 40, LEAST) for rank, rate in enumerate(clicks.tolist(), 1)]
    np.testing.assert_allclose(propensities(clicks, shown, eta), expected)


def test_without_clicks_attention_falls_as_assumed():
    np.testing.assert_allclose(assumed_propensities(3), [1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(propensities(np.zeros(3), np.full(3, 9.0)), [1, 1 / 2, 1 / 3])


def test_clicks_that_have_nothing_to_do_with_items_are_worth_the_same_at_all_ranks(rng):
    """Whatever users look at: 1 / rank, all ranks, or the last ones more than is assumed."""
    for looked_at in (1 / np.arange(1, 11), np.full(10, 0.3), np.arange(1, 11) ** -0.5):
        n = 200_000
        clicks = rng.binomial(n, 0.5 * looked_at)
        worth = clicks / n / propensities(clicks.astype(float), np.full(10, float(n)))
        np.testing.assert_allclose(worth, worth[0], rtol=0.03)


def test_relevance_is_unbiased(rng):
    """An item that is shown at several ranks and clicked with probability p(rank) times its relevance."""
    ranks = rng.integers(0, 10, 100_000)
    p = assumed_propensities(10)
    clicks = int((rng.random(len(ranks)) < 0.6 * p[ranks]).sum())
    assert relevance({7: clicks}, {7: float(p[ranks].sum()), 8: 4.0}) == {
        7: pytest.approx(0.6, rel=0.02),
        8: 0.0,
    }


def test_questions_say_what_loops_count():
    p = np.array([1.0, 0.5, 0.25])
    rows = [
        row("q", "abc", "c"),
        row("r", "ab"),
        row("q", "cab", "ca"),
        row("q", ["x", "a"]),  # an unknown item takes a rank
        row("s", judged=("b", 2.0)),
        row("s", judged=("a", 0.0)),
        row("s", "ab", "a"),
        row("unknown", "ab", "a"),
    ]
    names = dict(zip("qrs", np.eye(3, 2), strict=True))
    asked = ask(rows, Lookup({"a": 0, "b": 1, "c": 2}, names, p))
    expected = {0: 1 / (1 + 0.5 + 0.5), 1: 0 / (0.5 + 0.25), 2: 2 / (0.25 + 1)}
    assert asked.keys == ["q", "s"]  # nobody says what answers r
    assert asked.shown == [pytest.approx(expected), None]
    # of all that was shown: 4 clicks of q and s, per expected click
    mean = 4 / (sum([1 + 0.5 + 0.5, 0.5 + 0.25, 0.25 + 1]) + (1 + 0.5) + (1 + 0.5))
    assert asked.relevant == [{item: v for item, v in expected.items() if v > mean}, {1: 2.0}]
    assert asked.n_pairs == 2


def test_the_curve_counts_every_search():
    rows = [row("q", "abc", "a"), row("q", "ab", "ab"), row("r", judged=("a", 1.0))]
    np.testing.assert_allclose(
        curve_of(rows, eta=3.0), propensities(np.array([2.0, 1, 0]), np.array([2.0, 2, 1]), 3.0)
    )


def test_the_score_of_clicks_is_that_of_loops(rng):
    stored, query = rng.standard_normal((20, 4)), rng.standard_normal(4)
    worth = {3: 0.5, 7: 0.0, 11: 2.0, 12: 0.1}
    order = sorted(worth, key=lambda item: sum((stored[item] - query) ** 2))
    expected = sum(worth[item] / math.log2(1 + rank) for rank, item in enumerate(order, 1))
    assert click_gain(query, worth, stored) == pytest.approx(expected)


def test_a_slice_may_have_clicks_and_judgements(rng):
    stored, queries = rng.standard_normal((30, 4)), rng.standard_normal((3, 4))
    shown = [{1: 1.0, 2: 0.0}, None, {4: 0.0, 5: 3.0}]
    asked = Questions(["a", "b", "c"], queries, shown, [{1: 1.0}, {3: 1.0, 9: 2.0}, {5: 3.0}])
    found = answer(asked, stored)
    gains = [click_gain(queries[i], shown[i], stored) for i in (0, 2)]
    ranks = np.argsort(((stored - queries[1]) ** 2).sum(axis=1))[:10]
    dcg = sum({3: 1.0, 9: 2.0}.get(int(i), 0) / math.log2(r + 2) for r, i in enumerate(ranks))
    judged = dcg / (2 + 1 / math.log2(3))
    np.testing.assert_allclose(found.scores, [gains[0] / 2, judged, gains[1] / 2])  # 4 clicks of 2 questions
    assert found.neighbors[1].tolist() == ranks.tolist()


def test_an_order_that_has_nothing_to_do_with_clicks_gains_nothing(rng):
    """Random clicks on what one order shows, scored for that order and for another: no difference."""
    stored, moved = rng.standard_normal((2, 10, 3))
    queries = rng.standard_normal((400, 3))
    order = np.argsort(((stored - queries[:, None]) ** 2).sum(axis=2), axis=1)
    for curve in (1 / np.arange(1, 11), np.full(10, 0.4)):
        rows = [
            row(
                str(i),
                map(str, near),
                [str(item) for item, p in zip(near, curve, strict=True) if rng.random() < p],
            )
            for i, near in enumerate(order.tolist())
        ]
        names = {str(i): query for i, query in enumerate(queries)}
        asked = ask(rows, Lookup({str(i): i for i in range(10)}, names, curve_of(rows)))
        gain = compare(answer(asked, stored).scores, answer(asked, moved).scores)
        low, high = gain.interval(0.995)
        assert low < 0 < high


def test_intervals_are_those_of_scipy(rng):
    before, after = rng.random((2, 50))
    gain = compare(before, after)
    for level in (0.975, 0.99):
        expected = ttest_1samp(after - before, 0).confidence_interval(2 * level - 1)
        np.testing.assert_allclose(gain.interval(level), expected)
    halves = compare(before[:20], after[:20]) + compare(before[20:], after[20:])
    np.testing.assert_allclose(halves.interval(0.975), gain.interval(0.975))
    assert halves.looks == 2


def test_few_questions_say_nothing():
    gain = compare(np.zeros(19), np.ones(19) + np.arange(19))
    assert gain.interval(0.975) == (-np.inf, np.inf)
    assert not gain.is_above()
    assert not gain.is_below()
    assert Differences().mean == 0


def test_all_looks_together_have_one_risk():
    spent = sum(1 - look_level(look) for look in range(1, 200_000))
    assert spent == pytest.approx(RISK, rel=1e-4)
    assert spent < RISK
