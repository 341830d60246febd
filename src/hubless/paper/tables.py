"""The paper's tables from our raw results, beside the paper's figures: Markdown, LaTeX, CSV and JSON."""

import json
import re
import warnings
from collections.abc import Collection
from csv import writer as csv_writer
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

from ..support.outputs import check_output
from ..support.progress import step
from . import protocol
from .claims import verdicts
from .published import DIMENSION
from .raw import write_files
from .results import Results, Row, gains, read, rows
from .table_blocks import PaperTable, TableBlock, TableCell, chosen, machines, tables
from .table_figures import draw

PAGE = files(__package__).joinpath("results_page.md").read_text(encoding="utf-8")
MARKS = {True: "✓", False: "✗", None: "?"}
CHOSEN = (
    "Medians over the splits; k is the number of neighbours, alpha is λ itself (not a multiple of a mean "
    "eigenvalue), gamma is γ and mu is μ."
)
NO_CLAIM = (
    "The paper's claims that are judged here are about documents and images, and none of those was run with "
    f"{DIMENSION} dimensions."
)
PICTURES = {
    1: "Objects and classes of each data set",
    2: "N10 skewness of each method on each data set, with arrows from the original metric",
    3: "Accuracy of each method on each data set, minus that of the original metric",
    4: "Training time of each method on each data set, ours and the paper's",
}

# fmt: off
LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "→": r"$\to$",
    "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "λ": r"$\lambda$", "†": r"$^\dagger$", "‡": r"$^\ddagger$",
    "—": "---", "–": "--", "’": "'", "“": "``", "”": "''", "…": r"\dots{}",
}
# fmt: on


def markdown(results: Results, pictures: Collection[int] = ()) -> str:
    """Return the page of results; `pictures` are the tables that have a figure, tableN.svg, beside it."""
    chosen_parts = [CHOSEN]
    chosen_parts += [markdown_block(block) for block in chosen(results)]
    chosen_parts += [_markdown_table(table) for table in _tables_of_other_dimensions(results)]
    return PAGE.format(
        protocol=protocol.protocol(results),
        grids=protocol.grids(results),
        reading=protocol.reading(results),
        tables="\n\n".join(_markdown_table(table, table.number in pictures) for table in tables(results)),
        differences=_bullets(protocol.differences(results)),
        claims=_checklist(results),
        chosen="\n\n".join(chosen_parts),
        machines=_bullets(machines(results.cells + results.times)),
        commands="\n".join(f"    {line}" for line in protocol.commands(results)),
    )


def _tables_of_other_dimensions(results: Results) -> list[PaperTable]:
    other = [dim for dim in protocol.dims(results) if dim != DIMENSION]
    return [table for dim in other for table in tables(results, dim, (2, 3))]


def _markdown_table(table: PaperTable, is_drawn: bool = False) -> str:
    picture = [f"![{PICTURES[table.number]}](table{table.number}.svg)"] if is_drawn else []
    blocks = [markdown_block(block) for block in table.blocks] or ["No results."]
    notes = [_bullets(table.notes)] if table.notes else []
    return "\n\n".join([f"## Table {table.number}: {table.title}", *picture, *blocks, *notes])


def markdown_block(block: TableBlock) -> str:
    """Return one block as a Markdown table, with its notes."""
    header = [["", *map(_marked_down, block.columns)], ["---", *("---:" for _ in block.columns)]]
    body = [[_marked_down(name), *map(_markdown_cell, cells)] for name, cells in block.rows]
    lines = [f"| {' | '.join(line)} |" for line in header + body]
    notes = [_bullets(block.notes)] if block.notes else []
    return "\n\n".join([f"**{_marked_down(block.caption)}**", "\n".join(lines), *notes])


def _markdown_cell(cell: TableCell) -> str:
    ours = f"**{cell.ours}**" if cell.bold else _marked_down(cell.ours)
    return f"{ours} ({cell.paper})" if cell.paper else ours


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {_marked_down(line)}" for line in lines)


def _marked_down(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


def _checklist(results: Results) -> str:
    judged = verdicts(results)
    if not judged:
        return NO_CLAIM
    counts = {mark: sum(verdict.holds is holds for verdict in judged) for holds, mark in MARKS.items()}
    summary = f"Hold (✓): {counts['✓']}. Do not (✗): {counts['✗']}. Not measured (?): {counts['?']}."
    return summary + "\n\n" + _bullets([f"{MARKS[v.holds]} {v.claim}: {v.detail}" for v in judged])


def latex(results: Results) -> str:
    """Return tables and claims as LaTeX; the document needs \\usepackage{booktabs} and nothing else."""
    parts = ["% made by `hubless tables`; do not edit", _escaped(protocol.reading(results)) + "\n"]
    parts += [_latex_table(table) for table in tables(results) + _tables_of_other_dimensions(results)]
    words = {True: "yes", False: "no", None: "?"}
    claims = [rf"\item[{words[v.holds]}] {_escaped(f'{v.claim}: {v.detail}')}" for v in verdicts(results)]
    if claims:  # LaTeX refuses a list without items
        claims = [r"\begin{description}", *claims, r"\end{description}"]
    return "\n".join([*parts, *claims]) + "\n"


def _latex_table(table: PaperTable) -> str:
    caption = _escaped(f"{table.title} (the paper's Table {table.number})")
    size = r"\centering\scriptsize\setlength{\tabcolsep}{3pt}"  # cells hold two figures each
    lines = [r"\begin{table}[tp]", size, rf"\caption{{{caption}}}"]
    for block in table.blocks:
        lines += [rf"\par\medskip {_escaped(block.caption)}\par\smallskip", *_latex_block(block)]
    notes = table.notes + [note for block in table.blocks for note in block.notes]
    lines += [rf"\par\smallskip {_escaped(note)}" for note in notes]
    return "\n".join([*lines, r"\end{table}", ""])


def _latex_block(block: TableBlock) -> list[str]:
    body = [[_escaped(name), *map(_latex_cell, cells)] for name, cells in block.rows]
    header = " & ".join(["", *map(_escaped, block.columns)])
    return [
        rf"\begin{{tabular}}{{l{'r' * len(block.columns)}}}",
        rf"\toprule {header} \\ \midrule",
        *(" & ".join(line) + r" \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _latex_cell(cell: TableCell) -> str:
    ours = rf"\textbf{{{_escaped(cell.ours)}}}" if cell.bold else _escaped(cell.ours)
    return f"{ours} ({_escaped(cell.paper)})" if cell.paper else ours


# pdflatex stops at letters that its fonts lack; it has those of western Europe
def _escaped(text: str) -> str:
    return "".join(LATEX.get(character, character if character < "\u0180" else "?") for character in text)


def csv(results: Results) -> str:
    """Return every entry of every table as CSV, one per line, at all dimensions."""
    text = StringIO()
    writer = csv_writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(row for dim in protocol.dims(results) for row in rows(results, dim))
    return text.getvalue()


def as_json(results: Results) -> dict[str, Any]:
    """Return all entries by dimension, table, data set and method, and the verdicts."""
    nested: dict[str, Any] = {}
    for dim in protocol.dims(results):
        for row in rows(results, dim):
            table = nested.setdefault(f"dim-{dim}", {}).setdefault(f"table-{row.table}", {})
            names = ("mean", "standard_error", "n_splits", "paper", "missing")
            table.setdefault(row.dataset, {})[row.method] = {name: getattr(row, name) for name in names}
    return nested | {"verdicts": [verdict._asdict() for verdict in verdicts(results)]}


def texts(results: Results, pictures: Collection[int]) -> dict[str, str]:
    """Return the files of text by name; `pictures` are the tables that have a figure."""
    return {
        "results.md": markdown(results, pictures),
        "tables.tex": latex(results),
        "tables.csv": csv(results),
        "tables.json": json.dumps(as_json(results), indent=1, ensure_ascii=False) + "\n",
    }


def write(folder: str | Path, out: str | Path) -> list[Path]:
    """Write results.md, tables.tex, tables.csv, tables.json and the figures of the raw results in `folder`.

    Everything is made before the first file is replaced, and each is replaced in one step. Without
    matplotlib, a warning says how to get the figures, and all else is written.
    """
    check_output(Path(out) / "results.md")
    results = read(folder)
    with step("drawing the figures"):
        drawn = _drawn(results)
    files = {name: text.encode() for name, text in texts(results, drawn).items()}
    files |= {f"table{number}.svg": picture for number, picture in drawn.items()}
    return write_files(Path(out), files)


def _drawn(results: Results) -> dict[int, bytes]:
    try:
        return draw(rows(results), gains(results))
    except ImportError as error:  # matplotlib is optional
        warnings.warn(f"{error} The tables are written without figures.", stacklevel=3)
        return {}
