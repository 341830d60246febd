"""Servers for the tests that need one, where their packages are installed."""

try:
    from tests.stores.chroma_server import one_chroma_server
    from tests.stores.postgres import fresh_database, one_server
except ImportError:  # the small environment of `make test` has none, and leaves these tests out
    __all__ = []
else:
    __all__ = ["fresh_database", "one_chroma_server", "one_server"]  # fixtures
