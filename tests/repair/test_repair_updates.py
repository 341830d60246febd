"""Models of an index that learn from more items, forget some, and merge."""

import json
import re

import numpy as np
import pytest

import hubless
from hubless.movers import MoveLabeled, Shrink
from hubless.repair.index_items import read_items
from hubless.repair.repair import ItemSteps, Repair
from hubless.repair.update import merge_models, update_model
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from tests.movers.test_updates import check_map, check_same_map, truth_of_batches


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

    def store(self, name):
        file = str(self.folder / f"{name}.npy")
        return open_store(file, metric=self.metric, items=self.folder / f"{name}.csv")

    def batches(self, *names):
        """As they are compared: of length 1 under cosine."""
        batches = [(self.X[name].astype(float), self.y[name]) for name in names]
        if self.metric == "cosine":
            batches = [(X / np.linalg.norm(X, axis=1)[:, None], y) for X, y in batches]
        return batches


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
        check_map(model.mover, W, scale * unit, mean, 2e-5)
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
    assert "figures" not in both.facts  # those of the old model do not hold for this one
    assert {file.name: file.read_bytes() for file in (folder / "paris").iterdir()} == kept

    shown = words("update", folder / "both", *shops.source("paris"), "--remove", "-o", folder / "less")
    assert "learned from 80 items in all; since `fit`: 80 added, 120 removed." in shown
    assert "not the same" not in shown
    is_of(hubless.load(folder / "less"), "tokyo")
    assert "since then: 80 added, 120 removed" in (folder / "less" / "README.md").read_text()

    shown = words("merge", folder / "paris", folder / "tokyo", "-o", folder / "merged")
    assert "learned from 200 items in all; since `fit`: 80 merged." in shown
    is_of(hubless.load(folder / "merged"), "paris", "tokyo")

    add, remove = shops.source("tokyo"), [*shops.source("paris"), "--remove"]
    lines = {
        "learned from .* already": ["update", folder / "both", *add, "-o", folder / "x"],
        "would count twice": ["merge", folder / "both", folder / "tokyo", "-o", folder / "x"],
        "less contains a model already": ["update", folder / "paris", *add, "-o", folder / "less"],
        "paris contains a model already": [
            "merge",
            folder / "paris",
            folder / "tokyo",
            "-o",
            folder / "paris",
        ],
        "nothing would be left": ["update", folder / "paris", *remove, "-o", folder / "x"],
    }
    for message, line in lines.items():
        assert re.search(message, refused(*line))
    assert not (folder / "x").exists()


def test_updated_models_move_and_predict(shops, run, words):
    folder = shops.folder
    for name in ("paris", "tokyo"):
        run("fit", *shops.source(name), "--mover", "ridge", "-o", folder / name)
    run("merge", folder / "paris", folder / "tokyo", "-o", folder / "merged")
    run("update", folder / "paris", *shops.source("tokyo"), "-o", folder / "both")
    moved = {}
    for name in ("merged", "both"):
        model = hubless.load(folder / name)
        moved[name] = model.move(shops.X["tokyo"])
        line = [folder / "tokyo.npy", "--source", *shops.source("paris")]
        classes = words("predict", folder / name, *line).split()
        assert np.mean(np.array(classes) == shops.y["tokyo"]) > 0.6
    np.testing.assert_allclose(moved["merged"], moved["both"], atol=1e-5)


def test_forgetting_part_of_a_batch_is_approximate_and_says_so(tmp_path, words, run):
    shops = Shops(tmp_path)
    run("fit", *shops.source("paris"), "--mover", "ridge", "-o", tmp_path / "model")
    np.save(tmp_path / "some.npy", shops.X["paris"][:30])
    (tmp_path / "some.csv").write_text(
        "category\n" + "".join(f"{value}\n" for value in shops.y["paris"][:30])
    )
    shown = words("update", tmp_path / "model", *shops.source("some"), "--remove", "-o", tmp_path / "less")
    assert "were not learned as one batch" in shown
    model = hubless.load(tmp_path / "less")
    assert model.facts["life"][-1]["exact"] is False
    rest = shops.X["paris"][30:].astype(float)
    np.testing.assert_allclose(model.mover.mean_, rest.mean(axis=0), atol=1e-5)  # the mean is exact
    assert model.facts["learned"]["n"] == 90


def test_models_that_cannot_be_updated_are_refused(tmp_path):
    shops = Shops(tmp_path)
    X, y, tokyo = shops.X["paris"], shops.y["paris"], shops.store("tokyo")
    mover = MoveLabeled(keep_moments=True).fit(X, y)
    steps = ItemSteps(np.arange(2), X[:2], 0.5)
    good = Repair(mover)
    refusals = {
        r"toward their queries: it cannot be updated. Fit it again": Repair(mover, steps=steps),
        r"moves by Shrink\(\), which keeps no moments.*--mover ridge": Repair(
            Shrink().fit(X, y), label="category"
        ),
        r"moves by MoveLabeled\(\), which keeps no moments": Repair(MoveLabeled().fit(X, y)),
        r"learned from pairs": Repair(mover, facts={"learned": {"from": "pairs"}}),
        r"compares by l2, the model is for cosine": Repair(mover, "cosine"),
        r"6 columns, the model is for 5": Repair(MoveLabeled(keep_moments=True).fit(X[:, :5], y)),
    }
    for message, model in refusals.items():
        for remove in (False, True):
            with pytest.raises(StoreError, match=message):
                update_model(model, tokyo, "category", remove=remove)
    for message, model in list(refusals.items())[:3]:
        for two in ((model, good), (good, model)):
            with pytest.raises(StoreError, match=message):
                merge_models(two)
    with pytest.raises(StoreError, match="different metrics: l2 and cosine"):
        merge_models([good, Repair(mover, "cosine")])
    with pytest.raises(StoreError, match="different kinds of data: labels and pairs"):
        merge_models([Repair(mover, facts={"learned": {"from": kind}}) for kind in ("labels", "pairs")])
    with pytest.raises(ValueError, match="the same n_targets"):
        merge_models([good, Repair(MoveLabeled(n_targets=2, keep_moments=True).fit(X, y))])
    np.save(tmp_path / "paris.npy", 9 * X)
    with pytest.raises(ValueError, match="not learned in this form"):
        update_model(update_model(good, tokyo, "category"), shops.store("paris"), "category", remove=True)
    check_same_map(good.mover, MoveLabeled().fit(X, y))


def test_a_model_knows_which_batches_it_has_learned(tmp_path):
    shops = Shops(tmp_path)
    paris, tokyo = shops.store("paris"), shops.store("tokyo")
    one, two = (
        Repair(
            MoveLabeled(keep_moments=True).fit(shops.X[name], shops.y[name]),
            facts={"data": read_items(shops.store(name)).about()},
        )
        for name in ("paris", "tokyo")
    )
    joint, both = merge_models([one, two]), update_model(one, tokyo, "category")
    for model, items in ((joint, tokyo), (joint, paris), (both, tokyo)):
        with pytest.raises(StoreError, match=r"learned from .* already"):
            update_model(model, items, "category")
        less = update_model(model, items, "category", remove=True)
        assert less.facts["life"][-1]["exact"] is True
        again = update_model(less, items, "category")  # what was forgotten may be learned again
        check_same_map(again.mover, model.mover, 1e-5)
        with pytest.raises(ValueError, match=r"nothing would be left|not learned in this form"):
            update_model(update_model(less, items, "category", remove=True), items, "category", remove=True)


def test_merged_models_know_the_pairs_of_both(rng):
    models = []
    for start in (0, 50):
        objects = rng.standard_normal((40, 5))
        mover = MoveLabeled(1.0, toward="identity", keep_moments=True).fit_pairs(objects + 0.1, objects)
        learned = {"from": "pairs", "n": 40, "seen": [start, 60], "query ids": [f"q{start}"]}
        models.append(Repair(mover, facts={"learned": learned}))
    learned = merge_models(models).facts["learned"]
    assert (learned["seen"], learned["query ids"], learned["n"]) == ([0, 60, 50], ["q0", "q50"], 80)
    assert models[0].facts["learned"]["seen"] == [0, 60]
    assert json.dumps(learned)
