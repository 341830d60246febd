"""Tables 1 to 4 as figures; matplotlib is loaded when one is drawn.

The same rows give the same bytes: text stays text, ids come from a fixed salt, and no date is written.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..plot import style
from .names import KINDS
from .results import SPEED_UP, Row
from .table_blocks import BLOCKS, LABELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A colour and a shape of each method
STYLES = {
    "original-metric": (style.BLACK, "o"),
    "lmnn": (style.ORANGE, "s"),
    "itml": (style.SKY, "^"),
    "dml-eig": (style.GREEN, "v"),
    "move-labeled": (style.VERMILION, "D"),
    "move-query": (style.PURPLE, "P"),
    "mmc": (style.INK, "*"),
    "nca": (style.BLUE, "X"),
    "scale": (style.GREY, "h"),
}
ORDINARY = (style.GREY, ".")  # of a method without a style
COLOURS = dict(zip(KINDS, (style.GREY, style.BLUE, style.VERMILION, style.GREEN), strict=True))
ARROW = {"arrowstyle": "->", "lw": 1.4, "shrinkA": 4, "shrinkB": 4}
WIDTH = 9.0  # inches, of 100 dots


class Dot(NamedTuple):
    """What is drawn of a row."""

    ours: float
    error: float | None
    paper: float | None


class Lane(NamedTuple):
    """The place of one data set on the vertical axis, and its dots by method."""

    y: float
    title: str
    dots: dict[str, Dot]


def draw(rows: list[Row], gains: list[Row]) -> dict[int, bytes]:
    """Draw Tables 1 to 4; return SVG by the number of the table, without tables that have no numbers.

    `rows` and `gains` come from the functions of these names in `hubless.paper.results`.
    """
    sketches = {1: _sizes, 2: _skewness, 3: _gains, 4: _seconds}
    drawn = {}
    for number, sketch in sketches.items():
        table = gains if number == 3 else [row for row in rows if row.table == number]
        if part := [row for row in table if row.mean is not None and row.method != SPEED_UP]:
            drawn[number] = draw_one(sketch, part)
    return drawn


def draw_one(sketch: Callable[["Figure", Any], None], data: Any) -> bytes:
    """Return the SVG of what `sketch` draws of the data, on a new figure with our settings."""
    with style.styled(style.SETTINGS, "the figures") as figure_class:
        figure = figure_class(layout="constrained")
        sketch(figure, data)
        return style.file_of(figure, "svg")


def _sizes(figure: "Figure", rows: list[Row]) -> None:
    """Draw objects against classes, in a colour for each kind of data."""
    sizes = {(row.dataset, row.method): row.mean or 0 for row in rows}
    figure.set_size_inches(WIDTH, 4)
    axes = figure.add_subplot()
    for kind in dict.fromkeys(row.kind for row in rows):
        headings = {row.dataset: row.heading for row in rows if row.kind == kind}
        objects, classes = ([sizes[name, what] for name in headings] for what in ("n_objects", "n_classes"))
        axes.plot(objects, classes, "o", color=COLOURS[kind], label=BLOCKS[kind])
        for at, heading in zip(zip(objects, classes, strict=True), headings.values(), strict=True):
            offset = (5, -11 if kind == "document" else 4)
            axes.annotate(heading, at, offset, textcoords="offset points", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="objects", ylabel="classes")
    axes.margins(0.12)
    figure.legend(loc="outside upper center", ncols=len(KINDS), frameon=False)


def _skewness(figure: "Figure", rows: list[Row]) -> None:
    lanes = _lanes(rows)
    axes = _axes(figure, lanes)
    axes.set_xscale("symlog", linthresh=1, linscale=0.8)
    for lane in lanes:
        start = lane.dots.get("original-metric")
        for method, dot in lane.dots.items():
            beside = method not in ("original-metric", "move-labeled", "move-query")
            y = lane.y + (0.26 if beside else 0.0)
            if start is not None and method in ("move-labeled", "move-query"):
                arrow = ARROW | {"color": STYLES[method][0]}
                axes.annotate("", (dot.ours, y), (start.ours, y), arrowprops=arrow)
            axes.plot(dot.ours, y, **_marker(method, 5 if beside else 7))
    values = [dot.ours for lane in lanes for dot in lane.dots.values()]
    axes.set_xlim(min(0, *values) - 0.1, max(1, *values) * 1.15)
    ticks = [tick for tick in (0, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= max(1, *values)]
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.set_xlabel("N10 skewness (evenly spaced up to 1, then logarithmic); smaller: fewer hubs")
    _legend(figure, rows)


def _gains(figure: "Figure", rows: list[Row]) -> None:
    groups = [group for kind in KINDS if (group := [row for row in rows if row.kind == kind])]
    methods = _methods(rows)
    wide = min(2, len(groups))
    deep = -(-len(groups) // wide)
    most = max(len(_lanes(group)) for group in groups)
    figure.set_size_inches(WIDTH, deep * (0.095 * len(methods) * most + 0.8) + 0.8)
    panels = list(figure.subplots(deep, wide, squeeze=False).flat)
    for axes, group in zip(panels, groups, strict=False):
        _gains_panel(axes, group, methods)
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    words = "accuracy minus that of the original metric, in points; bars: ± standard error"
    figure.supxlabel(words, fontsize=10)
    _legend(figure, rows, hollow=True)


def _gains_panel(axes: "Axes", group: list[Row], methods: list[str]) -> None:
    lanes = _lanes(group)
    _label_lanes(axes, lanes)
    axes.axvline(0, color="black", lw=1)
    for lane in lanes:
        for method, dot in lane.dots.items():
            y = lane.y + 0.8 * ((methods.index(method) + 0.5) / len(methods) - 0.5)
            axes.errorbar(dot.ours, y, xerr=dot.error, elinewidth=1.2, **_marker(method, 4.5))
            if dot.paper is not None:
                axes.plot(dot.paper, y, **_marker(method, 7, hollow=True))
    axes.set_title(BLOCKS[group[0].kind], loc="left", fontsize=10, fontweight="bold")


def _seconds(figure: "Figure", rows: list[Row]) -> None:
    lanes = _lanes(rows)
    axes = _axes(figure, lanes)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    for lane in lanes:
        for method, dot in lane.dots.items():
            axes.plot(dot.ours, lane.y - 0.15, **_marker(method, 7))
            if dot.paper is not None:
                axes.plot(dot.paper, lane.y + 0.2, **_marker(method, 6, hollow=True))
    axes.set_xlabel("training time in seconds (logarithmic)")
    _legend(figure, rows, hollow=True)


def _lanes(rows: list[Row]) -> list[Lane]:
    """Return one lane per data set, from the top down, with space between the kinds."""
    lanes: dict[str, Lane] = {}
    kinds = set()
    for row in rows:
        kinds.add(row.kind)
        lane = lanes.setdefault(row.dataset, Lane(len(lanes) + 0.4 * len(kinds), row.heading, {}))
        lane.dots[row.method] = Dot(row.mean or 0, row.standard_error, row.paper)
    return list(lanes.values())


def _axes(figure: "Figure", lanes: list[Lane]) -> "Axes":
    figure.set_size_inches(WIDTH, 0.42 * (lanes[-1].y + 1) + 1.3)
    axes: Axes = figure.subplots()
    _label_lanes(axes, lanes)
    return axes


def _label_lanes(axes: "Axes", lanes: list[Lane]) -> None:
    axes.set_yticks([lane.y for lane in lanes], labels=[lane.title for lane in lanes])
    axes.set_ylim(lanes[-1].y + 0.6, lanes[0].y - 0.6)
    for above, below in pairwise(lanes):
        axes.axhline((above.y + below.y) / 2, color=style.GRID, lw=0.8, zorder=0)


def _marker(method: str, size: float, hollow: bool = False) -> dict[str, Any]:
    colour, shape = STYLES.get(method, ORDINARY)
    face = "none" if hollow else colour
    return {
        "marker": shape,
        "markersize": size,
        "color": colour,
        "markerfacecolor": face,
        "markeredgecolor": colour,
        "linestyle": "none",
    }


def _methods(rows: list[Row]) -> list[str]:
    methods = {row.method for row in rows}
    return [name for name in STYLES if name in methods] + sorted(methods - set(STYLES))


def _legend(figure: "Figure", rows: list[Row], hollow: bool = False) -> None:
    """Draw the legend above the axes, where it covers nothing."""
    from matplotlib.lines import Line2D

    names = [(LABELS.get(method, method), _marker(method, 7)) for method in _methods(rows)]
    if hollow and any(row.paper is not None for row in rows):
        names.append(("hollow: the paper's", _marker("", 7, hollow=True) | {"marker": "o"}))
    handles = [Line2D([], [], label=name, **marker) for name, marker in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 5), frameon=False)
