"""Each mover against plain loops of its formula, and against other libraries."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hubless import MoveLabeledClassifier
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
    Steer,
    Unit,
    Whiten,
)
from hubless.movers.log_odds import LogisticProblem
from tests import reference
from tests.tables import CASES, each

PLAIN = {name: row for name, row in CASES.items() if not row.adds_column}
LIFTED = {name: row for name, row in CASES.items() if row.adds_column}
ANSWERS = {}


def once(what, row, loops):
    """Loops are slow, and the fixtures give all array libraries the same numbers."""
    if (what, id(row)) not in ANSWERS:
        ANSWERS[what, id(row)] = loops()
    return ANSWERS[what, id(row)]


def order(queries, stored):
    return np.argsort(cdist(queries, stored), axis=1)


def as_asked(mover, queries, asarray=np.asarray):
    return to_numpy(mover.transform(asarray(queries)))


# --- plain loops --------------------------------------------------------------------------------------------


@each(PLAIN)
def test_objects_move_as_in_loops(asarray, blobs, row):
    X, y, queries = blobs
    mover, truth = row.new(), once("now", row, lambda: row.of_loops(X, y))
    np.testing.assert_allclose(to_numpy(mover.fit_transform(asarray(X), asarray(y))), truth, atol=1e-9)
    np.testing.assert_array_equal(as_asked(mover, queries, asarray), queries)


@each(PLAIN)
def test_weighted_objects_move_as_in_loops(asarray, blobs, weights, row):
    X, y, _ = blobs
    mover, truth = row.new(), once("weighted", row, lambda: row.of_loops(X, y, sample_weight=weights))
    moved = mover.fit_transform(asarray(X), asarray(y), sample_weight=asarray(weights))
    np.testing.assert_allclose(to_numpy(moved), truth, atol=1e-9)


@each(PLAIN)
def test_later_objects_move_as_in_loops(asarray, blobs, later, row):
    X, y, _ = blobs
    mover = row.new().fit(asarray(X), asarray(y))
    truth = once("later", row, lambda: row.of_loops(X, y, later=later))
    np.testing.assert_allclose(to_numpy(mover.move(*map(asarray, later))), truth, atol=1e-9)


@each(LIFTED)
def test_stored_rows_order_queries_as_the_scores_of_loops(asarray, blobs, row):
    X, y, queries = blobs
    mover = row.new()
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y)))
    assert stored.shape == (60, 7)
    unmoved = as_asked(mover, queries, asarray)
    np.testing.assert_array_equal(unmoved, np.column_stack([queries, np.zeros(25)]))
    truth = once("now", row, lambda: row.of_loops(X, y, queries))
    np.testing.assert_array_equal(order(unmoved, stored), np.argsort(truth, axis=1))
    assert not np.array_equal(np.argsort(truth, axis=1), order(queries, X))  # not that of plain k-NN


@each(LIFTED)
def test_weighted_rows_order_queries_as_the_scores_of_loops(blobs, weights, row):
    X, y, queries = blobs
    mover, truth = row.new(), row.of_loops(X, y, queries, sample_weight=weights)
    for size in (1.0, 40.0):  # shares count, not sizes
        stored = mover.fit_transform(X, y, sample_weight=weights * size)
        np.testing.assert_array_equal(order(as_asked(mover, queries), stored), np.argsort(truth, axis=1))


@each(LIFTED)
def test_later_rows_order_queries_as_the_scores_of_loops(asarray, blobs, later, row):
    X, y, queries = blobs
    mover = row.new()
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y)))
    moved = to_numpy(mover.move(*map(asarray, later)))
    shown = moved[:, -1] > 0  # the column cannot show less than it had to for the objects learned from
    assert shown.sum() >= 5
    before = once("now", row, lambda: row.of_loops(X, y, queries))
    added = once("later", row, lambda: row.of_loops(X, y, queries, later=later))
    truth, together = np.hstack([before, added[:, shown]]), np.vstack([stored, moved[shown]])
    np.testing.assert_array_equal(
        order(as_asked(mover, queries, asarray), together), np.argsort(truth, axis=1)
    )


@each({name: row for name, row in CASES.items() if row.same_later})
def test_objects_move_the_same_way_in_fit_and_later(blobs, row):
    X, y, _ = blobs
    mover = row.new()
    np.testing.assert_allclose(mover.fit_transform(X, y), mover.move(X, y), atol=1e-6)


def test_zeros_stay_zeros_at_length_one(blobs, asarray):
    X, y, queries = blobs
    X[3] = 0
    mover = Unit()
    moved = mover.fit_transform(asarray(X), asarray(y))
    np.testing.assert_allclose(to_numpy(moved), reference.unit(X, y), rtol=1e-12)
    truth = reference.unit(X, y, later=(queries, None))
    np.testing.assert_allclose(to_numpy(mover.move(asarray(queries))), truth, rtol=1e-12)


# --- weights and targets ------------------------------------------------------------------------------------


@each(CASES)
def test_objects_of_weight_zero_are_not_learned_from_but_keep_their_row(asarray, blobs, row):
    X, y, _ = blobs
    w = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    mover, kept = row.new(), w > 0
    moved = to_numpy(mover.fit_transform(asarray(X), asarray(y), sample_weight=asarray(w)))
    without = row.new()
    np.testing.assert_allclose(moved[kept], without.fit_transform(X[kept], y[kept]), atol=1e-9)
    if y[~kept].max() < 3:  # a class that is not known without them
        np.testing.assert_allclose(moved[~kept], without.move(X[~kept], y[~kept]), atol=1e-7)


@pytest.mark.parametrize("mover", [Shrink(0.4), LabelRidge(), Smooth(3), Whiten(), Steer()])
def test_a_class_of_weight_zero_does_not_pull_toward_the_origin(blobs, mover):
    X, y, _ = blobs
    w = np.where(y == 1, 0.0, 1.0)
    moved = clone(mover).fit_transform(X, y, sample_weight=w)
    shifted = clone(mover).fit_transform(X + 100, y, sample_weight=w)
    np.testing.assert_allclose((shifted - moved)[:, :6], 100, atol=1e-6)  # not toward the origin
    np.testing.assert_allclose(moved[y != 1], clone(mover).fit_transform(X[y != 1], y[y != 1]), atol=1e-9)


@pytest.mark.parametrize("mover", [Scale(0.3), Shrink(0.4), Chain([Shrink(0.4), Scale(0.3)])])
def test_a_weight_of_n_is_n_copies(blobs, rng, mover):
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
        *(
            Smooth(2),
            MoveLabeled(1.0, 2),
            LabelRidge(1.0, 2),
            Steer(classifier="ridge"),
            KernelMove(0.1, 2),
            Regress(None, 2),
        ),
        *(Denoise(n_targets=2, n_iter=1), Chain([Scale(), Smooth(2)])),
    ],
)
def test_precomputed_targets_are_used(asarray, blobs, mover):
    X, y, _ = blobs
    nearest = reference.targets(X, y, 5)
    searched = clone(mover).fit_transform(X, y)
    given = clone(mover).fit_transform(asarray(X), asarray(y), targets=asarray(nearest))
    np.testing.assert_allclose(to_numpy(given), searched, atol=1e-8)
    far = np.where(nearest >= 0, nearest[:, ::-1], nearest)
    assert not np.allclose(clone(mover).fit_transform(X, y, targets=far), searched)


def test_ridge_takes_the_pairs_that_are_given(blobs):
    X, y, _ = blobs
    other = np.where(reference.targets(X, y, 2) >= 0, np.roll(np.arange(60), 1)[:, None], -1)
    truth = reference.move_labeled(X, y, 2.0, target_rows=other)
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
    np.testing.assert_array_equal(order(as_asked(mover, queries), stored), np.argsort(truth, axis=1))


def test_one_proxy_gives_no_handicap_in_fit_or_later(blobs):
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


@pytest.mark.parametrize("name", LAST_IN_A_CHAIN)
def test_in_a_chain_moved_targets_are_led_to_objects_where_they_were(blobs, name):
    X, y, _ = blobs
    mover, truth = LAST_IN_A_CHAIN[name]
    stored = Chain([Scale(0.3), clone(mover)]).fit_transform(X, y)
    np.testing.assert_allclose(stored, truth(X, reference.scale(X, y, 0.3), y), atol=1e-9)


# --- pairs that the user has --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pairs", [4, 5, 6, 50], ids=lambda n: f"{n}-pairs")
@pytest.mark.parametrize("toward", ["zero", "identity"])
def test_pairs_same_as_a_direct_solve(asarray, rng, n_pairs, toward):
    queries, objects = rng.standard_normal((n_pairs, 5)) + 3, rng.standard_normal((n_pairs, 5))
    for w in (None, rng.random(n_pairs) + 0.1):
        mu = reference.total_mean(objects, w)
        W = reference.ridge_toward(queries - mu, objects - mu, 0.7, w, toward)
        given = None if w is None else asarray(w)
        mover = MoveLabeled(0.7, toward=toward).fit_pairs(asarray(queries), asarray(objects), given)
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


# --- other libraries ----------------------------------------------------------------------------------------


def test_whitened_order_is_that_of_mahalanobis_distances(blobs):
    X, y, queries = blobs
    means = reference.class_means(X, y)
    S = reference.scatter_matrix(X, [means[c] for c in y])
    mover = Whiten(1e-9)
    stored = mover.fit_transform(X, y)
    truth = cdist(queries, X, "mahalanobis", VI=np.linalg.inv(S))
    np.testing.assert_array_equal(order(as_asked(mover, queries), stored), np.argsort(truth, axis=1))


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
    model = MoveLabeledClassifier(1, mover=Steer(1e5, alpha, classifier="ridge")).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(model.predict(queries), oracle.predict(queries).argmax(axis=1))
    np.testing.assert_allclose(model.mover_.coef_, oracle.coef_, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_steered_hard_is_logistic_regression(rng, alpha, weighted, n_classes):
    X, y = load_wine(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    w = rng.random(len(X)) + 0.1 if weighted else np.ones(len(X))
    mu = np.average(X, axis=0, weights=w)
    unit = np.sqrt(np.average(np.sum((X - mu) ** 2, axis=1), weights=w) / X.shape[1])
    penalty = alpha if n_classes > 2 else alpha / 2  # scikit-learn has one weight w for two: w₁ = −w₀ = w / 2
    oracle = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=100_000)
    oracle.fit((X - mu) / unit, y, sample_weight=w / w.sum())
    queries = mu + 2 * unit * rng.standard_normal((300, 13))
    model = MoveLabeledClassifier(1, mover=Steer(1e5, alpha)).fit(X, y, sample_weight=w)
    scores = oracle.decision_function((queries - mu) / unit)
    margin = np.abs(scores) if n_classes == 2 else np.diff(np.sort(scores))[:, -1]
    sure = margin > 1e-2  # the others are ties, up to rounding
    assert sure.mean() > 0.9
    expected = oracle.predict((queries - mu) / unit)
    np.testing.assert_array_equal(model.predict(queries)[sure], expected[sure])


def test_log_odds_are_those_of_scikit_learn(rng):
    X = 5 + rng.standard_normal((400, 12)) * np.linspace(0.2, 3, 12)
    y = (X[:, :4] + rng.standard_normal((400, 4))).argmax(axis=1)
    w = rng.random(400) + 0.1
    problem = LogisticProblem.of(X, y, 4, w)
    oracle = LogisticRegression(C=1 / 0.01, tol=1e-12, max_iter=100_000)
    oracle.fit(problem.X, y, sample_weight=w / w.sum())
    start = problem.solve(0.1)
    for found in (
        problem.solve(0.01, tolerance=1e-9, max_iter=5000),
        problem.solve(0.01, start, tolerance=1e-9),
    ):
        np.testing.assert_allclose(found.coef * problem.unit, oracle.coef_, atol=1e-4)
        shift = found.intercept - oracle.intercept_  # a constant for all classes changes nothing
        np.testing.assert_allclose(shift - shift.mean(), 0, atol=1e-4)


def test_slopes_of_the_logistic_loss_are_those_of_differences(rng):
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 3, 40)
    problem = LogisticProblem.of(X, y, 3, rng.random(40) + 0.1)
    flat = rng.standard_normal(12)

    def loss(values):
        return problem.loss_and_slopes(values[:9].reshape(3, 3), values[9:], 0.3)[0]

    _, of_W, of_b = problem.loss_and_slopes(flat[:9].reshape(3, 3), flat[9:], 0.3)
    np.testing.assert_allclose(np.append(of_W, of_b), approx_fprime(flat, loss, 1e-7), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_landmarks_at_all_objects_are_kernel_ridge_regression(blobs, weights, later, weighted):
    X, y, _ = blobs
    x, z, w = reference.weighted_pairs(X, y, 3, weights if weighted else None)
    mu = reference.total_mean(X, weights if weighted else None)
    gamma = 0.8 / (2 * reference.mean([reference.distance(row, mu) ** 2 for row in X]))
    oracle = KernelRidge(alpha=0.2 * sum(w) / 60, kernel="rbf", gamma=gamma)
    oracle.fit(z, x - z, sample_weight=np.array(w))
    mover = KernelMove(0.2, 3, gamma=0.8).fit(X, y, sample_weight=weights if weighted else None)
    np.testing.assert_allclose(mover.move(later[0]), later[0] + oracle.predict(later[0]), atol=1e-9)


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

    x, z, _ = reference.weighted_pairs(X, y, 3)
    penalty = 0.2 * np.sum(features(z) ** 2) / 15
    oracle = Ridge(alpha=penalty, fit_intercept=False).fit(features(z), x - z)
    np.testing.assert_allclose(mover.move(queries), queries + oracle.predict(features(queries)), atol=1e-8)
    np.testing.assert_allclose(mover.move(queries + 1e6), queries + 1e6)  # far from all landmarks


def test_regress_by_ridge_is_move_labeled(blobs):
    X, y, _ = blobs
    X = X - X.mean(axis=0)
    moved = Regress(Ridge(alpha=3.0, fit_intercept=False), 2).fit_transform(X, y)
    np.testing.assert_allclose(moved, MoveLabeled(3.0, 2).fit_transform(X, y), atol=1e-9)


def test_regress_takes_any_regressor(asarray, blobs, later):
    X, y, _ = blobs
    x, z, _ = reference.weighted_pairs(X, y, 1)
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
    assert np.sum(order(as_asked(mover, queries), stored)[:, 0] == 0) < 20
