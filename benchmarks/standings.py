"""The standings: every mover beside the paper's methods, made from raw results and from nothing else."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hubless.paper.names import KIND_OF, KINDS
from hubless.paper.raw import write_files
from hubless.paper.results import describe_machine
from hubless.paper.table_blocks import BLOCKS

from .curve_cells import Cells
from .curves_page import curve_goals, draw, section
from .linear import LINEAR
from .markdown import grid
from .mover_goals import (
    LEARNERS,
    MORE_SPLITS,
    REASONS,
    SPLITS,
    TWICE,
    UCI_SPLITS,
    Mean,
    MoverGoal,
    Standings,
    collect,
    goals,
    listed,
)
from .movers import CONTENDERS, FOLDER
from .record import DOCS

FOLDERS = (FOLDER, FOLDER.parent / "paper")
PAGES = (DOCS.parent / "README.md", DOCS / "movers.md")  # which have the short table
MARK = "<!-- made by `python -m benchmarks standings`; a test compares -->"
FIRST = {
    "original-metric": "Stay (Euclidean)",
    "scale": "Scale",
    "move-labeled": "MoveLabeled (the paper)",
}
ROWS = {
    **FIRST,
    **{slug: contender.title for slug, contender in CONTENDERS.items() if contender.is_neighbors},
    "auto": "auto",
    **LEARNERS,
    **{slug: f"{contender.title} ‡" for slug, contender in CONTENDERS.items() if not contender.is_neighbors},
}
COMPETITORS = [method for method, title in ROWS.items() if "‡" not in title]
INTRODUCTION = """\
# The movers, measured

The movers of `hubless.movers`, the choice among them (`mover="auto"`), the paper's Mahalanobis learners, \
MMC, NCA and, as outside references (‡), three linear classifiers: scikit-learn's logistic regression and \
LDA, and the SVM of its `LinearSVC`, solved for all classes at once. [movers.md](movers.md) says what each \
mover does and what was tried. Protocol and data are those of [results.md](results.md): 70 : 30 splits, \
300 dimensions, mean ± standard error of {splits} splits, of {often} on UCI data. Parameters are chosen on \
the training part alone, by cross-validation; those of the linear classifiers on a quarter of it, C in \
steps of ten as far as accuracy rises. The settings that auto chooses among were decided on other random \
splits of the same data sets; the others had no such advantage, but for MMC, whose settings were decided \
on two of these splits, which can only favour it. Bold is the best, except the outside references, and all \
that tie with it as printed.

Made by `python -m benchmarks standings` from raw results; those of the movers by

    python -m benchmarks movers
    python -m benchmarks movers --methods auto --datasets cub --dim 1280
    python -m benchmarks movers --splits {often} --datasets {small} \
--methods {others}
    python -m benchmarks movers --splits {twice} --datasets news reuters apy --methods auto
    python -m benchmarks movers --splits {more} --datasets {small} \
--methods auto original-metric move-labeled
"""


class Field(NamedTuple):
    """What a table shows of the cells."""

    title: str
    name: str
    scale: int = 1
    digits: int = 2
    best: Callable[[Iterable[float]], float] = min

    def value(self, mean: Mean) -> float:
        """Return a mean as printed."""
        return round(self.scale * mean.mean, self.digits)

    def text(self, mean: Mean, n_splits: int) -> str:
        """Return a cell of the table: mean and error, and the splits where some of `n_splits` are missing."""
        error = "" if mean.error is None else f" ± {self.scale * mean.error:.{self.digits}f}"
        part = "" if mean.n_splits == n_splits else f" ({mean.n_splits} split{'s' * (mean.n_splits != 1)})"
        return f"{self.value(mean):.{self.digits}f}{error}{part}"


FIELDS = (
    Field("Accuracy in per cent", "accuracy", 100, 1, max),
    Field("Skewness of N10 (smaller is better)", "skewness"),
    Field("Seconds to choose and fit", "total_seconds"),
    Field("Seconds to choose and fit, over those of one plain fit and predict", "cost", 1, 1),
)
TIMES = """\
Measured for movers and linear classifiers only, including the choice of their settings, on one or two \
threads while other jobs ran: compare orders of magnitude only. The tables after these divide them by the \
seconds of one plain fit and predict in the same process. {elsewhere}
"""


def splits_of(kind: str) -> int:
    """Return how many splits the tables of a kind of data show: more where test parts are small."""
    return UCI_SPLITS if kind == "UCI" else SPLITS


def _table(standings: Standings, kind: str, field: Field) -> list[str]:
    """Return methods × data sets as Markdown; bold where a method that competes is the best as printed."""
    columns = standings.datasets(kind)
    n = splits_of(kind)
    means = {(m, name): standings.figures(name, m, field.name, n) for m in ROWS for name in columns}
    best = {}
    for name in columns:
        competing = [mean for method in COMPETITORS if (mean := means[method, name]) is not None]
        best[name] = field.best(map(field.value, competing)) if competing else None

    def cell(method: str, name: str) -> str:
        mean = means[method, name]
        if mean is None:
            return "—"
        is_best = method in COMPETITORS and field.value(mean) == best[name]
        return f"**{field.text(mean, n)}**" if is_best else field.text(mean, n)

    shown = [method for method in ROWS if any(means[method, name] is not None for name in columns)]
    rows = [[ROWS[method], *(cell(method, name) for name in columns)] for method in shown]
    return grid(["", *columns.values()], rows)


HEAD = ["", "Euclidean", "Move-labeled", "auto", "best learner", "best linear classifier", "seconds of auto"]


def summary(standings: Standings) -> str:
    """Return the short table, without UCI data: accuracies, and what choosing costs in seconds and fits."""
    rows = []
    costs = standings.costs("document", "image", "extra")
    for name, title in standings.datasets("document", "image", "extra").items():
        methods = ("original-metric", "move-labeled", "auto")
        values = [standings.accuracy(name, method, of_all=True) for method in methods]
        cells = ["—" if value is None else f"{value:.1f}" for value in values]
        cells += [_best_of(standings, name, LEARNERS), _best_of(standings, name, LINEAR)]
        seconds = standings.figures(name, "auto", "total_seconds")
        cells.append("—" if seconds is None else f"{seconds.mean:.1f} ({costs[name]:.0f} ×)")
        rows.append([title, *cells])
    return "\n".join(grid(HEAD, rows))


def _best_of(standings: Standings, name: str, methods: Mapping[str, str]) -> str:
    """Return the best and its title, where all of these methods have all splits."""
    best = standings.best(name, methods)
    is_known = all(standings.accuracy(name, method, of_all=True) is not None for method in methods)
    return f"{best[0]:.1f} ({best[1]})" if best is not None and is_known else "—"


def all_goals(standings: Standings, folders: Sequence[str | Path], cells: Cells) -> list[MoverGoal]:
    """Return the goals of the tables, of few labels and of data with faults."""
    return [*goals(standings, collect(folders, 1280)), *curve_goals(cells)]


def markdown(folders: Sequence[str | Path], curves: Path | None = None) -> str:
    """Return the whole page; `curves` is the folder of the cells with few labels and with faults."""
    standings, cells = collect(folders), Cells(curves)
    others = " ".join(ROWS)
    small = " ".join(KINDS["UCI"])
    numbers = {"splits": SPLITS, "often": UCI_SPLITS, "twice": TWICE, "more": MORE_SPLITS}
    opening = INTRODUCTION.format(**numbers, small=small, others=others)
    lines = [opening, "## Goals\n"]
    for goal in all_goals(standings, folders, cells):
        why = f" {REASONS[goal.text]}" if not goal.holds and goal.text in REASONS else ""
        lines.append(f"- {'✓' if goal.holds else '✗'} {goal.text}: {goal.figures}.{why}")
    for field in FIELDS:
        lines.append(f"\n## {field.title}\n")
        lines += [TIMES.format(elsewhere=_elsewhere(standings))] if field.name == "total_seconds" else []
        for kind in KINDS:
            if standings.datasets(kind):
                lines += [f"**{BLOCKS[kind]}**\n", *_table(standings, kind, field), ""]
    lines += [*section(cells), "## What auto chose\n", *_choices(standings)]
    timed = [cell for cell in standings.cells.values() if "plain_seconds" in cell]
    lines += ["", "Machines of the movers: " + "; ".join(sorted(set(map(describe_machine, timed)))) + "."]
    return "\n".join(lines) + "\n"


def _elsewhere(standings: Standings) -> str:
    """Say which times are of a GPU."""
    titles = standings.datasets(*KINDS)
    on_gpu: dict[str, list[str]] = {}
    for method, title in ROWS.items():
        for name in titles:
            cell = standings.cells.get((name, method, 0), {})
            if "total_seconds" in cell and cell["device"] != "cpu":
                on_gpu.setdefault(title.removesuffix(" ‡"), []).append(titles[name])
    parts = [f"{title} on {listed(names)}" for title, names in on_gpu.items()]
    return f"On a GPU: {'; '.join(parts)}." if parts else ""


def _choices(standings: Standings) -> list[str]:
    lines = ["| data set | split | mover | k |", "| --- | ---: | --- | ---: |"]
    for name, title in standings.datasets(*KINDS).items():
        for split in range(SPLITS):
            if cell := standings.cells.get((name, "auto", split)):
                chosen = cell["chosen"]
                lines.append(f"| {title} | {split} | {chosen['mover']} | {chosen['n_neighbors']} |")
    return lines


def as_json(folders: Sequence[str | Path], curves: Path | None = None) -> dict[str, Any]:
    """Return every mean, and the goals."""
    standings = collect(folders)
    figures = [
        {"dataset": name, "method": method, "field": field.name, **mean._asdict()}
        for name in standings.datasets(*KINDS)
        for method in ROWS
        for field in FIELDS
        if (mean := standings.figures(name, method, field.name, splits_of(KIND_OF[name]))) is not None
    ]
    reached = [goal._asdict() for goal in all_goals(standings, folders, Cells(curves))]
    return {"claims": reached, "figures": figures}


def write(folders: Sequence[str | Path], out: Path, curves: Path | None = None) -> list[Path]:
    """Make movers-results.md, movers.json and, with `curves`, the figure of the learning curves."""
    text = json.dumps(as_json(folders, curves), indent=1) + "\n"
    pages = {"movers-results.md": markdown(folders, curves).encode(), "movers.json": text.encode()}
    return write_files(out, pages | draw(Cells(curves)))


def put_summary(folders: Sequence[str | Path], pages: Sequence[Path] = PAGES) -> list[Path]:
    """Replace the short table on other pages, which is below MARK there."""
    table = summary(collect(folders))
    made = []
    for page in pages:
        text, count = re.subn(
            rf"({re.escape(MARK)}\n+)(\|.*\n)+", rf"\g<1>{table}\n", page.read_text(encoding="utf-8")
        )
        if count != 1:
            raise ValueError(f"{page} must have one table below {MARK}, it has {count}.")
        made += write_files(page.parent, {page.name: text.encode()})
    return made
