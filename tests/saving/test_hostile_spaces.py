"""Folders of movers between two spaces, changed as a forger would: shapes that do not fit are refused."""

import numpy as np
import pytest

import hubless
from hubless import MoveLabeledClassifier
from hubless.movers import Chain, MoveLabeled, Scale
from hubless.repair.repair import Repair
from tests.saving.forging import edit_arrays, edit_config


@pytest.fixture
def mover(rng):
    objects = rng.standard_normal((30, 5))
    return MoveLabeled(keep_moments=True).fit_pairs(objects[:, :3] + 1, objects)


def put(**arrays):
    """Replace arrays; a dot in a name is written as two underscores after the first."""
    return lambda a: a.update({name.replace("___", "_."): array for name, array in arrays.items()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(W_=np.zeros((4, 5))), r"query_mean_ is float64 of shape \(3,\); expected .* of shape \(4\)"),
        (put(W_=np.zeros((3, 4))), r"W_ is float64 of shape \(3, 4\); expected .* of shape \(3, 5\)"),
        (
            put(W_=np.zeros((5, 5)), query_mean_=np.zeros(5)),
            "query_mean_ belongs to queries of another width",
        ),
        (put(query_mean_=np.zeros(2)), r"query_mean_ is float64 of shape \(2,\)"),
        (put(query_mean_=np.full(3, np.nan)), "query_mean_ holds NaN"),
        (lambda a: a.pop("query_mean_"), r"W_ has the shape \(3, 5\), and query_mean_ is missing"),
        (put(mean_=np.zeros(3)), r"mean_ is float64 of shape \(3,\)"),
        (put(space___mean=np.zeros(3)), "space_.mean is float64 of shape"),
        (put(moments___A=np.zeros((5, 5))), r"moments_\.A is float64 of shape \(5, 5\)"),
        (put(moments___K=np.zeros((3, 3))), r"moments_\.K is float64 of shape \(3, 3\)"),
        (put(moments___x_sum=np.zeros(5)), r"moments_\.A is float64 of shape \(3, 5\)|x_sum is float64"),
        (
            put(moments___x_sum=np.zeros(2), moments___x_origin=np.zeros(2), moments___A=np.zeros((2, 5))),
            "the moments are not those of W_",
        ),
        (lambda a: a.pop("moments_.x_origin"), "the moments are not those of W_"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message, mover, tmp_path):
    hubless.save(mover, tmp_path / "m")
    edit_arrays(tmp_path / "m", change)
    with pytest.raises(ValueError, match=message):
        hubless.load(tmp_path / "m")


def test_a_pull_toward_the_identity_is_refused(mover, tmp_path):
    hubless.save(mover, tmp_path / "m")
    edit_config(tmp_path / "m", lambda c: c["model"]["parameters"].update(toward="identity"))
    with pytest.raises(ValueError, match='toward="identity" needs queries and objects of one width'):
        hubless.load(tmp_path / "m")


def test_a_square_map_with_another_space_is_refused(rng, tmp_path):
    X, y = rng.standard_normal((20, 4)), np.arange(20) % 2
    hubless.save(MoveLabeled(keep_moments=True).fit(X, y), tmp_path / "m")
    edit_arrays(tmp_path / "m", put(moments___x_origin=np.zeros(4)))
    with pytest.raises(ValueError, match="the moments are not those of W_"):
        hubless.load(tmp_path / "m")


def test_chains_and_classifiers_have_one_space(rng, tmp_path):
    X, y = rng.standard_normal((20, 4)), np.arange(20) % 2
    hubless.save(Chain([MoveLabeled(), Scale()]).fit(X, y), tmp_path / "chain")
    edit_arrays(
        tmp_path / "chain",
        lambda a: a.update({"movers_.0.W_": np.zeros((3, 4)), "movers_.0.query_mean_": np.zeros(3)}),
    )
    with pytest.raises(ValueError, match="outside of chains"):
        hubless.load(tmp_path / "chain")
    hubless.save(MoveLabeledClassifier().fit(X, y), tmp_path / "classifier")
    edit_arrays(
        tmp_path / "classifier",
        lambda a: a.update({"mover_.W_": np.zeros((3, 4)), "mover_.query_mean_": np.zeros(3)}),
    )
    with pytest.raises(ValueError, match="mover_ gives 3 columns, and moved_ has 4"):
        hubless.load(tmp_path / "classifier")


def test_a_model_of_an_index_keeps_its_hash(mover, tmp_path, rng):
    model = Repair(mover)
    hubless.save(model, tmp_path / "m")
    loaded = hubless.load(tmp_path / "m")
    assert loaded.hash == model.hash
    Z = rng.standard_normal((4, 5))
    assert loaded.move(Z).tobytes() == model.move(Z).tobytes()
    before = model.hash
    mover.query_mean_ = mover.query_mean_ + 1
    assert model.hash != before
    card = (tmp_path / "m" / "README.md").read_text()
    assert "for objects of 5 columns, which it moves into the space of queries of 3 columns" in card
