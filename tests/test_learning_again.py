"""MoveLabeled that kept the moments of its pairs: another λ and another party, without the data."""

from functools import reduce

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hubless
from hubless.arrays import to_numpy
from hubless.movers import Chain, MoveLabeled, Shrink
from hubless.solve import Penalty


def pairs(rng, n, d=4):
    objects = rng.standard_normal((n, d)) + 3
    return objects + 0.3 * rng.standard_normal((n, d)), objects


def nearest_of_class(X, y):
    """(query, object) of each object and its nearest of the same class, by plain loops."""
    found = []
    for i in range(len(X)):
        same = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        if same:
            found.append((X[i], X[min(same, key=lambda j: float(((X[i] - X[j]) ** 2).sum()))]))
    return found


def ridge(found, mean, alpha, toward="zero", weights=None):
    """W by the normal equations, pair by pair."""
    d = len(mean)
    A, K = np.zeros((d, d)), np.zeros((d, d))
    for (x, z), w in zip(found, np.ones(len(found)) if weights is None else weights, strict=True):
        A += w * np.outer(x - mean, z - mean)
        K += w * np.outer(z - mean, z - mean)
    pull = alpha * np.eye(d) if toward == "identity" else 0.0
    return (A + pull) @ np.linalg.inv(K + alpha * np.eye(d)), np.trace(K) / d


def same_map(a, b, tolerance=1e-9):
    np.testing.assert_allclose(to_numpy(a.W_), to_numpy(b.W_), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(to_numpy(a.mean_), to_numpy(b.mean_), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.alpha_, b.alpha_, rtol=tolerance)
    assert a.exit_[1:] == b.exit_[1:] == (1.0, None)
    np.testing.assert_allclose(to_numpy(a.exit_.mean), to_numpy(b.exit_.mean), rtol=tolerance, atol=tolerance)


def test_moments_are_those_of_the_pairs(rng, asarray):
    for n in (50, 3):  # more pairs than dimensions, and fewer
        queries, objects = pairs(rng, n)
        w = rng.uniform(0.5, 2, n)
        mover = MoveLabeled(keep_moments=True).fit_pairs(asarray(queries), asarray(objects), w)
        kept, mean = mover.moments_, w @ objects / w.sum()
        x, z = queries - mean, objects - mean
        truth = (mean, w.sum(), w @ x, w @ z, (x.T * w) @ z, (z.T * w) @ z)
        found = (kept.origin, kept.weight, kept.x_sum, kept.z_sum, kept.A, kept.K)
        for own, told in zip(found, truth, strict=True):
            np.testing.assert_allclose(own, told, rtol=1e-9, atol=1e-9)
        assert all(type(array) is np.ndarray and array.dtype == np.float64 for array in found[2:])
        assert mover.mean_weight_ == pytest.approx(w.sum())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keeping_moments_changes_nothing_else(rng, dtype, blobs):
    X, y, later = blobs
    for n in (60, 8):
        some = X[:n].astype(dtype)
        plain, keeps = (MoveLabeled(2.0, keep_moments=keep).fit(some, y[:n]) for keep in (False, True))
        assert keeps.W_.tobytes() == plain.W_.tobytes()
        assert keeps.move(later).tobytes() == plain.move(later).tobytes()
        assert not hasattr(plain, "moments_")


@pytest.mark.parametrize("alpha", [0.0, 0.3, 100.0, "scale", Penalty(0.1, relative=True)])
@pytest.mark.parametrize("toward", ["zero", "identity"])
@pytest.mark.parametrize("n", [60, 4])
def test_another_penalty_is_as_fitted_anew(alpha, toward, n, blobs, asarray):
    X, y, later = blobs
    X, later = asarray(X[:n]), asarray(later)
    for center in (True, False):
        first = MoveLabeled(5.0, center=center, toward=toward, keep_moments=True)
        for fit in (lambda m: m.fit(X, y[:n] * 0), lambda m: m.fit_pairs(X[1:, :], X[:-1, :])):
            before = fit(clone(first))
            found = before.with_alpha(alpha)
            refit = fit(clone(first).set_params(alpha=alpha))
            same_map(found, refit, 1e-7)
            np.testing.assert_allclose(to_numpy(found.move(later)), to_numpy(refit.move(later)), atol=1e-7)
            assert type(found.W_) is type(refit.W_)
            assert found.get_params() == refit.get_params()
            assert (found.n_features_in_, found.n_singletons_) == (6, refit.n_singletons_)
            assert before.alpha == 5.0
            same_map(before, before.with_alpha(5.0), 1e-7)


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
    truth = clone(mover).fit_pairs(*whole, np.concatenate(weights))
    for order in (movers, movers[::-1]):
        found = reduce(MoveLabeled.merge, order)
        same_map(found, truth)
        assert found.mean_weight_ == pytest.approx(sum(w.sum() for w in weights))
        assert found.get_params() == truth.get_params()
        same_map(found.with_alpha(0.1), truth.with_alpha(0.1))


@pytest.mark.parametrize("toward", ["zero", "identity"])
def test_merged_parties_of_labels_have_targets_of_their_own(toward, rng):
    """About the mean of the objects of both, objects without a target included."""
    parties = []
    for n, shift in ((30, 0.0), (20, 2.0)):
        y = np.append(rng.integers(0, 3, n - 1), 9)  # the last one is alone in its class
        parties.append((rng.standard_normal((n, 4)) + y[:, None] + shift, y))
    movers = [MoveLabeled(2.0, toward=toward, keep_moments=True).fit(*party) for party in parties]
    found = movers[0].merge(movers[1])
    mean = np.concatenate([X for X, _ in parties]).mean(axis=0)
    W, unit = ridge([pair for party in parties for pair in nearest_of_class(*party)], mean, 2.0, toward)
    np.testing.assert_allclose(found.W_, W, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.mean_, mean)
    assert found.with_alpha("scale").alpha_ == pytest.approx(unit)
    assert (found.n_singletons_, found.mean_weight_) == (2, 50)
    assert not hasattr(found, "classes_")
    Z = rng.standard_normal((5, 4))
    np.testing.assert_allclose(found.move(Z), mean + (Z - mean) @ W.T)


def test_weights_of_objects_weigh_in_the_common_mean(rng):
    X, y = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    w = rng.uniform(0.5, 2, 40)
    w[[3, 30]] = 0.0
    movers = [MoveLabeled(1.0, keep_moments=True).fit(X[i], y[i], w[i]) for i in (y == 0, y == 1)]
    found = movers[0].merge(movers[1])
    truth = MoveLabeled(1.0).fit(X, y, w)  # each party is a class: targets are the same
    np.testing.assert_allclose(found.W_, truth.W_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.mean_, truth.mean_, rtol=1e-9, atol=1e-9)


def test_precision_is_the_finest_and_moments_are_saved(rng, tmp_path):
    single = MoveLabeled(1.0, keep_moments=True).fit_pairs(*(s.astype(np.float32) for s in pairs(rng, 20)))
    double = MoveLabeled(1.0, keep_moments=True).fit_pairs(*pairs(rng, 20))
    assert single.with_alpha(2.0).W_.dtype == np.float32
    assert single.merge(double).W_.dtype == double.merge(single).W_.dtype == np.float64
    hubless.save(single, tmp_path / "single")
    hubless.save(Chain([double, Shrink()]).fit(pairs(rng, 20)[0], [0, 1] * 10), tmp_path / "chain")
    loaded = hubless.load(tmp_path / "single")
    same = single.merge(double), loaded.merge(double)
    assert same[0].W_.tobytes() == same[1].W_.tobytes()
    kept = hubless.load(tmp_path / "chain").movers_[0].moments_
    assert kept.K.dtype == np.float64
    on_torch = hubless.load(tmp_path / "single", "cpu:0").with_alpha(3.0)
    np.testing.assert_allclose(to_numpy(on_torch.W_), single.with_alpha(3.0).W_)


def test_classifier_keeps_the_moments_of_its_mover(blobs):
    X, y, _ = blobs
    model = hubless.MoveLabeledClassifier(mover=MoveLabeled(keep_moments=True)).fit(X, y)
    same_map(model.mover_.with_alpha(3.0), MoveLabeled(3.0).fit(X, y))


def test_fitting_again_forgets_old_moments(rng):
    mover = MoveLabeled(keep_moments=True).fit_pairs(*pairs(rng, 20))
    mover.set_params(keep_moments=False).fit_pairs(*pairs(rng, 20))
    assert not {"moments_", "mean_weight_"} & vars(mover).keys()


def test_what_cannot_learn_again_is_refused(rng, blobs, tmp_path):
    X, y, _ = blobs
    kept = MoveLabeled(keep_moments=True).fit(X, y)
    none = MoveLabeled().fit(X, y)
    for learn in (lambda: none.with_alpha(1.0), lambda: none.merge(kept), lambda: kept.merge(none)):
        with pytest.raises(ValueError, match=r"did not keep the moments.*MoveLabeled\(keep_moments=True\)"):
            learn()
    with pytest.raises(NotFittedError):
        MoveLabeled(keep_moments=True).with_alpha(1.0)
    with pytest.raises(ValueError, match="alpha must be a number"):
        kept.with_alpha(-1)
    with pytest.raises(ValueError, match="another MoveLabeled; got Shrink"):
        kept.merge(Shrink())
    others = {
        "n_targets": MoveLabeled(n_targets=2, keep_moments=True).fit(X, y),
        "center": MoveLabeled(center=False, keep_moments=True).fit(X, y),
        "toward": MoveLabeled(toward="identity", keep_moments=True).fit(X, y),
        "n_features_in_": MoveLabeled(keep_moments=True).fit(X[:, :5], y),
        "feature_names_in_": MoveLabeled(keep_moments=True).fit(pd.DataFrame(X, columns=list("abcdef")), y),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"both parties must have the same {name}"):
            kept.merge(other)
    for changed in (kept.set_params(keep_moments=False), none.set_params(keep_moments=True)):
        with pytest.raises(ValueError, match=r"another keep_moments\. Fit it again"):
            hubless.save(changed, tmp_path / "model")
    huge = MoveLabeled(keep_moments=True).fit_pairs(*(1e150 * side for side in pairs(rng, 9)))
    far = MoveLabeled(keep_moments=True).fit_pairs(*(1e160 + 0 * side for side in pairs(rng, 9)))
    with pytest.raises(ValueError, match="overflow float64"), np.errstate(all="ignore"):
        huge.merge(far)
