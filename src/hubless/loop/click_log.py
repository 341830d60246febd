"""The log that a loop learns from: JSON lines or a table, untrusted, and growing at its end.

A row is a search (`query` or `vector`, `shown`, `clicked`), or a judgement (`query`, `item`, `score`). The
whole log is checked before anything is learned; what is malformed is refused with its line and the reason.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..stores.checks import readable
from ..stores.files.file_rows import read_table
from ..stores.store import StoreError
from ..support.machine import machine_memory
from ..support.text import as_json, reason, short
from ..support.untrusted_json import open_plain, parse_json

LONGEST = 1 << 20  # bytes of a line
MOST_SHOWN = 1000  # items that one search may have shown
DAY = 86_400.0  # seconds by which clocks may differ, time zones included
QUOTED = 5  # malformed rows that a message names
NAMES = ("query", "vector", "time", "shown", "clicked", "item", "score")
HOW = (
    'expected {"query": "q1", "shown": ["a", "b"], "clicked": ["b"]} or {"query": "q1", "item": "a", '
    '"score": 1}, with a "vector" where no queries are given'
)


class LogRow(NamedTuple):
    """One row of the log: a search, or a judgement."""

    line: int  # of the file, from 1
    query: str  # its id; without one, a hash of its vector
    vector: np.ndarray | None
    when: float | None  # seconds since 1970
    shown: tuple[str, ...]  # ids of items, the first first; empty for a judgement
    clicked: frozenset[str]
    judged: tuple[str, float] | None  # the item, and how relevant it is
    digest: bytes  # of the whole row

    @property
    def is_answered(self) -> bool:
        """Whether it says which item is relevant."""
        return bool(self.clicked) or (self.judged is not None and self.judged[1] > 0)


def read_log_rows(path: str | os.PathLike[str]) -> list[LogRow]:
    """Return all rows of a log, in order; StoreError names the lines that are malformed.

    Searches with the same time, query and items are one search that was written twice, and count once: the
    others are left out. A last line without its end is still being written, and is left for the next time.
    """
    file, rows, wrong, n_wrong = Path(os.path.expanduser(path)), [], [], 0
    now, seen = time.time(), set()
    for line, content in _contents(file):
        try:
            row = _as_row(line, content() if callable(content) else content, now)
        except ValueError as error:
            n_wrong += 1
            wrong += [f"line {line}: {reason(error)}"] if n_wrong <= QUOTED else []
            continue
        if row.when is None or row.digest not in seen:
            rows.append(row)
        seen.add(row.digest)
    if n_wrong:
        more = f"; and {n_wrong - QUOTED:,} more" if n_wrong > QUOTED else ""
        what = "1 malformed row" if n_wrong == 1 else f"{n_wrong:,} malformed rows"
        raise StoreError(f"{file} has {what}: {'; '.join(wrong)}{more}. {HOW}.")
    return rows


def digest_of(rows: list[LogRow]) -> str:
    """Return a hash that tells whether rows are what they were."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row.digest)
    return digest.hexdigest()


# --- reading ------------------------------------------------------------------------------------------------


def _contents(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield line numbers with what is there, or with a function that reads it."""
    if not file.is_file():
        what = "is not a file" if file.exists() else "does not exist"
        raise StoreError(f"{file} {what}. Give a log: JSON lines (.jsonl), or a table as CSV or Parquet.")
    size, memory = file.stat().st_size, machine_memory()
    if size > memory:
        raise StoreError(f"{file} has {size:,} bytes, more than memory ({memory:,}). Give its newer part.")
    if file.suffix.lower() in (".jsonl", ".ndjson", ".log"):
        yield from _lines(file)
        return
    columns = read_table(file)
    for i in range(len(next(iter(columns.values())))):
        yield i + 2, {name: values[i] for name, values in columns.items()}  # the header is line 1


def _lines(file: Path) -> Iterator[tuple[int, Any]]:
    with readable(file), open_plain(file) as lines:
        number = 0
        while line := lines.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise StoreError(f"{file}, line {number}: it has more than {LONGEST:,} bytes. {HOW}.")
            if not line.endswith(b"\n"):
                return
            if line.strip():
                yield number, lambda line=line: parse_json(line)


def _as_row(line: int, values: Any, now: float) -> LogRow:
    """Return a row; ValueError where it is malformed."""
    if not isinstance(values, dict):
        raise ValueError(f"got {short(values)}, not an object")
    given = {name: values[name] for name in NAMES if not _is_missing(values.get(name))}
    canonical = json.dumps(as_json(given), sort_keys=True)
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).digest()
    vector = _as_vector(given["vector"]) if "vector" in given else None
    if "query" not in given and vector is None:
        raise ValueError('it has neither "query" nor "vector"')
    is_search = "shown" in given
    if is_search == ("item" in given):
        raise ValueError('give either "shown" (and "clicked") or "item" and "score"')
    query = _as_id(given["query"]) if "query" in given else _name_of(vector)
    when = _as_time(given["time"], now) if "time" in given else None
    shown, clicked = _as_search(given) if is_search else ((), frozenset())
    judged = None if is_search else (_as_id(given["item"]), _as_number(given.get("score", 1)))
    return LogRow(line, query, vector, when, shown, clicked, judged, digest)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value == "") or (value != value)  # NaN, of a table


def _as_search(given: dict[str, Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    shown, clicked = (_as_ids(given.get(name, []), name) for name in ("shown", "clicked"))
    if not shown:
        raise ValueError('"shown" is empty')
    if len(shown) > MOST_SHOWN:
        raise ValueError(f'"shown" has {len(shown):,} items, more than {MOST_SHOWN:,}')
    if len(set(shown)) < len(shown):
        raise ValueError('"shown" has an item twice')
    strange = set(clicked) - set(shown)
    if strange:
        raise ValueError(f"{short(min(strange))} was clicked and not shown")
    return tuple(shown), frozenset(clicked)


def _as_ids(value: Any, name: str) -> list[str]:
    """Return a list of ids; a text is a list in JSON, or ids with spaces between them, as tables have it."""
    if isinstance(value, str):
        value = parse_json(value) if value.lstrip().startswith("[") else value.split()
    if isinstance(value, int) and not isinstance(value, bool):  # of a table with one id in the field
        value = [value]
    if not isinstance(value, list | tuple):
        raise ValueError(f'"{name}" is {short(value)}, not a list of ids')
    return [_as_id(item) for item in value]


def _as_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{short(value)} is no id: give a text or a whole number")
    return str(value)


def _as_number(value: Any) -> float:
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise ValueError(f"{short(value)} is not a finite number")
    return number


def _as_vector(value: Any) -> np.ndarray:
    value = parse_json(value) if isinstance(value, str) else value
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f'"vector" is {short(value)}, not a list of numbers')
    vector = np.array([_as_number(number) for number in value])
    with np.errstate(over="ignore"):
        is_small = np.isfinite(vector @ vector)
    if not is_small:
        raise ValueError('"vector" has numbers whose squares overflow')
    return vector


def _name_of(vector: Any) -> str:
    return "vector " + hashlib.sha256(np.ascontiguousarray(vector).tobytes()).hexdigest()[:16]


def _as_time(value: Any, now: float) -> float:
    """Return seconds since 1970; ValueError for what is no time, or lies in the future."""
    if isinstance(value, str):
        with suppress(ValueError):  # else seconds, as tables have them
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    seconds = _as_number(value)
    if seconds > now + DAY:
        raise ValueError(f"its time, {short(value)}, is in the future")
    return seconds
