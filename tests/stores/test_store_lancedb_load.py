"""Tables of LanceDB with many rows: each row is looked at a fixed number of times, however many there are."""

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.lancedb import lance_rows, lance_table
from hubless.stores.lancedb.lance_places import Places, keys_of
from hubless.stores.opening import open_store
from hubless.testing.store_cases import model_for, sample
from tests.stores.lancedb_cases import add, content, engine, make, rows_of

pytestmark = pytest.mark.services
N = 400


@pytest.fixture
def items(tmp_path):
    """Return a table, what is in it, and a model."""
    ids, X, y, texts = sample(N)
    return make(tmp_path, ids, X, texts, None), ids, X, model_for(X, y, "l2")


def table_with(folder, ids, kind):
    """Make a table with these ids, of which some were deleted and some written again."""
    X, gone = np.arange(len(ids) * 8.0).reshape(-1, 8), ids[3::7]
    rows = rows_of(range(len(ids)), X, [str(i) for i in ids])
    rows = rows.set_column(0, "id", pa.array(list(ids), kind))
    table = lancedb.connect(folder).create_table("items", rows)
    table.merge_insert("text").when_matched_update_all().execute(rows.slice(10, 5))
    table.delete(f"text in ({', '.join(repr(str(i)) for i in gone)})")
    return table, {id: x.tolist() for id, x in zip(ids, X, strict=True) if id not in set(gone)}


KINDS = {
    "int64": (list(range(-50, 50)), pa.int64()),
    "int16": (list(range(-50, 50)), pa.int16()),
    "uint64": ([2**64 - 1 - 3 * i for i in range(50)] + list(range(50)), pa.uint64()),
    "string": ([f"id {i} é" for i in range(100)], pa.string()),
    "large_string": ([f"id {i} é" for i in range(100)], pa.large_string()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_places_of_ids_are_those_of_a_dictionary(tmp_path, kind, monkeypatch):
    ids, of_arrow = KINDS[kind]
    table, truth = table_with(tmp_path, ids, of_arrow)
    monkeypatch.setattr(lance_rows, "PART", 17)
    places = Places(table, "id")
    assert len(places.repeated()) == 0
    other = ["no", "id 3"] if "string" in kind else [1000, -1000]
    wanted = [*ids[::-1], *other, *ids[5:9], ids[5]]
    exists, rows = places.take(lance_rows.as_ids(wanted), ["id", "vector"])
    assert (
        exists.tolist() == places.contain(lance_rows.as_ids(wanted)).tolist() == [i in truth for i in wanted]
    )
    assert rows["id"].to_pylist() == [i for i in wanted if i in truth]
    assert rows["vector"].to_pylist() == [truth[i] for i in wanted if i in truth]
    in_order = list(dict.fromkeys(table.to_arrow()["id"].to_pylist()))
    _, rows = places.take(lance_rows.as_ids(in_order), ["id"])
    assert rows["id"].to_pylist() == in_order
    assert not places.contain_none(lance_rows.as_ids(in_order[:1]))
    assert places.contain_none(lance_rows.as_ids(other))
    table.add(table.to_arrow().slice(5, 2))
    assert sorted(Places(table, "id").repeated().tolist()) == sorted(in_order[5:7])


def test_texts_with_one_key_are_told_apart(tmp_path, monkeypatch):
    table, truth = table_with(tmp_path, [f"id {i}" for i in range(20)], pa.string())
    monkeypatch.setattr("hubless.stores.lancedb.lance_places.keys_of", lambda ids: keys_of(ids) & 7)
    places = Places(table, "id")
    other = np.array([f"other {i}" for i in range(20)], dtype=object)
    assert not places.contain(other).any()
    _, rows = places.take(np.array(list(truth), dtype=object), ["id", "vector"])
    assert rows["vector"].to_pylist() == [truth[id] for id in rows["id"].to_pylist()]


def test_no_batch_is_searched_for_by_its_ids(items, monkeypatch):
    """LanceDB would read all ids for every batch: the time would grow with the square of the rows."""
    store, _, X, model = items
    looks, every = [], Places.__init__
    monkeypatch.setattr(lance_table.LanceTable.batches, "__defaults__", ((), 20))
    monkeypatch.setattr(lance_rows, "PART", 20)
    monkeypatch.setattr(Places, "__init__", lambda *args: (looks.append(1), every(*args))[1])
    monkeypatch.setattr(lance_rows, "among", lambda *_: 1 / 0)
    assert apply_index(model, store, "moved")["written"] == N
    assert len(looks) <= 4  # two passes over 20 batches, and over the ids that may have to be removed
    add(store, [10**6], X[:1] + 1, ["late"])
    looks.clear()
    assert apply_index(model, store, "moved")["written"] == 1
    assert len(looks) <= 4
    promote_index(store, "moved")
    looks.clear()
    assert rollback_index(store)["added_since"] == 0
    assert len(looks) == 1


def test_new_rows_are_appended_and_others_replaced(items, monkeypatch):
    store, ids, _, model = items
    calls = []
    for name in ("add", "merge_insert"):
        method = getattr(lancedb.table.LanceTable, name)

        def counted(table, *args, method=method, name=name, **options):
            calls.append((table.name, name))
            return method(table, *args, **options)

        monkeypatch.setattr(lancedb.table.LanceTable, name, counted)
    apply_index(model, store, "moved")
    assert calls == [("moved", "add")]
    engine(store).update(where=f"id = {ids[3]}", values={"text": "other"})
    calls.clear()
    assert apply_index(model, store, "moved")["written"] == 1
    assert calls == [("moved", "merge_insert")]


def test_ids_that_were_added_twice_are_written_once(items):
    """Whoever wrote them to the moved copy, the next apply mends it."""
    store, *_, model = items
    apply_index(model, store, "moved")
    before = content(store, "moved")
    green = engine(store, "moved")
    green.add(green.to_arrow().slice(7, 3))
    assert green.count_rows() == N + 3
    assert apply_index(model, store, "moved")["written"] == 3
    assert content(store, "moved") == before  # which fails where an id is there twice
    assert apply_index(model, store, "moved")["written"] == 0


def test_numbers_that_int64_does_not_hold_are_ids(tmp_path):
    _, X, y, texts = sample(60)
    ids = [2**64 - 1 - i for i in range(30)] + list(range(30))
    rows = rows_of(range(60), X, texts).set_column(0, "id", pa.array(ids, pa.uint64()))
    lancedb.connect(tmp_path).create_table("items", rows)
    store, model = open_store(f"lancedb:{tmp_path}#items"), model_for(X, y, "l2")
    assert apply_index(model, store, "moved")["written"] == 60
    assert apply_index(model, store, "moved")["written"] == 0
    assert store.fetch([2**64 - 3, 5, -1]).ids.tolist() == [2**64 - 3, 5]
    engine(store).delete("id = 18446744073709551613")
    report = apply_index(model, store, "moved")
    assert (report["written"], report["removed"]) == (0, 1)  # of neighbours that one float stands for
    assert set(content(store, "moved")) == {*ids} - {2**64 - 3}
    promote_index(store, "moved")
    assert set(content(store)) == {*ids} - {2**64 - 3}


def test_a_green_that_lost_rows_is_not_promoted(items):
    store, ids, _, model = items
    apply_index(model, store, "moved")
    engine(store, "moved").delete(f"id = {ids[3]}")
    with pytest.raises(ValueError, match="Apply again"):
        promote_index(store, "moved")
    assert apply_index(model, store, "moved")["written"] == 1
    promote_index(store, "moved")
    assert len(content(store)) == N
