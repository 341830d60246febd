"""The moved twin of a PostgreSQL table, and the switch between the two.

A switch renames both tables. All that belongs to the served name goes with it: privileges, foreign keys, the
names of indexes and sequences, the next number of an identity column. Where something would stay with the
original, the table is refused (pg_checks.py).
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from ..store import Mark
from .pg_catalog import (
    Index,
    Path,
    Table,
    as_reported,
    compose,
    ending,
    is_sendable,
    literal,
    oid_of,
    read_catalog,
)
from .pg_checks import check_pair
from .pg_rows import form_of

WIDTH = r"\b(?:vector|halfvec|bit)\(\d+\)"  # of a type, in an expression

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
    since: str = ""  # `pg_reconcile.moment` of the source before its rows were read


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
    if mark is None or not all(map(is_sendable, (mark.source, mark.former, mark.original or ""))):
        return None
    return replace(mark, source=f"{place}#{mark.source}")


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
    target.run("ALTER TABLE {table} OWNER TO {owner}", owner=source.owner)
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
        name = ending(wanted, suffix)
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
    check_pair(out, into, advice, width)
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
