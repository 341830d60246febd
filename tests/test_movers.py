"""The movers: each against plain loops of its formula, the algebra behind the extra column, and daily use."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
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
    Unit,
    Whiten,
)
from hubless.movers.points import Points


def pairs_of(X, y, n_targets):
    """Objects, targets and the row numbers of the objects, one row per pair."""
    source, target = zip(*reference.pairs(reference.targets(X, y, n_targets)), strict=True)
    return X[list(source)], X[list(target)], list(source)


def kernel_moved(X, y, weights=None, later=None):
    """scikit-learn's kernel ridge regression from each target to what it lacks of its object."""
    x, z, source = pairs_of(X, y, 3)
    w = np.ones(60) if weights is None else weights
    mu = reference.total_mean(X, w)
    gamma = 0.8 / (2 * reference.mean([reference.distance(row, mu) ** 2 for row in X]))
    alpha = 0.2 * w[source].sum() / len(X)  # in mean eigenvalues: the kernel of an object with itself is 1
    oracle = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(z, x - z, sample_weight=w[source])
    Z = X if later is None else later[0]
    return Z + oracle.predict(Z)


def regressed(X, y, weights=None, later=None):
    x, z, source = pairs_of(X, y, 2)
    oracle = Ridge(alpha=2.0).fit(z, x, sample_weight=None if weights is None else weights[source])
    return oracle.predict(X if later is None else later[0])


def halved_shrunk(X, y, weights=None, later=None):
    stored = reference.shrink(X, y, 0.4, weights)
    new = None if later is None else (reference.shrink(X, y, 0.4, weights, later), later[1])
    mu = reference.total_mean(X, weights)  # of the objects before any move
    return np.array([mu + 0.5 * (z - mu) for z in (stored if new is None else new[0])])


# movers without a column, and where plain loops move objects to
PLAIN = {
    "stay": (Stay(), lambda X, y, weights=None, later=None: X if later is None else later[0]),
    "empty chain": (Chain(), lambda X, y, weights=None, later=None: X if later is None else later[0]),
    "scale": (Scale(0.3), lambda X, y, *more: reference.scale(X, 0.3, *more)),
    "shrink": (Shrink(0.4), lambda X, y, *more: reference.shrink(X, y, 0.4, *more)),
    "smooth": (Smooth(3), lambda X, y, w=None, later=None: reference.smooth(X, y, 3, later=later)),
    "smooth by distance": (
        Smooth(3, "distance"),
        lambda X, y, w=None, later=None: reference.smooth(X, y, 3, "distance", later=later),
    ),
    "smooth by a step": (
        Smooth(40, "distance", step=0.2),
        lambda X, y, w=None, later=None: reference.smooth(X, y, 40, "distance", 0.2, later),
    ),
    "ridge": (MoveLabeled(2.0, 3), lambda X, y, w=None, later=None: moved_by_ridge(X, y, w, "zero", later)),
    "ridge toward the identity": (
        MoveLabeled(2.0, 3, toward="identity"),
        lambda X, y, w=None, later=None: moved_by_ridge(X, y, w, "identity", later),
    ),
    "label ridge": (
        LabelRidge(2.0, 3, keep=0.8),
        lambda X, y, *more: reference.label_ridge(X, y, 2.0, 3, 0.8, *more),
    ),
    "kernel": (KernelMove(0.2, 3, gamma=0.8), kernel_moved),
    "regress": (Regress(Ridge(alpha=2.0), 2), regressed),
    "chain": (Chain([Shrink(0.4), Scale(0.5)]), halved_shrunk),
}


def test_unit_is_what_plain_loops_say(blobs, asarray):
    """It alone knows the origin, so it is no part of the table above."""
    X, y, queries = blobs
    X[3] = 0
    mover = Unit()
    moved = mover.fit_transform(asarray(X), asarray(y))
    np.testing.assert_allclose(to_numpy(moved), reference.unit(X), rtol=1e-12)
    np.testing.assert_allclose(to_numpy(mover.move(asarray(queries))), reference.unit(queries), rtol=1e-12)
    np.testing.assert_array_equal(to_numpy(mover.transform(asarray(queries))), queries)


def moved_by_ridge(X, y, weights, toward, later):
    return reference.move_labeled(X, y, 2.0, 3, weights, toward, later)


def whitened(X, y, weights):
    return reference.whitener(X, y, 0.2, weights)


def denoised(whiten, n_iter):
    return lambda X, y, weights: reference.denoiser(X, y, 1.5, 4, whiten, 0.05, n_iter, weights)


# movers with a column, and what queries are compared by in `reference.scores`
LIFTED = {
    "balance": (Balance(0.7, n_neighbors=3), {"g": 0.7, "k": 3}),
    "steer": (Steer(1.5, 0.05), {"strength": 1.5, "alpha": 0.05}),
    "whiten": (Whiten(0.2), {"L": whitened}),
    "denoise once": (Denoise(1.5, 4, alpha=0.05, n_iter=1), {"L": denoised(False, 1)}),
    "denoise": (Denoise(1.5, 4, alpha=0.05), {"L": denoised(False, 2)}),
    "denoise white": (Denoise(1.5, 4, whiten=True, alpha=0.05, n_iter=3), {"L": denoised(True, 3)}),
    "whiten, shrink": (Chain([Whiten(0.2), Shrink(0.6)]), {"L": whitened, "step": 0.6}),
    "shrink, balance": (Chain([Shrink(0.3), Balance(0.5)]), {"step": 0.3, "g": 0.5}),
    "balance, steer": (Chain([Balance(0.5), Steer(2.0)]), {"g": 0.5, "strength": 2.0}),
    "all": (
        Chain([Whiten(0.2), Chain([Shrink(0.3), Balance(0.5)]), Steer(2.0)]),
        {"L": whitened, "step": 0.3, "g": 0.5, "strength": 2.0},
    ),
    "denoise, shrink, steer": (
        Chain([Denoise(1.5, 4, alpha=0.05), Shrink(0.3), Steer(2.0)]),
        {"L": denoised(False, 2), "step": 0.3, "strength": 2.0},
    ),
}
EVERY = {name: mover for name, (mover, _) in (PLAIN | LIFTED).items()}


def every_mover(cases):
    return pytest.mark.parametrize("name", cases, ids=lambda name: name.replace(" ", "-"))


@pytest.fixture
def weights(rng):
    return rng.random(60) + 0.1


@pytest.fixture
def later(rng, blobs):
    """20 objects of known classes that come later."""
    X, y, _ = blobs
    chosen = rng.integers(0, 60, 20)
    return X[chosen] + rng.standard_normal((20, 6)), y[chosen]


def naive_scores(X, y, queries, how, weights=None, later=None):
    own = {"L": how["L"](X, y, weights)} if "L" in how else {}
    return reference.scores(queries, X, y, **how | own, weights=weights, later=later)


ANSWERS = {}


def once(what, name, loops):
    """Loops are slow, and the fixtures give all array libraries the same numbers."""
    if (what, name) not in ANSWERS:
        ANSWERS[what, name] = loops()
    return ANSWERS[what, name]


def order(queries, stored):
    return np.argsort(cdist(queries, stored), axis=1)


def asked(mover, queries, asarray=np.asarray):
    return to_numpy(mover.transform(asarray(queries)))


# Against plain loops


@every_mover(PLAIN)
def test_objects_move_as_in_loops(asarray, blobs, name):
    X, y, queries = blobs
    mover, truth = clone(PLAIN[name][0]), once("now", name, lambda: PLAIN[name][1](X, y))
    np.testing.assert_allclose(to_numpy(mover.fit_transform(asarray(X), asarray(y))), truth, atol=1e-9)
    np.testing.assert_array_equal(asked(mover, queries, asarray), queries)


@every_mover(PLAIN)
def test_weighted_objects_move_as_in_loops(asarray, blobs, weights, name):
    X, y, _ = blobs
    mover, truth = clone(PLAIN[name][0]), once("weighted", name, lambda: PLAIN[name][1](X, y, weights))
    moved = mover.fit_transform(asarray(X), asarray(y), sample_weight=asarray(weights))
    np.testing.assert_allclose(to_numpy(moved), truth, atol=1e-9)


@every_mover(PLAIN)
def test_later_objects_move_as_in_loops(asarray, blobs, later, name):
    X, y, _ = blobs
    mover = clone(PLAIN[name][0]).fit(asarray(X), asarray(y))
    truth = once("later", name, lambda: PLAIN[name][1](X, y, None, later))
    np.testing.assert_allclose(to_numpy(mover.move(*map(asarray, later))), truth, atol=1e-9)


@every_mover(LIFTED)
def test_stored_rows_order_queries_as_the_scores_of_loops(asarray, blobs, name):
    X, y, queries = blobs
    mover, how = clone(LIFTED[name][0]), LIFTED[name][1]
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y)))
    assert stored.shape == (60, 7)
    found = asked(mover, queries, asarray)
    np.testing.assert_array_equal(found, np.column_stack([queries, np.zeros(25)]))
    truth = once("now", name, lambda: naive_scores(X, y, queries, how))
    np.testing.assert_array_equal(order(found, stored), np.argsort(truth, axis=1))
    assert not np.array_equal(np.argsort(truth, axis=1), order(queries, X))  # not that of plain k-NN


@every_mover(LIFTED)
def test_weighted_rows_order_queries_as_the_scores_of_loops(blobs, weights, name):
    X, y, queries = blobs
    mover, how = clone(LIFTED[name][0]), LIFTED[name][1]
    truth = naive_scores(X, y, queries, how, weights)
    for size in (1.0, 40.0):  # shares count, not sizes
        stored = mover.fit_transform(X, y, sample_weight=weights * size)
        np.testing.assert_array_equal(order(asked(mover, queries), stored), np.argsort(truth, axis=1))


@every_mover(LIFTED)
def test_later_rows_order_queries_as_the_scores_of_loops(asarray, blobs, later, name):
    X, y, queries = blobs
    mover, how = clone(LIFTED[name][0]), LIFTED[name][1]
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y)))
    moved = to_numpy(mover.move(*map(asarray, later)))
    shown = moved[:, -1] > 0  # the column cannot show less than it had to for the objects learned from
    assert shown.sum() >= 5
    before = once("now", name, lambda: naive_scores(X, y, queries, how))
    added = once("later", name, lambda: naive_scores(X, y, queries, how, later=later))
    truth, together = np.hstack([before, added[:, shown]]), np.vstack([stored, moved[shown]])
    np.testing.assert_array_equal(order(asked(mover, queries, asarray), together), np.argsort(truth, axis=1))


@every_mover([name for name in EVERY if "balance" not in name and "smooth" not in name and name != "all"])
def test_objects_move_alike_now_and_later(blobs, name):
    X, y, _ = blobs
    mover = clone(EVERY[name])
    np.testing.assert_allclose(mover.fit_transform(X, y), mover.move(X, y), atol=1e-6)


@every_mover(EVERY)
def test_weight_zero_takes_no_part_but_keeps_its_row(asarray, blobs, name):
    X, y, _ = blobs
    w = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    mover, kept = clone(EVERY[name]), w > 0
    moved = to_numpy(mover.fit_transform(asarray(X), asarray(y), sample_weight=asarray(w)))
    without = clone(mover)
    np.testing.assert_allclose(moved[kept], without.fit_transform(X[kept], y[kept]), atol=1e-9)
    if y[~kept].max() < 3:  # a class that is not known without them
        np.testing.assert_allclose(moved[~kept], without.move(X[~kept], y[~kept]), atol=1e-7)


@pytest.mark.parametrize("mover", [Shrink(0.4), LabelRidge(), Smooth(3), Whiten(), Steer()])
def test_a_class_without_weight_is_moved_without_a_class_of_its_own(blobs, mover):
    X, y, _ = blobs
    w = np.where(y == 1, 0.0, 1.0)
    moved = clone(mover).fit_transform(X, y, sample_weight=w)
    shifted = clone(mover).fit_transform(X + 100, y, sample_weight=w)
    np.testing.assert_allclose((shifted - moved)[:, :6], 100, atol=1e-6)  # not toward the origin
    np.testing.assert_allclose(moved[y != 1], clone(mover).fit_transform(X[y != 1], y[y != 1]), atol=1e-9)


@pytest.mark.parametrize("mover", [Scale(0.3), Shrink(0.4), Chain([Shrink(0.4), Scale(0.3)])])
def test_a_weight_of_a_whole_number_is_so_many_copies(blobs, rng, mover):
    X, y, _ = blobs
    w = rng.integers(1, 4, 60)
    copies = clone(mover).fit_transform(np.repeat(X, w, axis=0), np.repeat(y, w))
    moved = clone(mover).fit_transform(X, y, sample_weight=w)
    np.testing.assert_allclose(np.repeat(moved, w, axis=0), copies, atol=1e-12)


def test_metrics_and_beliefs_learn_the_same_from_copies(blobs, rng):
    X, y, _ = blobs
    w = rng.integers(1, 4, 60)
    many = np.repeat(X, w, axis=0), np.repeat(y, w)
    whole, copied = Whiten().fit(X, y, sample_weight=w), Whiten().fit(*many)
    np.testing.assert_allclose(whole.L_, copied.L_, atol=1e-10)
    whole, copied = Steer().fit(X, y, sample_weight=w), Steer().fit(*many)
    np.testing.assert_allclose(whole.coef_, copied.coef_, atol=1e-10)
    np.testing.assert_allclose(whole.intercept_, copied.intercept_, atol=1e-12)


@pytest.mark.parametrize(
    "mover",
    [
        *(Smooth(2), MoveLabeled(1.0, 2), LabelRidge(1.0, 2), Steer(), KernelMove(0.1, 2), Regress(None, 2)),
        *(Denoise(n_targets=2, n_iter=1), Chain([Scale(), Smooth(2)])),
    ],
)
def test_precomputed_targets_are_used(asarray, blobs, mover):
    X, y, _ = blobs
    own = reference.targets(X, y, 5)
    searched = clone(mover).fit_transform(X, y)
    given = clone(mover).fit_transform(asarray(X), asarray(y), targets=asarray(own))
    np.testing.assert_allclose(to_numpy(given), searched, atol=1e-8)
    far = np.where(own >= 0, own[:, ::-1], own)
    assert not np.allclose(clone(mover).fit_transform(X, y, targets=far), searched)


def test_ridge_takes_the_pairs_that_are_given(blobs):
    X, y, _ = blobs
    other = np.where(reference.targets(X, y, 2) >= 0, np.roll(np.arange(60), 1)[:, None], -1)
    truth = reference.move_labeled(X, y, 2.0, found=other)
    np.testing.assert_allclose(MoveLabeled(2.0, 2).fit_transform(X, y, targets=other), truth, atol=1e-9)


def test_few_proxies_are_objects_and_none_is_its_own(blobs):
    X, y, queries = blobs
    mover = Balance(0.6, n_neighbors=2, n_proxies=20)
    stored = mover.fit_transform(X, y)
    rows = [np.flatnonzero((proxy == X).all(axis=1))[0] for proxy in mover.proxies_]
    assert len(set(rows)) == 20
    places = [rows.index(i) if i in rows else None for i in range(60)]
    near = [reference.near_spread(X[i], mover.proxies_, 2, leave_out=places[i]) for i in range(60)]
    truth = cdist(queries, X) ** 2 - 0.6 * np.minimum(near, sorted(near)[59])
    np.testing.assert_array_equal(order(asked(mover, queries), stored), np.argsort(truth, axis=1))


def test_one_proxy_is_no_handicap_now_or_later(blobs):
    X, y, _ = blobs
    mover = Balance(n_proxies=1)
    assert not mover.fit_transform(X, y)[:, -1].any()
    assert not mover.move(X + 9)[:, -1].any()


LAST_IN_A_CHAIN = {
    "ridge": (MoveLabeled(2.0), lambda x, z, y: ridge_about(x, z, y, [z.mean(axis=0)] * 60)),
    "label ridge": (LabelRidge(2.0), lambda x, z, y: ridge_about(x, z, y, rows_of_means(z, y))),
    "regress": (Regress(Ridge(alpha=2.0)), lambda x, z, y: regressed_from(x, z, y)),
}


def rows_of_means(X, y):
    means = reference.class_means(X, y)
    return np.array([means[c] for c in y])


def ridge_about(x, z, y, centres):
    """Ridge regression from moved targets to objects where they were, each about its own centre."""
    before = rows_of_means(x, y) if len({tuple(row) for row in centres}) > 1 else np.array(centres)
    index = reference.pairs(reference.targets(x, y, 1))
    source, target = ([pair[side] for pair in index] for side in (0, 1))
    W = reference.ridge_toward((x - before)[source], (z - centres)[target], 2.0)
    return np.array([c + W @ (row - c) for row, c in zip(z, centres, strict=True)])


def regressed_from(x, z, y):
    index = reference.pairs(reference.targets(x, y, 1))
    source, target = ([pair[side] for pair in index] for side in (0, 1))
    return Ridge(alpha=2.0).fit(z[target], x[source]).predict(z)


@every_mover(LAST_IN_A_CHAIN)
def test_in_a_chain_moved_targets_are_led_to_objects_where_they_were(blobs, name):
    X, y, _ = blobs
    mover, truth = LAST_IN_A_CHAIN[name]
    stored = Chain([Scale(0.3), clone(mover)]).fit_transform(X, y)
    np.testing.assert_allclose(stored, truth(X, reference.scale(X, 0.3), y), atol=1e-9)


# Pairs


@pytest.mark.parametrize("n_pairs", [4, 5, 6, 50], ids=lambda n: f"{n}-pairs")
@pytest.mark.parametrize("toward", ["zero", "identity"])
def test_pairs_same_as_a_direct_solve(asarray, rng, n_pairs, toward):
    queries, objects, w = rng.standard_normal((n_pairs, 5)) + 3, rng.standard_normal((n_pairs, 5)), None
    for w in (None, rng.random(n_pairs) + 0.1):
        mu = reference.total_mean(objects, w)
        W = reference.ridge_toward(queries - mu, objects - mu, 0.7, w, toward)
        own = None if w is None else asarray(w)
        mover = MoveLabeled(0.7, toward=toward).fit_pairs(asarray(queries), asarray(objects), own)
        np.testing.assert_allclose(to_numpy(mover.W_), W, atol=1e-10)
        truth = reference.move(queries, W, mu)
        np.testing.assert_allclose(to_numpy(mover.move(asarray(queries))), truth, atol=1e-9)


def test_infinite_penalty_toward_the_identity_moves_nothing(blobs):
    X, y, queries = blobs
    mover = MoveLabeled(1e12, toward="identity")
    np.testing.assert_allclose(mover.fit_transform(X, y), X, atol=1e-6)
    np.testing.assert_allclose(mover.fit_pairs(queries[:4], X[:4]).move(X), X, atol=1e-6)
    assert (
        np.abs(MoveLabeled(1e12).fit_transform(X, y) - X.mean(axis=0)).max() < 1e-6
    )  # toward zero: all to μ


def test_directions_that_no_pair_shows_stay_where_they_are(rng):
    objects = np.column_stack([rng.standard_normal((20, 2)), np.zeros((20, 2))])
    queries = rng.standard_normal((20, 4)) * [1, 1, 0, 0]
    moved = MoveLabeled(0.1, toward="identity").fit_pairs(queries, objects).move([[0.0, 0.0, 5.0, -3.0]])
    np.testing.assert_allclose(moved[0, 2:], [5.0, -3.0], atol=1e-12)


# Other libraries


def test_whitened_order_is_that_of_mahalanobis_distances(blobs):
    X, y, queries = blobs
    means = reference.class_means(X, y)
    S = reference.scatter_matrix(X, [means[c] for c in y])
    mover = Whiten(1e-9)
    stored = mover.fit_transform(X, y)
    truth = cdist(queries, X, "mahalanobis", VI=np.linalg.inv(S))
    np.testing.assert_array_equal(order(asked(mover, queries), stored), np.argsort(truth, axis=1))


@pytest.mark.parametrize("solver", ["lsqr", "svd"])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_whitened_class_means_are_discriminant_analysis(solver, load):
    X, y = load(return_X_y=True)
    priors = np.full(3, 1 / 3)
    oracle = LinearDiscriminantAnalysis(solver=solver, priors=priors).fit(X[::2], y[::2])
    mover = Chain([Whiten(1e-13), Shrink(1.0)])
    model = MoveLabeledClassifier(1, mover=mover).fit(X[::2], y[::2])
    np.testing.assert_array_equal(model.predict(X), oracle.predict(X))
    pipeline = make_pipeline(mover, KNeighborsClassifier(1)).fit(X[::2], y[::2])
    np.testing.assert_array_equal(pipeline.predict(X), oracle.predict(X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_steered_hard_is_ridge_regression_of_the_classes(rng, alpha, weighted):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    w = rng.random(len(X)) + 0.1 if weighted else np.ones(len(X))
    mu = np.average(X, axis=0, weights=w)
    penalty = alpha * np.sum(w[:, None] * (X - mu) ** 2) / X.shape[1]
    oracle = Ridge(alpha=penalty).fit(X, np.eye(3)[y], sample_weight=w)
    queries = 2 * rng.standard_normal((300, 13))
    model = MoveLabeledClassifier(1, mover=Steer(1e5, alpha)).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(model.predict(queries), oracle.predict(queries).argmax(axis=1))
    np.testing.assert_allclose(model.mover_.coef_, oracle.coef_, atol=1e-10)


def test_few_landmarks_are_nystroems_features(blobs):
    X, y, queries = blobs
    mover = KernelMove(0.2, 3, gamma=2.0, n_landmarks=15).fit(X, y)
    assert {tuple(row) for row in mover.landmarks_} <= {tuple(row) for row in X}
    assert len({tuple(row) for row in mover.landmarks_}) == 15
    mean_squared = reference.mean([reference.distance(a, b) ** 2 for a in X for b in X])
    assert mover.width_ == pytest.approx(2.0 / mean_squared)
    root = reference.matrix_power(
        np.exp(-mover.width_ * cdist(mover.landmarks_, mover.landmarks_) ** 2), -0.5
    )

    def features(Z):
        return np.exp(-mover.width_ * cdist(Z, mover.landmarks_) ** 2) @ root

    x, z, _ = pairs_of(X, y, 3)
    penalty = 0.2 * np.sum(features(z) ** 2) / 15
    oracle = Ridge(alpha=penalty, fit_intercept=False).fit(features(z), x - z)
    np.testing.assert_allclose(mover.move(queries), queries + oracle.predict(features(queries)), atol=1e-8)
    np.testing.assert_allclose(mover.move(queries + 1e6), queries + 1e6)  # far from all landmarks


def test_regress_by_ridge_is_move_labeled(blobs):
    X, y, _ = blobs
    X = X - X.mean(axis=0)
    found = Regress(Ridge(alpha=3.0, fit_intercept=False), 2).fit_transform(X, y)
    np.testing.assert_allclose(found, MoveLabeled(3.0, 2).fit_transform(X, y), atol=1e-9)


def test_regress_takes_any_regressor(asarray, blobs, later):
    X, y, _ = blobs
    x, z, _ = pairs_of(X, y, 1)
    mover = Regress(KNeighborsRegressor(2)).fit(asarray(X), asarray(y), sample_weight=asarray(np.ones(60)))
    truth = KNeighborsRegressor(2).fit(z, x).predict(later[0])
    np.testing.assert_allclose(to_numpy(mover.move(asarray(later[0]))), truth)


def test_balance_repairs_a_hub(rng):
    X = rng.standard_normal((200, 50))
    X[0] = X.mean(axis=0)  # near everything
    queries = rng.standard_normal((200, 50))
    mover = Balance(1.0)
    stored = mover.fit_transform(X, np.arange(200) % 2)
    assert np.sum(order(queries, X)[:, 0] == 0) > 100
    assert np.sum(order(asked(mover, queries), stored)[:, 0] == 0) < 20


# Precision and odd data


@every_mover(EVERY)
def test_float32_stays_and_is_near_float64(asarray, blobs, later, name):
    X, y, queries = blobs
    mover = clone(EVERY[name])
    stored = mover.fit_transform(asarray(X.astype(np.float32)), asarray(y))
    moved = mover.move(asarray(later[0].astype(np.float32)), asarray(later[1]))
    found = mover.transform(asarray(queries.astype(np.float32)))
    assert {str(array.dtype).split(".")[-1] for array in (stored, moved, found)} == {"float32"}
    truth = clone(mover).fit(X, y)
    np.testing.assert_allclose(to_numpy(stored)[:, :6], clone(mover).fit_transform(X, y)[:, :6], atol=2e-3)
    np.testing.assert_allclose(to_numpy(moved)[:, :6], truth.move(*later)[:, :6], atol=2e-3)
    apart = cdist(truth.transform(queries), clone(mover).fit_transform(X, y))
    np.testing.assert_allclose(cdist(to_numpy(found), to_numpy(stored)), apart, atol=2e-3)


@every_mover(EVERY)
def test_far_from_the_origin_is_like_near(blobs, later, name):
    X, y, queries = blobs
    near, far = clone(EVERY[name]), clone(EVERY[name])
    stored, moved = near.fit_transform(X, y), far.fit_transform(X + 1e4, y)
    np.testing.assert_allclose(moved[:, :6] - 1e4, stored[:, :6], atol=1e-4)
    np.testing.assert_allclose(
        (far.move(later[0] + 1e4, later[1]) - near.move(*later))[:, :6], 1e4, atol=1e-3
    )
    apart = cdist(asked(near, queries), stored)
    np.testing.assert_allclose(cdist(asked(far, queries + 1e4), moved), apart, atol=1e-4)


@every_mover([name for name in EVERY if "ridge" not in name and name != "regress"])  # their λ has a unit
@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_the_unit_of_the_data_does_not_matter(blobs, name, size):
    X, y, _ = blobs
    mover = clone(EVERY[name])
    scaled = mover.fit_transform(X * size, y) / size
    np.testing.assert_allclose(scaled, clone(mover).fit_transform(X, y), rtol=1e-5, atol=1e-5)
    short = mover.fit_transform((X * size).astype(np.float32), y)
    np.testing.assert_allclose(short.astype(float)[:, :6] / size, scaled[:, :6], atol=5e-3)


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
NEED_PAIRS = ("ridge", "kernel", "regress", "whiten", "denoise", "all")


@every_mover(EVERY)
@pytest.mark.parametrize(
    ("data", "asarray"),
    [*((data, np.asarray) for data in ODD), ("identical", torch.as_tensor), ("duplicates", torch.as_tensor)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_odd_data_works_or_is_refused_with_a_reason(asarray, name, data):
    X, y = ODD[data]
    mover = clone(EVERY[name])
    alone = data == "two of two classes" and any(kind in name for kind in NEED_PAIRS)
    flat = data == "identical" and any(kind in name for kind in ("whiten", "denoise", "all"))
    if alone or flat:
        with pytest.raises(ValueError, match=r"(no pair|nothing) to learn from.*more objects per"):
            mover.fit(asarray(X), asarray(y))
        return
    stored, moved = mover.fit_transform(asarray(X), asarray(y)), mover.move(asarray(X), asarray(y))
    for array in map(to_numpy, (stored, moved)):
        assert np.isfinite(array).all()
        assert array.shape == (len(X), X.shape[1] + (name in LIFTED))
    scale = np.abs(X).max()
    assert np.abs(to_numpy(stored)).max() < 100 * scale


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


@every_mover(
    [name for name in EVERY if name not in ("stay", "empty chain", "scale", "shrink", "regress", "chain")]
)
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_squares_that_overflow_are_refused(blobs, name):
    X, y, _ = blobs
    mover = clone(EVERY[name])
    if name == "smooth":
        assert np.isfinite(mover.fit_transform(X * 1e200, y)).all()
        return
    with pytest.raises(ValueError, match="overflow float64; divide X by its largest value"):
        mover.fit(X * 1e200, y)


# Errors


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
    (Chain([Shrink]), r"a chain is made of movers, as Chain\(\[Whiten.*got \[<class"),
    (Chain(Shrink()), r"a chain is made of movers.*got Shrink\(\)"),
    (MoveLabeledClassifier(mover="auto"), r"mover must be one of hubless.movers.*got 'auto'.*CV\(mover="),
    (MoveLabeledClassifier(mover=Shrink), "mover must be one of hubless.movers, as Shrink.*got <class"),
    (MoveLabeledClassifier(mover=Shrink(3)), "step must be a number from 0 to 1; got 3"),
]


@pytest.mark.parametrize(("model", "message"), BAD_PARAMETERS, ids=lambda value: repr(value)[:60])
def test_bad_parameters_are_refused(blobs, model, message):
    X, y, _ = blobs
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        model.fit(X, y)


BY_CLASS = {"shrink", "label ridge", "chain", "steer", "smooth", "smooth by distance", "smooth by a step"} | {
    name for name in LIFTED if "shrink" in name or "steer" in name or name == "all"
}


@every_mover(EVERY)
def test_later_objects_need_their_classes_where_the_mover_goes_by_them(blobs, name):
    X, y, _ = blobs
    mover = clone(EVERY[name]).fit(X, y + 10)
    if name not in BY_CLASS:
        moved = mover.move(X)
        np.testing.assert_array_equal(moved, mover.move(X, y))
        return
    kind = type(mover).__name__
    with pytest.raises(
        ValueError, match=rf"{kind} moves an object by its class; got no y. Give move\(Z, y\)"
    ):
        mover.move(X)
    with pytest.raises(ValueError, match=f"y has classes that {kind} was not fitted with: 3, 99. Fit again"):
        mover.move(X[:4], np.array([10, 99, 3, 11]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mover.move(X, y[:-1])


@pytest.mark.parametrize("mover", [Shrink(), Whiten(), Chain([Balance()])])
def test_bad_later_objects_and_queries(blobs, mover):
    X, y, _ = blobs
    mover = clone(mover).fit(X, y)
    for method in (mover.transform, mover.move):
        with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 6"):
            method(X[:, :5])
        with pytest.raises(
            ValueError, match=r"must use the same namespace.*got torch.Tensor on cpu, fitted on"
        ):
            method(torch.as_tensor(X))
    with pytest.raises(ValueError, match="the target y is None: give the class of each object"):
        mover.fit(X)


# Daily use


WEIGHTS_ARE_NOT_COPIES = (
    "a weight of 2 is not a second copy: a copy is one more neighbour, while a weight counts the vote of one "
    "neighbour twice"
)
TWO_TRANSFORMS = (
    "fit_transform gives stored objects and transform gives queries, and only one of the two is moved "
    "(TargetEncoder is scikit-learn's precedent)"
)
CHECKED = [
    *(Stay(), Scale(), Unit(), Shrink(), Smooth(3, "distance"), MoveLabeled(toward="identity"), LabelRidge()),
    *(Balance(), Steer(), Whiten(), Denoise(), KernelMove(), Regress()),
    Chain([Whiten(), Shrink(), Balance(), Steer()]),
    MoveLabeledClassifier(mover=Chain([Whiten(), Shrink()])),
    MoveLabeledClassifierCV(mover="auto", cv=2),
    MoveLabeledClassifierCV(mover=[Stay(), Shrink(0.3)], cv=2),
]


def exceptions(estimator):
    if isinstance(estimator, MoveLabeledClassifier):
        return {"check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_COPIES}
    if isinstance(estimator, Stay | MoveLabeledClassifierCV):
        return {}
    return {
        "check_transformer_general": TWO_TRANSFORMS,
        "check_transformer_data_not_an_array": TWO_TRANSFORMS,
    }


@parametrize_with_checks(CHECKED, expected_failed_checks=exceptions, xfail_strict=True)
def test_scikit_learn_checks(estimator, check, monkeypatch):
    few = [Stay(), MoveLabeled(), Chain([Whiten(), Shrink()])]
    monkeypatch.setattr("hubless.race.simple_movers", lambda: few)  # all of them take their time
    monkeypatch.setattr("hubless.race.FRONT", 1)
    check(estimator)


@every_mover(EVERY)
def test_copies_learn_the_same_and_fitting_changes_no_parameter(blobs, name):
    X, y, _ = blobs
    mover = clone(EVERY[name])
    before = repr(mover)
    stored = mover.fit_transform(X, y)
    again = clone(mover)
    assert repr(mover) == repr(again) == before
    np.testing.assert_array_equal(again.fit_transform(X, y), stored)
    np.testing.assert_array_equal(mover.fit(X * 3, y).fit_transform(X, y), stored)  # nothing is left over


@every_mover(EVERY)
def test_classifier_same_as_a_pipeline(blobs, name):
    X, y, queries = blobs
    mover = EVERY[name]
    pipeline = make_pipeline(clone(mover), KNeighborsClassifier(1, algorithm="brute")).fit(X, y)
    model = MoveLabeledClassifier(1, mover=mover).fit(X, y)
    np.testing.assert_array_equal(model.predict(queries), pipeline.predict(queries))
    assert not hasattr(mover, "exit_")  # the given mover is a pattern, and stays as it was
    np.testing.assert_array_equal(model.moved_, model.mover_.fit_transform(X, y))


def test_grid_search_over_parameters_of_movers():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), MoveLabeledClassifier(3, mover=Shrink()))
    grid = {"movelabeledclassifier__mover__step": [0.1, 0.9], "movelabeledclassifier__n_neighbors": [1, 5]}
    found = GridSearchCV(model, grid, cv=3).fit(X, y)
    for step, k, score in zip(
        found.cv_results_["param_movelabeledclassifier__mover__step"],
        found.cv_results_["param_movelabeledclassifier__n_neighbors"],
        found.cv_results_["mean_test_score"],
        strict=True,
    ):
        own = make_pipeline(StandardScaler(), Shrink(step), KNeighborsClassifier(k, algorithm="brute"))
        assert cross_val_score(own, X, y, cv=3).mean() == pytest.approx(score, abs=0.02)  # ties differ
    assert isinstance(found.best_estimator_[-1].mover_, Shrink)
    chains = {"chain__movers": [[Whiten(1.0), Shrink(0.5)], [Scale(0.5)], []]}
    search = GridSearchCV(make_pipeline(StandardScaler(), Chain(), KNeighborsClassifier()), chains, cv=3)
    assert search.fit(X, y).best_score_ > 0.9


def test_parameters_can_be_read_and_set():
    model = MoveLabeledClassifier(mover=Denoise())
    model.set_params(mover__power=2.0, mover__whiten=True)
    assert model.get_params()["mover__power"] == 2.0
    assert repr(model.mover) == "Denoise(power=2.0, whiten=True)"
    with pytest.raises(ValueError, match="Invalid parameter 'strength'"):
        Shrink().set_params(strength=1)


@pytest.mark.parametrize(("mover", "lifted"), [(Shrink(), False), (Chain([Whiten(), Balance()]), True)])
def test_data_frames_name_the_column(mover, lifted):
    values, y = load_wine(return_X_y=True)
    X = pd.DataFrame(values, columns=list("abcdefghijklm"))
    names = [*"abcdefghijklm", *["lift"] * lifted]
    mover = clone(mover).set_output(transform="pandas")
    stored = mover.fit_transform(X, y)
    assert list(stored.columns) == list(mover.transform(X).columns) == names
    assert list(mover.get_feature_names_out()) == names
    np.testing.assert_allclose(stored, clone(mover).set_output(transform="default").fit_transform(values, y))
    assert (mover.transform(X).to_numpy()[:, :13] == values).all()
    with pytest.raises(ValueError, match="feature names"):
        mover.transform(X[list("bacdefghijklm")])


def test_the_mover_of_a_classifier_can_be_used_on_its_own(blobs):
    X, y, _ = blobs
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = MoveLabeledClassifier(mover=Shrink()).fit(frame, y)
    np.testing.assert_allclose(model.mover_.move(frame, y), model.moved_)
    assert list(model.mover_.get_feature_names_out()) == list("abcdef")


@every_mover(EVERY)
def test_classes_may_have_names(blobs, later, name):
    X, y, _ = blobs
    names = np.array(["ant", "bee", "cat", "dog"])
    mover = clone(EVERY[name])
    stored = mover.fit_transform(torch.as_tensor(X), names[y])
    truth = clone(mover).fit(X, y)
    np.testing.assert_allclose(to_numpy(stored), clone(mover).fit_transform(X, y), atol=1e-7)
    moved = mover.move(torch.as_tensor(later[0]), names[later[1]].tolist())
    np.testing.assert_allclose(to_numpy(moved), truth.move(*later), atol=1e-7)
    assert list(mover.classes_) == list(names)


def test_weights_of_the_paper_go_when_another_mover_comes(blobs):
    X, y, _ = blobs
    model = MoveLabeledClassifier().fit(X, y)
    assert hasattr(model, "W_")
    model.set_params(mover=Shrink()).fit(X, y)
    assert not {"W_", "mean_", "alpha_"} & set(vars(model))


@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_numbers_of_numpy_do_not_decide_the_precision(blobs, number):
    X, y, _ = blobs
    for mover in (Scale(number(0.3)), Shrink(number(0.3)), Smooth(2, step=number(0.3)), Balance(number(0.3))):
        assert mover.fit_transform(X.astype(np.float32), y).dtype == np.float32


def test_distances_do_not_weigh_votes_where_their_order_alone_is_known(blobs):
    X, y, _ = blobs
    for mover in (Balance(), Chain([Whiten(), Shrink(0.5)])):
        with pytest.raises(ValueError, match=r'weights="distance" needs distances.*Use weights="uniform"'):
            MoveLabeledClassifier(3, mover=mover, weights="distance").fit(X, y)
    auto = MoveLabeledClassifierCV(mover=[Balance(), Shrink(0.1)], weights="distance", cv=2).fit(X, y)
    assert isinstance(auto.mover_, Shrink)


def test_kernels_of_far_objects_keep_their_digits(blobs):
    X, y, _ = blobs
    near = KernelMove(n_landmarks=20).fit_transform(X, y) - X
    far = KernelMove(n_landmarks=20).fit_transform(X + 1e6, y) - (X + 1e6)
    np.testing.assert_allclose(far, near, atol=1e-6)


def test_a_refused_fit_is_no_fit(blobs):
    X, _, _ = blobs
    mover = MoveLabeled()
    with pytest.raises(ValueError, match="no pair to learn from"):
        mover.fit(X[:10], np.arange(10))
    with pytest.raises(NotFittedError):
        mover.transform(X)
