"""Raw results on disk: a file per cell while a run lasts, folded into one file when it is over.

A run writes DATASET/dim-DIM/METHOD/split-I.json, and split-I.time.json for the training time. `python -m
benchmarks fold` collects these files in `results.jsonl`: one line per machine, then one line per cell, which
refers to its machine. Both forms are read alike; a file counts as newer than a folded failure.
"""

import json
import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from ..arrays.devices import device_name
from ..support.text import printable, reason, short
from ..support.untrusted_json import parse_json, read_bounded
from ..support.version import __version__
from ..support.writing import new_file
from .names import KINDS
from .published import TABLES

Entry = dict[str, Any]  # one raw result; the same object may be returned twice, so it is never changed

FOLDED = "results.jsonl"
MOST = 1 << 30  # bytes of a file of results
PATTERN = "*/dim-*/*/split-*.json"
HEAD = ("dataset", "title", "kind", "note", "method", "split", "dim", "status")
MEASURED = ("accuracy", "skewness", "chosen", "threads", "device", "machine", *TABLES[1])
TIMED = ("seconds", "threads", "device", "machine")
REPAIR = "remove it and run its cell again"


class Cell(NamedTuple):
    """One entry of the tables, before the mean over the splits is taken."""

    dataset: str
    dim: int
    method: str
    split: int

    def name(self, of_time: bool = False) -> str:
        """Return the name of its file in the folder of results."""
        end = ".time.json" if of_time else ".json"
        return f"{self.dataset}/dim-{self.dim}/{self.method}/split-{self.split}{end}"


def is_time(name: str) -> bool:
    """Return whether a file has a training time, not a cell."""
    return name.endswith(".time.json")


# --- reading


def load(folder: Path, name: str) -> Entry | None:
    """Return one raw result, or None where there is none; a file that cannot be read does not count."""
    try:
        entry = parse_json(read_bounded(folder / name, MOST), any_numbers=True)
    except (FileNotFoundError, ValueError):
        entry = None
    if isinstance(entry, dict) and {"rows", "status"} <= set(entry):
        return entry
    return folded(folder).get(name)


def place(folder: Path, name: str) -> Path:
    """Return the file that has a raw result: its own, or the folded one."""
    return folder / name if (folder / name).exists() else folder / FOLDED


def load_all(folder: Path) -> dict[str, Entry]:
    """Return every raw result by the name of its file, in the order of the names; each is checked."""
    files, lines = files_of(folder), folded(folder)
    if not files and not lines:
        empty = f"has no DATASET/dim-DIM/METHOD/split-I.json and no {FOLDED}"
        what = empty if folder.is_dir() else "is not a folder"
        raise FileNotFoundError(f"{folder} {what}; give the folder that the experiment wrote its results to.")
    entries = _merged(folder, lines, {name: read_file(folder / name) for name in files})
    for name, entry in entries.items():
        _check(entry, name, folder / name if name in files else f"{folder / FOLDED}, {printable(name)[:300]}")
    return {name: entries[name] for name in sorted(entries, key=lambda name: name.split("/"))}


def folded(folder: Path) -> Mapping[str, Entry]:
    """Return the folded results by the name that their file had; nothing where none were folded."""
    file = folder / FOLDED
    try:
        state = file.stat()
    except OSError:
        return {}
    return _folded(file, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(maxsize=4)  # a run asks for one cell after another
def _folded(file: Path, *version: int) -> dict[str, Entry]:
    return parse(read_bounded(file, MOST).decode(), str(file))


def files_of(folder: Path) -> list[str]:
    """Return the names of all files of cells and times."""
    return [file.relative_to(folder).as_posix() for file in folder.glob(PATTERN)]


def read_file(file: Path) -> Any:
    """Return the content of one file; ValueError where it is damaged."""
    try:
        return parse_json(read_bounded(file, MOST), any_numbers=True)
    except ValueError as error:
        raise ValueError(f"{file} is not readable JSON ({error}); {REPAIR}.") from error


def _merged(folder: Path, lines: Mapping[str, Entry], files: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return both forms together; a failed cell may have been run again, a finished one is final."""
    for name in lines.keys() & files.keys():
        if lines[name] != files[name] and lines[name]["status"] == "done":
            raise ValueError(
                f"{folder / name} and its line in {folder / FOLDED} are different results of one cell. "
                "Remove the file to keep the line, or the line to keep the file."
            )
    return {**lines, **files}


def _check(entry: Any, name: str, where: Path | str) -> None:
    """Raise ValueError where a raw result is not what a run writes."""
    if not isinstance(entry, dict):
        raise ValueError(f"{where} contains a {type(entry).__name__}, not an object; {REPAIR}.")
    measures = TIMED if is_time(name) else MEASURED
    needed = (*HEAD, *(measures if entry.get("status") == "done" else ("error",)))
    if missing := [field for field in needed if field not in entry]:
        raise ValueError(f"{where} lacks {', '.join(missing)}; {REPAIR}.")
    for field in {"accuracy", "skewness", "seconds"} & set(needed):
        if field == "skewness" and entry[field] is None:  # a method without neighbours
            continue
        if not _is_finite(entry[field]):
            got = short(entry[field])
            raise ValueError(f"{where}: {field} must be a finite number, got {got}; {REPAIR}.")
    if not isinstance(entry.get("machine", {}), dict):
        raise ValueError(f"{where}: machine must be an object, got {short(entry['machine'])}; {REPAIR}.")
    if entry["kind"] not in list(KINDS):  # a list: what is not hashable is not in it either
        raise ValueError(f"{where}: kind must be one of {', '.join(KINDS)}; got {short(entry['kind'])}.")
    cell = _cell_of(entry)
    if cell.name(is_time(name)) != name:
        says = printable(cell.name().removesuffix(".json"))[:300]
        raise ValueError(f"{where} contains the result of {says}: a file was moved by hand, move it back.")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e300  # not `isfinite`: a number may be too long


def _cell_of(entry: Entry) -> Cell:
    return Cell(*(entry[field] for field in Cell._fields))


# --- writing


def save(folder: Path, name: str, entry: Entry) -> None:
    """Write one raw result to its file in one step."""
    write_files(folder, {name: (json.dumps(entry, indent=1) + "\n").encode()})


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files by name, each in one step, and return their paths."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with new_file(folder / name) as file:
            file.write(content)
    return [folder / name for name in files]


# --- the lines of results.jsonl


def parse(text: str, source: str) -> dict[str, Entry]:
    """Return the results of such lines by the name of their file; ValueError names a line that is damaged."""
    machines: dict[str, Any] = {}
    entries: dict[str, Entry] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                _take(parse_json(line, any_numbers=True), machines, entries)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"line {number} of {source} is damaged ({reason(error)}); restore the "
                    "file, or remove the line and run its cell again."
                ) from error
    return entries


def _take(line: dict[str, Any], machines: dict[str, Any], entries: dict[str, Entry]) -> None:
    """Add a line to the machines or to the results."""
    if "machine_id" in line:
        machines[line.pop("machine_id")] = line
        return
    name = _cell_of(line).name(of_time={"cells": False, "times": True}[line.pop("pass")])
    if "machine" in line:
        day = line.pop("date")
        line["machine"] = ({} if day is None else {"date": day}) | machines[line["machine"]]
    if entries.setdefault(name, line) != line:
        raise ValueError(f"another line has a different result of {name}")


# --- where a result comes from


def this_machine(device: str = "cpu") -> dict[str, Any]:
    """Return processor, cores, memory and versions; the accelerator too, where one is used."""
    about = {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": _memory(),
        "python": platform.python_version(),
        "hubless": __version__,
        **versions("numpy", "scipy", "scikit-learn"),
    }
    return about if device == "cpu" else about | {"accelerator": device_name(device), **versions("torch")}


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions(*packages: str) -> dict[str, str | None]:
    """Return the version of each package, None where it is not installed."""
    known: dict[str, str | None] = dict.fromkeys(packages)
    for package in packages:
        with suppress(PackageNotFoundError):
            known[package] = version(package)
    return known


def _processor() -> str:
    """Return the name that the operating system gives, where it gives one."""
    info = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*:\s*(.*)", info.read_text(), re.MULTILINE) if info.exists() else None
    return name[1].strip() if name else platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):  # not on every operating system
        return None
