"""Folders of qdrant-client: hostile ones are refused before it reads them; how often verbs read."""

import json
import os
import pickle
import sqlite3
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from qdrant_client import QdrantClient, models

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.repair.doctor import diagnose
from hubless.stores.opening import open_store
from hubless.stores.qdrant.qdrant_collection import QdrantCollection
from hubless.stores.qdrant.qdrant_points import PointStore
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.qdrant_cases import few_rows, make, unsynced

__all__ = ["few_rows", "unsynced"]  # fixtures
pytestmark = pytest.mark.services


class Call:
    """Unpickled, it calls a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.fixture
def folder(tmp_path):
    ids, X, _, texts = sample(20)
    make(tmp_path, ids, X, texts).connection.close()
    return tmp_path / "db"


def put(folder, value):
    """Replace a stored point."""
    with sqlite3.connect(folder / "collection/items_v1/storage.sqlite") as database:
        database.execute("UPDATE points SET point = ? WHERE rowid = 5", (value,))
    database.close()


def point(**values):
    return models.PointStruct.model_construct(**{"id": 3, "vector": [0.0] * 8, "payload": {}, **values})


def hostile(path):
    """Return pickles that would create a file, and others that are no points."""
    harm = Call(os.mkdir, str(path))
    text = f"cposix\nmkdir\n(V{path}\ntR."
    by_memo = b"\x80\x04\x8c\x05posix\x94\x8c\x05mkdir\x94\x93" + pickle.dumps((str(path),), 2)[2:-1] + b"R."
    return {
        "alone": pickle.dumps(harm),
        "in the payload": pickle.dumps(point(payload={"text": harm})),
        "in a nested payload": pickle.dumps(point(payload={"meta": [{"a": (harm,)}]})),
        "in the vector": pickle.dumps(point(vector={"": harm})),
        "as the id": pickle.dumps(point(id=harm)),
        "protocol 0": text.encode(),
        "protocol 0, an instance": f"(V{path}\niposix\nmkdir\n.".encode(),
        "by a memo": by_memo,
        "eval": pickle.dumps(point(payload=Call(eval, f"__import__('os').mkdir({str(path)!r})"))),
        "a class of qdrant-client": pickle.dumps(Call(QdrantClient, ":memory:")),
        "not a point": pickle.dumps({"id": 3, "vector": [0.0] * 8}),
        "without a vector": pickle.dumps(point(vector=None)),
        "cut short": pickle.dumps(point())[:-9],
        "no pickle": b"text",
        "empty": b"",
    }


@pytest.mark.parametrize("kind", hostile(""))
def test_pickles_that_are_not_points_are_refused_before_they_run(folder, tmp_path, kind):
    made = tmp_path / "made by the folder"
    put(folder, hostile(made)[kind])
    with pytest.raises(StoreError, match="not plain data"):
        open_store(f"qdrant:{folder}#items").facts()
    assert not made.exists()


def test_the_hostile_points_would_run(folder, tmp_path):
    """The attack is real: qdrant-client itself runs it."""
    made = tmp_path / "made by the folder"
    put(folder, hostile(made)["in the payload"])
    QdrantClient(path=str(folder)).close()
    assert made.exists()


def test_what_older_clients_wrote_is_read(folder):
    values = {"when": datetime.now(UTC), "price": Decimal(3)}  # now they are turned into JSON first
    put(folder, pickle.dumps(point(payload=values)))
    assert open_store(f"qdrant:{folder}#items").facts().count == 20


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE points RENAME TO p; CREATE VIEW points AS SELECT rowid, id, point FROM p", "more than"),
        ("CREATE TRIGGER t AFTER DELETE ON points BEGIN SELECT 1; END", "more than"),
        ("CREATE TABLE other (a)", "more than"),
        (None, "not a database"),
    ],
)
def test_other_content_of_the_database_is_refused(folder, statement, message):
    file = folder / "collection/items_v1/storage.sqlite"
    if statement is None:
        file.write_bytes(b"no database" * 100)
    else:
        with sqlite3.connect(file) as database:
            database.executescript(statement)
        database.close()
    with pytest.raises(StoreError, match=message):
        open_store(f"qdrant:{folder}#items").facts()


@pytest.mark.parametrize("name", ["../../out", "a/b", "..", "/tmp/out", ""])
def test_names_that_lead_out_of_the_folder_are_refused(folder, name):
    meta = json.loads((folder / "meta.json").read_text())
    meta["collections"][name] = meta["collections"]["items_v1"]
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(StoreError, match="leads out"):
        open_store(f"qdrant:{folder}#items").facts()
    assert not (folder / "../out").exists()


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[]", "{}", '{"collections": 3}', "\0", "9" * 5000])
def test_broken_settings_are_refused(folder, text):
    (folder / "meta.json").write_text(text)
    with pytest.raises(StoreError, match="its meta"):
        open_store(f"qdrant:{folder}#items").facts()


@pytest.mark.parametrize("settings", [{"vectors": 3}, {"vectors": {"size": -1, "distance": "Cosine"}}, []])
def test_broken_collections_are_refused(folder, settings):
    meta = json.loads((folder / "meta.json").read_text())
    meta["collections"]["items_v1"] = settings
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(StoreError):
        open_store(f"qdrant:{folder}#items").facts()


# --- speed, by what is asked of the engine ------------------------------------------------------------------


def scans(store, verb):
    """Return how often a verb asks for a page of all points, and for points by their ids."""
    calls, call = Counter(), store.connection.call

    def counted(method, *arguments, **options):
        is_page = method == "scroll" and options["limit"] > 100
        calls[f"{method} {'all' if is_page else 'few'}"] += 1
        return call(method, *arguments, **options)

    store._call = counted
    verb()
    store._call = call
    return calls["scroll all"], calls["retrieve few"]


def test_verbs_read_all_points_a_few_times(tmp_path, monkeypatch):
    ids, X, y, texts = sample(300)
    store, model = make(tmp_path, ids, X, texts), model_for(X, y, "l2")
    monkeypatch.setattr(PointStore, "page", 110)
    pages = 3
    assert scans(store, lambda: index_status(store)) == (0, 0)
    scrolls, by_ids = scans(store, lambda: diagnose(store))
    assert scrolls == pages
    assert by_ids <= 1  # the texts of hubs
    # its state twice, two passes (the second finds nothing to do), and the ids of the copy after each
    scrolls, by_ids = scans(store, lambda: apply_index(model, store, "moved"))
    assert scrolls <= 6 * pages
    assert by_ids <= 4 * pages
    assert scans(store, lambda: promote_index(store, "moved")) == (pages, 0)
    assert scans(store, lambda: rollback_index(store)) == (pages, pages)


def test_points_are_written_without_waiting_for_the_disk_after_each(few, monkeypatch):
    store, _, _, model = few
    write, modes = PointStore.write, []

    def observed(green, batch, moved):
        database = green.connection.client._client.collections["moved"].storage.storage
        asked = [database.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")]
        modes.extend(asked)
        write(green, batch, moved)

    monkeypatch.setattr(PointStore, "write", observed)
    apply_index(model, store, "moved")
    assert modes == [("wal",), (1,)]  # a commit is then in the log, which is flushed now and then
    store.connection.close()
    with sqlite3.connect(f"{store.address}/collection/moved/storage.sqlite") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # as it was
    database.close()


def test_points_of_an_apply_that_was_interrupted_are_kept(tmp_path, monkeypatch):
    ids, X, y, texts = sample(300)
    store, model = make(tmp_path, ids, X, texts), model_for(X, y, "l2")
    monkeypatch.setattr(PointStore, "page", 100)
    upsert, pages = QdrantCollection._upsert, []

    def stop_at_the_third(self, points):
        pages.append(points)
        upsert(self, points if len(pages) < 3 else 1 / 0)

    monkeypatch.setattr(QdrantCollection, "_upsert", stop_at_the_third)
    with pytest.raises(ZeroDivisionError):
        apply_index(model, store, "moved")
    monkeypatch.undo()
    store.connection.close()  # as another process would, it opens the folder again
    again = open_store(store.name)
    assert apply_index(model, again, "moved")["written"] == 100
