"""Bad and odd logs: refused with words that help, or right."""

import numpy as np
import pytest

from hubless.arrays import to_numpy
from hubless.corrections import CSLS, NNN, DisSimLocal, HoldHubs, InvertedSoftmax, LocalScaling
from tests.conftest import FOREIGN
from tests.corrections.cases import EACH, each_metric

NAN = np.array([[1.0, np.nan]])
GOOD = np.array([[1.0, 2.0], [2.0, 1.0], [0.5, 3.0]])


@pytest.mark.parametrize(
    ("queries", "objects", "message"),
    [
        (GOOD[:, :1], GOOD, "queries have 1 columns, objects 2.*fit_pairs"),
        (NAN, GOOD, "contains NaN"),
        (GOOD, NAN, "contains NaN"),
        (GOOD[:0], GOOD, "0 sample"),
        (GOOD, GOOD[:0], "0 sample"),
        (GOOD[0], GOOD, "Expected 2D array"),
    ],
)
def test_what_cannot_be_learned_from(queries, objects, message):
    with pytest.raises(ValueError, match=message):
        NNN().fit(queries, objects)


@pytest.mark.parametrize(
    ("correction", "message"),
    [
        (NNN(-1.0), "strength must be a finite number of at least 0; got -1.0"),
        (NNN(np.nan), "strength must be"),
        (NNN(n_neighbors=0), "n_neighbors must be"),
        (NNN(metric="l1"), "metric must be one of 'l2', 'cosine', 'ip'; got 'l1'"),
        (NNN(column=True), r"changes Euclidean distances alone; got metric='cosine'. Use column=False"),
        (NNN(column=True, metric="ip"), "changes Euclidean distances alone"),
        (InvertedSoftmax(0.0), "sharpness must be a finite number above 0"),
        (HoldHubs(2.0), "rate must be a number from 0 to 1; got 2.0"),
        (HoldHubs(n_answers=0), "n_answers must be"),
        (LocalScaling(metric="ip"), 'LocalScaling is defined by distances: metric must be "l2" or "cosine"'),
        (DisSimLocal(metric="ip"), "DisSimLocal is defined by distances"),
    ],
)
def test_parameters_that_cannot_be(correction, message):
    with pytest.raises(ValueError, match=message):
        correction.fit(GOOD, GOOD)


def test_objects_of_another_width_are_refused():
    fitted = NNN().fit(GOOD, GOOD)
    for call in (fitted.move, fitted.bias, lambda Z: fitted.agreement(GOOD, Z)):
        with pytest.raises(ValueError, match=r"objects have 3 columns; the correction was learned .* of 2"):
            call(np.ones((2, 3)))
    with pytest.raises(ValueError, match="k must be"):
        fitted.agreement(GOOD, GOOD, k=0)


@pytest.mark.parametrize("asarray", FOREIGN)
def test_mixtures_of_libraries_are_refused(asarray):
    with pytest.raises(TypeError, match="one array library"):
        NNN().fit(GOOD, asarray(GOOD))
    with pytest.raises(TypeError, match="one array library"):
        NNN().fit(GOOD, GOOD).move(asarray(GOOD))


@each_metric
@pytest.mark.parametrize("n_queries", [1, 2])
@pytest.mark.parametrize("n_objects", [1, 2, 5])
def test_few_queries_and_few_objects(rng, row, metric, n_queries, n_objects):
    queries, objects = rng.standard_normal((n_queries, 3)), rng.standard_normal((n_objects, 3))
    moved = row.new(metric).fit(queries, objects).move(objects)
    assert moved.shape == objects.shape
    assert np.isfinite(moved).all()


@each_metric
@pytest.mark.parametrize("kind", ["equal queries", "equal objects", "zeros", "the same"])
def test_constant_similarities_give_finite_objects(rng, row, metric, kind):
    queries, objects = rng.standard_normal((8, 3)), rng.standard_normal((9, 3))
    if kind == "equal queries":
        queries = np.repeat(queries[:1], 8, axis=0)
    elif kind == "equal objects":
        objects = np.repeat(objects[:1], 9, axis=0)
    elif kind == "zeros":
        queries, objects[0] = np.zeros((8, 3)), 0.0
    else:
        queries = objects = np.ones((9, 3))
    fitted = row.new(metric).fit(queries, objects)
    assert np.isfinite(fitted.move(objects)).all()
    assert np.isfinite(fitted.bias(objects)[1]).all()


@pytest.mark.parametrize(
    ("row", "metric"), [each for each in EACH if hasattr(each.values[0].correction, "strength")]
)
def test_strength_0_changes_no_answer(log, row, metric):
    fitted = row.new(metric, strength=0).fit(log.queries, log.objects)
    moved, as_given = fitted.move(log.objects), log.objects
    if metric == "cosine":
        as_given = as_given / np.linalg.norm(as_given, axis=1, keepdims=True)
    np.testing.assert_allclose(moved, as_given, rtol=1e-15)
    assert fitted.agreement(log.asked, log.objects) == 1.0


@pytest.mark.parametrize("metric", ["l2", "ip"])
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e19), (np.float64, 1e160)])
def test_squares_that_overflow_are_refused(metric, dtype, size):
    huge = (size * GOOD).astype(dtype)
    with pytest.raises(ValueError, match=r"the squares of queries overflow .* Divide queries and objects"):
        NNN(metric=metric).fit(huge, GOOD)
    fitted = NNN(metric=metric).fit(GOOD.astype(dtype), GOOD.astype(dtype))
    with pytest.raises(ValueError, match="the squares of objects overflow"):
        fitted.move(huge)


@pytest.mark.parametrize("size", [1e19, 1e-25])
def test_lengths_do_not_matter_under_cosine(size):
    plain, far = (NNN().fit(GOOD, (factor * GOOD).astype(np.float32)) for factor in (1.0, size))
    np.testing.assert_allclose(far.move(size * GOOD), plain.move(GOOD), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.uint8, bool])
def test_other_numbers_are_lifted(dtype):
    rows = np.array([[1, 2], [2, 1], [0, 3]]).astype(dtype)
    moved = CSLS(metric="l2").fit(rows, rows).move(rows)
    assert moved.dtype == (np.float32 if dtype == np.float16 else np.float64)
    truth = CSLS(metric="l2").fit(rows.astype(float), rows.astype(float)).move(rows.astype(float))
    np.testing.assert_allclose(moved, truth, atol=1e-3)


@each_metric
def test_results_stay_where_the_objects_are(asarray, log, row, metric):
    for dtype in (np.float32, np.float64):
        queries, objects, later = (asarray(part.astype(dtype)) for part in log[:3])
        fitted = row.new(metric).fit(queries, objects)
        moved = fitted.move(later)
        assert type(moved) is type(later)
        assert moved.dtype == later.dtype
        assert str(getattr(moved, "device", "")) == str(getattr(later, "device", ""))
        host = row.new(metric).fit(log.queries.astype(dtype), log.objects.astype(dtype))
        tolerance = 2e-3 if dtype == np.float32 else 1e-9
        truth = host.move(log.later.astype(dtype))
        np.testing.assert_allclose(to_numpy(moved), truth, rtol=tolerance, atol=tolerance)


@each_metric
def test_objects_of_another_precision(asarray, log, row, metric):
    fitted = row.new(metric).fit(asarray(log.queries), asarray(log.objects))
    single = to_numpy(fitted.bias(asarray(log.later.astype(np.float32)))[1])
    np.testing.assert_allclose(single, to_numpy(fitted.bias(asarray(log.later))[1]), rtol=1e-4, atol=1e-4)
