"""LMNN against its objective as loops, finite differences and metric-learn."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris, load_wine

from hubless.arrays import products
from hubless.baselines import LMNN, lmnn
from tests import reference

ORACLE = json.loads((Path(__file__).parent / "oracle" / "metric_learn.json").read_text())


def problem(X, y, n_targets=1, push=0.5):
    X = X - X.mean(axis=0)
    return lmnn.Problem(X, y, reference.targets(X, y, n_targets), push)


@pytest.mark.parametrize(("n_targets", "push"), [(1, 0.5), (3, 0.2)])
def test_loss_same_as_loops_and_gradient_as_differences(three_classes, rng, asarray, n_targets, push):
    X, y = three_classes
    example = problem(X, y, n_targets, push)
    L = rng.standard_normal((3, 3)) / 2
    converted = lmnn.Problem(*(asarray(array) for array in example[:3]), push)
    everything, near = (
        lmnn.lmnn_loss(converted, L, {}),
        lmnn.lmnn_loss(converted, L, lmnn.near_pairs(converted, L)),
    )
    truth = reference.lmnn_loss(example.X, y, example.targets, push, L)
    slope = approx_fprime(
        L.ravel(),
        lambda flat: reference.lmnn_loss(example.X, y, example.targets, push, flat.reshape(3, 3)),
        1e-7,
    )
    for value, gradient in (everything, near):
        assert value == pytest.approx(truth, rel=1e-10)
        np.testing.assert_allclose(gradient.ravel(), slope, rtol=1e-4, atol=1e-4)


def test_lists_few_pairs_and_all_that_matter(three_classes, monkeypatch):
    example, L = problem(*three_classes), 2 * np.eye(3)
    monkeypatch.setattr(lmnn, "ROWS", 7)  # several blocks of rows
    monkeypatch.setattr(products, "blas_threads", lambda: 4)  # on four threads
    monkeypatch.setattr(lmnn, "SPARSE", 0.5)
    active = lmnn.near_pairs(example, L)
    kept = [pairs for pairs in active.values() if pairs is not None]
    assert len(active) == 6
    assert len(kept) >= 3
    assert sum(len(rows) for rows, _ in kept) < 7 * 40
    truth = reference.lmnn_loss(example.X, three_classes[1], example.targets, 0.5, L)
    assert lmnn.lmnn_loss(example, L, active)[0] == pytest.approx(truth)
    assert lmnn.lmnn_loss(example, L, {})[0] == pytest.approx(truth)


def test_objective_falls_and_is_that_of_loops():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LMNN(tol=1e-5, max_iter=500).fit(X, y)
    assert all(after < before for before, after in pairwise(model.history_))
    truth = reference.lmnn_loss(X, y, reference.targets(X, y, 1), 0.5, model.components_)
    assert model.history_[-1] == pytest.approx(truth, rel=1e-9)
    assert model.n_iter_ <= 500


@pytest.mark.parametrize(("name", "load"), [("iris", load_iris), ("wine", load_wine)])
def test_goes_at_least_as_low_as_metric_learn(name, load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    answer = ORACLE["lmnn"][name]
    targets = reference.targets(X, y, answer["n_targets"])
    theirs = reference.lmnn_loss(X, y, targets, 0.5, np.array(answer["L"]))
    model = LMNN(answer["n_targets"], tol=1e-6, max_iter=1000).fit(X, y)
    assert reference.lmnn_loss(X, y, targets, 0.5, model.components_) <= 1.001 * theirs


@pytest.mark.parametrize("n_targets", [1, 5])
def test_start_is_the_best_multiple_of_the_identity(three_classes, n_targets):
    example = problem(*three_classes, n_targets)
    start = lmnn.starting_map(example)
    best = reference.lmnn_loss(*example[:2], example.targets, 0.5, start)
    for factor in (0.5, 0.8, 1.25, 2):
        assert reference.lmnn_loss(*example[:2], example.targets, 0.5, factor * start) > best


def test_objective_in_float32_of_distant_groups(rng):
    group = np.repeat([0.0, 1e4], 75)[:, None]
    X = (rng.standard_normal((150, 4)) + group).astype(np.float32)
    y = np.tile([0, 1, 2], 50)
    model = LMNN().fit(X, y)
    centred = X.astype(float) - X.astype(float).mean(axis=0)
    truth = reference.lmnn_loss(
        centred, y, reference.targets(centred, y, 1), 0.5, model.components_.astype(float)
    )
    assert model.history_[-1] == pytest.approx(truth, rel=1e-2)


@pytest.mark.parametrize("seed", range(5))
def test_with_listed_pairs_ends_where_all_pairs_lead(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    ends = {}
    for share in (0.0, 1.0):  # all pairs of all blocks, or lists for all
        monkeypatch.setattr(lmnn, "SPARSE", share)
        ends[share] = lmnn.lmnn(problem(X, y), 1000, 1e-6)
        history = ends[share].history
        assert all(after < before for before, after in pairwise(history))
    assert ends[1.0].history[-1] == pytest.approx(ends[0.0].history[-1], rel=1e-2)


def test_joins_listed_pairs():
    a = {0: (np.array([0, 1]), np.array([5, 2])), 4: None}
    b = {0: (np.array([1, 1]), np.array([2, 3])), 4: (np.array([0]), np.array([0]))}
    rows, columns = lmnn.union(a, b, 6)[0]
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 5), (1, 2), (1, 3)]
    assert lmnn.union(a, b, 6)[4] is None
    assert lmnn.union(b, a, 6)[4] is None
