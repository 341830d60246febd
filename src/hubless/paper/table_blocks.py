"""Tables 1 to 4 as text: their cells, one block per table and kind of data set, and notes below them."""

from collections.abc import Iterable
from math import floor, inf, log10
from statistics import median
from typing import Any, NamedTuple

from .names import KINDS, LARGE_DATASETS, METHODS, PAPER_DATASETS
from .published import DIMENSION, SPLITS
from .raw import Entry
from .results import DECIMALS, SPEED_UP, Results, Row, competes, describe_machine, is_papers, rows

NAMES = {
    1: "Data sets",
    2: "Skewness of N10 (smaller is better)",
    3: "Accuracy in per cent",
    4: "Training time in seconds",
}
BLOCKS = dict(zip(KINDS, ("UCI", "Documents", "Images", "Beyond the paper"), strict=True))
LABELS = {
    **METHODS,
    "n_objects": "objects",
    "n_classes": "classes",
    "n_features": "dimension",
    "original_dimension": "original dimension",
    SPEED_UP: "fastest Mahalanobis learner / Move-labeled",
}

PROSE = """\
The paper's text says that Move-labeled is more than two orders of magnitude faster than the fastest learner \
on all data sets but RCV; by its own Table 4 it is 27 times faster on Reuters, 10 on TDT and 50 on aPY."""


class TableCell(NamedTuple):
    """The text of one cell of a table."""

    ours: str
    paper: str = ""
    bold: bool = False


class TableBlock(NamedTuple):
    """Methods × data sets of one kind."""

    caption: str
    columns: list[str]
    rows: list[tuple[str, list[TableCell]]]
    notes: list[str]


class PaperTable(NamedTuple):
    """The blocks of one table, and notes on all of them."""

    number: int
    title: str
    blocks: list[TableBlock]
    notes: list[str]


def tables(results: Results, dim: int = DIMENSION, numbers: Iterable[int] = NAMES) -> list[PaperTable]:
    """Return Tables 1 to 4 at one dimension, or those with the given numbers."""
    all_rows, made = rows(results, dim), []
    where = "" if dim == DIMENSION else f", in {dim} dimensions"
    for number in numbers:
        table_rows = [row for row in all_rows if row.table == number]
        groups = {kind: [row for row in table_rows if row.kind == kind] for kind in KINDS}
        blocks = [_block(kind, group) for kind, group in groups.items() if group]
        notes = _notes_on_data(table_rows) if number == 1 else []
        notes = _notes_on_times(results, table_rows, dim) if number == 4 else notes
        made.append(PaperTable(number, NAMES[number] + where, blocks, notes))
    return made


def _block(kind: str, group: list[Row]) -> TableBlock:
    columns: dict[str, list[Row]] = {}  # by data set; all have the same methods
    for row in group:
        columns.setdefault(row.dataset, []).append(row)
    best = {name: _best(column) for name, column in columns.items()}
    lines = [
        (_label(line[0]), [_cell(row, best[row.dataset]) for row in line])
        for line in zip(*columns.values(), strict=True)
    ]
    headings = [column[0].heading for column in columns.values()]
    notes = _what_is_missing(group)
    for heading, (name, column) in zip(headings, columns.items(), strict=True):
        winners = [row for row in column if not is_papers(row) and _lead(row, best[name]) > 0]
        if winners:
            ahead = ", ".join(f"{_label(row)} {_figure(row)}" for row in winners)
            notes.append(f"{heading}: better than the best, {best[name]}, but not competing: {ahead}.")
    return TableBlock(BLOCKS[kind] + _splits(group), headings, lines, notes)


def _what_is_missing(group: list[Row]) -> list[str]:
    """Return a line per reason, with all methods that lack the same data sets for that reason."""
    where: dict[tuple[str, str], list[str]] = {}  # by method and reason
    for row in group:
        if row.missing:
            where.setdefault((_label(row), row.missing), []).append(row.heading)
    methods: dict[tuple[str, str], list[str]] = {}
    for (method, reason), headings in where.items():
        methods.setdefault((", ".join(headings), reason), []).append(method)
    return [f"{names}: {', '.join(who)} {reason}." for (names, reason), who in methods.items()]


def _label(row: Row) -> str:
    return LABELS.get(row.method, row.method) + ("" if is_papers(row) else " ‡")


def _figure(row: Row) -> str:
    """Return our mean as printed."""
    return "—" if row.mean is None else f"{row.mean:.{_decimals(row, row.mean)}f}"


def _decimals(row: Row, value: float) -> int:
    if row.method == SPEED_UP:
        return 0 if value >= 10 else 1
    if row.table == 4 and 0 < value < 1:  # two digits of a short time
        return 1 - floor(log10(value))
    return DECIMALS[row.table]


def _best(group: list[Row]) -> str | None:
    """Return the best figure of the paper's methods on one data set, as printed."""
    known = [_figure(row) for row in group if row.mean is not None and competes(row)]
    if not known or group[0].table == 1:
        return None
    return max(known, key=float) if group[0].table == 3 else min(known, key=float)


def _lead(row: Row, best: str | None) -> float:
    """Return by how much a figure as printed is better than the best of the paper's methods."""
    if row.mean is None or best is None:
        return -inf
    lead = float(_figure(row)) - float(best)
    return lead if row.table == 3 else -lead


def _cell(row: Row, best: str | None) -> TableCell:
    unit, published = " ×" if row.method == SPEED_UP else "", ""
    if row.paper is not None:
        decimals = _decimals(row, row.paper) if row.method == SPEED_UP else DECIMALS[row.table]
        mark = "†" if row.note and row.table > 1 else ""
        published = f"{mark}{row.paper:.{decimals}f}{unit}"
    if row.mean is None:
        return TableCell("—", published)
    error = "" if row.standard_error is None else f" ± {row.standard_error:.{_decimals(row, row.mean)}f}"
    return TableCell(_figure(row) + error + unit, published, competes(row) and _lead(row, best) == 0)


def _splits(group: list[Row]) -> str:
    """Return the number of splits, where it is not the paper's."""
    counts: dict[str, int] = {}
    for row in group:
        counts[row.title] = max(row.n_splits, counts.get(row.title, 0))
    if group[0].table == 1 or set(counts.values()) == {SPLITS}:
        return ""
    if len(set(counts.values())) == 1:
        return f" (splits: {max(counts.values())})"
    return f" (splits: {', '.join(f'{title} {count}' for title, count in counts.items())})"


def _notes_on_data(group: list[Row]) -> list[str]:
    differ = {row.title: row.note for row in group if row.note}
    notes = [f"† {title}: {note}." for title, note in differ.items()]
    return notes + _absent("Without results", PAPER_DATASETS, group)


def _notes_on_times(results: Results, group: list[Row], dim: int) -> list[str]:
    if not group:
        return []
    notes = [f"Timed on {line}." for line in machines([time for time in results.times if time["dim"] == dim])]
    absent = _absent("Not timed", LARGE_DATASETS, group)
    return notes + absent + [PROSE] * any(row.paper is not None for row in group)


def _absent(words: str, datasets: dict[str, str], group: list[Row]) -> list[str]:
    """Return a note on data sets that have no row."""
    absent = [title for name, title in datasets.items() if name not in {row.dataset for row in group}]
    return [f"{words}: {', '.join(absent)}."] if absent else []


def machines(entries: list[Entry]) -> list[str]:
    """Return each machine, with its versions, that the entries were made on, and when."""
    dates: dict[str, list[str]] = {}
    for entry in entries:
        if entry["status"] == "done":
            machine = dict(entry["machine"])
            date, memory = str(machine.pop("date", "")), machine.pop("memory_gib", "unknown")
            rest = [
                f"{name} {value}" for name, value in machine.items() if name not in ("processor", "cores")
            ]
            about = ", ".join([describe_machine(entry), f"{memory} GiB of memory", *rest])
            dates.setdefault(about, []).append(date)
    spans = {about: " to ".join(sorted({min(days), max(days)})) for about, days in dates.items()}
    return [f"{about} ({len(days)} runs, {spans[about]})" for about, days in sorted(dates.items())]


def chosen(results: Results) -> list[TableBlock]:
    """Return the k and the parameters that cross-validation chose, the median over the splits."""
    settings: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in results.cells:
        if cell["dim"] == DIMENSION and cell["status"] == "done":
            settings.setdefault((cell["method"], cell["dataset"]), []).append(cell["chosen"])
    blocks = []
    for kind in KINDS:
        shown = [row for row in rows(results) if row.table == 3 and row.kind == kind]
        columns = {row.dataset: row.title for row in shown}
        lines = []
        for method in dict.fromkeys(row.method for row in shown):
            cells = [TableCell(_medians(settings.get((method, name), []))) for name in columns]
            lines.append((LABELS.get(method, method), cells))
        if lines:
            blocks.append(TableBlock(BLOCKS[kind], list(columns.values()), lines, []))
    return blocks


def _medians(settings: list[dict[str, Any]]) -> str:
    shown = []
    for name in dict.fromkeys(name for setting in settings for name in setting):
        values = [setting[name] for setting in settings if setting.get(name) is not None]
        if values:
            is_numeric = all(isinstance(value, int | float) for value in values)
            text = f"{median(values):.3g}" if is_numeric else " or ".join(sorted(set(map(str, values))))
            shown.append(f"{'k' if name == 'n_neighbors' else name} {text}")
    return ", ".join(shown) or "—"
