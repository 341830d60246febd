"""Every formula by plain loops; exact corrections with a column, and without one where queries are alike."""

import json
from pathlib import Path

import numpy as np
import pytest

from hubless.arrays import to_numpy
from hubless.corrections import CSLS, NNN, Sinkhorn
from hubless.corrections.formulas import query_potentials, soft_maximum
from hubless.hubness import k_occurrence
from tests import reference
from tests.corrections.cases import TABLE, each_metric
from tests.corrections.oracle_data import oracle_data

ORACLE = json.loads((Path(__file__).parent / "oracle" / "nnn_retrieval.json").read_text())["cases"]


def as_lists(gain, bias):
    return (None if gain is None else to_numpy(gain)), to_numpy(bias)


def check_same(found, truth, tolerance=1e-9):
    (gain, bias), (true_gain, true_bias) = as_lists(*found), truth
    assert (gain is None) == (true_gain is None)
    if gain is not None:
        np.testing.assert_allclose(gain, true_gain, rtol=tolerance)
    np.testing.assert_allclose(bias, true_bias, rtol=tolerance, atol=tolerance)


@each_metric
def test_bias_is_that_of_plain_loops(asarray, log, row, metric):
    fitted = row.new(metric).fit(asarray(log.queries), asarray(log.objects))
    for Z in (log.objects, log.later):
        truth = row.of_loops(log.queries, log.objects, Z, metric)
        check_same(fitted.bias(asarray(Z)), truth)
        assert np.any(np.asarray(truth[1]) != truth[1][0]) or truth[0] is not None  # it says something


@each_metric
def test_single_precision_is_near(asarray, log, row, metric):
    single = [part.astype(np.float32) for part in log]
    fitted = row.new(metric).fit(asarray(single[0]), asarray(single[1]))
    truth = row.of_loops(*single[:3], metric)
    check_same(fitted.bias(asarray(single[2])), truth, 2e-5)


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if "l2" in row.metrics])
def test_a_column_is_exact(asarray, log, alike, name):
    row = TABLE[name]
    log = alike if row.scales else log
    fitted = row.new("l2", column=True).fit(asarray(log.queries), asarray(log.objects))
    stored = to_numpy(fitted.move(asarray(log.objects)))
    assert stored.shape == (100, 13)
    asked = np.column_stack([log.asked, np.zeros(len(log.asked))])
    truth = reference.corrected(
        log.asked, log.objects, *row.of_loops(log.queries, log.objects, log.objects, "l2"), "l2"
    )
    _, found = reference.nearest(asked, stored, 100)
    np.testing.assert_array_equal(found, np.argsort(-truth, axis=1, kind="stable"))
    assert fitted.agreement(asarray(log.asked), asarray(log.objects)) == 1.0


def answers(queries, objects, metric, k):
    """The k nearest by a metric, by plain loops."""
    return np.argsort(-reference.corrected(queries, objects, None, [0.0] * len(objects), metric), axis=1)[
        :, :k
    ]


@each_metric
def test_no_column_is_needed_for_queries_that_are_alike(asarray, alike, row, metric):
    fitted = row.new(metric).fit(asarray(alike.queries), asarray(alike.objects))
    gain, bias = row.of_loops(alike.queries, alike.objects, alike.objects, metric)
    truth = reference.corrected(alike.asked, alike.objects, gain, bias, metric)
    moved = to_numpy(fitted.move(asarray(alike.objects)))
    assert moved.shape == alike.objects.shape
    wanted = np.argsort(-truth, axis=1)[:, :10]
    np.testing.assert_array_equal(answers(alike.asked, moved, metric, 10), wanted)
    assert np.any(wanted != answers(alike.asked, alike.objects, metric, 10))  # it changes something
    assert fitted.agreement(asarray(alike.asked), asarray(alike.objects)) == 1.0


@each_metric
def test_agreement_is_the_share_of_answers_that_are_those_of_the_exact_correction(log, alike, row, metric):
    log = alike if row.scales else log
    fitted = row.new(metric).fit(log.queries, log.objects)
    truth = reference.corrected(log.asked, log.objects, *map(_list, fitted.bias(log.objects)), metric)
    wanted = np.argsort(-truth, axis=1)[:, :7]
    found = answers(log.asked, fitted.move(log.objects), metric, 7)
    shared = [len({*a} & {*b}) / 7 for a, b in zip(wanted.tolist(), found.tolist(), strict=True)]
    assert fitted.agreement(log.asked, log.objects, k=7) == pytest.approx(reference.mean(shared))


def _list(values):
    return None if values is None else list(values)


def test_agreement_tells_the_error_of_queries_that_differ():
    rng = np.random.default_rng(0)
    queries, objects = rng.standard_normal((200, 3)), rng.standard_normal((100, 3))  # no direction in common
    assert NNN(1.0, 4, metric="ip").fit(queries, objects).agreement(queries, objects) < 0.9
    alike = np.column_stack([queries, np.full(200, 5.0)])
    wide = np.column_stack([objects, np.zeros(100)])
    assert NNN(1.0, 4, metric="ip").fit(alike, wide).agreement(alike, wide) > 0.98


# --- what comes later, and repeated queries -----------------------------------------------------------------


@each_metric
@pytest.mark.parametrize("column", [False, True])
def test_objects_that_come_later_move_as_if_they_had_been_there(log, row, metric, column):
    if column and metric != "l2":
        return
    fitted = row.new(metric, column=column).fit(log.queries, log.objects)
    moved, chosen = fitted.move(log.objects), [0, 1, 7, 30]
    np.testing.assert_allclose(fitted.move(log.objects[chosen]), moved[chosen], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fitted.move(log.objects[:1]), moved[:1], rtol=1e-12, atol=1e-12)


@each_metric
def test_repeated_queries_count_once(log, row, metric):
    often = np.vstack([log.queries, np.repeat(log.queries[:3], 50, axis=0)])
    once, twice = (row.new(metric).fit(queries, log.objects) for queries in (log.queries, often))
    for a, b in zip(once.bias(log.later), twice.bias(log.later), strict=True):
        np.testing.assert_array_equal(a, b)


@each_metric
def test_blocks_do_not_matter(log, row, metric, monkeypatch):
    whole = row.new(metric).fit(log.queries, log.objects).move(log.objects)
    monkeypatch.setattr("hubless.corrections.formulas.CELLS", 130)
    monkeypatch.setattr("hubless.corrections.directions.ROWS", 7)
    monkeypatch.setattr("hubless.corrections.softmax.ROWS", 7)
    monkeypatch.setattr("hubless.corrections.correction.ROWS", 7)
    parts = row.new(metric).fit(log.queries, log.objects).move(log.objects)
    np.testing.assert_allclose(parts, whole, rtol=1e-10, atol=1e-10)


# --- the formulas one by one --------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.3, 5.0])
def test_potentials_give_equal_shares(asarray, rng, beta):
    S = rng.standard_normal((9, 14))
    f, b = reference.potentials(S.tolist(), beta, 600)
    ours = to_numpy(query_potentials(asarray(S), beta, 600))
    np.testing.assert_allclose(ours, f, atol=1e-9)
    bias = to_numpy(soft_maximum(asarray(S), beta, asarray(ours)))
    np.testing.assert_allclose(bias, b, atol=1e-9)
    plan = np.exp(beta * (S - ours[None, :] - bias[:, None]))
    np.testing.assert_allclose(plan.sum(axis=1), 14, rtol=1e-6)  # each object has an equal share
    np.testing.assert_allclose(plan.sum(axis=0), 9, rtol=1e-6)  # of queries that are all given away


def test_sinkhorn_evens_out_how_often_objects_are_nearest(log):
    before = answers(log.queries, log.objects, "cosine", 5)
    fitted = Sinkhorn(8.0, 1.0).fit(log.queries, log.objects)
    truth = reference.corrected(log.queries, log.objects, None, list(fitted.bias(log.objects)[1]), "cosine")
    after = np.argsort(-truth, axis=1)[:, :5]
    spread = [np.std(k_occurrence(found, 100)) for found in (before, after)]
    assert spread[1] < 0.5 * spread[0]


def test_soft_maximum_is_between_mean_and_maximum(rng):
    S = rng.standard_normal((5, 30))
    np.testing.assert_allclose(soft_maximum(S, 1e-7), S.mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(soft_maximum(S, 1e5), S.max(axis=1), atol=1e-4)
    np.testing.assert_array_equal(soft_maximum(1e4 * S, 1.0) > 0, True)  # nothing overflows


# --- the authors' package -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ORACLE, ids=lambda case: f"{case['strength']}-{case['n_neighbors']}")
def test_nnn_is_that_of_its_authors(case):
    logged, objects, queries = oracle_data()
    fitted = NNN(case["strength"], case["n_neighbors"]).fit(logged, objects)
    _, bias = fitted.bias(objects)
    np.testing.assert_allclose(bias, case["strength"] * np.array(case["means"]), rtol=1e-12)
    scores = queries @ objects.T - bias
    np.testing.assert_array_equal(np.argsort(-scores, axis=1)[:, :10], case["answers"])
    np.testing.assert_allclose(-np.sort(-scores, axis=1)[:, :10], case["scores"], rtol=1e-12)


def test_csls_orders_as_its_definition(log):
    """2 s(q, z) − r(q) − r(z), with r the mean of the 10 nearest of the other side."""
    queries, objects = (np.array(reference.in_space(part, "cosine")) for part in log[:2])
    S = queries @ objects.T
    r_objects = np.sort(S, axis=0)[-10:].mean(axis=0)
    r_queries = np.sort(S, axis=1)[:, -10:].mean(axis=1)
    truth = 2 * S - r_queries[:, None] - r_objects[None, :]
    ours = S - CSLS().fit(log.queries, log.objects).bias(log.objects)[1]
    np.testing.assert_array_equal(np.argsort(-ours, axis=1), np.argsort(-truth, axis=1))


def test_a_column_does_not_show_how_objects_were_batched(rng):
    """Sums in float32 differ by their order, and roots of nearly 0 would differ by far more."""
    objects = (3 * rng.standard_normal((300, 16)) + 5).astype(np.float32)
    queries = (objects[:150] + rng.standard_normal((150, 16))).astype(np.float32)
    fitted = NNN(0.5, 4, metric="l2", column=True).fit(queries, objects)
    whole = fitted.move(objects)
    for size in (1, 7, 40):
        parts = [fitted.move(objects[start : start + size]) for start in range(0, 300, size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, atol=2e-5)
    lower = fitted.bias(objects)[
        1
    ].argmin()  # an object that needs less than any learned from has its root, too
    outward = objects[[lower]] + 0.05 * (objects[[lower]] - queries.mean(axis=0))
    assert fitted.bias(outward)[1][0] < fitted.bias(objects)[1][lower]
    difference = fitted.move(outward)[0, -1] ** 2 - whole[lower, -1] ** 2
    expected = 2 * (fitted.bias(outward)[1][0] - fitted.bias(objects)[1][lower])
    assert difference == pytest.approx(expected, rel=1e-2)
