"""Updating movers: another λ, more batches, batches forgotten, parties merged, all without the other data."""

from functools import reduce
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hubless
from hubless.arrays import to_numpy
from hubless.moments import PairSums, moments_of_pairs
from hubless.movers import Chain, MoveLabeled, Shrink
from hubless.solve import Penalty
from tests import reference

LEARNED = ("W_", "mean_", "alpha_", "mean_weight_", "n_singletons_", "classes_", "n_features_in_")


# --- the truth: sums over pairs, by loops -------------------------------------------------------------------


def batch(rng, n, d=4, shift=0.0):
    """Objects of 3 classes, and a last one that is alone in its class."""
    y = np.append(rng.integers(0, 3, n - 1), 7)
    return rng.standard_normal((n, d)) + y[:, None] + shift, y


def pairs(rng, n, d=4):
    """Queries and objects, row by row."""
    objects = rng.standard_normal((n, d)) + 3
    return objects + 0.3 * rng.standard_normal((n, d)), objects


def truth(queries, objects, mean, alpha, toward="zero", weights=None):
    """W and λ of the normal equations."""
    A, K = reference.moments(queries - mean, objects - mean, weights)
    alpha = np.trace(K) / len(K) if alpha == "scale" else alpha
    pull = alpha * np.eye(len(K)) if toward == "identity" else 0.0
    return reference.solve(A + pull, K, alpha), alpha


def truth_of_batches(batches, alpha, toward="zero", center=True, n_targets=1):
    """W, λ and centre of batches whose targets are found inside each."""
    objects = np.concatenate([X for X, _ in batches])
    mean = objects.mean(axis=0) if center else np.zeros(objects.shape[1])
    sides = zip(*(reference.weighted_pairs(X, y, n_targets)[:2] for X, y in batches), strict=True)
    return *truth(*(np.concatenate(side) for side in sides), mean, alpha, toward), mean


def check_map(mover, W, alpha, mean, tolerance=1e-9):
    np.testing.assert_allclose(to_numpy(mover.W_), W, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(to_numpy(mover.mean_), mean, rtol=tolerance, atol=tolerance)
    assert mover.alpha_ == pytest.approx(alpha, rel=max(tolerance, 1e-9))


def check_same_map(mover, expected, tolerance=1e-9):
    check_map(mover, to_numpy(expected.W_), expected.alpha_, to_numpy(expected.mean_), tolerance)
    assert mover.space_[1:] == expected.space_[1:] == (1.0, None)
    means = (to_numpy(each.space_.mean) for each in (mover, expected))
    np.testing.assert_allclose(*means, rtol=tolerance, atol=tolerance)


def state(mover):
    """Return all that a mover has learned, as bytes and texts."""
    arrays = {name: to_numpy(value).tobytes() for name, value in vars(mover).items() if name in LEARNED[:2]}
    texts = {name: str(getattr(mover, name, None)) for name in (*LEARNED[2:], "space_", "moments_")}
    return arrays | texts | {"params": str(mover.get_params()), "names": sorted(vars(mover))}


# --- sums ---------------------------------------------------------------------------------------------------


def test_moments_without_those_of_a_batch(rng, asarray):
    x, z, w = rng.standard_normal((30, 3)), rng.standard_normal((30, 3)), rng.uniform(0.1, 2, 30)
    origins = asarray(np.array([1.0, -2.0, 0.5])), asarray(np.array([0.0, 3.0, 1.0]))
    whole = moments_of_pairs(*map(asarray, (x, z, w)), origins[0])
    part = moments_of_pairs(*(asarray(side[:12]) for side in (x, z, w)), origins[1])
    rest, about = whole - part, to_numpy(origins[0])
    A, K = reference.moments(x[12:] - about, z[12:] - about, w[12:])
    assert rest.weight == pytest.approx(w[12:].sum())
    np.testing.assert_array_equal(to_numpy(rest.origin), about)
    sums = w[12:] @ (x[12:] - about), w[12:] @ (z[12:] - about)
    for result, expected in zip((rest.x_sum, rest.z_sum, rest.A, rest.K), (*sums, A, K), strict=True):
        np.testing.assert_allclose(to_numpy(result), expected, atol=1e-12)


def pair_sums(x, z, w):
    mean = np.average(z, axis=0, weights=w)
    return PairSums(moments_of_pairs(x, z, w, mean), w.sum(), mean)


def test_sums_of_pairs_are_added_and_subtracted_about_the_common_mean(rng):
    (x, z), w = pairs(rng, 30), rng.uniform(0.1, 2, 30)
    part, rest = (pair_sums(x[rows], z[rows], w[rows]) for rows in (slice(12), slice(12, 30)))
    both = part + rest
    for sums, rows in ((both, slice(30)), (both - part, slice(12, 30))):
        mean = np.average(z[rows], axis=0, weights=w[rows])
        A, K = reference.moments(x[rows] - mean, z[rows] - mean, w[rows])
        assert (sums.weight, sums.moments.weight) == (pytest.approx(w[rows].sum()),) * 2
        for result, expected in ((sums.mean, mean), (sums.moments.origin, mean)):
            np.testing.assert_allclose(result, expected, atol=1e-12)
        np.testing.assert_allclose(sums.moments.A, A, atol=1e-11)
        np.testing.assert_allclose(sums.moments.K, K, atol=1e-11)


@pytest.mark.parametrize("n", [50, 3], ids=["more pairs than dimensions", "fewer"])
def test_moments_are_those_of_the_pairs(rng, asarray, n):
    queries, objects = pairs(rng, n)
    w = rng.uniform(0.5, 2, n)
    mover = MoveLabeled(keep_moments=True).fit_pairs(asarray(queries), asarray(objects), w)
    kept, mean = mover.moments_, w @ objects / w.sum()
    x, z = queries - mean, objects - mean
    expected = (mean, w.sum(), w @ x, w @ z, *reference.moments(x, z, w))
    result = (kept.origin, kept.weight, kept.x_sum, kept.z_sum, kept.A, kept.K)
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert all(type(array) is np.ndarray and array.dtype == np.float64 for array in result[2:])
    assert mover.mean_weight_ == pytest.approx(w.sum())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keeping_moments_changes_nothing_else(dtype, blobs):
    X, y, later = blobs
    for n in (60, 8):
        few = X[:n].astype(dtype)
        plain, keeps = (MoveLabeled(2.0, keep_moments=keep).fit(few, y[:n]) for keep in (False, True))
        assert keeps.W_.tobytes() == plain.W_.tobytes()
        assert keeps.move(later).tobytes() == plain.move(later).tobytes()
        assert not hasattr(plain, "moments_")


# --- another λ ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3, 100.0, "scale", Penalty(0.1, relative=True)])
@pytest.mark.parametrize("toward", ["zero", "identity"])
@pytest.mark.parametrize("n", [60, 4])
def test_another_penalty_equals_a_new_fit(alpha, toward, n, blobs, asarray):
    X, y, later = blobs
    X, later = asarray(X[:n]), asarray(later)
    for center in (True, False):
        first = MoveLabeled(5.0, center=center, toward=toward, keep_moments=True)
        for fit in (lambda m: m.fit(X, y[:n] * 0), lambda m: m.fit_pairs(X[1:, :], X[:-1, :])):
            before = fit(clone(first))
            result = before.with_alpha(alpha)
            refit = fit(clone(first).set_params(alpha=alpha))
            check_same_map(result, refit, 1e-7)
            np.testing.assert_allclose(to_numpy(result.move(later)), to_numpy(refit.move(later)), atol=1e-7)
            assert type(result.W_) is type(refit.W_)
            assert result.get_params() == refit.get_params()
            assert (result.n_features_in_, result.n_singletons_) == (6, refit.n_singletons_)
            assert before.alpha == 5.0
            check_same_map(before, before.with_alpha(5.0), 1e-7)


def test_classifier_keeps_the_moments_of_its_mover(blobs):
    X, y, _ = blobs
    model = hubless.MoveLabeledClassifier(mover=MoveLabeled(keep_moments=True)).fit(X, y)
    check_same_map(model.mover_.with_alpha(3.0), MoveLabeled(3.0).fit(X, y))


# --- batches of labeled objects -----------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("toward", ["zero", "identity"])
@pytest.mark.parametrize("alpha", [0.7, "scale"])
def test_batches_add_up_and_can_be_forgotten(center, toward, alpha, rng, asarray):
    batches = [batch(rng, n, shift=shift) for n, shift in ((25, 0.0), (12, 4.0), (18, -3.0))]
    how = {"toward": toward, "center": center, "n_targets": 2}
    mover = MoveLabeled(alpha, **how)
    for count, (X, y) in enumerate(batches, 1):
        assert mover.partial_fit(asarray(X), asarray(y)) is mover
        check_map(mover, *truth_of_batches(batches[:count], alpha, **how))
        n = sum(len(labels) for _, labels in batches[:count])
        assert (mover.n_singletons_, mover.mean_weight_) == (count, n)
        assert type(mover.W_) is type(asarray(X)) is type(mover.classes_)
    assert to_numpy(mover.classes_).tolist() == [0, 1, 2, 7]
    Z = rng.standard_normal((5, 4))
    W, _, mean = truth_of_batches(batches, alpha, **how)
    np.testing.assert_allclose(to_numpy(mover.move(asarray(Z))), reference.move(Z, W, mean), atol=1e-9)
    for gone in (1, 0):  # the one in the middle, and the one that was fitted first
        X, y = batches.pop(gone)
        assert mover.forget(asarray(X), asarray(y)) is mover
        check_map(mover, *truth_of_batches(batches, alpha, **how))
        assert (mover.n_singletons_, mover.mean_weight_) == (len(batches), sum(len(y) for _, y in batches))


def test_order_is_ignored_and_merge_gives_the_same(rng):
    batches = [batch(rng, n, shift=shift) for n, shift in ((25, 0.0), (12, 4.0), (18, -3.0))]
    one, two, three = (MoveLabeled(1.0, keep_moments=True).fit(*data) for data in batches)
    merged = one.merge(two).merge(three)
    for order in permutations(batches):
        mover = MoveLabeled(1.0)
        for data in order:
            mover.partial_fit(*data)
        check_same_map(mover, merged)
    check_same_map(one.partial_fit(*batches[1]).merge(three), merged)  # after `fit`, too


def test_batches_of_whole_classes_are_as_one_fit(rng):
    X, y = batch(rng, 60)
    w = rng.uniform(0.0, 2, 60) * (rng.random(60) > 0.2)
    mover, first = MoveLabeled("scale", 3), y == 0
    for rows in (first, ~first):
        mover.partial_fit(X[rows], y[rows], w[rows])
    check_same_map(mover, MoveLabeled("scale", 3).fit(X, y, w))
    rest = MoveLabeled("scale", 3).fit(X[~first], y[~first], w[~first])
    check_same_map(mover.forget(X[first], y[first], w[first]), rest)


def check_precision(rng, convert):
    batches = [batch(rng, 40), batch(rng, 30, shift=1.0)]
    single = [(convert(X.astype(np.float32)), y) for X, y in batches]
    mover = MoveLabeled(1.0).partial_fit(*single[0]).partial_fit(*single[1])
    assert "float32" in str(mover.W_.dtype)
    lifted = [(X.astype(np.float32).astype(float), y) for X, y in batches]
    check_map(mover, *truth_of_batches(lifted, 1.0), tolerance=1e-5)
    less = MoveLabeled(1.0).partial_fit(*single[0]).partial_fit(*single[1])
    less.forget(convert(lifted[1][0]), lifted[1][1])
    assert "float32" in str(less.W_.dtype)
    mover.partial_fit(convert(batches[1][0] + 1), batches[1][1])
    assert "float64" in str(mover.W_.dtype)
    mover.forget(convert(batches[1][0] + 1), batches[1][1]).forget(*single[0])
    check_map(mover, *truth_of_batches(lifted[1:], 1.0))


def test_single_precision_stays_and_the_finest_wins(rng):
    check_precision(rng, np.asarray)


@pytest.mark.torch
def test_single_precision_of_tensors_stays_and_the_finest_wins(rng):
    check_precision(rng, pytest.importorskip("torch").as_tensor)


def test_saved_movers_can_be_updated(rng, tmp_path):
    batches = [batch(rng, 30), batch(rng, 20, shift=2.0)]
    mover = MoveLabeled(0.5, keep_moments=True).partial_fit(*batches[0])
    hubless.save(mover, tmp_path / "one")
    loaded = hubless.load(tmp_path / "one").partial_fit(*batches[1])
    check_map(loaded, *truth_of_batches(batches, 0.5))
    hubless.save(loaded, tmp_path / "two")
    check_map(hubless.load(tmp_path / "two").forget(*batches[0]), *truth_of_batches(batches[1:], 0.5))


def test_names_of_columns_and_classes_are_kept(rng):
    X, y = batch(rng, 20)
    frame = pd.DataFrame(X, columns=list("abcd"))
    texts = np.array(["cat", "dog", "fox"])[rng.integers(0, 3, 20)]
    mover = MoveLabeled().partial_fit(frame, texts)
    mover.partial_fit(frame + 1, np.where(texts == "cat", "elephant", texts))
    assert list(mover.feature_names_in_) == list("abcd")
    assert mover.classes_.tolist() == ["cat", "dog", "elephant", "fox"]
    before = state(mover)
    with pytest.raises(ValueError, match="feature names should match"):
        mover.partial_fit(frame[list("bacd")], texts)
    with pytest.raises(ValueError, match="labels of all batches must be texts, or numbers; got 'cat' and 0"):
        mover.partial_fit(frame, y)
    assert state(mover) == before
    mover = MoveLabeled(keep_moments=True).fit(X, y)
    assert not hasattr(mover.merge(mover).partial_fit(X + 1, y), "classes_")  # not all of them are known


# --- batches of pairs ---------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    first=st.integers(2, 9),  # one pair about its mean is nothing but rounding
    more=st.lists(st.integers(1, 9), max_size=3),
    d=st.integers(1, 8),
    alpha=st.sampled_from([0.0, 0.3, "scale"]),
    toward=st.sampled_from(["zero", "identity"]),
    center=st.booleans(),
    weighted=st.booleans(),
)
def test_pairs_of_any_split_are_as_one_fit(seed, first, more, d, alpha, toward, center, weighted):
    """Also with fewer pairs than dimensions, where K is singular."""
    rng, n = np.random.default_rng(seed), first + sum(more)
    queries, objects = pairs(rng, n, d)
    w = rng.uniform(0.5, 2, n) if weighted else None
    how = {"toward": toward, "center": center}
    mover = MoveLabeled(alpha, **how)
    for part in np.split(np.arange(n), np.cumsum([first, *more])[:-1]):
        mover.partial_fit_pairs(queries[part], objects[part], None if w is None else w[part])
        so_far = slice(0, part[-1] + 1)
        weights = None if w is None else w[so_far]
        whole = MoveLabeled(alpha, **how).fit_pairs(queries[so_far], objects[so_far], weights)
        check_same_map(mover, whole, 1e-6)
        mean = np.average(objects[so_far], axis=0, weights=weights) if center else np.zeros(d)
        if whole.alpha_ > 0:  # without a penalty, or a spread to take it from, K cannot be inverted
            W, penalty = truth(queries[so_far], objects[so_far], mean, alpha, toward, weights)
            check_map(mover, W, penalty, mean, 1e-6)
        assert mover.mean_weight_ == pytest.approx(part[-1] + 1 if w is None else weights.sum())
    others = rng.standard_normal((7, d)), rng.standard_normal((7, d))
    mover.partial_fit_pairs(*others).forget_pairs(*others)
    check_same_map(mover, whole, 1e-6)


def test_single_pairs_of_a_batch_can_be_forgotten(rng, asarray):
    objects = rng.standard_normal((40, 4)) + 2
    queries, w = objects + rng.standard_normal((40, 4)), rng.uniform(0.5, 2, 40)
    mover = MoveLabeled("scale", toward="identity")
    mover.partial_fit_pairs(asarray(queries), asarray(objects), w)
    gone = np.arange(40) % 3 == 0
    mover.forget_pairs(asarray(queries[gone]), asarray(objects[gone]), w[gone])
    mean = np.average(objects[~gone], axis=0, weights=w[~gone])
    check_map(mover, *truth(queries[~gone], objects[~gone], mean, "scale", "identity", w[~gone]), mean)
    assert mover.n_singletons_ == 0


def test_rounding_of_what_was_forgotten_is_not_learned_from(rng):
    """Two pairs of 300 are left in 6 dimensions, without a penalty."""
    objects = 10 * rng.standard_normal((300, 6)) + 5
    queries = objects + rng.standard_normal((300, 6))
    for center in (True, False):
        mover = MoveLabeled(0.0, center=center).partial_fit_pairs(queries, objects)
        mover.forget_pairs(queries[2:], objects[2:])
        mean = objects[:2].mean(axis=0) if center else np.zeros(6)
        x, z = queries[:2] - mean, objects[:2] - mean
        np.testing.assert_allclose(mover.W_, x.T @ np.linalg.pinv(z.T, rcond=1e-9), atol=1e-8)


# --- parties that merge -------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("toward", ["zero", "identity"])
@pytest.mark.parametrize("alpha", [0.7, "scale"])
def test_merged_parties_are_as_fitted_to_all_pairs(center, toward, alpha, rng, asarray):
    parties = [pairs(rng, n) for n in (40, 3, 9)]  # one with fewer pairs than dimensions
    parties[1] = tuple(side - 8 for side in parties[1])  # means far apart
    weights = [rng.uniform(0.1, 3, len(queries)) for queries, _ in parties]
    mover = MoveLabeled(alpha, center=center, toward=toward, keep_moments=True)
    movers = [
        clone(mover).fit_pairs(asarray(queries), asarray(objects), w)
        for (queries, objects), w in zip(parties, weights, strict=True)
    ]
    whole = (asarray(np.concatenate(side)) for side in zip(*parties, strict=True))
    expected = clone(mover).fit_pairs(*whole, np.concatenate(weights))
    for order in (movers, movers[::-1]):
        merged = reduce(MoveLabeled.merge, order)
        check_same_map(merged, expected)
        assert merged.mean_weight_ == pytest.approx(sum(w.sum() for w in weights))
        assert merged.get_params() == expected.get_params()
        check_same_map(merged.with_alpha(0.1), expected.with_alpha(0.1))


@pytest.mark.parametrize("toward", ["zero", "identity"])
def test_parties_find_targets_only_among_their_own_objects(toward, rng):
    """About the mean of the objects of both, objects without a target included."""
    parties = [batch(rng, 30), batch(rng, 20, shift=2.0)]
    movers = [MoveLabeled(2.0, toward=toward, keep_moments=True).fit(*party) for party in parties]
    merged = movers[0].merge(movers[1])
    W, alpha, mean = truth_of_batches(parties, 2.0, toward)
    check_map(merged, W, alpha, mean)
    unit = truth_of_batches(parties, "scale", toward)[1]
    assert merged.with_alpha("scale").alpha_ == pytest.approx(unit)
    assert (merged.n_singletons_, merged.mean_weight_) == (2, 50)
    assert not hasattr(merged, "classes_")
    Z = rng.standard_normal((5, 4))
    np.testing.assert_allclose(merged.move(Z), reference.move(Z, W, mean))


def test_weights_of_objects_count_in_the_common_mean(rng):
    X, y = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    w = rng.uniform(0.5, 2, 40)
    w[[3, 30]] = 0.0
    movers = [MoveLabeled(1.0, keep_moments=True).fit(X[i], y[i], w[i]) for i in (y == 0, y == 1)]
    # each party is a class, so targets are the same
    check_same_map(movers[0].merge(movers[1]), MoveLabeled(1.0).fit(X, y, w))


def test_precision_is_the_finest_and_moments_are_saved(rng, tmp_path):
    single = MoveLabeled(1.0, keep_moments=True).fit_pairs(*(s.astype(np.float32) for s in pairs(rng, 20)))
    double = MoveLabeled(1.0, keep_moments=True).fit_pairs(*pairs(rng, 20))
    assert single.with_alpha(2.0).W_.dtype == np.float32
    assert single.merge(double).W_.dtype == double.merge(single).W_.dtype == np.float64
    hubless.save(single, tmp_path / "single")
    hubless.save(Chain([double, Shrink()]).fit(pairs(rng, 20)[0], [0, 1] * 10), tmp_path / "chain")
    loaded = hubless.load(tmp_path / "single")
    assert single.merge(double).W_.tobytes() == loaded.merge(double).W_.tobytes()
    kept = hubless.load(tmp_path / "chain").movers_[0].moments_
    assert kept.K.dtype == np.float64


@pytest.mark.torch
def test_moments_of_a_mover_of_tensors_stay_in_numpy(rng, tmp_path):
    pytest.importorskip("torch")
    mover = MoveLabeled(1.0, keep_moments=True).fit_pairs(*pairs(rng, 20))
    hubless.save(mover, tmp_path / "model")
    on_torch = hubless.load(tmp_path / "model", "cpu:0")
    assert type(on_torch.moments_.K) is np.ndarray
    np.testing.assert_allclose(to_numpy(on_torch.with_alpha(3.0).W_), mover.with_alpha(3.0).W_)


# --- what is refused, and changes nothing -------------------------------------------------------------------


def test_bad_batches_are_refused_and_change_nothing(rng):
    X, y = batch(rng, 30)
    plain, kept = MoveLabeled(1.0).fit(X, y), MoveLabeled(1.0, keep_moments=True).fit(X, y)
    other = X + rng.standard_normal(X.shape)
    strict = pytest.importorskip("array_api_strict")
    calls = {
        r"did not keep the moments.*MoveLabeled\(keep_moments=True\)": [
            lambda: plain.partial_fit(X, y),
            lambda: plain.partial_fit_pairs(X, X),
            lambda: plain.forget(X, y),
            lambda: plain.forget_pairs(X, X),
        ],
        "X has 3 features, but MoveLabeled is expecting 4": [
            lambda: kept.partial_fit(X[:, :3], y),
            lambda: kept.partial_fit_pairs(X, X[:, :3]),
            lambda: kept.forget(X[:, :3], y),
            lambda: kept.forget_pairs(X[:, :3], X),
        ],
        "same namespace": [lambda: kept.partial_fit(strict.asarray(X), y)],
        "contains NaN": [lambda: kept.partial_fit(np.where(X > 2, np.nan, X), y)],
        "requires y": [lambda: kept.partial_fit(X), lambda: kept.forget(X, None)],
        "no pair to learn from": [lambda: kept.partial_fit(X[:9], np.arange(9))],
        "sample_weight": [lambda: kept.partial_fit(X, y, -np.ones(30))],
        "pair up row by row": [lambda: kept.partial_fit_pairs(X[:5], X)],
        "nothing would be left": [
            lambda: kept.forget(X, y),
            lambda: kept.forget_pairs(X, X),
            lambda: kept.forget(X, y, np.full(30, 2.0)),
        ],
        "not learned in this form: the sum K": [
            lambda: kept.forget(10 * X[:8], np.zeros(8)),
            lambda: kept.forget_pairs(other[:28], other[:28]),
            lambda: kept.forget(X[:28], y[:28] * 0, np.full(28, 1.01)),
        ],
        "not learned in this form: 2 of its objects are alone": [
            lambda: kept.forget(X[:6], [0, 0, 0, 0, 1, 2])
        ],
    }
    before = state(plain), state(kept)
    for message, lines in calls.items():
        for call in lines:
            with pytest.raises(ValueError, match=message):
                call()
            assert (state(plain), state(kept)) == before


def test_methods_exist_where_they_work(rng):
    X, y = batch(rng, 30)
    assert not hasattr(MoveLabeled().fit(X, y), "partial_fit")
    assert hasattr(MoveLabeled(keep_moments=True).fit(X, y), "partial_fit")
    assert hasattr(MoveLabeled(), "partial_fit")
    new = MoveLabeled(keep_moments=True)
    for call in (new.forget, new.forget_pairs, lambda X, y: new.with_alpha(1.0)):
        with pytest.raises(NotFittedError):
            call(X, y)


def test_a_first_batch_that_fails_leaves_no_trace(rng):
    X, y = batch(rng, 30)
    mover = MoveLabeled()
    for call in (
        lambda: mover.partial_fit(X[:9], np.arange(9)),
        lambda: mover.partial_fit_pairs(X, X[:5]),
        lambda: MoveLabeled.partial_fit(mover.set_params(toward="left"), X, y),
    ):
        with pytest.raises(ValueError, match=r"no pair|row by row|toward must be one of"):
            call()
        assert not {name for name in vars(mover) if name.endswith("_")}


def test_a_penalty_may_change_between_batches_and_a_fit_begins_anew(rng):
    batches = [batch(rng, 30), batch(rng, 20, shift=2.0)]
    mover = MoveLabeled(0.5).partial_fit(*batches[0]).set_params(alpha=4.0).partial_fit(*batches[1])
    check_map(mover, *truth_of_batches(batches, 4.0))
    check_same_map(mover.fit(*batches[0]), MoveLabeled(4.0).fit(*batches[0]))
    assert not {"moments_", "mean_weight_"} & vars(mover).keys()
    mover.set_params(keep_moments=True).fit_pairs(*pairs(rng, 20))
    mover.set_params(keep_moments=False).fit_pairs(*pairs(rng, 20))
    assert not {"moments_", "mean_weight_"} & vars(mover).keys()


def test_movers_that_kept_other_moments_are_not_saved(blobs, tmp_path):
    X, y, _ = blobs
    changed = (
        MoveLabeled(keep_moments=True).fit(X, y).set_params(keep_moments=False),
        MoveLabeled().fit(X, y).set_params(keep_moments=True),
    )
    for mover in changed:
        with pytest.raises(ValueError, match=r"another keep_moments\. Fit it again"):
            hubless.save(mover, tmp_path / "model")


def test_what_cannot_be_solved_again_or_merged_is_refused(rng, blobs):
    X, y, _ = blobs
    kept = MoveLabeled(keep_moments=True).fit(X, y)
    none = MoveLabeled().fit(X, y)
    for learn in (lambda: none.with_alpha(1.0), lambda: none.merge(kept), lambda: kept.merge(none)):
        with pytest.raises(ValueError, match=r"did not keep the moments.*MoveLabeled\(keep_moments=True\)"):
            learn()
    with pytest.raises(ValueError, match="alpha must be a number"):
        kept.with_alpha(-1)
    with pytest.raises(ValueError, match="a MoveLabeled can only be merged with another one; got Shrink"):
        kept.merge(Shrink())
    others = {
        "n_targets": MoveLabeled(n_targets=2, keep_moments=True).fit(X, y),
        "center": MoveLabeled(center=False, keep_moments=True).fit(X, y),
        "toward": MoveLabeled(toward="identity", keep_moments=True).fit(X, y),
        "n_features_in_": MoveLabeled(keep_moments=True).fit(X[:, :5], y),
        "feature_names_in_": MoveLabeled(keep_moments=True).fit(pd.DataFrame(X, columns=list("abcdef")), y),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"both movers must have the same {name}"):
            kept.merge(other)


def test_merged_squares_that_overflow_are_refused(rng):
    huge = MoveLabeled(keep_moments=True).fit_pairs(*(1e150 * side for side in pairs(rng, 9)))
    far = MoveLabeled(keep_moments=True).fit_pairs(*(1e160 + 0 * side for side in pairs(rng, 9)))
    with pytest.raises(ValueError, match="overflow float64"), np.errstate(all="ignore"):
        huge.merge(far)
