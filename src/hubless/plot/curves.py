"""Plots with lines and dots: how often items are returned, and why; the scores of movers."""

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .style import COLOURS, STATES, ReportOrFigures, figures_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ZERO = 0.5  # where an N10 of 0 is drawn on a logarithmic axis
SMALLEST = 1e-6  # of the largest variance: what is smaller is rounding
LETTERS = 28  # of a name of a mover on a line
EQUALS = "\u00a0=\u00a0"  # where no line ends


def skyline(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw N10 of every item, the busiest first; both axes are logarithmic, and 0 is drawn below 1.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = skyline(demo.report("iris"))
    >>> ax.get_xlabel()
    'items, the busiest first'
    """
    line, k = figures_of(report)["skyline"], figures_of(report)["counts"]["hub_k"]
    with _chart(ax, "upper right") as axes:
        for state in STATES:
            heights = [max(count, ZERO) for count in line[state]]
            axes.plot(line["rank"], heights, **_line(state, f"{state}: up to {line[state][0]:,g}"))
        if line["mean"] >= 1:  # a smaller one has no place between 0 and 1
            _level(axes, line["mean"], f"mean {line['mean']:.3g}", zorder=1)
        axes.set(xscale="log", xlabel="items, the busiest first")
        _occurrence_axis(axes, k, max(line[state][0] for state in STATES))
        axes.xaxis.set_major_formatter("{x:,g}")
        return axes


def lorenz(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw the Lorenz curve of the answers; the diagonal: all items are equally busy.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = lorenz(demo.report("iris"))
    >>> ax.get_xlabel()
    'items, the least busy first'
    """
    curves = figures_of(report)["lorenz"]
    with _chart(ax, "upper left", height=3.0) as axes:
        axes.plot([0, 1], [0, 1], color=style.FAINT, linewidth=0.8)
        for state in STATES:
            label = f"{state}: Gini {curves['gini'][state]:.2f}"
            axes.plot(curves["share"], curves[state], **_line(state, label))
        axes.set(xlabel="items, the least busy first", ylabel="share of answers")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25 %", "50 %", "75 %", "100 %"])
        return axes


def centrality(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw N10 of items over their distance to the mean: hubs tend to be near it.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = centrality(demo.report("iris"))
    >>> ax.get_xlabel()
    'distance of the item to the mean of all items'
    """
    charts, k = figures_of(report)["why"]["centrality"], figures_of(report)["counts"]["hub_k"]
    # Dots are rasterized, to keep the file small; text stays text
    look: dict[str, Any] = {"linestyle": "none", "markersize": 2.4, "markeredgewidth": 0, "alpha": 0.55}
    with _chart(ax, "upper right") as axes:
        for state, marker in zip(STATES, ("o", "^"), strict=True):
            dots = charts[state]
            heights = [max(count, ZERO) for count in dots["occurrence"]]
            look |= {"marker": marker, "color": COLOURS[state]}
            label = f"{state}: correlation {_signed(dots['correlation'])}"
            axes.plot(dots["distance"], heights, label=label, rasterized=True, **look)
        axes.set(xlabel="distance of the item to the mean of all items")
        most = max(max(charts[state]["occurrence"], default=1) for state in STATES)
        _occurrence_axis(axes, k, most, room=4)
        return axes


def variance(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw the variance of items, before and after, and of queries along the first principal components.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = variance(demo.report("iris"))
    >>> ax.get_xlabel()
    'principal component of the original items'
    """
    variances = figures_of(report)["why"]["variance"]
    with _chart(ax, "lower left") as axes:
        for name in (*STATES, "queries"):
            total = variances["total"][name]
            amount = f"{total:,.0f}" if total >= 100 else f"{total:.3g}"
            label = f"{'items ' if name in STATES else ''}{name}: {amount} in total"
            axes.plot(variances["component"], variances[name], **_line(name, label))
        axes.set(xlabel="principal component of the original items", ylabel="variance")
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_major_formatter("{x:,g}")
        _variance_axis(axes, np.concatenate([variances[name] for name in (*STATES, "queries")]))
        return axes


def singular_values(report: ReportOrFigures, ax: "Axes | None" = None) -> "Axes":
    """Draw the singular values of W, the largest first; at 1, W keeps lengths.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = singular_values(demo.report("iris"))
    >>> ax.get_xlabel()
    'singular value, the largest first'
    """
    why = figures_of(report)["why"]
    values = why["singular_values"]
    if values is None:
        raise ValueError(f"this report has no singular values. {why['singular_words']}".strip())
    with _chart(ax) as axes:
        _level(axes, 1, "1: lengths are kept", right=True)
        axes.plot(range(1, len(values) + 1), values, **_line("after", ""))
        axes.set(xlabel="singular value, the largest first", ylabel="factor on lengths")
        axes.set_ylim(bottom=0)
        return axes


def movers(report: ReportOrFigures, ax: "Axes | None" = None, most: int = 12) -> "Axes":
    """Draw the scores of movers that were tried, the best first; bars: ± standard error, filled: chosen.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = movers(demo.report("iris"))
    >>> ax.get_xlabel()
    'accuracy'
    """
    figures = figures_of(report)
    tried = [mover for mover in figures["choice"]["movers"] if mover["score"] is not None]
    if not tried:
        raise ValueError("this report has no movers to compare: the mover was given, not searched for.")
    shown = [mover for i, mover in enumerate(tried) if i < most or mover["chosen"]]
    whole = [style.one_line(mover["name"], 4 * LETTERS).replace(" = ", EQUALS) for mover in shown]
    names = [fill(name, LETTERS) for name in whole]
    lines = max(name.count("\n") for name in names)
    with _chart(ax, height=(0.19 + 0.1 * lines) * len(shown) + 0.85) as axes:
        for row, mover in enumerate(shown):
            colour = COLOURS["after"] if mover["chosen"] else style.INK
            axes.errorbar(
                mover["score"], row, xerr=mover["error"], color=colour, marker="o", markersize=4,
                markerfacecolor=colour if mover["chosen"] else "white", linewidth=1,
            )  # fmt: skip
        names += [f"and {len(tried) - len(shown)} more"] if len(tried) > len(shown) else []
        axes.set_yticks(range(len(names)), labels=names, fontsize=6.5, **style.PLAIN_TEXT)
        for mover, label in zip(shown, axes.get_yticklabels(), strict=False):
            label.set(fontweight="bold" if mover["chosen"] else "normal")
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(figures["words"]["measure"])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        return axes


@contextmanager
def _chart(ax: "Axes | None", legend: Any = None, height: float = 2.5) -> Iterator["Axes"]:
    """Yield Axes, then add a grid behind all else, and a legend at the given place."""
    with style.panel(ax, height) as axes:
        yield axes
        axes.grid(True, color=style.GRID, linewidth=0.5)
        axes.set_axisbelow(True)
        if legend is not None:
            frame = {"framealpha": 0.8, "edgecolor": "none", "borderpad": 0.1}  # dots behind it stay visible
            axes.legend(loc=legend, labelcolor="linecolor", handlelength=1.9, borderaxespad=0.2, **frame)


def _line(state: str, label: str) -> dict[str, Any]:
    return {"color": COLOURS[state], "linestyle": style.DASHES[state], "label": label}


def _level(axes: "Axes", value: float, words: str, right: bool = False, **options: Any) -> None:
    """Draw a line across the Axes at a value, with words above its left or right end."""
    axes.axhline(value, color=style.FAINT, linewidth=0.8, **options)
    axes.annotate(
        words, (int(right), value), (-2 if right else 3, 2), ha="right" if right else "left",
        xycoords=("axes fraction", "data"), textcoords="offset points", color=style.INK, fontsize="small",
    )  # fmt: skip


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}".replace("-", "−")


def _variance_axis(axes: "Axes", values: np.ndarray) -> None:
    """Show the variances that are no rounding errors, with numbers at powers of ten, or between two also."""
    from matplotlib.ticker import LogLocator, NullFormatter

    high = float(values.max(initial=0.0)) or 1.0
    low = max(float(values[values > 0].min(initial=high)), SMALLEST * high)
    axes.set_ylim(low / 1.6, high * 1.6)
    between = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=between))
    axes.yaxis.set_major_formatter(lambda value, _: style.short(value))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _occurrence_axis(axes: "Axes", k: int, most: float, room: float = 1.6) -> None:
    """Make the vertical axis that of N10: logarithmic from 1 on, with 0 as a separate tick below it.

    `room` is above the busiest item, so that the legend covers nothing.
    """
    ticks = [1, 3, 10, 30, 100] if most < 300 else [10**power for power in range(12)]
    shown = [tick for tick in ticks if tick <= max(most, 1)]
    axes.set_ylabel(f"N{k}: queries that find it")
    axes.set_yscale("log")
    axes.set_ylim(ZERO * 0.8, max(most, 1) * room)
    axes.yaxis.set_ticks([ZERO, *shown], labels=["0", *(f"{tick:,}" for tick in shown)])
    axes.yaxis.set_ticks([], minor=True)
