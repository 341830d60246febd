"""Sessions with a PostgreSQL server: one transaction each, and no password in any message."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from ...support.credentials import secrets_in
from ...support.imports import need
from ..store import StoreError

SCHEMES = ("postgresql://", "postgres://")
QUERY_CANCELED = "57014"  # by a time limit, or by an administrator

# For one transaction. Functions and operators without a schema are the server's own, never those that another
# user put into a schema of the search path; a row has the same text for all users; rows come in one order;
# no time limits.
SETTINGS = ", ".join(
    f"pg_catalog.set_config('{name}', '{value}', true)"
    for name, value in {
        "search_path": "pg_catalog, pg_temp",
        "datestyle": "ISO",
        "intervalstyle": "postgres",
        "timezone": "UTC",
        "bytea_output": "hex",
        "extra_float_digits": "1",
        "synchronize_seqscans": "off",
        "idle_in_transaction_session_timeout": "0",
        "statement_timeout": "0",
    }.items()
)


class InUse(StoreError):
    """A lock could not be had: others use the table. Nothing was changed."""


class Server:
    """A database of a server, by its address postgresql://user:password@host:port/database."""

    place: str  # which database it is: the address without secrets, and without options such as sslmode

    def __init__(self, address: str) -> None:
        psycopg = need("psycopg", "pgvector")
        try:
            if not address.startswith(SCHEMES) or "#" in address:
                raise ValueError
            values = psycopg.conninfo.conninfo_to_dict(address)
            user, host, port, name = (str(values.get(key, "")) for key in ("user", "host", "port", "dbname"))
            options = psycopg.pq.Conninfo.parse(address.encode())
            if "@" in host + name or not re.fullmatch("[0-9,]*", port):  # a password with @ or / was split
                raise ValueError
        except (ValueError, psycopg.Error):  # whose message may show a part of the password too
            raise StoreError(
                "the address of the server cannot be read: expected postgresql://user:password@host:port/db, "
                "with @ as %40 and / as %2F in a password."
            ) from None
        user, name = quote(user, safe=","), quote(name, safe=",")
        self.place = f"postgresql://{user}{'@' if user else ''}{_hosts(host, port)}/{name}"
        elsewhere = {key: values[key] for key in ("service", "hostaddr") if key in values}
        self.place += f"?{urlencode(elsewhere, quote_via=quote)}" if elsewhere else ""
        self._address = address
        hidden = {option.val.decode() for option in options if option.val and option.dispchar == b"*"}
        self._secrets = {*secrets_in(address), *hidden, *(quote(text, safe="") for text in hidden)}

    @contextmanager
    def session(
        self, name: str, *, is_snapshot: bool = False, read_only: bool = False, autocommit: bool = False
    ) -> Iterator[Any]:
        """Open a transaction on the table `name`; errors of the server become StoreErrors.

        With `is_snapshot`, all its statements see the rows of one moment.
        """
        psycopg = need("psycopg", "pgvector")
        try:
            with psycopg.connect(self._address, autocommit=autocommit) as connection:
                if is_snapshot:
                    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = read_only or None
                connection.execute(f"SELECT {SETTINGS}")
                yield connection
        except psycopg.Error as error:
            advice = "The original is untouched; remove the cause and run the same command again"
            problem, kind = "reports an error", StoreError
            if isinstance(error, (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)):
                problem, advice = "is in use", "Nothing was changed; try again when it is less busy"
                kind = InUse
            elif isinstance(error, psycopg.OperationalError) and error.sqlstate != QUERY_CANCELED:
                problem = "cannot be reached, or the connection was lost"
            text = error.diag.message_primary or " ".join(str(error).split())
            for secret in sorted(self._secrets, key=len, reverse=True):
                text = text.replace(secret, "***")
            raise kind(f"{name} {problem}: {text.rstrip('.')}. {advice}.") from None


def _hosts(host: str, port: str) -> str:
    """Return hosts as in an address: each with its port, which may be one for all."""
    hosts, ports = host.split(","), port.split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    pairs = zip(hosts, ports, strict=False)
    return ",".join(f"{quote(name, safe='')}{':' if number else ''}{number}" for name, number in pairs)
