"""The section of docs/movers.md on queries without labels, made from raw results and from nothing else."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from hubless.paper.raw import write_files

from .curve_cells import Cells, Key
from .curves import ALL
from .markdown import grid
from .record import DOCS
from .transductive import ASKED, AUTO, DATASETS, FOLDER, LOG, NONE, OBJECTS, SETTINGS

PAGE = DOCS / "movers.md"
MARKS = ("<!-- made by `python -m benchmarks transductive-page`; a test compares -->", "<!-- end -->")
TITLES = {
    "balance": "`Balance(0.5)`",
    "wide": "`Balance(0.5, n_neighbors=20)`",
    "shrink": "`Shrink(0.5) + Balance(0.3)`",
    "whiten": "`Whiten(3.0) + Shrink(0.4) + Balance(0.3)`",
    "steer": "`Shrink(0.5) + Balance(0.3) + Steer(0.3, 0.01)`",
    AUTO: "auto",
}
SETTING_TITLES = {
    "2": "2 per class",
    "5": "5 per class",
    "10": "10 per class",
    ALL: "all",
    "side": "other side",
    "shares": "other shares",
}
SCALES = {"accuracy": 100, "class_accuracy": 100, "skewness": 1}
SURE = 0.95  # of an interval


class Differences:
    """Raw results, and what they differ by from those with labeled objects in the place of queries."""

    def __init__(self, cells: Cells) -> None:
        self.entries = cells.entries
        present = {key.dataset for key in self.entries}
        self.datasets = {name: title for name, title in DATASETS.items() if name in present}
        self.datasets |= {name: name for name in sorted(present - self.datasets.keys())}
        self._draws: dict[tuple[str, str, str], list[Key]] = {}  # looked up thousands of times for one page
        for key in sorted(self.entries):
            self._draws.setdefault((key.dataset, key.setting, key.method), []).append(key)

    def of(self, dataset: str, setting: str, method: str, field: str, other: str = OBJECTS) -> np.ndarray:
        """Return what a method, "mover proxies", has more than the same mover with other proxies, by draw."""
        mover = method.split()[0]
        pairs = [
            (self.entries[key][field], self.entries[base][field])
            for key in self._draws.get((dataset, setting, method), ())
            if (base := key._replace(method=f"{mover} {other}")) in self.entries
        ]
        return np.array([SCALES[field] * (value - before) for value, before in pairs])

    def mean(self, setting: str, method: str, field: str) -> float | None:
        """Return the mean difference over the data sets; None where nothing was measured."""
        means = [d.mean() for name in self.datasets if len(d := self.of(name, setting, method, field))]
        return float(np.mean(means)) if means else None

    def level(self, setting: str, method: str, field: str) -> float | None:
        """Return the mean of a field over the data sets."""
        found: dict[str, list[float]] = {}
        for key, entry in self.entries.items():
            if (key.setting, key.method) == (setting, method):
                found.setdefault(key.dataset, []).append(SCALES[field] * entry[field])
        return float(np.mean([np.mean(values) for values in found.values()])) if found else None


def standard_error(differences: np.ndarray) -> float:
    """Return the standard error of their mean, over draws; infinite for one draw."""
    n = len(differences)
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")


def sign(differences: np.ndarray) -> int:
    """Return the sign of their mean where its interval, by Student's t over draws, excludes 0; else 0."""
    bound = student.ppf((1 + SURE) / 2, len(differences) - 1) * standard_error(differences)
    return int(np.sign(differences.mean())) if abs(differences.mean()) > bound else 0


def section(cells: Cells) -> str:
    """Return the tables and what they say."""
    found = Differences(cells)
    parts = [_by_dataset(found), _counts(found), *_by_mover(found)]
    return "\n\n".join(parts)


def _by_dataset(found: Differences) -> str:
    """Return a table of Balance alone: what the queries asked change, data set by data set."""

    def row(title: str, setting: str, field: str) -> list[str]:
        of = (found.of(name, setting, f"balance {ASKED}", field) for name in found.datasets)
        return [title, *(_change(differences) for differences in of)]

    rows = []
    for _, setting in SETTINGS:
        rows.append(row(SETTING_TITLES[setting], setting, "accuracy"))
        if setting == "2":
            rows.append(row("the same, mean of the classes", setting, "class_accuracy"))
    head = "Change of accuracy in points by the queries asked, `Balance(0.5)` alone, mean ± standard error:"
    return "\n".join([f"{head}\n", *grid(["", *found.datasets.values()], rows)])


def _change(differences: np.ndarray) -> str:
    if not len(differences):
        return "—"
    error = "" if len(differences) < 2 else f" ± {standard_error(differences):.1f}"
    return f"{_signed(differences.mean(), 1)}{error}"


def _signed(value: float, digits: int = 2) -> str:
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if float(f"{value:.{digits}f}") else f"{0:.{digits}f}"


def _counts(found: Differences) -> str:
    """Say how often queries are visibly ahead or behind, over all movers of fixed settings."""
    sides: dict[str, list[int]] = {"few": [], ALL: [], "shift": []}
    for mover in TITLES:
        for part, setting in SETTINGS:
            group = part if part == "shift" else ALL if setting == ALL else "few"
            for name in found.datasets:
                d = found.of(name, setting, f"{mover} {ASKED}", "accuracy")
                if mover != AUTO and len(d) > 1:
                    sides[group].append(sign(d))
    words = {"few": "2 to 10 objects per class", ALL: "all objects", "shift": "a shift"}
    parts = [
        f"{signs.count(1)} gain and {signs.count(-1)} lose of {len(signs)} with {words[group]}"
        for group, signs in sides.items()
    ]
    return (
        f"Of all pairs of a data set and one of the five movers of fixed settings below, those whose "
        f"{SURE:.0%} interval over draws excludes 0: {'; '.join(parts)}. By chance, one in 40 would gain and "
        "one in 40 lose."
    ).replace("%", " %")


def _by_mover(found: Differences) -> Iterable[str]:
    """Return tables of every mover, mean over the data sets: accuracy and skewness."""
    for field, words, digits in (("accuracy", "accuracy in per cent", 1), ("skewness", "N10 skewness", 2)):
        rows = [
            [SETTING_TITLES[setting], *(_levels(found, setting, mover, field, digits) for mover in TITLES)]
            for _, setting in SETTINGS
        ]
        head = (
            f"Mean {words} with labeled objects in the place of queries; in parentheses, by how much it "
            "changes without `Balance`, with a log and with the queries asked:"
        )
        yield "\n".join([f"{head}\n", *grid(["", *TITLES.values()], rows)])


def _levels(found: Differences, setting: str, mover: str, field: str, digits: int) -> str:
    level = found.level(setting, f"{mover} {OBJECTS}", field)
    if level is None:
        return "—"
    means = [found.mean(setting, f"{mover} {kind}", field) for kind in (NONE, LOG, ASKED)]
    changes = ["—" if mean is None else _signed(mean, digits) for mean in means]
    return f"{level:.{digits}f} ({', '.join(changes)})"


def put(folder: Path = FOLDER, page: Path = PAGE) -> list[Path]:
    """Replace the section on the page, which is between MARKS there."""
    begin, end = map(re.escape, MARKS)
    text = page.read_text(encoding="utf-8")
    made = section(Cells(folder))
    text, count = re.subn(rf"({begin}\n).*?({end})", lambda m: f"{m[1]}{made}\n{m[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{page} must have one section between {MARKS[0]} and {MARKS[1]}, it has {count}.")
    return write_files(page.parent, {page.name: text.encode()})
