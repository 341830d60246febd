"""What the catalog of a PostgreSQL server has on a table; statements in which names are always quoted."""

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...support.imports import need
from ...support.nearest import MOST, did_you_mean
from ..checks import check_columns
from ..store import StoreError

Path: TypeAlias = tuple[str, str]  # schema and name
VECTOR_TYPES = {"vector": "float32", "halfvec": "float16"}
# Type of an id → the type that ids are compared as; all but whole numbers are read as text.
ID_TYPES = {"int2": "int8", "int4": "int8", "int8": "int8", "text": "text", "varchar": "text", "uuid": "uuid"}
MAX_NAME = 63  # bytes of a name; the server would silently truncate a longer one

Column: TypeAlias = Any  # a row of COLUMNS, by name
COLUMNS = """
SELECT a.attname AS name, a.attnum AS number, t.typname AS type, n.nspname AS type_schema,
       a.atttypmod AS modifier,  -- of a vector: its dimension, or -1
       a.attnotnull AS is_required, a.attgenerated <> '' AS is_generated, a.attidentity AS identity,
       pg_get_expr(d.adbin, d.adrelid) AS value,  -- expression of its default, or of a generated column
       left(col_description(a.attrelid, a.attnum), 10000) AS comment,  -- a mark is far shorter
       EXISTS (SELECT FROM pg_depend p JOIN pg_extension e ON e.oid = p.refobjid WHERE e.extname = 'vector'
               AND p.refclassid = 'pg_extension'::regclass AND p.classid = 'pg_type'::regclass
               AND p.objid = t.oid) AS is_of_pgvector
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

TABLE = """
SELECT pg_get_userbyid(c.relowner) AS owner,
       -- whether it is a plain table, stored row by row: then a row has another xmin whenever it was changed
       c.relkind = 'r' AND m.amname = 'heap' AS is_heap
FROM pg_class c LEFT JOIN pg_am m ON m.oid = c.relam WHERE c.oid = %s
"""

Index: TypeAlias = Any  # a row of INDEXES, by name
INDEXES = """
SELECT c.relname AS name, m.amname AS method, coalesce(c.reloptions, '{}') AS options,
       o.opcname AS operators, t.typname AS operand,  -- of its first column: how and what it compares
       substring(o.opcname FROM '^(?:vector|halfvec)_(l2|cosine|ip)_ops$') AS metric,
       pg_get_indexdef(i.indexrelid, 1, false) AS expression,  -- its first column
       ARRAY(SELECT d.refobjsubid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
             AND d.objid = i.indexrelid AND d.refobjid = i.indrelid) AS numbers,  -- of all its columns
       i.indisunique AS is_unique, i.indisprimary AS is_primary, k.oid IS NOT NULL AS is_constraint,
       -- number of the column whose values are unique, where that is one column
       CASE WHEN i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL THEN i.indkey[0] END AS key,
       -- the statement that creates it, before and after the name of the table
       CASE WHEN k.oid IS NOT NULL THEN 'ALTER TABLE' WHEN i.indisunique THEN 'CREATE UNIQUE INDEX ON'
            ELSE 'CREATE INDEX ON' END AS start,
       coalesce('ADD ' || pg_get_constraintdef(k.oid), substr(pg_get_indexdef(i.indexrelid), 1 + length(
           format('CREATE %%sINDEX %%I ON %%I.%%I ', CASE WHEN i.indisunique THEN 'UNIQUE ' END, c.relname,
                  n.nspname, r.relname)))) AS rest
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class r ON r.oid = i.indrelid
JOIN pg_namespace n ON n.oid = r.relnamespace
JOIN pg_am m ON m.oid = c.relam
JOIN pg_opclass o ON o.oid = i.indclass[0]
JOIN pg_type t ON t.oid = o.opcintype
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
WHERE i.indrelid = %s AND i.indisvalid
ORDER BY c.relname
"""


TABLES = """
SELECT schemaname, tablename FROM pg_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
LIMIT %s
"""


def compose(text: str, /, **parts: Any) -> Any:
    """Return a statement with its {parts} filled in: a text is quoted as a name, a tuple as a path.

    Lists and numbers become literals. So it takes no parameters: a name with a % would look like one.
    """
    sql = need("psycopg.sql", "pgvector")

    def quoted(part: Any) -> Any:
        if isinstance(part, str):
            return sql.Identifier(part)
        return sql.Identifier(*part) if isinstance(part, tuple) else part

    return sql.SQL(text).format(**{key: quoted(part) for key, part in parts.items()})


def literal(text: str | None) -> Any:
    """Return a text as a literal of a statement, not as a name."""
    return need("psycopg.sql", "pgvector").Literal(text)


def as_reported(text: str) -> Any:
    """Return SQL from the server, or a keyword: it goes into a statement unquoted."""
    return need("psycopg.sql", "pgvector").SQL(text)


def listed(text: str, names: Any) -> Any:
    """Return a piece of SQL for each name, with commas: listed("b.{name}", columns)."""
    return as_reported(", ").join(compose(text, name=name) for name in names)


def is_sendable(text: str) -> bool:
    """Say whether a text can be sent to the server: without zero bytes and lone surrogates."""
    return "\0" not in text and text.encode(errors="replace").decode() == text


def path_of(text: str, schema: str = "public") -> Path:
    """Return schema and name from a text: items, app.items, or with parts quoted as in SQL; case is kept."""
    part = r'"(?:[^"]|"")+"|[^".][^.]*'
    match = re.fullmatch(rf"(?:({part})\.)?({part})", text)
    if match is None or not is_sendable(text):
        raise StoreError(
            f'{text!r} is not a table name: expected table, schema.table or "a.table" in double quotes.'
        )
    first, last = (p if p is None or p[0] != '"' else p[1:-1].replace('""', '"') for p in match.groups())
    if max(len(name.encode(errors="replace")) for name in (first or schema, last)) > MAX_NAME:
        raise StoreError(f"{text!r} is too long: names have at most {MAX_NAME} bytes in PostgreSQL.")
    return first or schema, last


def ending(name: str, end: str) -> str:
    """Return a name with this end, cut where it would be too long."""
    return name.encode()[: MAX_NAME - len(end)].decode(errors="ignore") + end


def shown(path: Path | tuple[str]) -> str:
    """Return a path as SQL and `path_of` read it."""
    plain = re.compile(r"[a-z_][a-z0-9_]*")
    return ".".join(p if plain.fullmatch(p) else '"' + p.replace('"', '""') + '"' for p in path)


@dataclass(frozen=True)
class Table:
    """A table with an id and a vector in each row, in a session."""

    connection: Any
    oid: int
    path: Path
    owner: str
    is_heap: bool
    columns: list[Column]
    indexes: list[Index]
    id: Column
    vector: Column

    def compose(self, text: str, /, **parts: Any) -> Any:
        """Return a statement by `compose`, with the names and types of this table."""
        names = {
            "table": self.path,
            "id": self.id.name,
            "id_read": self.id_read,
            "id_type": ("pg_catalog", ID_TYPES[self.id.type]),
            "vector": self.vector.name,
            "vector_type": (self.vector.type_schema, self.vector.type),
        }
        return compose(text, **{**names, **parts})

    def run(self, text: str, /, *, binary: bool = False, **parts: Any) -> Any:
        """Run such a statement and return its cursor."""
        return self.connection.execute(self.compose(text, **parts), binary=binary)

    @property
    def others(self) -> list[Column]:
        """The columns besides the id and the vector."""
        return [column for column in self.columns if column not in (self.id, self.vector)]

    @property
    def dtype(self) -> str:
        """Type of the numbers of a vector."""
        return VECTOR_TYPES[self.vector.type]

    @property
    def has_number_ids(self) -> bool:
        """Whether ids are whole numbers."""
        return ID_TYPES[self.id.type] == "int8"

    @property
    def id_read(self) -> Any:
        """The id as it is read: a number or a text."""
        return compose("{id}" if self.has_number_ids else "{id}::text", id=self.id.name)

    @property
    def vector_indexes(self) -> list[Index]:
        """The indexes that search by vector."""
        return [
            index
            for index in self.indexes
            if index.method in ("hnsw", "ivfflat") and self.vector.number in index.numbers
        ]


def oid_of(connection: Any, path: Path) -> int | None:
    """Return the oid of the table, view or other relation of this name; None where there is none."""
    (oid,) = connection.execute("SELECT to_regclass(%s)::oid", [shown(path)]).fetchone()
    return None if oid is None else int(oid)


def read_catalog(connection: Any, path: Path, id: str | None = None, vector: str | None = None) -> Table:
    """Return what the catalog has on a table; StoreError where it, its id or its vector is missing."""
    oid = oid_of(connection, path)
    if oid is None:
        known = [shown(tuple(row)) for row in connection.execute(TABLES, [MOST]).fetchall()]
        near = did_you_mean(shown(path), known)
        raise StoreError(f"there is no table {shown(path)}. Check its name and schema; case matters.{near}")
    with connection.cursor(row_factory=need("psycopg.rows", "pgvector").namedtuple_row) as cursor:
        owner, is_heap = cursor.execute(TABLE, [oid]).fetchone()
        columns = cursor.execute(COLUMNS, [oid]).fetchall()
        indexes = cursor.execute(INDEXES, [oid]).fetchall()
    key, moved = _id(path, columns, indexes, id), _vector(path, columns, vector)
    return Table(connection, oid, path, owner, bool(is_heap), columns, indexes, key, moved)


def _vector(path: Path, columns: list[Column], name: str | None) -> Column:
    usable = [
        column
        for column in columns
        if column.is_of_pgvector and column.type in VECTOR_TYPES and name in (None, column.name)
    ]
    if len(usable) != 1:
        known = ", ".join(f"{column.name} ({column.type})" for column in columns)
        wanted = "one column" if name is None else f"a column {name!r}"
        raise StoreError(
            f"{shown(path)} must have {wanted} of type vector or halfvec; it has {known}. Name one with "
            "--vector."
        )
    return usable[0]


def _id(path: Path, columns: list[Column], indexes: list[Index], name: str | None) -> Column:
    if name is None:
        primary = next((index for index in indexes if index.is_primary), None)
        if primary is None or primary.key is None:
            key = "none" if primary is None else primary.rest.removeprefix("ADD ")
            raise StoreError(
                f"{shown(path)} needs a primary key of one column; it has {key}. Name a unique column (--id)."
            )
        id = next(column for column in columns if column.number == primary.key)
    else:
        check_columns(shown(path), [name], [column.name for column in columns])
        id = next(column for column in columns if column.name == name)
    if id.type not in ID_TYPES or id.type_schema != "pg_catalog":
        raise StoreError(
            f"ids of {shown(path)} are in {id.name}, of type {id.type}; expected {', '.join(ID_TYPES)}. Name "
            "another column (--id)."
        )
    return id
