"""The paper's tables from our raw results, beside the paper's figures: Markdown, LaTeX, CSV and JSON."""

import json
import re
from csv import DictWriter
from io import StringIO
from pathlib import Path
from typing import Any

from ..download import replacing
from . import published as paper
from .blocks import Block, Cell, Table, chosen, machines, tables
from .claims import Verdict, verdicts
from .figures import draw
from .results import Results, Row, gains, read, rows

__all__ = [
    "Results",
    "Verdict",
    "as_json",
    "csv",
    "latex",
    "markdown",
    "read",
    "tables",
    "verdicts",
    "write",
]

FOLDER = "benchmarks/results/paper"
COMMANDS = (
    f"    hubless reproduce --out {FOLDER}\n"
    f"    hubless reproduce --out {FOLDER} --methods scale\n"
    f"    hubless tables {FOLDER} --out docs"
)
ELSEWHERE = """\
Cells may run on several machines, as those above did (`--device cuda` where it says so); times may not."""
MARKS = {True: "✓", False: "✗", None: "?"}

PROTOCOL = """\
Each data set is split at random into 70 % for training and 30 % for testing, 4 times over; documents and \
images are reduced to 300 dimensions first, and all data are centred on the training part. The k of k-NN and \
the parameter of each method (γ of ITML, μ of DML-eig, λ of Move-labeled and Move-query) are chosen by \
cross-validation on the training part, in 5 folds, or 3 where it has more than 5,000 objects. N10 skewness \
counts how often each training object is among the 10 nearest of the test queries. Training time is that of \
one fit with everything chosen, in a pass of its own on one machine.

LMNN, Move-labeled and Move-query have one target per object. The learners are those of `hubless.baselines` \
with their defaults: LMNN weighs pull and push equally and ends when ten steps gain less than 1 %; ITML \
samples 40 c (c − 1) pairs for c classes, as its authors' code does, but 20,000 at most, and ends after 50 \
sweeps at the latest; DML-eig pairs each object with its 3 nearest of its class and of others, and ends \
after 300 steps at the latest."""
READING = """\
Entries are ours, mean ± standard error over the splits, then the paper's figure in parentheses; — where we \
have none. Bold is the best of the paper's methods in our runs, and all that tie with it as printed. ‡ marks \
rows that the paper does not have and that do not compete: scale is a control, \
z' = g·z with one scalar g chosen by cross-validation. NCA and all other movers are compared by \
`hubless standings`. † marks data whose features or objects are not the \
paper's (see Table 1): there the order of methods and the direction of skewness can be compared with the \
paper's, the figures cannot."""
PICTURES = {
    1: "Objects and classes of each data set",
    2: "N10 skewness of each method on each data set, with arrows from the original metric",
    3: "Accuracy of each method on each data set, minus that of the original metric",
    4: "Training time of each method on each data set, ours and the paper's",
}

LATEX = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\to$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "λ": r"$\lambda$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "—": "---",
    "–": "--",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\dots{}",
}


def markdown(results: Results, dim: int = paper.DIMENSION, pictures: tuple[int, ...] = ()) -> str:
    """The whole page of results; `pictures` are the tables that have a drawing, tableN.svg, beside it."""
    parts = ["<!-- made by `hubless tables`; do not edit -->", "# The paper's tables, measured again"]
    parts += [PROTOCOL, READING]
    for table in tables(results, dim):
        drawn = table.number in pictures
        picture = [f"![{PICTURES[table.number]}](table{table.number}.svg)"] if drawn else []
        parts += _markdown_table(table, picture)
    parts += ["## The paper's claims on our numbers", *_checklist(results, dim)]
    parts += ["## What was chosen", "Medians over the splits; k is the number of neighbours."]
    parts += [markdown_block(block) for block in chosen(results, dim)]
    for other in _dims(results):
        if other != dim:
            for table in tables(results, other, (2, 3)):
                parts += _markdown_table(table, [])
    parts += ["## Machines and versions", _bullets(machines(results.cells + results.times))]
    parts += ["## How to make this page", ELSEWHERE, COMMANDS]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table, picture: list[str]) -> list[str]:
    blocks = [markdown_block(block) for block in table.blocks] or ["No results."]
    notes = [_bullets(table.notes)] if table.notes else []
    return [f"## Table {table.number}: {table.title}", *picture, *blocks, *notes]


def markdown_block(block: Block) -> str:
    header = [["", *map(_marked_down, block.columns)], ["---", *("---:" for _ in block.columns)]]
    body = [[_marked_down(name), *map(_markdown_cell, cells)] for name, cells in block.rows]
    lines = [f"| {' | '.join(line)} |" for line in header + body]
    notes = [_bullets(block.notes)] if block.notes else []
    return "\n\n".join([f"**{_marked_down(block.caption)}**", "\n".join(lines), *notes])


def _markdown_cell(cell: Cell) -> str:
    ours = f"**{cell.ours}**" if cell.bold else _marked_down(cell.ours)
    return f"{ours} ({cell.paper})" if cell.paper else ours


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {_marked_down(line)}" for line in lines)


def _marked_down(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


def _checklist(results: Results, dim: int) -> list[str]:
    found = verdicts(results, dim)
    counts = {mark: sum(verdict.holds is holds for verdict in found) for holds, mark in MARKS.items()}
    told = f"Hold (✓): {counts['✓']}. Do not (✗): {counts['✗']}. Not measured (?): {counts['?']}."
    return [told, _bullets([f"{MARKS[v.holds]} {v.claim}: {v.detail}" for v in found])]


def latex(results: Results, dim: int = paper.DIMENSION) -> str:
    """Tables and claims as LaTeX; the document needs \\usepackage{booktabs} and nothing else."""
    made = tables(results, dim)
    for other in _dims(results):
        made += tables(results, other, (2, 3)) if other != dim else []
    parts = ["% made by `hubless tables`; do not edit", _escaped(READING) + "\n"]
    parts += [_latex_table(table) for table in made]
    words = {True: "yes", False: "no", None: "?"}
    claims = [
        rf"\item[{words[v.holds]}] {_escaped(f'{v.claim}: {v.detail}')}" for v in verdicts(results, dim)
    ]
    return "\n".join([*parts, r"\begin{description}", *claims, r"\end{description}"]) + "\n"


def _latex_table(table: Table) -> str:
    caption = _escaped(f"{table.title} (the paper's Table {table.number})")
    size = r"\centering\scriptsize\setlength{\tabcolsep}{3pt}"  # cells hold two figures each
    lines = [r"\begin{table}[tp]", size, rf"\caption{{{caption}}}"]
    for block in table.blocks:
        lines += [rf"\par\medskip {_escaped(block.caption)}\par\smallskip", *_latex_block(block)]
    notes = table.notes + [note for block in table.blocks for note in block.notes]
    lines += [rf"\par\smallskip {_escaped(note)}" for note in notes]
    return "\n".join([*lines, r"\end{table}", ""])


def _latex_block(block: Block) -> list[str]:
    body = [[_escaped(name), *map(_latex_cell, cells)] for name, cells in block.rows]
    header = " & ".join(["", *map(_escaped, block.columns)])
    return [
        rf"\begin{{tabular}}{{l{'r' * len(block.columns)}}}",
        rf"\toprule {header} \\ \midrule",
        *(" & ".join(line) + r" \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _latex_cell(cell: Cell) -> str:
    ours = rf"\textbf{{{_escaped(cell.ours)}}}" if cell.bold else _escaped(cell.ours)
    return f"{ours} ({_escaped(cell.paper)})" if cell.paper else ours


# pdflatex stops at letters that its fonts lack; it has those of western Europe
def _escaped(text: str) -> str:
    return "".join(LATEX.get(character, character if character < "\u0180" else "?") for character in text)


def csv(results: Results) -> str:
    """Every entry of every table, one a line, at all dimensions."""
    text = StringIO()
    writer = DictWriter(text, Row._fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row._asdict() for dim in _dims(results) for row in rows(results, dim))
    return text.getvalue()


def as_json(results: Results) -> dict[str, Any]:
    """Nested: dimension, table, data set, method; and the verdicts at the paper's dimension."""
    nested: dict[str, Any] = {}
    for dim in _dims(results):
        for row in rows(results, dim):
            table = nested.setdefault(f"dim-{dim}", {}).setdefault(f"table-{row.table}", {})
            names = ("mean", "standard_error", "n_splits", "paper", "missing")
            table.setdefault(row.dataset, {})[row.method] = {name: getattr(row, name) for name in names}
    return nested | {"verdicts": [verdict._asdict() for verdict in verdicts(results)]}


def write(folder: str | Path, out: str | Path) -> list[Path]:
    """Make results.md, tables.tex, tables.csv, tables.json and the figures of the raw results in `folder`.

    Everything is made before the first file is replaced, and each is replaced at once.
    """
    results, out = read(folder), Path(out)
    drawn = draw(rows(results), gains(results))
    texts = {
        "results.md": markdown(results, pictures=tuple(drawn)),
        "tables.tex": latex(results),
        "tables.csv": csv(results),
        "tables.json": json.dumps(as_json(results), indent=1, ensure_ascii=False) + "\n",
    }
    files = {name: text.encode() for name, text in texts.items()}
    files |= {f"table{number}.svg": picture for number, picture in drawn.items()}
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with replacing(out / name) as file:
            file.write(content)
    return [out / name for name in files]


def _dims(results: Results) -> list[int]:
    return sorted({entry["dim"] for entry in results.cells + results.times}, reverse=True)
