"""Fixtures of several modules."""

from tests.stores.postgres import fresh_database, one_server

__all__ = ["fresh_database", "one_server"]
