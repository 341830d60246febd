"""Addresses of PostgreSQL: what libpq calls a secret is not shown, and the rest connects as it was typed."""

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hubless.stores.opening import open_store
from hubless.stores.postgres.pg_session import Server
from hubless.stores.postgres.pg_table import PgTable
from hubless.stores.store import StoreError
from hubless.support.credentials import without_secrets
from tests.stores.pg_cases import items
from tests.stores.postgres import PASSWORD

pytestmark = pytest.mark.services

OPTIONS = psycopg.pq.Conninfo.get_defaults()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.keyword.decode())
def test_secrets_are_those_of_libpq(option):
    """It marks them by a `*`; keys of SCRAM, which newer versions have, are for its own use."""
    name = option.keyword.decode()
    source = f"postgresql://me@h/db?connect_timeout=1&{name}=1#t"
    is_secret = option.dispchar == b"*" or name in ("scram_client_key", "scram_server_key")
    assert (f"{name}=1" not in without_secrets(source)) == is_secret


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{PASSWORD}@h:5/db?sslmode=require&options=-c%20search_path%3Dapp&sslkey=/k",
        f"postgresql://me:{PASSWORD}@a:1,b:2/db?target_session_attrs=read-write&sslpassword={PASSWORD}",
        f"postgresql:///db?host=/run/pg&port=5&user=m%40e&password={PASSWORD}",
        f"postgresql://me:%40{PASSWORD}%2F@[::1]:5/db?application_name=a%26b",
        f"postgresql://me:{PASSWORD}@/db?service=shop&passfile=/p",
    ],
)
def test_the_rest_connects_as_it_was_typed(address):
    shown = without_secrets(f"{address}#t").removesuffix("#t")
    assert PASSWORD not in shown
    values = conninfo_to_dict(address)
    kept = {key: value for key, value in values.items() if key not in ("password", "sslpassword")}
    assert conninfo_to_dict(shown) == kept


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("postgresql://me@h:5/db?sslmode=require", "postgresql://me@h:5/db"),
        ("postgresql://a:1,b:2/db", "postgresql://a:1,b:2/db"),
        ("postgresql://a,b/db?port=5", "postgresql://a:5,b:5/db"),
        ("postgresql:///?service=a%20shop", "postgresql:///?service=a%20shop"),
        ("postgresql:///db?hostaddr=127.0.0.1&host=x", "postgresql://x/db?hostaddr=127.0.0.1"),
        ("postgres://me@[::1]/d%2Fb", "postgresql://me@%3A%3A1/d%2Fb"),
    ],
)
def test_a_place_names_one_database(address, place):
    """In one spelling, which is an address again."""
    assert Server(address).place == Server(place).place == place
    table = open_store(f"{address}#items")
    assert table.sibling(table.name).name == table.name


def test_no_spelling_of_a_password_is_in_an_error(monkeypatch):
    """An engine that repeats the address in its message, decoded or as it was typed."""
    address = "postgresql://me:p%40ss%77ord@h/db?sslpassword=s%65cond"

    def fail(given, **_):
        raise psycopg.OperationalError(f"{given} p@ssword p%40ssword second")

    monkeypatch.setattr(psycopg, "connect", fail)
    with pytest.raises(StoreError) as caught:
        PgTable(address, "items").facts()
    assert not [text for text in ("p@ss", "p%40", "%77", "s%65", "second") if text in str(caught.value)]


def test_a_service_file_names_the_server(address, tmp_path, monkeypatch):
    items(address, n=20)
    lines = ["[a shop]", *(f"{key}={value}" for key, value in conninfo_to_dict(address).items())]
    (tmp_path / "service.conf").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "service.conf"))
    store = open_store("postgresql:///?service=a%20shop#items")
    assert store.facts().count == 20
    assert store.name == "postgresql:///?service=a%20shop#public.items"


@pytest.mark.parametrize(
    ("table", "moved"),
    [
        ("items", "items_moved"),
        ("app.items", "items_moved"),
        ('app."My ""Table"""', '"My ""Table""_moved"'),
        ("x" * 63, "x" * 57 + "_moved"),
        ("é" * 31, '"' + "é" * 28 + '_moved"'),
    ],
)
def test_the_moved_table_has_a_name_that_can_be_typed(table, moved):
    store = PgTable("postgresql://h/db", table)
    assert store.moved_name == moved
    assert store.sibling(moved)._path[0] == store._path[0]
