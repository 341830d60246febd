"""A correction per item from a log of queries: learned, saved, applied, and refused where it cannot be."""

import json

import numpy as np
import pytest

import hubless
from hubless.corrections import CORRECTIONS, NNN, HoldHubs
from hubless.movers import MoveLabeled, Stay
from hubless.repair import Repair, apply_index, fit_index
from hubless.repair.learn_from_log import MATTERS, without
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def planted(rng, n=1000, m=500, d=48, hubs=3):
    """Return items, queries that have something in common, and items in the middle of many queries."""
    items = unit(rng.normal(size=(n, d)))
    queries = unit(rng.normal(size=(m, d)) + 4 * unit(rng.normal(size=(1, d))))
    groups = np.array_split(rng.permutation(m), hubs)  # what an attacker adds: the middle of each
    middles = unit(np.stack([queries[group].mean(axis=0) for group in groups]))
    return np.concatenate([items, middles]).astype(np.float32), queries.astype(np.float32)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    items, queries = planted(np.random.default_rng(0))
    np.save(folder / "items.npy", items)
    np.save(folder / "log.npy", queries[:400])
    np.save(folder / "new.npy", queries[400:])
    return folder


def shares(items, queries, rows, k=10):
    """The share of queries that have one of these rows among their k nearest, by a plain sort."""
    found = 0
    for query in queries:
        order = np.argsort(((items - query) ** 2).sum(axis=1), kind="stable")[:k]
        found += bool(set(order.tolist()) & set(rows))
    return found / len(queries)


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_hubs_are_held_back_and_others_stay(shop, metric):
    store = open_store(shop / "items.npy", metric=metric)
    model = fit_index(store, queries=shop / "log.npy")
    items, new = np.load(shop / "items.npy"), np.load(shop / "new.npy")
    moved = model.move(items)
    assert moved.shape == items.shape
    hubs = [1000, 1001, 1002]
    if metric != "l2":  # of one length, so that distances give the order of inner products
        moved = np.column_stack([moved, np.sqrt(2 - (moved**2).sum(axis=1))])
        new = np.column_stack([new, np.zeros(len(new))])
        items = np.column_stack([items, np.ones(len(items))])
    before, after = shares(items, new, hubs), shares(moved, new, hubs)
    assert before > 0.3
    assert after < 0.2 * before
    same = np.abs(moved - items).max(axis=1) < 1e-6
    assert not same[hubs].any()
    assert same.mean() > 0.95


def test_items_without_hubs_are_left_alone(shop, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "items.npy", unit(rng.normal(size=(1000, 48))))
    np.save(tmp_path / "log.npy", unit(rng.normal(size=(400, 48))))
    model = fit_index(tmp_path / "items.npy", queries=tmp_path / "log.npy")
    assert model.moves_nothing
    assert model.correction is None
    with pytest.raises(StoreError, match="moves nothing"):
        apply_index(model, tmp_path / "items.npy", str(tmp_path / "moved.npy"))


def test_words_say_that_gain_was_not_measured(shop):
    learned = fit_index(shop / "items.npy", queries=shop / "log.npy").facts["learned"]
    assert learned["from"] == "log"
    assert "Whether answers are better was not measured" in learned["chosen by"]
    assert [item["id"] for item in learned["held items"]][:1] != []
    assert all(item["after"] <= item["before"] for item in learned["held items"])
    assert learned["held-out queries"] == 80  # a fifth of the log


def test_one_more_column_is_exact_and_queries_get_a_zero(shop, tmp_path):
    model = fit_index(shop / "items.npy", queries=shop / "log.npy", column=True)
    assert (model.dimension, model.query_width, model.width) == (48, 48, 49)
    assert "append a 0" in model.query_note
    result = apply_index(model, shop / "items.npy", str(tmp_path / "moved.npy"))
    assert model.query_note in result["notes"]
    stored = np.load(tmp_path / "moved.npy")
    assert stored.shape[1] == 49
    items, new = np.load(shop / "items.npy").astype(np.float64), np.load(shop / "new.npy")
    _, bias = model.correction.bias(items)
    for query in new[:20].astype(np.float64):
        wanted = np.argsort(-(-0.5 * ((items - query) ** 2).sum(axis=1) - bias), kind="stable")[:10]
        asked = np.append(query, 0.0)
        found = np.argsort(((stored.astype(np.float64) - asked) ** 2).sum(axis=1), kind="stable")[:10]
        assert wanted.tolist() == found.tolist()


def test_a_saved_model_moves_alike_and_new_items_get_their_correction(shop, tmp_path):
    model = fit_index(open_store(shop / "items.npy", metric="cosine"), queries=shop / "log.npy")
    hubless.save(model, tmp_path / "model")
    loaded = hubless.load(tmp_path / "model")
    items = np.load(shop / "items.npy")
    assert loaded.hash == model.hash
    np.testing.assert_array_equal(loaded.move(items), model.move(items))
    np.testing.assert_allclose(loaded.move(items[995:]), model.move(items)[995:], atol=1e-6)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "HoldHubs" in card
    assert "queries stay as they are" in card


def test_rows_without_a_vector_stay_without_one(shop):
    model = fit_index(shop / "items.npy", queries=shop / "log.npy")
    items = np.load(shop / "items.npy")[998:].copy()
    items[0] = np.nan
    moved = model.move(items)
    assert np.isnan(moved[0]).all()
    np.testing.assert_array_equal(moved[1:], model.move(items[1:]))


def bad_arguments(shop, tmp_path):
    np.save(tmp_path / "narrow.npy", np.ones((60, 5), dtype=np.float32))
    np.save(tmp_path / "few.npy", np.load(shop / "log.npy")[:30])
    np.save(tmp_path / "same.npy", np.repeat(np.load(shop / "log.npy")[:3], 40, axis=0))
    return {
        "nothing": ({}, "give what to learn from"),
        "narrow": ({"queries": tmp_path / "narrow.npy"}, "queries of 5 columns, the items have 48"),
        "few": ({"queries": tmp_path / "few.npy"}, "30 different queries, too few"),
        "same": ({"queries": tmp_path / "same.npy"}, "3 different queries, too few"),
        "labels": ({"queries": shop / "log.npy", "labels": "x"}, "leave one of them out"),
        "label column": ({"labels": "x", "column": True}, "leave one of them out"),
        "memory": ({"queries": shop / "log.npy", "memory": "1GB"}, "queries are learned in memory"),
        "column": ({"queries": shop / "log.npy", "column": True, "metric": "cosine"}, "Leave out --column"),
    }


@pytest.mark.parametrize(
    "case", ["nothing", "narrow", "few", "same", "labels", "label column", "memory", "column"]
)
def test_bad_arguments_are_refused(shop, tmp_path, case):
    given, message = bad_arguments(shop, tmp_path)[case]
    store = open_store(shop / "items.npy", metric=given.pop("metric", None))
    with pytest.raises(StoreError, match=message):
        fit_index(store, **given)


@pytest.mark.parametrize(("n", "metric"), [(1, "l2"), (1, "cosine"), (3, "cosine")])
def test_one_item_has_no_hubs(shop, tmp_path, n, metric):
    items = np.load(shop / "items.npy")[:n]
    items[1:] = 0  # which have no direction
    np.save(tmp_path / "items.npy", items)
    store = open_store(tmp_path / "items.npy", metric=metric)
    with pytest.raises(StoreError, match=r"has 1 item with a vector.*2 or more"):
        fit_index(store, queries=shop / "log.npy")


def test_queries_without_a_vector_are_left_out_and_counted(shop, tmp_path):
    log = np.load(shop / "log.npy")
    log[:7] = np.nan
    np.save(tmp_path / "log.npy", log)
    learned = fit_index(shop / "items.npy", queries=tmp_path / "log.npy").facts["learned"]
    assert learned["queries without a vector"] == 7
    assert learned["log"] == 393


def test_queries_are_removed_from_a_log_by_their_bits():
    log = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(without(log, log[[1, 3]]), log[[0, 2]])


def test_what_hardly_matters_is_not_worth_a_new_index(monkeypatch, shop):
    monkeypatch.setattr("hubless.repair.learn_from_log.MATTERS", 1.0)
    model = fit_index(shop / "items.npy", queries=shop / "log.npy")
    assert model.moves_nothing
    assert "not worth a new index" in model.facts["learned"]["chosen by"]
    assert MATTERS < 0.05


class TestRepair:
    """What a Repair with a correction refuses."""

    def test_corrections_for_other_vectors(self):
        rng = np.random.default_rng(0)
        Q, Z = rng.normal(size=(60, 6)), rng.normal(size=(80, 6))
        stay = Stay().fit(Z, np.zeros(80))
        with pytest.raises(ValueError, match="its correction is for cosine"):
            Repair(stay, "l2", correction=NNN().fit(Q, Z))
        with pytest.raises(ValueError, match="columns; expected"):
            Repair(stay, "cosine", correction=NNN().fit(Q[:, :4], Z[:, :4]))
        with pytest.raises(ValueError, match="expected one of hubless"):
            Repair(stay, "l2", correction=stay)

    def test_maps_for_inner_product(self):
        rng = np.random.default_rng(0)
        mover = MoveLabeled().fit(rng.normal(size=(20, 3)), np.arange(20) % 2)
        with pytest.raises(ValueError, match="lose answers by inner product"):
            Repair(mover, "ip")

    @pytest.mark.parametrize("name", sorted(CORRECTIONS))
    def test_every_correction_is_saved_inside(self, name, tmp_path):
        rng = np.random.default_rng(0)
        Q, Z = rng.normal(size=(60, 6)), rng.normal(size=(80, 6))
        model = Repair(Stay().fit(Z, np.zeros(80)), "l2", correction=CORRECTIONS[name](metric="l2").fit(Q, Z))
        hubless.save(model, tmp_path / "model")
        loaded = hubless.load(tmp_path / "model")
        assert loaded.hash == model.hash
        np.testing.assert_array_equal(loaded.move(Z), model.move(Z))

    def test_a_correction_of_another_kind_is_not_loaded(self, tmp_path):
        rng = np.random.default_rng(0)
        Q, Z = rng.normal(size=(60, 6)), rng.normal(size=(80, 6))
        model = Repair(Stay().fit(Z, np.zeros(80)), "l2", correction=HoldHubs(metric="l2").fit(Q, Z))
        hubless.save(model, tmp_path / "model")
        file = tmp_path / "model" / "config.json"
        config = json.loads(file.read_text())
        text = json.dumps(config).replace('"HoldHubs"', '"Stay"')
        file.write_text(text)
        with pytest.raises(ValueError, match="Stay"):
            hubless.load(tmp_path / "model")
