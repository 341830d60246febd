"""The twin of a PostgreSQL table, and the switch between the two.

A switch is a renaming. All that belongs to the served name goes with it: rights, foreign keys, the names of
indexes and sequences, the next number of an identity column. What would stay with the original is refused.
"""

import json
from typing import Any, NamedTuple

from .pg_catalog import LONGEST, Index, Path, Table, compose, literal, oid_of, shown
from .store import Mark, StoreError, need

# What a renaming would leave at the original, and the names of it.
TIES = {
    "is no plain table": """
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
    # views, foreign keys of others and of its own to itself, functions with its row type
    "is needed by others": """
        SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
        FROM pg_class c JOIN pg_type t ON t.oid = c.reltype JOIN pg_depend d
        ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
        OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
        WHERE c.oid = %(oid)s AND d.deptype = 'n'
        AND NOT EXISTS (SELECT FROM pg_attrdef a  -- its own generated columns and checks
                        WHERE a.adrelid = c.oid AND d.classid = a.tableoid AND d.objid = a.oid)
        AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.confrelid <> c.oid
                        AND d.classid = k.tableoid AND d.objid = k.oid)""",
}

RIGHTS = """
SELECT r.rolname AS role, s.attname AS name, s.privilege_type AS right, s.is_grantable AS may_grant
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


class Note(NamedTuple):
    """The comment of a moved vector column, which goes with it through every renaming."""

    mark: Mark
    former: str  # name that the table was made under
    own: str  # its own state when it was finished: whoever writes to it later changes that


def refuse_ties(connection: Any, table: Table) -> None:
    """StoreError where a switch would leave something behind."""
    for told, query in TIES.items():
        names = [name for (name,) in connection.execute(query, {"oid": table.oid})]
        if names:
            raise StoreError(
                f"{shown(table.path)} {told}: {', '.join(names)}. A switch renames tables, and that would "
                "stay with the original. Remove it for the time of the switch, or move a table without it."
            )
    if not table.id.is_required or not any(index.key == table.id.number for index in table.indexes):
        raise StoreError(
            f"{table.id.name} of {shown(table.path)} is no key: expected NOT NULL and UNIQUE. Name one (id=)."
        )


def refuse_other_shape(connection: Any, one: Table, other: Table, advice: str) -> None:
    """StoreError where the columns or checks of two tables differ."""
    if _shape(connection, one) != _shape(connection, other):
        raise StoreError(
            f"the columns or checks of {shown(one.path)} or {shown(other.path)} changed since one was made "
            f"from the other. {advice}"
        )


def make_twin(connection: Any, blue: Table, path: Path) -> None:
    """An empty table like blue, with the same owner and rights; of its indexes only the one of the ids."""
    options, comment = connection.execute(
        "SELECT coalesce(reloptions, '{}'), obj_description(oid, 'pg_class') FROM pg_class WHERE oid = %s",
        [blue.oid],
    ).fetchone()
    parts = {"blue": blue.path, "green": path, "comment": literal(comment)}
    connection.execute(compose("CREATE TABLE {green} (LIKE {blue} INCLUDING ALL EXCLUDING INDEXES)", **parts))
    for key, _, value in (option.partition("=") for option in options):  # storage, as fillfactor=70
        option = {"key": key, "value": literal(value)}
        connection.execute(compose("ALTER TABLE {green} SET ({key} = {value})", **parts, **option))
    connection.execute(compose("COMMENT ON TABLE {green} IS {comment}", **parts))
    build_index(connection, next(i for i in blue.indexes if i.key == blue.id.number), path)
    copy_rights(connection, blue.oid, path)


def read_note(table: Table, place: str) -> Note | None:
    """What a moved table of a database carries; None where it was not made by hubless."""
    try:
        found = json.loads(table.vector.comment or "{}")
        former, own = str(found.pop("former")), str(found.pop("own"))
        mark = Mark.from_json(json.dumps({**found, "source": f"{place}#{found['source']}"}))
        return None if mark is None else Note(mark, former, own)
    except (AttributeError, KeyError, TypeError, ValueError):  # a comment of the user's own
        return None


def set_note(connection: Any, table: Table, note: Note) -> None:
    """Write it; where the server is, is left out: others may reach it by another address."""
    stored = {**json.loads(note.mark.to_json()), "source": note.mark.source.partition("#")[2]}
    comment = literal(json.dumps({**stored, "former": note.former, "own": note.own}, sort_keys=True))
    column = (*table.path, table.vector.name)
    connection.execute(compose("COMMENT ON COLUMN {column} IS {comment}", column=column, comment=comment))


def missing_indexes(blue: Table, green: Table) -> list[Index]:
    """Indexes of blue that green does not have."""
    there = {index.role for index in green.indexes}
    return [index for index in blue.indexes if index.role not in there]


def drop_guards(connection: Any, green: Table) -> None:
    """Take away what forbids equal values, until `finish`: rows of two batches may have swapped theirs."""
    for index in green.indexes:
        parts = {"table": green.path, "index": (green.path[0], index.name), "name": index.name}
        if index.key == green.id.number:
            continue
        if index.constraint is not None:
            connection.execute(compose("ALTER TABLE {table} DROP CONSTRAINT {name}", **parts))
        elif index.is_unique:
            connection.execute(compose("DROP INDEX {index}", **parts))


def build_index(connection: Any, index: Index, path: Path) -> None:
    """An index like one of blue, by a name that the server finds."""
    sql = need("psycopg.sql", "pgvector")  # what the server itself tells of an index is SQL, quoted by it
    if index.constraint is not None:
        statement = compose("ALTER TABLE {table} ADD {rest}", table=path, rest=sql.SQL(index.constraint))
    else:
        statement = compose(
            "CREATE {unique} INDEX ON {table} {rest}",
            unique=sql.SQL("UNIQUE" if index.is_unique else ""),
            table=path,
            rest=sql.SQL(index.rest),
        )
    connection.execute(statement)


def copy_rights(connection: Any, source: int, path: Path) -> None:
    """Give a table the owner of the source, and let all roles do with it what they may do with the source."""
    sql = need("psycopg.sql", "pgvector")

    def to(role: str | None) -> Any:
        return sql.SQL("PUBLIC") if role is None else sql.Identifier(role)

    target = oid_of(connection, path)
    query = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s"
    (owner,) = connection.execute(query, [source]).fetchone()
    connection.execute(compose("ALTER TABLE {table} OWNER TO {owner}", table=path, owner=owner))
    for role in {role for role, *_ in connection.execute(RIGHTS, {"oid": target})}:
        connection.execute(compose("REVOKE ALL ON {table} FROM {role} CASCADE", table=path, role=to(role)))
    for role, name, right, may_grant in connection.execute(RIGHTS, {"oid": source}).fetchall():
        statement = compose(
            "GRANT {right} {column} ON {table} TO {role} {more}",
            right=sql.SQL(right),  # a word of the server's own, as SELECT
            column=sql.SQL("") if name is None else compose("({name})", name=name),
            table=path,
            role=to(role),
            more=sql.SQL("WITH GRANT OPTION" if may_grant else ""),
        )
        connection.execute(statement)


def free_name(connection: Any, schema: str, wanted: str) -> str:
    """A name that no table or type of the schema has: the wanted one, or with a number after it."""
    number = 1
    while True:
        end = "" if number == 1 else f"_{number}"
        name = wanted.encode()[: LONGEST - len(end)].decode(errors="ignore") + end
        taken = connection.execute(
            "SELECT 1 FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace "
            "WHERE n.nspname = %s AND t.typname = %s",
            [schema, name],
        ).fetchone()
        if taken is None and oid_of(connection, (schema, name)) is None:
            return name
        number += 1


def switch(connection: Any, out: Table, kept: str, into: Table) -> list[str]:
    """Rename `out` to `kept`, and `into` to what `out` was; the foreign keys that are to be validated."""
    schema, served = out.path
    unchecked = _move_foreign_keys(connection, out, into)
    copy_rights(connection, out.oid, into.path)
    _pass_on_sequences(connection, out, into)
    twins = {index.role: index.name for index in into.indexes}
    for index in out.indexes:
        if index.role in twins:
            _swap_names(connection, schema, index.name, twins[index.role])
    _rename(connection, out.path, kept)
    _rename(connection, into.path, served)
    return unchecked


def _shape(connection: Any, table: Table) -> list[Any]:
    checks = connection.execute(
        "SELECT conname, regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', '') FROM pg_constraint "
        "WHERE conrelid = %s AND contype = 'c' ORDER BY conname",
        [table.oid],
    ).fetchall()
    columns = [
        (c.name, c.type, c.modifier, c.is_required, c.is_generated, c.identity, c.value)
        for c in table.columns
    ]
    return [*columns, *checks]


def _move_foreign_keys(connection: Any, out: Table, into: Table) -> list[str]:
    # Foreign keys of a table that nobody asks would still keep rows from being removed: only one has them.
    sql = need("psycopg.sql", "pgvector")
    keys = connection.execute(
        "SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint "
        "WHERE conrelid = %s AND contype = 'f'",
        [out.oid],
    ).fetchall()
    for name, definition, is_valid in keys:
        rest = sql.SQL(definition + (" NOT VALID" if is_valid else ""))  # no look at rows while others wait
        connection.execute(compose("ALTER TABLE {out} DROP CONSTRAINT {name}", out=out.path, name=name))
        add = "ALTER TABLE {into} ADD CONSTRAINT {name} {rest}"
        connection.execute(compose(add, into=into.path, name=name, rest=rest))
    return [name for name, _, is_valid in keys if is_valid]


def _pass_on_sequences(connection: Any, out: Table, into: Table) -> None:
    # A serial column of both tables takes its numbers from one sequence, which goes with the served table, so
    # that the other can be dropped. An identity column has one of its own, which goes on where the other was.
    own = {column: (name, oid) for column, _, name, oid, _ in connection.execute(SEQUENCES, [into.oid])}
    for column, schema, name, _, is_identity in connection.execute(SEQUENCES, [out.oid]).fetchall():
        parts = {"sequence": (schema, name), "column": (*into.path, column)}
        if not is_identity:
            connection.execute(compose("ALTER SEQUENCE {sequence} OWNED BY {column}", **parts))
            continue
        twin, oid = own[column]
        query = "SELECT setval({oid}::oid::regclass, last_value, is_called) FROM {sequence}"
        connection.execute(compose(query, **parts, oid=literal(oid)))
        _swap_names(connection, schema, name, twin)


def _swap_names(connection: Any, schema: str, first: str, second: str) -> None:
    between = free_name(connection, schema, "hubless_between")
    for old, new in ((first, between), (second, first), (between, second)):
        _rename(connection, (schema, old), new)


def _rename(connection: Any, path: Path, name: str) -> None:
    connection.execute(compose("ALTER TABLE {path} RENAME TO {name}", path=path, name=name))
