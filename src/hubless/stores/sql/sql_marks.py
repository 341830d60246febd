"""The marks of moved tables: rows of a table `hubless_marks` in the same file.

So a mark changes in the transaction that changes its table. Anybody may have a table of this name: one that
hubless did not make is never written to, and has no marks.
"""

from typing import Any

from ..store import Mark, StoreError

MARKS = "hubless_marks"
COLUMNS = ["name", "mark"]
# sqlite_master is in DuckDB, too; views, indexes and triggers of a table have its name as tbl_name
OBJECTS = "SELECT type, sql FROM sqlite_master WHERE lower(tbl_name) = ?"


def is_marks(name: str) -> bool:
    """Say whether a name is that of the table of marks."""
    return name.lower() == MARKS


def read_mark(connection: Any, table: str) -> Mark | None:
    """Return the mark of a table; None where hubless did not make it."""
    if not _objects(connection) or not _is_ours(connection):
        return None
    query = f"SELECT mark FROM {MARKS} WHERE lower(name) = lower(?)"
    rows = connection.execute(query, [table]).fetchall()
    return Mark.from_json(rows[0][0]) if len(rows) == 1 and isinstance(rows[0][0], str) else None


def put_mark(connection: Any, table: str, mark: Mark | None) -> None:
    """Set the mark of a table; None removes it."""
    if not _objects(connection):
        connection.execute(f"CREATE TABLE {MARKS} (name TEXT, mark TEXT)")
    check_marks(connection)
    connection.execute(f"DELETE FROM {MARKS} WHERE lower(name) = lower(?)", [table])
    if mark is not None:
        connection.execute(f"INSERT INTO {MARKS} VALUES (?, ?)", [table, mark.to_json()])


def check_marks(connection: Any) -> None:
    """Refuse a table of this name that hubless did not make."""
    if _objects(connection) and not _is_ours(connection):
        raise StoreError(
            f"the database has a table or view {MARKS} that is not of hubless, which keeps its marks under "
            "that name. Rename it."
        )


def _objects(connection: Any) -> list[Any]:
    return list(connection.execute(OBJECTS, [MARKS]).fetchall())


def _is_ours(connection: Any) -> bool:
    """Say whether it is a plain table with our columns, without triggers, indexes or rules of others."""
    objects = _objects(connection)
    if len(objects) != 1 or objects[0][0] != "table" or not objects[0][1].startswith("CREATE TABLE"):
        return False
    columns = connection.execute(f"SELECT name FROM pragma_table_info('{MARKS}')").fetchall()
    return [name for (name,) in columns] == COLUMNS
