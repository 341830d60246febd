"""What must not change when the data is turned, moved, scaled, shuffled, renamed or split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubless import MoveLabeled, MoveLabeledClassifier, MoveQuery
from hubless.arrays import to_numpy
from hubless.moments import moments_of_pairs
from hubless.neighbors import nearest
from tests.conftest import EACH_LIBRARY, FOREIGN


@st.composite
def problems(draw):
    """Labeled objects with at least one pair, queries and a penalty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, classes = draw(st.integers(8, 40)), draw(st.integers(1, 8)), draw(st.integers(1, 4))
    y = np.append(rng.integers(0, classes, n - 2), [0, 0])
    X = rng.standard_normal((n, d)) + rng.standard_normal((classes, d))[y]
    return X, y, rng.standard_normal((12, d)), draw(st.sampled_from([1e-2, 1.0, 30.0])), rng


def predictions(X, y, queries, alpha):
    return MoveLabeledClassifier(3, alpha).fit(X, y).predict(queries)


@given(problems())
def test_order_of_rows(problem):
    X, y, queries, alpha, rng = problem
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(
        predictions(X[order], y[order], queries, alpha), predictions(X, y, queries, alpha)
    )


@given(problems())
def test_order_of_queries(problem):
    X, y, queries, alpha, rng = problem
    order = rng.permutation(len(queries))
    np.testing.assert_array_equal(
        predictions(X, y, queries[order], alpha), predictions(X, y, queries, alpha)[order]
    )


@given(problems())
def test_names_of_labels(problem):
    X, y, queries, alpha, _ = problem
    names = np.array(["q", "b", "z", "a"])  # sorted otherwise than their numbers
    np.testing.assert_array_equal(
        predictions(X, names[y], queries, alpha), names[predictions(X, y, queries, alpha)]
    )


@given(problems(), st.sampled_from([-100.0, 3.0, 1e4]))
def test_translation(problem, shift):
    X, y, queries, alpha, rng = problem
    offset = shift * rng.standard_normal(X.shape[1])
    np.testing.assert_array_equal(
        predictions(X + offset, y, queries + offset, alpha), predictions(X, y, queries, alpha)
    )


@given(problems(), st.sampled_from([MoveLabeled, MoveQuery]))
def test_rotation_rotates_the_map(problem, mover):
    X, y, _, alpha, rng = problem
    R, _ = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))
    turned, W = mover(alpha).fit(X @ R.T, y).W_, mover(alpha).fit(X, y).W_
    np.testing.assert_allclose(turned, R @ W @ R.T, atol=1e-8)


@given(problems(), st.sampled_from([1e-3, 0.5, 8.0, 1e5]))
def test_scaling_the_data_and_the_penalty(problem, c):
    X, y, _, alpha, _ = problem
    W = MoveLabeled(alpha).fit(X, y).W_
    np.testing.assert_allclose(MoveLabeled(alpha * c**2).fit(c * X, y).W_, W, atol=1e-8)
    relative = MoveLabeled().fit(X, y).W_
    np.testing.assert_allclose(MoveLabeled().fit(c * X, y).W_, relative, atol=1e-8)


@pytest.mark.parametrize("asarray", EACH_LIBRARY)
@given(problems(), st.integers(1, 4), st.booleans())
def test_moments_of_any_split_merge_to_the_whole(asarray, problem, parts, with_origins):
    X, _, _, _, rng = problem
    Z, w = rng.standard_normal(X.shape), rng.random(len(X))
    pieces = [rows for rows in np.array_split(rng.permutation(len(X)), parts) if len(rows)]
    merged = None
    for rows in pieces:
        origin = asarray(rng.standard_normal(X.shape[1])) if with_origins else None
        piece = moments_of_pairs(asarray(X[rows]), asarray(Z[rows]), asarray(w[rows]), origin)
        merged = piece if merged is None else merged + piece
    merged = merged.about(asarray(np.zeros(X.shape[1])))
    whole = moments_of_pairs(asarray(X), asarray(Z), asarray(w))
    assert merged.weight == pytest.approx(whole.weight)
    for name in ("A", "K", "x_sum", "z_sum"):
        np.testing.assert_allclose(to_numpy(getattr(merged, name)), to_numpy(getattr(whole, name)), atol=1e-8)


@pytest.mark.parametrize("library", FOREIGN)
@given(problems())
def test_array_libraries_agree(library, problem):
    X, y, queries, alpha, _ = problem
    truth = MoveLabeledClassifier(3, alpha).fit(X, y)
    model = MoveLabeledClassifier(3, alpha).fit(library(X), library(y))
    np.testing.assert_allclose(to_numpy(model.W_), truth.W_, atol=1e-9)
    np.testing.assert_array_equal(to_numpy(model.predict(library(queries))), truth.predict(queries))


@pytest.mark.parametrize("library", FOREIGN)
@given(problems(), st.integers(1, 8), st.booleans())
def test_neighbours_agree_and_are_in_order(library, problem, k, exclude_self):
    X, _, _, _, _ = problem
    X = np.round(X)  # many ties
    k = min(k, len(X) - 1)
    distances, indices = nearest(X, X, k, exclude_self=exclude_self)
    assert np.all(np.diff(distances, axis=1) >= 0)
    ties = np.diff(distances, axis=1) == 0
    assert np.all(np.diff(indices, axis=1)[ties] > 0)
    if exclude_self:
        assert not np.any(indices == np.arange(len(X))[:, None])
    elsewhere = nearest(library(X), library(X), k, return_distance=False, exclude_self=exclude_self)
    np.testing.assert_array_equal(to_numpy(elsewhere), indices)
