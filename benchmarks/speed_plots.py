"""The figures of the page on speed; the same raw results give the same bytes."""

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from hubless.paper.table_figures import WIDTH, draw_one
from hubless.plot.style import BLACK, BLUE, VERMILION

from .markdown import shown
from .record import RawFile
from .speed_goals import least_seconds
from .timing import is_timed, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, OTHER, BARE = VERMILION, BLUE, BLACK


def draw(raw: Mapping[str, RawFile]) -> dict[str, bytes]:
    """Draw what was measured; return the figures by the name of their file."""
    sketches = {"search": _search, "fit": _fit, "growth": _growth}
    measured = [verb for verb in sketches if verb in raw]
    return {f"speed-{verb}.svg": draw_one(sketches[verb], raw[verb]["cases"]) for verb in measured}


def _colour(name: str) -> str:
    return OURS if name.startswith("hubless") else BARE if name.startswith("bare") else OTHER


def _lanes(axes: "Axes", names: list[str]) -> None:
    """One contender below the other, on a logarithmic axis."""
    axes.set_yticks(range(len(names)), labels=names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.minorticks_off()
    axes.axvline(1, color=BARE, lw=1)


def _search(figure: "Figure", cases: Mapping[str, Any]) -> None:
    """Seconds over those of the bare product, with quartiles; a panel per case."""
    lines = -(-len(cases) // 2)
    figure.set_size_inches(WIDTH, 2.6 * lines)
    names = list(dict.fromkeys(name for case in cases.values() for name in case["seconds"]))
    panels = figure.subplots(lines, 2, sharex=True, sharey=True, squeeze=False)
    for axes, (title, case) in zip(panels.flat, cases.items(), strict=False):
        _lanes(axes, names)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        for y, name in enumerate(names):
            if is_timed(case["seconds"], name, case["reference"]):
                middle, low, high = ratio(case["seconds"], name, case["reference"])
                spread = [[middle - low], [high - middle]]
                axes.errorbar(middle, y, xerr=spread, marker="o", color=_colour(name), linestyle="none")
                axes.annotate(shown(middle), (middle, y), (0, 5), textcoords="offset points", fontsize=7)
    ticks = (0.5, 1, 2, 5, 10, 20)
    panels[0, 0].set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    figure.supxlabel("seconds over those of the bare product (logarithmic); bars: quartiles", fontsize=10)


def _fit(figure: "Figure", cases: Mapping[str, Any]) -> None:
    """Fits and learners over the bare products of the same data, a lane each; arrows are lower bounds."""
    lanes: list[tuple[str, float, str]] = []
    for title, case in cases.items():
        seconds, to = case["seconds"], case["reference"]
        if not is_timed(seconds, "hubless", to):
            continue
        lanes.append((f"{title}: hubless", ratio(seconds, "hubless", to)[0], "o"))
        for name, entry in case.get("learners", {}).items():
            if (took := least_seconds(entry)) is not None:
                mark = ">" if "more_than" in entry else "o"
                lanes.append((f"{title}: {name}", took / median(seconds[to]), mark))
    figure.set_size_inches(WIDTH, 0.3 * len(lanes) + 0.8)
    axes = figure.subplots()
    _lanes(axes, [name for name, _, _ in lanes])
    for y, (name, value, mark) in enumerate(lanes):
        colour = OURS if name.endswith(": hubless") else OTHER
        axes.plot(value, y, marker=mark, color=colour, linestyle="none")
        axes.annotate(shown(value), (value, y), (7, -3), textcoords="offset points", fontsize=8)
    axes.margins(x=0.12)
    axes.set_xlabel("seconds over those of the bare products of Eq. 6 (logarithmic); arrows: more than this")


def _growth(figure: "Figure", cases: Mapping[str, Any]) -> None:
    """Every time over its size, and the fitted line; a panel per case."""
    figure.set_size_inches(WIDTH, 5.2)
    panels = figure.subplots(-(-len(cases) // 2), 2, squeeze=False)
    for axes, (title, case) in zip(panels.flat, cases.items(), strict=False):
        sizes = np.array(case["sizes"], dtype=float)
        times = np.array([case["seconds"][str(size)] for size in case["sizes"]])
        axes.loglog(np.repeat(sizes, times.shape[1]), times.ravel(), ".", color=OURS, markersize=5)
        centre, middle = np.log(sizes).mean(), np.log(times).mean()
        fitted = np.exp(middle + case["exponent"] * (np.log(sizes) - centre))
        axes.loglog(sizes, fitted, color=BARE, lw=1)
        axes.set_xticks(sizes, labels=[f"{size:,}" for size in case["sizes"]])
        axes.xaxis.minorticks_off()
        label = f"{title}: exponent {case['exponent']:.2f} ± {case['standard_error']:.2f}"
        axes.set_title(label, loc="left", fontsize=10, fontweight="bold")
        axes.set(xlabel=case["grows"], ylabel="seconds")
        axes.grid(visible=True, axis="y")
