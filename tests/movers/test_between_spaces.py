"""MoveLabeled from pairs of two spaces: queries of 3 columns, objects of 5 (and the other way round)."""

import array_api_strict as strict
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import hubless
from hubless.arrays import devices, to_numpy
from hubless.movers import MoveLabeled
from hubless.solve import Penalty
from tests import reference

WIDTHS = [(3, 5), (5, 3), (1, 4)]  # of queries and objects


def pairs(rng, n, e=3, d=5):
    """Objects far from 0, and queries that are a noisy linear map of them, far from 0 elsewhere."""
    objects = rng.standard_normal((n, d)) + 3
    return objects @ rng.standard_normal((d, e)) - 7 + 0.3 * rng.standard_normal((n, e)), objects


def truth(queries, objects, alpha, weights=None, center=True):
    """W, λ and the two means, by loops."""
    means = [np.average(side, axis=0, weights=weights) * center for side in (queries, objects)]
    A, K = reference.moments(queries - means[0], objects - means[1], weights)
    unit = np.trace(K) / len(K)
    alpha = unit if alpha == "scale" else alpha.value * unit if isinstance(alpha, Penalty) else alpha
    return reference.solve(A, K, alpha), alpha, *means


def check(mover, queries, objects, alpha, weights=None, center=True, tolerance=1e-9):
    W, penalty, query_mean, mean = truth(queries, objects, alpha, weights, center)
    close = {"rtol": tolerance, "atol": tolerance}
    assert mover.W_.shape == (queries.shape[1], objects.shape[1])
    assert mover.alpha_ == pytest.approx(penalty, rel=max(tolerance, 1e-9))
    np.testing.assert_allclose(to_numpy(mover.W_), W, **close)
    np.testing.assert_allclose(to_numpy(mover.mean_), mean, **close)
    np.testing.assert_allclose(to_numpy(mover.query_mean_), query_mean, **close)


@pytest.mark.parametrize(("e", "d"), WIDTHS)
@pytest.mark.parametrize("n", [40, 3], ids=["more pairs than columns", "fewer"])
@pytest.mark.parametrize("alpha", [0.7, "scale", Penalty(0.1, relative=True)])
@pytest.mark.parametrize("center", [True, False])
def test_the_map_and_what_it_moves_are_those_of_loops(rng, asarray, e, d, n, alpha, center):
    queries, objects = pairs(rng, n, e, d)
    w = rng.uniform(0.2, 2, n)
    mover = MoveLabeled(alpha, center=center).fit_pairs(asarray(queries), asarray(objects), w)
    check(mover, queries, objects, alpha, w, center)
    W, _, query_mean, mean = truth(queries, objects, alpha, w, center)
    Z = rng.standard_normal((7, d))
    moved = mover.move(asarray(Z))
    assert type(moved) is type(asarray(Z))
    expected = [
        [q + sum(W[r, c] * (z[c] - mean[c]) for c in range(d)) for r, q in enumerate(query_mean)] for z in Z
    ]
    np.testing.assert_allclose(to_numpy(moved), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(to_numpy(mover.transform(asarray(queries))), queries)
    assert (mover.n_features_in_, mover._width) == (d, e)


def test_scikit_learn_gives_the_same_map(rng):
    queries, objects = pairs(rng, 50)
    mover = MoveLabeled(2.0).fit_pairs(queries, objects)
    ridge = Ridge(2.0).fit(objects, queries)
    np.testing.assert_allclose(mover.W_, ridge.coef_, atol=1e-10)
    np.testing.assert_allclose(mover.move(objects), ridge.predict(objects), atol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("n", [40, 3])
def test_least_squares_and_kept_moments(rng, n, alpha):
    queries, objects = pairs(rng, n)
    plain, keeps = (MoveLabeled(alpha, keep_moments=k).fit_pairs(queries, objects) for k in (False, True))
    assert plain.W_.tobytes() == keeps.W_.tobytes()
    if alpha == 0:
        x, z = queries - queries.mean(axis=0), objects - objects.mean(axis=0)
        np.testing.assert_allclose(plain.W_, np.linalg.lstsq(z, x, rcond=None)[0].T, atol=1e-9)
    x, z = queries - queries.mean(axis=0), objects - objects.mean(axis=0)
    kept = keeps.moments_
    for result, expected in zip((kept.A, kept.K), reference.moments(x, z), strict=True):
        np.testing.assert_allclose(result, expected, atol=1e-10)
    np.testing.assert_allclose(kept.x_origin, queries.mean(axis=0))
    np.testing.assert_allclose(kept.origin, objects.mean(axis=0))


@pytest.mark.parametrize("n", [40, 4])
def test_another_penalty_equals_a_new_fit(rng, asarray, n):
    queries, objects = pairs(rng, n)
    first = MoveLabeled(5.0, keep_moments=True).fit_pairs(asarray(queries), asarray(objects))
    for alpha in (0.3, "scale"):
        solved = first.with_alpha(alpha)
        check(solved, queries, objects, alpha, tolerance=1e-7)
        assert type(solved.query_mean_) is type(first.query_mean_) is type(asarray(queries))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_add_up_merge_and_are_forgotten(rng, asarray, center, weighted):
    queries, objects = pairs(rng, 60)
    w = rng.uniform(0.5, 2, 60) if weighted else None
    parts = [slice(0, 25), slice(25, 28), slice(28, 60)]
    given = [
        (asarray(queries[part]), asarray(objects[part]), None if w is None else w[part]) for part in parts
    ]
    mover = MoveLabeled("scale", center=center)
    for part, batch in zip(parts, given, strict=True):
        assert mover.partial_fit_pairs(*batch) is mover
        rows = slice(0, part.stop)
        check(mover, queries[rows], objects[rows], "scale", None if w is None else w[rows], center, 1e-8)
    one, two, three = (MoveLabeled("scale", center=center, keep_moments=True).fit_pairs(*b) for b in given)
    check(one.merge(three).merge(two), queries, objects, "scale", w, center, 1e-8)
    mover.forget_pairs(*given[0])
    rows = slice(25, 60)
    check(mover, queries[rows], objects[rows], "scale", None if w is None else w[rows], center, 1e-7)


def test_single_precision_stays(rng):
    queries, objects = (side.astype(np.float32) for side in pairs(rng, 40))
    mover = MoveLabeled(1.0).fit_pairs(queries, objects)
    assert mover.W_.dtype == mover.query_mean_.dtype == mover.move(objects).dtype == np.float32
    check(mover, queries.astype(float), objects.astype(float), 1.0, tolerance=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("fits", [True, False], ids=["whole", "in blocks"])
def test_a_device_computes_for_the_host(rng, fits, monkeypatch):
    queries, objects = pairs(rng, 40)
    monkeypatch.setattr(devices, "fits", lambda array, anchor: fits)
    mover = MoveLabeled(1.0, device="cpu", keep_moments=True).fit_pairs(queries, objects)
    assert type(mover.W_) is type(mover.query_mean_) is np.ndarray
    check(mover, queries, objects, 1.0)
    moved = mover.move(objects)
    assert type(moved) is np.ndarray
    plain = MoveLabeled(1.0).fit_pairs(queries, objects)
    np.testing.assert_allclose(moved, plain.move(objects), atol=1e-12)
    more = np.concatenate([queries, queries + 1]), np.concatenate([objects, objects])
    check(mover.partial_fit_pairs(queries + 1, objects), *more, 1.0)


def test_a_later_fit_forgets_the_other_space(rng):
    queries, objects = pairs(rng, 40)
    mover = MoveLabeled(keep_moments=True).fit_pairs(queries, objects)
    mover.fit(objects, np.arange(40) % 3)
    assert not hasattr(mover, "query_mean_")
    assert mover.move(objects).shape == (40, 5)
    assert mover._width == 5
    mover.fit_pairs(queries, objects).fit_pairs(objects, objects)
    assert not hasattr(mover, "query_mean_")


def test_names_of_columns(rng):
    queries, objects = pairs(rng, 20)
    images, captions = (
        pd.DataFrame(objects, columns=list("abcde")),
        pd.DataFrame(queries, columns=list("xyz")),
    )
    mover = MoveLabeled().fit_pairs(captions, images)
    assert list(mover.feature_names_in_) == list("abcde")
    assert list(mover.get_feature_names_out()) == ["movelabeled0", "movelabeled1", "movelabeled2"]
    assert mover.set_output(transform="pandas").transform(queries).shape == (20, 3)
    with pytest.raises(ValueError, match="feature names should match"):
        mover.move(images[list("badce")])


def test_what_is_refused(rng):
    queries, objects = pairs(rng, 20)
    mover = MoveLabeled(keep_moments=True).fit_pairs(queries, objects)
    square = MoveLabeled(keep_moments=True).fit_pairs(objects, objects)
    wide = MoveLabeled(keep_moments=True).fit_pairs(queries[:, :2], objects)
    calls = {
        'toward="identity" needs .* one width; got queries of 3 columns and objects of 5': [
            lambda: MoveLabeled(toward="identity").fit_pairs(queries, objects),
            lambda: clone_of(mover, toward="identity").with_alpha(1.0),
        ],
        "queries have 5 columns, but MoveLabeled learned from queries of 3 and objects of 5": [
            lambda: mover.transform(objects),
            lambda: mover.partial_fit_pairs(objects, objects),
            lambda: mover.forget_pairs(objects, objects),
        ],
        "X has 3 features, but MoveLabeled is expecting 5": [
            lambda: mover.move(queries),
            lambda: mover.partial_fit_pairs(queries, queries),
            lambda: square.partial_fit_pairs(queries, objects),
            lambda: square.transform(queries),
        ],
        r"takes labeled objects of one. Use partial_fit_pairs\(queries, objects\)": [
            lambda: mover.partial_fit(objects, np.arange(20) % 2)
        ],
        r"takes labeled objects of one. Use forget_pairs\(queries, objects\)": [
            lambda: mover.forget(objects, np.arange(20) % 2)
        ],
        "queries of the same width; got 3 and 5 columns": [lambda: mover.merge(square)],
        "queries of the same width; got 2 and 3 columns": [lambda: wide.merge(mover)],
        "same namespace": [
            lambda: MoveLabeled().fit_pairs(strict.asarray(queries), objects),
            lambda: mover.transform(strict.asarray(queries)),
        ],
    }
    for message, attempts in calls.items():
        for attempt in attempts:
            with pytest.raises(ValueError, match=message):
                attempt()
    check(mover, queries, objects, "scale")


def clone_of(mover, **changes):
    """Return a mover with all that it learned and other parameters."""
    other = clone(mover).set_params(**changes)
    vars(other).update({name: value for name, value in vars(mover).items() if name.endswith("_")})
    return other


@pytest.mark.parametrize("keep", [False, True])
def test_saved_and_loaded_bit_for_bit(rng, tmp_path, keep):
    queries, objects = pairs(rng, 30)
    mover = MoveLabeled(keep_moments=keep).fit_pairs(queries, objects)
    hubless.save(mover, tmp_path / "m")
    loaded = hubless.load(tmp_path / "m")
    assert loaded.move(objects).tobytes() == mover.move(objects).tobytes()
    assert loaded._width == 3
    np.testing.assert_array_equal(loaded.transform(queries), queries)
    card = (tmp_path / "m" / "README.md").read_text()
    assert "objects of 5 columns" in card
    assert "queries of 3 columns" in card
    if keep:
        more = pairs(rng, 10)
        joined = loaded.partial_fit_pairs(*more)
        sides = (np.concatenate(side) for side in zip((queries, objects), more, strict=True))
        check(joined, *sides, "scale", tolerance=1e-8)
