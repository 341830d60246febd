"""Saved repairs of an index: mover, metric, steps of single items and facts; and their cards."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import hubless
from hubless.movers import MoveLabeled, Shrink, Stay, Steer
from hubless.repair.repair import ItemSteps, Repair
from tests.saving.forging import edit_arrays, edit_config
from tests.saving.test_saved_models import same_bits

FACTS = {
    "data": {"source": "a|b <script>\n# x", "count": 60, "metric": "cosine", "fingerprint": "ab12"},
    "learned": {"from": "pairs", "n": 919, "mover": "text", "chosen by": "nDCG@10", "seen": [7, "x"]},
    "figures": [
        {
            "measure": "nDCG@10",
            "part": "all",
            "n": 300,
            "before": np.float64(0.65),
            "after": 0.79,
            "low": 0.1,
            "high": 0.2,
        },
        {"measure": "hubs", "part": "held | out", "before": 12, "after": 3},
    ],
}


def with_steps(mover, ids, X, step=0.5, **more):
    """A repair in which single items go a step further."""
    return Repair(mover, steps=ItemSteps(ids, X[: len(ids)], step), **more)


def example(X, y, queries):
    """A small repair with everything that can be saved."""
    facts = {"data": {"source": "x", "fingerprint": "ab"}, "figures": [{"before": 0.5}]}
    ids, mover = np.array(["a", "b"], dtype=object), MoveLabeled().fit_pairs(X[:25], queries)
    return with_steps(mover, ids, X, metric="cosine", label="kind", facts=facts)


@pytest.mark.parametrize("ids", [np.array([5, -2, 1 << 62]), np.array(["é", "", "a\nb"], dtype=object), None])
@pytest.mark.parametrize("metric", ["l2", "cosine"])
@pytest.mark.parametrize("step", [0.25, np.float64(0.25)])
def test_repair_comes_back(ids, metric, step, blobs, tmp_path):
    X, y, queries = blobs
    for mover in (MoveLabeled(1.0, keep_moments=True).fit(X, y), Shrink(0.5).fit(X, y)):
        more = {"metric": metric, "label": "class" if mover._uses_labels else None, "facts": FACTS}
        goals = queries[:3].astype(np.float32)
        model = Repair(mover, **more) if ids is None else with_steps(mover, ids, goals, step, **more)
        hubless.save(model, tmp_path / "model")
        loaded = hubless.load(tmp_path / "model")
        all_ids = None if ids is None else [*ids.tolist(), *range(60, 117)]
        labels = y if mover._uses_labels else None
        for dtype in (np.float32, np.float64):
            Z = X.astype(dtype)
            Z[4] = np.nan  # an item without a vector
            assert same_bits(loaded.move(Z, all_ids, labels), model.move(Z, all_ids, labels))
        assert loaded.hash == model.hash
        assert (loaded.metric, loaded.label, loaded.facts) == (metric, more["label"], FACTS)
        if ids is not None:
            assert (loaded.steps.ids.tolist(), loaded.steps.ids.dtype) == (ids.tolist(), ids.dtype)
            assert (loaded.steps.step, type(loaded.steps.step)) == (step, type(step))


def test_repair_without_steps_comes_back_and_stays_on_the_host(blobs, tmp_path):
    X, y, _ = blobs
    for ids in (np.array([], dtype=np.int64), np.array([], dtype=object)):
        hubless.save(with_steps(Stay().fit(X, y), ids, X, 1), tmp_path)
        assert hubless.load(tmp_path).steps.ids.dtype == ids.dtype
    with pytest.raises(ValueError, match="moves NumPy arrays"):
        hubless.load(tmp_path, "cpu:0")


@pytest.mark.parametrize(
    ("make", "about"),
    [
        (lambda X, y: Repair(Shrink().fit(X, y), "cosine", "c", None, FACTS), ("cosine", "ab12")),
        (lambda X, y: Repair(Shrink().fit(X, y), facts={"data": "none"}), ("l2", None)),
    ],
)
def test_config_says_what_it_is(make, about, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(make(X, y), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["metric"], config["fingerprint"], config["dimension"]) == (*about, 6)
    assert (config["model"]["class"], config["model"]["mover"]["class"]) == ("Repair", "Shrink")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X, y: Repair(Shrink()), NotFittedError, "not fitted"),
        (
            lambda X, y: Repair(Steer().fit(X, y)),
            ValueError,
            r"Steer\(\) adds a column to stored vectors",
        ),
        (
            lambda X, y: Repair(Stay().fit(X, y), "hamming"),
            ValueError,
            "metric must be one of 'l2', 'cosine'",
        ),
        (lambda X, y: Repair(Stay().fit(X, y), facts={1: 2}), TypeError, "facts must have texts as names"),
        (lambda X, y: Repair(Stay().fit(X, y), facts={"a": X}), TypeError, r"facts\['a'\] must be texts"),
        (
            lambda X, y: with_steps(Stay().fit(X, y), np.array([0.5, 1.5]), X),
            TypeError,
            "ids are whole numbers of 64 bits",
        ),
        (lambda X, y: with_steps(Stay().fit(X, y), np.array([7, 7]), X), ValueError, "not all different"),
    ],
)
def test_what_cannot_be_saved_is_refused(make, error, message, blobs, tmp_path):
    X, y, _ = blobs
    with pytest.raises(error, match=message):
        hubless.save(make(X, y), tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- hostile folders ----------------------------------------------------------------------------------------


def ids_as(content):
    """Ids of steps, as the bytes of a JSON text."""
    return {"steps.ids": np.frombuffer(content, dtype=np.uint8)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(ids_as(b'{"dtype": "object", "values": ["a"]}')), "one for each of their means"),
        (lambda a: a.update(ids_as(b'{"dtype": "object", "values": ["b", "b"]}')), "not all different"),
        (lambda a: a.update(ids_as(b'{"dtype": "object", "values": ["b", 5]}')), "a list of object"),
        (lambda a: a.update(ids_as(b'{"dtype": "float64", "values": [1, 2]}')), "allowed are int64, object"),
        (lambda a: a.update(ids_as(b'{"dtype": "int64", "values": [1, 1e999]}')), "not finite"),
        (lambda a: a.update(ids_as(b"5")), "ids of steps must have"),
        (lambda a: a.update(ids_as(b"[" * 100_000)), "nested too deeply"),
        (lambda a: a["steps.ids"].__setitem__(0, 255), "codec can't decode"),
        (lambda a: a["steps.ids"].__setitem__(0, ord("b")), "Expecting value"),
        (lambda a: a.update({"steps.ids": np.arange(2)}), "steps.ids is int64"),
        (lambda a: a.update({"steps.more": np.arange(2)}), "the arrays of steps"),
        (lambda a: a.update({"steps.means": np.zeros((3, 3))}), "one for each of their means"),
        (lambda a: a.update({"steps.means": np.zeros((2, 4))}), r"steps.means is float64 of shape \(2, 4\)"),
        (lambda a: a.update({"other.x": np.zeros(3)}), "the arrays must have"),
        (lambda a: a.update({"x": np.zeros(3)}), "the arrays must have"),
        (lambda a: a.pop("mover.mean_"), "the array mean_ is missing"),
    ],
)
def test_arrays_of_another_repair_are_refused(change, message, tmp_path):
    rng = np.random.default_rng(0)
    X, y, queries = rng.standard_normal((40, 3)) + 2, np.arange(40) % 4, rng.standard_normal((25, 3))
    hubless.save(example(X, y, queries), tmp_path)
    edit_arrays(tmp_path, change)
    with pytest.raises(ValueError, match=message):
        hubless.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(mover=5), "a model must have"),
        (lambda c: c["model"].pop("facts"), "a repair must have"),
        (lambda c: c["model"].update(run="rm"), "a repair must have"),
        (lambda c: c["model"].update(metric="hamming"), "metric must be one of"),
        (lambda c: c["model"].update(metric="ip"), "lose answers by inner product"),
        (lambda c: c["model"].update(facts=[]), "expected names and values"),
        (lambda c: c["model"]["mover"].update({"class": "Repair"}), "'Repair', which cannot be loaded"),
        (lambda c: c["model"]["mover"].update({"class": "LMNN"}), "the parameters of LMNN must have"),
        (lambda c: c.update(fingerprint="cd"), "fingerprint is 'cd'; expected 'ab'"),
        (lambda c: c.update(dimension=4), "dimension is 4; expected 3"),
        (lambda c: c.update(metric="l2"), "metric is 'l2'; expected 'cosine'"),
    ],
)
def test_hostile_config_of_a_repair_is_refused(change, message, tmp_path):
    rng = np.random.default_rng(0)
    X, y, queries = rng.standard_normal((40, 3)) + 2, np.arange(40) % 4, rng.standard_normal((25, 3))
    hubless.save(example(X, y, queries), tmp_path)
    edit_config(tmp_path, change)
    with pytest.raises(ValueError, match=message):
        hubless.load(tmp_path)


# --- the card -----------------------------------------------------------------------------------------------


def test_card_shows_figures_and_no_markup_of_others(blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Repair(Shrink().fit(X, y), "cosine", "<b>|x`y", None, FACTS), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "| nDCG\\@10 | all | 300 | 0.65 | 0.79 | 0.1 to 0.2 |" in card
    assert "| hubs | held \\| out |  | 12 | 3 |  |" in card
    assert "- source: a\\|b &lt;script&gt; \\# x\n- count: 60\n" in card
    assert "- n: 919\n" in card
    assert "seen" not in card
    assert "<" not in card
    assert "the column &lt;b&gt;\\|x\\`y." in card
    assert "stored = model.move(vectors, None, labels)" in card
    rows = [line.replace("\\|", "").count("|") for line in card.splitlines() if line.startswith("|")]
    assert rows == [7] * 4  # the same cells in each row
    assert [line for line in card.splitlines() if line.startswith("#")] == ["# Repair"]


@pytest.mark.parametrize(
    "facts",
    [{}, {"data": 5, "learned": [], "figures": {}}, {"figures": [5, None, {}, {"before": "x", "low": [1]}]}],
)
def test_card_takes_facts_as_they_are(facts, blobs, tmp_path):
    X, y, _ = blobs
    hubless.save(Repair(Stay().fit(X, y), facts=facts), tmp_path)
    assert (tmp_path / "README.md").read_text().startswith("# Repair\n")
    assert hubless.load(tmp_path).facts == facts


def test_an_unknown_figure_is_none(blobs, tmp_path):
    X, y, _ = blobs
    figures = [{"measure": "m", "before": 0.5, "after": np.nan, "low": -np.inf, "high": np.float32("inf")}]
    hubless.save(Repair(Stay().fit(X, y), facts={"figures": figures}), tmp_path)
    row = {"measure": "m", "before": 0.5, "after": None, "low": None, "high": None}
    assert hubless.load(tmp_path).facts == {"figures": [row]}
    assert "| m |  |  | 0.5 |  |  |" in (tmp_path / "README.md").read_text()
