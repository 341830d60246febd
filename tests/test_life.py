"""Movers and models that go on learning: batches are added, taken away and merged, without the other data."""

import json
import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import hubless
from hubless.arrays import to_numpy
from hubless.index.collection import collect
from hubless.index.life import merged, updated, without
from hubless.index.repair import Own, Repair
from hubless.moments import moments_of_pairs
from hubless.movers import MoveLabeled, Shrink
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests import reference

LEARNED = ("W_", "mean_", "alpha_", "mean_weight_", "n_singletons_", "classes_", "n_features_in_")


# --- the truth: sums over pairs, by loops -------------------------------------------------------------------


def batch(rng, n, d=4, shift=0.0):
    """Objects of 3 classes, and a last one that is alone in its class."""
    y = np.append(rng.integers(0, 3, n - 1), 7)
    return rng.standard_normal((n, d)) + y[:, None] + shift, y


def pairs_of(X, y, n_targets=1):
    """(object, target) of all objects of a batch."""
    return [(X[i], X[j]) for i, j in reference.pairs(reference.targets(X, y, n_targets))]


def truth(pairs, mean, alpha, toward="zero", weights=None):
    """W and λ of the normal equations."""
    x, z = (np.array(side) - mean for side in zip(*pairs, strict=True))
    A, K = reference.moments(x, z, weights)
    alpha = np.trace(K) / len(K) if alpha == "scale" else alpha
    pull = alpha * np.eye(len(K)) if toward == "identity" else 0.0
    return reference.solve(A + pull, K, alpha), alpha


def truth_of_batches(batches, alpha, toward="zero", center=True, n_targets=1):
    objects = np.concatenate([X for X, _ in batches])
    mean = objects.mean(axis=0) if center else np.zeros(objects.shape[1])
    pairs = [pair for X, y in batches for pair in pairs_of(X, y, n_targets)]
    return *truth(pairs, mean, alpha, toward), mean


def is_map(mover, W, alpha, mean, tolerance=1e-9):
    np.testing.assert_allclose(to_numpy(mover.W_), W, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(to_numpy(mover.mean_), mean, rtol=tolerance, atol=tolerance)
    assert mover.alpha_ == pytest.approx(alpha, rel=max(tolerance, 1e-9))


def same_map(found, expected, tolerance=1e-9):
    is_map(found, to_numpy(expected.W_), expected.alpha_, to_numpy(expected.mean_), tolerance)


def state(mover):
    """All that a mover has learned, as bytes and texts."""
    told = {name: to_numpy(value).tobytes() for name, value in vars(mover).items() if name in LEARNED[:2]}
    told |= {name: str(getattr(mover, name, None)) for name in (*LEARNED[2:], "exit_", "moments_")}
    return told | {"params": str(mover.get_params()), "names": sorted(vars(mover))}


# --- moments ------------------------------------------------------------------------------------------------


def test_moments_without_those_of_a_batch(rng, asarray):
    x, z, w = rng.standard_normal((30, 3)), rng.standard_normal((30, 3)), rng.uniform(0.1, 2, 30)
    origins = asarray(np.array([1.0, -2.0, 0.5])), asarray(np.array([0.0, 3.0, 1.0]))
    whole = moments_of_pairs(*map(asarray, (x, z, w)), origins[0])
    some = moments_of_pairs(*(asarray(side[:12]) for side in (x, z, w)), origins[1])
    left, about = whole - some, to_numpy(origins[0])
    A, K = reference.moments(x[12:] - about, z[12:] - about, w[12:])
    assert left.weight == pytest.approx(w[12:].sum())
    np.testing.assert_array_equal(to_numpy(left.origin), about)
    sums = w[12:] @ (x[12:] - about), w[12:] @ (z[12:] - about)
    for found, told in zip((left.x_sum, left.z_sum, left.A, left.K), (*sums, A, K), strict=True):
        np.testing.assert_allclose(to_numpy(found), told, atol=1e-12)


# --- batches of labeled objects -----------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("toward", ["zero", "identity"])
@pytest.mark.parametrize("alpha", [0.7, "scale"])
def test_batches_add_up_and_can_be_forgotten(center, toward, alpha, rng, asarray):
    batches = [batch(rng, n, shift=shift) for n, shift in ((25, 0.0), (12, 4.0), (18, -3.0))]
    told = {"toward": toward, "center": center, "n_targets": 2}
    mover = MoveLabeled(alpha, **told)
    for count, (X, y) in enumerate(batches, 1):
        assert mover.partial_fit(asarray(X), asarray(y)) is mover
        is_map(mover, *truth_of_batches(batches[:count], alpha, **told))
        assert (mover.n_singletons_, mover.mean_weight_) == (
            count,
            sum(len(one) for _, one in batches[:count]),
        )
        assert type(mover.W_) is type(asarray(X)) is type(mover.classes_)
    assert to_numpy(mover.classes_).tolist() == [0, 1, 2, 7]
    Z = rng.standard_normal((5, 4))
    W, _, mean = truth_of_batches(batches, alpha, **told)
    np.testing.assert_allclose(to_numpy(mover.move(asarray(Z))), reference.move(Z, W, mean), atol=1e-9)
    for gone in (1, 0):  # the one in the middle, and that which was fitted first
        X, y = batches.pop(gone)
        assert mover.forget(asarray(X), asarray(y)) is mover
        is_map(mover, *truth_of_batches(batches, alpha, **told))
        assert (mover.n_singletons_, mover.mean_weight_) == (len(batches), sum(len(y) for _, y in batches))


def test_order_plays_no_part_and_merge_gives_the_same(rng):
    batches = [batch(rng, n, shift=shift) for n, shift in ((25, 0.0), (12, 4.0), (18, -3.0))]
    one, two, three = (MoveLabeled(1.0, keep_moments=True).fit(*some) for some in batches)
    both = one.merge(two).merge(three)
    for order in permutations(batches):
        mover = MoveLabeled(1.0)
        for some in order:
            mover.partial_fit(*some)
        same_map(mover, both)
    same_map(one.partial_fit(*batches[1]).merge(three), both)  # what was fitted goes on, too


def test_batches_of_whole_classes_are_as_one_fit(rng):
    X, y = batch(rng, 60)
    w = rng.uniform(0.0, 2, 60) * (rng.random(60) > 0.2)
    mover = MoveLabeled("scale", 3)
    for own in (y == 0, y != 0):
        mover.partial_fit(X[own], y[own], w[own])
    same_map(mover, MoveLabeled("scale", 3).fit(X, y, w))
    own = y == 0
    same_map(mover.forget(X[own], y[own], w[own]), MoveLabeled("scale", 3).fit(X[~own], y[~own], w[~own]))


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_single_precision_stays_and_the_finest_wins(convert, rng):
    batches = [batch(rng, 40), batch(rng, 30, shift=1.0)]
    single = [(convert(X.astype(np.float32)), y) for X, y in batches]
    mover = MoveLabeled(1.0).partial_fit(*single[0]).partial_fit(*single[1])
    assert "float32" in str(mover.W_.dtype)
    lifted = [(X.astype(np.float32).astype(float), y) for X, y in batches]
    is_map(mover, *truth_of_batches(lifted, 1.0), tolerance=1e-5)
    less = MoveLabeled(1.0).partial_fit(*single[0]).partial_fit(*single[1])
    less.forget(convert(lifted[1][0]), lifted[1][1])
    assert "float32" in str(less.W_.dtype)
    mover.partial_fit(convert(batches[1][0] + 1), batches[1][1])
    assert "float64" in str(mover.W_.dtype)
    mover.forget(convert(batches[1][0] + 1), batches[1][1]).forget(*single[0])
    is_map(mover, *truth_of_batches(lifted[1:], 1.0))


def test_saved_movers_go_on(rng, tmp_path):
    batches = [batch(rng, 30), batch(rng, 20, shift=2.0)]
    mover = MoveLabeled(0.5, keep_moments=True).partial_fit(*batches[0])
    hubless.save(mover, tmp_path / "one")
    loaded = hubless.load(tmp_path / "one").partial_fit(*batches[1])
    is_map(loaded, *truth_of_batches(batches, 0.5))
    hubless.save(loaded, tmp_path / "two")
    is_map(hubless.load(tmp_path / "two").forget(*batches[0]), *truth_of_batches(batches[1:], 0.5))


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
    with pytest.raises(ValueError, match="labels must be texts or numbers in all batches; got 'cat' and 0"):
        mover.partial_fit(frame, y)
    assert state(mover) == before
    mover = MoveLabeled(keep_moments=True).fit(X, y)
    assert not hasattr(mover.merge(mover).partial_fit(X + 1, y), "classes_")  # not all of them are known


# --- batches of pairs ---------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    first=st.integers(2, 9),  # one pair about its own mean is nothing but rounding
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
    objects = rng.standard_normal((n, d)) + 3
    queries = objects + 0.3 * rng.standard_normal((n, d))
    w = rng.uniform(0.5, 2, n) if weighted else None
    told = {"toward": toward, "center": center}
    mover = MoveLabeled(alpha, **told)
    for part in np.split(np.arange(n), np.cumsum([first, *more])[:-1]):
        mover.partial_fit_pairs(queries[part], objects[part], None if w is None else w[part])
        so_far = slice(0, part[-1] + 1)
        weights = None if w is None else w[so_far]
        whole = MoveLabeled(alpha, **told).fit_pairs(queries[so_far], objects[so_far], weights)
        same_map(mover, whole, 1e-6)
        mean = np.average(objects[so_far], axis=0, weights=weights) if center else np.zeros(d)
        pairs = list(zip(queries[so_far], objects[so_far], strict=True))
        if whole.alpha_ > 0:  # without a penalty, or a spread to take it from, K cannot be inverted
            is_map(mover, *truth(pairs, mean, alpha, toward, weights), mean, 1e-6)
        assert mover.mean_weight_ == pytest.approx(part[-1] + 1 if w is None else weights.sum())
    others = rng.standard_normal((7, d)), rng.standard_normal((7, d))
    mover.partial_fit_pairs(*others).forget_pairs(*others)
    same_map(mover, whole, 1e-6)


def test_single_pairs_of_a_batch_can_be_forgotten(rng, asarray):
    objects = rng.standard_normal((40, 4)) + 2
    queries, w = objects + rng.standard_normal((40, 4)), rng.uniform(0.5, 2, 40)
    mover = MoveLabeled("scale", toward="identity")
    mover.partial_fit_pairs(asarray(queries), asarray(objects), w)
    some = np.arange(40) % 3 == 0
    mover.forget_pairs(asarray(queries[some]), asarray(objects[some]), w[some])
    mean = np.average(objects[~some], axis=0, weights=w[~some])
    pairs = list(zip(queries[~some], objects[~some], strict=True))
    is_map(mover, *truth(pairs, mean, "scale", "identity", w[~some]), mean)
    assert mover.n_singletons_ == 0


def test_little_that_is_left_has_a_map_of_its_own(rng):
    """Two pairs of 300 in 6 dimensions, without a penalty: what is rounding must not be learned from."""
    objects = 10 * rng.standard_normal((300, 6)) + 5
    queries = objects + rng.standard_normal((300, 6))
    for center in (True, False):
        mover = MoveLabeled(0.0, center=center).partial_fit_pairs(queries, objects)
        mover.forget_pairs(queries[2:], objects[2:])
        mean = objects[:2].mean(axis=0) if center else np.zeros(6)
        x, z = queries[:2] - mean, objects[:2] - mean
        np.testing.assert_allclose(mover.W_, x.T @ np.linalg.pinv(z.T, rcond=1e-9), atol=1e-8)


# --- what is refused, and changes nothing -------------------------------------------------------------------


def test_what_cannot_go_on_is_refused_and_stays_as_it_is(rng):
    X, y = batch(rng, 30)
    plain, kept = MoveLabeled(1.0).fit(X, y), MoveLabeled(1.0, keep_moments=True).fit(X, y)
    other = X + rng.standard_normal(X.shape)
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
        "same namespace": [lambda: kept.partial_fit(torch.as_tensor(X), y)],
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
        "never learned like this: the sum K": [
            lambda: kept.forget(10 * X[:8], np.zeros(8)),
            lambda: kept.forget_pairs(other[:28], other[:28]),
            lambda: kept.forget(X[:28], y[:28] * 0, np.full(28, 1.01)),
        ],
        "never learned like this: 2 of its objects are alone": [
            lambda: kept.forget(X[:6], [0, 0, 0, 0, 1, 2])
        ],
    }
    before = state(plain), state(kept)
    for message, lines in calls.items():
        for call in lines:
            with pytest.raises(ValueError, match=message):
                call()
            assert (state(plain), state(kept)) == before
    assert not hasattr(plain, "partial_fit")
    assert hasattr(kept, "partial_fit")
    assert hasattr(MoveLabeled(), "partial_fit")
    for call in (MoveLabeled().forget, MoveLabeled().forget_pairs):
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


def test_a_penalty_may_change_on_the_way_and_a_fit_begins_anew(rng):
    batches = [batch(rng, 30), batch(rng, 20, shift=2.0)]
    mover = MoveLabeled(0.5).partial_fit(*batches[0]).set_params(alpha=4.0).partial_fit(*batches[1])
    is_map(mover, *truth_of_batches(batches, 4.0))
    same_map(mover.fit(*batches[0]), MoveLabeled(4.0).fit(*batches[0]))
    assert not hasattr(mover, "moments_")
    with pytest.raises(ValueError, match="another keep_moments"):  # as documented: set it to save
        hubless.save(mover.set_params(keep_moments=True), "nowhere")


# --- models of an index -------------------------------------------------------------------------------------


class Shops:
    """Two files of items with their categories, as a user has them."""

    def __init__(self, folder, metric="l2"):
        rng = np.random.default_rng(3)
        centres = rng.standard_normal((4, 6))
        self.folder, self.metric, self.X, self.y = folder, metric, {}, {}
        for name, n in (("paris", 120), ("tokyo", 80)):
            y = rng.integers(0, 4, n)
            self.X[name] = (centres[y] + rng.standard_normal((n, 6))).astype(np.float32)
            self.y[name] = y.astype(str)
            np.save(folder / f"{name}.npy", self.X[name])
            (folder / f"{name}.csv").write_text("category\n" + "".join(f"{value}\n" for value in y))

    def source(self, name):
        folder = self.folder
        return [
            folder / f"{name}.npy",
            *("--items", folder / f"{name}.csv", "--metric", self.metric, "--labels", "category"),
        ]

    def items(self, name):
        file = str(self.folder / f"{name}.npy")
        store = open_store(file, metric=self.metric, items=self.folder / f"{name}.csv")
        return collect(store, ["category"])

    def batches(self, *names):
        """As they are compared: of length 1 under cosine."""
        found = [(self.X[name].astype(float), self.y[name]) for name in names]
        if self.metric == "cosine":
            found = [(X / np.linalg.norm(X, axis=1)[:, None], y) for X, y in found]
        return found


@pytest.fixture(params=["l2", "cosine"])
def shops(request, tmp_path):
    return Shops(tmp_path, request.param)


def test_models_are_updated_reduced_and_merged_by_the_command_line(shops, run, words, refused):
    folder = shops.folder
    for name in ("paris", "tokyo"):
        run("fit", *shops.source(name), "--mover", "ridge", "-o", folder / name)
    first = hubless.load(folder / "paris")
    scale = first.mover.alpha.value

    def is_of(model, *names):
        W, unit, mean = truth_of_batches(shops.batches(*names), "scale")
        W = truth_of_batches(shops.batches(*names), scale * unit)[0]
        is_map(model.mover, W, scale * unit, mean, 2e-5)
        assert (model.metric, model.facts["learned"]["n"]) == (
            shops.metric,
            sum(len(shops.y[n]) for n in names),
        )

    kept = {file.name: file.read_bytes() for file in (folder / "paris").iterdir()}
    shown = run("update", folder / "paris", *shops.source("tokyo"), "-o", folder / "both")
    both = hubless.load(folder / "both")
    is_of(both, "paris", "tokyo")
    assert shown["hash"] == both.hash != first.hash
    (event,) = shown["life"]
    assert (event["what"], event["count"], event["model before"]) == ("added", 80, first.hash)
    assert event["source"].endswith("tokyo.npy")
    assert event["figures before"] == first.facts["figures"]
    assert "figures" not in both.facts  # those of the old model say nothing of this one
    assert {file.name: file.read_bytes() for file in (folder / "paris").iterdir()} == kept

    told = words("update", folder / "both", *shops.source("paris"), "--remove", "-o", folder / "less")
    assert "learned from 80 in all; since `fit`: 80 added, 120 removed." in told
    assert "not the same" not in told
    is_of(hubless.load(folder / "less"), "tokyo")
    assert "since then: 80 added, 120 removed" in (folder / "less" / "README.md").read_text()

    told = words("merge", folder / "paris", folder / "tokyo", "-o", folder / "merged")
    assert "learned from 200 in all; since `fit`: 80 merged." in told
    is_of(hubless.load(folder / "merged"), "paris", "tokyo")

    add, remove = shops.source("tokyo"), [*shops.source("paris"), "--remove"]
    lines = {
        "learned from .* already": ["update", folder / "both", *add, "-o", folder / "x"],
        "would count twice": ["merge", folder / "both", folder / "tokyo", "-o", folder / "x"],
        "less holds a model already": ["update", folder / "paris", *add, "-o", folder / "less"],
        "paris holds a model already": ["merge", folder / "paris", folder / "tokyo", "-o", folder / "paris"],
        "nothing would be left": ["update", folder / "paris", *remove, "-o", folder / "x"],
    }
    for message, line in lines.items():
        assert re.search(message, refused(*line))
    assert not (folder / "x").exists()


def test_models_go_on_moving_and_predicting(shops, run, words):
    folder = shops.folder
    for name in ("paris", "tokyo"):
        run("fit", *shops.source(name), "--mover", "ridge", "-o", folder / name)
    run("merge", folder / "paris", folder / "tokyo", "-o", folder / "merged")
    run("update", folder / "paris", *shops.source("tokyo"), "-o", folder / "both")
    found = {}
    for name in ("merged", "both"):
        model = hubless.load(folder / name)
        found[name] = model.move(shops.X["tokyo"])
        asked = [folder / "tokyo.npy", "--source", *shops.source("paris")]
        classes = words("predict", folder / name, *asked).split()
        assert np.mean(np.array(classes) == shops.y["tokyo"]) > 0.6
    np.testing.assert_allclose(found["merged"], found["both"], atol=1e-5)


def test_some_of_a_batch_is_near_and_said_to_be(tmp_path, words, run):
    shops = Shops(tmp_path)
    run("fit", *shops.source("paris"), "--mover", "ridge", "-o", tmp_path / "model")
    np.save(tmp_path / "some.npy", shops.X["paris"][:30])
    (tmp_path / "some.csv").write_text(
        "category\n" + "".join(f"{value}\n" for value in shops.y["paris"][:30])
    )
    told = words("update", tmp_path / "model", *shops.source("some"), "--remove", "-o", tmp_path / "less")
    assert "were not learned as one batch" in told
    model = hubless.load(tmp_path / "less")
    assert model.facts["life"][-1]["exact"] is False
    rest = shops.X["paris"][30:].astype(float)
    np.testing.assert_allclose(model.mover.mean_, rest.mean(axis=0), atol=1e-5)  # the mean is exact
    assert model.facts["learned"]["n"] == 90


def test_models_that_cannot_go_on_are_refused(tmp_path):
    shops = Shops(tmp_path)
    paris, tokyo = shops.items("paris"), shops.items("tokyo")
    X, y = shops.X["paris"], shops.y["paris"]
    mover = MoveLabeled(keep_moments=True).fit(X, y)
    own = Own(np.arange(2), X[:2], 0.5)
    good = Repair(mover)
    refusals = {
        r"steps of their own.*Fit a new one": Repair(mover, own=own),
        r"moves by Shrink\(\), which keeps no moments.*--mover ridge": Repair(
            Shrink().fit(X, y), label="category"
        ),
        r"moves by MoveLabeled\(\), which keeps no moments": Repair(MoveLabeled().fit(X, y)),
        r"learned from pairs": Repair(mover, facts={"learned": {"from": "pairs"}}),
        r"compares by l2, the model is for cosine": Repair(mover, "cosine"),
        r"6 columns, the model moves 5": Repair(MoveLabeled(keep_moments=True).fit(X[:, :5], y)),
    }
    for message, model in refusals.items():
        for change in (updated, without):
            with pytest.raises(StoreError, match=message):
                change(model, tokyo, "category")
    for message, model in list(refusals.items())[:3]:
        for two in ((model, good), (good, model)):
            with pytest.raises(StoreError, match=message):
                merged(*two)
    with pytest.raises(StoreError, match="different metrics: l2 and cosine"):
        merged(good, Repair(mover, "cosine"))
    with pytest.raises(StoreError, match="different kinds of lessons: labels and pairs"):
        merged(*(Repair(mover, facts={"learned": {"from": kind}}) for kind in ("labels", "pairs")))
    with pytest.raises(ValueError, match="the same n_targets"):
        merged(good, Repair(MoveLabeled(n_targets=2, keep_moments=True).fit(X, y)))
    with pytest.raises(ValueError, match="never learned like this"):
        without(updated(good, tokyo, "category"), replace(paris, vectors=9 * paris.vectors), "category")
    same_map(good.mover, MoveLabeled().fit(X, y))


def test_a_model_knows_which_batches_it_has_learned(tmp_path):
    shops = Shops(tmp_path)
    paris, tokyo = shops.items("paris"), shops.items("tokyo")
    one, two = (
        Repair(MoveLabeled(keep_moments=True).fit(items.vectors, y), facts={"data": items.about()})
        for items, y in ((paris, shops.y["paris"]), (tokyo, shops.y["tokyo"]))
    )
    joint = merged(one, two)
    for model, items in ((joint, tokyo), (joint, paris), (updated(one, tokyo, "category"), tokyo)):
        with pytest.raises(StoreError, match=r"learned from .* already"):
            updated(model, items, "category")
        less = without(model, items, "category")
        assert less.facts["life"][-1]["exact"] is True
        same_map(updated(less, items, "category").mover, model.mover, 1e-5)  # what went may come again
        with pytest.raises(ValueError, match=r"nothing would be left|never learned"):
            without(without(less, items, "category"), items, "category")


def test_what_was_seen_of_pairs_is_known_of_the_merged(rng):
    models = []
    for start in (0, 50):
        objects = rng.standard_normal((40, 5))
        mover = MoveLabeled(1.0, toward="identity", keep_moments=True).fit_pairs(objects + 0.1, objects)
        learned = {"from": "pairs", "n": 40, "seen": [start, 60], "query ids": [f"q{start}"]}
        models.append(Repair(mover, facts={"learned": learned}))
    found = merged(*models).facts["learned"]
    assert (found["seen"], found["query ids"], found["n"]) == ([0, 60, 50], ["q0", "q50"], 80)
    assert models[0].facts["learned"]["seen"] == [0, 60]
    assert json.dumps(found)
