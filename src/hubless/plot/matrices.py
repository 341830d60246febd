"""Plots of a matrix: wrong answers of class × class, and the scores of settings."""

from string import ascii_uppercase as LETTERS
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.inputs import check_choice
from ..report.colours import LIGHT
from . import style
from .style import PLAIN_TEXT, STATES, ReportOrFigures, figures_of, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

VIEWS = (*STATES, "difference")
NAMED = 12  # classes that have room for their names; of more, those that are confused most are drawn
LONG, SHORT = 22, 12  # letters of a line of a name at the rows, and of a name at the columns
# Of the strongest colour: a root, so that a single wrong answer is still seen beside twenty
SHARES = 0.15 + 0.85 * np.sqrt(np.linspace(0, 1, 33))


def confusion(report: ReportOrFigures, ax: "Axes | None" = None, view: str = "before") -> "Axes":
    """Draw wrong answers by class: the row is the class of the query, the column the class it was given.

    All views have the same classes, both states one scale; the difference is after minus before. Of many
    classes, those that are confused most often are drawn.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = confusion(demo.report("iris"))
    >>> ax.get_xlabel()
    'class that they were given'
    """
    check_choice("view", view, VIEWS)
    classes = figures_of(report)["classes"]
    if classes is None:
        raise ValueError(
            "this report has relevant items, not classes, so there are no confusions of classes to draw."
        )
    names = classes["names"]
    before, after = (_matrix(classes["wrong"][state], len(names)) for state in STATES)
    shown = {"before": before, "after": after, "difference": after - before}[view]
    most = max(1, int(np.abs(shown).max()) if view == "difference" else int(max(before.max(), after.max())))
    drawn = _confused(before + after, NAMED)
    cells = np.ma.masked_equal(shown[np.ix_(drawn, drawn)], 0)
    with style.panel(ax, height=3.6) as axes:
        image = axes.imshow(cells, cmap=_colours(view), aspect="auto", interpolation="nearest")
        image.set_clim(-most if view == "difference" else 0, most)
        style.remove_frame(axes)
        axes.set_facecolor(LIGHT["empty"])
        axes.spines[:].set(visible=True, color=style.GRID)
        _name_classes(axes, [names[i] for i in drawn], len(names))
        _bar(axes, image, "after − before" if view == "difference" else f"wrong answers {view}", whole=True)
        return axes


def surface(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw the score of each setting that was tried; the ring marks the chosen one, a gap was not tried.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = surface(demo.report("iris"))
    >>> ax.get_ylabel()
    'neighbours k'
    """
    figures = figures_of(report)["choice"]["surface"]
    if figures is None:
        raise ValueError("this report has no grid of settings: the settings were given, not searched for.")
    score = np.array([[np.nan if value is None else value for value in row] for row in figures["score"]])
    with style.panel(ax, height=2.4) as axes:
        colours = style.ramp([style.shade("after", share) for share in (0.05, 0.9)])
        image = axes.imshow(score, cmap=colours, aspect="auto", origin="lower", interpolation="nearest")
        style.remove_frame(axes)
        for axis, side in ((axes.xaxis, figures["x"]), (axes.yaxis, figures["y"])):
            values = side["values"]
            step = -(-len(values) // 8)  # eight numbers have room
            labels = [style.short(value) for value in values[::step]]
            axis.set_ticks(range(0, len(values), step), labels=labels, **PLAIN_TEXT)
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


def _confused(wrong: np.ndarray, most: int) -> list[int]:
    """Return the classes of the pairs with the most wrong answers, at most so many, in their order."""
    if len(wrong) <= most:
        return [*range(len(wrong))]
    kept: set[int] = set()
    worst = np.argsort(-(wrong + wrong.T), axis=None, kind="stable")
    for pair in zip(*(rows.tolist() for rows in np.unravel_index(worst, wrong.shape)), strict=True):
        if len(kept.union(pair)) <= most:
            kept.update(pair)
    return sorted(kept)


def _name_classes(axes: "Axes", names: list[str], of: int) -> None:
    """Name the classes at the rows, and at the columns where the names are short; else by letters."""
    places, rows = range(len(names)), [style.two_lines(name, LONG) for name in names]
    columns = rows
    turned: dict[str, Any] = {"rotation": 90}
    if max(map(len, rows)) > SHORT:
        columns, turned = [*LETTERS[: len(rows)]], {}
        rows = [f"{row}  {letter}" for row, letter in zip(rows, columns, strict=True)]
    axes.set_yticks(places, labels=rows, linespacing=1.0, **PLAIN_TEXT)
    axes.set_xticks(places, labels=columns, **turned, **PLAIN_TEXT)
    axes.tick_params(labelsize=6.5)
    few = f"\n(most confused {len(names)} of {of:,})" if len(names) < of else ""
    axes.set_xlabel(f"class that they were given{few}")
    axes.set_ylabel("class of the queries")


def _colours(view: str) -> "Colormap":
    """Return the colours of the page: in the difference, blue is fewer than before, orange more."""
    if view != "difference":
        return style.ramp([style.shade("heat", share) for share in SHARES])
    fewer, more = ([style.shade(name, share) for share in SHARES] for name in ("after", "before"))
    return style.ramp([*reversed(fewer), *more])


def _bar(axes: "Axes", image: Any, words: str, whole: bool = False) -> None:
    """Add the scale of the colours, with ticks at whole numbers where it counts something."""
    from matplotlib.ticker import MaxNLocator

    place = {"location": "bottom", "aspect": 30, "fraction": 0.05} if whole else {"shrink": 0.8}
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02, ticks=MaxNLocator(5, integer=whole), **place)
    style.style_ticks(bar.ax)
    bar.set_label(words, **PLAIN_TEXT)
    bar.outline.set_visible(False)
