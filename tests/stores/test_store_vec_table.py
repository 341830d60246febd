"""Tables of sqlite-vec: what is copied, who reads what, and what is refused before anything is written."""

import sys
from contextlib import closing

import numpy as np
import pytest

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.repair.doctor import diagnose
from hubless.stores.opening import open_store
from hubless.stores.sqlite_vec import vec_session
from hubless.stores.sqlite_vec.vec_table import VecTable
from hubless.stores.store import Mark, StoreError
from hubless.testing.store_cases import exact, model_for
from tests.stores.killer import CHANGES, killed_at
from tests.stores.vec_cases import ask_for, connect, dump, few_rows, fill, insert, run

__all__ = ["few_rows"]  # a fixture
pytestmark = pytest.mark.services

RICH = (
    "id {key} primary key, embedding float[3] distance_metric=cosine, small int8[3], bits bit[8], "
    "shop text partition key, label text, price float, n integer, sold boolean, +note text, +raw blob, "
    "chunk_size=16"
)
KEYS = {
    "integer": [5, -5, 0, 2**63 - 1, -(2**63), 2**53 + 1],
    "text": ["7", "a b", "é'\"; --", "x" * 300, "漢字", "0007"],
}
COLUMNS = [  # partition, metadata and auxiliary values
    ("s1", "one", 1.5, 2**53 + 1, 1, "note", b"\x00\xff"),
    ("s1", "a longer text than twelve letters, '\"é漢", -0.0, -1, 0, None, None),
    ("s'2", "", 1e300, 0, 1, "", b""),
    (None, "x", 0.1, 2**62, 0, "n", None),
    ("s1", "y", 2.5, 5, 1, "four\nlines", b"1"),
    ("漢", "z", 0.0, 7, 0, None, b"2"),
]


def fill_rich(path, key, table="items"):
    X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    quoted = '"' + table.replace('"', '""') + '"'
    run(path, f"CREATE VIRTUAL TABLE {quoted} USING vec0({RICH.format(key=key)})")
    names = "id, embedding, small, bits, shop, label, price, n, sold, note, raw"
    values = "?, ?, vec_int8(?), vec_bit(?), ?, ?, ?, ?, ?, ?, ?"
    with closing(connect(path)) as database:
        for i, x, more in zip(KEYS[key], X, COLUMNS, strict=True):
            row = [i, x.tobytes(), b"\x01\x80\x7f", b"\x05", *more]
            database.execute(f"INSERT INTO {quoted} ({names}) VALUES ({values})", row)
        database.commit()
    return X


@pytest.mark.parametrize(("key", "table"), [("integer", "items"), ("text", "it\"e m's; -- é")])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_all_columns_are_copied_and_open_readers_follow_the_name(tmp_path, key, table, journal):
    path = tmp_path / "it's 100%?.db"
    run(path, f"PRAGMA journal_mode = {journal}")
    X = fill_rich(path, key, table)
    name, quoted = f"sqlite:{path}#{table}", '"' + table.replace('"', '""') + '"'
    run(path, f"CREATE VIEW cheap AS SELECT id, label, embedding FROM {quoted}")
    before = dump(path, table.replace('"', '""'))
    model = model_for(np.tile(X, (4, 1)), np.arange(24) % 2, "cosine")
    with closing(connect(path)) as reader:  # a program that has the file open all the time
        look = f"SELECT id, embedding FROM {quoted}"
        original = dict(reader.execute(look))
        assert apply_index(model, name, "moved")["written"] == 6
        assert apply_index(model, name, "moved")["written"] == 0
        assert dict(reader.execute(look)) == original
        kept = promote_index(name, "moved")["original"]
        moved = {i: np.frombuffer(v, np.float32) for i, v in reader.execute(look)}
        for i, x in zip(KEYS[key], model.move(X), strict=True):
            np.testing.assert_allclose(moved[i], x, rtol=1e-5, atol=1e-6)
        assert {i: v for i, _, v in reader.execute("SELECT * FROM cheap")} == dict(reader.execute(look))
        after = dump(path, table.replace('"', '""'))
        assert [row[:1] + row[2:] for row in after] == [row[:1] + row[2:] for row in before]
        assert dump(path, kept.replace('"', '""')) == before
        assert open_store(name).search(X[:1], 6).shape == (1, 6)
        rollback_index(name)
        assert dict(reader.execute(look)) == original
    assert dump(path, table.replace('"', '""')) == before  # bit for bit
    assert run(path, "PRAGMA integrity_check") == [("ok",)]
    assert index_status(name)["status"] == "original"


def test_what_changed_is_written_again_and_nothing_else(few):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    path = store.address
    run(path, ("UPDATE items SET text = 'new' WHERE id = ?", [int(ids[3])]))
    run(path, ("UPDATE items SET embedding = ? WHERE id = ?", [X[6].tobytes(), int(ids[5])]))
    run(path, ("DELETE FROM items WHERE id = ?", [int(ids[9])]))
    result = apply_index(model, store, "moved")
    assert (result["written"], result["removed"]) == (2, 1)
    green = store.sibling("moved")
    assert green.fetch([ids[3]], ["text"]).columns == {"text": ["new"]}
    np.testing.assert_allclose(green.fetch([ids[5]]).vectors, model.move(X[6:7]), rtol=1e-5, atol=1e-6)
    assert green.fetch([ids[9]]).ids.tolist() == []


def test_rows_that_others_write_in_between_are_moved_too(few, monkeypatch):
    store, _ids, X, model = few
    write, late = VecTable.write, iter([10**6, 10**6 + 1])

    def write_beside_another(green, batch, moved):
        write(green, batch, moved)
        if (new := next(late, None)) is not None:
            insert(store.address, [new], X[:1] + 1, ["late"])

    monkeypatch.setattr(VecTable, "write", write_beside_another)
    result = apply_index(model, store, "moved")
    assert (result["rows"], result["passes"], result["notes"]) == (62, 4, [])
    promote_index(store, "moved")
    assert store.fetch([10**6, 10**6 + 1]).ids.tolist() == [10**6, 10**6 + 1]


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_readers_never_write(few, tmp_path):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    before = bytes_of(tmp_path)
    for name in ("items", "moved"):
        one = store.sibling(name)
        index_status(one), one.state(), one.mark(), one.search(X[:2], 3), one.contains(ids), [*one.ids()]
        assert sum(len(batch.ids) for batch in one.batches(["text"], 7)) == 60
    diagnose(store)
    assert bytes_of(tmp_path) == before
    assert not open_store(f"sqlite:{tmp_path / 'no.db'}#items").exists()
    assert bytes_of(tmp_path) == before


def promote(source):
    promote_index(source, "moved")


def rollback(source):
    rollback_index(source)


def count_changes(counted):
    """Statements that change something are steps."""
    connect = vec_session.connect

    class Counted:
        def __init__(self, *arguments, **options):
            self.connection = connect(*arguments, **options)
            self.executemany, self.close = self.connection.executemany, self.connection.close
            self.step = counted(self.connection.execute)

        def execute(self, text, *values):
            return (self.step if text.startswith(CHANGES) else self.connection.execute)(text, *values)

    vec_session.connect = Counted


@pytest.mark.faults
def test_a_switch_that_is_killed_did_not_happen(few):
    store, ids, X, model = few
    queries = X[:3] + 0.1
    apply_index(model, store, "moved")
    wanted = exact(ids, X, queries, 5, "l2"), exact(ids, model.move(X), queries, 5, "l2")
    for work, served in ((promote, 0), (rollback, 1)):
        for moment in (0, 9, 16):  # seven tables are renamed, then seven, then marks are set
            killed_at(moment, count_changes, work, store.name)
            assert ask_for(store.address, queries, 5) == wanted[served]
        work(store.name)
        assert ask_for(store.address, queries, 5) == wanted[1 - served]


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"), [("int8[8]", "vec_int8(?)"), ("int8[8] distance_metric=cosine", "vec_int8(?)")]
)
def test_vectors_of_int8_are_diagnosed_and_not_moved(tmp_path, column, value):
    X = np.random.default_rng(0).integers(-99, 99, (60, 8)).astype(np.int8)
    check_diagnosed_only(tmp_path, column, value, X, X)


def test_vectors_of_bits_are_diagnosed_and_not_moved(tmp_path):
    B = np.random.default_rng(0).integers(0, 2, (60, 64)).astype(np.uint8)
    check_diagnosed_only(tmp_path, "bit[64]", "vec_bit(?)", np.packbits(B, axis=1, bitorder="little"), B)


def check_diagnosed_only(folder, column, value, stored, X):
    path = folder / "items.db"
    run(path, f"CREATE VIRTUAL TABLE items USING vec0(id integer primary key, embedding {column})")
    for i, x in enumerate(stored):
        run(path, (f"INSERT INTO items VALUES (?, {value})", [i, x.tobytes()]))
    store, before, X = open_store(f"sqlite:{path}#items"), dump(path), X.astype(np.float32)
    assert store.facts().dimension == X.shape[1]
    batch = next(iter(store.batches()))
    np.testing.assert_array_equal(batch.vectors[np.argsort(batch.ids)], X)
    metric = store.facts().metric
    assert store.search(X[:5], 1).tolist() == exact(range(60), X, X[:5], 1, metric)
    assert diagnose(store)
    with pytest.raises(StoreError, match=r"keeps vectors of (int8|bit)"):
        apply_index(model_for(X, np.arange(60) % 2, metric), store, "moved")
    assert dump(path) == before


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "CREATE VIRTUAL TABLE items USING vec0(v float[3] distance_metric=l1)",
            "compares v by L1.*L2 and cosine",
        ),
        (
            "CREATE VIRTUAL TABLE items USING vec0(a float[3], b float[3])",
            "2 columns of vectors.*--vector: a, b",
        ),
        ("CREATE VIRTUAL TABLE items USING vec0(v float[3] /* , */, x text)", "which hubless does not know"),
        ("CREATE TABLE items (id integer primary key, v blob)", "is not a table of sqlite-vec"),
        ("CREATE VIEW items AS SELECT 1 AS id", "is not a table of sqlite-vec"),
        ("CREATE VIRTUAL TABLE items USING fts5(v)", "is not a table of sqlite-vec"),
        (
            "CREATE VIRTUAL TABLE other USING vec0(v float[3])",
            "does not exist; tables of sqlite-vec are other",
        ),
    ],
)
def test_what_is_no_table_of_vectors_is_refused(tmp_path, statement, message):
    run(tmp_path / "items.db", statement)
    with pytest.raises(StoreError, match=message):
        open_store(f"sqlite:{tmp_path / 'items.db'}#items").facts()


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE hubless_marks (mine TEXT)"], "hubless_marks that is not of hubless"),
        (
            ["CREATE VIEW hubless_marks AS SELECT 1 AS name, 2 AS mark"],
            "hubless_marks that is not of hubless",
        ),
        (
            [
                "CREATE TABLE hubless_marks (name TEXT, mark TEXT)",
                "CREATE TRIGGER evil AFTER INSERT ON hubless_marks BEGIN DELETE FROM items_rowids; END",
            ],
            "hubless_marks that is not of hubless",
        ),
        (
            [
                "CREATE TABLE docs (id INTEGER)",
                "CREATE TRIGGER add_it AFTER INSERT ON docs BEGIN INSERT INTO Items(id) VALUES (new.id); END",
            ],
            "trigger add_it writes to .*#items",
        ),
        (
            ["CREATE TRIGGER evil AFTER INSERT ON items_rowids BEGIN DELETE FROM items_chunks; END"],
            "trigger evil writes to",
        ),
        (["CREATE TABLE moved (mine TEXT)"], "moved exists already and was not made by hubless"),
        (["CREATE VIEW moved AS SELECT 1"], "moved exists already and was not made by hubless"),
        (["CREATE TABLE items_metadatatext01 (mine TEXT)"], "kept in another way.*metadatatext01 is unknown"),
        (["DROP TABLE items_metadatatext00"], "kept in another way.*metadatatext00 is missing"),
    ],
)
def test_what_a_switch_would_harm_is_refused_and_nothing_is_written(few, statements, message):
    store, *_, model = few
    run(store.address, *statements)
    before = bytes_of(store.file.parent)
    with pytest.raises(StoreError, match=message):
        apply_index(model, store, "moved")
    assert bytes_of(store.file.parent) == before


def test_a_trigger_that_deletes_is_no_harm(few):
    store, *_, model = few
    trigger = "CREATE TRIGGER gone AFTER DELETE ON docs BEGIN DELETE FROM items WHERE id = old.id; END"
    run(store.address, "CREATE TABLE docs (id INTEGER)", trigger)
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    assert run(store.address, "SELECT sql FROM sqlite_master WHERE name = 'gone'") == [(trigger,)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE items_vector_chunks00 SET vectors = zeroblob(12)",
        "UPDATE items_vector_chunks00 SET vectors = 'text'",
        "UPDATE items_chunks SET validity = zeroblob(3)",
        "UPDATE items_chunks SET size = -8",
        "UPDATE items_chunks SET size = 2e300",
        "DELETE FROM items_vector_chunks00",
    ],
)
def test_chunks_of_wrong_sizes_are_refused(few, damage):
    store, *_, model = few
    run(store.address, damage)
    with pytest.raises(StoreError, match="is damaged"):
        list(store.batches())
    with pytest.raises(StoreError):
        apply_index(model, store, "moved")


def test_damaged_and_missing_files_are_named(few, tmp_path):
    store, *_ = few
    whole = store.file.read_bytes()
    for damaged in (b"no database" * 999, whole[:5000], whole[:100] + b"\xff" * (len(whole) - 100)):
        store.file.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"items.db#items reports an error"):
            list(store.batches())
    for path in (tmp_path / "no.db", tmp_path):
        with pytest.raises(StoreError, match="there is no SQLite database at"):
            open_store(f"sqlite:{path}#items").facts()


def test_marks_of_strangers_lead_nowhere(few):
    store, ids, X, model = few
    fill(store.address, ids[:9], X[:9, :3], ["other"] * 9, table="other")
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    before = dump(store.address), dump(store.address, "other")
    for original in ("other", "items", "no such", "hubless_marks"):
        mark = Mark(model.hash, store.name, "", done=True, original=original).to_json()
        run(store.address, ("UPDATE hubless_marks SET mark = ?", [mark]))
        with pytest.raises(StoreError):
            rollback_index(store.name)
        assert (dump(store.address), dump(store.address, "other")) == before
    for text in ("{}", "no JSON", b"\xff", None, 7):
        run(store.address, ("UPDATE hubless_marks SET mark = ?", [text]))
        assert store.mark() is None


def test_options_and_names_that_make_no_sense(few, tmp_path):
    store, *_, model = few
    with pytest.raises(StoreError, match="leave out --id"):
        open_store("sqlite:items.db#items", id="key")
    with pytest.raises(StoreError, match="compares by l2; got metric='ip'"):
        open_store(store.name, metric="ip").facts()
    with pytest.raises(StoreError, match="has no column 'label'"):
        next(store.batches(["label"]))
    for name in ("hubless_marks", "sqlite_moved", "x" * 101, "a\0b"):
        with pytest.raises(StoreError, match="cannot be a new table"):
            apply_index(model, store, name)


def test_a_python_without_loadable_extensions_is_told_what_to_install(few, monkeypatch):
    store, *_ = few
    for name in [name for name in sys.modules if name.startswith("pysqlite3")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    monkeypatch.setattr(vec_session, "sqlite3", type("OfThisPython", (), {"Connection": object}))
    with pytest.raises(ImportError, match=r"pip install 'hubless\[sqlite-vec\]'"):
        store.facts()
