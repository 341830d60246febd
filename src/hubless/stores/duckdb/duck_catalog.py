"""What the catalog of a DuckDB file has on a table, and what a table must be to be moved."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..checks import check_columns, choose_vectors
from ..sql.sql_marks import MARKS
from ..sql.sql_names import quoted
from ..store import StoreError

HERE = "schema_name = 'main' AND database_name = current_database()"
VECTOR = re.compile(r"(FLOAT|DOUBLE)\[(\d*)\]")
# Types of ids → how they are read: as 64 bits, as whole numbers of any size, or as texts.
SMALL = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
LARGE = ("UBIGINT", "HUGEINT", "UHUGEINT")
TEXTS = ("VARCHAR", "UUID")


class DuckColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    is_generated: bool
    comment: str | None


class DuckIndex(NamedTuple):
    """An index, besides those of keys."""

    name: str
    sql: str

    @property
    def is_hnsw(self) -> bool:
        """Whether it searches vectors, by the extension vss."""
        unquoted = re.sub(r"""(["']).*?\1""", "", self.sql, flags=re.S)
        return re.search(r"\bUSING\s+HNSW\b", unquoted, re.I) is not None


@dataclass(frozen=True)
class DuckLayout:
    """A table with an id and a vector in each row."""

    table: str
    sql: str  # the statement that creates it, as DuckDB writes it
    comment: str | None
    columns: tuple[DuckColumn, ...]
    indexes: tuple[DuckIndex, ...]
    is_keyed: bool  # whether the database keeps the ids unique
    id: DuckColumn
    vector: DuckColumn

    @property
    def place(self) -> str:
        """The quoted name of the table, with its schema."""
        return f"main.{quoted(self.table)}"

    @property
    def others(self) -> tuple[DuckColumn, ...]:
        """The columns besides the id and the vector."""
        return tuple(column for column in self.columns if column not in (self.id, self.vector))

    @property
    def copied(self) -> tuple[DuckColumn, ...]:
        """Those of them that are not computed from others."""
        return tuple(column for column in self.others if not column.is_generated)

    @property
    def number(self) -> str:
        """Type of the numbers of a vector."""
        return VECTOR.fullmatch(self.vector.type)[1]  # type: ignore[index]  # only such columns are vectors

    @property
    def width(self) -> int | None:
        """Numbers of a vector; None for lists of any length."""
        return int(VECTOR.fullmatch(self.vector.type)[2] or 0) or None  # type: ignore[index]

    def read_id(self, table: str) -> str:
        """Return how an id is read: as a number of 64 bits or as a text."""
        column = f"{table}.{quoted(self.id.name)}"
        return column if self.id.type in SMALL else f"{column}::VARCHAR"

    def sql_of(self, name: str) -> str:
        """Return the statement that creates a table like this one, with another name."""
        for spelt in (self.table, quoted(self.table)):
            if self.sql.startswith(f"CREATE TABLE {spelt}("):
                return f"CREATE TABLE main.{quoted(name)}" + self.sql[len(f"CREATE TABLE {spelt}") :]
        raise StoreError(f"DuckDB writes the table {self.table!r} in a way that hubless does not know.")

    def is_like(self, other: "DuckLayout", width: int | None) -> bool:
        """Say whether another table has the same columns and checks; with `width`, vectors may differ."""
        one, two = (each.sql_of("") for each in (self, other))
        if width is not None:
            one, two = (
                text.replace(f" {each.vector.type}", " VECTOR") for text, each in ((one, self), (two, other))
            )
        return one == two


def read_catalog(connection: Any, name: str, table: str, id: str | None, vector: str | None) -> DuckLayout:
    """Return what the catalog has on a table; StoreError where it, its id or its vector is missing."""
    query = f"SELECT table_name, sql, comment FROM duckdb_tables() WHERE {HERE}"
    found = connection.execute(f"{query} AND lower(table_name) = lower(?)", [table]).fetchall()
    if len(found) != 1:
        known = ", ".join(row[0] for row in connection.execute(query).fetchall() if row[0] != MARKS)
        raise StoreError(f"{name} is not a table of the schema main; there are {known or 'none'}.")
    table, sql, comment = found[0]
    query = "SELECT column_name, data_type, is_generated, comment FROM duckdb_columns()"
    rows = connection.execute(f"{query} WHERE {HERE} AND table_name = ? ORDER BY column_index", [table])
    columns = tuple(DuckColumn(*row) for row in rows.fetchall())
    query = f"SELECT index_name, sql FROM duckdb_indexes() WHERE {HERE} AND table_name = ? ORDER BY 1"
    indexes = tuple(DuckIndex(*row) for row in connection.execute(query, [table]).fetchall())
    query = "SELECT constraint_type, constraint_column_names FROM duckdb_constraints()"
    keys = connection.execute(f"{query} WHERE {HERE} AND table_name = ?", [table]).fetchall()
    key = _id(name, columns, keys, id)
    usable = [c.name for c in columns if VECTOR.fullmatch(c.type) and not c.is_generated]
    chosen = choose_vectors(name, usable, vector)
    moved = next(column for column in columns if column.name == chosen)
    is_keyed = ("PRIMARY KEY", [key.name]) in keys
    return DuckLayout(table, sql, comment, columns, indexes, is_keyed, key, moved)


def _id(name: str, columns: tuple[DuckColumn, ...], keys: list[Any], requested: str | None) -> DuckColumn:
    """Return the column of ids: the requested one, the primary key, or the column `id`."""
    primary = [names[0] for kind, names in keys if kind == "PRIMARY KEY" and len(names) == 1]
    usable = [c.name for c in columns if c.type in (*SMALL, *LARGE, *TEXTS) and not c.is_generated]
    if requested is not None:
        check_columns(name, [requested], [column.name for column in columns])
    for wanted in [requested] if requested is not None else [*primary, "id"]:
        if wanted in usable:
            return next(column for column in columns if column.name == wanted)
    what = "no primary key of one column, and no column id" if requested is None else f"{requested!r}"
    advice = f"Name a column of unique ones with --id: {', '.join(usable)}; or a"
    raise StoreError(
        f"{name} has {what} for ids, which are whole numbers, texts or UUIDs. {advice if usable else 'A'}dd "
        "one: ALTER TABLE … ADD COLUMN id BIGINT; UPDATE … SET id = rowid."
    )


def check_movable(connection: Any, name: str, layout: DuckLayout) -> None:
    """Refuse a table that a switch cannot replace as a whole, or whose ids are not unique."""
    hnsw = [index.name for index in layout.indexes if index.is_hnsw]
    if hnsw:
        raise StoreError(
            f"{name} has the HNSW index {hnsw[0]}, which DuckDB keeps in a file only as an experiment. Drop "
            "it, move the table, and create it again."
        )
    query = (
        "SELECT table_name FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' AND "
        f"{HERE} AND (table_name = ? OR referenced_table = ?)"
    )
    keys = [row[0] for row in connection.execute(query, [layout.table, layout.table]).fetchall()]
    if keys:
        raise StoreError(
            f"{name} takes part in a foreign key of {keys[0]}, with which DuckDB renames no table. Make that "
            "table without it."
        )
    check_triggers(connection, name, layout.table)
    if not layout.is_keyed:
        query = f"SELECT count(*) - count(DISTINCT t.{quoted(layout.id.name)}) FROM {layout.place} t"
        (repeated,) = connection.execute(query).fetchall()[0]
        if repeated:
            raise StoreError(
                f"{name} has {repeated} rows without an id in {layout.id.name!r}, or with one that another "
                "row has. Repair these rows, or name another column with --id."
            )


def check_triggers(connection: Any, name: str, table: str) -> None:
    """Refuse triggers on a table, or that write to it: they would write vectors that are not moved."""
    word = re.compile(rf"(?<!\w){re.escape(table)}(?!\w)", re.I)
    for trigger, sql in connection.execute("SELECT trigger_name, sql FROM duckdb_triggers()").fetchall():
        if word.search(sql):
            raise StoreError(
                f"the trigger {trigger} is on {name}, or writes to it: it would put vectors that are not "
                "moved into the moved table. Drop it, and let the program that adds vectors move them first "
                "(hubless move)."
            )
