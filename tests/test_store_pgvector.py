"""Tables of PostgreSQL with pgvector; what is served is asked by plain SQL."""

import itertools
import json
import multiprocessing
import time
import uuid

import numpy as np
import psycopg
import pytest
from psycopg import sql

from hubless.index.apply import apply, promote, rollback
from hubless.index.repair import unit
from hubless.stores import pgvector
from hubless.stores.pgvector import PgTable
from hubless.stores.store import Mark, StoreError
from postgres import PASSWORD, fresh_database, one_server  # noqa: F401
from store_contract import Case, StoreContract, exact, model_for, overlap, sample

OPERATORS = {"l2": "<->", "cosine": "<=>", "ip": "<#>"}
STRANGE = "it's; DROP TABLE x--"
OTHERS = "backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()"


def told(vector):
    return None if vector is None else str(np.asarray(vector, dtype=float).tolist())


def run(address, *statements):
    """What another program asks, in one transaction; rows of the last, if it has any."""
    with psycopg.connect(address) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


def fill(address, path, columns, rows):
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(*path), names)
    with psycopg.connect(address) as connection, connection.cursor().copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def ask(address, queries, k, metric, table="items"):
    question = f"SELECT id FROM {table} ORDER BY embedding {OPERATORS[metric]} %s LIMIT %s"
    with psycopg.connect(address) as connection:
        return [[i for (i,) in connection.execute(question, [told(q), k])] for q in queries]


def items(address, *, n=60, id_type="bigint", type="vector", index=None, more="", schema="public", **data):
    """A table `items` with a row for each vector; ids, vectors and classes."""
    ids, X, y, texts = sample(n, text_ids=id_type == "text")
    ids, X, texts = data.get("ids", ids), data.get("X", X), data.get("texts", texts)
    run(
        address,
        f"CREATE SCHEMA IF NOT EXISTS {schema}",
        f"CREATE TABLE {schema}.items (id {id_type} PRIMARY KEY, text text, embedding {type}(8) {more})",
    )
    rows = [(i, t, told(x)) for i, t, x in zip(ids.tolist(), texts, X, strict=True)]
    fill(address, (schema, "items"), ("id", "text", "embedding"), rows)
    if index:
        run(address, f"CREATE INDEX ON {schema}.items USING {index}")
    return ids, X, y


def rows_of(address, table="items"):
    """id -> (text, vector or None)"""
    found = run(address, f"SELECT id, text, embedding::text FROM {table}")
    return {i: (t, None if v is None else np.array(json.loads(v), np.float32)) for i, t, v in found}


def check_moved(address, model, blue="items", green="moved", rtol=1e-5):
    """That green has all rows of blue, moved, and no others."""
    before, after = rows_of(address, blue), rows_of(address, green)
    assert set(before) == set(after)
    for i, (t, vector) in before.items():
        assert after[i][0] == t
        if vector is None:
            assert after[i][1] is None
        else:
            np.testing.assert_allclose(after[i][1], model.move(vector[None])[0], rtol=rtol, atol=rtol)


class Small(PgTable):
    """In batches of a few rows; `between` is called after each that was read."""

    size = 15
    between = staticmethod(lambda: None)

    def batches(self, columns=(), size=None):
        for batch in super().batches(columns, size or self.size):
            yield batch
            self.between()


class TestContract(StoreContract):
    @pytest.fixture(params=["number", "text"])
    def case(self, request, address):
        numbers = itertools.count()
        has_texts = request.param == "text"  # and an index, which the other does not have
        known = {}

        def make(folder, ids, X, texts, metric):
            schema = f"place{next(numbers)}"
            index = f"hnsw (embedding vector_{metric}_ops)" if has_texts else None
            kind = "text" if has_texts else "bigint"
            items(address, id_type=kind, index=index, schema=schema, ids=ids, X=X, texts=texts)
            store = PgTable(address, f"{schema}.items", metric=None if has_texts else metric)
            known[store.name] = f"{schema}.items", metric
            return store

        def add(store, ids, X, texts):
            rows = [(i, t, told(x)) for i, t, x in zip(ids.tolist(), texts, X, strict=True)]
            fill(address, known[store.name][0].split("."), ("id", "text", "embedding"), rows)

        return Case(
            make,
            lambda store, queries, k: ask(address, queries, k, known[store.name][1], known[store.name][0]),
            add,
            metrics=("l2", "cosine", "ip"),
            recall=0.97 if has_texts else 1.0,
            text_ids=has_texts,
        )


@pytest.mark.parametrize("type", ["vector", "halfvec"])
def test_an_hnsw_index_is_built_again_and_used(address, type):
    index = f"hnsw (embedding {type}_cosine_ops) WITH (m = 7, ef_construction = 50)"
    ids, X, y = items(address, n=400, type=type, index=index)
    store, model, queries = PgTable(address, "items"), model_for(X, y, "cosine"), unit(X[:30] + 0.2)
    facts = store.facts()
    assert (facts.metric, facts.index) == ("cosine", "HNSW, m=7, ef_construction=50")
    assert facts.dtype == {"vector": "float32", "halfvec": "float16"}[type]

    def used():
        """The index that the server answers with: its name, its table, what it is."""
        with psycopg.connect(address) as connection:
            connection.execute("SET enable_seqscan = off")
            question = "EXPLAIN (FORMAT JSON) SELECT id FROM items ORDER BY embedding <=> %s LIMIT 5"
            plan = connection.execute(question, [told(queries[0])]).fetchone()[0][0]["Plan"]["Plans"][0]
            assert plan["Node Type"] == "Index Scan"
            query = "SELECT oid, pg_get_indexdef(oid) FROM pg_class WHERE relname = %s"
            return plan["Index Name"], *connection.execute(query, [plan["Index Name"]]).fetchone()

    before, index_before = ask(address, queries, 5, "cosine"), used()
    moved = exact(ids, model.move(X), queries, 5, "cosine")
    apply(model, store, "moved")
    check_moved(address, model, rtol=1e-3 if type == "halfvec" else 1e-5)
    promote(store, "moved")
    index_after = used()
    assert overlap(ask(address, queries, 5, "cosine"), moved) >= 0.97 > overlap(before, moved)
    assert index_after[0] == index_before[0]  # its name goes with that of the table
    assert index_after[1] != index_before[1]
    assert index_after[2] == index_before[2]
    assert overlap(store.search(queries, 5), moved) >= 0.97
    rollback(store)
    assert ask(address, queries, 5, "cosine") == before
    assert used() == index_before


def test_strange_names_are_names(address):
    schema, vector, key = 'Big "S"; {x}', 'emb"%s" {}; DROP', "I'd. %"
    path, index = sql.Identifier(schema, STRANGE), sql.Identifier(' USING "hnsw" ON ')
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
    rows = [(i, told(v), f"it's \\ {t}") for i, v, t in zip(names, X, texts, strict=True)]
    fill(address, (schema, STRANGE), (key, vector, "100%"), rows)
    store = PgTable(address, f'"{schema.replace(chr(34), chr(34) * 2)}"."{STRANGE}"')
    model = model_for(X, y, "l2")
    green = 'green "1"; --'
    apply(model, store, green)
    promote(store, green)
    batch = store.fetch([names[3], "no such", names[1]], ["100%"])
    assert batch.ids.tolist() == [names[3], names[1]]
    assert batch.columns["100%"] == [rows[3][2], rows[1][2]]
    np.testing.assert_allclose(batch.vectors, model.move(X[[3, 1]]), rtol=1e-5)
    assert store.search(X[:3] + 0.1, 2).shape == (3, 2)
    assert apply_again_after_rollback(store, model, green) == 0
    tables = run(
        address, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace >= 2200 ORDER BY 1"
    )
    assert [name for (name,) in tables if not name.startswith(("pg_", "sql_"))] == [green, STRANGE, "x"]
    assert store.beside(store.name).name == store.name


def apply_again_after_rollback(store, model, green):
    rollback(store)
    return apply(model, store, green)["written"]


def test_long_names(address):
    items(address, n=5)
    name = "é" * 31  # 62 bytes of the 63 that a name may have
    run(address, f"ALTER TABLE items RENAME TO {name}")
    _, X, y, _ = sample(60)
    store, model = PgTable(address, name), model_for(X, y, "l2")
    for _ in range(2):
        apply(model, store, "m" * 63)
        assert len(promote(store, "m" * 63)["original"].encode()) <= len("public.") + 65
        rollback(store)
    with pytest.raises(StoreError, match="63 bytes"):
        store.beside("m" * 64)


def test_rows_without_a_vector_stay_so(address):
    ids, X, y = items(address)
    run(address, f"UPDATE items SET embedding = NULL WHERE id IN ({ids[3]}, {ids[50]})")
    store, model = Small(address, "items"), model_for(X, y, "l2")
    assert np.isnan(store.fetch([ids[3]]).vectors).all()
    assert apply(model, store, "moved")["written"] == 60
    check_moved(address, model)
    assert apply(model, store, "moved")["written"] == 0
    run(address, f"UPDATE items SET embedding = '{told(X[3])}' WHERE id = {ids[3]}")
    run(address, f"UPDATE items SET embedding = NULL WHERE id = {ids[4]}")
    assert apply(model, store, "moved")["written"] == 2
    check_moved(address, model)
    assert sum(i in (ids[4], ids[50]) for row in store.search(X[:4], 60) for i in row) == 0


def test_uuids(address):
    keys = np.array([str(uuid.UUID(int=i**9 + 7)) for i in range(60)], dtype=object)
    _, X, y = items(address, id_type="uuid", ids=keys)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    found = store.fetch([keys[4].upper(), "no such", str(uuid.uuid4()), keys[2]])
    assert found.ids.tolist() == [keys[4], keys[2]]
    assert store.holds(np.array(["x", keys[1]], dtype=object)).tolist() == [False, True]
    assert apply(model, store, "moved")["written"] == 60
    assert apply(model, store, "moved")["written"] == 0
    run(address, f"DELETE FROM items WHERE id = '{keys[9]}'")
    assert apply(model, store, "moved")["removed"] == 1
    promote(store, "moved")
    want = exact(np.delete(keys, 9), model.move(np.delete(X, 9, 0)), X[:5], 1, "l2")
    assert overlap(store.search(X[:5], 1), want) == 1


# --- interrupted -------------------------------------------------------------------------------------------


def apply_slowly(address, name, ready):
    _, X, y, _ = sample(60)
    model = model_for(X, y, "l2")
    ready.set()
    apply(model, Small(address, "items"), name)


def test_killed_at_any_moment_it_goes_on(address):
    _, X, y = items(address, n=60, index="hnsw (embedding vector_l2_ops)")
    before, model, rng = rows_of(address), model_for(X, y, "l2"), np.random.default_rng(5)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hubless.index.apply", "hubless.stores.pgvector", "psycopg", "pytest"])

    def start(name):
        ready = context.Event()
        process = context.Process(target=apply_slowly, args=(address, name, ready))
        process.start()
        assert ready.wait(60)
        return process

    process, began = start("undisturbed"), time.monotonic()
    process.join()
    whole = time.monotonic() - began
    killed, written = [], []
    for part in range(6):
        process = start("moved")
        time.sleep(whole * 0.8 * (part + rng.random()) / 6)
        process.kill()
        process.join()
        killed.append(process.exitcode == -9)
        while run(address, f"SELECT 1 FROM pg_stat_activity WHERE {OTHERS}"):
            time.sleep(0.01)  # the server sees a moment later that nobody is there
        written.append(apply(model, PgTable(address, "items"), "moved")["written"])
        check_moved(address, model)
        run(address, "DROP TABLE moved")
    assert sum(killed) >= 3
    assert min(written) < 60  # so it went on
    after = rows_of(address)
    assert all(np.array_equal(before[i][1], after[i][1]) for i in before)


def test_a_lost_connection_is_told_and_loses_nothing(address):
    _, X, y = items(address, index="hnsw (embedding vector_l2_ops)")
    store, model, batches = Small(address, "items"), model_for(X, y, "l2"), itertools.count()

    def between():
        if next(batches) == 2:
            run(address, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")

    store.between = between
    with pytest.raises(StoreError, match=r"untouched.* again") as caught:
        apply(model, store, "moved")
    assert PASSWORD not in str(caught.value)
    assert len(rows_of(address, "moved")) == 45
    with pytest.raises(StoreError, match="not finished"):
        promote(store, "moved")
    assert apply(model, store, "moved")["written"] == 15
    check_moved(address, model)
    promote(store, "moved")


def test_two_at_once(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply(model, store, "moved")
    with store.beside("moved").lock():
        with pytest.raises(StoreError, match="somebody else"):
            apply(model, store, "moved")
        with pytest.raises(StoreError, match="somebody else"):
            promote(store, "moved")
        apply(model, store, "another")  # which is no matter of theirs
    apply(model, store, "moved")
    promote(store, "moved")


def test_what_others_write_meanwhile_is_found(address):
    _, X, y = items(address)
    store, model, batches = Small(address, "items"), model_for(X, y, "l2"), itertools.count()
    order = [i for (i,) in run(address, "SELECT id FROM items")]
    passed, ahead = order[:30], order[30:]

    def between():
        if next(batches) == 1:
            for some in (passed, ahead):
                run(
                    address,
                    f"UPDATE items SET embedding = '{told(X[0] * 2)}' WHERE id = {some[0]}",
                    f"UPDATE items SET text = 'new' WHERE id = {some[1]}",
                    f"DELETE FROM items WHERE id = {some[2]}",
                    f"UPDATE items SET id = -id - 1 WHERE id = {some[3]}",
                    f"INSERT INTO items VALUES ({some[0]} + 10000, 'added', '{told(X[1] / 2)}')",
                )

    store.between = between
    report = apply(model, store, "moved")
    assert report["passes"] == 3
    assert not report["notes"]
    check_moved(address, model)
    store = PgTable(address, "items")
    for change in (
        f"UPDATE items SET text = 'newer' WHERE id = {passed[5]}",
        f"UPDATE items SET embedding = NULL WHERE id = {passed[6]}",
        f"UPDATE items SET id = id + 20000 WHERE id = {passed[7]}",
        f"DELETE FROM items WHERE id = {passed[8]}",
        f"INSERT INTO items VALUES (-5, NULL, '{told(X[1])}')",
        "CREATE INDEX ON items (text)",
        "ALTER TABLE items ALTER text SET DEFAULT 'none'",
    ):
        run(address, change)
        with pytest.raises(StoreError, match="changed"):
            promote(store, "moved")
        if change.startswith("ALTER"):
            with pytest.raises(StoreError, match="changed"):
                apply(model, store, "moved")
            run(address, "DROP TABLE moved")
        apply(model, store, "moved")
        check_moved(address, model)
    promote(store, "moved")


@pytest.mark.parametrize("write", [True, False])
def test_a_switch_does_not_wait_forever(address, monkeypatch, write):
    items(address, n=5)
    store, model = PgTable(address, "items"), model_for(*sample()[1:3], "l2")
    apply(model, store, "moved")
    monkeypatch.setattr(pgvector, "PATIENCE", 1)
    before = rows_of(address)
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE items SET text = text" if write else "SELECT * FROM items")
        with pytest.raises(StoreError, match=r"in use.*Nothing was changed"):
            promote(store, "moved")
    assert rows_of(address).keys() == before.keys()
    assert store.mark() is None
    promote(store, "moved")


# --- what belongs to a table -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["bigint GENERATED ALWAYS AS IDENTITY", "int GENERATED BY DEFAULT AS IDENTITY", "bigserial"]
)
def test_numbers_go_on(address, kind):
    _, X, y, _ = sample(20)
    run(address, f"CREATE TABLE items (id {kind} PRIMARY KEY, text text, embedding vector(8))")
    fill(address, ("public", "items"), ("embedding",), [(told(x),) for x in X])
    store, model = PgTable(address, "items"), model_for(X, y, "l2")

    def insert():
        return run(address, f"INSERT INTO items (embedding) VALUES ('{told(X[0])}') RETURNING id")[0][0]

    assert insert() == 21
    apply(model, store, "moved")
    promote(store, "moved")
    assert insert() == 22
    assert rollback(store)["added_since"] == 1
    assert insert() == 23
    with pytest.raises(StoreError, match="would be lost"):  # the row that it alone has
        apply(model, store, "moved")
    run(address, "DROP TABLE moved")  # without CASCADE: nothing of the served table hangs on it
    apply(model, store, "moved")
    kept = promote(store, "moved")["original"]
    assert insert() == 24
    run(address, f"DROP TABLE {kept}")
    assert insert() == 25
    assert run(address, "SELECT pg_get_serial_sequence('items', 'id')") == [("public.items_id_seq",)]


def test_a_unique_column_may_be_the_id_and_numbers_stay(address):
    ids, X, y, texts = sample(30)
    run(
        address,
        "CREATE TABLE items (n int GENERATED ALWAYS AS IDENTITY, part int, slug text UNIQUE NOT NULL, "
        "text text, embedding vector(8), PRIMARY KEY (n, part))",
    )
    rows = [(1, f"s{i}", t, told(x)) for i, t, x in zip(ids, texts, X, strict=True)]
    fill(address, ("public", "items"), ("part", "slug", "text", "embedding"), rows)
    with pytest.raises(StoreError, match=r"PRIMARY KEY \(n, part\).*unique column"):
        PgTable(address, "items").facts()
    store, model = PgTable(address, "items", id="slug"), model_for(X, y, "l2")
    apply(model, store, "moved")
    run(address, "UPDATE items SET text = 'x' WHERE n < 4")
    assert apply(model, store, "moved")["written"] == 3
    columns = "SELECT n, part, slug, text FROM {} ORDER BY n"
    assert run(address, columns.format("items")) == run(address, columns.format("moved"))
    with pytest.raises(StoreError, match="no key"):
        apply(model, PgTable(address, "items", id="text"), "moved2")


def test_generated_columns(address):
    more = """, length int GENERATED ALWAYS AS (char_length(text)) STORED,
        norm float8 GENERATED ALWAYS AS (vector_norm(embedding)) STORED,
        loud text GENERATED ALWAYS AS (upper(text)) VIRTUAL, info json DEFAULT '{"a": 1}', spot point"""
    ids, X, y = items(address, more=more)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply(model, store, "moved")
    assert apply(model, store, "moved")["written"] == 0  # though norm is another
    run(address, f"UPDATE items SET info = '{{\"a\": 2}}' WHERE id = {ids[1]}")
    assert apply(model, store, "moved")["written"] == 1
    promote(store, "moved")
    found = run(address, "SELECT id, text, length, norm, loud, info FROM items")
    norms = dict(zip(ids.tolist(), np.linalg.norm(model.move(X), axis=1), strict=True))
    for i, text, length, norm, loud, info in found:
        assert (length, loud, info) == (len(text), text.upper(), {"a": 2 if i == ids[1] else 1})
        assert norm == pytest.approx(norms[i], rel=1e-5)
    batch = store.fetch([ids[0]], ["length", "info", "spot"])
    assert batch.columns == {"length": [len(found[0][1])], "info": ['{"a": 1}'], "spot": [None]}


def test_all_indexes_and_constraints_come_along(address):
    ids, X, y = items(address, n=15, more=", place int, CONSTRAINT long CHECK (length(text) > 2)")
    run(
        address,
        "UPDATE items SET place = id",
        "ALTER TABLE items ADD CONSTRAINT one_place UNIQUE (place) DEFERRABLE",
        "CREATE UNIQUE INDEX one_text ON items (lower(text)) WHERE id > 5",
        "CREATE INDEX by_place ON items USING brin (place) WITH (pages_per_range = 8)",
        "CREATE INDEX near ON items USING ivfflat (embedding vector_l2_ops) WITH (lists = 3)",
        "ALTER TABLE items SET (fillfactor = 70)",
        "COMMENT ON TABLE items IS 'it''s ours'",
    )

    def told_of():
        return run(
            address,
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'items' UNION ALL "
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'items'::regclass "
            "UNION ALL SELECT reloptions::text, obj_description(oid) FROM pg_class WHERE relname = 'items' "
            "ORDER BY 1, 2",
        )

    store, model, before = PgTable(address, "items"), model_for(X, y, "l2"), told_of()
    apply(model, store, "moved")
    a, b = sorted(ids.tolist())[5:7]
    swap = f"UPDATE items SET place = CASE id WHEN {a} THEN {b} ELSE {a} END, "
    swap += f"text = CASE id WHEN {a} THEN 'text of {b}' ELSE 'text of {a}' END WHERE id IN ({a}, {b})"
    run(address, "DROP INDEX one_text", swap)
    run(address, "CREATE UNIQUE INDEX one_text ON items (lower(text)) WHERE id > 5")
    small = Small(address, "items")
    small.size = 1  # so that the two are in different batches
    assert apply(model, small, "moved")["written"] == 2
    promote(store, "moved")
    assert told_of() == before
    with pytest.raises(psycopg.errors.UniqueViolation):
        run(address, f"UPDATE items SET place = {a} WHERE id = {a}")
    rollback(store)
    assert told_of() == before


def test_foreign_keys_go_with_the_served_name(address):
    ids, X, y = items(address, more=", book int")
    run(
        address,
        "CREATE TABLE books (id int PRIMARY KEY)",
        "INSERT INTO books SELECT generate_series(0, 9)",
        "UPDATE items SET book = id % 10",
        "ALTER TABLE items ADD CONSTRAINT of_book FOREIGN KEY (book) REFERENCES books ON DELETE CASCADE",
    )
    keys = "SELECT conrelid::regclass::text, convalidated FROM pg_constraint WHERE contype = 'f'"
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply(model, store, "moved")
    assert run(address, keys) == [("items", True)]
    promote(store, "moved")
    assert run(address, keys) == [("items", True)]
    run(address, "DELETE FROM books WHERE id = 3")
    assert not any(i % 10 == 3 for i in rows_of(address))
    rollback(store)
    assert run(address, keys) == [("items", False)]  # its rows of the book that is gone are still there
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        run(address, f"UPDATE items SET book = 77 WHERE id = {ids[0]}")


def test_rights_go_with_the_served_name(address):
    _, X, y = items(address)
    name = psycopg.conninfo.conninfo_to_dict(address)["dbname"]  # roles are of all databases
    owner, reader, stranger = (f"{name} {role}" for role in ("owner", "reader", "stranger"))
    run(
        address,
        *(f'CREATE ROLE "{role}" LOGIN' for role in (owner, reader, stranger)),
        f'ALTER TABLE items OWNER TO "{owner}"',
        f'GRANT CREATE ON SCHEMA public TO "{owner}"',
        f'GRANT SELECT ON items TO "{reader}" WITH GRANT OPTION',
        f'GRANT UPDATE (text) ON items TO "{reader}"',
        f'ALTER DEFAULT PRIVILEGES FOR ROLE "{owner}" GRANT SELECT ON TABLES TO "{stranger}"',
    )

    def by(role):
        return address.replace("://postgres", f"://{role.replace(' ', '%20')}")

    def rights(table="items"):
        query = f"SELECT relowner, relacl FROM pg_class WHERE oid = '{table}'::regclass"
        query += f" UNION ALL SELECT attnum, attacl FROM pg_attribute WHERE attrelid = '{table}'::regclass"
        return {(number, *sorted(acl or [])) for number, acl in run(address, query)}

    def check():
        run(by(reader), "SELECT * FROM items", "UPDATE items SET text = text")
        for role, forbidden in ((reader, "UPDATE items SET id = id"), (stranger, "SELECT * FROM items")):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                run(by(role), forbidden)

    check()
    model = model_for(X, y, "l2")
    for who in (by(owner), address):  # the owner, and one who may do everything
        store, before = PgTable(who, "items"), rights()
        apply(model, store, "moved")
        assert rights("moved") == before
        run(address, f'GRANT DELETE ON items TO "{reader}"')
        if who == address:
            run(address, "ALTER TABLE items OWNER TO postgres")
        more = rights()
        promote(store, "moved")
        check()
        assert rights() == more != before
        run(address, f'REVOKE DELETE ON items FROM "{reader}"')
        less = rights()
        rollback(store)
        check()
        assert rights() == less != more
        run(address, "DROP TABLE moved")
    with pytest.raises(StoreError, match="permission denied"):
        apply(model, PgTable(by(reader), "items"), "moved")
    run(address, *(f'DROP OWNED BY "{role}"' for role in (owner, reader, stranger)))
    run(address, *(f'DROP ROLE "{role}"' for role in (owner, reader, stranger)))


# --- what is refused ---------------------------------------------------------------------------------------

TRIGGER = """CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER watch BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION keep()"""
PARTED = """DROP TABLE items; CREATE TABLE items (id bigint PRIMARY KEY, text text, embedding vector(8))
PARTITION BY HASH (id); CREATE TABLE a_part PARTITION OF items FOR VALUES WITH (MODULUS 1, REMAINDER 0)"""
FOREIGN = """CREATE FOREIGN DATA WRAPPER far; CREATE SERVER away FOREIGN DATA WRAPPER far; DROP TABLE items;
CREATE FOREIGN TABLE items (id bigint, text text, embedding vector(8)) SERVER away"""
TIES = [
    ("CREATE VIEW seen AS SELECT id FROM items", "view seen"),
    ("CREATE MATERIALIZED VIEW kept AS SELECT text FROM items", "view kept"),
    ("CREATE TABLE notes (item bigint REFERENCES items)", "notes_item_fkey"),
    ("ALTER TABLE items ADD parent bigint REFERENCES items", "items_parent_fkey"),
    ("CREATE FUNCTION of(items) RETURNS int LANGUAGE sql AS 'SELECT 1'", "function of"),
    ("CREATE TABLE child () INHERITS (items)", "inheritance.*child"),
    ("CREATE TABLE parent (text text); ALTER TABLE items INHERIT parent", "inheritance.*parent"),
    ("ALTER TABLE items ENABLE ROW LEVEL SECURITY", "row-level security"),
    ("CREATE POLICY mine ON items USING (id > 3)", "row-level security: mine"),
    ("CREATE RULE no AS ON DELETE TO items DO INSTEAD NOTHING", "rules: no"),
    ("CREATE PUBLICATION news FOR TABLE items", "published: news"),
    (TRIGGER, "triggers: watch"),
    (PARTED, "partitioned"),
    ("ALTER TABLE items RENAME TO rows; CREATE VIEW items AS SELECT * FROM rows", "a view"),
    (FOREIGN, "a foreign table"),
]


@pytest.mark.parametrize(("setup", "named"), TIES, ids=[named for _, named in TIES])
def test_what_a_renaming_would_leave_behind_is_refused(address, setup, named):
    items(address, n=30)
    store = PgTable(address, "items", id="id")
    run(address, setup)
    with pytest.raises(StoreError, match=named):
        store.beside("moved").begin(store, Mark("", store.name, "", False))
    assert not store.beside("moved").exists()


def test_what_came_between_is_refused(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply(model, store, "moved")
    run(address, "CREATE VIEW seen AS SELECT id FROM items")
    with pytest.raises(StoreError, match="view seen"):
        promote(store, "moved")
    assert store.mark() is None
    run(address, "DROP VIEW seen")
    promote(store, "moved")


def test_a_table_that_is_not_ours_is_left_alone(address):
    _, X, y = items(address)
    run(address, "CREATE TABLE moved AS SELECT * FROM items", "ALTER TABLE moved ADD PRIMARY KEY (id)")
    before, store, model = rows_of(address, "moved"), PgTable(address, "items"), model_for(X, y, "l2")
    for comment in ("NULL", "'a note'", '\'{"former": "moved"}\'', "'[1]'"):
        run(address, f"COMMENT ON COLUMN moved.embedding IS {comment}")
        with pytest.raises(StoreError, match="not made by hubless"):
            apply(model, store, "moved")
        assert store.beside("moved").mark() is None
    assert rows_of(address, "moved").keys() == before.keys()
    run(address, "CREATE SCHEMA other")
    with pytest.raises(StoreError, match="schema"):
        apply(model, store, "other.moved")
    with pytest.raises(StoreError, match="another database"):
        store.beside("postgresql://else@where/db#items")


def test_a_copy_of_a_promoted_table_is_not_rolled_back(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply(model, store, "moved")
    promote(store, "moved")
    run(address, "CREATE TABLE copied (LIKE items INCLUDING ALL)", "CREATE TABLE moved (a int)")
    with pytest.raises(StoreError, match="not promoted under this name"):
        rollback(store.beside("copied"))
    run(address, "ALTER TABLE items ADD more int")
    with pytest.raises(StoreError, match="changed"):
        rollback(store)
    run(address, "ALTER TABLE items DROP more", "CREATE VIEW seen AS SELECT id FROM items")
    with pytest.raises(StoreError, match="view seen"):
        rollback(store)
    run(address, "DROP VIEW seen", "CREATE TABLE items_original_2 (a int)")
    assert rollback(store)["moved_kept_as"] == "public.moved_2"
    run(address, "CREATE TABLE items_original (a int)")
    assert promote(store, "moved_2")["original"] == "public.items_original_3"
    assert rollback(store)["moved_kept_as"] == "public.moved_2"


@pytest.mark.parametrize(
    ("columns", "given", "match"),
    [
        ("id int PRIMARY KEY, a vector(3), b halfvec(3)", {}, "one column.*a, b"),
        ("id int PRIMARY KEY, a sparsevec(3), b bit(3)", {}, r"none but a \(sparsevec\), b \(bit\)"),
        ("id int PRIMARY KEY, a sparsevec(3)", {"vector": "a"}, "sparsevec"),
        ("id int PRIMARY KEY, a vector(3)", {"vector": "z"}, "no column 'z', but id, a"),
        ("id int PRIMARY KEY, a vector", {}, "no dimension"),
        ("id int, a vector(3)", {}, "primary key.*none"),
        ("id numeric PRIMARY KEY, a vector(3)", {}, "of type numeric"),
    ],
)
def test_what_cannot_be_told_is_asked_for(address, columns, given, match):
    run(address, f"CREATE TABLE t ({columns})")
    with pytest.raises(StoreError, match=match):
        PgTable(address, "t", **given).facts()


def test_the_metric_is_that_of_the_index(address):
    run(address, "CREATE TABLE t (id int PRIMARY KEY, a vector(3), b halfvec(3))")
    assert PgTable(address, "t", vector="a").facts().metric == "l2"
    assert PgTable(address, "t", vector="a", metric="ip").facts().metric == "ip"
    for column, kind, word in itertools.product("ab", ("hnsw", "ivfflat"), ("l2", "cosine", "ip")):
        type = {"a": "vector", "b": "halfvec"}[column]
        run(address, f"CREATE INDEX one ON t USING {kind} ({column} {type}_{word}_ops)")
        facts = PgTable(address, "t", vector=column).facts()
        assert (facts.metric, facts.index) == (word, kind.upper())
        run(address, "DROP INDEX one")
    run(address, "CREATE INDEX ON t USING hnsw (a vector_l2_ops)")
    with pytest.raises(StoreError, match="index for l2, the metric given is cosine"):
        PgTable(address, "t", vector="a", metric="cosine").facts()
    run(address, "CREATE INDEX ON t USING hnsw (a vector_ip_ops)")
    with pytest.raises(StoreError, match="ip and for l2"):
        PgTable(address, "t", vector="a").facts()
    assert PgTable(address, "t", vector="a", metric="ip").facts().metric == "ip"
    run(address, "CREATE INDEX ON t USING hnsw (b halfvec_l1_ops)")
    with pytest.raises(StoreError, match="halfvec_l1_ops"):
        PgTable(address, "t", vector="b").facts()
    with pytest.raises(StoreError, match="'l1'"):
        PgTable(address, "t", metric="l1")


def test_an_index_of_half_precision_and_an_extension_elsewhere(address):
    run(address, "DROP EXTENSION vector", "CREATE SCHEMA ext", "CREATE EXTENSION vector SCHEMA ext")
    index = "hnsw ((embedding::ext.halfvec(8)) ext.halfvec_cosine_ops)"
    ids, X, y = items(address, type="ext.vector", index=index)
    store, model = PgTable(address, "items"), model_for(X, y, "cosine")
    assert store.facts().metric == "cosine"
    apply(model, store, "moved")
    promote(store, "moved")
    database = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
    run(address, f"ALTER DATABASE {database} SET enable_seqscan = off")  # a table this small is read whole
    queries = unit(X[:10] + 0.1)
    assert overlap(store.search(queries, 3), exact(ids, model.move(X), queries, 3, "cosine")) >= 0.9
    used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'items_emb%'"
    end = time.monotonic() + 20
    while run(address, used) != [(10,)] and time.monotonic() < end:
        time.sleep(0.05)  # a session counts when it has ended
    assert run(address, used) == [(10,)]


def test_vectors_of_one_dimension_that_no_column_names(address):
    _, X, y, _ = sample(30)
    run(address, "CREATE TABLE items (id int PRIMARY KEY, text text, embedding vector)")
    fill(address, ("public", "items"), ("id", "embedding"), [(i, told(x)) for i, x in enumerate(X)])
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    assert store.facts().dimension == 8
    apply(model, store, "moved")
    check_moved(address, model)
    run(address, "INSERT INTO items VALUES (77, '', '[1,2]')")
    with pytest.raises(StoreError, match="one dimension"):
        apply(model, store, "moved")


def test_ids_and_vectors_alone(address):
    _, X, y, _ = sample(30)
    run(address, "CREATE TABLE items (embedding vector(8), id smallint PRIMARY KEY)")
    fill(address, ("public", "items"), ("id", "embedding"), [(i, told(x)) for i, x in enumerate(X)])
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    assert store.fetch([10**9, 3]).ids.tolist() == [3]
    assert apply(model, store, "moved")["written"] == 30
    assert apply(model, store, "moved")["written"] == 0
    np.testing.assert_allclose(store.beside("moved").fetch([4]).vectors, model.move(X[[4]]), rtol=1e-5)
    with pytest.raises(StoreError, match="no column text"):
        store.fetch([3], ["text"])


def test_numbers_that_a_column_cannot_hold(address):
    ids, X, y = items(address, type="halfvec")
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    green = store.beside("moved")
    green.begin(store, Mark(model.hash, store.name, "", False))
    batch = store.fetch(ids[:2].tolist())
    with pytest.raises(StoreError, match="cannot hold"):
        green.write(batch, np.full((2, 8), 1e6, np.float32))
    assert rows_of(address, "moved") == {}


def test_no_password_is_ever_shown(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply(model, store, "moved")
    kept = promote(store, "moved")
    shown = [
        store.name,
        repr(store),
        repr(store.beside("a")),
        str(kept),
        str(store.mark()),
        str(store.facts()),
    ]
    shown += [
        repr(vars(store)),
        str(run(address, "SELECT description FROM pg_description WHERE objoid > 16384")),
    ]
    for wrong in (
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql://me:{PASSWORD}@127.0.0.1:one/db",
        f"postgresql://me@127.0.0.1:1/db?password={PASSWORD}",
        f"postgresql://127.0.0.1:{PASSWORD}@x/db",
        f"postgresql://me:{PASSWORD}@[x/db",
        f"postgresql://me:{PASSWORD}@x/db#items",
        f"postgresql://me:a@{PASSWORD}@x/db",
        f"postgresql://me:a/{PASSWORD}@x/db",
        f"postgresql://me:a?{PASSWORD}@x/db",
        f"postgresql://me:{PASSWORD}/a@x/db",
        f"host=x password={PASSWORD}",
        address.replace("://postgres", "://nobody"),
    ):
        with pytest.raises(StoreError) as caught:
            PgTable(wrong, "items").facts()
        shown += [str(caught.value), repr(caught.value.__cause__)]
        assert caught.value.__cause__ is None
    with pytest.raises(StoreError) as caught:
        store.beside("missing").facts()
    assert not any(PASSWORD in text for text in [*shown, str(caught.value)])
    with pytest.raises(StoreError, match=r"\*\*\*"):  # the server names the host, which is the password here
        PgTable("postgresql://me:127.0.0.1@127.0.0.1:1/db", "items").facts()
    assert store.name.startswith("postgresql://postgres@")
    assert store.name.endswith("#public.items")
    assert PgTable(f"postgresql://me:{PASSWORD}@h:5/db", "a.B").name == 'postgresql://me@h:5/db#a."B"'
