"""What a PostgreSQL table must be, so that its moved twin can replace it as a whole."""

from typing import Any

from ..store import StoreError
from .pg_catalog import Table, shown

# Columns of a vector, at most: in a table, and in an HNSW or IVFFlat index by the type that it compares.
MAX_STORED, MAX_INDEXED = 16_000, {"vector": 2000, "halfvec": 4000}

# What would stay with the original when tables are renamed, and what hubless never makes, so that in a moved
# table it may be another user's trap → a query for its names.
ODDITIES = {
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
}
# What would stay with the original, too.
TIES = {
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


def check_switchable(table: Table) -> None:
    """Refuse a table that a switch cannot replace as a whole: something would stay with the original."""
    what = _first(table, {**ODDITIES, **TIES})
    if what is not None:
        raise StoreError(
            f"{shown(table.path)} {what}. A switch renames tables, and that would stay with the original. "
            "Remove it until after the switch, or move a table without it."
        )
    if not table.id.is_required or not any(index.key == table.id.number for index in table.indexes):
        raise StoreError(
            f"{table.id.name} of {shown(table.path)} is not a key (NOT NULL and UNIQUE). Name one (--id)."
        )


def _first(table: Table, queries: dict[str, str]) -> str | None:
    for what, query in queries.items():
        names = [name for (name,) in table.connection.execute(query, {"oid": table.oid})]
        if names:
            return f"{what}: {', '.join(names)}"
    return None


def check_pair(out: Table, into: Table, advice: str, width: int | None = None) -> None:
    """Refuse to switch from one table to another unless both are as hubless makes them.

    A name in a mark may be that of any table, and a table may be another user's: its triggers would run for
    whoever writes to it, and a switch gives it the owner of the other table.
    """
    check_switchable(out)
    one, other = shown(out.path), shown(into.path)
    if out.oid == into.oid or out.path[0] != into.path[0]:
        raise StoreError(f"{other} must be another table in the schema of {one}: a switch renames tables.")
    if out.owner != into.owner:
        raise StoreError(
            f"{other} belongs to {into.owner}, and {one} to {out.owner}. If you trust both, give the two "
            "tables one owner (ALTER TABLE ... OWNER TO ...)."
        )
    what = _first(into, ODDITIES)
    if what is not None:
        raise StoreError(f"{other} {what}. hubless made it without, so another user did that. Remove it.")
    check_same_columns(out, into, advice, width)


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
