"""Sessions with a DuckDB file: one transaction each.

DuckDB lets several programs read a file, or one of them write it, alone. So a reader opens the file for as
long as it reads, and whoever builds a moved table holds it from beginning to end; stores of one file share
that connection.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ...support.imports import need
from ...support.text import reason
from ..store import StoreError

EXTRA = "duckdb"
OLDEST = 2  # before it, the catalog does not say which columns are generated


class DuckFile:
    """A file of DuckDB, opened when it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: Any = None  # the connection, while it is held

    @contextmanager
    def session(self, name: str, *, writes: bool) -> Iterator[Any]:
        """Open a transaction on the table `name`; errors of DuckDB become StoreErrors."""
        with engine_errors(name), self._connected(writes) as connection:
            connection.begin()
            try:
                yield connection
            except BaseException:
                with suppress(need("duckdb", EXTRA).Error):  # an error may have ended it
                    connection.rollback()
                raise
            connection.commit()

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Hold the file, so that no other program can write or read it."""
        if self._held is not None:
            yield
            return
        with engine_errors(name):
            self._held = self._open(writes=True)
        try:
            yield
        finally:
            connection, self._held = self._held, None
            with engine_errors(name):
                connection.close()

    def _connected(self, writes: bool) -> AbstractContextManager[Any]:
        held = self._held
        return closing(self._open(writes=writes) if held is None else held.cursor())

    def _open(self, *, writes: bool) -> Any:
        duckdb = need("duckdb", EXTRA)
        if int(duckdb.__version__.partition(".")[0]) < OLDEST:
            raise StoreError(
                f"DuckDB {duckdb.__version__} is installed; hubless needs {OLDEST} or newer, which reads "
                f"older files: pip install --upgrade 'hubless[{EXTRA}]'."
            )
        if not self.path.is_file():  # DuckDB would create it
            raise StoreError(f"there is no DuckDB database at {self.path}. Give its file: duckdb:FILE#TABLE.")
        try:
            return duckdb.connect(str(self.path), read_only=not writes)
        except duckdb.ConnectionException:  # this process has it open already, to write
            return duckdb.connect(str(self.path))


@contextmanager
def engine_errors(name: str) -> Iterator[None]:
    """Turn errors of DuckDB into StoreErrors of one line."""
    try:
        yield
    except need("duckdb", EXTRA).Error as error:
        text = reason(error).partition(": ")[2].partition(" See also https://")[0].rstrip(".")
        if "Could not set lock" in text:
            raise StoreError(
                f"{name} is in use by another program: DuckDB lets one program write to a file, alone, or "
                "several read it. Close the file there, and run the same command again."
            ) from error
        raise StoreError(
            f"{name} reports an error: {text}. The original is untouched; remove the cause, and run the same "
            "command again."
        ) from error
