"""The raw cells of a folder's file: a line per machine, then one per cell.

`Key` and the methods that read accuracies are those of learning curves and of data with faults.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from hubless.paper.raw import FOLDED, write_files

FOLDER = Path(__file__).parent / "results" / "curves"


class Key(NamedTuple):
    """Which cell it is."""

    dataset: str
    part: str  # "labels", "faults" or "shift"
    setting: str  # objects per class, the fault or the shift
    draw: int
    method: str


class Cells:
    """The cells of a folder, none without one; what is added is saved at once, so a run can be resumed."""

    def __init__(self, folder: Path | None, key: type[Any] = Key, file_name: str = FOLDED) -> None:
        self.folder, self.file_name = folder, file_name
        self.entries: dict[Any, dict[str, Any]] = {}
        machines: dict[str, dict[str, Any]] = {}
        file = folder and folder / file_name
        for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
            entry = json.loads(line)
            if "machine_id" in entry:
                machines[entry.pop("machine_id")] = entry
                continue
            cell = key(*(entry.pop(field) for field in key._fields))
            self.entries[cell] = entry | {"machine": machines[entry["machine"]]}

    def add(self, key: Any, entry: dict[str, Any]) -> None:
        """Keep a cell, in the place of an older one."""
        self.add_all({key: entry})

    def add_all(self, entries: dict[Key, dict[str, Any]]) -> None:
        """Keep cells, in the place of older ones, and save them at once."""
        for key, entry in entries.items():
            machine = dict(entry["machine"])
            date = machine.pop("date", entry.get("date"))
            self.entries[key] = entry | {"machine": machine, "date": date}
        if self.folder is not None:
            write_files(self.folder, {self.file_name: self._lines().encode()})

    def _lines(self) -> str:
        machines: dict[str, dict[str, Any]] = {}
        lines = []
        for key in sorted(self.entries):
            entry = self.entries[key]
            machine = hashlib.sha256(json.dumps(entry["machine"]).encode()).hexdigest()[:12]
            machines[machine] = {"machine_id": machine, **entry["machine"]}
            lines.append({**key._asdict(), **entry, "machine": machine})
        return "".join(f"{json.dumps(line)}\n" for line in (*machines.values(), *lines))

    def accuracies(self, dataset: str, part: str, setting: str, method: str) -> dict[int, float]:
        """Return draw → accuracy in per cent, of finished cells."""
        return {
            key.draw: 100 * entry["accuracy"]
            for key, entry in sorted(self.entries.items())
            if key[:3] == (dataset, part, setting) and key.method == method and entry["status"] == "done"
        }

    def error(self, dataset: str, part: str, setting: str, method: str) -> str | None:
        """Return the error of a failed cell, None where none failed."""
        for key, entry in self.entries.items():
            if key[:3] == (dataset, part, setting) and key.method == method and entry["status"] == "failed":
                return str(entry["error"])
        return None
