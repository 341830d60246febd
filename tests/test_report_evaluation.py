"""Before and after by every metric, against sorting all products and distances; and what is made of it."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import skew
from sklearn.metrics import ndcg_score

import reference
from hubless.evaluation import Pair, evaluate_classes, evaluate_relevance, figure
from hubless.report.figures import verdict
from hubless.report.report import Told, make_report
from hubless.report.shown import Shown

N, M, D = 120, 50, 5


@pytest.fixture
def data(rng):
    """Objects of very different lengths before and after, queries, classes of both."""
    X = rng.standard_normal((N, D)) * rng.uniform(0.2, 3, (N, 1))
    moved = X @ (np.eye(D) + 0.4 * rng.standard_normal((D, D)))
    queries = rng.standard_normal((M, D))
    y, truth = rng.choice(["ant", "bee", "cat"], N), rng.choice(["ant", "bee", "cat"], M)
    return Pair(X, moved), Pair(queries, queries), y, truth


def order(stored, queries, metric):
    """All row numbers of each query, the nearest first, by loops."""
    if metric == "ip":
        products = [[math.fsum(a * b for a, b in zip(x, z, strict=True)) for z in stored] for x in queries]
        return np.argsort(-np.array(products), axis=1, kind="stable")
    return reference.nearest(queries, stored, len(stored))[1]


@pytest.mark.parametrize("metric", ["l2", "ip"])
@pytest.mark.parametrize("ks", [(1, 1), (3, 7), (15, 4), (20, 30)])
def test_classes_by_sorting(data, metric, ks):
    stored, queries, y, truth = data
    found = evaluate_classes(stored, queries, y, truth, Pair(*ks), metric=metric)
    orders = [order(own, queries.before, metric) for own in stored]
    answers = [reference.vote(y[rows[:, :k]]) for rows, k in zip(orders, ks, strict=True)]
    rights = [own == truth for own in answers]
    first, second = found.figures
    assert (first.before, first.after) == pytest.approx((rights[0].mean(), rights[1].mean()))
    shares = [(y[rows[:, :10]] == truth[:, None]).mean() for rows in orders]
    assert (second.measure, second.before, second.after) == ("precision@10", *map(pytest.approx, shares))
    assert found.fixed == sum(b and not a for a, b in zip(*rights, strict=True))
    assert found.broken == sum(a and not b for a, b in zip(*rights, strict=True))
    for own, rows, near in zip(found.hubness, orders, found.asked.found, strict=True):
        np.testing.assert_array_equal(near, rows[:, :10])
        assert own.skewness == pytest.approx(skew(reference.k_occurrence(rows[:, :10], N)))
    assert (found.asked.metric, found.asked.ks) == (metric, ks)
    for k in set(ks):
        assert k == 1 or str(k) in found.answered


def test_by_inner_product_lengths_count(data):
    """Else the two metrics above would prove the same."""
    stored, queries, _, _ = data
    assert np.any(order(stored.before, queries.before, "ip") != order(stored.before, queries.before, "l2"))


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_nearer_and_heavier_votes(data, metric, rng):
    stored, queries, y, truth = data
    weights = rng.random(N) + 0.05
    found = evaluate_classes(
        stored, queries, y, truth, Pair(9, 9), metric=metric, by_distance=True, weights=weights
    )
    for z, answer in zip(stored, found.asked.answer, strict=True):
        rows = order(z, queries.before, metric)[:, :9]
        votes = weights[rows]
        if metric == "l2":  # by inner product there are no distances
            apart = [
                [reference.distance(x, z[i]) for i in own]
                for x, own in zip(queries.before, rows, strict=True)
            ]
            votes = votes * np.array([reference.inverse_distance_weights(own) for own in apart])
        np.testing.assert_array_equal(answer, reference.vote(y[rows], votes))


def test_more_neighbours_than_objects(data):
    stored, queries, y, truth = data
    few = Pair(*(own[:7] for own in stored))
    found = evaluate_classes(few, queries, y[:7], truth, Pair(5, 50))
    assert found.asked.ks == (5, 7)
    assert found.figures[1].measure == "precision@7"
    assert found.hubness[0].k == 7


@pytest.mark.parametrize("metric", ["l2", "ip"])
@pytest.mark.parametrize("k", [1, 4, 10, 25])
def test_relevance_by_sorting_and_scikit_learn(data, metric, k, rng):
    stored, queries, _, _ = data
    relevant = [
        {int(i): float(rng.integers(1, 4)) for i in rng.choice(N, rng.integers(1, 5), replace=False)}
        for _ in range(M)
    ]
    half = np.arange(M) % 2 == 0
    parts = {"seen": half, "unseen": ~half, "nobody": np.zeros(M, dtype=bool)}
    found = evaluate_relevance(stored, queries, relevant, k, metric=metric, parts=parts)
    told = {(own.measure, own.part): own for own in found.figures}
    assert len(told) == 12
    assert found.figures[0].measure == f"nDCG@{k}"
    for state, z in enumerate(stored):
        rows = order(z, queries.before, metric)
        truth, score = np.zeros((M, N)), np.zeros((M, N))
        for q, own in enumerate(relevant):
            truth[q, [*own]] = [*own.values()]
            score[q, rows[q]] = -np.arange(N)
        ndcg = np.array([ndcg_score(truth[q : q + 1], score[q : q + 1], k=k) for q in range(M)])
        hits = np.array([[int(i) in own for i in row[:k]] for row, own in zip(rows, relevant, strict=True)])
        values = {
            "nDCG": ndcg,
            "MRR": [1 / (1 + row.tolist().index(True)) if row.any() else 0 for row in hits],
            "hit rate": hits.any(axis=1),
            "recall": [row.sum() / len(own) for row, own in zip(hits, relevant, strict=True)],
        }
        for name, own in values.items():
            for part, mask in {"all": half | ~half, "seen": half, "unseen": ~half}.items():
                entry = told[f"{name}@{k}", part]
                assert (entry.before, entry.after)[state] == pytest.approx(np.mean(np.array(own)[mask])), name
                assert entry.n == mask.sum()
        np.testing.assert_array_equal(found.asked.right[state], hits.any(axis=1))
    assert found.asked.answer is None


def test_relevance_becomes_a_page_of_pairs(data, rng):
    stored, queries, _, _ = data
    relevant = [{int(i): 1.0} for i in rng.integers(0, N, M)]
    found = evaluate_relevance(stored, queries, relevant, 10)
    figures = make_report(found, Shown(range(N), range(M)), Told("a matrix")).figures
    assert (figures["task"], figures["classes"], figures["counts"]["classes"]) == ("pairs", None, None)
    tile = figures["summary"]["figures"][0]
    assert (tile["title"], tile["form"]) == ("nDCG@10", "fraction")
    assert (tile["before"], tile["after"]) == (found.figures[0].before, found.figures[0].after)
    assert figures["hubness"]["before"]["bad_share"] is None
    assert len(figures["summary"]["more"]) == 4


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_the_table_of_points_has_neighbours_in_their_order(data, metric, tmp_path):
    stored, queries, y, truth = data
    found = evaluate_classes(stored, queries, y, truth, Pair(3, 3), metric=metric)
    make_report(found, Shown(range(N), range(M)), Told("a matrix")).atlas(tmp_path / "points.parquet")
    table = pq.read_table(tmp_path / "points.parquet").to_pydict()
    assert table["kind"] == ["item"] * N + ["query"] * M
    near = [own["ids"] for own in table["neighbors"][N:]]
    assert near == order(stored.after, queries.after, metric)[:, :10].tolist()


# --- the verdict --------------------------------------------------------------------------------------------


def judged(before, after, metric="l2"):
    """The verdict on objects of two classes that are asked with queries near the class they belong to."""
    y, truth = np.repeat(["a", "b"], 10), np.tile(["a", "b"], 20)
    queries = np.array([[0.0, 1.0] if own == "a" else [1.0, 0.0] for own in truth])
    queries += 0.01 * np.random.default_rng(0).standard_normal(queries.shape)
    found = evaluate_classes(Pair(before, after), Pair(queries, queries), y, truth, Pair(1, 1), metric=metric)
    return verdict(found)


GOOD = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0) + 0.01 * np.random.default_rng(1).standard_normal(
    (20, 2)
)
BAD = GOOD[::-1].copy()


def test_verdicts():
    assert judged(BAD, GOOD)["kind"] == "move"
    assert judged(GOOD, BAD)["kind"] == "harmful"
    assert "L2" in judged(GOOD, BAD)["title"]
    assert judged(GOOD, 1.001 * GOOD)["kind"] == "no gain"
    assert judged(GOOD, GOOD)["words"].startswith("The items were not moved")
    shorter = GOOD * np.repeat([[1], [1e-6]], 10, axis=0)  # one class: by inner product it answers nobody
    assert judged(GOOD, shorter)["kind"] == "no gain"
    harmful = judged(GOOD, shorter, "ip")
    assert harmful["kind"] == "harmful"
    assert "inner product" in harmful["title"]
    assert "length 1" in harmful["words"]


def test_a_figure_of_one_query_has_no_interval():
    found = figure("accuracy", "all", np.array([0.0]), np.array([1.0]))
    assert (found.n, found.before, found.after) == (1, 0, 1)
    assert not found.low > 0  # one query proves nothing
    assert not found.high < 0
