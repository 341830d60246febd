"""Fixtures of several modules."""

from tests.stores.chroma_server import one_chroma_server
from tests.stores.postgres import fresh_database, one_server

__all__ = ["fresh_database", "one_chroma_server", "one_server"]
