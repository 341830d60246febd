"""Tables of LanceDB to which other programs write at the worst moment."""

import numpy as np
import pytest

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.lancedb import lance_versions
from hubless.stores.lancedb.lance_table import LanceTable
from hubless.stores.store import StoreError
from tests.stores.lancedb_cases import add, content, engine, indexed, rows_of

pytestmark = pytest.mark.services
N = 400


@pytest.fixture
def items(tmp_path):
    """Return a table with two indexes, what is in it, and a model."""
    return indexed(tmp_path, N)


def test_rows_that_change_while_or_after_green_is_built_are_written(items, monkeypatch):
    store, ids, X, model = items
    write = LanceTable.write

    def write_late(green, batch, moved):
        write(green, batch, moved)
        monkeypatch.setattr(LanceTable, "write", write)
        engine(store).update(where=f"id = {ids[3]}", values={"text": "other words"})

    monkeypatch.setattr(LanceTable, "write", write_late)
    report = apply_index(model, store, "moved")
    assert (report["written"], report["passes"]) == (N + 1, 3)
    assert content(store, "moved")[ids[3]]["text"] == "other words"
    engine(store).update(where=f"id = {ids[4]}", values={"text": None})
    other = rows_of(ids[5:6], X[5:6] + 1, ["text of it"])
    engine(store).merge_insert("id").when_matched_update_all().execute(other)
    engine(store).delete(f"id = {ids[6]}")
    with pytest.raises(StoreError, match="changed"):
        promote_index(store, "moved")
    report = apply_index(model, store, "moved")
    assert (report["written"], report["removed"]) == (2, 1)
    rows = content(store, "moved")
    assert rows[ids[4]]["text"] is None
    np.testing.assert_allclose(rows[ids[5]]["vector"], model.move(X[5:6] + 1)[0], rtol=1e-5, atol=1e-6)
    assert ids[6] not in rows
    assert set(rows) == set(content(store))


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_row_that_comes_while_it_is_promoted_is_not_lost(items, monkeypatch, is_killed):
    store, _, X, model = items
    apply_index(model, store, "moved")
    keep = lance_versions.keep

    def keep_late(table, word, version):
        if word == "original":  # after the state was compared, before the rows are overwritten
            add(store, [10**6], X[:1], ["late"])
        return keep(table, word, version)

    with monkeypatch.context() as patch:
        patch.setattr(lance_versions, "keep", keep_late)
        if is_killed:  # before it could see what happened
            patch.setattr(lance_versions, "check_replaced", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError if is_killed else StoreError):
            promote_index(store, "moved")
    if is_killed:
        assert 10**6 not in content(store)  # which comes later
        with pytest.raises(StoreError, match="changed while it was promoted"):
            store.promote(store.sibling("moved"))
    assert store.mark() is None
    assert len(content(store)) == N + 1
    assert content(store)[10**6]["text"] == "late"
    assert apply_index(model, store, "moved")["written"] == 1
    promote_index(store, "moved")
    np.testing.assert_allclose(content(store)[10**6]["vector"], model.move(X[:1])[0], rtol=1e-5, atol=1e-6)


def test_a_row_that_comes_while_it_is_rolled_back_is_not_lost(items, monkeypatch):
    store, _, X, model = items
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    keep = lance_versions.keep

    def keep_late(table, word, version):
        kept = keep(table, word, version)
        monkeypatch.setattr(lance_versions, "keep", keep)
        add(store, [10**6], X[:1], ["late"])
        return kept

    monkeypatch.setattr(lance_versions, "keep", keep_late)
    kept = rollback_index(store)["moved_kept_as"]
    assert 10**6 not in content(store)
    assert store.sibling(kept).fetch([10**6], ["text"]).columns["text"] == ["late"]
