"""Tables of DuckDB: what is copied, who may have the file open, and what is refused."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.repair.doctor import diagnose
from hubless.stores.duckdb.duck_catalog import DuckIndex, check_movable
from hubless.stores.duckdb.duck_table import DuckTable
from hubless.stores.opening import open_store
from hubless.stores.store import Mark, StoreError
from hubless.testing.store_cases import exact, model_for, sample
from tests.stores.duck_cases import add, ask_for, dump, few_rows, fill, run
from tests.stores.killer import CHANGES, CONTEXT, killed_at, start

__all__ = ["few_rows"]  # a fixture
pytestmark = pytest.mark.services

RICH = """
CREATE SEQUENCE numbers START 100;
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE TABLE {table} (
    id BIGINT PRIMARY KEY DEFAULT nextval('numbers'), "the ""v" FLOAT[3] NOT NULL,
    name VARCHAR COLLATE NOCASE DEFAULT 'x' NOT NULL CHECK (length(name) < 99), code INTEGER UNIQUE,
    twice INTEGER GENERATED ALWAYS AS (code * 2), felt mood, price DECIMAL(10, 2), more JSON, raw BLOB,
    uid UUID, big HUGEINT, parts STRUCT(a INTEGER, b VARCHAR), list INTEGER[], pairs MAP(VARCHAR, INTEGER),
    either UNION(n INTEGER, t VARCHAR), seen TIMESTAMP, lasts INTERVAL, flags BIT, second DOUBLE[2]
);
CREATE INDEX by_name ON {table} (name);
CREATE UNIQUE INDEX "by ""code" ON {table} ((code + 1));
COMMENT ON TABLE {table} IS 'it''s mine';
COMMENT ON COLUMN {table}.code IS 'of the shop';
CREATE VIEW cheap AS SELECT id, name, "the ""v" FROM {table};
INSERT INTO {table} BY NAME
    SELECT i - 3 AS id, [i, i * i, 1]::FLOAT[3] AS "the ""v", 'Name' || i AS name, i AS code, 'sad' AS felt,
    1.5 AS price, '{{"a": [1]}}' AS more, '\\xAA\\x00'::BLOB AS raw, uuid() AS uid, 2::HUGEINT ** 100 AS big,
    {{'a': i, 'b': 'é'}} AS parts, [1, NULL, i] AS list, MAP {{'k': i}} AS pairs,
    'u'::UNION(n INTEGER, t VARCHAR) AS either, now()::TIMESTAMP AS seen, INTERVAL 3 DAY AS lasts,
    '101'::BIT AS flags, [1, 2] AS second FROM range(6) t(i);
"""


@pytest.mark.parametrize("table", ["items", "it\"e m's (x; -- é"])
def test_all_that_a_table_has_is_copied(tmp_path, table):
    path, quoted = tmp_path / "it's 100%?.duckdb", '"' + table.replace('"', '""') + '"'
    run(path, RICH.format(table=quoted))
    name, inner = f"duckdb:{path}#{table}", table.replace('"', '""')
    about = "SELECT column_name, data_type, column_default, is_nullable, is_generated, comment"
    about = (f"{about} FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [table])
    indexes = "SELECT index_name, table_name, sql FROM duckdb_indexes() ORDER BY 1"
    before, columns, indexed = dump(path, inner), run(path, about), run(path, indexes)
    X = np.array([row[1] for row in before], np.float32)
    store = open_store(name, vector='the "v')
    model = model_for(np.tile(X, (4, 1)), np.arange(24) % 2, "l2")
    assert apply_index(model, store, "moved")["written"] == 6
    assert apply_index(model, store, "moved")["written"] == 0
    assert (dump(path, inner), run(path, indexes)) == (before, indexed)
    promote_index(store, "moved")
    after = dump(path, inner)
    np.testing.assert_allclose([row[1] for row in after], model.move(X), rtol=1e-5, atol=1e-6)
    assert [row[:1] + row[2:] for row in after] == [row[:1] + row[2:] for row in before]
    assert (run(path, about), run(path, indexes)) == (columns, indexed)
    assert run(path, "SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL") == [("it's mine",)] * 2
    assert run(path, 'SELECT "the ""v" FROM cheap ORDER BY id') == [(row[1],) for row in after]
    for wrong in ("(name) VALUES (repeat('x', 99))", "(name, code) VALUES ('a', 3)", "(name) VALUES (NULL)"):
        with pytest.raises(duckdb.ConstraintException):
            run(path, f"INSERT INTO {quoted} {wrong}")
    rollback_index(store)
    assert (dump(path, inner), run(path, about), run(path, indexes)) == (
        before,
        columns,
        indexed,
    )  # bit for bit


@pytest.mark.parametrize("type", ["DOUBLE[4]", "FLOAT[]", "DOUBLE[]"])
def test_every_kind_of_vectors(tmp_path, type):
    ids, X, y, texts = sample(60, 4)
    path, wide = tmp_path / "items.duckdb", X.astype(np.float64) + 1e-12
    run(path, f"CREATE TABLE items (id SMALLINT, v {type}, text VARCHAR)")
    ids = ids - 300
    with duckdb.connect(str(path)) as database:
        database.executemany(
            "INSERT INTO items VALUES (?, ?, ?)", list(zip(ids.tolist(), wide.tolist(), texts, strict=False))
        )
        database.execute("INSERT INTO items VALUES (-9999, NULL, NULL)")
    store, before = open_store(f"duckdb:{path}#items"), dump(path)
    kind = np.float64 if type.startswith("DOUBLE") else np.float32
    assert store.facts().dtype == np.dtype(kind).name
    assert store.facts().dimension == 4
    np.testing.assert_array_equal(store.fetch(ids.tolist()).vectors, wide.astype(kind))
    model = model_for(X, y, "l2")
    assert apply_index(model, store, "moved")["written"] == 61
    assert apply_index(model, store, "moved")["written"] == 0
    promote_index(store, "moved")
    np.testing.assert_allclose(
        store.fetch(ids.tolist()).vectors, model.move(wide.astype(kind)), rtol=1e-5, atol=1e-6
    )
    assert np.isnan(store.fetch([-9999]).vectors).all()
    assert store.search(X[:5], 61).shape == (5, 61)
    assert (store.search(X[:5], 61)[:, -1] == None).all()  # noqa: E711 a row without a vector is never found
    rollback_index(store)
    assert dump(path) == before


IDS = {
    "TINYINT": [-128, 0, 127],
    "BIGINT": [-(2**63), 2**63 - 1, 5],
    "UBIGINT": [0, 2**64 - 1, 2**53 + 1],
    "HUGEINT": [-(2**127), 2**127 - 1, 7],
    "VARCHAR": ["é'\"; --", "x" * 300, "漢字"],
    "UUID": ["f" * 8 + "-0000-4000-8000-" + c * 12 for c in "01f"],
}


@pytest.mark.parametrize("type", IDS)
def test_ids_of_every_kind(tmp_path, type):
    path, X = tmp_path / "items.duckdb", np.eye(3, dtype=np.float32) + 1
    run(path, f"CREATE TABLE items (v FLOAT[3], key {type} PRIMARY KEY)")
    with duckdb.connect(str(path)) as database:
        for x, i in zip(X.tolist(), IDS[type], strict=True):
            database.execute(f"INSERT INTO items VALUES (?, ?::VARCHAR::{type})", [x, str(i)])
    store = open_store(f"duckdb:{path}#items")
    assert [i for ids in store.ids() for i in ids.tolist()] == IDS[type]
    model = model_for(np.tile(X, (4, 1)), np.arange(12) % 2, "l2")
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    batch = store.fetch([IDS[type][2], "no such", 10**30, IDS[type][0]])
    assert batch.ids.tolist() == [IDS[type][2], IDS[type][0]]
    np.testing.assert_allclose(batch.vectors, model.move(X[[2, 0]]), rtol=1e-5, atol=1e-6)
    assert store.contains(np.array([IDS[type][1], 10**30], dtype=object)).tolist() == [True, False]
    assert sorted(map(str, store.search(X[:1], 3)[0])) == sorted(map(str, IDS[type]))
    store.sibling("items_original").remove(np.array(IDS[type][:1], dtype=object))
    assert rollback_index(store)["added_since"] == 1


def test_what_changed_is_written_again_and_nothing_else(few):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    path = store.address
    run(path, ("UPDATE items SET text = upper(text) WHERE id = ?", [int(ids[3])]))
    run(path, ("UPDATE items SET embedding = ? WHERE id = ?", [X[6].tolist(), int(ids[5])]))
    run(path, ("DELETE FROM items WHERE id = ?", [int(ids[9])]))
    result = apply_index(model, store, "moved")
    assert (result["written"], result["removed"]) == (2, 1)
    green = store.sibling("moved")
    assert green.fetch([ids[3]], ["text"]).columns == {"text": [f"TEXT OF {ids[3]}"]}
    np.testing.assert_allclose(green.fetch([ids[5]]).vectors, model.move(X[6:7]), rtol=1e-5, atol=1e-6)


# --- who may have the file open -----------------------------------------------------------------------------


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_readers_never_write_and_several_read(few, tmp_path):
    store, ids, X, model = few
    apply_index(model, store, "moved")
    before = bytes_of(tmp_path)
    with duckdb.connect(store.address, read_only=True):  # another reader
        for name in ("items", "moved"):
            one = store.sibling(name)
            index_status(one), one.state(), one.mark(), one.search(X[:2], 3), one.contains(ids), [*one.ids()]
            assert sum(len(batch.ids) for batch in one.batches(["text"], 7)) == 60
        diagnose(store)
    assert bytes_of(tmp_path) == before
    assert not open_store(f"duckdb:{tmp_path / 'no.duckdb'}#items").exists()
    assert bytes_of(tmp_path) == before


def hold(path, is_held, may_end):
    with duckdb.connect(path):
        is_held.set()
        may_end.wait()


def test_a_file_that_another_program_writes_is_in_use(few):
    store, *_, model = few
    is_held, may_end = CONTEXT.Event(), CONTEXT.Event()
    process = start(hold, store.address, is_held, may_end)
    assert is_held.wait(600)
    try:
        for work in (store.facts, lambda: apply_index(model, store, "moved")):
            with pytest.raises(StoreError, match=r"is in use by another program.*Close the file there"):
                work()
    finally:
        may_end.set()
        process.join()
    assert apply_index(model, store, "moved")["written"] == 60


def test_this_program_may_have_it_open(few):
    store, *_, model = few
    with duckdb.connect(store.address) as mine:
        apply_index(model, store, "moved")
        promote_index(store, "moved")
        assert mine.execute("SELECT count(*) FROM items_original").fetchall() == [(60,)]
    rollback_index(store)


def test_rows_that_others_write_in_between_are_moved_too(few, monkeypatch):
    store, _ids, X, model = few
    write, late = DuckTable.write, iter([10**6, 10**6 + 1])

    def write_beside_another(green, batch, moved):
        write(green, batch, moved)
        if (new := next(late, None)) is not None:
            add(store, [new], X[:1] + 1, ["late"])

    monkeypatch.setattr(DuckTable, "write", write_beside_another)
    result = apply_index(model, store, "moved")
    assert (result["rows"], result["passes"], result["notes"]) == (62, 4, [])
    promote_index(store, "moved")
    assert store.fetch([10**6, 10**6 + 1]).ids.tolist() == [10**6, 10**6 + 1]


def promote(source):
    promote_index(source, "moved")


def rollback(source):
    rollback_index(source)


def count_changes(counted):
    """Statements that change something are steps."""
    real = duckdb.DuckDBPyConnection.execute
    step = counted(real)

    def execute(connection, text, *values):
        return (step if text.startswith(CHANGES) else real)(connection, text, *values)

    duckdb.DuckDBPyConnection.execute = execute


@pytest.mark.faults
def test_a_switch_that_is_killed_did_not_happen(few):
    store, ids, X, model = few
    queries = X[:3] + 0.1
    run(store.address, "CREATE INDEX by_text ON items (text)")
    apply_index(model, store, "moved")
    wanted = exact(ids, X, queries, 5, "l2"), exact(ids, model.move(X), queries, 5, "l2")
    for work, served in ((promote, 0), (rollback, 1)):
        for moment in (0, 2, 6):  # an index is dropped, both tables are renamed, the index made, marks set
            killed_at(moment, count_changes, work, store.name)
            assert ask_for(store.address, queries, 5) == wanted[served]
        work(store.name)
        assert ask_for(store.address, queries, 5) == wanted[1 - served]


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW items AS SELECT 1 AS id", "is not a table of the schema main; there are other"),
        (
            "CREATE SCHEMA s; CREATE TABLE s.items (id INTEGER, v FLOAT[2])",
            "is not a table of the schema main",
        ),
        ("CREATE TABLE items (id INTEGER, v INTEGER[2])", "no columns of vectors that can be moved"),
        ("CREATE TABLE items (id INTEGER, v FLOAT[2], w FLOAT[])", "2 columns of vectors.*--vector: v, w"),
        ("CREATE TABLE items (v FLOAT[2], n INTEGER)", r"no column id for ids.*--id: n; or add one: ALTER"),
        ("CREATE TABLE items (id DOUBLE, v FLOAT[2])", r"for ids.*UUIDs\. Add one: ALTER TABLE"),
    ],
)
def test_what_is_no_table_of_vectors_is_refused(tmp_path, statement, message):
    run(tmp_path / "items.duckdb", "CREATE TABLE other (id INTEGER)", statement)
    with pytest.raises(StoreError, match=message):
        open_store(f"duckdb:{tmp_path / 'items.duckdb'}#items").facts()


HARMS = [
    (["CREATE TABLE hubless_marks (mine TEXT)"], "hubless_marks that is not of hubless"),
    (["CREATE VIEW hubless_marks AS SELECT 1 AS name, 2 AS mark"], "hubless_marks that is not of hubless"),
    (["CREATE TABLE child (n BIGINT REFERENCES items (id))"], "takes part in a foreign key of child"),
    (["CREATE TABLE moved (mine TEXT)"], "moved exists already and was not made by hubless"),
    (["CREATE VIEW Moved AS SELECT 1"], "moved exists already and was not made by hubless"),
    (
        [
            "CREATE TABLE docs (id INTEGER)",
            "CREATE TRIGGER add_it AFTER INSERT ON docs FOR EACH STATEMENT INSERT INTO items (id) VALUES (1)",
        ],
        "the trigger add_it is on .*#items, or writes to it",
    ),
]


@pytest.mark.parametrize(("statements", "message"), HARMS)
def test_what_a_switch_would_harm_is_refused_and_nothing_is_written(few, statements, message):
    store, *_, model = few
    run(store.address, *statements)
    before = bytes_of(store.file.parent)
    with pytest.raises(StoreError, match=message):
        apply_index(model, store, "moved")
    assert bytes_of(store.file.parent) == before


@pytest.mark.parametrize("wrong", ["(5, [1, 2])", "(NULL, [1, 2])"])
def test_ids_that_are_not_unique_are_refused(tmp_path, wrong):
    path = tmp_path / "items.duckdb"
    run(path, "CREATE TABLE items (id INTEGER, v FLOAT[2])", f"INSERT INTO items VALUES (5, [1, 2]), {wrong}")
    model = model_for(np.eye(2, dtype=np.float32)[[0, 1, 0, 1]], np.arange(4) % 2, "l2")
    with pytest.raises(
        StoreError, match="has 1 rows without an id in 'id', or with one that another row has"
    ):
        apply_index(model, f"duckdb:{path}#items", "moved")


def test_a_table_with_an_hnsw_index_is_not_moved(few):
    """The extension cannot be installed everywhere, so the index is one that only the catalog has."""
    store, *_ = few
    index = DuckIndex("near", "CREATE INDEX near ON items USING HNSW (embedding);")  # as DuckDB reports it
    assert index.is_hnsw
    assert not DuckIndex("using hnsw", 'CREATE INDEX "using hnsw" ON items(text);').is_hnsw
    with store._session() as connection:
        layout = replace(store._layout(connection), indexes=(index,))
        with pytest.raises(StoreError, match=r"has the HNSW index near.*Drop it"):
            check_movable(connection, store.name, layout)
        unsaid = DuckTable(store.address, "items")
        with pytest.raises(StoreError, match=r"DuckDB does not say by which metric: give it \(--metric\)"):
            unsaid._metric(layout)


def test_an_older_duckdb_is_refused(few, monkeypatch):
    store, *_ = few
    monkeypatch.setattr(duckdb, "__version__", "1.5.5")
    with pytest.raises(StoreError, match=r"DuckDB 1.5.5 is installed; hubless needs 2 or newer.*pip install"):
        store.facts()


def test_damaged_and_missing_files_are_named(few, tmp_path):
    store, *_ = few
    whole = store.file.read_bytes()
    for damaged in (b"no database" * 999, whole[:5000], b"\xff" * 4096 + whole[4096:]):
        store.file.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"items.duckdb#items reports an error"):
            list(store.batches())
    for path in (tmp_path / "none.duckdb", tmp_path):
        with pytest.raises(StoreError, match="there is no DuckDB database at"):
            open_store(f"duckdb:{path}#items").facts()


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
    for text in ("{}", "no JSON", None):
        run(store.address, ("UPDATE hubless_marks SET mark = ?", [text]))
        assert store.mark() is None


def test_an_index_of_a_stranger_on_the_copy_is_refused(few):
    store, *_, model = few
    apply_index(model, store, "moved")
    run(store.address, "CREATE INDEX theirs ON moved (text)")
    with pytest.raises(StoreError, match="moved has the index theirs, which hubless did not make"):
        promote_index(store, "moved")
    assert index_status(store)["status"] == "original"
