"""What a column shows, written onto a direction: exact for queries in a plane, and its error is measured."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone

from hubless import MoveLabeledClassifier, MoveLabeledClassifierCV, load, save
from hubless.arrays import to_numpy
from hubless.movers import Balance, Chain, Scale, Shrink, Stay, Steer, WithoutColumn
from hubless.repair.repair import Repair
from tests import reference
from tests.tables import CASES, Row, each

LIFTED = {name: row for name, row in CASES.items() if row.adds_column}


def without(row: Row, max_changed=1.0):
    return Chain([row.new(), WithoutColumn(max_changed)])


def in_plane(mover, queries):
    """Queries without what they have along the direction of the mover, relative to the mean."""
    last = mover.movers_[-1]
    n, mu = to_numpy(last.direction_), to_numpy(last.mean_)
    return np.array([x - sum(n * (x - mu)) * n for x in queries])


@each(LIFTED)
def test_queries_in_the_plane_are_ordered_as_by_the_scores_of_loops(asarray, blobs, row):
    X, y, queries = blobs
    mover = without(row)
    stored = to_numpy(mover.fit_transform(asarray(X), asarray(y)))
    assert stored.shape == X.shape
    queries = in_plane(mover, queries)
    np.testing.assert_array_equal(to_numpy(mover.transform(asarray(queries))), queries)
    truth = row.of_loops(X, y, queries)
    np.testing.assert_array_equal(np.argsort(cdist(queries, stored)), np.argsort(truth))
    apart = cdist(queries, stored) ** 2
    gain = mover.movers_[-1].gain_
    shift = apart - gain * truth  # the same for all objects, whatever it is for a query
    np.testing.assert_allclose(shift - shift[:, :1], 0, atol=1e-5 * apart.max())


@each(LIFTED)
def test_later_objects_join_those_learned_from(blobs, later, row):
    X, y, queries = blobs
    mover = without(row)
    stored, moved = mover.fit_transform(X, y), mover.move(*later)
    queries = in_plane(mover, queries)
    truth = np.hstack([row.of_loops(X, y, queries), row.of_loops(X, y, queries, later=later)])
    together = np.vstack([stored, moved])
    last = mover.movers_[-1]
    shown = np.abs((together - last.mean_) @ last.direction_) > 1e-6  # below the floor, they are in the plane
    assert shown.sum() >= 75
    order = np.argsort(cdist(queries, together[shown]))
    np.testing.assert_array_equal(order, np.argsort(truth[:, shown]))


@each(LIFTED)
def test_exact_where_columns_sum_to_a_constant(blobs, row):
    X, y, queries = blobs
    X, queries = (np.column_stack([part, 5 - part.sum(axis=1)]) for part in (X, queries))
    mover = without(row, max_changed=0.0)
    stored = mover.fit_transform(X, y)
    np.testing.assert_allclose(np.abs(mover.movers_[-1].direction_), 7**-0.5, atol=1e-9)
    assert mover.movers_[-1].spread_ < 1e-9
    truth = row.of_loops(X, y, queries)
    np.testing.assert_array_equal(np.argsort(cdist(queries, stored)), np.argsort(truth))


def test_the_direction_is_one_in_which_objects_vary_the_least(blobs, asarray, weights):
    X, y, _ = blobs
    X[:, 2] *= 0.01
    for w in (None, weights):
        mover = Chain([Balance(), WithoutColumn(1.0)])
        mover.fit(asarray(X), asarray(y), sample_weight=None if w is None else asarray(w))
        n = to_numpy(mover.movers_[-1].direction_)
        np.testing.assert_allclose(n, reference.least_direction(X, w), atol=1e-9)
        least = np.linalg.eigvalsh(np.cov(X.T, aweights=w))[0]
        assert np.cov(X @ n, aweights=w) == pytest.approx(least, rel=0.01)


def test_the_direction_of_few_objects_is_one_in_which_they_do_not_differ(asarray, rng, weights):
    X, y = rng.standard_normal((12, 30)), np.arange(12) % 2
    mover = Chain([Balance(), WithoutColumn(1.0)])
    mover.fit(asarray(X), asarray(y), sample_weight=asarray(weights[:12]))
    n = to_numpy(mover.movers_[-1].direction_)
    np.testing.assert_allclose(n, reference.least_direction(X, weights[:12]), atol=1e-7)
    np.testing.assert_allclose(X @ n, (X @ n)[0], atol=1e-9)
    assert mover.movers_[-1].spread_ > 0.02  # those held out do differ


def held_out_by_loops(X, y, g):
    """What `spread_`, `changed_` and `changed_class_` of Balance(g, n_neighbors=3), WithoutColumn are."""
    rows = sorted(np.random.default_rng(0).permutation(len(X))[: len(X) // 5])
    others = np.delete(np.arange(len(X)), rows)
    mu, d = reference.total_mean(X), X.shape[1]
    T = reference.scatter_matrix(X[others], [mu] * len(others))
    n = np.random.default_rng(0).standard_normal(d)
    n = n @ reference.matrix_power(T * d / np.trace(T) + 1e-6 * np.eye(d), -20)
    n /= np.linalg.norm(n)
    near = [reference.near_spread(x, X, 3, leave_out=i) for i, x in enumerate(X)]
    bias = [-g * min(r, sorted(near)[int(np.ceil(0.99 * (len(X) - 1)))]) for r in near]
    flat = reference.onto_direction(X, bias, n, mu)
    changed, of_class, squares = 0, 0, 0.0
    for i in rows:
        by_column = [reference.distance(X[i], X[j]) ** 2 + bias[j] for j in range(len(X))]
        by_direction = [reference.distance(X[i], flat[j]) for j in range(len(X))]
        by_column[i] = by_direction[i] = np.inf
        changed += int(np.argmin(by_column) != np.argmin(by_direction))
        of_class += int(y[np.argmin(by_column)] != y[np.argmin(by_direction)])
        squares += sum(n * (X[i] - mu)) ** 2 / len(rows)
    wide = reference.mean([reference.distance(x, mu) ** 2 for x in X])
    return (squares / wide) ** 0.5, changed / len(rows), of_class / len(rows)


@pytest.mark.parametrize(("width", "n_changed"), [(1.0, (6, 5)), (0.3, (0, 0))])
def test_the_error_is_measured_on_objects_that_the_direction_was_not_learned_from(
    asarray, blobs, width, n_changed
):
    X, y, _ = blobs
    X[:, 4] *= width
    y = np.arange(60) % 3  # so that another nearest object is often of another class
    mover = Chain([Balance(0.9, n_neighbors=3), WithoutColumn(1.0)]).fit(asarray(X), asarray(y))
    last = mover.movers_[-1]
    truth = held_out_by_loops(X, y, 0.9)
    assert (last.spread_, last.changed_, last.changed_class_) == tuple(map(pytest.approx, truth))
    assert (truth[1] * 12, truth[2] * 12) == n_changed


def in_a_square(rng):
    """Two classes in opposite quarters of a square: no direction can be spared."""
    X = rng.random((200, 2)) - 0.5
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_too_large_an_error_is_refused(rng):
    X, y = in_a_square(rng)
    with pytest.raises(ValueError, match=r"% of held-out objects.*max_changed=0\.05:.*Shrink.*raise"):
        Chain([Balance(), WithoutColumn()]).fit(X, y)
    assert Chain([Balance(), WithoutColumn(1.0)]).fit(X, y).movers_[-1].changed_class_ > 0.2
    with pytest.raises(ValueError, match="max_changed must be a number from 0 to 1; got 2"):
        WithoutColumn(2).fit(X, y)


def test_a_choice_leaves_out_what_is_refused(rng):
    X, y = in_a_square(rng)
    movers = [Stay(), Chain([Balance(), WithoutColumn()])]
    model = MoveLabeledClassifierCV(mover=movers, lift=False).fit(X, y)
    assert isinstance(model.mover_, Stay)
    assert "held-out" in str(model.cv_results_["error"][-1])


def test_only_the_last_of_a_chain_decides_on_the_column(blobs):
    X, y, _ = blobs
    flat = WithoutColumn(1.0)
    for movers, n_columns in [
        ([Steer(), flat], 6),
        ([Chain([Steer()]), Chain([flat])], 6),
        ([Chain([Steer(), flat]), Scale(0.5)], 6),
        ([flat, Steer()], 7),
        ([Steer(), flat, Balance()], 7),
        ([flat, Shrink()], 6),
    ]:
        mover = Chain([clone(step) for step in movers])
        assert mover.fit_transform(X, y).shape[1] == mover.transform(X).shape[1] == n_columns
        assert mover._adds_column == (n_columns == 7)


def test_later_movers_work_in_the_space_of_the_queries(blobs):
    X, y, _ = blobs
    flat = Chain([CASES["Whiten, Shrink"].new(), WithoutColumn(1.0)]).fit_transform(X, y)
    both = Chain([CASES["Whiten, Shrink"].new(), WithoutColumn(1.0), Shrink(0.4)]).fit_transform(X, y)
    np.testing.assert_allclose(both, reference.shrink(flat, y, 0.4), atol=1e-9)


def test_without_need_nothing_changes(blobs):
    X, y, _ = blobs
    mover = Chain([Shrink(0.4), WithoutColumn(0.0)])
    np.testing.assert_array_equal(mover.fit_transform(X, y), Shrink(0.4).fit_transform(X, y))
    last = mover.movers_[-1]
    assert (last.direction_, last.changed_, last.changed_class_, last.spread_) == (None, 0.0, 0.0, 0.0)


def test_saved_and_loaded(blobs, later, tmp_path):
    X, y, queries = blobs
    mover = Chain([CASES["Whiten, Shrink, Balance, Steer"].new(), WithoutColumn(1.0)])
    model = MoveLabeledClassifier(3, mover=mover).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.kneighbors(queries)[1], model.kneighbors(queries)[1])
    np.testing.assert_array_equal(again.mover_.move(*later), model.mover_.move(*later))
    assert again.mover_.movers_[-1].changed_ == model.mover_.movers_[-1].changed_


def test_distances_and_cosine_are_refused(blobs):
    X, y, _ = blobs
    mover = Chain([Steer(), WithoutColumn(1.0)])
    with pytest.raises(ValueError, match="needs distances"):
        MoveLabeledClassifier(mover=mover, weights="distance").fit(X, y)
    mover.fit(X, y)
    assert Repair(mover, label="class").dimension == 6
    with pytest.raises(ValueError, match=r"compares by Euclidean distance.*cosine"):
        Repair(mover, metric="cosine", label="class")
