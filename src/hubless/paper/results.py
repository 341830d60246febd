"""Raw results, averaged over the splits and put beside the paper's figures.

A `Row` is one entry of a table; tables and figures are made of rows and of nothing else.
"""

from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from .names import KINDS, METHODS, PAPER_DATASETS, PAPER_METHODS, UNTRAINED
from .published import DIMENSION, MAHALANOBIS, TABLES
from .raw import Entry, is_time, load_all

SPEED_UP = "speed-up"  # fastest Mahalanobis learner / Move-labeled
DECIMALS = {1: 0, 2: 2, 3: 1, 4: 1}  # printed by the paper


class Results(NamedTuple):
    """The raw results: cells, with accuracy and skewness, and times, which are measured separately."""

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


def competes(row: Row) -> bool:
    """Return whether the paper's table has this row."""
    return row.method in TABLES[row.table]


def is_papers(row: Row) -> bool:
    """Return whether the paper has this row, in a table or as a quotient of two."""
    return competes(row) or row.method == SPEED_UP


def read(folder: str | Path) -> Results:
    """Return every raw result under `folder`, from files and folded ones alike."""
    results = Results([], [])
    for name, entry in load_all(Path(folder)).items():
        if entry.get("rows"):  # no table may present a part of the data as the whole
            part = f"a random part of {entry['rows']} objects"
            entry = entry | {"note": f"{entry['note']}; {part}" if entry["note"] else part}
        (results.times if is_time(name) else results.cells).append(entry)
    return results


def rows(results: Results, dim: int = DIMENSION) -> list[Row]:
    """Return every entry of Tables 1 to 4 at one dimension: in the paper's order, then what is ours."""
    cells = [cell for cell in results.cells if cell["dim"] == dim]
    # the original metric and the scalar control have nothing to train
    times = [time for time in results.times if time["dim"] == dim and time["method"] not in UNTRAINED]
    check_one_machine(times)
    timed = _averages(4, times, "seconds")
    skewness, accuracy = _averages(2, cells, "skewness"), _averages(3, cells, "accuracy")
    return [*_statistics(cells), *skewness, *accuracy, *timed, *_speed_ups(timed)]


def gains(results: Results) -> list[Row]:
    """Return accuracy minus that of the original metric, in points, with the error of paired differences."""
    done = [cell for cell in results.cells if cell["dim"] == DIMENSION and cell["status"] == "done"]
    base = {
        (cell["dataset"], cell["split"]): cell["accuracy"]
        for cell in done
        if cell["method"] == "original-metric"
    }
    paired = [
        cell | {"gain": cell["accuracy"] - base[cell["dataset"], cell["split"]]}
        for cell in done
        if (cell["dataset"], cell["split"]) in base
    ]
    made = []
    for row in _averages(3, paired, "gain"):
        if row.method != "original-metric":
            gain = row.paper and row.paper - TABLES[3]["original-metric"][row.dataset]
            made.append(row._replace(paper=gain))
    return made


def _statistics(cells: list[Entry]) -> list[Row]:
    """Return the rows of Table 1, whose figures are the same in all cells of a data set."""
    made = []
    for entries in _by_dataset(cells):
        for name in TABLES[1]:
            values = {entry[name] for entry in entries if name in entry}
            if len(values) > 1:
                dataset, sizes = entries[0]["dataset"], ", ".join(map(str, sorted(values)))
                raise ValueError(
                    f"the cells of {dataset} disagree on {name} ({sizes}): they were run on different data. "
                    "Remove those of the old data and run them again."
                )
            if name != "original_dimension" or entries[0]["kind"] != "UCI":  # never reduced
                made.append(_row(1, entries, name, [float(value) for value in values], ""))
    return made


def _averages(table: int, entries: list[Entry], field: str) -> list[Row]:
    """Return a row per data set and method: all methods of the paper's table, and others that were run."""
    made = []
    scale = 100 if table == 3 else 1  # accuracies are in per cent
    for group in _by_dataset(entries):
        ran = {entry["method"] for entry in entries if entry["kind"] == group[0]["kind"]}
        known = dict.fromkeys([*TABLES[table], *METHODS])
        shown = [name for name in known if name in TABLES[table] or name in ran] + sorted(ran - set(known))
        splits = {entry["split"] for entry in group}
        for method in shown:
            cells = [entry for entry in group if entry["method"] == method]
            done = [cell for cell in cells if cell["status"] == "done"]
            values = [scale * cell[field] for cell in done if cell[field] is not None]
            missing = _missing(cells, splits, "not timed" if table == 4 else "not run")
            made.append(_row(table, group, method, values, missing))
    return made


def _row(table: int, entries: list[Entry], method: str, values: list[float], missing: str) -> Row:
    dim, kind, dataset, title, note = (
        entries[0][name] for name in ("dim", "kind", "dataset", "title", "note")
    )
    mean, error = mean_over_splits(values) if values else (None, None)
    published = TABLES[table].get(method, {}).get(dataset) if dim == DIMENSION else None
    return Row(table, dim, kind, dataset, title, note, method, mean, error, len(values), published, missing)


# s / √n
def mean_over_splits(values: list[float]) -> tuple[float, float | None]:
    """Return the mean over the splits and its standard error, None with fewer than two."""
    return fmean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def _missing(cells: list[Entry], expected: set[int], absent: str) -> str:
    """Say which of the expected splits have no figure, and why."""
    errors = {cell["split"]: cell.get("error") for cell in cells}  # None where it is done
    reasons: dict[str, list[int]] = {}
    for split in sorted(expected):
        reason = f"failed: {' '.join(str(errors[split]).split())}" if split in errors else absent
        if split not in errors or errors[split] is not None:
            reasons.setdefault(reason, []).append(split)
    if list(reasons.values()) == [sorted(expected)]:
        return next(iter(reasons))
    return "; ".join(f"split {', '.join(map(str, splits))} {reason}" for reason, splits in reasons.items())


def _by_dataset(entries: list[Entry]) -> list[list[Entry]]:
    """Group entries by data set: by kind, in the paper's order, then by name."""
    kinds, order = list(KINDS), list(PAPER_DATASETS)
    groups: dict[tuple[int, int, str], list[Entry]] = {}
    for entry in entries:
        name = entry["dataset"]
        place = order.index(name) if name in order else len(order)
        groups.setdefault((kinds.index(entry["kind"]), place, name), []).append(entry)
    return [groups[place] for place in sorted(groups)]


# seconds of the fastest of LMNN, ITML and DML-eig / seconds of Move-labeled
def _speed_ups(timed: list[Row]) -> list[Row]:
    made = []
    for moved in (row for row in timed if row.method == "move-labeled"):
        learners = [row for row in timed if row.dataset == moved.dataset and row.method in MAHALANOBIS]
        ours = [row.mean for row in learners if row.mean is not None]
        theirs = [row.paper for row in learners if row.paper is not None]
        missing = [PAPER_METHODS[row.method] for row in learners if row.mean is None]
        made.append(
            moved._replace(
                method=SPEED_UP,
                mean=min(ours) / moved.mean if ours and moved.mean else None,
                standard_error=None,
                paper=min(theirs) / moved.paper if theirs and moved.paper else None,
                missing=f"without {', '.join(missing)}" if missing else "",
            )
        )
    return made


def describe_machine(entry: Entry) -> str:
    """Return what decides the time of a run: processor, cores, threads, device."""
    machine = entry["machine"]
    processor, cores = (machine.get(name, "unknown") for name in ("processor", "cores"))
    threads = f"{entry['threads']} thread{'s' * (entry['threads'] != 1)}"
    return f"{processor}, {cores} cores, {threads}, {entry['device']}"


def check_one_machine(times: list[Entry]) -> None:
    """Refuse times of more than one machine: one table cannot compare them."""
    machines: dict[str, set[str]] = {}
    for time in times:
        if time["status"] == "done":
            machines.setdefault(describe_machine(time), set()).add(f"{time['dataset']} {time['method']}")
    if len(machines) > 1:
        where = "; ".join(
            f"{machine} ({len(names)}, for example {min(names)})"
            for machine, names in sorted(machines.items())
        )
        raise ValueError(
            f"Table 4 compares times of one machine, but they come from {len(machines)}: {where}. "
            "Keep the times of one (.time.json files, lines of results.jsonl), or time the rest again there."
        )
