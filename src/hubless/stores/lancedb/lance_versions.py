"""Versions of a LanceDB table: how another one is served, and branches that keep those that were."""

import re
import secrets
from dataclasses import replace
from typing import Any

from ...support.imports import need
from ..checks import changed_since
from ..store import ROWS, Mark, StoreError
from .lance_rows import engine_errors, marked, scan

KEPT = re.compile(r"hubless-original-\d+-[0-9a-f]{6}")  # branches that a mark may name


def state_of(table: Any) -> str:
    """Return the version and when it was made: versions of a table that is made again start from 1."""
    made = {version["version"]: version["timestamp"] for version in table.list_versions()}
    if table.version not in made:
        raise StoreError(f"{table.name} was changed and cleaned up while it was read. Run it again.")
    return f"version {table.version} of {made[table.version].timestamp():.6f}"


def own_original(mark: Mark | None, table_name: str) -> Mark | None:
    """Return a mark whose original is a branch of this table, whatever it says: anybody can write a mark."""
    if mark is None or mark.original is None:
        return mark
    branch = mark.original.rpartition("@")[2]
    return replace(mark, original=f"{table_name}@{branch if KEPT.fullmatch(branch) else 'unknown'}")


def keep(table: Any, word: str, version: int) -> str:
    """Return the branch that keeps a version, and create it where there is none."""
    for branch, details in table.branches.list().items():
        if branch.startswith(f"hubless-{word}-") and details["parent_version"] == version:
            return str(branch)
    # never a name twice: a branch whose creation was killed can neither be used nor be created again
    branch = f"hubless-{word}-{version}-{secrets.token_hex(3)}"
    table.branches.create(branch, from_version=version)
    return branch


def serve_again(table: Any, version: int) -> str:
    """Restore an old version in one commit; return the branch that keeps the one that was served."""
    before = table.version
    branch = keep(table, "moved", before)
    table.restore(version)
    if table.version != before + 1:  # others wrote to it until the last moment
        branch = keep(table, "moved", table.version - 1)
    return branch


def overwrite(blue: Any, green: Any) -> Mark:
    """Serve the rows of green, without an index; return the mark that they carry, which is not done."""
    arrow = need("pyarrow", "lancedb")
    table, source = blue._open(), green._open()
    mark = green._mark_of(source)
    is_whole = source.count_rows() == table.count_rows()
    if mark is None or mark.state != state_of(table) or not is_whole:
        raise changed_since(blue.name, green.name)
    with engine_errors(f"promoting {green.name}"):
        original = f"{blue.table}@{keep(table, 'original', table.version)}"
        served = replace(mark, done=False, original=original)
        schema = marked(table.schema, blue._columns(table)[1], served, blue._metric(table))
        parts = (rows.cast(schema) for rows in scan(source, schema.names, ROWS))
        batches = (batch for part in parts for batch in part.to_batches())
        reader = arrow.RecordBatchReader.from_batches(schema, batches)
        # one writer: in the order of green
        table.add(reader, mode="overwrite", write_parallelism=1, on_bad_vectors="null")
    return served


def check_replaced(blue: Any, version: int, served: Mark) -> None:
    """Refuse, and restore the rows of others, where they wrote between our comparison and our commit."""
    table = blue._open()
    existing = sorted(details["version"] for details in table.list_versions())
    ours = next((v for v in existing if v > version and blue._mark_of(blue._open(v)) == served), 0)
    if ours == version + 1:
        return
    if ours - 1 not in existing:  # cleaned up, after a kill
        raise StoreError(f"{blue.name} may have changed meanwhile. Roll back, and apply again.")
    serve_again(table, ours - 1)
    raise StoreError(f"{blue.name} changed while it was promoted, so this was undone. Apply again.")
