"""Before and after by every metric, against sorting all products and distances; and what is made of it."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import skew
from sklearn.metrics import ndcg_score

from hubless.evaluation import BeforeAfter, evaluate_classes, evaluate_relevance, measure_change
from hubless.report.details import Captions
from hubless.report.report import ModelDescription, make_report
from hubless.report.verdict import verdict
from tests import reference

N, M, D = 120, 50, 5


@pytest.fixture
def data(rng):
    """Objects of very different lengths before and after, queries, classes of both."""
    X = rng.standard_normal((N, D)) * rng.uniform(0.2, 3, (N, 1))
    moved = X @ (np.eye(D) + 0.4 * rng.standard_normal((D, D)))
    queries = rng.standard_normal((M, D))
    y, truth = rng.choice(["ant", "bee", "cat"], N), rng.choice(["ant", "bee", "cat"], M)
    return BeforeAfter(X, moved), BeforeAfter(queries, queries), y, truth


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
    evaluation = evaluate_classes(stored, queries, y, truth, BeforeAfter(*ks), metric=metric)
    orders = [order(points, queries.before, metric) for points in stored]
    answers = [reference.vote(y[rows[:, :k]]) for rows, k in zip(orders, ks, strict=True)]
    rights = [classes == truth for classes in answers]
    first, second = evaluation.figures
    assert (first.before, first.after) == pytest.approx((rights[0].mean(), rights[1].mean()))
    shares = [(y[rows[:, :10]] == truth[:, None]).mean() for rows in orders]
    assert (second.measure, second.before, second.after) == ("precision@10", *map(pytest.approx, shares))
    assert evaluation.fixed == sum(b and not a for a, b in zip(*rights, strict=True))
    assert evaluation.broken == sum(a and not b for a, b in zip(*rights, strict=True))
    for hubness, rows, near in zip(evaluation.hubness, orders, evaluation.answers.neighbors, strict=True):
        np.testing.assert_array_equal(near, rows[:, :10])
        assert hubness.skewness == pytest.approx(skew(reference.k_occurrence(rows[:, :10], N)))
    assert (evaluation.answers.metric, evaluation.answers.ks) == (metric, ks)
    for k in set(ks):
        assert k == 1 or str(k) in evaluation.answered


def test_by_inner_product_lengths_count(data):
    """Else the two metrics above would prove the same."""
    stored, queries, _, _ = data
    assert np.any(order(stored.before, queries.before, "ip") != order(stored.before, queries.before, "l2"))


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_nearer_and_heavier_votes(data, metric, rng):
    stored, queries, y, truth = data
    weights = rng.random(N) + 0.05
    evaluation = evaluate_classes(
        stored, queries, y, truth, BeforeAfter(9, 9), metric=metric, by_distance=True, weights=weights
    )
    for z, answer in zip(stored, evaluation.answers.predicted, strict=True):
        rows = order(z, queries.before, metric)[:, :9]
        votes = weights[rows]
        if metric == "l2":  # by inner product there are no distances
            apart = [
                [reference.distance(x, z[i]) for i in items]
                for x, items in zip(queries.before, rows, strict=True)
            ]
            votes = votes * np.array([reference.inverse_distance_weights(distances) for distances in apart])
        np.testing.assert_array_equal(answer, reference.vote(y[rows], votes))


def test_more_neighbours_than_objects(data):
    stored, queries, y, truth = data
    few = BeforeAfter(*(points[:7] for points in stored))
    evaluation = evaluate_classes(few, queries, y[:7], truth, BeforeAfter(5, 50))
    assert evaluation.answers.ks == (5, 7)
    assert evaluation.figures[1].measure == "precision@7"
    assert evaluation.hubness[0].k == 7


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
    evaluation = evaluate_relevance(stored, queries, relevant, k, metric=metric, parts=parts)
    changes = {(change.measure, change.part): change for change in evaluation.figures}
    assert len(changes) == 12
    assert evaluation.figures[0].measure == f"nDCG@{k}"
    for state, z in enumerate(stored):
        rows = order(z, queries.before, metric)
        truth, score = np.zeros((M, N)), np.zeros((M, N))
        for q, answers in enumerate(relevant):
            truth[q, [*answers]] = [*answers.values()]
            score[q, rows[q]] = -np.arange(N)
        ndcg = np.array([ndcg_score(truth[q : q + 1], score[q : q + 1], k=k) for q in range(M)])
        hits = np.array(
            [[int(i) in answers for i in row[:k]] for row, answers in zip(rows, relevant, strict=True)]
        )
        values = {
            "nDCG": ndcg,
            "MRR": [1 / (1 + row.tolist().index(True)) if row.any() else 0 for row in hits],
            "hit rate": hits.any(axis=1),
            "recall": [row.sum() / len(answers) for row, answers in zip(hits, relevant, strict=True)],
        }
        for name, scores in values.items():
            for part, mask in {"all": half | ~half, "seen": half, "unseen": ~half}.items():
                entry = changes[f"{name}@{k}", part]
                assert (entry.before, entry.after)[state] == pytest.approx(np.mean(np.array(scores)[mask])), (
                    name
                )
                assert entry.n == mask.sum()
        np.testing.assert_array_equal(evaluation.answers.correct[state], hits.any(axis=1))
    assert evaluation.answers.predicted is None


def test_relevance_becomes_a_page_of_pairs(data, rng):
    stored, queries, _, _ = data
    relevant = [{int(i): 1.0} for i in rng.integers(0, N, M)]
    evaluation = evaluate_relevance(stored, queries, relevant, 10)
    figures = make_report(evaluation, Captions(range(N), range(M)), ModelDescription("a matrix")).figures
    assert (figures["task"], figures["classes"], figures["counts"]["classes"]) == ("pairs", None, None)
    tile = figures["summary"]["figures"][0]
    assert (tile["title"], tile["form"]) == ("nDCG@10", "fraction")
    assert (tile["before"], tile["after"]) == (evaluation.figures[0].before, evaluation.figures[0].after)
    assert figures["hubness"]["before"]["bad_share"] is None
    assert len(figures["summary"]["more"]) == 4


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_the_table_of_points_has_neighbours_in_their_order(data, metric, tmp_path):
    stored, queries, y, truth = data
    evaluation = evaluate_classes(stored, queries, y, truth, BeforeAfter(3, 3), metric=metric)
    make_report(evaluation, Captions(range(N), range(M)), ModelDescription("a matrix")).atlas(
        tmp_path / "points.parquet"
    )
    table = pq.read_table(tmp_path / "points.parquet").to_pydict()
    assert table["kind"] == ["item"] * N + ["query"] * M
    near = [row["ids"] for row in table["neighbors"][N:]]
    assert near == order(stored.after, queries.after, metric)[:, :10].tolist()


# --- the verdict --------------------------------------------------------------------------------------------


def judged(before, after, metric="l2"):
    """The verdict on objects of two classes with queries near the class they belong to."""
    y, truth = np.repeat(["a", "b"], 10), np.tile(["a", "b"], 20)
    queries = np.array([[0.0, 1.0] if name == "a" else [1.0, 0.0] for name in truth])
    queries += 0.01 * np.random.default_rng(0).standard_normal(queries.shape)
    evaluation = evaluate_classes(
        BeforeAfter(before, after), BeforeAfter(queries, queries), y, truth, BeforeAfter(1, 1), metric=metric
    )
    return verdict(evaluation).as_dict()


GOOD = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0) + 0.01 * np.random.default_rng(1).standard_normal(
    (20, 2)
)
BAD = GOOD[::-1].copy()


def test_verdicts():
    assert judged(BAD, GOOD)["kind"] == "move"
    assert judged(GOOD, BAD)["kind"] == "harmful"
    for metric in ("l2", "cosine"):  # nothing says that another metric would help
        assert judged(GOOD, BAD, metric)["title"] == "Worse: do not move the items"
    assert judged(GOOD, 1.001 * GOOD)["kind"] == "no gain"
    assert judged(GOOD, GOOD)["words"].startswith("The items were not moved")
    shorter = GOOD * np.repeat([[1], [1e-6]], 10, axis=0)  # one class: by inner product it answers nobody
    assert judged(GOOD, shorter)["kind"] == "no gain"
    harmful = judged(GOOD, shorter, "ip")
    assert harmful["kind"] == "harmful"
    assert "inner product" in harmful["title"]
    assert "length 1" in harmful["words"]


def test_a_figure_of_one_query_has_no_interval():
    change = measure_change("accuracy", "all", np.array([0.0]), np.array([1.0]))
    assert (change.n, change.before, change.after) == (1, 0, 1)
    assert not change.low > 0  # one query proves nothing
    assert not change.high < 0
