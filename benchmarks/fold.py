"""Fold raw results: the files of all cells become lines of one file, which `hubless tables` reads alike."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hubless.paper.raw import (
    FOLDED,
    Cell,
    Entry,
    files_of,
    is_time,
    load_all,
    parse,
    read_file,
)
from hubless.support.locks import locked
from hubless.support.writing import new_file, sync_folder


def fold(folder: Path) -> int:
    """Collect all files of cells in `results.jsonl` and remove them; return how many there were.

    Nothing is changed where one of them is damaged or contradicts a folded result. Files are removed when the
    new `results.jsonl` is on the disk: after a kill in between, the same call removes the rest.
    """
    load_all(folder)  # an error where there is nothing to fold, before a lock is made
    with locked(folder / FOLDED):
        entries, files = load_all(folder), files_of(folder)
        if not files:
            return 0
        text = dump(entries)
        if parse(text, FOLDED) != entries:
            raise ValueError(f"the results in {folder} cannot be written as {FOLDED} without a loss.")
        with new_file(folder / FOLDED, sync=True) as file:
            file.write(text.encode())
        sync_folder(folder)
        for name in files:
            _remove(folder, name, entries[name])
    return len(files)


def _remove(folder: Path, name: str, entry: Entry) -> None:
    """Remove a file that was folded, unless it was written again since, and folders that become empty."""
    if read_file(folder / name) != entry:
        return
    (folder / name).unlink()
    with suppress(OSError):  # not empty
        for parent in list((folder / name).parents)[:3]:
            parent.rmdir()


def dump(entries: Mapping[str, Entry]) -> str:
    """Return results as lines: the machines, each once, then a cell each with its machine and its date."""
    machines: dict[str, str] = {}
    cells = []
    for name, entry in entries.items():
        head = {field: entry[field] for field in Cell._fields}
        line = head | {"pass": "times" if is_time(name) else "cells"} | entry
        if "machine" in entry:
            machine = dict(entry["machine"])
            line["date"] = machine.pop("date", None)
            line["machine"] = hashlib.sha256(json.dumps(machine).encode()).hexdigest()[:12]
            machines[line["machine"]] = json.dumps({"machine_id": line["machine"], **machine})
        cells.append(json.dumps(line))
    return "".join(f"{line}\n" for line in (*machines.values(), *cells))
