"""What changed in a PostgreSQL table since its moved copy was made, and how that is moved, too.

A row keeps the number of the transaction that wrote it, xmin, until it is written again. Before the rows of
blue are read, the oldest transaction that is still open is noted: rows of earlier ones were read, and have
not changed since. All others may have changed, and are moved again; there may be some among them that were
read. Rows that only one of the tables has are found by their ids.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..reconcile import Reconcile
from ..store import StoreError
from . import pg_rows
from .pg_catalog import Table, as_reported, literal
from .pg_switch import PgMark, set_mark

COMPARABLE = 2**31 - 10**6  # transactions; a number of 32 bits is used again after twice as many
NOW = "SELECT system_identifier, pg_snapshot_xmin(pg_current_snapshot())::text::int8 FROM pg_control_system()"
STEP = 1024  # rows that are moved between two looks at the clock
NOTHING: Mapping[Any, str] = {}


@dataclass(frozen=True)
class Difference:
    """The rows in which blue and green may differ."""

    changed: dict[Any, str]  # rows of blue: id → the transaction that wrote it
    gone: list[Any]  # ids of rows that only green has
    state: str  # of blue

    def __len__(self) -> int:
        return len(self.changed) + len(self.gone)


def moment(blue: Table) -> str:
    """Return a text that says which rows were written later: the server, the table, a transaction."""
    system, oldest = blue.connection.execute(NOW).fetchone()
    return f"{system} {blue.oid} {oldest}" if blue.is_heap else ""


def difference(blue: Table, green: Table, mark: PgMark, seen: Mapping[Any, str]) -> Difference:
    """Compare blue with green, which has this mark; `seen` are rows of blue that green has as they are."""
    state = pg_rows.state(blue)
    version = as_reported("b.xmin" if blue.is_heap else "NULL")
    rows = green.run(
        "SELECT b.{id}{cast}, g.{id}{cast}, ({version})::text FROM {blue} b FULL JOIN {table} g "
        "ON g.{id} = b.{id} WHERE b.{id} IS NULL OR g.{id} IS NULL OR {may_differ}",
        cast=as_reported("" if green.has_number_ids else "::text"),
        blue=blue.path,
        version=version,
        may_differ=_may_differ(blue, mark, state),
    )
    changed: dict[Any, str] = {}
    gone = []
    for in_blue, in_green, transaction in rows:
        if in_blue is None:
            gone.append(in_green)
        elif in_green is None or transaction is None or seen.get(in_blue) != transaction:
            changed[in_blue] = transaction
    return Difference(changed, gone, state)


def _may_differ(blue: Table, mark: PgMark, state: str) -> Any:
    """Return the SQL condition that a row of blue may have been written since green was made."""
    if mark.state == state:
        return as_reported("false")
    system, oldest = blue.connection.execute(NOW).fetchone()
    place, _, transaction = mark.since.rpartition(" ")
    is_known = place == f"{system} {blue.oid}" and transaction.isdecimal() and len(transaction) < 20
    if not is_known or not 0 <= oldest - int(transaction) < COMPARABLE:  # for example, in a restored database
        return as_reported("true")
    return blue.compose("age(b.xmin) <= age({first}::xid)", first=literal(str(int(transaction) % 2**32)))


def catch_up(
    blue: Table, green: Table, mark: PgMark, reconcile: Reconcile, seen: Mapping[Any, str] = NOTHING
) -> Difference:
    """Make green agree with blue as a snapshot has it; return the rows in which they may have differed."""
    rows = difference(blue, green, mark, seen)
    if rows:
        since = moment(blue)
        set_mark(green, replace(move_again(blue, green, mark, rows, reconcile), since=since))
    return rows


def move_again(
    blue: Table,
    green: Table,
    mark: PgMark,
    rows: Difference,
    reconcile: Reconcile,
    check_time: Callable[[], None] = lambda: None,
) -> PgMark:
    """Write the rows that differ, moved; remove those that blue lacks; return the new mark of green."""
    # All that differ are removed first, so that values that are unique can be swapped between rows.
    pg_rows.remove(green, [*rows.changed, *rows.gone])
    ids = list(rows.changed)
    for start in range(0, len(ids), STEP):
        check_time()
        batch = pg_rows.fetch(blue, ids[start : start + STEP], reconcile.columns)
        pg_rows.write(green, blue, batch, reconcile.move(batch))
    return replace(mark, state=rows.state, finished_state=pg_rows.state(green))


def changed_rows(blue: str, green: str, count: int) -> StoreError:
    """Return the error for a table that changed since, where no model was given."""
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return StoreError(
        f"{blue} changed since {green} was made: {rows} may differ. Give `hubless promote` the model "
        "(--model MODEL), to move what changed during the switch; or apply again, then promote."
    )


def too_many_rows(blue: str, count: int, allowed: int) -> StoreError:
    """Return the error for a table to which too much is written."""
    return StoreError(
        f"{blue} serves as before: {count:,} of its rows changed right before the switch. Writers wait while "
        f"such rows are moved, so at most {allowed:,} are. Promote again when fewer rows are written."
    )
