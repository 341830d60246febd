"""Slices of a log: which rows each has, that they stay what they were, and what they teach."""

from collections.abc import Sequence

from ..repair.evaluate import MIN_JUDGED
from ..repair.index_items import IndexItems
from ..repair.learn_in_memory import learn_again, learn_from_pairs
from ..repair.repair import Repair
from ..stores.store import StoreError
from .click_log import LogRow, digest_of
from .loop_state import Slice
from .questions import Lookup, ask


def close_slices(
    rows: Sequence[LogRow], known: Lookup, slices: Sequence[Slice], size: int
) -> tuple[list[Slice], int]:
    """Return the slices that new rows fill, and how many questions the rows after them have."""
    start = slices[-1].stop if slices else 0
    closed: list[Slice] = []
    queries: set[str] = set()
    for stop, row in enumerate(rows[start:], start + 1):
        if row.is_answered and known.has(row):
            queries.add(row.query)
        if len(queries) == size:
            part = rows[start:stop]
            when = [each.when for each in part if each.when is not None]
            closed.append(
                Slice(
                    len(slices) + len(closed) + 1,
                    start,
                    stop,
                    digest_of(list(part)),
                    (part[0].line, part[-1].line),
                    (min(when), max(when)) if when else None,
                    size,
                    ask(part, known).n_pairs,
                )
            )
            start, queries = stop, set()
    return closed, len(queries)


def check_same_log(rows: list[LogRow], slices: Sequence[Slice]) -> None:
    """Refuse a log whose earlier rows are not what they were: what was decided by them would be unknown."""
    for each in slices:
        if digest_of(rows[each.start : each.stop]) != each.digest:
            raise StoreError(
                f"the log has changed: slice {each.number}, lines {each.lines[0]:,} to {each.lines[1]:,}, is "
                "not what it was when it was decided by. Give the log that only grew at its end; or begin "
                "again with another folder."
            )


def learn_slices(
    rows: Sequence[LogRow],
    slices: Sequence[Slice],
    known: Lookup,
    items: IndexItems,
    random_state: int,
    numbers: Sequence[int],
    like: Repair | None = None,
) -> Repair | None:
    """Return what slices teach, with the settings of a model, if any; None for too few questions."""
    wanted = set(numbers)
    part = [row for each in slices if each.number in wanted for row in rows[each.start : each.stop]]
    questions = ask(part, known)
    if len(questions) < MIN_JUDGED:
        return None
    judgements = questions.judgements(items)
    if like is not None:
        return learn_again(like, items, judgements, random_state)
    # chosen by one split of the queries: what was chosen is tested on a slice of its own
    return learn_from_pairs(items, judgements, repeats=1, random_state=random_state)
