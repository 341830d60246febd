"""Plots of a matrix: wrong answers of class × class, and the scores of settings."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.inputs import check_choice
from . import style
from .style import COLOURS, PLAIN_TEXT, STATES, ReportOrFigures, figures_of, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

VIEWS = (*STATES, "difference")
NAMED = 12  # with more classes, the worst pairs are listed below instead of names at the sides


def confusion(report: ReportOrFigures, ax: "Axes | None" = None, view: str = "before") -> "Axes":
    """Draw wrong answers by class: the row is the class of the query, the column the class it was given.

    Both states have one scale; the difference is after minus before.
    """
    check_choice("view", view, VIEWS)
    classes = figures_of(report)["classes"]
    if classes is None:
        raise ValueError(
            "this report has relevant items, not classes, so there are no confusions of classes to draw."
        )
    before, after = (_matrix(classes["wrong"][state], len(classes["names"])) for state in STATES)
    shown = {"before": before, "after": after, "difference": after - before}[view]
    most = max(1, int(np.abs(shown).max()) if view == "difference" else int(max(before.max(), after.max())))
    with style.panel(ax, height=3.1) as axes:
        image = axes.imshow(np.ma.masked_equal(shown, 0), cmap=_colours(view), interpolation="nearest")
        image.set_clim(-most if view == "difference" else 0, most)
        style.remove_frame(axes)
        axes.spines[:].set(visible=True, color=style.GRID)
        _name_classes(axes, shown, classes["names"])
        _bar(axes, image, "after − before" if view == "difference" else f"wrong answers {view}", whole=True)
        return axes


def surface(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw the score of each setting that was tried; the ring marks the chosen one, a gap was not tried."""
    figures = figures_of(report)["choice"]["surface"]
    if figures is None:
        raise ValueError("this report has no grid of settings: the settings were given, not searched for.")
    score = np.array([[np.nan if value is None else value for value in row] for row in figures["score"]])
    with style.panel(ax, height=2.4) as axes:
        image = axes.imshow(score, cmap="cividis", aspect="auto", origin="lower", interpolation="nearest")
        style.remove_frame(axes)
        for axis, side in ((axes.xaxis, figures["x"]), (axes.yaxis, figures["y"])):
            values = side["values"]
            step = -(-len(values) // 10)  # ten numbers have room
            axis.set_ticks(range(0, len(values), step), labels=[_short(value) for value in values[::step]])
            axis.set_label_text(one_line(side["title"]), **PLAIN_TEXT)
        column, row = figures["chosen"]
        ring: dict[str, Any] = {
            "marker": "o",
            "markersize": 9,
            "markerfacecolor": "none",
            "linestyle": "none",
        }
        axes.plot(column, row, markeredgecolor="black", markeredgewidth=2.6, **ring)
        axes.plot(column, row, markeredgecolor="white", markeredgewidth=1.3, **ring)
        _bar(axes, image, fill(one_line(figures["measure"], 60), 28))
        return axes


def _matrix(wrong: list[list[int]], n: int) -> np.ndarray:
    """Count queries of class i that were given class j; (n, n)."""
    counts = np.zeros((n, n), dtype=int)
    for i, j, count in wrong:
        counts[i, j] = count
    return counts


def _name_classes(axes: "Axes", shown: np.ndarray, names: list[str]) -> None:
    """Name the classes at the sides where there is room; else list the pairs of classes with the most."""
    below = "class that they were given"
    few = range(len(names)) if len(names) <= NAMED else ()
    axes.set_yticks(few, labels=[one_line(names[i], 16) for i in few], **PLAIN_TEXT)
    axes.set_xticks(few, labels=[one_line(names[i], 16) for i in few], rotation=90, **PLAIN_TEXT)
    if not few:
        worst = np.argsort(-np.abs(shown), axis=None, kind="stable")[:3]
        for i, j in zip(*np.unravel_index(worst, shown.shape), strict=True):
            if shown[i, j]:
                number = f"{shown[i, j]}".replace("-", "−")
                below += f"\n{number}: {one_line(names[i], 16)} → {one_line(names[j], 16)}"
    axes.set_xlabel(below, **PLAIN_TEXT)
    axes.set_ylabel("class of the queries")


def _colours(view: str) -> "Colormap":
    """Return colours: zero is white; in the difference, blue is fewer than before, orange more."""
    from matplotlib.colors import LinearSegmentedColormap

    pale_orange, pale_blue = "#F9C8A8", "#A9D3EE"
    stops = {
        "before": [(0, pale_orange), (0.5, COLOURS["before"]), (1, "#5A2800")],
        "after": [(0, pale_blue), (0.5, COLOURS["after"]), (1, "#00304B")],
        "difference": [(0, COLOURS["after"]), (0.5, pale_blue), (0.5, pale_orange), (1, COLOURS["before"])],
    }
    return LinearSegmentedColormap.from_list(view, stops[view])


def _bar(axes: "Axes", image: Any, words: str, whole: bool = False) -> None:
    """Add the scale of the colours, with ticks at whole numbers where it counts something."""
    from matplotlib.ticker import MaxNLocator

    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, ticks=MaxNLocator(5, integer=whole))
    style.style_ticks(bar.ax)
    bar.set_label(words, **PLAIN_TEXT)
    bar.outline.set_visible(False)


def _short(value: float | str) -> str:
    """Format a setting: a number as 0.5, 20 or 1e−4, a word such as "no map" as it is."""
    if isinstance(value, str):
        return one_line(value, 16)
    if value == 0 or 0.01 <= abs(value) < 10_000:
        return f"{value:g}"
    figure, power = f"{value:.1e}".split("e")
    return f"{float(figure):g}e{int(power)}".replace("-", "−")
