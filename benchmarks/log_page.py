"""docs/log-results.md, made from the raw cells of corrections from a log and from nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hubless.paper.raw import write_files
from hubless.paper.results import describe_machine

from . import log_speed, log_tables
from .curve_cells import Cells
from .log_cells import ALL, DRAWS, FOLDER, NO_BANK, cells_of
from .log_data import LOADERS
from .log_methods import DEFAULT, QUERY_SIDE
from .log_tables import TITLES, Entry, banks_of, best_of_bank, entries_of, figure, number, plain_of, side
from .markdown import MISSING, QUICK, grid, machine
from .record import DOCS, RawFile, read

PAGE = "log-results.md"
NAMES = {"flickr8k": "Flickr8k", "scifact": "SciFact", "banking77": "banking77"}
FIRST, MORE = 18.0, 3.0  # goals: R@1, points of R@10 more
OPENING = f"""\
# Corrections from a log of queries, measured

What one number per stored object, learned from logged queries without labels or judgements, does to the \
answers of other queries. Every figure is made from the raw cells in `benchmarks/results/log`, which one \
command measures again:

    python -m benchmarks log        # measures, with the data under HUBLESS_DATA; finished cells are skipped
    python -m benchmarks log-page   # makes this page

- All vectors have length 1 and are compared by cosine. Texts were embedded by all-MiniLM-L6-v2.
- The **bank** is the log. Its own bank has queries of the same kind as those that ask; a foreign one has \
texts about something else. Banks that are not all there is were drawn {DRAWS} times.
- A correction is tried with several settings. The **validation** queries, which are neither in the bank nor \
in the test part, choose one by the first measure of each table, and **doing nothing competes**: where it \
wins, the figures are those of doing nothing. No setting was chosen by a test query.
- In parentheses is the 95 % interval of the change from doing nothing, paired by query. Over several draws, \
figures and ends of intervals are means. *Visible* means that the interval is on one side of 0; of \
cells where nothing changes in truth, about one in forty looks visibly better by chance, and as many worse.
- Seconds are those to learn a correction and to move all objects, once, on a busy machine: \
only their order of magnitude means something.
- Corrections are exact here, as with one more column. *Without a column* is what an index of moved vectors \
answers to queries as they are, and *same answers* the share of its ten answers that the exact \
correction has too.

Beside the corrections of this package:

- `HoldHubs()`, nothing chosen: the default where nobody judged anything. `NNN()` and `Sinkhorn()` with \
their own defaults, for comparison.
- NNN with k = 128, α = .75: what its package, `nnn-retrieval`, calls good in general. Nothing is chosen.
- NNN, wide sweep: k of 1, 2, 4 to 512 and α of .25 to 1.5 by .125, the best on validation queries, always \
applied. Its authors advise to sweep.
- QB-Norm, β = 20: its authors' rule, an inverted softmax only for queries whose nearest object is nearest \
to some logged query. Queries are treated differently, so no index of moved vectors can say the same.
"""
FLICKR = """\
{n_objects:,} test images are stored and their {n_queries:,} captions ask; an answer is right if it is the \
image of the caption. Images (EfficientNet-Lite0) are mapped into the space of captions by `MoveLabeled`, \
learned from 4,000 other images and their captions, with λ = {λ:g} mean eigenvalues, chosen by 1,000 \
validation images; corrections come after the map. *Map queries instead* learns the opposite map, for \
captions, with λ = {λ of the query side:g}, chosen alike, and compares about the mean image. \
The bank has the training captions; the foreign one {foreign}."""
SCIFACT = """\
{n_objects:,} documents are stored and {n_queries:,} test claims ask. {n_validation:,} training claims with \
their judgements choose; the other {n_own:,} are the bank, without judgements. The foreign bank has \
{foreign}."""
BANKING = """\
{n_objects:,} training texts are stored and the {n_queries:,} test texts ask; {n_validation:,} other \
training texts choose and {n_own:,} are the bank. Classes tell whether the ten nearest vote right; nothing \
is learned from them. The foreign bank has {foreign}."""
ABOUT = {"flickr8k": FLICKR, "scifact": SCIFACT, "banking77": BANKING}


class LogGoal(NamedTuple):
    """What was to be reached, whether it was, and the figures that say so."""

    text: str
    holds: bool
    figures: str


def write(folder: Path = FOLDER, docs: Path = DOCS) -> list[Path]:
    """Write the page in one step, and return its file."""
    cells = {name: cells_of(name, folder) for name in LOADERS}
    if not any(found.entries for found in cells.values()):
        raise FileNotFoundError("there are no raw results; `python -m benchmarks log` makes them.")
    speed = {name: raw for name, raw in read(folder).items() if name.startswith("log-speed")}
    return write_files(docs, {PAGE: markdown(cells, speed).encode()})


def markdown(cells: Mapping[str, Cells], speed: Mapping[str, RawFile] | None = None) -> str:
    """Return the whole page; `speed` are the raw results of `log-speed`."""
    measured = {name: found for name, found in cells.items() if found.entries}
    lines = [OPENING, *([QUICK] if any(_is_quick(found) for found in measured.values()) else [])]
    lines += ["## Goals\n", *_goals_table(goals(measured)), "", *_summary(measured)]
    for name in cells:
        lines.append(f"## {NAMES[name]}\n")
        lines += _section(name, cells[name]) if name in measured else [f"{MISSING.capitalize()}.\n"]
    lines += log_speed.section(speed or {})
    machines = {describe_machine(entry) for found in measured.values() for entry in found.entries.values()}
    machines |= {f"{name} ({raw['date']}): {machine(raw)}" for name, raw in (speed or {}).items()}
    return "\n".join([*lines, "## Machines\n", *(f"- {line}" for line in sorted(machines))]) + "\n"


def _is_quick(cells: Cells) -> bool:
    return any(entry["quick"] for entry in cells.entries.values())


def _section(name: str, cells: Cells) -> list[str]:
    plain = plain_of(cells)
    lines = [ABOUT[name].format(**plain, **plain["about"]), ""]
    lines += ["With its own bank, all of it:\n", *log_tables.with_all(cells), ""]
    for kind, title in (("own", "Its own bank"), ("foreign", "A foreign bank")):
        lines += [f"{title}:\n", *log_tables.by_size(cells, kind), ""]
    failed = {entry["error"] for entry in cells.entries.values() if entry["status"] == "failed"}
    lines += [*log_tables.lists(cells), log_tables.column_line(cells)]
    return [*lines, *(f"- Failed: {error}" for error in sorted(failed)), ""]


def _summary(cells: Mapping[str, Cells]) -> list[str]:
    head = ["data", "bank", "how the setting is taken", *log_tables.SIDES.values()]
    rows = [row for name, found in cells.items() for row in log_tables.counts(found, NAMES[name])]
    text = "How many cells (a method with a bank of some size, each draw) change by the first measure:\n"
    return ["## What works and what does not\n", text, *grid(head, rows), ""]


def _goals_table(found: list[LogGoal]) -> list[str]:
    rows = [[goal.text, "met" if goal.holds else "**not met**", goal.figures] for goal in found]
    return grid(["goal", "", "figures"], rows, "---")


# --- goals


def goals(cells: Mapping[str, Cells]) -> list[LogGoal]:
    """Return the goals of the data sets that were measured."""
    found = _flickr_goals(cells["flickr8k"]) if "flickr8k" in cells else []
    return found + (_scifact_goals(cells["scifact"]) if "scifact" in cells else [])


def _flickr_goals(cells: Cells) -> list[LogGoal]:
    plain = plain_of(cells)
    first = figure(plain, "R@1")["after"]
    other = [figure(entry, "R@1")["after"] for entry in entries_of(cells, QUERY_SIDE, NO_BANK, "0")]
    beside = "".join(f"; on the query side {value:.1f}" for value in other)
    result = [
        LogGoal(
            f"Flickr8k: ridge on the stored side, R@1 at least {FIRST:g}",
            first >= FIRST,
            f"{first:.1f}{beside}",
        )
    ]
    best = best_of_bank(cells, ("own", ALL, 0))
    if best is None:
        return result
    method, entry = best
    gain, apart = log_tables.change_of(entry, "R@10"), _apart(entry)
    change = figure(entry, "R@10")
    text = f"{TITLES[method]}, {log_tables.setting_text(entry['setting'])}: {gain:+.2f} "
    text += f"({change['low']:+.2f} to {change['high']:+.2f})"
    gaps = ", ".join(f"{name} {value:+.2f}" for name, value in apart.items())
    return [
        *result,
        LogGoal(
            f"Flickr8k: the best correction, by validation, R@10 at least {MORE:g} points more",
            gain >= MORE,
            text,
        ),
        LogGoal(
            f"Flickr8k: the same without a column within {log_tables.APART:g} points of the column",
            all(abs(value) <= log_tables.APART for value in apart.values()),
            f"{gaps}; same answers {100 * entry['agreement']:.1f} %",
        ),
    ]


def _apart(entry: Entry) -> dict[str, float]:
    """Return by how much each measure differs without a column."""
    return {
        change["measure"]: change["after"] - figure(entry, change["measure"])["after"]
        for change in entry["no_column"]
    }


def _scifact_goals(cells: Cells) -> list[LogGoal]:
    banks = banks_of(cells)
    best = [found[1] for bank in banks if (found := best_of_bank(cells, bank))]
    seen = [entry for entry in best if side(entry["validation"]) > 0]
    kinds = sorted({bank[:2] for bank in banks})
    default = [entry for kind in kinds for entry in entries_of(cells, DEFAULT, *kind)]
    text = "SciFact: no visible loss by the best correction, taken where validation shows a visible gain"
    always = f"; where any better mean is enough, {_losses(cells, best, len(banks))}"
    return [
        LogGoal(text, _lost(cells, seen) == 0, _losses(cells, seen, len(banks)) + always),
        LogGoal(
            "SciFact: no visible loss by the default, without judgements",
            _lost(cells, default) == 0,
            _losses(cells, default, len(banks)),
        ),
    ]


def _lost(cells: Cells, entries: list[Entry]) -> int:
    measure = log_tables.main_measure(cells)
    return sum(side(figure(entry, measure)) < 0 for entry in entries)


def _losses(cells: Cells, entries: list[Entry], n_banks: int) -> str:
    """Say with how many banks something is taken, and what it does."""
    measure = log_tables.main_measure(cells)
    changes = [log_tables.change_of(entry, measure) for entry in entries]
    text = f"taken with {len(entries)} of {n_banks} banks"
    if not changes:
        return text
    low, high = (number(value, measure, "+") for value in (min(changes), max(changes)))
    return f"{text}, {_lost(cells, entries)} of them visibly worse, changes from {low} to {high}"
