"""docs/reliability.md, made from the raw results of faults, loads and fuzzing and from nothing else."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hubless.paper.raw import write_files

from . import reliability_faults as faults
from . import reliability_loads as loads
from .curve_cells import Cells
from .markdown import MISSING, grid, machine, shown
from .record import DOCS
from .reliability_faults import FOLDER

PAGE = "reliability.md"
FUZZ = ("target", "executions", "seconds", "findings", "date")
NAMES = {
    "npy": "`.npy`",
    "npz": "`.npz`",
    "parquet": "`.parquet`",
    "arrow": "`.arrow`",
    "hdf5": "`.hdf5`",
    "parts": "folder of parts",
    "faiss-flat": "FAISS Flat",
    "faiss": "FAISS HNSW",
    "faiss-ivf": "FAISS IVF",
    "usearch": "usearch",
    "hnswlib": "hnswlib",
    "lance": "LanceDB",
    "pgvector": "pgvector, HNSW",
    "qdrant": "Qdrant, a folder",
    "qdrant-server": "Qdrant, a server",
    "qdrant-edge": "Qdrant Edge",
    "sqlite": "sqlite-vec",
    "duckdb": "DuckDB",
}
OPENING = """\
# Reliability

What happens to an index when something goes wrong while it is moved. Every figure is made from the raw \
results in `benchmarks/results/reliability`, which two commands measure again:

    python -m benchmarks faults            # every operation on each store; finished cells are skipped
    python -m benchmarks loads             # a million rows through each store; finished ones are skipped
    python -m benchmarks reliability-page  # makes this page

## What is promised

- **At every moment, the served name answers with all rows of one version**: all original, or all moved. \
Never some of each, never none. Chroma is the exception: between its two renames nothing has the name, and \
if the process is killed there, nothing has it until `recover`, `promote` or `rollback` is run \
([stores.md](stores.md#chroma)).
- **Run it again.** After a killed process, a full disk, lost rights or a lost connection, the same command \
completes what was begun. Nothing is lost, nothing is there twice, and no temporary file is left; an empty \
lock file may be.
- **Two at once**: one does the work, the other does it after that or is refused, with a message.
- **Readers never write.** Programs that open, describe or read a store while it is switched disturb nothing.
- **A change is noticed.** Where the original changed after `apply`, `promote` refuses or moves the changed \
rows too, whatever the clock and the times of files say. Files of up to 4 MB are compared whole. Of a larger \
file, 64 samples of 64 KB, its size and its time of change are compared; databases are asked for their own \
version.
- **A model folder is the old model or the new one**: the two exchange names in one step. Where the system \
cannot do that and `save` is killed between two renames, the old model is complete under a hidden name, and \
`load` tells which.
- **The switch is checked as a model, too**: the real functions run one system call at a time, with a crash \
at each and with a second process at each, and on engines one call at a time, with a crash at each \
(`tests/stores/test_switch_model.py`, `test_switch_model_engines.py`).
"""
METHOD = """\
## How it is measured

Each operation runs in a process of its own, on a small store that the store's own library made. Trials of a \
cell are spread evenly from the beginning of the operation to its end: over the files that it changes, the \
steps of building and switching, and the calls of the engine; every fourth kill is by the clock, wherever \
the process is then. After the fault, before anything is repaired, the store's own library reads all rows \
under the served name: they must be bit for bit the original ones or those of the moved copy. Then the \
operation is run again, all rows are read again, the other version is brought back, and the folder must have \
the files that an undisturbed run leaves. A trial *held* if all of this is so.

- **kill**: the process gets SIGKILL.
- **full disk**: the store is on a disk of its own, which has from none to all of the room that the \
operation needs.
- **read-only**: the folder becomes read-only at some moment, for a user who is not root; sessions of \
PostgreSQL become read-only, as on a standby.
- **lost connection**: PostgreSQL ends all sessions; the server of Qdrant, which a stand-in plays, drops the \
connection.
- **clock set back**: a row is changed between `apply` and the operation, the times of all files are set to \
what they were before, or a day earlier, and the clock of the process is a day behind.
- **beside …**: both begin at once. **beside readers**: two programs open the store again and again, one of \
them reads its status and rows, and its own library reads all rows, during {switches} promotes and rollbacks \
a trial."""
LOAD = """\
{rows:,} rows of {columns} numbers (float32, {megabytes:,.0f} MB). *Own load* is the bulk load of the \
store's own library. Peak memory is that of the process that does the step, with its libraries; the server \
of PostgreSQL is not in it. *Rows* are those that the store's own library reads as they should be: moved \
after `promote`, and original, bit for bit, after `rollback`."""
ASKED = """\
All the while, the store's own client asks in another process, one question after the other. A gap is the \
time between two answers, so it includes the question itself; *quiet* is the longest gap in as long a time \
in which nothing happens. Clients of plain files open the file anew for each answer; that of FAISS reads the \
index again when the name leads to another file. Qdrant Edge must be closed: its gap is the operation and \
the time to open the shard again."""
FUZZED = """\
Files and texts that others may have made, changed at random; *findings* are errors that nobody foresaw.
"""
LIMITS = """\
## What is not promised

- A power cut. Files and folders are flushed to the disk before they get their names, but only killed \
processes are tested here, not machines.
- A program that opens the served name twice to read it once may find the original first and the moved one \
then: `pyarrow.parquet.read_table` opens a path twice, and whoever reads a folder of parts opens each part. \
Open a file once (`with open(path, "rb")`), hold a folder open, or read again after a failure.
- A change of a file of more than 4 MB that lies between the samples, keeps its size, and whose time of \
change was set back to what it was.
- Network file systems, and systems without `renameat2` (other than Linux): there, a folder is missing for a \
moment while two folders exchange names. Locks are those of `flock`.
- Qdrant in a folder and Qdrant Edge can be open in one process at a time, by their makers' design: who \
serves them must close them during an operation. Both need room on the disk to open what they \
stored, so that is looked at when there is room again; the engine of Qdrant Edge, which maps its files, may \
be ended by the system.
- How a real server of Qdrant behaves: a stand-in answers the requests of its client.
- sqlite-vec and DuckDB with a million rows: they are in the tables of faults alone.
- Chroma under full disks, read-only folders and a million rows: it is not in the tables. Its switch is \
tested with crashes and beside `apply`, at many of its calls, and `apply` and `promote` with kills \
(`tests/stores/test_switch_model_engines.py`, `tests/stores/test_store_chroma.py`).
"""


def write(folder: Path = FOLDER, docs: Path = DOCS) -> list[Path]:
    """Write the page."""
    return write_files(docs, {PAGE: page(folder).encode()})


def page(folder: Path) -> str:
    """Return the page."""
    held, moved = faults.cells_of(folder), loads.cells_of(folder)
    method = METHOD.format(switches=faults.SWITCHES)
    parts = [OPENING, *fault_part(held), *load_part(moved), *fuzz_part(folder), method + "\n", LIMITS]
    parts += machine_part([*held.entries.values(), *moved.entries.values()])
    return "\n".join(parts).rstrip() + "\n"


# --- faults ------------------------------------------------------------------------------------------------


def fault_part(kept: Cells) -> list[str]:
    """Return the tables of faults: trials that held, of all."""
    lines = ["## Faults\n"]
    total, held = (sum(entry[key] for entry in kept.entries.values()) for key in ("trials", "held"))
    if not total:
        return [*lines, f"{MISSING.capitalize()}.\n"]
    lines.append(f"Of {total:,} trials, {held:,} held. In the tables, trials that held, of all.\n")
    for operation in faults.BESIDE:
        lines += [f"### {operation}\n", *_table(kept, faults.STORES, operation), ""]
    lines += ["### Model folders\n", *_models(kept), ""]
    broken = list(faults.failures(kept))
    if broken:
        lines += ["What did not hold:\n", *(f"- {_inline(text)}" for text in broken), ""]
    return [*lines, *_unforeseen(kept)]


def _table(kept: Cells, stores: Sequence[str], operation: str) -> list[str]:
    columns = _present(
        fault for fault in faults.FAULTS for key in kept.entries if key[1:] == (operation, fault)
    )
    rows = [
        [NAMES[store], *(_cell(kept, store, operation, fault) for fault in columns)]
        for store in stores
        if any(key[:2] == (store, operation) for key in kept.entries)
    ]
    return grid(["", *columns], rows)


def _models(kept: Cells) -> list[str]:
    keys = [key for key in kept.entries if key.store == faults.MODELS]
    words = {key: "beside itself" if key.fault.startswith("beside") else key.fault for key in keys}
    columns = [fault for fault in (*faults.FAULTS, "beside itself") if fault in words.values()]
    rows = []
    for operation in _present(key.operation for key in keys):
        cells = {words[key]: key for key in keys if key.operation == operation}
        what = operation + (", a worker" if operation == "fit --dask" else "")
        rows.append([what, *(_cell(kept, *cells[fault]) if fault in cells else "—" for fault in columns)])
    return grid(["", *columns], rows) if rows else [f"{MISSING.capitalize()}."]


def _present(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _cell(kept: Cells, store: str, operation: str, fault: str) -> str:
    entry = kept.entries.get(faults.FaultKey(store, operation, fault))
    if entry is None:
        return "—"
    if "why" in entry:
        return entry["why"]
    text = f"{entry['held']} of {entry['trials']}"
    return text if entry["held"] == entry["trials"] else f"**{text}**"


def _unforeseen(kept: Cells) -> list[str]:
    """Return how often the error of a fault was that of an engine, not one of ours."""
    cells = {key: entry["unforeseen"] for key, entry in kept.entries.items() if "unforeseen" in entry}
    if not cells:
        return []
    stores = _present(NAMES.get(key.store, key.store) for key in cells)
    count, first = sum(cell["count"] for cell in cells.values()), next(iter(cells.values()))["first"]
    return [
        f"In {count} trials the operation ended with an error as the engine raised it, not in our words "
        f"({', '.join(stores)}); for example: {_inline(first)}\n"
    ]


def _inline(text: str) -> str:
    """Return a text of others as code in a line."""
    return "`" + " ".join(text.replace("`", "'").split())[:300] + "`"


# --- loads -------------------------------------------------------------------------------------------------


def load_part(kept: Cells) -> list[str]:
    """Return the tables of loads."""
    lines = ["## Loads\n"]
    done = {key: entry for key, entry in kept.entries.items() if entry["status"] == "done"}
    if not kept.entries:
        return [*lines, f"{MISSING.capitalize()}.\n"]
    for rows, columns in dict.fromkeys(key[1:] for key in kept.entries):
        some = {key: entry for key, entry in done.items() if key[1:] == (rows, columns)}
        lines += [_load_words(rows, columns), "", *_seconds(some), "", *_answers(some), ""]
    failed = [
        (key.store, entry["error"]) for key, entry in kept.entries.items() if entry["status"] == "failed"
    ]
    lines += [f"- {store} failed: {_inline(error)}" for store, error in failed]
    lines += [f"- {store} is not here: {why}." for store, why in loads.CANNOT.items()]
    return [*lines, ""]


def _load_words(rows: int, columns: int) -> str:
    return LOAD.format(rows=rows, columns=columns, megabytes=rows * columns * 4 / 1e6)


def _seconds(some: dict[Any, dict[str, Any]]) -> list[str]:
    steps = ("own load", "apply", "promote", "rollback")
    head = ["", *(f"{step}, s" for step in steps), "own load, MB", "apply, MB", "promote, MB"]
    rows = []
    for key, entry in some.items():
        seconds = [shown(entry[step]["seconds"]) for step in steps]
        memory = [f"{entry[step]['peak_bytes'] / 1e6:,.0f}" for step in steps[:3]]
        rows.append([key.store, *seconds, *memory, f"{entry['rows moved']:,}", f"{entry['rows back']:,}"])
    return grid([*head, "rows moved", "rows back"], rows)


def _answers(some: dict[Any, dict[str, Any]]) -> list[str]:
    rows = []
    for key, entry in some.items():
        steps = [entry[step] for step in ("apply", "promote", "rollback", "quiet")]
        answers = [f"{step['answers']:,}" if "answers" in step else "—" for step in steps[:3]]
        gaps = [shown(step["longest_gap_ms"]) if "longest_gap_ms" in step else "—" for step in steps]
        rows.append([key.store, *answers, *gaps, str(entry.get("client", {}).get("errors", "—"))])
    head = ["", "answers during apply", "promote", "rollback"]
    head += ["longest gap, ms: apply", "promote", "rollback", "quiet", "failed questions"]
    return [ASKED, "", *grid(head, rows)]


# --- fuzzing, and where all this was measured --------------------------------------------------------------


def fuzz_part(folder: Path) -> list[str]:
    """Return the table of fuzzing, where it has raw results: a line per target."""
    files = sorted(folder.glob("fuzz*.json*"))
    entries = [json.loads(line) for file in files for line in file.read_text().splitlines() if line.strip()]
    if not entries:
        return []
    rows = [
        [str(entry[name]) if name in ("target", "date") else shown(entry[name]) for name in FUZZ]
        for entry in entries
    ]
    return ["## Fuzzing\n", FUZZED, *grid(["", *FUZZ[1:]], rows), ""]


def machine_part(entries: list[dict[str, Any]]) -> list[str]:
    """Return each machine and its software once, with dates and commits."""
    where: dict[str, set[str]] = {}
    for entry in entries:
        where.setdefault(machine(entry), set()).add(f"{entry['date']}, commit {entry['commit']}")
    lines = [f"- {text} ({'; '.join(sorted(when))})" for text, when in sorted(where.items())]
    return ["## Machines\n", *lines] if lines else []
