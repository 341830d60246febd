"""The locks of a switch: nobody writes while two tables are compared, nobody reads while they are renamed.

Writers wait from the first lock on. Readers wait only for the renames: they are locked out last, and only if
that takes no longer than PATIENCE. It would where a transaction that has read the table wants to write to it,
and so waits for the switch, which would wait for it; then both locks are given up, and tried again. PATIENCE
is shorter than the time after which the server looks for such deadlocks, and cancels one of the two.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from ...support.imports import need
from ..store import StoreError
from .pg_catalog import Path, Table, as_reported, compose
from .pg_session import InUse

Result = TypeVar("Result")
WRITERS, EVERYONE = "SHARE ROW EXCLUSIVE", "ACCESS EXCLUSIVE"  # who is locked out
# What is locked first, attempt by attempt; in the second, nobody can be between reading and writing.
ATTEMPTS = (WRITERS, EVERYONE)
TIMEOUTS = {WRITERS: 10.0, EVERYONE: 3.0}  # seconds to wait for the first lock
PATIENCE = 0.2  # seconds to wait for others; deadlock_timeout is 1 s unless it was set

# Sessions that hold a lock of these tables while they wait for another
WAITING = """
SELECT FROM pg_locks held JOIN pg_locks wanted USING (pid)
WHERE held.granted AND NOT wanted.granted AND pid <> pg_backend_pid() AND held.relation = ANY(%(tables)s)
AND wanted.relation = ANY(%(tables)s) AND held.database = wanted.database
AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class Clock:
    """The time that writers may have to wait, from the first request of a lock; None for any time."""

    def __init__(self, connection: Any, name: str, seconds: float | None) -> None:
        self._connection, self._name, self._seconds = connection, name, seconds
        self._start = time.monotonic()

    def at_most(self, seconds: float) -> float:
        """Return the seconds that are left, or these where they are fewer; StoreError where none are left."""
        if self._seconds is None:
            return seconds
        left = self._seconds - (time.monotonic() - self._start)
        if left <= 0:
            raise self._too_long()
        return min(seconds, left)

    def check(self) -> None:
        """Let the server cancel each further statement that is running when the time is over."""
        if self._seconds is not None:
            _set(self._connection, "statement_timeout", self.at_most(self._seconds))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Turn the error for a statement that was cancelled into one that says why."""
        self.check()
        try:
            yield
        except need("psycopg", "pgvector").errors.QueryCanceled:
            if self._seconds is None:
                raise
            raise self._too_long() from None

    def _too_long(self) -> StoreError:
        return StoreError(
            f"{self._name} serves as before: writers would wait for the switch for more than "
            f"{self._seconds:g} s. Try again when it is less busy, or let them wait (--max-wait SECONDS)."
        )


def while_writers_wait(
    session: Callable[[], AbstractContextManager[Any]],
    name: str,
    paths: list[Path],
    work: Callable[[Any, Clock], Result],
    seconds: float | None = None,
) -> Result:
    """Return what `work` returns in a transaction in which nobody else writes to these tables.

    It locks readers out by `lock_readers_out`, and is called again where that fails.
    """

    def attempt(mode: str) -> Result:
        is_locked = False
        try:
            with session() as connection:
                clock = Clock(connection, name, seconds)
                with clock.running():
                    _set(connection, "lock_timeout", clock.at_most(TIMEOUTS[mode]))
                    _lock(connection, mode, paths)
                    is_locked = True
                    _set(connection, "lock_timeout", PATIENCE)
                    return work(connection, clock)
        except InUse as error:
            raise error if is_locked else StoreError(str(error)) from None  # only the former is tried again

    for mode in ATTEMPTS[:-1]:
        with suppress(InUse):
            return attempt(mode)
    return attempt(ATTEMPTS[-1])


def lock_readers_out(name: str, *tables: Table) -> None:
    """Lock everyone out of tables whose writers are; InUse where that may take long."""
    connection = tables[0].connection
    if connection.execute(WAITING, {"tables": [table.oid for table in tables]}).fetchone() is not None:
        raise InUse(
            f"{name} is in use: a transaction that has read it waits to write to it. Nothing was changed; "
            "try again when it is less busy."
        )
    _lock(connection, EVERYONE, [table.path for table in tables])


def _lock(connection: Any, mode: str, paths: list[Path]) -> None:
    for path in paths:
        connection.execute(compose("LOCK TABLE {path} IN {mode} MODE", path=path, mode=as_reported(mode)))


def _set(connection: Any, name: str, seconds: float) -> None:
    value = f"{max(1, round(1000 * min(seconds, 10**6)))}ms"  # the server takes at most 2³¹
    connection.execute("SELECT set_config(%s, %s, true)", [name, value])
