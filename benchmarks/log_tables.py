"""Raw cells of corrections from a log as tables in Markdown, and what they have in common in words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from .curve_cells import Cells
from .log_cells import ALL, KINDS, NO_BANK
from .log_methods import FAMILIES, FIXED, METHODS, NNN_ADVICE, NNN_SWEEP, PLAIN, QB_NORM, QUERY_SIDE
from .markdown import grid, shown

TITLES = {name: f"`{name}`" for name in FAMILIES} | {
    **{name: f"`{name}`, nothing chosen" for name in FIXED},
    NNN_ADVICE: "NNN with k = 128, α = .75",
    NNN_SWEEP: "NNN, wide sweep",
    QB_NORM: "QB-Norm, β = 20",
}
SIDES = {1: "visibly better", 0: "no visible change", -1: "visibly worse"}
SYMBOLS = {"n_neighbors": "k", "strength": "strength", "sharpness": "sharpness", "rate": "rate", "beta": "β"}
APART = 0.3  # points between a correction with a column and without
Entry = Mapping[str, Any]


# --- reading cells


def entries_of(cells: Cells, method: str, bank: str, size: str) -> list[Entry]:
    """Return the measured draws of a method with a bank."""
    return [
        entry
        for key, entry in sorted(cells.entries.items())
        if (key.method, key.bank, key.size) == (method, bank, size) and entry["status"] == "done"
    ]


def plain_of(cells: Cells) -> Entry:
    """Return the cell of doing nothing."""
    return entries_of(cells, PLAIN, NO_BANK, "0")[0]


def main_measure(cells: Cells) -> str:
    """Return the measure that settings were chosen by."""
    return str(plain_of(cells)["figures"][0]["measure"])


def measures(cells: Cells) -> list[str]:
    """Return all measures."""
    return [figure["measure"] for figure in plain_of(cells)["figures"]]


def figure(entry: Entry, measure: str, where: str = "figures") -> dict[str, Any]:
    """Return one figure of a cell."""
    return next(figure for figure in entry[where] if figure["measure"] == measure)


def change_of(entry: Entry, measure: str) -> float:
    """Return after minus before."""
    found = figure(entry, measure)
    return float(found["after"] - found["before"])


def side(figure: Mapping[str, float]) -> int:
    """Return 1 or −1 where the interval of a change is on one side of 0, else 0."""
    return int(figure["low"] > 0) - int(figure["high"] < 0)


def cautious(entry: Entry, measure: str) -> int:
    """Return the side of a cell if a setting is taken only where validation shows a visible gain."""
    if entry["validation"] is None or side(entry["validation"]) < 1:
        return 0
    return side(figure(entry, measure))


def sizes_of(cells: Cells, bank: str) -> list[str]:
    """Return the sizes of a bank that were measured, the smallest first."""
    present = {key.size for key in cells.entries if key.bank == bank}
    return [*sorted(present - {ALL}, key=int), *([ALL] if ALL in present else [])]


def banks_of(cells: Cells) -> list[tuple[str, str, int]]:
    """Return kind, size and draw of every bank."""
    banks = {(key.bank, key.size, key.draw) for key in cells.entries if key.bank != NO_BANK}
    return sorted(
        banks, key=lambda bank: (KINDS.index(bank[0]), float("inf") if bank[1] == ALL else int(bank[1]))
    )


def best_of_bank(cells: Cells, bank: tuple[str, str, int]) -> tuple[str, Entry] | None:
    """Return the correction that validation queries liked best with this bank; None where none did."""
    found = {
        key.method: entry
        for key, entry in sorted(cells.entries.items())
        if (key.bank, key.size, key.draw) == bank and key.method in FAMILIES and entry["status"] == "done"
    }
    best = max(found, key=lambda method: found[method]["validation"]["after"], default=None)
    return None if best is None or found[best]["setting"] is None else (best, found[best])


# --- numbers


def number(value: float, measure: str, sign: str = "") -> str:
    """Return a figure as it is shown: per cent with one digit, nDCG with three."""
    return f"{value:{sign}.{3 if '@10' in measure and measure != 'R@10' else 1}f}"


def interval(figures: Iterable[Mapping[str, float]], measure: str) -> str:
    """Return the mean figure over the draws, and the mean ends of the interval of its change."""
    found = list(figures)
    after, low, high = (fmean(figure[name] for figure in found) for name in ("after", "low", "high"))
    if low == high == 0:
        return number(after, measure)
    return f"{number(after, measure)} ({number(low, measure, '+')} to {number(high, measure, '+')})"


def setting_text(setting: Mapping[str, float] | None) -> str:
    """Return a setting in words."""
    if setting is None:
        return "nothing"
    return ", ".join(f"{SYMBOLS[name]} {value:g}" for name, value in setting.items())


def size_text(size: str, count: int) -> str:
    """Return the head of a column: a size, or all with their number."""
    return f"{int(size):,}" if size != ALL else f"all {count:,}"


# --- tables


def by_size(cells: Cells, bank: str) -> list[str]:
    """Return the table of the first measure: a row a method, a column a size of the bank."""
    measure, sizes = main_measure(cells), sizes_of(cells, bank)
    rows = []
    for method in METHODS:
        found = [entries_of(cells, method, bank, size) for size in sizes]
        if any(found):
            texts = [interval((figure(e, measure) for e in each), measure) if each else "—" for each in found]
            rows.append([TITLES[method], *texts])
    count = plain_of(cells)[f"n_{bank}"]
    return grid([f"{measure}, by size of the bank", *(size_text(size, count) for size in sizes)], rows)


def with_all(cells: Cells) -> list[str]:
    """Return the table of all measures with the whole bank of the same kind as the queries."""
    names = measures(cells)
    head = ["", *names, "N10 skewness", "setting", f"{names[0]} without a column", "same answers"]
    plain = plain_of(cells)
    rows = [["do nothing", *_figures(plain, names), f"{plain['skewness'][1]:.2f}", "—", "—", "—", "—"]]
    for entry in entries_of(cells, QUERY_SIDE, NO_BANK, "0"):
        texts = [*_figures(entry, names), f"{entry['skewness'][1]:.2f}"]
        rows.append(["map queries instead", *texts, "—", "—", "—", "—"])
    for method in METHODS:
        for entry in entries_of(cells, method, "own", ALL):
            setting = "as it is" if method in FIXED else setting_text(entry["setting"])
            texts = [*_figures(entry, names), f"{entry['skewness'][1]:.2f}", setting]
            rows.append([TITLES[method], *texts, *_without(entry, names[0]), _seconds(entry)])
    return grid([*head, "seconds"], rows)


def _figures(entry: Entry, names: list[str]) -> list[str]:
    return [interval([figure(entry, name)], name) for name in names]


def _without(entry: Entry, measure: str) -> list[str]:
    if entry["no_column"] is None:
        return ["impossible", "—"]
    return [
        number(figure(entry, measure, "no_column")["after"], measure),
        f"{100 * entry['agreement']:.1f} %",
    ]


def _seconds(entry: Entry) -> str:
    return shown(entry["seconds"]["learn"]) if entry["seconds"]["learn"] else "—"


def counts(cells: Cells, title: str) -> list[list[str]]:
    """Return rows of how many cells are visibly better, unchanged and visibly worse."""
    measure, rows = main_measure(cells), []
    for kind in KINDS:
        groups = {
            "chosen on validation queries": [*FAMILIES],
            **{TITLES[m]: [m] for m in METHODS[len(FAMILIES) :]},
        }
        for name, methods in groups.items():
            found = [
                e for m in methods for size in sizes_of(cells, kind) for e in entries_of(cells, m, kind, size)
            ]
            if found:
                head = [title, kind, name]
                rows.append([*head, *_counted(side(figure(e, measure)) for e in found)])
                if len(methods) > 1:
                    head = [title, kind, "the same, only where validation shows a visible gain"]
                    rows.append([*head, *_counted(cautious(e, measure) for e in found)])
    return rows


def _counted(sides: Iterable[int]) -> list[str]:
    found = Counter(sides)
    return [f"{found[value]}" for value in (1, 0, -1)]


def lists(cells: Cells) -> list[str]:
    """Return which methods are visibly better or worse in every draw, with which banks."""
    measure, lines = main_measure(cells), []
    for value in (1, -1):
        for kind in KINDS:
            found: dict[str, list[str]] = {}
            for method in METHODS:
                for size in sizes_of(cells, kind):
                    entries = entries_of(cells, method, kind, size)
                    if entries and all(side(figure(entry, measure)) == value for entry in entries):
                        found.setdefault(method, []).append(f"{int(size):,}" if size != ALL else ALL)
            each = "; ".join(f"{TITLES[method]} ({', '.join(sizes)})" for method, sizes in found.items())
            lines.append(f"- {SIDES[value].capitalize()} in every draw, {kind} bank: {each or 'none'}.")
    return lines


def column_line(cells: Cells) -> str:
    """Return which methods are far from their exact figure without a column, with the whole own bank."""
    measure = main_measure(cells)
    scale = 1 if number(0, measure) == "0.0" else 100  # points of per cent
    found = []
    for method in METHODS:
        for entry in entries_of(cells, method, "own", ALL):
            if entry["no_column"] is not None:
                apart = figure(entry, measure, "no_column")["after"] - figure(entry, measure)["after"]
                if scale * abs(apart) > APART:
                    found.append(f"{TITLES[method]} ({apart:+.{2 if scale == 1 else 3}f})")
    what = f"{APART:g} points" if scale == 1 else f"{APART / 100:g}"
    return f"- Without a column more than {what} away, own bank, all of it: {', '.join(found) or 'none'}."
