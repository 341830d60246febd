"""Sessions with an SQLite file that has tables of sqlite-vec: one transaction, in its own connection.

Python's own sqlite3 may lack loadable extensions; then it is that of pysqlite3-binary.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...support.imports import need
from ...support.text import reason
from ..store import StoreError

EXTRA = "sqlite-vec"
PATIENCE = 60  # seconds to wait for writers, which others may be
# Views and triggers keep the names in them, as programs do; what a stranger put into the file calls nothing.
SETTINGS = ("trusted_schema = OFF", "legacy_alter_table = ON", "foreign_keys = OFF")


def sqlite_module() -> Any:
    """Return a module like sqlite3 that can load extensions."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    return need("pysqlite3.dbapi2", EXTRA)


def connect(file: Path, *, writes: bool) -> Any:
    """Connect to an existing file, with sqlite-vec."""
    extension, sqlite = need("sqlite_vec", EXTRA), sqlite_module()
    if not file.is_file():
        raise StoreError(f"there is no SQLite database at {file}. Give its file, as in sqlite:FILE#TABLE.")
    where = f"file:{quote(str(file))}?mode={'rw' if writes else 'ro'}"
    connection = sqlite.connect(where, uri=True, isolation_level=None, timeout=PATIENCE)
    connection.enable_load_extension(True)
    extension.load(connection)
    connection.enable_load_extension(False)
    for setting in SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    return connection


@contextmanager
def session(name: str, file: Path, *, writes: bool) -> Iterator[Any]:
    """Open a transaction on the table `name`; errors of SQLite become StoreErrors."""
    try:
        with closing(connect(file, writes=writes)) as connection:
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield connection
            connection.execute("COMMIT")
    except sqlite_module().Error as error:
        text = reason(error).partition(": ")[2]
        problem, advice = f"reports an error: {text}", "Remove the cause"
        if "locked" in text or "busy" in text:
            problem, advice = f"is in use: {text}", "Wait until other programs have finished with it"
        raise StoreError(
            f"{name} {problem}. The original is untouched. {advice}, and run the same command again."
        ) from error
