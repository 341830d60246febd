"""Plots that fill a plane, or have rows: the map, the confusions, the scores of what was tried."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ..paper.figures import GREY
from .canvas import (
    COLOURS,
    COLUMN,
    FAINT,
    INK,
    STATES,
    Report,
    bare,
    chosen,
    dress,
    figures_of,
    light,
    panel,
    plain_text,
    said,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

VIEWS = (*STATES, "difference")
NAMED = 12  # at most so many classes have their names at the sides; of more, the worst pairs are told below


def hub_map(report: Report, ax: "Axes | None" = None, state: str = "before", hubs: int = 5) -> "Axes":
    """The items, their area by N10, and rays from the busiest ones to the queries that find them.

    A number is an N10. The hubs are the busiest `hubs` items before moving, in both states, so that two maps
    can be compared.
    """
    chosen(state, STATES, "state")
    details = getattr(report, "details", None)
    if details is None:
        raise ValueError("the map needs the points: give the report itself, not its figures alone.")
    items, queries, s = details["items"], details["queries"], STATES.index(state)
    k = figures_of(report)["counts"]["hub_k"]
    x, y, count = (np.asarray(items[name]).astype(float) for name in (f"x{s}", f"y{s}", f"n{s}"))
    busiest = np.argsort(-np.asarray(items["n0"]).astype(float), kind="stable")[:hubs]
    near = np.asarray(queries[f"near{s}"]).reshape(-1, k)
    asked = np.column_stack([queries["x"], queries["y"]]).astype(float)
    with panel(ax, height=COLUMN) as axes:
        area = _areas(axes, items, count)
        # Many dots are pixels: a small file, and letters stay letters
        dots: dict[str, Any] = {"linewidth": 0, "rasterized": True}
        axes.scatter(x, y, s=area, color=FAINT, alpha=0.4, label="item", zorder=1, **dots)
        axes.scatter(asked[:, 0], asked[:, 1], s=0.5, color=INK, label="query", zorder=2, **dots)
        _rays(axes, busiest, near, np.column_stack([x, y]), asked, COLOURS[state])
        rim: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5, "zorder": 4}
        over = busiest[::-1]  # the busiest on top
        axes.scatter(x[over], y[over], s=area[over], color=COLOURS[state], label="hub", **rim)
        _frame(axes, items, queries)
        for place in _spread(axes, busiest, x, y):
            _tag(axes, f"{count[place]:,.0f}", (x[place], y[place]), COLOURS[state])
        axes.set_xlabel(f"{state}: area is N{k}, lines go to its queries")
        return axes


def confusion(report: Report, ax: "Axes | None" = None, view: str = "before") -> "Axes":
    """Wrong answers by class: the row is the class of the query, the column the class it was given.

    Both states have one scale; the difference is after minus before.
    """
    chosen(view, VIEWS, "view")
    classes = figures_of(report)["classes"]
    if classes is None:
        raise ValueError(
            "this report knows relevant items, not classes, so there are no confusions of classes to draw."
        )
    before, after = (_matrix(classes["wrong"][state], len(classes["names"])) for state in STATES)
    shown = {"before": before, "after": after, "difference": after - before}[view]
    most = max(1, int(np.abs(shown).max()) if view == "difference" else int(max(before.max(), after.max())))
    with panel(ax, height=3.1) as axes:
        image = axes.imshow(np.ma.masked_equal(shown, 0), cmap=_colours(view), interpolation="nearest")
        image.set_clim(-most if view == "difference" else 0, most)
        bare(axes)
        axes.spines[:].set(visible=True, color=GREY)
        _name_classes(axes, shown, classes["names"])
        _bar(axes, image, "after − before" if view == "difference" else f"wrong answers {view}", whole=True)
        return axes


def surface(report: Report, ax: "Axes | None" = None) -> "Axes":
    """Score of each setting that was tried; the ring: the chosen one; empty: none."""
    figures = figures_of(report)["choice"]["surface"]
    if figures is None:
        raise ValueError("this report has no grid of settings: the settings were given, not searched for.")
    score = np.array([[np.nan if value is None else value for value in row] for row in figures["score"]])
    with panel(ax, height=2.4) as axes:
        image = axes.imshow(score, cmap="cividis", aspect="auto", origin="lower", interpolation="nearest")
        bare(axes)
        for axis, side in ((axes.xaxis, figures["x"]), (axes.yaxis, figures["y"])):
            values = side["values"]
            step = -(-len(values) // 10)  # ten numbers have room
            axis.set_ticks(range(0, len(values), step), labels=[_short(value) for value in values[::step]])
            axis.set_label_text(said(side["title"]), **plain_text())
        column, row = figures["chosen"]
        ring: dict[str, Any] = {
            "marker": "o",
            "markersize": 9,
            "markerfacecolor": "none",
            "linestyle": "none",
        }
        axes.plot(column, row, markeredgecolor="black", markeredgewidth=2.6, **ring)
        axes.plot(column, row, markeredgecolor="white", markeredgewidth=1.3, **ring)
        _bar(axes, image, fill(said(figures["measure"], 60), 28))
        return axes


def movers(report: Report, ax: "Axes | None" = None, most: int = 12) -> "Axes":
    """Scores of the movers that were tried, the best first; bars: ± standard error; filled: chosen."""
    given = figures_of(report)
    tried = [mover for mover in given["choice"]["movers"] if mover["score"] is not None]
    if not tried:
        raise ValueError("this report has no movers to compare: the mover was given, not searched for.")
    shown = [mover for i, mover in enumerate(tried) if i < most or mover["chosen"]]
    with panel(ax, height=0.19 * len(shown) + 0.85) as axes:
        for row, mover in enumerate(shown):
            colour = COLOURS["after"] if mover["chosen"] else INK
            axes.errorbar(
                mover["score"], row, xerr=mover["error"], color=colour, marker="o", markersize=4,
                markerfacecolor=colour if mover["chosen"] else "white", linewidth=1,
            )  # fmt: skip
        names = [said(mover["name"], 34) for mover in shown]
        names += [f"and {len(tried) - len(shown)} more"] if len(tried) > len(shown) else []
        axes.set_yticks(range(len(names)), labels=names, **plain_text())
        for mover, label in zip(shown, axes.get_yticklabels(), strict=False):
            label.set(fontweight="bold" if mover["chosen"] else "normal")
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(given["words"]["measure"])
        axes.tick_params(axis="y", length=0)
        light(axes)
        axes.spines["left"].set_visible(False)
        return axes


def _rays(
    axes: "Axes", busiest: np.ndarray, near: np.ndarray, places: np.ndarray, asked: np.ndarray, colour: str
) -> None:
    """A line from each hub to each query that has it among its neighbours."""
    from matplotlib.collections import LineCollection

    lines = [
        (places[hub], asked[query]) for hub in busiest for query in np.flatnonzero((near == hub).any(axis=1))
    ]
    axes.add_collection(LineCollection(lines, colors=colour, linewidths=0.4, alpha=0.45, zorder=3))


def _spread(axes: "Axes", busiest: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[int]:
    """The hubs that get their number: not those that lie on a busier one, whose number would be covered."""
    room = 0.05 * np.ptp(axes.get_xlim())
    tagged: list[int] = []
    for hub in busiest.tolist():
        if all(np.hypot(x[hub] - x[other], y[hub] - y[other]) > room for other in tagged):
            tagged.append(hub)
    return tagged


def _tag(axes: "Axes", text: str, place: tuple[float, float], colour: str) -> None:
    from matplotlib.patheffects import withStroke

    axes.annotate(
        text, place, (4, 4), textcoords="offset points", color=colour, fontsize="small", fontweight="bold",
        path_effects=[withStroke(linewidth=2, foreground="white")], zorder=5,
    )  # fmt: skip


def _frame(axes: "Axes", items: dict[str, Any], queries: dict[str, Any]) -> None:
    """One box for both states, and no scales: the two directions have no units."""
    for direction, limits in (("x", axes.set_xlim), ("y", axes.set_ylim)):
        parts = (items[f"{direction}0"], items[f"{direction}1"], queries[direction])
        values = np.concatenate([np.asarray(part).astype(float) for part in parts])
        edge = 0.04 * (np.ptp(values) or 1)
        limits(values.min() - edge, values.max() + edge)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    bare(axes)


def _matrix(wrong: list[list[int]], n: int) -> np.ndarray:
    """(n, n): queries of class i that were given class j."""
    counts = np.zeros((n, n), dtype=int)
    for i, j, count in wrong:
        counts[i, j] = count
    return counts


def _name_classes(axes: "Axes", shown: np.ndarray, names: list[str]) -> None:
    """Names at the sides where there is room; else the pairs of classes with the most."""
    below = "class that they were given"
    few = range(len(names)) if len(names) <= NAMED else ()
    axes.set_yticks(few, labels=[said(names[i], 16) for i in few], **plain_text())
    axes.set_xticks(few, labels=[said(names[i], 16) for i in few], rotation=90, **plain_text())
    if not few:
        worst = np.argsort(-np.abs(shown), axis=None, kind="stable")[:3]
        for i, j in zip(*np.unravel_index(worst, shown.shape), strict=True):
            if shown[i, j]:
                number = f"{shown[i, j]}".replace("-", "−")
                below += f"\n{number}: {said(names[i], 16)} → {said(names[j], 16)}"
    axes.set_xlabel(below, **plain_text())
    axes.set_ylabel("class of the queries")


def _colours(view: str) -> "Colormap":
    """None is white and one can be seen; the difference: blue has fewer than before, orange more."""
    from matplotlib.colors import LinearSegmentedColormap

    pale_orange, pale_blue = "#F9C8A8", "#A9D3EE"
    stops = {
        "before": [(0, pale_orange), (0.5, COLOURS["before"]), (1, "#5A2800")],
        "after": [(0, pale_blue), (0.5, COLOURS["after"]), (1, "#00304B")],
        "difference": [(0, COLOURS["after"]), (0.5, pale_blue), (0.5, pale_orange), (1, COLOURS["before"])],
    }
    return LinearSegmentedColormap.from_list(view, stops[view])


def _bar(axes: "Axes", image: Any, words: str, whole: bool = False) -> None:
    """The scale of the colours, with ticks at whole numbers where it counts something."""
    from matplotlib.ticker import MaxNLocator

    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, ticks=MaxNLocator(5, integer=whole))
    dress(bar.ax)
    bar.set_label(words, **plain_text())
    bar.outline.set_visible(False)


def _short(value: float) -> str:
    """0.5, 20, 1e−4."""
    if value == 0 or 0.01 <= abs(value) < 10_000:
        return f"{value:g}"
    figure, power = f"{value:.1e}".split("e")
    return f"{float(figure):g}e{int(power)}".replace("-", "−")


def _areas(axes: "Axes", items: dict[str, Any], count: np.ndarray) -> np.ndarray:
    """Areas of dots by N10: one scale for both states, smaller on small Axes, and never a huge dot."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    size = min(1.0, axes.bbox.width / figure.dpi / (0.75 * COLUMN)) ** 2
    most = max(1, int(np.max(items["n0"], initial=0)), int(np.max(items["n1"], initial=0)))
    return size * (0.8 + min(1.0, 180 / most) * count)
