"""Tables of PostgreSQL among users who plant functions, tables and marks; nothing of theirs is believed."""

import json

import numpy as np
import psycopg
import pytest

from hubless.repair.apply import apply_index, index_status, promote_index, rollback_index
from hubless.stores.postgres import pg_rows
from hubless.stores.postgres.pg_table import PgTable
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.killer import killed_at
from tests.stores.pg_cases import as_text, check_moved, items, rows_of, run
from tests.stores.test_store_pg_faults import OTHERS, count_steps

pytestmark = pytest.mark.services


@pytest.fixture
def mallory(address):
    """Return another role, who may create tables in the schema."""
    name = f"mallory {psycopg.conninfo.conninfo_to_dict(address)['dbname']}"  # roles are of all databases
    run(address, f'CREATE ROLE "{name}" LOGIN', f'GRANT CREATE ON SCHEMA public TO "{name}"')
    yield name
    run(address, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")
    run(address, f'DROP OWNED BY "{name}"', f'DROP ROLE "{name}"')


def set_comment(address, table, text):
    with psycopg.connect(address) as connection:
        statement = f"COMMENT ON COLUMN {table}.embedding IS {{}}"
        connection.execute(psycopg.sql.SQL(statement).format(psycopg.sql.Literal(text)))


def comment_of(address, table):
    (text,) = run(
        address,
        "SELECT col_description(attrelid, attnum) FROM pg_attribute "
        f"WHERE attrelid = '{table}'::regclass AND attname = 'embedding'",
    )[0]
    return json.loads(text)


def tables_of(address):
    return run(
        address,
        "SELECT oid, relname, relnamespace::regnamespace::text, pg_get_userbyid(relowner) FROM pg_class "
        "WHERE relkind = 'r' AND relname !~ '^(pg_|sql_)' ORDER BY 1",
    )


# Each fits a call of hubless better than the function or operator that is meant, if it is found.
FUNCTIONS = [
    ("hashtextextended(text, int)", "bigint", "1"),
    ("concat(bigint, text, xid)", "text", "''"),
    ("age(bigint)", "int", "1"),
    ("set_config(text, text, text)", "text", "''"),
    ("pg_try_advisory_lock(numeric)", "boolean", "true"),
    ("sum(bigint)", "numeric", "1"),
    ("to_regclass(varchar)", "regclass", "NULL"),
]
OPERATOR = """CREATE FUNCTION same(int8, int4) RETURNS boolean LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.proof VALUES (''=''); RETURN true; END';
CREATE OPERATOR = (LEFTARG = int8, RIGHTARG = int4, FUNCTION = same);
CREATE OPERATOR <-> (LEFTARG = vector, RIGHTARG = text, FUNCTION = near)"""


def test_functions_of_others_are_never_called(address):
    _, X, y = items(address, id_type="int")
    run(address, "CREATE TABLE proof (by text)")
    for call, result, value in FUNCTIONS:
        body = f"BEGIN INSERT INTO public.proof VALUES ('{call}'); RETURN {value}; END"
        quoted = body.replace("'", "''")
        run(address, f"CREATE FUNCTION public.{call} RETURNS {result} LANGUAGE plpgsql AS '{quoted}'")
    near = "BEGIN INSERT INTO public.proof VALUES (''<->''); RETURN 1; END"
    run(
        address,
        f"CREATE FUNCTION near(vector, text) RETURNS float8 LANGUAGE plpgsql AS '{near}'",
        OPERATOR,
    )
    database = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
    run(address, f"ALTER DATABASE {database} SET search_path = public, pg_catalog")
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    run(address, f"INSERT INTO public.items VALUES (-1, 'late', '{as_text(X[0])}')")
    promote_index(store, "moved", model)
    store.search(X[:2], 3)
    index_status(store)
    rollback_index(store)
    assert run(address, "SELECT * FROM public.proof") == []


def test_a_type_of_another_name_space_is_no_vector(address):
    run(
        address,
        "CREATE SCHEMA evil",
        "CREATE DOMAIN evil.vector AS text",
        "CREATE DOMAIN evil.int8 AS text",
        "CREATE TABLE one (id int PRIMARY KEY, embedding evil.vector)",
        "CREATE TABLE two (id evil.int8 PRIMARY KEY, embedding vector(3))",
    )
    with pytest.raises(StoreError, match="one column of type vector"):
        PgTable(address, "one").facts()
    with pytest.raises(StoreError, match="of type int8"):
        PgTable(address, "two").facts()


TRAP = """CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.proof VALUES (current_user); RETURN NEW; END';
CREATE TRIGGER trap BEFORE INSERT OR DELETE ON moved FOR EACH ROW EXECUTE FUNCTION trap()"""
TRAPS = [
    (TRAP, "has triggers: trap"),
    ("ALTER TABLE moved ENABLE ROW LEVEL SECURITY", "row-level security"),
    ("CREATE RULE trap AS ON INSERT TO moved DO ALSO INSERT INTO proof VALUES (current_user)", "rules: trap"),
    ("CREATE TABLE child () INHERITS (moved)", "inheritance"),
    ("ALTER TABLE moved RENAME TO hidden; CREATE VIEW moved AS SELECT * FROM hidden", "not a plain table"),
]


@pytest.mark.parametrize(("trap", "named"), TRAPS, ids=[named for _, named in TRAPS])
def test_a_trap_in_the_moved_table_is_refused(address, trap, named):
    _, X, y = items(address)
    store, model = PgTable(address, "items", id="id"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    comment = json.dumps(comment_of(address, "moved"))
    run(address, "CREATE TABLE proof (by text)", trap)
    set_comment(address, "moved", comment)
    run(address, f"INSERT INTO items VALUES (-1, 'late', '{as_text(X[0])}')")
    before = tables_of(address)
    for verb in (
        lambda: promote_index(store, "moved"),
        lambda: promote_index(store, "moved", model),
        lambda: apply_index(model, store, "moved"),
    ):
        with pytest.raises(StoreError, match=named):
            verb()
    assert tables_of(address) == before
    assert run(address, "SELECT * FROM proof") == []


def test_a_table_of_another_role_is_not_written_to_nor_promoted(address, mallory):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    comment = json.dumps(comment_of(address, "moved"))
    run(
        address,
        "DROP TABLE moved",
        f'SET SESSION AUTHORIZATION "{mallory}"',
        "CREATE TABLE moved (id bigint PRIMARY KEY, text text, embedding vector(8))",
    )
    set_comment(address, "moved", comment)
    for verb in (lambda: promote_index(store, "moved", model), lambda: apply_index(model, store, "moved")):
        with pytest.raises(StoreError, match=r"belongs to mallory .*, and public\.items to postgres"):
            verb()
    assert rows_of(address, "moved") == {}


def test_a_mark_cannot_make_rollback_take_a_table_of_others(address, mallory):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    promote_index(store, "moved")
    run(
        address,
        "CREATE TABLE secret (LIKE items_original INCLUDING ALL)",
        "CREATE SCHEMA other",
        "CREATE TABLE other.items (LIKE items_original INCLUDING ALL)",
        f'ALTER TABLE items OWNER TO "{mallory}"',
    )
    mark = comment_of(address, "items")
    for original, named in (
        ("public.secret", "belongs to postgres"),
        ("other.items", "in the schema of"),
        ("public.items", "another table"),
        ("public.no_such", "no table public.no_such"),
        ("public.\udfff", "nothing to roll back"),
        ("a.b.c.d", "not a table name"),
        ("x" * 70, "63 bytes"),
    ):
        set_comment(address, "items", json.dumps({**mark, "original": original}))
        before = tables_of(address)
        with pytest.raises(StoreError, match=named):
            rollback_index(store)
        assert tables_of(address) == before
    run(address, "ALTER TABLE items OWNER TO postgres", "ALTER TABLE items_original SET SCHEMA other")
    set_comment(address, "items", json.dumps({**mark, "original": "other.items_original"}))
    with pytest.raises(StoreError, match="in the schema of"):
        rollback_index(store)
    run(address, "ALTER TABLE other.items_original SET SCHEMA public")
    for former in ("'; DROP TABLE items; --", "", "\0", "\udcff", "é" * 99, "moved"):
        set_comment(address, "items", json.dumps({**mark, "former": former}))
        if former in ("\0", "\udcff"):  # what the server cannot have written is no mark
            assert store.mark() is None
            continue
        kept = rollback_index(store)["moved_kept_as"]
        assert len(rows_of(address)) == 60
        promote_index(store, kept)
    check_moved(address, model, "items_original", "items")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10**5,
        '{"hubless": 1, "model": ' + "[" * 10**5,
        json.dumps({"hubless": 1, "model": "m" * 10**7, "source": "s", "state": "", "done": True}),
        json.dumps({"hubless": 1, "model": 7, "source": "s", "state": "", "done": True}),
        json.dumps({"hubless": 1, "model": "m", "source": ["s"], "state": {}, "done": True}),
        json.dumps({"hubless": 1, "model": "m", "source": "s", "state": "", "done": True, "since": 5}),
        json.dumps({"hubless": 1, "model": "m", "source": "s", "state": "", "done": True, "width": 10**30}),
        '{"hubless": 1, "model": NaN}',
    ],
    ids=["brackets", "model of brackets", "huge", "number", "list", "since", "width", "nan"],
)
def test_a_comment_that_is_no_mark_is_no_mark(address, text):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    set_comment(address, "moved", text)
    for verb in (lambda: promote_index(store, "moved", model), lambda: apply_index(model, store, "moved")):
        with pytest.raises(StoreError, match=r"not made by hubless|was made from|is .* moved by model"):
            verb()
    index_status(store.sibling("moved"))
    set_comment(address, "items", text)
    index_status(store)
    assert len(rows_of(address)) == 60


def test_a_mark_that_changes_while_it_is_built_gives_no_other_rows(address, monkeypatch):
    """Whoever owns the moved table could else have rows of any table copied into it."""
    _, X, y = items(address)
    run(address, "CREATE TABLE secret (LIKE items INCLUDING ALL)", "INSERT INTO secret SELECT * FROM items")
    run(address, "UPDATE secret SET text = 'secret'")
    store, model, differing = PgTable(address, "items"), model_for(X, y, "l2"), pg_rows.differing

    def change_and_compare(*arguments):
        set_comment(address, "moved", json.dumps({**comment_of(address, "moved"), "source": "public.secret"}))
        return differing(*arguments)

    monkeypatch.setattr(pg_rows, "differing", change_and_compare)
    apply_index(model, store, "moved")
    check_moved(address, model)


def test_a_moved_table_in_another_schema_is_refused(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    run(address, "CREATE SCHEMA other", "ALTER TABLE moved SET SCHEMA other")
    before = tables_of(address)
    with pytest.raises(StoreError, match="in the schema of"):
        promote_index(store, "other.moved", model)
    assert tables_of(address) == before


def test_rows_that_others_wrote_into_the_moved_table_are_noticed(address):
    ids, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    for change in (
        f"DELETE FROM moved WHERE id = {ids[3]}",
        f"UPDATE moved SET text = 'other' WHERE id = {ids[3]}",
        "INSERT INTO moved VALUES (-7, 'other')",
    ):
        apply_index(model, store, "moved")
        run(address, change)
        for given in ((), (model,)):
            with pytest.raises(StoreError, match="rows that others wrote"):
                promote_index(store, "moved", *given)
        run(address, "DROP TABLE moved")


def test_names_that_cannot_be_sent(address):
    items(address)
    for name in ("a\0b", "\udcff", "", "a.b.c"):
        with pytest.raises(StoreError, match="not a table name"):
            PgTable(address, name)


def promote_in_a_process(address):
    _, X, y, _ = sample(60)
    promote_index(PgTable(address, "items"), "moved", model_for(X, y, "l2"))


@pytest.mark.faults
def test_a_promote_that_was_killed_did_nothing_or_all(address, monkeypatch):
    _, X, y = items(address)
    model, store, steps = model_for(X, y, "l2"), PgTable(address, "items"), []

    def counted(step):
        return lambda *args, **options: (steps.append(1), step(*args, **options))[1]

    def late(number):
        run(address, f"INSERT INTO items VALUES ({-number}, 'late', '{as_text(X[number % 60])}')")

    apply_index(model, store, "moved")
    late(1)
    with monkeypatch.context() as patch:
        count_steps(counted, patch.setattr)
        promote_index(store, "moved", model)
    rollback_index(store)
    moments = np.unique(np.linspace(0, len(steps) - 1, 12).astype(int)).tolist()
    for number, moment in enumerate(moments, 2):
        late(number)
        n_rows = len(rows_of(address))
        killed_at(moment, count_steps, promote_in_a_process, address)
        served = "items_original" if store.mark() is None else "items"
        if served == "items_original":
            assert index_status(store)["status"] == "original"
            promote_index(store, "moved", model)
        check_moved(address, model, "items_original", "items")
        assert len(rows_of(address)) == n_rows
        rollback_index(store)


def test_two_promotes_at_once(address):
    """Both have passed the first checks; the second finds that the name serves another table."""
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    for green in ("moved", "other"):
        apply_index(model, store, green)

    class Second(PgTable):
        def _switch(self, *arguments):
            promote_index(store, "other")
            return super()._switch(*arguments)

    with pytest.raises(StoreError, match="changed since"):
        promote_index(Second(address, "items"), "moved", model)
    check_moved(address, model, "items_original", "items")
    with pytest.raises(StoreError, match="moved already"):
        promote_index(store, "moved", model)
    rollback_index(store)
    with pytest.raises(StoreError, match="nothing to roll back"):
        rollback_index(store)
