"""Sessions with a PostgreSQL server: one transaction each, and no password in any message."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from ...support.imports import need
from ..store import StoreError

SCHEMES = ("postgresql://", "postgres://")

# For one transaction: a row has the same text for all users; rows come in one order; no time limits.
SETTINGS = """
SELECT set_config('datestyle', 'ISO', true), set_config('intervalstyle', 'postgres', true),
       set_config('timezone', 'UTC', true), set_config('bytea_output', 'hex', true),
       set_config('extra_float_digits', '1', true), set_config('synchronize_seqscans', 'off', true),
       set_config('idle_in_transaction_session_timeout', '0', true),
       set_config('statement_timeout', '0', true)
"""


class Server:
    """A database of a server, by its address postgresql://user:password@host:port/database."""

    place: str  # the address without the password and without options

    def __init__(self, address: str) -> None:
        psycopg = need("psycopg", "pgvector")
        try:
            if not address.startswith(SCHEMES) or "#" in address:
                raise ValueError
            values = psycopg.conninfo.conninfo_to_dict(address)
            user, host, port, name = (str(values.get(key, "")) for key in ("user", "host", "port", "dbname"))
            if "@" in host + name or not re.fullmatch("[0-9,]*", port):  # a password with @ or / was split
                raise ValueError
        except (ValueError, psycopg.Error):  # whose message may show a part of the password too
            raise StoreError(
                "the address of the server cannot be read: expected postgresql://user:password@host:port/db, "
                "with @ as %40 and / as %2F in a password."
            ) from None
        user, host, name = (quote(part, safe=",") for part in (user, host, name))
        self.place = f"postgresql://{user}{'@' if user else ''}{host}{':' if port else ''}{port}/{name}"
        self._address = address
        self._secrets = [str(values[key]) for key in ("password", "sslpassword") if values.get(key)]

    @contextmanager
    def session(self, name: str, *, is_snapshot: bool = False, autocommit: bool = False) -> Iterator[Any]:
        """Open a transaction on the table `name`; errors of the server become StoreErrors."""
        psycopg = need("psycopg", "pgvector")
        try:
            with psycopg.connect(self._address, autocommit=autocommit) as connection:
                if is_snapshot:
                    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                    connection.read_only = True
                connection.execute(SETTINGS)
                yield connection
        except psycopg.Error as error:
            advice = "The original is untouched; remove the cause and run the same command again"
            problem = "reports an error"
            if isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)):
                problem, advice = "is in use", "Nothing was changed; try again when it is less busy"
            elif isinstance(error, psycopg.OperationalError):
                problem = "cannot be reached, or the connection was lost"
            text = error.diag.message_primary or " ".join(str(error).split())
            for secret in self._secrets:
                text = text.replace(secret, "***")
            raise StoreError(f"{name} {problem}: {text.rstrip('.')}. {advice}.") from None
