"""Tables of LanceDB that somebody prepared: marks, names and metadata are not believed."""

import json
import os
import shutil
from contextlib import suppress
from datetime import timedelta

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.embeddings import TextEmbeddingFunction, register

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.stores.lancedb import lance_rows, lance_versions
from hubless.stores.lancedb.lance_table import LanceTable
from hubless.stores.opening import open_store
from hubless.stores.store import Mark, StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.lancedb_cases import content, engine, make, rows_of

pytestmark = pytest.mark.services


@pytest.fixture
def items(tmp_path):
    """Return a table of 300 rows in a folder of its own, what is in it, and a model."""
    ids, X, y, texts = sample()
    (tmp_path / "db").mkdir()
    return make(tmp_path / "db", ids, X, texts, None), ids, X, model_for(X, y, "l2")


def plant(store, **metadata):
    """Write metadata of the column of vectors, as anybody can who can write to the table."""
    engine(store).update_field_metadata({"path": "vector", "metadata": metadata})


def mark_with(**values):
    return json.dumps({**json.loads(Mark("m" * 64, "x", "", done=True).to_json()), **values})


# --- marks --------------------------------------------------------------------------------------------------

ORIGINALS = [
    "other@hubless-original-2-aaaaaa",
    "lancedb:/etc#passwd@x",
    "../../x@y",
    "items@mine",
    "a\0b",
    "x",
]


@pytest.mark.parametrize("original", ORIGINALS)
def test_a_mark_names_no_version_of_anything_else(items, original):
    """A rollback would restore the version of this table that has the number of the other one's."""
    store, ids, X, _ = items
    other = lancedb.connect(store.address).create_table("other", rows_of(ids, X, [""] * 300))
    other.update(where="id = -1", values={"text": ""})
    other.branches.create("hubless-original-2-aaaaaa", from_version=2)
    engine(store).branches.create("mine", from_version=1)
    plant(store, hubless=mark_with(original=original))
    before = engine(store).version, content(store)
    assert index_status(store)["original_is_there"] is False
    with pytest.raises(StoreError, match="does not exist"):
        rollback_index(store)
    assert (engine(store).version, content(store)) == before


def test_a_table_that_was_copied_by_hand_is_rolled_back_by_its_own_versions(items):
    store, *_, model = items
    original = content(store)
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    shutil.copytree(f"{store.address}/items.lance", f"{store.address}/copy.lance")
    lancedb.connect(store.address).drop_table("items")
    copy = store.sibling("copy")
    assert index_status(copy)["original_is_there"] is True
    rollback_index(copy)
    assert content(store, "copy") == original


TEXTS = {
    "brackets": "[" * 10**5,
    "a mark in brackets": '{"hubless": 1, "model": ' + "[" * 10**5,
    "no text": mark_with(original=3),
    "no object": "17",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_no_mark_is_ignored(items, text):
    store, *_, model = items
    plant(store, hubless=text)
    assert index_status(store)["status"] == "original"
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    assert store.mark().model == model.hash


@pytest.mark.parametrize("metric", ["unknown", "", "l2\n", "\x1b[31m", "x" * 10**6])
def test_an_unknown_metric_is_refused_and_can_be_given(items, metric):
    store, *_ = items
    plant(store, **{"hubless:metric": metric})
    with pytest.raises(StoreError, match=r"which hubless does not know.*--metric") as error:
        store.facts()
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300 + len(store.name)
    assert open_store(store.name, metric="cosine").facts().metric == "cosine"


# --- names and links ----------------------------------------------------------------------------------------

NAMES = [
    "../x",
    "a/b",
    "/tmp/x",
    "a@b",
    "@",
    "a#b",
    "two words",
    "",
    ".",
    "..",
    "a\0b",
    "a\nb",
    "é",
    "x" * 201,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_a_path_creates_nothing(items, tmp_path, name, monkeypatch):
    store, *_, model = items
    created = []
    monkeypatch.setattr("hubless.stores.lancedb.lance_table.path_lock", created.append)
    with pytest.raises(StoreError, match="cannot be a new table"):
        apply_index(model, store, name)
    assert created == []
    assert os.listdir(tmp_path) == ["db"]
    assert os.listdir(tmp_path / "db") == ["items.lance"]


def test_an_empty_branch_is_no_version(items):
    store, *_ = items
    assert not store.sibling("items@").exists()


def test_a_table_that_is_a_link_is_switched_where_it_is(items, tmp_path):
    store, *_, model = items
    os.rename(f"{store.address}/items.lance", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", f"{store.address}/items.lance")
    before = content(store)
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    assert os.path.islink(f"{store.address}/items.lance")
    rollback_index(store)
    assert content(store) == before


# --- functions in the metadata ------------------------------------------------------------------------------

CALLS = []


@register("hubless-test")
class Recorder(TextEmbeddingFunction):
    """A function that LanceDB would call for rows without vectors; in a stranger's table, it could be any."""

    def __init__(self, **options):
        CALLS.append("created")
        super().__init__(**options)

    def ndims(self):
        return 8

    def generate_embeddings(self, texts):
        CALLS.append("called")
        return [[6.0] * 8 for _ in texts]


FUNCTIONS = {
    "ours": [{"name": "hubless-test", "model": {}, "source_column": "text", "vector_column": "vector"}],
    "unknown": [{"name": "none", "model": {"key": "$var:key"}, "source_column": "x", "vector_column": "y"}],
    "broken": "17",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_embedding_functions_are_kept_and_never_called(tmp_path, name):
    ids, X, y, texts = sample()
    rows = rows_of(ids, np.full_like(X, np.nan), texts)  # LanceDB calls them where all of a batch is null
    rows = rows.replace_schema_metadata({"embedding_functions": json.dumps(FUNCTIONS[name])})
    table = lancedb.connect(tmp_path).create_table("items", schema=rows.schema.remove_metadata())
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    table.add(reader, mode="overwrite", on_bad_vectors="null")
    store, model = open_store(f"lancedb:{tmp_path}#items"), model_for(X, y, "l2")
    before = engine(store).to_arrow()
    CALLS.clear()
    assert apply_index(model, store, "moved")["written"] == 300
    assert b"embedding_functions" not in (engine(store, "moved").schema.metadata or {})
    promote_index(store, "moved")
    assert engine(store).schema.metadata == rows.schema.metadata
    assert engine(store).to_arrow()["vector"].null_count == 300
    rollback_index(store)
    assert engine(store).to_arrow().equals(before)
    assert CALLS == []


# --- others who clean up ------------------------------------------------------------------------------------


def clean_up(table):
    with pytest.warns(UserWarning, match="removes every version except the latest"):
        table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)


@pytest.mark.parametrize("name", ["items", "moved"])
def test_a_clean_up_during_apply_stops_it_or_not_and_apply_resumes(items, monkeypatch, name):
    store, ids, X, model = items
    write, n_batches = LanceTable.write, []
    monkeypatch.setattr(LanceTable.batches, "__defaults__", ((), 50))
    monkeypatch.setattr(lance_rows, "PART", 50)

    def write_and_clean(green, batch, moved):
        write(green, batch, moved)
        n_batches.append(len(moved))
        if len(n_batches) == 2:
            engine(store).update(where=f"id = {ids[0]}", values={"text": "new"})
            clean_up(engine(store, name))

    monkeypatch.setattr(LanceTable, "write", write_and_clean)
    if name == "items":
        with pytest.raises(StoreError, match=r"reading items failed; run it again: .*[Nn]ot found"):
            apply_index(model, store, "moved")
        assert not store.sibling("moved").mark().done
    apply_index(model, store, "moved")
    rows = content(store, "moved")
    assert set(rows) == set(ids.tolist())
    assert rows[ids[0]]["text"] == "new"
    for id, moved in zip(ids.tolist(), model.move(X), strict=True):
        np.testing.assert_allclose(rows[id]["vector"], moved, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["items", "moved"])
def test_a_clean_up_during_promote_loses_nothing(items, monkeypatch, name, when):
    store, ids, X, model = items
    before, keep = content(store), lance_versions.keep
    apply_index(model, store, "moved")

    def keep_and_clean(table, word, version):
        if when == "before":
            clean_up(engine(store, name))
        branch = keep(table, word, version)
        if when == "after":
            clean_up(engine(store, name))
        return branch

    with monkeypatch.context() as patch, suppress(StoreError):  # refused where files that it reads are gone
        patch.setattr(lance_versions, "keep", keep_and_clean)
        promote_index(store, "moved")
    if store.mark() is None:
        assert content(store) == before
        apply_index(model, store, "moved")
        promote_index(store, "moved")
    rows = content(store)
    assert set(rows) == set(ids.tolist())
    for id, moved in zip(ids.tolist(), model.move(X), strict=True):
        np.testing.assert_allclose(rows[id]["vector"], moved, rtol=1e-5, atol=1e-6)
    rollback_index(store)
    assert content(store) == before


def test_an_address_that_lancedb_refuses_is_an_error_of_one_line():
    with pytest.raises(StoreError, match=r"lancedb:az://account@place/x#t"):
        open_store("lancedb:az://account@place/x#t").facts()
