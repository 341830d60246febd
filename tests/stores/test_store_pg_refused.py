"""Tables of PostgreSQL: what is refused, what must be named, and no password in any message."""

import itertools

import psycopg
import pytest

from hubless.repair.apply import apply_index, promote_index
from hubless.stores.postgres import pg_locking
from hubless.stores.postgres.pg_table import PgTable
from hubless.stores.store import StoreError
from hubless.testing.store_cases import model_for, sample
from tests.stores.pg_cases import items, rows_of, run
from tests.stores.postgres import PASSWORD

pytestmark = pytest.mark.services


def test_a_table_that_is_not_ours_is_left_alone(address):
    _, X, y = items(address)
    run(address, "CREATE TABLE moved AS SELECT * FROM items", "ALTER TABLE moved ADD PRIMARY KEY (id)")
    before, store, model = rows_of(address, "moved"), PgTable(address, "items"), model_for(X, y, "l2")
    for comment in ("NULL", "'a note'", '\'{"former": "moved"}\'', "'[1]'"):
        run(address, f"COMMENT ON COLUMN moved.embedding IS {comment}")
        with pytest.raises(StoreError, match="not made by hubless"):
            apply_index(model, store, "moved")
        assert store.sibling("moved").mark() is None
    assert rows_of(address, "moved").keys() == before.keys()
    run(address, "CREATE SCHEMA other")
    with pytest.raises(StoreError, match="schema"):
        apply_index(model, store, "other.moved")
    with pytest.raises(StoreError, match="not in the database"):
        store.sibling("postgresql://else@where/db#items")


@pytest.mark.parametrize(
    ("columns", "given", "match"),
    [
        ("id int PRIMARY KEY, a vector(3), b halfvec(3)", {}, r"one column.*a \(vector\), b \(halfvec\)"),
        ("id int PRIMARY KEY, a sparsevec(3), b bit(3)", {}, r"one column.*a \(sparsevec\), b \(bit\)"),
        ("id int PRIMARY KEY, a sparsevec(3)", {"vector": "a"}, "sparsevec"),
        (
            "id int PRIMARY KEY, a vector(3)",
            {"vector": "z"},
            r"a column 'z' of type vector.*it has id \(int4\), a",
        ),
        ("id int PRIMARY KEY, a vector", {}, "no fixed dimension"),
        ("id int, a vector(3)", {}, "primary key.*none"),
        ("id numeric PRIMARY KEY, a vector(3)", {}, "of type numeric"),
    ],
)
def test_what_cannot_be_guessed_must_be_named(address, columns, given, match):
    run(address, f"CREATE TABLE t ({columns})")
    with pytest.raises(StoreError, match=match):
        PgTable(address, "t", **given).facts()


def test_the_metric_is_that_of_the_index(address):
    run(address, "CREATE TABLE t (id int PRIMARY KEY, a vector(3), b halfvec(3))")
    assert PgTable(address, "t", vector="a").facts().metric == "l2"
    assert PgTable(address, "t", vector="a", metric="ip").facts().metric == "ip"
    for column, kind, metric in itertools.product("ab", ("hnsw", "ivfflat"), ("l2", "cosine", "ip")):
        type = {"a": "vector", "b": "halfvec"}[column]
        run(address, f"CREATE INDEX one ON t USING {kind} ({column} {type}_{metric}_ops)")
        facts = PgTable(address, "t", vector=column).facts()
        assert (facts.metric, facts.index) == (metric, kind.upper())
        run(address, "DROP INDEX one")
    run(address, "CREATE INDEX ON t USING hnsw (a vector_l2_ops)")
    with pytest.raises(StoreError, match="index for l2; got metric='cosine'"):
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


@pytest.mark.parametrize("write", [True, False])
def test_a_switch_does_not_wait_forever(address, monkeypatch, write):
    items(address, n=5)
    store, model = PgTable(address, "items"), model_for(*sample()[1:3], "l2")
    apply_index(model, store, "moved")
    monkeypatch.setattr(pg_locking, "TIMEOUTS", dict.fromkeys(pg_locking.TIMEOUTS, 0.2))
    before = rows_of(address)
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE items SET text = text" if write else "SELECT * FROM items")
        with pytest.raises(StoreError, match=r"in use.*Nothing was changed"):
            promote_index(store, "moved")
    assert rows_of(address).keys() == before.keys()
    assert store.mark() is None
    promote_index(store, "moved", model)  # the same values were written, but written they were


def test_no_password_is_ever_shown(address):
    _, X, y = items(address)
    store, model = PgTable(address, "items"), model_for(X, y, "l2")
    apply_index(model, store, "moved")
    kept = promote_index(store, "moved")
    shown = [
        store.name,
        repr(store),
        repr(store.sibling("a")),
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
        store.sibling("missing").facts()
    assert not any(PASSWORD in text for text in [*shown, str(caught.value)])
    with pytest.raises(StoreError, match=r"\*\*\*"):  # the message names the host, which is the password here
        PgTable("postgresql://me:127.0.0.1@127.0.0.1:1/db", "items").facts()
    assert store.name.startswith("postgresql://postgres@")
    assert store.name.endswith("#public.items")
    assert PgTable(f"postgresql://me:{PASSWORD}@h:5/db", "a.B").name == 'postgresql://me@h:5/db#a."B"'
