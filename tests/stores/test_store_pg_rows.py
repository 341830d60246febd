"""Tables of PostgreSQL with pgvector: names, ids, columns and vectors of all kinds."""

import time
import uuid

import numpy as np
import psycopg
import pytest
from psycopg import sql

from hubless.neighbors.knn import unit
from hubless.repair.apply import apply_index, promote_index, rollback_index
from hubless.stores.postgres.pg_table import PgTable
from hubless.stores.store import Mark, StoreError
from hubless.testing.store_cases import exact, model_for, overlap, sample
from tests.stores.killer import LONG
from tests.stores.pg_cases import Small, as_text, ask, check_moved, fill, items, rows_of, run

pytestmark = pytest.mark.services
ODD = "it's; DROP TABLE x--"


@pytest.mark.parametrize("type", ["vector", "halfvec"])
def test_an_hnsw_index_is_built_again_and_used(address, type):
    index = f"hnsw (embedding {type}_cosine_ops) WITH (m = 7, ef_construction = 50)"
    ids, X, y = items(address, n=400, type=type, index=index)
    store, model, queries = PgTable(address, "items"), model_for(X, y, "cosine"), unit(X[:30] + 0.2)
    facts = store.facts()
    assert (facts.metric, facts.index) == ("cosine", "HNSW, m=7, ef_construction=50")
    assert facts.dtype == {"vector": "float32", "halfvec": "float16"}[type]

    def used():
        """Return the index that the server uses: its name, its number, its definition."""
        with psycopg.connect(address) as connection:
            connection.execute("SET enable_seqscan = off")
            query = "EXPLAIN (FORMAT JSON) SELECT id FROM items ORDER BY embedding <=> %s LIMIT 5"
            plan = connection.execute(query, [as_text(queries[0])]).fetchone()[0][0]["Plan"]["Plans"][0]
            assert plan["Node Type"] == "Index Scan"
            query = "SELECT oid, pg_get_indexdef(oid) FROM pg_class WHERE relname = %s"
            return plan["Index Name"], *connection.execute(query, [plan["Index Name"]]).fetchone()

    before, index_before = ask(address, queries, 5, "cosine"), used()
    moved = exact(ids, model.move(X), queries, 5, "cosine")
    apply_index(model, store, "moved")
    check_moved(address, model, rtol=1e-3 if type == "halfvec" else 1e-5)
    promote_index(store, "moved")
    index_after = used()
    assert overlap(ask(address, queries, 5, "cosine"), moved) >= 0.97 > overlap(before, moved)
    assert index_after[0] == index_before[0]  # its name goes with that of the table
    assert index_after[1] != index_before[1]
    assert index_after[2] == index_before[2]
    assert overlap(store.search(queries, 5), moved) >= 0.97
    rollback_index(store)
    assert ask(address, queries, 5, "cosine") == before
    assert used() == index_before


def test_odd_names_are_names(address):
    schema, vector, key = 'Big "S"; {x}', 'emb"%s" {}; DROP', "I'd. %"
    path, index = sql.Identifier(schema, ODD), sql.Identifier(' USING "hnsw" ON ')
    _, X, y, texts = sample(40)
    named = {"path": path, "vector": sql.Identifier(vector), "key": sql.Identifier(key), "index": index}
    run(
        address,
        "CREATE TABLE x (a int)",
        sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)),
        sql.SQL('CREATE TABLE {path} ({key} text PRIMARY KEY, {vector} vector(8), "100%" text)').format(
            **named
        ),
        sql.SQL("CREATE INDEX {index} ON {path} USING hnsw ({vector} vector_l2_ops)").format(**named),
    )
    names = [f'\'; DROP TABLE x; -- \\ {{{i}}}, "é" %s' for i in range(40)]
    rows = [(i, as_text(v), f"it's \\ {t}") for i, v, t in zip(names, X, texts, strict=True)]
    fill(address, (schema, ODD), (key, vector, "100%"), rows)
    store = PgTable(address, f'"{schema.replace(chr(34), chr(34) * 2)}"."{ODD}"')
    model = model_for(X, y, "l2")
    green = 'green "1"; --'
    apply_index(model, store, green)
    promote_index(store, green)
    batch = store.fetch([names[3], "no such", names[1]], ["100%"])
    assert batch.ids.tolist() == [names[3], names[1]]
    assert batch.columns["100%"] == [rows[3][2], rows[1][2]]
    np.testing.assert_allclose(batch.vectors, model.move(X[[3, 1]]), rtol=1e-5, atol=1e-6)
    assert store.search(X[:3] + 0.1, 2).shape == (3, 2)
    assert apply_again_after_rollback(store, model, green) == 0
    tables = run(
        address, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace >= 2200 ORDER BY 1"
    )
    assert [name for (name,) in tables if not name.startswith(("pg_", "sql_"))] == [green, ODD, "x"]
    assert store.sibling(store.name).name == store.name


def apply_again_after_rollback(store, model, green):
    rollback_index(store)
    return apply_index(model, store, green)["written"]


def test_long_names(address):
    items(address, n=5)
    name = "é" * 31  # 62 bytes of the 63 that a name may have
    run(address, f"ALTER TABLE items RENAME TO {name}")
    _, X, y, _ = sample(60)
    store, model = PgTable(address, name), model_for(X, y, "l2")
    for _ in range(2):
        apply_index(model, store, "m" * 63)
        assert len(promote_index(store, "m" * 63)["original"].encode()) <= len("public.") + 65
        rollback_index(store)
    with pytest.raises(StoreError, match="63 bytes"):
        store.sibling("m" * 64)


def test_rows_without_a_vector_stay_so(address):
    ids, X, y = items(address)
    run(address, f"UPDATE items SET embedding = NULL WHERE id IN ({ids[3]}, {ids[50]})")
    store, model = Small(address, "items"), model_for(X, y, "l2")
    assert np.isnan(store.fetch([ids[3]]).vectors).all()
    assert apply_index(model, store, "moved")["written"] == 60
    check_moved(address, model)
    assert apply_index(model, store, "moved")["written"] == 0
    run(address, f"UPDATE items SET embedding = '{as_text(X[3])}' WHERE id = {ids[3]}")
    run(address, f"UPDATE items SET embedding = NULL WHERE id = {ids[4]}")
    assert apply_index(model, store, "moved")["written"] == 2
    check_moved(address, model)
    assert sum(i in (ids[4], ids[50]) for row in store.search(X[:4], 60) for i in row) == 0


def test_uuids(address):
    keys = np.array([str(uuid.UUID(int=i**9 + 7)) for i in range(60)], dtype=object)
    _, X, y = items(address, id_type="uuid", ids=keys)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    batch = store.fetch([keys[4].upper(), "no such", str(uuid.uuid4()), keys[2]])
    assert batch.ids.tolist() == [keys[4], keys[2]]
    assert store.contains(np.array(["x", keys[1]], dtype=object)).tolist() == [False, True]
    assert apply_index(model, store, "moved")["written"] == 60
    assert apply_index(model, store, "moved")["written"] == 0
    run(address, f"DELETE FROM items WHERE id = '{keys[9]}'")
    assert apply_index(model, store, "moved")["removed"] == 1
    promote_index(store, "moved")
    want = exact(np.delete(keys, 9), model.move(np.delete(X, 9, 0)), X[:5], 1, "l2")
    assert overlap(store.search(X[:5], 1), want) == 1


def test_a_unique_column_may_be_the_id_and_numbers_stay(address):
    ids, X, y, texts = sample(30)
    run(
        address,
        "CREATE TABLE items (n int GENERATED ALWAYS AS IDENTITY, part int, slug text UNIQUE NOT NULL, "
        "text text, embedding vector(8), PRIMARY KEY (n, part))",
    )
    rows = [(1, f"s{i}", t, as_text(x)) for i, t, x in zip(ids, texts, X, strict=True)]
    fill(address, ("public", "items"), ("part", "slug", "text", "embedding"), rows)
    with pytest.raises(StoreError, match=r"PRIMARY KEY \(n, part\).*unique column"):
        PgTable(address, "items").facts()
    store, model = PgTable(address, "items", id="slug"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    run(address, "UPDATE items SET text = 'x' WHERE n < 4")
    assert apply_index(model, store, "moved")["written"] == 3
    columns = "SELECT n, part, slug, text FROM {} ORDER BY n"
    assert run(address, columns.format("items")) == run(address, columns.format("moved"))
    with pytest.raises(StoreError, match="not a key"):
        apply_index(model, PgTable(address, "items", id="text"), "moved2")


def test_generated_columns(address):
    more = """, length int GENERATED ALWAYS AS (char_length(text)) STORED,
        norm float8 GENERATED ALWAYS AS (vector_norm(embedding)) STORED,
        loud text GENERATED ALWAYS AS (upper(text)) VIRTUAL, info json DEFAULT '{"a": 1}', spot point"""
    ids, X, y = items(address, more=more)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    assert apply_index(model, store, "moved")["written"] == 0  # though norm differs
    run(address, f"UPDATE items SET info = '{{\"a\": 2}}' WHERE id = {ids[1]}")
    assert apply_index(model, store, "moved")["written"] == 1
    promote_index(store, "moved")
    rows = run(address, "SELECT id, text, length, norm, loud, info FROM items")
    norms = dict(zip(ids.tolist(), np.linalg.norm(model.move(X), axis=1), strict=True))
    for i, text, length, norm, loud, info in rows:
        assert (length, loud, info) == (len(text), text.upper(), {"a": 2 if i == ids[1] else 1})
        assert norm == pytest.approx(norms[i], rel=1e-5)
    batch = store.fetch([ids[0]], ["length", "info", "spot"])
    assert batch.columns == {"length": [len(rows[0][1])], "info": ['{"a": 1}'], "spot": [None]}


def test_an_index_of_half_precision_and_an_extension_elsewhere(address):
    run(address, "DROP EXTENSION vector", "CREATE SCHEMA ext", "CREATE EXTENSION vector SCHEMA ext")
    index = "hnsw ((embedding::ext.halfvec(8)) ext.halfvec_cosine_ops)"
    ids, X, y = items(address, type="ext.vector", index=index)
    store, model = PgTable(address, "items"), model_for(X, y, "cosine")
    assert store.facts().metric == "cosine"
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    database = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
    run(address, f"ALTER DATABASE {database} SET enable_seqscan = off")  # a table this small is read whole
    queries = unit(X[:10] + 0.1)
    assert overlap(store.search(queries, 3), exact(ids, model.move(X), queries, 3, "cosine")) >= 0.9
    used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'items_emb%'"
    end = time.monotonic() + LONG
    while run(address, used) != [(10,)] and time.monotonic() < end:
        time.sleep(0.05)  # a session is counted when it has ended
    assert run(address, used) == [(10,)]


def test_vectors_of_one_dimension_that_the_type_does_not_name(address):
    _, X, y, _ = sample(30)
    run(address, "CREATE TABLE items (id int PRIMARY KEY, text text, embedding vector)")
    fill(address, ("public", "items"), ("id", "embedding"), [(i, as_text(x)) for i, x in enumerate(X)])
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    assert store.facts().dimension == 8
    apply_index(model, store, "moved")
    check_moved(address, model)
    run(address, "INSERT INTO items VALUES (77, '', '[1,2]')")
    with pytest.raises(StoreError, match="different dimensions"):
        apply_index(model, store, "moved")


def test_a_batch_does_not_read_all_rows(address):
    """Else building the moved table takes a time that grows with the square of the number of rows."""
    _, X, y, _ = sample(60)
    vectors = "(SELECT array_agg(random()) FROM generate_series(1, 8))::real[]::vector"
    run(
        address,
        "CREATE TABLE items (id int PRIMARY KEY, text text, embedding vector(8))",
        f"INSERT INTO items SELECT i, repeat('text ', 30), {vectors} FROM generate_series(1, 20000) i",
    )
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    green = store.sibling("moved")
    green.begin(store, Mark(model.hash, store.name, "", False))
    read = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'items'"
    batch = store.fetch(list(range(1, 51)))
    for _ in range(2):
        green.outdated(batch, model.move(batch.vectors))
        green.write(batch, model.move(batch.vectors))
    green.remove(batch.ids)
    time.sleep(0.5)  # a session is counted when it has ended
    assert run(address, read) == [(0,)]


def test_ids_and_vectors_alone(address):
    _, X, y, _ = sample(30)
    run(address, "CREATE TABLE items (embedding vector(8), id smallint PRIMARY KEY)")
    fill(address, ("public", "items"), ("id", "embedding"), [(i, as_text(x)) for i, x in enumerate(X)])
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    assert store.fetch([10**9, 3]).ids.tolist() == [3]
    assert apply_index(model, store, "moved")["written"] == 30
    assert apply_index(model, store, "moved")["written"] == 0
    np.testing.assert_allclose(
        store.sibling("moved").fetch([4]).vectors, model.move(X[[4]]), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(StoreError, match="no column 'text'"):
        store.fetch([3], ["text"])


def test_numbers_that_a_column_cannot_hold(address):
    ids, X, y = items(address, type="halfvec")
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    green = store.sibling("moved")
    green.begin(store, Mark(model.hash, store.name, "", False))
    batch = store.fetch(ids[:2].tolist())
    with pytest.raises(StoreError, match="cannot hold"):
        green.write(batch, np.full((2, 8), 1e6, np.float32))
    assert rows_of(address, "moved") == {}
