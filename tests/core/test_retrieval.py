"""Measures of retrieval against plain loops and scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from hubless.retrieval import MEASURES, gains, hit, ndcg, recall, reciprocal_rank


@pytest.fixture
def answers(rng):
    """5 of 30 items for each of 40 queries, and what up to 8 relevant items of each query are worth."""
    items = np.array([rng.permutation(30)[:5] for _ in range(40)])
    relevant = [
        {int(i): float(rng.integers(1, 4)) for i in rng.permutation(30)[: rng.integers(1, 9)]}
        for _ in range(40)
    ]
    return items, relevant


def test_every_measure_same_as_loops(answers):
    items, relevant = answers
    worth = gains(items, relevant)
    for q, (row, values) in enumerate(zip(items.tolist(), relevant, strict=True)):
        result = [values.get(i, 0.0) for i in row]
        assert worth[q].tolist() == result
        ideal = sorted(values.values(), reverse=True)[:5]
        best, reached = (sum(g / math.log2(r + 2) for r, g in enumerate(order)) for order in (ideal, result))
        assert ndcg(worth, relevant)[q] == pytest.approx(reached / best)
        ranks = [rank for rank, i in enumerate(row, 1) if i in values]
        assert reciprocal_rank(worth, relevant)[q] == pytest.approx(1 / ranks[0] if ranks else 0)
        assert hit(worth, relevant)[q] == (1 if ranks else 0)
        assert recall(worth, relevant)[q] == pytest.approx(len(ranks) / len(values))


def test_ndcg_same_as_scikit_learn(answers):
    items, relevant = answers
    truth, scores = np.zeros((40, 30)), np.zeros((40, 30))
    for q, values in enumerate(relevant):
        truth[q, [*values]] = [*values.values()]
        scores[q, items[q]] = [5, 4, 3, 2, 1]
    oracle = ndcg_score(truth, scores, k=5)
    assert ndcg(gains(items, relevant), relevant).mean() == pytest.approx(oracle)


def test_all_and_none():
    relevant = [{0: 1.0, 1: 1.0}, {2: 1.0}]
    worth = gains(np.array([[0, 1], [0, 1]]), relevant)
    for measure in MEASURES.values():
        np.testing.assert_array_equal(measure(worth, relevant), [1, 0])
    assert gains(np.empty((2, 0), dtype=int), relevant).shape == (2, 0)
