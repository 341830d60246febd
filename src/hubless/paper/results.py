"""Raw results of the experiment: read, averaged over the splits and put beside the paper's.

A `Row` is one entry of a table; tables and figures are made of rows and of nothing else.
"""

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from . import published as paper

Entry = dict[str, Any]  # one raw file

KINDS = (*paper.DATASETS, "extra")
TITLES = {name: title for part in paper.DATASETS.values() for name, title in part.items()}
EXTRA_METHODS = {"nca": "NCA", "scale": "scale"}  # ours, beyond the paper's six
UNTRAINED = ("original-metric", "scale")
SPEED_UP = "speed-up"  # fastest Mahalanobis learner / Move-labeled
DECIMALS = {1: 0, 2: 2, 3: 1, 4: 1}  # printed by the paper

HEAD = ("dataset", "title", "kind", "note", "method", "split", "dim", "status")
MEASURED = ("accuracy", "skewness", "chosen", "threads", "device", "machine", *paper.STATISTICS)
TIMED = ("seconds", "threads", "device", "machine")


def _published() -> dict[tuple[int, str, str], float]:
    timed = [name for kind in ("document", "image") for name in paper.DATASETS[kind]]
    tables: dict[int, Mapping[str, tuple[float | None, ...]]]
    tables = {1: paper.STATISTICS, 2: paper.SKEWNESS, 3: paper.ACCURACY, 4: paper.SECONDS}
    return {
        (number, dataset, name): value
        for number, table in tables.items()
        for name, values in table.items()
        for dataset, value in zip(timed if number == 4 else TITLES, values, strict=True)
        if value is not None
    }


PUBLISHED = _published()  # (table, data set, row) → the paper's figure


class Results(NamedTuple):
    """The raw files: cells, with accuracy and skewness, and times, from a pass of their own."""

    cells: list[Entry]
    times: list[Entry]


class Row(NamedTuple):
    """One entry of a table: ours over the splits, and the paper's."""

    table: int
    dim: int
    kind: str
    dataset: str
    title: str
    note: str  # how the features differ from the paper's, or ""
    method: str  # in Table 1, the property
    mean: float | None
    standard_error: float | None  # None with fewer than two splits
    n_splits: int
    paper: float | None
    missing: str  # why there is no figure, or one of fewer splits; or ""

    @property
    def heading(self) -> str:
        """The data set's title, marked where its data are not the paper's."""
        return self.title + ("†" if self.note else "")


def read(folder: str | Path) -> Results:
    """Every raw file under `folder`, laid out as DATASET/dim-DIM/METHOD/split-I[.time].json."""
    folder = Path(folder)
    files = sorted(folder.glob("*/dim-*/*/split-*.json"))
    if not files:
        what = "has no DATASET/dim-DIM/METHOD/split-I.json" if folder.is_dir() else "is not a folder"
        raise FileNotFoundError(f"{folder} {what}; give the folder that the experiment wrote its results to.")
    entries = {file: _load(file) for file in files}
    return Results(
        [entry for file, entry in entries.items() if not _is_time(file)],
        [entry for file, entry in entries.items() if _is_time(file)],
    )


def _is_time(file: Path) -> bool:
    return file.name.endswith(".time.json")


def _load(file: Path) -> Entry:
    repair = "remove it and run its cell again"
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not readable JSON ({error}); {repair}.") from error
    if not isinstance(entry, dict):
        raise ValueError(f"{file} holds a {type(entry).__name__}, not an object; {repair}.")
    measures = TIMED if _is_time(file) else MEASURED
    needed = (*HEAD, *(measures if entry.get("status") == "done" else ("error",)))
    if lacking := [name for name in needed if name not in entry]:
        raise ValueError(f"{file} lacks {', '.join(lacking)}; {repair}.")
    for name in {"accuracy", "skewness", "seconds"} & set(needed):
        if name == "skewness" and entry[name] is None:  # a method without neighbours
            continue
        if not isinstance(entry[name], int | float) or not isfinite(entry[name]):
            raise ValueError(f"{file}: {name} must be a finite number, got {entry[name]!r}; {repair}.")
    if entry["kind"] not in KINDS:
        raise ValueError(f"{file}: kind must be one of {', '.join(KINDS)}; got {entry['kind']!r}.")
    inside = "{dataset}/dim-{dim}/{method}/split-{split}".format(**entry)
    if inside != "/".join((*file.parts[-4:-1], file.name.split(".")[0])):
        raise ValueError(f"{file} says that it is {inside}; a file was moved by hand, put it back.")
    if entry.get("rows"):  # a quick look, which no table may pass off as the whole data set
        part = f"a random part of {entry['rows']} objects"
        entry["note"] = f"{entry['note']}; {part}" if entry["note"] else part
    return entry


def rows(results: Results, dim: int = paper.DIMENSION) -> list[Row]:
    """Every entry of Tables 1 to 4 at one dimension: in the paper's order, then what is ours."""
    cells = [cell for cell in results.cells if cell["dim"] == dim]
    # the paper times no UCI data set; the original metric and the scalar control have nothing to train
    times = [
        time
        for time in results.times
        if time["dim"] == dim and time["kind"] != "UCI" and time["method"] not in UNTRAINED
    ]
    check_one_machine(times)
    timed = _average(4, times, "seconds", 1, paper.SECONDS)
    return [
        *_statistics(cells),
        *_average(2, cells, "skewness", 1, paper.METHODS),
        *_average(3, cells, "accuracy", 100, paper.METHODS),
        *timed,
        *_speed_ups(timed),
    ]


def gains(results: Results, dim: int = paper.DIMENSION) -> list[Row]:
    """Accuracy minus that of the original metric, in points; the error is that of the paired differences."""
    cells = [cell for cell in results.cells if cell["dim"] == dim and cell["status"] == "done"]
    base = {
        (cell["dataset"], cell["split"]): cell["accuracy"]
        for cell in cells
        if cell["method"] == "original-metric"
    }
    paired = [
        cell | {"gain": cell["accuracy"] - base[cell["dataset"], cell["split"]]}
        for cell in cells
        if (cell["dataset"], cell["split"]) in base
    ]
    found = [
        row for row in _average(3, paired, "gain", 100, paper.METHODS) if row.method != "original-metric"
    ]
    return [row._replace(paper=_published_gain(row)) for row in found]


def _published_gain(row: Row) -> float | None:
    base = PUBLISHED.get((3, row.dataset, "original-metric"))
    return None if row.paper is None or base is None else row.paper - base


def _statistics(cells: list[Entry]) -> list[Row]:
    found = []
    for entries in _by_dataset(cells):
        for name in paper.STATISTICS:
            values = {entry[name] for entry in entries if name in entry}
            if len(values) > 1:
                dataset, told = entries[0]["dataset"], ", ".join(map(str, sorted(values)))
                raise ValueError(
                    f"the cells of {dataset} disagree on {name} ({told}): they were run on different data. "
                    "Remove those of the old data and run them again."
                )
            if name != "original_dimension" or entries[0]["kind"] != "UCI":  # never reduced
                found.append(_row(1, entries, name, [float(value) for value in values], ""))
    return found


def _average(table: int, entries: list[Entry], field: str, scale: float, methods: Iterable[str]) -> list[Row]:
    found = []
    for own in _by_dataset(entries):
        ran = {entry["method"] for entry in entries if entry["kind"] == own[0]["kind"]}
        known = list(dict.fromkeys([*methods, *paper.METHODS, *EXTRA_METHODS]))
        shown = [name for name in known if name in methods or name in ran] + sorted(ran - set(known))
        for method in shown:
            cells = [entry for entry in own if entry["method"] == method]
            done = [cell for cell in cells if cell["status"] == "done"]
            values = [scale * cell[field] for cell in done if cell[field] is not None]
            missing = _missing(
                cells, {entry["split"] for entry in own}, "not timed" if table == 4 else "not run"
            )
            found.append(_row(table, own, method, values, missing))
    return found


def _row(table: int, entries: list[Entry], method: str, values: list[float], missing: str) -> Row:
    first, n = entries[0], len(values)
    head = (first["kind"], first["dataset"], first["title"], first["note"])
    error = stdev(values) / n**0.5 if n > 1 else None
    same_dim = first["dim"] == paper.DIMENSION
    published = PUBLISHED.get((table, first["dataset"], method)) if same_dim else None
    return Row(
        table, first["dim"], *head, method, fmean(values) if values else None, error, n, published, missing
    )


def _missing(cells: list[Entry], expected: set[int], absent: str) -> str:
    """Which of the expected splits have no figure, and why."""
    told = {cell["split"]: cell.get("error") for cell in cells}  # None where it is done
    reasons: dict[str, list[int]] = {}
    for split in sorted(expected):
        reason = f"failed: {' '.join(str(told[split]).split())}" if split in told else absent
        if split not in told or told[split] is not None:
            reasons.setdefault(reason, []).append(split)
    if list(reasons.values()) == [sorted(expected)]:
        return next(iter(reasons))
    return "; ".join(f"split {', '.join(map(str, splits))} {reason}" for reason, splits in reasons.items())


def _by_dataset(entries: list[Entry]) -> list[list[Entry]]:
    """Entries of each data set: by kind, in the paper's order, then by name."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry["dataset"], []).append(entry)
    order = list(TITLES)

    def place(group: list[Entry]) -> tuple[int, int, str]:
        name = group[0]["dataset"]
        return KINDS.index(group[0]["kind"]), order.index(name) if name in TITLES else len(order), name

    return sorted(groups.values(), key=place)


# seconds of the fastest of LMNN, ITML and DML-eig / seconds of Move-labeled
def _speed_ups(timed: list[Row]) -> list[Row]:
    found = []
    for own in (row for row in timed if row.method == "move-labeled"):
        learners = [row for row in timed if row.dataset == own.dataset and row.method in paper.MAHALANOBIS]
        ours = [row.mean for row in learners if row.mean is not None]
        theirs = [row.paper for row in learners if row.paper is not None]
        missing = [paper.METHODS[row.method] for row in learners if row.mean is None]
        found.append(
            own._replace(
                method=SPEED_UP,
                mean=min(ours) / own.mean if ours and own.mean else None,
                standard_error=None,
                paper=min(theirs) / own.paper if theirs and own.paper else None,
                missing=f"without {', '.join(missing)}" if missing else "",
            )
        )
    return found


def describe_machine(entry: Entry) -> str:
    """What decides the time of a run: processor, cores, threads, device."""
    machine = entry["machine"]
    processor, cores = (machine.get(name, "unknown") for name in ("processor", "cores"))
    return f"{processor}, {cores} cores, {entry['threads']} threads, {entry['device']}"


def check_one_machine(times: list[Entry]) -> None:
    """Refuse times of more than one machine: they cannot stand in one table."""
    found: dict[str, set[str]] = {}
    for time in times:
        if time["status"] == "done":
            found.setdefault(describe_machine(time), set()).add(f"{time['dataset']} {time['method']}")
    if len(found) > 1:
        told = "; ".join(
            f"{machine} ({len(names)}, as {min(names)})" for machine, names in sorted(found.items())
        )
        raise ValueError(
            f"Table 4 compares times of one machine, but they come from {len(found)}: {told}. "
            "Remove the .time.json files of all but one, or time the rest again there."
        )
