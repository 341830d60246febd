"""What is known of items but not kept in their index: a table with a row per item, in the same order."""

import csv
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from .store import StoreError, need


class Items(NamedTuple):
    """A table by columns."""

    columns: dict[str, list[Any]]

    @staticmethod
    def read(path: str | os.PathLike[str]) -> "Items":
        """A table from a file: CSV or TSV with a header, JSON, JSON lines, Parquet, or a text of labels."""
        file = Path(path).expanduser()
        if not file.is_file():
            raise StoreError(f"{file} is not there. Give a table with a row per item.")
        try:
            columns = READERS.get(file.suffix.lower(), _lines)(file)
        except (UnicodeDecodeError, csv.Error, EOFError, ValueError, RecursionError) as error:
            raise StoreError(f"{file} cannot be read as {file.suffix or 'text'}: {error}") from error
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1:
            raise StoreError(f"{file} has columns of {sorted(lengths)} rows; they must be alike.")
        return Items(columns)

    def check_length(self, count: int) -> None:
        """Refuse a table that cannot belong to so many rows."""
        own = len(next(iter(self.columns.values())))
        if own != count:
            raise StoreError(
                f"the table of items has {own} rows, the index {count}. Give one row per item, in its order."
            )


def _csv(file: Path) -> dict[str, list[Any]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        csv.field_size_limit(1 << 30)
        rows = csv.reader(lines, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
        names = next(rows, [])
        values = [row for row in rows if row]  # a blank line is none
    short = [i for i, row in enumerate(values, 2) if len(row) != len(names)]
    if short:
        raise ValueError(f"line {short[0]} has another number of fields than the header {names}")
    return {name: [row[i] for row in values] for i, name in enumerate(names)}


def _json(file: Path) -> dict[str, list[Any]]:
    """A list of ids, or of objects; or an object of lists."""
    found = json.loads(file.read_text(encoding="utf-8-sig"))
    if isinstance(found, dict) and found and all(isinstance(values, list) for values in found.values()):
        return found
    if not isinstance(found, list) or not found:
        raise ValueError("expected a list of ids or of objects, or an object of lists")
    return _records(found) if isinstance(found[0], dict) else {"id": found}


def _json_lines(file: Path) -> dict[str, list[Any]]:
    with file.open(encoding="utf-8-sig") as lines:
        return _records([json.loads(line) for line in lines if line.strip()])


def _records(found: list[Any]) -> dict[str, list[Any]]:
    if not found or not all(isinstance(row, dict) for row in found):
        raise ValueError('expected objects, as {"id": 7, "text": "…"}')
    names = list(dict.fromkeys(name for row in found for name in row))
    return {name: [row.get(name) for row in found] for name in names}


def _parquet(file: Path) -> dict[str, list[Any]]:
    table = need("pyarrow.parquet", "files").read_table(file)
    return {name: table[name].to_pylist() for name in table.column_names}


def _npy(file: Path) -> dict[str, list[Any]]:
    import numpy as np

    found = np.load(file, mmap_mode="r", allow_pickle=False)
    if found.ndim != 1:
        raise ValueError(f"expected one label per item; got an array of shape {found.shape}")
    return {"label": found}


def _lines(file: Path) -> dict[str, list[Any]]:
    return {"label": file.read_text(encoding="utf-8").splitlines()}


READERS = {
    ".csv": _csv,
    ".tsv": _csv,
    ".json": _json,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
    ".npy": _npy,
}
