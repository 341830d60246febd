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
    def read(path: str | os.PathLike[str], count: int | None = None) -> "Items":
        """A table from a file: CSV or TSV with a header, JSON lines, JSON, a text file of labels, or Parquet.

        `count` is the number of rows it must have.
        """
        file = Path(path).expanduser()
        if not file.is_file():
            raise StoreError(f"{file} is not there. Give a table with a row per item.")
        try:
            columns = READERS.get(file.suffix.lower(), _lines)(file)
        except (UnicodeDecodeError, csv.Error, ValueError) as error:
            raise StoreError(f"{file} cannot be read as {file.suffix or 'text'}: {error}") from error
        lengths = {len(values) for values in columns.values()}
        if count is not None and lengths != {count}:
            raise StoreError(
                f"{file} has {' or '.join(map(str, sorted(lengths))) or 'no'} rows, the index {count}. Give "
                "one row per item, in the order of the index."
            )
        return Items(columns)


def _csv(file: Path) -> dict[str, list[Any]]:
    with file.open(newline="", encoding="utf-8") as lines:
        csv.field_size_limit(1 << 30)
        rows = csv.reader(lines, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
        names = next(rows, [])
        values = list(rows)
    short = [i for i, row in enumerate(values, 2) if len(row) != len(names)]
    if short:
        raise ValueError(f"line {short[0]} has another number of fields than the header {names}")
    return {name: [row[i] for row in values] for i, name in enumerate(names)}


def _json(file: Path) -> dict[str, list[Any]]:
    """A list of ids, or of objects; or an object of lists."""
    found = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(found, dict) and all(isinstance(values, list) for values in found.values()):
        return found
    return _records(found) if found and isinstance(found[0], dict) else {"id": list(found)}


def _json_lines(file: Path) -> dict[str, list[Any]]:
    with file.open(encoding="utf-8") as lines:
        return _records([json.loads(line) for line in lines if line.strip()])


def _records(found: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(name for row in found for name in row))
    return {name: [row.get(name) for row in found] for name in names}


def _parquet(file: Path) -> dict[str, list[Any]]:
    table = need("pyarrow.parquet", "files").read_table(file)
    return {name: table[name].to_pylist() for name in table.column_names}


def _npy(file: Path) -> dict[str, list[Any]]:
    import numpy as np

    return {"label": np.load(file, allow_pickle=False).tolist()}


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
