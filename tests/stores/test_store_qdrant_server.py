"""Collections of Qdrant over HTTP: connections that break, and the settings of a collection on a server."""

import numpy as np
import pytest

from hubless.repair.apply import apply_index, promote_index
from hubless.stores.qdrant import qdrant_collection
from hubless.stores.qdrant.qdrant_collection import QdrantCollection
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.qdrant_cases import fill, name
from tests.stores.qdrant_server import Engine, serving

pytestmark = pytest.mark.services


@pytest.fixture
def few():
    """Yield 60 rows on a server, and a model for them."""
    engine = Engine()
    ids, X, y, texts = sample(60)
    fill(engine.memory, ids, X, texts)
    with serving(engine) as address:
        yield engine, QdrantCollection(address, "items"), ids, X, model_for(X, y, "l2")


@pytest.mark.faults
def test_a_connection_that_breaks_leaves_what_can_be_resumed(few, monkeypatch):
    engine, store, ids, X, model = few
    monkeypatch.setattr(qdrant_collection, "PAGE", 25)  # so that there are several requests of each kind
    store = QdrantCollection(store.address, "items")
    apply_index(model, store, "whole")
    requests, broken = len(engine.seen), 0
    for drop in range(0, requests, 4):
        engine.seen, engine.drop_after = [], drop
        with pytest.raises(StoreError, match=r"did not answer.*original is untouched"):
            apply_index(model, store, "moved")
        engine.drop_after = None
        broken += engine.memory.collection_exists("moved") and engine.memory.count("moved").count < 60
        apply_index(model, store, "moved")
        assert engine.memory.count("items_v1").count == 60
        promote_index(store, "moved")
        np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
        store.rollback()
        engine.memory.delete_collection("moved")
    assert broken > 1  # some broke in the middle of the rows


def test_a_server_that_does_not_answer():
    with pytest.raises(StoreError, match="did not answer"):
        QdrantCollection("http://127.0.0.1:9", "items").facts()


def test_an_old_server_is_refused(few):
    engine, store, *_, model = few
    engine.version = "1.15.3"
    with pytest.raises(StoreError, match=r"1\.16"):
        apply_index(model, store, "moved")
    assert {method for method, *_ in engine.seen} == {"GET", "POST"}
    assert not engine.memory.collection_exists("moved")


def test_green_is_made_like_blue(few):
    engine, store, *_, model = few
    engine.settings = {
        "hnsw_config": {"m": 24, "ef_construct": 77, "full_scan_threshold": 5000, "on_disk": True},
        "quantization_config": {"scalar": {"type": "int8", "always_ram": True}},
        "optimizer_config": {"default_segment_number": 3, "flush_interval_sec": 9, "indexing_threshold": 111},
        "strict_mode_config": {"enabled": True, "max_query_limit": 500},
        "metadata": {"owner": "search team"},
    }
    engine.schemas["items"] = engine.schemas["items_v1"] = {"text": "keyword", "year": "integer"}
    assert store.facts().index == "HNSW, m=24, quantised first"
    assert store.facts().is_exact
    assert store.facts().columns == ("text", "year")
    apply_index(model, store, "moved")
    made = next(body for method, path, body in engine.seen if (method, path) == ("PUT", "collections/moved"))
    assert made.pop("metadata").keys() == {"owner", "hubless"}
    settings = {key: value for key, value in made.items() if value is not None}
    optimizers = settings.pop("optimizers_config")
    assert optimizers.items() >= engine.settings["optimizer_config"].items()
    assert settings.pop("hnsw_config").items() >= engine.settings["hnsw_config"].items()
    assert settings.pop("quantization_config") == engine.settings["quantization_config"]
    assert settings.pop("strict_mode_config").items() >= engine.settings["strict_mode_config"].items()
    assert settings["vectors"]["distance"] == "Euclid"
    assert engine.schemas["moved"] == engine.schemas["items_v1"]


def test_shards_by_a_key_are_refused(few):
    engine, store, *_, model = few
    engine.settings = {"params": {"vectors": {"size": 8, "distance": "Euclid"}, "sharding_method": "custom"}}
    with pytest.raises(StoreError, match="sharded by custom keys"):
        apply_index(model, store, "moved")
    assert not engine.memory.collection_exists("moved")


def test_the_index_is_waited_for(few, monkeypatch):
    engine, store, *_, model = few
    monkeypatch.setattr(qdrant_collection, "PAUSE", 0)
    apply_index(model, store, "moved")
    green, mark = store.sibling("moved"), store.sibling("moved").mark()
    engine.seen, engine.statuses = [], ["yellow", "grey", "yellow", "green"]
    green.finish(store, mark)
    changes = [body for method, _, body in engine.seen if method == "PATCH"]
    assert [sorted(key for key, value in change.items() if value is not None) for change in changes] == [
        ["optimizers_config"],
        ["metadata"],
    ]
    engine.statuses = ["red"]
    with pytest.raises(StoreError, match="could not build"):
        green.finish(store, mark)


def test_the_alias_is_switched_in_one_step(few):
    engine, store, *_, model = few
    apply_index(model, store, "moved")
    name(engine.memory, "next", "moved")  # an alias of green will do
    engine.seen = []
    promote_index(store, "next")
    switches = [body["actions"] for _, path, body in engine.seen if path == "collections/aliases"]
    assert switches == [[{"create_alias": {"collection_name": "moved", "alias_name": "items"}}]]


def test_the_key_is_sent_and_not_shown(few, monkeypatch):
    engine, store, *_ = few
    monkeypatch.setenv("QDRANT_API_KEY", "secret")
    store = QdrantCollection(store.address, "items")
    with pytest.warns(UserWarning, match="insecure connection"):  # for the user to see
        store.facts()
    assert set(engine.keys) == {"secret"}
    assert "secret" not in store.name + repr(store) + str(vars(store.sibling("moved")))
    engine.refuses = 403
    with pytest.raises(StoreError, match="QDRANT_API_KEY") as caught:
        store.facts()
    assert "secret" not in str(caught.value)
    for address in ("http://me:secret@host:6333", "me:secret@host:6333", "//me:secret@host:6333"):
        with pytest.raises(StoreError, match="leave the password or key out"):
            QdrantCollection(address, "items")


def test_an_alias_that_is_switched_during_apply_moves_nothing_twice(few, monkeypatch):
    """A promote beside it makes the alias serve the copy, which must not be read as the original."""
    _, store, ids, X, model = few
    monkeypatch.setattr(qdrant_collection, "PAGE", 25)
    store = QdrantCollection(store.address, "items")
    move, switched = model.move_batch, []

    def move_and_switch(batch):
        if not switched:
            store._serve("other")  # of a promote that found the copy finished, before this began
            switched.append(True)
        return move(batch)

    apply_index(model, store, "other")
    monkeypatch.setattr(model, "move_batch", move_and_switch)
    apply_index(model, store, "other")
    assert switched
    np.testing.assert_allclose(store.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
