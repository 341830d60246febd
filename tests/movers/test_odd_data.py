"""Precision, odd data and bad input: movers give good numbers, or refuse with a reason."""

import re

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV
from hubless.arrays import to_numpy
from hubless.movers import (
    Balance,
    Chain,
    Denoise,
    KernelMove,
    LabelRidge,
    MoveLabeled,
    Regress,
    Scale,
    Shrink,
    Smooth,
    Stay,
    Steer,
    Whiten,
)
from hubless.movers.points import Points
from tests.tables import CASES, TABLE, each

# --- precision ----------------------------------------------------------------------------------------------


@each(CASES)
def test_float32_stays_and_is_near_float64(asarray, blobs, later, row):
    X, y, queries = blobs
    mover, truth = row.new(), row.new()
    stored = mover.fit_transform(asarray(X.astype(np.float32)), asarray(y))
    moved = mover.move(asarray(later[0].astype(np.float32)), asarray(later[1]))
    unmoved = mover.transform(asarray(queries.astype(np.float32)))
    assert {str(array.dtype).split(".")[-1] for array in (stored, moved, unmoved)} == {"float32"}
    expected = truth.fit_transform(X, y)
    np.testing.assert_allclose(to_numpy(stored)[:, :6], expected[:, :6], atol=2e-3)
    np.testing.assert_allclose(to_numpy(moved)[:, :6], truth.move(*later)[:, :6], atol=2e-3)
    apart = cdist(truth.transform(queries), expected)
    np.testing.assert_allclose(cdist(to_numpy(unmoved), to_numpy(stored)), apart, atol=2e-3)


@each({name: row for name, row in CASES.items() if not row.about_origin})
def test_far_from_the_origin_is_like_near(blobs, later, row):
    X, y, queries = blobs
    near, far = row.new(), row.new()
    stored, moved = near.fit_transform(X, y), far.fit_transform(X + 1e4, y)
    np.testing.assert_allclose(moved[:, :6] - 1e4, stored[:, :6], atol=1e-4)
    np.testing.assert_allclose(
        (far.move(later[0] + 1e4, later[1]) - near.move(*later))[:, :6], 1e4, atol=1e-3
    )
    apart = cdist(near.transform(queries), stored)
    np.testing.assert_allclose(cdist(far.transform(queries + 1e4), moved), apart, atol=1e-4)


@each({name: row for name, row in CASES.items() if not row.has_units and not row.about_origin})
@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_the_unit_of_the_data_does_not_matter(blobs, row, size):
    X, y, _ = blobs
    mover = row.new()
    scaled = mover.fit_transform(X * size, y) / size
    np.testing.assert_allclose(scaled, row.new().fit_transform(X, y), rtol=1e-5, atol=1e-5)
    short = mover.fit_transform((X * size).astype(np.float32), y)
    np.testing.assert_allclose(short.astype(float)[:, :6] / size, scaled[:, :6], atol=5e-3)


@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_numbers_of_numpy_do_not_decide_the_precision(blobs, number):
    X, y, _ = blobs
    for mover in (Scale(number(0.3)), Shrink(number(0.3)), Smooth(2, step=number(0.3)), Balance(number(0.3))):
        assert mover.fit_transform(X.astype(np.float32), y).dtype == np.float32


def test_kernels_of_far_objects_keep_their_digits(blobs):
    X, y, _ = blobs
    near = KernelMove(n_landmarks=20).fit_transform(X, y) - X
    far = KernelMove(n_landmarks=20).fit_transform(X + 1e6, y) - (X + 1e6)
    np.testing.assert_allclose(far, near, atol=1e-6)


# --- odd data -----------------------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
ROWS = RNG.standard_normal((30, 4))
ODD = {
    "identical": (np.full((10, 4), 0.1), np.arange(10) % 2),
    "one class": (ROWS, np.zeros(30, int)),
    "two of one class": (ROWS[:2], np.array([0, 0])),
    "two of two classes": (ROWS[:2], np.array([0, 1])),
    "more dimensions than objects": (RNG.standard_normal((10, 40)), np.arange(10) % 2),
    "duplicates": (np.repeat(ROWS[:10], 3, axis=0), np.arange(30) // 3 % 2),
    "doubles of other classes": (np.repeat(ROWS[:15], 2, axis=0), np.arange(30) % 2),
    "one column": (ROWS[:, :1], np.arange(30) % 3),
    "constant column": (np.column_stack([ROWS, np.ones(30)]), np.arange(30) % 3),
}


def check_odd_data(row, data, asarray):
    X, y = ODD[data]
    mover = row.new()
    is_refused = (data == "two of two classes" and row.needs_pairs) or (
        data == "identical" and row.needs_spread
    )
    if is_refused:
        with pytest.raises(ValueError, match=r"(no pair|nothing) to learn from.*more objects per"):
            mover.fit(asarray(X), asarray(y))
        return
    stored, moved = mover.fit_transform(asarray(X), asarray(y)), mover.move(asarray(X), asarray(y))
    for array in map(to_numpy, (stored, moved)):
        assert np.isfinite(array).all()
        assert array.shape == (len(X), X.shape[1] + row.adds_column)
    assert np.abs(to_numpy(stored)).max() < 100 * max(np.abs(X).max(), row.about_origin)


@each(CASES)
@pytest.mark.parametrize("data", ODD)
def test_odd_data_works_or_is_refused_with_a_reason(row, data):
    check_odd_data(row, data, np.asarray)


@pytest.mark.torch
@each(CASES)
@pytest.mark.parametrize("data", ["identical", "duplicates"])
def test_odd_tensors_work_or_are_refused_with_a_reason(row, data):
    check_odd_data(row, data, pytest.importorskip("torch").as_tensor)


@pytest.mark.parametrize("mover", [Smooth(3), Shrink(1.0)])
def test_an_object_alone_in_its_class_stays(asarray, blobs, mover):
    X, y, _ = blobs
    moved = clone(mover).fit_transform(asarray(X), asarray(y))
    np.testing.assert_allclose(to_numpy(moved)[y == 3], X[y == 3], atol=1e-12)


@pytest.mark.parametrize("mover", [Stay(), Shrink(), Whiten(), MoveLabeled(), Chain([Balance(), Steer()])])
def test_objects_alone_in_their_class_are_counted(blobs, mover):
    X, y, _ = blobs
    assert clone(mover).fit(X, y).n_singletons_ == 1
    assert MoveLabeledClassifier(mover=mover).fit(X, y).n_singletons_ == 1


def test_smoothing_by_distance_takes_doubles_for_what_they_are_now():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]]), np.zeros(3, dtype=int)
    Z = X * [1, 0]  # moved, the last is a double of the first, whose nearest it was not
    targets = np.array([[1, 2], [0, 2], [0, 1]])
    moved = Smooth(2, "distance")._learn(Points(X, Z, y, 1, None, targets)).Z
    np.testing.assert_allclose(moved[[0, 2]], 0.0)


@each({name: row for name, row in CASES.items() if row.squares_overflow})
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_squares_that_overflow_are_refused(blobs, row):
    X, y, _ = blobs
    with pytest.raises(ValueError, match="overflow float64; divide X by its largest value"):
        row.new().fit(X * 1e200, y)


def test_smoothing_with_equal_weights_squares_nothing(blobs):
    X, y, _ = blobs
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isfinite(Smooth(3).fit_transform(X * 1e200, y)).all()


# --- bad input ----------------------------------------------------------------------------------------------

BAD_PARAMETERS = [
    (Scale(1.5), "g must be a number from 0 to 1; got 1.5"),
    (Scale("half"), "g must be a number from 0 to 1; got 'half'"),
    (Shrink(-0.1), "step must be a number from 0 to 1; got -0.1"),
    (Shrink(np.nan), "step must be a number from 0 to 1; got nan"),
    (Smooth(0), "n_neighbors must be a whole number of at least 1; got 0"),
    (Smooth(weights="rank"), "weights must be one of 'uniform', 'distance'; got 'rank'"),
    (Smooth(step=2), "step must be a number from 0 to 1; got 2"),
    (MoveLabeled("auto"), "alpha must be a number of at least 0, or \"scale\"; got 'auto'"),
    (MoveLabeled(toward="mean"), "toward must be one of 'zero', 'identity'; got 'mean'"),
    (MoveLabeled(n_targets=1.5), "n_targets must be a whole number of at least 1; got 1.5"),
    (LabelRidge(-1.0), 'alpha must be a number of at least 0, or "scale"; got -1.0'),
    (LabelRidge(n_targets=0), "n_targets must be a whole number of at least 1; got 0"),
    (LabelRidge(keep=1.1), "keep must be a number from 0 to 1; got 1.1"),
    (Balance(-1), "strength must be a finite number of at least 0; got -1"),
    (Balance(n_neighbors=0), "n_neighbors must be a whole number of at least 1; got 0"),
    (Balance(n_proxies=0), "n_proxies must be a whole number of at least 1; got 0"),
    (Steer(np.inf), "strength must be a finite number of at least 0; got inf"),
    (Steer(alpha=0), "alpha must be a finite number above 0; got 0"),
    (Whiten(0.0), "alpha must be a finite number above 0; got 0.0"),
    (Whiten(True), "alpha must be a finite number above 0; got True"),
    (Denoise(0), "power must be a finite number above 0; got 0"),
    (Denoise(n_targets=0), "n_targets must be a whole number of at least 1; got 0"),
    (Denoise(alpha=-1), "alpha must be a finite number above 0; got -1"),
    (Denoise(n_iter=0), "n_iter must be a whole number of at least 1; got 0"),
    (KernelMove(0.0), "alpha must be a finite number above 0; got 0.0"),
    (KernelMove(n_targets=0), "n_targets must be a whole number of at least 1; got 0"),
    (KernelMove(gamma=0), "gamma must be a finite number above 0; got 0"),
    (KernelMove(n_landmarks=0), "n_landmarks must be a whole number of at least 1; got 0"),
    (Regress("ridge"), "regressor must have fit and predict.*got 'ridge'"),
    (Regress(n_targets=0), "n_targets must be a whole number of at least 1; got 0"),
    (Chain([Shrink(2)]), "step must be a number from 0 to 1; got 2"),
    (Chain([Shrink]), r"a chain is made of movers, for example Chain\(\[Whiten.*got \[<class"),
    (Chain(Shrink()), r"a chain is made of movers.*got Shrink\(\)"),
    (MoveLabeledClassifier(mover="auto"), r"mover must be one of hubless.movers.*got 'auto'.*CV\(mover="),
    (MoveLabeledClassifier(mover=Shrink), "mover must be one of hubless.movers, such as Shrink.*got <class"),
    (MoveLabeledClassifier(mover=Shrink(3)), "step must be a number from 0 to 1; got 3"),
]


@pytest.mark.parametrize(("model", "message"), BAD_PARAMETERS, ids=lambda value: repr(value)[:60])
def test_bad_parameters_are_refused(blobs, model, message):
    X, y, _ = blobs
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        model.fit(X, y)


@each(CASES)
def test_later_objects_need_their_classes_where_the_mover_uses_labels(blobs, row):
    X, y, _ = blobs
    mover = row.new().fit(X, y + 10)
    if not row.uses_labels:
        np.testing.assert_array_equal(mover.move(X), mover.move(X, y))
        return
    kind = type(mover).__name__
    with pytest.raises(
        ValueError, match=rf"{kind} moves an object by its class; got no y. Call move\(Z, y\)"
    ):
        mover.move(X)
    with pytest.raises(ValueError, match=f"y has classes that {kind} was not fitted with: 3, 99. Fit again"):
        mover.move(X[:4], np.array([10, 99, 3, 11]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mover.move(X, y[:-1])


@each(TABLE)
def test_bad_later_objects_and_queries(blobs, row):
    X, y, _ = blobs
    mover = row.new().fit(X, y)
    for method in (mover.transform, mover.move):
        with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 6"):
            method(X[:, :5])
    with pytest.raises(ValueError, match="the target y is None: give the class of each object"):
        mover.fit(X)


@each(TABLE)
def test_arrays_of_another_library_are_refused(blobs, row):
    strict = pytest.importorskip("array_api_strict")
    X, y, _ = blobs
    mover = row.new().fit(X, y)
    for method in (mover.transform, mover.move):
        with pytest.raises(ValueError, match=r"must use the same namespace.*got .*, fitted on"):
            method(strict.asarray(X))


@pytest.mark.torch
@pytest.mark.parametrize("mover", [Shrink(), Whiten(), Chain([Balance()])])
def test_tensors_are_refused_where_arrays_were_learned_from(blobs, mover):
    torch = pytest.importorskip("torch")
    X, y, _ = blobs
    mover = clone(mover).fit(X, y)
    for method in (mover.transform, mover.move):
        with pytest.raises(
            ValueError, match=r"must use the same namespace.*got torch.Tensor on cpu, fitted on"
        ):
            method(torch.as_tensor(X))


def test_a_refused_fit_leaves_the_model_not_fitted(blobs):
    X, _, _ = blobs
    mover = MoveLabeled()
    with pytest.raises(ValueError, match="no pair to learn from"):
        mover.fit(X[:10], np.arange(10))
    with pytest.raises(NotFittedError):
        mover.transform(X)


def test_votes_by_distance_are_refused_where_only_the_order_is_known(blobs):
    X, y, _ = blobs
    for mover in (Balance(), Chain([Whiten(), Shrink(0.5)])):
        with pytest.raises(ValueError, match=r'weights="distance" needs distances.*Use weights="uniform"'):
            MoveLabeledClassifier(3, mover=mover, weights="distance").fit(X, y)
    auto = MoveLabeledClassifierCV(mover=[Balance(), Shrink(0.1)], weights="distance", cv=2).fit(X, y)
    assert isinstance(auto.mover_, Shrink)
