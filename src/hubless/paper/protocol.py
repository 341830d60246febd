"""The words of the results page: the protocol, how to read entries, what differs from the paper, commands.

Each sentence is true of the raw results at hand, which may be of one split of one data set.
"""

from collections.abc import Sequence

import numpy as np

from ..selection.folds import FOLDS, LARGE, NEIGHBORS
from ..selection.grid import GRID
from ..support.commands import command
from . import names
from .experiment import METHODS
from .published import DIMENSION, SPLITS
from .raw import Entry
from .results import Results, is_papers, rows

PARAMETERS = {"gamma": "γ", "mu": "μ"}  # as the paper has them; others have their own names
LEARNERS = {
    "lmnn": "LMNN weighs pull and push equally and ends when ten steps gain less than 1 %",
    "itml": "ITML samples 40 c (c − 1) pairs for c classes, as its authors' code does, but 20,000 at most, "
    "and ends after 50 sweeps at the latest",
    "dml-eig": "DML-eig pairs each object with its 3 nearest of its class and of others, and ends after 300 "
    "steps at the latest",
}
DAGGER = (
    "† marks data whose features or objects are not the paper's (see Table 1): there the order of methods "
    "and the direction of skewness can be compared with the paper's, the figures cannot."
)


def dims(results: Results) -> list[int]:
    """Return the numbers of dimensions in the raw results, the largest first."""
    return sorted({entry["dim"] for entry in results.cells + results.times}, reverse=True)


def protocol(results: Results) -> str:
    """Say how the data are split and reduced, and how parameters are chosen and times measured."""
    counts = {_splits(cells) for cells in _by_method(results.cells).values()} or {0}
    most = max(counts)
    often = "once" if most == 1 else f"{most} times over" if len(counts) == 1 else f"up to {most} times over"
    said = f"Each data set is split at random into 70 % for training and 30 % for testing, {often}"
    if reduced := sorted({cell["dim"] for cell in results.cells if cell["kind"] != "UCI"}, reverse=True):
        others = f" ({' or '.join(map(str, reduced[1:]))} where a table says so)" if reduced[1:] else ""
        said += f"; documents and images are reduced to at most {reduced[0]} dimensions first{others}"
    said += (
        ". All data are centred on the training part. Parameters are chosen by cross-validation on the "
        f"training part, in {FOLDS} folds, or 3 where it has more than {LARGE:,} objects. N10 skewness "
        "counts how often each training object is among the 10 nearest of the test queries."
    )
    timed = " Training time is that of one fit with everything chosen, measured separately on one machine."
    return said + timed * bool(results.times)


def grids(results: Results) -> str:
    """Say which values cross-validation compares, for every method that was run."""
    ran = {cell["method"] for cell in results.cells}
    same: dict[str, list[str]] = {}  # methods by the values of their parameter
    for method in METHODS:
        if method in ran and (values := _grid(method)):
            same.setdefault(values, []).append(names.METHODS[method])
    compared = [f"k of k-NN: {_listed(NEIGHBORS)}, as far as the training parts of the folds have so many"]
    compared += [f"{values.replace(':', f' of {_and(methods)}:', 1)}" for values, methods in same.items()]
    ties = "Of equal accuracies, the value named last wins, then the smallest k."
    return f"The values that cross-validation compares: {'; '.join(compared)}. {ties}"


def _grid(method: str) -> str:
    """Return the parameter of a method and its values, or "" where it has none."""
    settings = METHODS[method].settings
    (name,) = settings[0] or ("",)
    values = [setting[name] for setting in settings if name]
    if name != "alpha":
        return f"{PARAMETERS.get(name, name)}: {_listed(values)}" if name else ""
    factor = GRID[1].value / GRID[0].value
    return (
        f"λ: {len(values)} values from {values[0].value:g} to {values[-1].value:g} times the mean eigenvalue "
        f"of the matrix to which λI is added, each {factor:.3g} times the one before"
    )


def _listed(values: Sequence[float]) -> str:
    if len(values) > 10 and np.allclose(np.diff(values, 2), 0):
        return f"{len(values)} values from {values[0]:g} to {values[-1]:g} in equal steps"
    *first, last = (f"{value:g}" for value in values)
    return f"{', '.join(first)} or {last}"


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def reading(results: Results) -> str:
    """Say what is in an entry, and explain the marks that occur."""
    shown = [row for dim in dims(results) for row in rows(results, dim) if row.table > 1]
    said = ["Entries are ours, then the paper's figure in parentheses; — where we have none."]
    if any(row.standard_error is not None for row in shown):
        said[0] = said[0].replace(
            "ours,", "ours, mean ± standard error over the splits (one split has no ±),"
        )
    said.append("Bold is the best of the paper's methods in our runs, and all that tie with it as printed.")
    if any("split " in row.missing for row in shown):
        said.append("Splits are numbered from 0, as their files are.")
    if others := {row.method for row in shown if not is_papers(row)}:
        said.append("‡ marks rows that the paper does not have and that do not compete.")
        if "scale" in others:
            said.append("scale is a control: z' = g·z with one scalar g chosen by cross-validation.")
    if any(row.note for row in shown):
        said.append(DAGGER)
    return " ".join(said)


def differences(results: Results) -> list[str]:
    """Say what differs from the paper in data, implementations and protocol, and what it leaves open."""
    found = {cell["title"]: cell["note"] for cell in results.cells}
    titles = dict.fromkeys([*names.DATASETS.values(), *found])  # in the paper's order
    notes = {title: found[title] for title in titles if title in found}
    said = [f"Data: {title}: {note}." for title, note in notes.items() if note]
    if not all(notes.values()):
        which = "the data sets without †" if said else "all data sets"
        said.append(f"Data: {which} have the paper's objects and features, as far as it describes them.")
    ran = [method for method in LEARNERS if any(cell["method"] == method for cell in results.cells)]
    said.append("Implementations: all methods are those of hubless, in Python; the paper's are in MATLAB.")
    if ran:
        how = "; ".join(LEARNERS[method] for method in ran)
        said.append(f"Learners, from hubless.baselines with their defaults: {how}.")
    said.append(
        f"Protocol: that of the paper, with {SPLITS} splits of 70 : 30 by default, one target per object for "
        "LMNN, Move-labeled and Move-query, and k, γ, μ and λ by cross-validation. The other parameters of "
        "ITML are the same on all data; the paper has some for UCI data and others for documents and images."
    )
    said.append(
        "Left open by the paper, and chosen here: which random splits; how many folds, and the values that "
        "are compared; the mean that is subtracted, here that of the training part; the objects whose "
        "principal components are taken, here all of them, without their classes."
    )
    return said


def commands(results: Results) -> list[str]:
    """Return the commands that run what the raw results hold, and make the tables of it."""
    alike: dict[tuple[int, int | None, int, tuple[str, ...]], list[str]] = {}  # methods that one command runs
    for (dim, part, method), cells in _by_method(results.cells).items():
        ran = {cell["dataset"] for cell in cells}
        datasets = tuple(name for name in names.DATASETS if name in ran)
        if datasets and method in names.METHODS:  # others were added from outside
            alike.setdefault((dim, part, _splits(cells), datasets), []).append(method)
    made = []
    for (dim, part, splits, datasets), methods in alike.items():
        typed = ["--datasets", *datasets] * (datasets != tuple(names.PAPER_DATASETS))
        ordered = [name for name in names.METHODS if name in methods]
        typed += ["--methods", *ordered] * (ordered != [*names.PAPER_METHODS])
        typed += ["--splits", str(splits)] * (splits != SPLITS) + ["--dim", str(dim)] * (dim != DIMENSION)
        made.append(command("reproduce", options=[*typed, *(["--rows", str(part)] if part else [])]))
    return [*made, command("tables", "results")]


def _by_method(cells: list[Entry]) -> dict[tuple[int, int | None, str], list[Entry]]:
    """Group cells by dimension, the largest first, by the random part of the data, and by method."""
    groups: dict[tuple[int, int | None, str], list[Entry]] = {}
    for cell in sorted(cells, key=lambda cell: -cell["dim"]):
        groups.setdefault((cell["dim"], cell.get("rows"), cell["method"]), []).append(cell)
    return groups


def _splits(cells: list[Entry]) -> int:
    return max(cell["split"] for cell in cells) + 1
