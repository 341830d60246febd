"""The tables and the figure of docs/probabilities.md, made from raw results; its words are written there."""

import re
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from hubless.paper.names import DATASETS
from hubless.paper.raw import write_files
from hubless.paper.table_figures import draw_one
from hubless.plot.style import BLACK, BLUE, GREY, VERMILION

from .markdown import MISSING, QUICK, grid, is_quick
from .record import DOCS, RawFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "results" / "scores"
PEERS = ("scikit-learn", "scipy")
PAGE, FIGURE = "probabilities.md", "reliability.svg"
MARK = "<!-- {verb}: made by `python -m benchmarks scores-page` -->"
END = "<!-- end of {verb} -->"
FIGURES = {"Log-loss": "log_loss", "Expected calibration error": "calibration_error", "Accuracy": "accuracy"}


def of(verb: str, cases: Mapping[str, Any]) -> list[str]:
    """Return the table of a verb."""
    return _probabilities(cases) if verb == "probabilities" else _unknown(cases)


def _title(name: str) -> str:
    return DATASETS.get(name, name)


def _mean(cells: list[dict[str, Any]], method: str, *path: str) -> float | None:
    """Return the mean of a figure of a method over the splits."""
    values = []
    for cell in cells:
        if cell["method"] == method:
            value: Any = cell
            for name in path:
                value = value.get(name) if value is not None else None
            values += [] if value is None else [float(value)]
    return mean(values) if values else None


def _probabilities(cases: Mapping[str, Any]) -> list[str]:
    """Return log-loss and calibration error, methods × data sets, and what the calibration changes."""
    names = list(cases)
    methods = list(dict.fromkeys(cell["method"] for case in cases.values() for cell in case["cells"]))
    lines = []
    figures = {
        "Log-loss": "log_loss",
        "Expected calibration error": "calibration_error",
        "Accuracy": "accuracy",
    }
    for title, figure in figures.items():
        rows = []
        for method in methods:
            values = {name: _mean(cases[name]["cells"], method, figure) for name in names}
            rows.append([method, *(_shown(values[name]) for name in names)])
            if figure != "accuracy" and method.startswith("hubless"):
                raw = [_mean(cases[name]["cells"], method, "shares", figure) for name in names]
                rows.append([f"{method}, shares of votes", *map(_shown, raw)])
        lines += [f"{title}:\n", *grid(["", *map(_title, names)], rows), ""]
    return lines[:-1]


def _shown(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"


def _unknown(cases: Mapping[str, Any]) -> list[str]:
    """Return AUROC of each score, and the alarms at the wished rate."""
    names = list(cases)
    scores = list(next(iter(cases.values()))["cells"][0]["auroc"])
    head = ["AUROC", *(f"{_title(name)}, split {c['split']}" for name in names for c in cases[name]["cells"])]
    cells = [cell for name in names for cell in cases[name]["cells"]]
    rows = [[score, *(f"{cell['auroc'][score]:.3f}" for cell in cells)] for score in scores]
    rate = cells[0]["rate"]
    alarms = [
        [f"{method}: {words}", *(f"{cell['rates'][method][key]:.3f}" for cell in cells)]
        for method in cells[0]["rates"]
        for key, words in (("false_alarms", "false alarms"), ("noticed", "unknown queries noticed"))
    ]
    return [*grid(head, rows), "", f"With `reject={rate}`:\n", *grid(["", *head[1:]], alarms)]


def draw(cases: Mapping[str, Any]) -> bytes:
    """Draw reliability diagrams, a panel per data set, of the first split."""
    colours = {"k-NN, shares of votes": GREY, "logistic regression": BLUE, "hubless, auto": VERMILION}

    def sketch(figure: "Figure", cases: Mapping[str, Any]) -> None:
        figure.set_size_inches(2.3 * max(2, len(cases)), 2.9)
        panels = figure.subplots(1, len(cases), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (name, case) in zip(panels, cases.items(), strict=True):
            axes.plot([0, 1], [0, 1], color=BLACK, lw=0.8, ls=":")
            axes.set_title(_title(name), loc="left", fontsize=10, fontweight="bold")
            axes.set_xlabel("probability of the answer")
            axes.set_xlim(0, 1)
            axes.set_ylim(0, 1)
            axes.set_aspect("equal")
            for method, colour in colours.items():
                cell = next(cell for cell in case["cells"] if cell["method"] == method)
                bars = cell["bars"]
                least = 0.01 * sum(bars["counts"])  # a bin of few queries says little
                points = zip(bars["confidence"], bars["accuracy"], bars["counts"], strict=True)
                shown = [(x, y) for x, y, count in points if count >= max(least, 1)]
                axes.plot(*zip(*shown, strict=True), color=colour, marker="o", ms=3, lw=1.2, label=method)
        panels[0].set_ylabel("share of right answers")
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
        )

    return draw_one(sketch, cases)


def write(raw: Mapping[str, RawFile], docs: Path = DOCS) -> list[Path]:
    """Put the tables on the page and draw its figure; the words of the page are those of the one in docs."""
    page, files = (DOCS / PAGE).read_text(encoding="utf-8"), {}
    for verb in ("probabilities", "unknown"):
        begin, end = MARK.format(verb=verb), END.format(verb=verb)
        part = _part(verb, raw[verb]) if verb in raw else f"{MISSING.capitalize()}."
        page, count = re.subn(
            rf"{re.escape(begin)}.*?{re.escape(end)}",
            lambda _, part=part, begin=begin, end=end: f"{begin}\n{part}\n{end}",
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"{DOCS / PAGE} must have one part between {begin} and {end}, it has {count}.")
    if "probabilities" in raw:
        files[FIGURE] = draw(raw["probabilities"]["cases"])
    return write_files(docs, {PAGE: page.encode(), **files})


def _part(verb: str, raw: RawFile) -> str:
    machine = f"{raw['machine'].get('processor', 'unknown')}, {raw['machine'].get('cores', 'unknown')} cores"
    remark = [QUICK] if is_quick(raw) else []
    return "\n".join([*remark, *of(verb, raw["cases"]), "", f"Measured on {raw['date']}: {machine}."])
