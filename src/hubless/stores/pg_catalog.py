"""What the catalog of a PostgreSQL server tells about a table; statements whose names are always quoted."""

import re
from dataclasses import dataclass
from typing import Any

from .store import METRICS, StoreError, need

Path = tuple[str, str]  # schema and name
VECTOR_TYPES = {"vector": "float32", "halfvec": "float16"}
# Type of an id -> the type that ids are compared as; all but whole numbers are given as text.
ID_TYPES = {"int2": "int8", "int4": "int8", "int8": "int8", "text": "text", "varchar": "text", "uuid": "uuid"}
LONGEST = 63  # bytes of a name; the server would cut a longer one without a word

COLUMNS = """
SELECT a.attname AS name, a.attnum AS number, t.typname AS type, n.nspname AS type_schema,
       a.atttypmod AS modifier, a.attnotnull AS is_required, a.attgenerated <> '' AS is_generated,
       a.attidentity AS identity, pg_get_expr(d.adbin, d.adrelid) AS value,
       col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

# After its head, which has the names, a definition is as "USING hnsw (embedding vector_l2_ops) WITH (m='8')".
INDEXES = """
SELECT c.relname AS name, m.amname AS method, o.opcname AS operators, t.typname AS operand,
       coalesce(c.reloptions, '{}') AS options, i.indisunique AS is_unique, i.indisprimary AS is_primary,
       CASE WHEN i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL THEN i.indkey[0] END AS key,
       ARRAY(SELECT d.refobjsubid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
             AND d.objid = i.indexrelid AND d.refobjid = i.indrelid) AS numbers,
       pg_get_indexdef(i.indexrelid, 1, false) AS expression, pg_get_constraintdef(k.oid) AS constraint,
       pg_get_indexdef(i.indexrelid) AS definition,
       format('CREATE %%sINDEX %%I ON %%s%%I.%%I ', CASE WHEN i.indisunique THEN 'UNIQUE ' END, c.relname,
              CASE WHEN r.relkind = 'p' THEN 'ONLY ' END, n.nspname, r.relname) AS head
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


def compose(text: str, /, **parts: Any) -> Any:
    """A statement with its {names} quoted: a text is one name, a tuple is joined by dots, the rest is SQL.

    Values are in it too, as `literal`: it takes no parameters, of which a name with a % would look like one.
    """
    sql = need("psycopg.sql", "pgvector")

    def quoted(part: Any) -> Any:
        return (
            part
            if isinstance(part, sql.Composable)
            else sql.Identifier(*([part] if isinstance(part, str) else part))
        )

    names = {key: quoted(part) for key, part in parts.items()}
    return sql.SQL(text).format(**names)


def literal(value: Any) -> Any:
    """A value in a statement, quoted."""
    return need("psycopg.sql", "pgvector").Literal(value)


def listed(text: str, names: Any) -> Any:
    """One piece of SQL for each name, with commas: listed("b.{name}", columns)."""
    return need("psycopg.sql", "pgvector").SQL(", ").join(compose(text, name=name) for name in names)


def path_of(text: str, schema: str = "public") -> Path:
    """Schema and name in a text: items, app.items, or with parts quoted as in SQL; case is kept."""
    part = r'"(?:[^"]|"")+"|[^".][^.]*'
    found = re.fullmatch(rf"(?:({part})\.)?({part})", text)
    if found is None:
        raise StoreError(
            f'{text!r} names no table: expected table, schema.table or "a.table" in double quotes.'
        )
    first, last = (p if p is None or p[0] != '"' else p[1:-1].replace('""', '"') for p in found.groups())
    if max(len(name.encode()) for name in (first or schema, last)) > LONGEST:
        raise StoreError(f"{text!r} is too long: names have at most {LONGEST} bytes in PostgreSQL.")
    return first or schema, last


def shown(path: Path) -> str:
    """A path as SQL and `path_of` read it."""
    plain = re.compile(r"[a-z_][a-z0-9_]*")
    return ".".join(p if plain.fullmatch(p) else '"' + p.replace('"', '""') + '"' for p in path)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    number: int
    type: str
    type_schema: str
    modifier: int  # of a vector: its dimension, or -1
    is_required: bool  # NOT NULL
    is_generated: bool
    identity: str
    value: str | None  # expression of its default, or of a generated column
    comment: str | None


@dataclass(frozen=True)
class Index:
    """An index of a table."""

    name: str
    method: str  # btree, hnsw, ivfflat
    operators: str  # operator class of its first column
    operand: str  # type that this compares
    options: list[str]  # as ["m=16"]
    is_unique: bool
    is_primary: bool
    key: int | None  # number of the column whose values it keeps apart, where that is one
    numbers: list[int]  # of the columns that it is made of
    expression: str  # its first column
    constraint: str | None  # definition of the constraint that it stands for
    definition: str
    head: str  # what the definition begins with, as far as the names go

    @property
    def metric(self) -> str | None:
        """What it compares vectors by; None where that is not one of ours."""
        kind, _, metric = self.operators.removesuffix("_ops").partition("_")
        return metric if kind in VECTOR_TYPES and metric in METRICS else None

    @property
    def rest(self) -> str:
        """Its definition, from USING on."""
        if not self.definition.startswith(self.head):
            raise StoreError(f"the definition of index {self.name} is not understood: {self.definition}")
        return self.definition.removeprefix(self.head)

    @property
    def role(self) -> tuple[bool, str]:
        """The same for an index of blue and its twin of green."""
        return self.is_unique, self.constraint or self.rest


@dataclass(frozen=True)
class Table:
    """A table with an id and a vector in each row."""

    oid: int
    path: Path
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]
    id: Column
    vector: Column

    @property
    def others(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column not in (self.id, self.vector))

    @property
    def has_number_ids(self) -> bool:
        return ID_TYPES[self.id.type] == "int8"

    @property
    def id_type(self) -> Path:
        return "pg_catalog", ID_TYPES[self.id.type]

    @property
    def id_given(self) -> Any:
        """The id as it is read: a number or a text."""
        return compose("{id}" if self.has_number_ids else "{id}::text", id=self.id.name)

    @property
    def vector_type(self) -> Path:
        return self.vector.type_schema, self.vector.type

    @property
    def vector_indexes(self) -> list[Index]:
        return [
            index
            for index in self.indexes
            if index.method in ("hnsw", "ivfflat") and self.vector.number in index.numbers
        ]


def oid_of(connection: Any, path: Path) -> int | None:
    """The number of a table, a view or whatever else has this name; None where nothing has."""
    found = connection.execute(
        "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = %s",
        path,
    ).fetchone()
    return None if found is None else int(found[0])


def look(connection: Any, path: Path, id: str | None = None, vector: str | None = None) -> Table:
    """All about a table; StoreError where it is not there, or its id or vector cannot be told."""
    rows = need("psycopg.rows", "pgvector")
    oid = oid_of(connection, path)
    if oid is None:
        raise StoreError(f"there is no table {shown(path)}.")
    with connection.cursor(row_factory=rows.class_row(Column)) as cursor:
        columns = tuple(cursor.execute(COLUMNS, [oid]))
    with connection.cursor(row_factory=rows.class_row(Index)) as cursor:
        indexes = tuple(cursor.execute(INDEXES, [oid]))
    return Table(oid, path, columns, indexes, _id(path, columns, indexes, id), _vector(path, columns, vector))


def _named(path: Path, columns: tuple[Column, ...], name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    raise StoreError(f"{shown(path)} has no column {name!r}, but {', '.join(c.name for c in columns)}.")


def _vector(path: Path, columns: tuple[Column, ...], name: str | None) -> Column:
    found = [column for column in columns if column.type in VECTOR_TYPES]
    others = [f"{c.name} ({c.type})" for c in columns if c.type in ("sparsevec", "bit", "varbit")]
    if name is not None:
        found = [_named(path, columns, name)]
        if found[0].type not in VECTOR_TYPES:
            raise StoreError(
                f"{name} of {shown(path)} is of type {found[0].type}: expected vector or halfvec."
            )
    if len(found) != 1:
        told = ", ".join(c.name for c in found) or "none" + (f" but {', '.join(others)}" if others else "")
        raise StoreError(
            f"{shown(path)} must have one column of type vector or halfvec, or you name it (vector=); "
            f"it has {told}."
        )
    return found[0]


def _id(path: Path, columns: tuple[Column, ...], indexes: tuple[Index, ...], name: str | None) -> Column:
    primary = [index for index in indexes if index.is_primary]
    if name is not None:
        found = _named(path, columns, name)
    elif not primary or primary[0].key is None:
        told = f"{primary[0].constraint}" if primary else "none"
        raise StoreError(
            f"{shown(path)} needs a primary key of one column: it has {told}. Name a unique column (id=)."
        )
    else:
        found = next(column for column in columns if column.number == primary[0].key)
    if found.type not in ID_TYPES:
        raise StoreError(
            f"ids of {shown(path)} are in {found.name}, of type {found.type}: expected {', '.join(ID_TYPES)}."
        )
    return found
