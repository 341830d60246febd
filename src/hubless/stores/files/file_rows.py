"""Rows of a file by their number, with columns of the file itself or of a table of items beside it."""

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...support.imports import need
from ...support.mapping import release_pages
from ...support.nearest import files_near
from ...support.text import short
from ...support.untrusted_json import parse_json
from ..checks import readable
from ..store import Columns, Facts, StoreError

LONGEST = 1 << 30  # characters of a text in a table
Where: TypeAlias = slice | np.ndarray  # consecutive rows, or row numbers
Reader: TypeAlias = Callable[[Any], Any]  # from a Where to values of these rows


@dataclass
class FileRows:
    """An open file: rows by number."""

    facts: Facts
    vectors: Reader  # (n, d)
    columns: dict[str, Reader] = field(default_factory=dict)  # by name
    in_order: bool = True  # whether rows are in the order in which they were put in


def numbers_of(where: Where) -> np.ndarray:
    """Return row numbers, (n,)."""
    return np.arange(where.start, where.stop) if isinstance(where, slice) else np.asarray(where)


def as_ids(values: Sequence[Any], name: str) -> np.ndarray:
    """Return ids as an array of int64, or of texts; StoreError where two are equal or one is missing."""
    if any(value is None for value in values):
        raise StoreError(f"{name} has rows without an id. Name a column in which every row has one (--id).")
    is_whole = all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values)
    if is_whole and all(-(2**63) <= value < 2**63 for value in values):
        ids = np.asarray(values, dtype=np.int64)
    else:
        ids = np.array([str(value) for value in values] + [None], dtype=object)[:-1]
    n_repeated = len(ids) - len(set(ids.tolist()))
    if n_repeated:
        raise StoreError(
            f"{name} has {n_repeated} rows that repeat an earlier id. Name a column of unique ids (--id)."
        )
    return ids


def picker(values: Any) -> Reader:
    """Return a function from a slice or row numbers to the values of a list or an array."""
    if isinstance(values, np.ndarray):

        def pick(where: Where) -> list[Any]:
            picked: list[Any] = values[where].tolist()
            release_pages(values)
            return picked

        return pick
    return lambda where: values[where] if isinstance(where, slice) else [values[i] for i in where]


def guarded(rows: FileRows, path: Path) -> FileRows:
    """Return rows whose readers raise a StoreError where the file is damaged."""

    def guard(read: Reader) -> Reader:
        def values(where: Where) -> Any:
            with readable(path):
                return read(where)

        return values

    columns = {name: guard(read) for name, read in rows.columns.items()}
    return replace(rows, vectors=guard(rows.vectors), columns=columns)


def attach(rows: FileRows, items: Columns, id: str | None, name: str) -> None:
    """Give rows the columns of a table of items: by id where both have ids, else row by row."""
    columns, count, key = dict(items), rows.facts.count, id or "id"
    if "id" in rows.columns and key in columns:
        places = {str(value): place for place, value in enumerate(columns.pop(key))}
        ids = [str(value) for value in rows.columns["id"](slice(0, count))]
        missing = [value for value in ids if value not in places]
        if missing:
            raise StoreError(
                f"{len(missing)} of {count} ids of {name} are not in the column {key!r} of the items, for "
                f"example {missing[0]}."
            )
        order = [places[value] for value in ids]
        columns = {other: [values[i] for i in order] for other, values in columns.items()}
        rows.columns[key] = rows.columns["id"]
    elif not rows.in_order:
        raise StoreError(f"{name} keeps no order: give a table of items (--items) with a column of its ids.")
    elif len(next(iter(columns.values()))) != count:
        raise StoreError(
            f"the table of items has {len(next(iter(columns.values())))} rows, {name} has {count}. Give one "
            "row per item, in the same order."
        )
    rows.columns |= {other: picker(values) for other, values in columns.items()}


# --- tables of items ---------------------------------------------------------------------------------------


def read_table(path: str | os.PathLike[str]) -> Columns:
    """Read a table: CSV or TSV with a header, JSON, JSON lines, Parquet; or labels, as .npy or one a line.

    A CSV of one column whose first value occurs again has labels alone, and no header.
    """
    file = Path(os.path.expanduser(path))
    if not file.is_file():
        what = "is not a file" if file.exists() else "does not exist"
        near = "" if file.exists() else files_near(file)
        raise StoreError(f"{file} {what}.{near} Give a table: CSV, TSV, JSON, JSON lines, Parquet or .npy.")
    with readable(file):
        columns = READERS.get(file.suffix.lower(), _lines)(file)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1:
        raise StoreError(f"{file} has columns of {sorted(lengths)} rows; all must have the same number.")
    return columns


def _csv(file: Path) -> Columns:
    limit = csv.field_size_limit(LONGEST)  # a setting of the whole process
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows = csv.reader(lines, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
            names = next(rows, [])
            values = [row for row in rows if row]  # without blank lines
        if len(names) == 1 and names in values:  # labels without a header
            names, values = ["label"], [names, *values]
    finally:
        csv.field_size_limit(limit)
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have the same name, in the header {short(names)}")
    uneven = [i for i, row in enumerate(values, 2) if len(row) != len(names)]
    if uneven:
        raise ValueError(
            f"row {uneven[0]} (the header is row 1) does not have as many fields as the header {short(names)}"
        )
    return {name: [row[i] for row in values] for i, name in enumerate(names)}


def _json(file: Path) -> Columns:
    """Read a list of ids, a list of objects, or an object of lists."""
    content = parse_json(file.read_bytes(), any_numbers=True)
    if isinstance(content, dict) and content and all(isinstance(value, list) for value in content.values()):
        return content
    if not isinstance(content, list) or not content:
        raise ValueError("expected a list of ids or of objects, or an object of lists")
    return _records(content) if isinstance(content[0], dict) else {"id": content}


def _json_lines(file: Path) -> Columns:
    with file.open(encoding="utf-8-sig") as lines:
        return _records([parse_json(line, any_numbers=True) for line in lines if line.strip()])


def _records(rows: list[Any]) -> Columns:
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError('expected objects such as {"id": 7, "text": "…"}')
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def _parquet(file: Path) -> Columns:
    table = need("pyarrow.parquet", "files").read_table(file)
    return {name: table[name].to_pylist() for name in table.column_names}


def _npy(file: Path) -> Columns:
    labels = np.load(file, mmap_mode="r", allow_pickle=False)
    if labels.ndim != 1:
        raise StoreError(f"{file} must have one label per row, along one axis; got the shape {labels.shape}.")
    return {"label": labels}


def _lines(file: Path) -> Columns:
    return {"label": file.read_text(encoding="utf-8").splitlines()}


READERS = {
    ".csv": _csv,
    ".tsv": _csv,
    ".json": _json,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
    ".npy": _npy,
}
