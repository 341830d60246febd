"""A database for the tests that need one, where PostgreSQL is installed."""

try:
    from tests.stores.postgres import fresh_database, one_server
except ImportError:  # the small environment of `make test` has none, and leaves these tests out
    __all__ = []
else:
    __all__ = ["fresh_database", "one_server"]  # fixtures
