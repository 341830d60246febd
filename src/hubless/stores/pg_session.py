"""Sessions with a PostgreSQL server: one transaction each, and no password in what they tell."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from .store import StoreError, need

SCHEMES = ("postgresql://", "postgres://")

# For one transaction: a row has one text, whoever asks; rows come in one order; nothing is too slow.
SETTINGS = """
SELECT set_config('datestyle', 'ISO', true), set_config('intervalstyle', 'postgres', true),
       set_config('timezone', 'UTC', true), set_config('bytea_output', 'hex', true),
       set_config('extra_float_digits', '1', true), set_config('synchronize_seqscans', 'off', true),
       set_config('idle_in_transaction_session_timeout', '0', true),
       set_config('statement_timeout', '0', true)
"""


class Server:
    """A database of a server.

    Parameters
    ----------
    address : str
        postgresql://user:password@host:port/database
    """

    place: str  # the address without the password and without options

    def __init__(self, address: str) -> None:
        psycopg = need("psycopg", "pgvector")
        try:
            if not address.startswith(SCHEMES) or "#" in address:
                raise ValueError
            told = psycopg.conninfo.conninfo_to_dict(address)
            user, host, port, name = (str(told.get(key, "")) for key in ("user", "host", "port", "dbname"))
            if "@" in host + name or not re.fullmatch("[0-9,]*", port):  # pieces of a password with @ or /
                raise ValueError
        except (ValueError, psycopg.Error):  # whose message may hold such a piece too
            raise StoreError(
                "the address of the server cannot be read: expected postgresql://user:password@host:port/db, "
                "with @ as %40 and / as %2F in a password."
            ) from None
        user, host, name = (quote(part, safe=",") for part in (user, host, name))
        self.place = f"postgresql://{user}{'@' if user else ''}{host}{':' if port else ''}{port}/{name}"
        self._address = address
        self._secrets = [str(told[key]) for key in ("password", "sslpassword") if told.get(key)]

    def __repr__(self) -> str:
        return f"Server({self.place!r})"

    @contextmanager
    def session(self, name: str, *, is_snapshot: bool = False, autocommit: bool = False) -> Iterator[Any]:
        """A transaction on the table `name`; what the server cannot do becomes a StoreError."""
        psycopg = need("psycopg", "pgvector")
        try:
            with psycopg.connect(self._address, autocommit=autocommit) as connection:
                if is_snapshot:
                    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                    connection.read_only = True
                connection.execute(SETTINGS)
                yield connection
        except psycopg.Error as error:
            advice = "The original is untouched; run the same again, it goes on where it was"
            told = "cannot do this"
            if isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)):
                told, advice = "is in use", "Nothing was changed; try again when fewer use it"
            elif isinstance(error, psycopg.OperationalError):
                told = "cannot be reached, or no longer"
            text = error.diag.message_primary or " ".join(str(error).split())
            for secret in self._secrets:
                text = text.replace(secret, "***")
            raise StoreError(f"{name} {told}: {text.rstrip('.')}. {advice}.") from None
