"""Collections of Chroma: what is copied, who reads what, folders that several processes open, and kills."""

import shutil
import sqlite3
from contextlib import closing

import chromadb
import numpy as np
import pytest

from hubless.repair.apply import apply_index, index_status, promote_index, recover_index, rollback_index
from hubless.repair.doctor import diagnose
from hubless.stores.chroma.chroma_collection import ChromaCollection
from hubless.stores.chroma.chroma_connection import ChromaConnection
from hubless.stores.opening import open_store
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.chroma_cases import ask_for, dump, few_records, fill, make
from tests.stores.killer import killed_at, start

__all__ = ["few_records"]  # a fixture
pytestmark = pytest.mark.services

IDS = ["7", "a b", "é'\"; --", "x" * 300, "漢字", "0007"]
PARTS = {
    "metadatas": [
        {"n": 1, "x": 0.1, "yes": True},
        None,
        {"big": 2**53 + 1},
        {"list": ["a", "b"]},
        None,
        {"é": "ü"},
    ],
    "documents": ["one", None, "", "four\nlines", "五", None],
    "uris": [None, "file:///a", None, None, None, None],
}


class Never(chromadb.EmbeddingFunction):
    """An embedding function that must be kept, and never be made or called."""

    def __init__(self, where="here"):
        self.where = where

    def __call__(self, input):
        raise AssertionError("it was called")

    @staticmethod
    def name():
        return "never"

    def get_config(self):
        return {"where": self.where}

    may_be_made = True

    @classmethod
    def build_from_config(cls, config):
        assert cls.may_be_made, "it was made"
        return cls(**config)


def settings_of(folder, name):
    with chromadb.PersistentClient(folder) as client:
        collection = client.get_collection(name, embedding_function=None)
        return collection.configuration_json, collection.metadata


def test_ids_metadata_documents_and_settings_are_copied(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    with chromadb.PersistentClient(tmp_path) as client:
        legacy = {"hnsw:space": "cosine", "hnsw:M": 7, "owner": "me"}  # as older clients give settings
        items = client.create_collection("items", metadata=legacy, embedding_function=Never())
        items.add(ids=IDS, embeddings=X, **PARTS)
    monkeypatch.setattr(Never, "may_be_made", False)
    before, settings = dump_of(tmp_path, "items"), settings_of(tmp_path, "items")
    assert settings[0]["embedding_function"]["config"] == {"where": "here"}
    source, model = f"chroma:{tmp_path}#items", model_for(np.tile(X, (4, 1)), np.arange(24) % 2, "cosine")
    assert apply_index(model, source, "moved")["written"] == 6
    assert apply_index(model, source, "moved")["written"] == 0
    promote_index(source, "moved")
    assert sorted(open_store(source).search(X[:1], 6)[0]) == sorted(IDS)
    after = dump_of(tmp_path, "items")
    assert after.keys() == before.keys()
    assert {id: parts[1:] for id, parts in after.items()} == {id: parts[1:] for id, parts in before.items()}
    moved = dict(zip(IDS, model.move(X), strict=True))
    for id, parts in after.items():
        np.testing.assert_allclose(parts[0], moved[id], rtol=1e-5, atol=1e-6)
    configuration, metadata = settings_of(tmp_path, "items")
    assert configuration == settings[0]
    assert {key: value for key, value in metadata.items() if key != "hubless"} == legacy
    rollback_index(source)
    assert dump_of(tmp_path, "items") == before  # bit for bit
    assert settings_of(tmp_path, "items") == settings
    with chromadb.PersistentClient(tmp_path) as client:
        assert sorted(item.name for item in client.list_collections())[0] == "items"
        assert client.count_collections() == 2  # the original and the moved one, and no record


def dump_of(folder, name):
    with chromadb.PersistentClient(folder) as client:
        return dump(client, name)


def test_what_changed_is_written_again_and_nothing_else(few):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    items = store.connection.find("items")
    items.update(ids=[ids[3]], metadatas=[{"text": None, "other": 1}])  # None removes a key
    items.update(ids=[ids[5]], embeddings=X[5:6], documents=["a document"])
    items.delete(ids=[ids[9]])
    result = apply_index(model, store, "moved")
    assert (result["written"], result["removed"]) == (2, 1)
    green = store.sibling("moved")
    assert green.fetch([ids[3]], ["text", "other"]).columns == {"text": [None], "other": [1]}
    assert green.fetch([ids[5]], ["document"]).columns == {"document": ["a document"]}
    assert green.fetch([ids[9]]).ids.tolist() == []


def rows_of(folder):
    """Return all rows of all tables, except where Chroma notes that somebody opened it."""
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        return [line for line in database.iterdump() if "acquire_write" not in line]


def test_reading_writes_nothing(tmp_path):
    ids, X, _, texts = sample(60, text_ids=True)
    store = make(tmp_path, ids, X, texts)
    before = rows_of(tmp_path / "db")
    diagnose(store.name)
    index_status(store)
    recover_index(store)
    store.connection.close()
    assert rows_of(tmp_path / "db") == before


def test_a_folder_of_another_version_is_not_brought_up_to_date(tmp_path):
    ids, X, _, texts = sample(10, text_ids=True)
    store = make(tmp_path, ids, X, texts)
    with closing(sqlite3.connect(tmp_path / "db" / "chroma.sqlite3")) as database, database:
        database.execute("DELETE FROM migrations WHERE version = (SELECT max(version) FROM migrations)")
    before = rows_of(tmp_path / "db")
    with pytest.raises(StoreError, match="migration"):
        store.facts()
    assert rows_of(tmp_path / "db") == before


@pytest.mark.parametrize("damage", ["no database" * 100, ""])
def test_a_damaged_folder_is_refused(tmp_path, damage):
    (tmp_path / "chroma.sqlite3").write_text(damage)
    with pytest.raises(StoreError, match=str(tmp_path)):
        open_store(f"chroma:{tmp_path}#items").facts()


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    store = open_store(f"chroma:{tmp_path / 'no'}#items")
    assert not store.exists()
    with pytest.raises(StoreError, match="no Chroma database"):
        store.facts()
    assert not (tmp_path / "no").exists()


def test_a_server_that_does_not_answer_is_named():
    with pytest.raises(StoreError, match=r"http://127\.0\.0\.1:1 did not answer.*chroma run"):
        open_store("chroma:http://127.0.0.1:1#items").facts()


@pytest.mark.parametrize(
    ("source", "options", "match"),
    [
        ("chroma:a#items", {"vector": "x"}, "leave out --vector"),
        ("chroma:a#items", {"id": "x"}, "leave out --vector, --id"),
        ("chroma:http://me:secret@host#items", {}, "CHROMA_CLIENT_AUTH_CREDENTIALS"),
        ("chroma:a", {}, "after a #"),
    ],
)
def test_what_makes_no_sense_is_refused_first(source, options, match):
    with pytest.raises(StoreError, match=match) as caught:
        open_store(source, **options)
    assert "secret" not in str(caught.value)


def test_names_and_metrics_that_chroma_does_not_take_are_refused_first(few):
    store, _, _, model = few
    for name in ("x", "a b", "a..b", "ends_with_", "../out"):
        with pytest.raises(StoreError, match="cannot be a collection"):
            apply_index(model, store, name)
    with pytest.raises(StoreError, match="compares by l2; got metric='cosine'"):
        open_store(store.name, metric="cosine").facts()


def test_a_notebook_that_has_the_folder_open_is_joined(tmp_path):
    """Chroma refuses a second client with other settings in the same process."""
    ids, X, y, texts = sample(60, text_ids=True)
    store, model = make(tmp_path, ids, X, texts), model_for(X, y, "l2")
    with chromadb.PersistentClient(str(tmp_path / "db")) as client:
        held = client.get_collection("items", embedding_function=None)
        apply_index(model, store.name, "moved")
        promote_index(store.name, "moved")
        old = held.query(query_embeddings=X, n_results=5, include=[])["ids"]
        new = ask_for(client, "items", X, 5)
        rollback_index(store.name)
        assert ask_for(client, "items", X, 5) == old != new  # who held the collection kept the original


def add_late(folder):
    with chromadb.PersistentClient(folder) as client:
        client.get_collection("items").add(ids=["late"], embeddings=np.ones((1, 8), np.float32))


def test_rows_that_another_process_adds_to_an_open_folder_are_seen(few):
    store, _, _, model = few
    apply_index(model, store, "moved")
    process = start(add_late, store.address)
    process.join()
    assert process.exitcode == 0
    with pytest.raises(StoreError, match="changed"):
        promote_index(store, "moved")
    assert apply_index(model, store, "moved")["written"] == 1
    promote_index(store, "moved")
    assert store.sibling(store.name).contains(np.array(["late"], dtype=object)).tolist() == [True]


# --- the switch ---------------------------------------------------------------------------------------------


def count_calls(counted):
    ChromaConnection.call = counted(ChromaConnection.call)


def promote_again(folder):
    promote_index(ChromaCollection(folder, "items"), "moved")


def apply_again(folder):
    _, X, y, _ = sample(60, text_ids=True)
    apply_index(model_for(X, y, "l2"), ChromaCollection(folder, "items"), "moved")


@pytest.mark.faults
@pytest.mark.parametrize(("work", "moments"), [(apply_again, (9, 25, 38)), (promote_again, (15, 20, 22))])
def test_killed_processes_leave_what_can_be_completed(few, work, moments, tmp_path):
    store, ids, X, model = few
    before = dump(store.connection.client, "items")
    if work is promote_again:
        apply_index(model, store, "moved")
    store.connection.close()
    shutil.copytree(store.address, tmp_path / "start")
    for moment in moments:
        shutil.rmtree(store.address)
        shutil.copytree(tmp_path / "start", store.address)
        killed_at(moment, count_calls, work, store.address)
        killed = ChromaCollection(store.address, "items")
        recover_index(killed)
        if killed.mark() is None:
            apply_index(model, killed, "moved")
            promote_index(killed, "moved")
        np.testing.assert_allclose(killed.fetch(ids).vectors, model.move(X), rtol=1e-5, atol=1e-6)
        rollback_index(killed)
        assert dump(killed.connection.client, "items") == before
        killed.connection.close()


def interrupted(store, model, monkeypatch, *, verb=promote_index):
    """Switch halfway: nothing has the name."""
    apply_index(model, store, "moved")
    if verb is rollback_index:
        promote_index(store, "moved")
    with monkeypatch.context() as patch:
        patch.setattr("hubless.stores.chroma.chroma_switch.Names.complete", lambda names: None)
        verb(*((store, "moved") if verb is promote_index else (store,)))


@pytest.mark.parametrize("verb", [promote_index, rollback_index])
def test_a_program_that_creates_the_missing_name_loses_nothing(few, monkeypatch, verb):
    store, ids, X, model = few
    interrupted(store, model, monkeypatch, verb=verb)
    with pytest.raises(StoreError, match="hubless recover"):
        store.facts()
    fill(store.connection.client, "items", ["new"], X[:1], ["created since it was not found"])
    assert index_status(store)["interrupted"]
    assert recover_index(store)["recovered"]
    assert not recover_index(store)["recovered"]
    expected = model.move(X) if verb is promote_index else X
    np.testing.assert_allclose(store.fetch(ids).vectors, expected, rtol=1e-5, atol=1e-6)
    assert dump(store.connection.client, "items_meanwhile").keys() == {"new"}


def test_a_removed_moved_copy_brings_the_original_back(few, monkeypatch):
    store, ids, X, model = few
    interrupted(store, model, monkeypatch)
    store.connection.client.delete_collection("moved")
    recover_index(store)
    np.testing.assert_array_equal(store.fetch(ids).vectors, X)
    assert index_status(store)["status"] == "original"


def test_a_record_of_others_is_not_believed(few):
    store, _, _, model = few
    store.connection.client.create_collection(
        "items.hubless", metadata={"original": "x"}, embedding_function=None
    )
    assert not index_status(store)["interrupted"]
    apply_index(model, store, "moved")
    with pytest.raises(StoreError, match="not a record of hubless"):
        promote_index(store, "moved")
    assert index_status(store)["status"] == "original"
    store.connection.find("items.hubless").modify(name="their_record")
    promote_index(store, "moved")


def test_promote_says_what_others_may_see(few, words, run):
    store, _, _, model = few
    apply_index(model, store, "moved")
    shown = words("promote", store.name, "moved")
    assert "for a moment, nothing had this name" in shown
    assert "until they open it by its name again" in shown
    assert run("rollback", store.name)["note"] == store.switch_note


def test_telemetry_is_off(few):
    store, *_ = few
    assert store.connection.client.get_settings().anonymized_telemetry is False
