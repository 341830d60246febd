"""HoldHubs: what is held, by how much, and what stays exactly where it is."""

import numpy as np
import pytest

from hubless.corrections import HoldHubs
from tests import reference
from tests.corrections.cases import METRICS

N = 400


@pytest.fixture(scope="module")
def planted():
    """Unit queries in three groups, unit objects, and the centroids of the groups among them, last."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((3, 48))
    queries = np.repeat(centres, 60, axis=0) + 2 * rng.standard_normal((180, 48))
    objects = rng.standard_normal((N, 48)) + centres[rng.integers(0, 3, N)]
    queries, objects = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, objects))
    centroids = queries.reshape(3, 60, 48).mean(axis=1)
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    return queries, np.vstack([objects, centroids])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_planted_centroids_are_held_and_nothing_else_changes_a_bit(planted, metric, dtype):
    queries, objects = (rows.astype(dtype) for rows in planted)
    fitted = HoldHubs(metric=metric).fit(queries, objects)
    _, bias = fitted.bias(objects)
    held = np.flatnonzero(bias)
    assert {*range(N, N + 3)} <= {*held.tolist()}
    assert len(held) < 0.05 * len(objects)
    free = np.delete(np.arange(len(objects)), held)
    moved = fitted.move(objects)
    assert moved[free].tobytes() == objects[free].tobytes()
    assert np.all(np.any(moved[held] != objects[held], axis=1))


@pytest.mark.parametrize("metric", METRICS)
def test_held_objects_keep_at_most_the_allowed_share(planted, metric):
    queries, objects = planted
    fitted = HoldHubs(metric=metric).fit(queries, objects)
    _, bias = fitted.bias(objects)
    truth = reference.corrected(queries, objects, None, bias.tolist(), metric)
    answers = np.argsort(-truth, axis=1, kind="stable")[:, :10]
    before = reference.corrected(queries, objects, None, [0.0] * len(objects), metric)
    before = np.argsort(-before, axis=1, kind="stable")[:, :10]
    for i in np.flatnonzero(bias):
        assert fitted.weights_[(before == i).any(axis=1)].sum() > fitted.most_
        assert fitted.weights_[(answers == i).any(axis=1)].sum() <= fitted.allowed_ * (1 + 1e-5)


def test_what_answers_a_popular_question_is_no_hub():
    rng = np.random.default_rng(0)
    objects, others = rng.standard_normal((N, 24)), rng.standard_normal((60, 24))
    popular = objects[0] + 1e-3 * rng.standard_normal((200, 24))  # one question in many words
    fitted = HoldHubs(metric="l2").fit(np.vstack([others, popular]), objects)
    assert fitted.most_ < 200  # which it answers
    assert fitted.weights_[60:].sum() < 2
    assert fitted.bias(objects)[1][0] == 0
    assert fitted.move(objects)[0].tobytes() == objects[0].tobytes()


@pytest.mark.parametrize("words", [0.3, 0.6])
def test_an_object_that_equals_a_popular_question_is_no_hub(words):
    rng = np.random.default_rng(0)
    objects, others = rng.standard_normal((300, 48)), rng.standard_normal((200, 48))
    popular = objects[0] + words * rng.standard_normal((60, 48))
    fitted = HoldHubs().fit(np.vstack([others, popular]), objects)
    assert fitted.most_queries_ < 60  # which it answers
    assert fitted.bias(objects)[1][0] == 0


@pytest.mark.parametrize("metric", METRICS)
def test_copies_of_a_planted_object_are_held_back(metric):
    rng = np.random.default_rng(0)
    objects, queries = rng.standard_normal((500, 48)), rng.standard_normal((200, 48)) + 0.7
    objects, queries = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (objects, queries))
    planted = np.repeat(queries.mean(axis=0, keepdims=True), 10, axis=0)  # all ten answers of many queries
    planted /= np.linalg.norm(planted, axis=1, keepdims=True)
    fitted = HoldHubs(metric=metric).fit(queries, np.vstack([objects, planted]))
    assert fitted.weights_.sum() < 20  # they make many queries one question
    assert (fitted.bias(planted)[1] > 0).all()


@pytest.mark.parametrize("copies", [11, 40])
@pytest.mark.parametrize("metric", METRICS)
def test_more_copies_than_answers_are_held_back_from_queries(metric, copies):
    rng = np.random.default_rng(0)
    objects, queries = rng.standard_normal((400, 48)), rng.standard_normal((600, 48)) + 0.7
    objects, queries = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (objects, queries))
    middle = queries[:400].mean(axis=0)
    stored = np.vstack([objects, np.tile(middle / np.linalg.norm(middle), (copies, 1))])
    correction = HoldHubs(metric=metric).fit(queries[:400], stored)

    def share(Z):
        """The share of the answers to new queries that are copies, by plain search."""
        scores = [Z @ q - (metric != "ip") * 0.5 * (Z * Z).sum(axis=1) for q in queries[400:]]
        return np.mean([np.argsort(-row, kind="stable")[:10] >= 400 for row in scores])

    assert share(stored) > 0.9
    assert share(correction.move(stored)) < 0.1


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("metric", METRICS)
def test_equal_objects_stay_equal(metric, value):
    """Whether one is an answer is decided by rounding alone."""
    queries = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)
    objects = np.full((200, 8), value, dtype=np.float32)
    np.testing.assert_array_equal(
        HoldHubs(metric=metric).fit(queries, objects).bias(objects)[1], np.zeros(200)
    )


@pytest.mark.parametrize("metric", METRICS)
def test_few_false_alarms_where_answers_are_random(metric):
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        queries, objects = np.eye(60)[rng.integers(0, 60, 50)], rng.standard_normal((300, 60))
        objects /= np.linalg.norm(objects, axis=1, keepdims=True)
        alarms += HoldHubs(metric=metric).fit(queries, objects).bias(objects)[1].any()
    assert alarms <= 4  # 5 % are allowed


def test_weights_and_limits_are_those_of_loops(planted):
    queries, objects = planted
    fitted = HoldHubs(n_answers=8, metric="ip").fit(queries, objects)
    answers = np.argsort(-(queries @ objects.T), axis=1)[:, :8].tolist()
    np.testing.assert_allclose(fitted.weights_, reference.question_weights(answers))
    total = round(sum(reference.question_weights(answers)))
    assert fitted.most_ == reference.binomial_limit(0.05 / len(objects), total, 8 / len(objects))
