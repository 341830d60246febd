"""Tables 1 to 4 as blocks: rows of results, formatted, one block per table and kind of data set."""

from collections.abc import Collection, Iterable
from math import floor, log10
from statistics import median
from typing import Any, NamedTuple

from . import published as paper
from .results import (
    DECIMALS,
    EXTRA_METHODS,
    KINDS,
    SPEED_UP,
    TITLES,
    Entry,
    Results,
    Row,
    describe_machine,
    rows,
)

NAMES = {
    1: "Data sets",
    2: "Skewness of N10 (smaller is better)",
    3: "Accuracy in per cent",
    4: "Training time in seconds",
}
BLOCKS = dict(zip(KINDS, ("UCI", "Documents", "Images", "Beyond the paper"), strict=True))
LABELS = {
    **paper.METHODS,
    **EXTRA_METHODS,
    "n_objects": "objects",
    "n_classes": "classes",
    "n_features": "dimension",
    "original_dimension": "original dimension",
    SPEED_UP: "fastest Mahalanobis learner / Move-labeled",
}
PAPERS: dict[int, Collection[str]] = {
    1: paper.STATISTICS,
    2: paper.METHODS,
    3: paper.METHODS,
    4: paper.SECONDS,
}  # the paper's rows

PROSE = """\
The paper's text says that Move-labeled is more than two orders of magnitude faster than the fastest learner \
on all data sets but RCV; by its own Table 4 it is 27 times faster on Reuters, 10 on TDT and 50 on aPY."""


class Cell(NamedTuple):
    """What stands in one place of a table."""

    ours: str
    paper: str = ""
    bold: bool = False


class Block(NamedTuple):
    """Methods × data sets of one kind."""

    caption: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]]
    notes: list[str]


class Table(NamedTuple):
    """The blocks of one table, and what is to be said of all of them."""

    number: int
    title: str
    blocks: list[Block]
    notes: list[str]


def tables(results: Results, dim: int = paper.DIMENSION, numbers: Iterable[int] = NAMES) -> list[Table]:
    """Tables 1 to 4 at one dimension, or those of them asked for."""
    found, made = rows(results, dim), []
    for number in numbers:
        blocks = []
        for kind in KINDS:
            if own := [row for row in found if row.table == number and row.kind == kind]:
                blocks.append(_block(kind, own))
        where = "" if dim == paper.DIMENSION else f", in {dim} dimensions"
        notes = _notes_of_table(number, results, found, dim)
        made.append(Table(number, NAMES[number] + where, blocks, notes))
    return made


def _block(kind: str, own: list[Row]) -> Block:
    columns = {row.dataset: row.heading for row in own}
    best = {name: _best([row for row in own if row.dataset == name]) for name in columns}
    place = {(row.method, row.dataset): row for row in own}
    lines = []
    for method in dict.fromkeys(row.method for row in own):
        cells = [_cell(place[method, name], best[name]) for name in columns]
        lines.append((_label(place[method, next(iter(columns))]), cells))
    notes = _what_is_missing(own, columns)
    for name, limit in best.items():
        winners = [row for row in own if row.dataset == name and not _is_papers(row) and _beats(row, limit)]
        told = ", ".join(f"{_label(row)} {_figure(row)}" for row in winners)
        if told:
            notes.append(f"{columns[name]}: better than the best, {limit}, but not competing: {told}.")
    return Block(BLOCKS[kind] + _splits(own), list(columns.values()), lines, notes)


def _what_is_missing(own: list[Row], columns: dict[str, str]) -> list[str]:
    """A line per reason: methods that lack the same data sets for the same reason stand together."""
    where: dict[tuple[str, str], list[str]] = {}  # by method and reason
    for row in own:
        if row.missing:
            where.setdefault((_label(row), row.missing), []).append(columns[row.dataset])
    methods: dict[tuple[str, str], list[str]] = {}
    for (method, reason), names in where.items():
        methods.setdefault((", ".join(names), reason), []).append(method)
    return [f"{names}: {', '.join(who)} {reason}." for (names, reason), who in methods.items()]


def _is_papers(row: Row) -> bool:
    return row.method in PAPERS[row.table] or row.method == SPEED_UP


def _label(row: Row) -> str:
    return LABELS.get(row.method, row.method) + ("" if _is_papers(row) else " ‡")


def _figure(row: Row) -> str:
    """Our mean as printed."""
    return "—" if row.mean is None else f"{row.mean:.{_decimals(row, row.mean)}f}"


def _decimals(row: Row, value: float) -> int:
    if row.method == SPEED_UP:
        return 0 if value >= 10 else 1
    if row.table == 4 and 0 < value < 1:  # two digits of a short time
        return 1 - floor(log10(value))
    return DECIMALS[row.table]


def _best(own: list[Row]) -> str | None:
    """The best figure of the paper's methods on one data set, as printed."""
    known = [_figure(row) for row in own if row.mean is not None and row.method in PAPERS[row.table]]
    if not known or own[0].table == 1:
        return None
    return max(known, key=float) if own[0].table == 3 else min(known, key=float)


def _beats(row: Row, best: str | None) -> bool:
    if row.mean is None or best is None:
        return False
    ahead = float(_figure(row)) - float(best)
    return ahead > 0 if row.table == 3 else ahead < 0


def _cell(row: Row, best: str | None) -> Cell:
    unit, published = " ×" if row.method == SPEED_UP else "", ""
    if row.paper is not None:
        decimals = _decimals(row, row.paper) if row.method == SPEED_UP else DECIMALS[row.table]
        mark = "†" if row.note and row.table > 1 else ""
        published = f"{mark}{row.paper:.{decimals}f}{unit}"
    if row.mean is None:
        return Cell("—", published)
    error = "" if row.standard_error is None else f" ± {row.standard_error:.{_decimals(row, row.mean)}f}"
    bold = best is not None and row.method in PAPERS[row.table] and float(_figure(row)) == float(best)
    return Cell(_figure(row) + error + unit, published, bold)


def _splits(own: list[Row]) -> str:
    """The number of splits, where it is not the paper's."""
    counts: dict[str, int] = {}
    for row in own:
        counts[row.title] = max(row.n_splits, counts.get(row.title, 0))
    if own[0].table == 1 or set(counts.values()) == {paper.SPLITS}:
        return ""
    if len(set(counts.values())) == 1:
        return f" (splits: {max(counts.values())})"
    return f" (splits: {', '.join(f'{title} {count}' for title, count in counts.items())})"


def _notes_of_table(number: int, results: Results, found: list[Row], dim: int) -> list[str]:
    if number == 1:
        differ = {row.title: row.note for row in found if row.note}
        absent = [title for name, title in TITLES.items() if name not in {row.dataset for row in found}]
        notes = [f"† {title}: {note}." for title, note in differ.items()]
        return notes + ([f"Without results: {', '.join(absent)}."] if absent else [])
    if number == 4:
        timed = {row.dataset for row in found if row.table == 4}
        absent = [
            title for name, title in TITLES.items() if name not in timed and name not in paper.DATASETS["UCI"]
        ]
        notes = [f"Timed on {line}." for line in machines(results.times)]
        notes += [f"Not timed: {', '.join(absent)}."] if absent else []
        return notes + ([PROSE] if dim == paper.DIMENSION else [])
    return []


def machines(entries: list[Entry]) -> list[str]:
    """Each machine with its versions that the entries were made on, and when."""
    dates: dict[str, list[str]] = {}
    for entry in entries:
        if entry["status"] == "done":
            machine = dict(entry["machine"])
            date, memory = str(machine.pop("date", "")), machine.pop("memory_gib", "unknown")
            rest = [
                f"{name} {value}" for name, value in machine.items() if name not in ("processor", "cores")
            ]
            told = ", ".join([describe_machine(entry), f"{memory} GiB of memory", *rest])
            dates.setdefault(told, []).append(date)
    spans = {told: " to ".join(sorted({min(days), max(days)})) for told, days in dates.items()}
    return [f"{told} ({len(days)} runs, {spans[told]})" for told, days in sorted(dates.items())]


def chosen(results: Results, dim: int = paper.DIMENSION) -> list[Block]:
    """The k and the parameters that cross-validation chose, the median over the splits."""
    done = [cell for cell in results.cells if cell["dim"] == dim and cell["status"] == "done"]
    accuracies, blocks = [row for row in rows(results, dim) if row.table == 3], []
    for kind in KINDS:
        shown = [row for row in accuracies if row.kind == kind]
        columns = {row.dataset: row.title for row in shown}
        lines = []
        for method in dict.fromkeys(row.method for row in shown):
            own = [cell for cell in done if cell["method"] == method]
            texts = [_median([c["chosen"] for c in own if c["dataset"] == name]) for name in columns]
            lines.append((LABELS.get(method, method), [Cell(text) for text in texts]))
        if lines:
            blocks.append(Block(BLOCKS[kind], list(columns.values()), lines, []))
    return blocks


def _median(settings: list[dict[str, Any]]) -> str:
    told = []
    for name in dict.fromkeys(name for setting in settings for name in setting):
        values = [setting[name] for setting in settings if setting.get(name) is not None]
        if values:
            numbers = all(isinstance(value, int | float) for value in values)
            text = (
                f"{median(values):.3g}" if numbers else " or ".join(sorted({str(value) for value in values}))
            )
            told.append(f"{'k' if name == 'n_neighbors' else name} {text}")
    return ", ".join(told) or "—"
