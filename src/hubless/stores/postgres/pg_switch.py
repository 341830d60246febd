"""The moved twin of a PostgreSQL table, and the switch between the two.

A switch renames both tables. All that belongs to the served name goes with it: privileges, foreign keys, the
names of indexes and sequences, the next number of an identity column. Where something would stay with the
original, the table is refused.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from ..store import Mark, StoreError
from .pg_catalog import (
    MAX_NAME,
    Index,
    Path,
    Table,
    as_reported,
    compose,
    literal,
    oid_of,
    read_catalog,
    shown,
)
from .pg_rows import form_of

# Columns of a vector, at most: in a table, and in an HNSW or IVFFlat index by the type that it compares.
MAX_STORED, MAX_INDEXED = 16_000, {"vector": 2000, "halfvec": 4000}

WIDTH = r"\b(?:vector|halfvec|bit)\(\d+\)"  # of a type, in an expression

# What would stay with the original when tables are renamed → a query for its names.
TIES = {
    "is not a plain table": """
        SELECT CASE relkind WHEN 'p' THEN 'partitioned' WHEN 'f' THEN 'a foreign table' ELSE 'a view' END
        FROM pg_class WHERE oid = %(oid)s AND relkind <> 'r'""",
    "is part of an inheritance or a partitioning": """
        SELECT CASE inhparent WHEN %(oid)s THEN inhrelid ELSE inhparent END::regclass::text
        FROM pg_inherits WHERE %(oid)s IN (inhrelid, inhparent)""",
    "has row-level security": """
        SELECT polname::text FROM pg_policy WHERE polrelid = %(oid)s
        UNION ALL SELECT 'enabled' FROM pg_class WHERE oid = %(oid)s AND relrowsecurity""",
    "has triggers": "SELECT tgname::text FROM pg_trigger WHERE tgrelid = %(oid)s AND NOT tgisinternal",
    "has rules": "SELECT rulename::text FROM pg_rewrite WHERE ev_class = %(oid)s",
    "is published": """
        SELECT p.pubname::text FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
        WHERE r.prrelid = %(oid)s""",
    # views, foreign keys of others and from the table to itself, functions with its row type
    "is used by others": """
        SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
        FROM pg_class c JOIN pg_type t ON t.oid = c.reltype JOIN pg_depend d
        ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
        OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
        WHERE c.oid = %(oid)s AND d.deptype = 'n'
        AND NOT EXISTS (SELECT FROM pg_attrdef a  -- except its generated columns and checks
                        WHERE a.adrelid = c.oid AND d.classid = a.tableoid AND d.objid = a.oid)
        AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.confrelid <> c.oid
                        AND d.classid = k.tableoid AND d.objid = k.oid)""",
}

# Privileges on a table and on its columns, as pieces of SQL.
PRIVILEGES = """
SELECT coalesce(quote_ident(r.rolname), 'PUBLIC') AS role,
       s.privilege_type || coalesce(' (' || quote_ident(s.attname) || ')', '') AS privilege,
       CASE WHEN s.is_grantable THEN 'WITH GRANT OPTION' ELSE '' END AS option
FROM (SELECT NULL::name AS attname, (aclexplode(coalesce(relacl, acldefault('r', relowner)))).*
      FROM pg_class WHERE oid = %(oid)s
      UNION ALL SELECT attname, (aclexplode(attacl)).*
      FROM pg_attribute WHERE attrelid = %(oid)s AND NOT attisdropped) s
LEFT JOIN pg_roles r ON r.oid = s.grantee
"""

SEQUENCES = """
SELECT a.attname, n.nspname, s.relname, s.oid, d.deptype = 'i'
FROM pg_depend d
JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_namespace n ON n.oid = s.relnamespace
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = %s
"""


@dataclass(frozen=True)
class PgMark(Mark):
    """The mark of a moved table: the comment of its vector column, which stays when the table is renamed."""

    former: str = ""  # name under which the table was made
    finished_state: str = ""  # `state()` of this table when it was finished: later writes change it


def check_switchable(table: Table) -> None:
    """Refuse a table that a switch cannot replace as a whole: something would stay with the original."""
    for what, query in TIES.items():
        names = [name for (name,) in table.connection.execute(query, {"oid": table.oid})]
        if names:
            raise StoreError(
                f"{shown(table.path)} {what}: {', '.join(names)}. A switch renames tables, and that would "
                "stay with the original. Remove it until after the switch, or move a table without it."
            )
    if not table.id.is_required or not any(index.key == table.id.number for index in table.indexes):
        raise StoreError(
            f"{table.id.name} of {shown(table.path)} is not a key (NOT NULL and UNIQUE). Name one (--id)."
        )


def check_indexable(table: Table, width: int | None) -> None:
    """Refuse a width that pgvector cannot store, or index as this table is indexed."""
    indexed = (MAX_INDEXED.get(index.operand, MAX_STORED) for index in table.vector_indexes)
    most = min([MAX_STORED, *indexed])
    if width is not None and width > most:
        raise StoreError(
            f"moved vectors have {width} columns, and pgvector takes at most {most} with the indexes of "
            f"{shown(table.path)}: {MAX_STORED} in a table, {MAX_INDEXED['vector']} in an index of vector, "
            f"{MAX_INDEXED['halfvec']} in one of halfvec. Drop the index, or index them as halfvec."
        )


def check_same_columns(one: Table, other: Table, advice: str, width: int | None = None) -> None:
    """Refuse two tables whose columns or checks differ; with `width`, vectors may differ in theirs."""
    if _definition(one, width) != _definition(other, width):
        raise StoreError(
            f"the columns or checks of {shown(one.path)} or {shown(other.path)} changed since one was made "
            f"from the other. {advice}"
        )


def _definition(table: Table, width: int | None) -> list[Any]:
    checks = table.connection.execute(
        "SELECT conname, regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', '') FROM pg_constraint "
        "WHERE conrelid = %s AND contype = 'c' ORDER BY conname",
        [table.oid],
    )
    columns = [column._replace(number=0, comment=None) for column in table.columns]
    if width is not None:
        columns[table.columns.index(table.vector)] = table.vector._replace(number=0, comment=None, modifier=0)
    return [*columns, *checks]


def make_twin(blue: Table, path: Path, width: int | None = None) -> Table:
    """Create an empty table like blue, with its owner and privileges; of its indexes only that of the ids.

    Its vectors have the given width; as many columns as those of blue where it is None.
    """
    options, comment = blue.connection.execute(
        "SELECT coalesce(reloptions, '{}'), obj_description(oid, 'pg_class') FROM pg_class WHERE oid = %s",
        [blue.oid],
    ).fetchone()
    blue.run("CREATE TABLE {twin} (LIKE {table} INCLUDING ALL EXCLUDING INDEXES)", twin=path)
    if width is not None and blue.vector.modifier > 0:
        change = "ALTER TABLE {twin} ALTER COLUMN {vector} TYPE {vector_type}({width})"
        blue.run(change, twin=path, width=width)
    twin = read_catalog(blue.connection, path, blue.id.name, blue.vector.name)
    for key, _, value in (option.partition("=") for option in options):  # storage, such as fillfactor=70
        twin.run("ALTER TABLE {table} SET ({key} = {value})", key=key, value=literal(value))
    twin.run("COMMENT ON TABLE {table} IS {comment}", comment=literal(comment))
    build_index(twin, next(index for index in blue.indexes if index.key == blue.id.number))
    copy_privileges(blue, twin)
    return twin


def read_mark(table: Table, place: str) -> PgMark | None:
    """Return the mark of a moved table; None where hubless did not make it."""
    mark = PgMark.from_json(table.vector.comment)
    return None if mark is None else replace(mark, source=f"{place}#{mark.source}")


def set_mark(table: Table, mark: PgMark) -> None:
    """Write the mark, without the address of the server: others may reach it by another one."""
    comment = replace(mark, source=mark.source.partition("#")[2]).to_json()
    table.run("COMMENT ON COLUMN {table}.{vector} IS {comment}", comment=literal(comment))


def missing_indexes(blue: Table, green: Table) -> list[Index]:
    """Return the indexes of blue that green does not have."""
    built = {(index.start, index.rest) for index in green.indexes}
    wanted = [index_for(green, index, blue) for index in blue.indexes]
    return [index for index in wanted if (index.start, index.rest) not in built]


def index_for(table: Table, index: Index, source: Table) -> Index:
    """Return an index of `source` as a table whose vectors may have another width must have it."""
    # of an expression such as (embedding::halfvec(384)) or (binary_quantize(embedding)::bit(384))
    if source.vector.number not in index.numbers or not re.search(WIDTH, index.rest):
        return index
    old, new = (form_of(one)["numbers"].shape[0] for one in (source, table))
    return index._replace(rest=re.sub(WIDTH, lambda found: found[0].replace(str(old), str(new)), index.rest))


def drop_unique_indexes(green: Table) -> None:
    """Drop constraints and unique indexes until `finish`: rows of two batches may have swapped values."""
    for index in green.indexes:
        if index.key == green.id.number:
            continue
        if index.is_constraint:
            green.run("ALTER TABLE {table} DROP CONSTRAINT {name}", name=index.name)
        elif index.is_unique:
            green.run("DROP INDEX {index}", index=(green.path[0], index.name))


def build_index(table: Table, index: Index) -> None:
    """Create an index like one of another table, with a name that the server chooses."""
    start, rest = as_reported(index.start), as_reported(index.rest)
    table.run("{start} {table} {rest}", start=start, rest=rest)


def copy_privileges(source: Table, target: Table) -> None:
    """Give a table the owner of the source, and all roles the privileges that they have on the source."""
    connection = source.connection
    query = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s"
    (owner,) = connection.execute(query, [source.oid]).fetchone()
    target.run("ALTER TABLE {table} OWNER TO {owner}", owner=owner)
    for role in {role for role, *_ in connection.execute(PRIVILEGES, {"oid": target.oid})}:
        target.run("REVOKE ALL ON {table} FROM {role} CASCADE", role=as_reported(role))
    for row in connection.execute(PRIVILEGES, {"oid": source.oid}).fetchall():
        role, privilege, option = map(as_reported, row)
        grant = "GRANT {privilege} ON {table} TO {role} {option}"
        target.run(grant, role=role, privilege=privilege, option=option)


def free_table_name(connection: Any, schema: str, wanted: str) -> str:
    """Return a name that no table or type of the schema has: the wanted one, or with a number after it."""
    number = 1
    while True:
        suffix = "" if number == 1 else f"_{number}"
        name = wanted.encode()[: MAX_NAME - len(suffix)].decode(errors="ignore") + suffix
        taken = connection.execute(
            "SELECT 1 FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace "
            "WHERE n.nspname = %s AND t.typname = %s",
            [schema, name],
        ).fetchone()
        if taken is None and oid_of(connection, (schema, name)) is None:
            return name
        number += 1


def switch(
    out: Table, wanted: str, into: Table, advice: str, width: int | None = None
) -> tuple[Path, list[str]]:
    """Give `into` the name of `out`, and `out` the wanted name, or one like it.

    `width` is that of moved vectors, where the original ones have another.

    Returns
    -------
    kept : the path that `out` has now
    unchecked : foreign keys that are to be validated
    """
    check_switchable(out)
    check_same_columns(out, into, advice, width)
    schema, served = out.path
    kept = free_table_name(out.connection, schema, wanted)
    unchecked = _move_foreign_keys(out, into)
    copy_privileges(out, into)
    _pass_on_sequences(out, into)
    twins = {(index.start, index.rest): index.name for index in into.indexes}
    for index in out.indexes:
        alike = index_for(into, index, out)
        if (alike.start, alike.rest) in twins:
            _swap_names(out.connection, schema, index.name, twins[alike.start, alike.rest])
    _rename(out.connection, out.path, kept)
    _rename(out.connection, into.path, served)
    return (schema, kept), unchecked


def _move_foreign_keys(out: Table, into: Table) -> list[str]:
    # Only the served table has them: else rows that the other refers to could not be removed.
    keys = out.connection.execute(
        "SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint "
        "WHERE conrelid = %s AND contype = 'f'",
        [out.oid],
    ).fetchall()
    for name, definition, is_valid in keys:
        rest = definition + (" NOT VALID" if is_valid else "")  # rows are checked later, without the lock
        out.run("ALTER TABLE {table} DROP CONSTRAINT {name}", name=name)
        into.run("ALTER TABLE {table} ADD CONSTRAINT {name} {rest}", name=name, rest=as_reported(rest))
    return [name for name, _, is_valid in keys if is_valid]


def _pass_on_sequences(out: Table, into: Table) -> None:
    # A serial column of both tables takes its numbers from one sequence, which goes with the served table, so
    # that the other can be dropped. Each identity column has a sequence, which continues where the other was.
    connection = out.connection
    twins = {column: (name, oid) for column, _, name, oid, _ in connection.execute(SEQUENCES, [into.oid])}
    for column, schema, name, _, is_identity in connection.execute(SEQUENCES, [out.oid]).fetchall():
        sequence = (schema, name)
        if not is_identity:
            into.run("ALTER SEQUENCE {sequence} OWNED BY {table}.{column}", sequence=sequence, column=column)
            continue
        twin, oid = twins[column]
        query = "SELECT setval({oid}::oid::regclass, last_value, is_called) FROM {sequence}"
        connection.execute(compose(query, sequence=sequence, oid=oid))
        _swap_names(connection, schema, name, twin)


def _swap_names(connection: Any, schema: str, first: str, second: str) -> None:
    between = free_table_name(connection, schema, "hubless_between")
    for old, new in ((first, between), (second, first), (between, second)):
        _rename(connection, (schema, old), new)


def _rename(connection: Any, path: Path, name: str) -> None:
    connection.execute(compose("ALTER TABLE {path} RENAME TO {name}", path=path, name=name))
