"""Tables 1 to 4 as drawings; matplotlib is loaded when one is asked for.

The same rows give the same bytes: text stays text, ids come from a fixed salt, and no date is written.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .blocks import BLOCKS, LABELS
from .results import KINDS, SPEED_UP, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, and a shape each
STYLES = {
    "original-metric": ("#000000", "o"),
    "lmnn": ("#E69F00", "s"),
    "itml": ("#56B4E9", "^"),
    "dml-eig": ("#009E73", "v"),
    "move-labeled": ("#D55E00", "D"),
    "move-query": ("#CC79A7", "P"),
    "nca": ("#0072B2", "X"),
    "scale": ("#7F7F7F", "h"),
}
ORDINARY = ("#7F7F7F", ".")  # of a method without a style
GREY, WIDTH = "#E6E6E6", 9.0  # inches, of 100 dots
SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "hubless",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "axes.axisbelow": True,
    "grid.color": GREY,
    "ytick.major.size": 0,
    "savefig.dpi": 100,
}


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


def draw(rows: list[Row], gains: list[Row], file_format: str = "svg") -> dict[int, bytes]:
    """Drawings of Tables 1 to 4 by their number, without those that have no figure to show.

    `rows` and `gains` are what the functions of these names in `hubless.paper.results` return.
    """
    sketches: dict[int, tuple[Callable[[Figure, list[Row]], None], list[Row]]] = {
        1: (_sizes, [row for row in rows if row.table == 1]),
        2: (_skewness, [row for row in rows if row.table == 2]),
        3: (_gains, gains),
        4: (_seconds, [row for row in rows if row.table == 4 and row.method != SPEED_UP]),
    }
    drawn = {}
    for number, (sketch, own) in sketches.items():
        if own := [row for row in own if row.mean is not None]:
            with styled(SETTINGS, "the figures") as figure_class:
                figure = figure_class(layout="constrained")
                sketch(figure, own)
                drawn[number] = _saved(figure, file_format)
    return drawn


@contextmanager
def styled(settings: dict[Any, Any], what: str) -> Iterator[type["Figure"]]:
    """Our settings, whatever the user's own are; gives the class of figures."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"{what} need matplotlib, which is not installed: pip install 'hubless[plot]'."
        ) from error
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield Figure


def _saved(figure: "Figure", file_format: str) -> bytes:
    file = BytesIO()
    metadata = {"Date": None} if file_format == "svg" else None
    figure.savefig(file, format=file_format, metadata=metadata)
    # git complains of the blanks that matplotlib leaves at the ends of lines
    return file.getvalue().replace(b" \n", b"\n") if file_format == "svg" else file.getvalue()


def _sizes(figure: "Figure", own: list[Row]) -> None:
    """Objects against classes, a colour for each kind of data."""
    place = {(row.dataset, row.method): row for row in own}
    colours = dict(zip(KINDS, ("#7F7F7F", "#0072B2", "#D55E00", "#009E73"), strict=True))
    figure.set_size_inches(WIDTH, 4)
    axes = figure.add_subplot()
    for kind in dict.fromkeys(row.kind for row in own):
        shown = [row for row in own if row.kind == kind and row.method == "n_objects"]
        axes.plot(
            [row.mean or 0 for row in shown],
            [place[row.dataset, "n_classes"].mean or 0 for row in shown],
            linestyle="none",
            marker="o",
            color=colours[kind],
            label=BLOCKS[kind],
        )
        for row in shown:
            at = (row.mean or 0, place[row.dataset, "n_classes"].mean or 0)
            axes.annotate(
                row.heading, at, (5, -11 if kind == "document" else 4), textcoords="offset points", fontsize=8
            )
    axes.set(xscale="log", yscale="log", xlabel="objects", ylabel="classes")
    axes.margins(0.12)
    figure.legend(loc="outside upper center", ncols=len(KINDS), frameon=False)


def _skewness(figure: "Figure", own: list[Row]) -> None:
    lanes = _lanes(own)
    axes = _axes(figure, lanes)
    axes.set_xscale("symlog", linthresh=1, linscale=0.8)
    for lane in lanes:
        start = lane.dots.get("original-metric")
        for method, dot in lane.dots.items():
            beside = method not in ("original-metric", "move-labeled", "move-query")
            y = lane.y + (0.26 if beside else 0.0)
            if start is not None and method in ("move-labeled", "move-query"):
                _arrow(axes, start.ours, dot.ours, y, STYLES[method][0])
            axes.plot(dot.ours, y, **_marker(method, 5 if beside else 7))
    values = [dot.ours for lane in lanes for dot in lane.dots.values()]
    axes.set_xlim(min(0, *values) - 0.1, max(1, *values) * 1.15)
    ticks = [tick for tick in (0, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= max(1, *values)]
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.set_xlabel("N10 skewness (evenly spaced up to 1, then logarithmic); smaller: fewer hubs")
    _legend(figure, own)


def _gains(figure: "Figure", own: list[Row]) -> None:
    groups = [group for kind in KINDS if (group := [row for row in own if row.kind == kind])]
    methods = _methods(own)
    wide = min(2, len(groups))
    deep = -(-len(groups) // wide)
    most = max(len(_lanes(group)) for group in groups)
    figure.set_size_inches(WIDTH, deep * (0.095 * len(methods) * most + 0.8) + 0.8)
    panels = list(figure.subplots(deep, wide, squeeze=False).flat)
    for axes, group in zip(panels, groups, strict=False):
        _gains_panel(axes, group, methods)
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "accuracy minus that of the original metric, in points; bars: ± standard error", fontsize=10
    )
    _legend(figure, own, hollow=True)


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


def _seconds(figure: "Figure", own: list[Row]) -> None:
    lanes = _lanes(own)
    axes = _axes(figure, lanes)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    for lane in lanes:
        for method, dot in lane.dots.items():
            axes.plot(dot.ours, lane.y - 0.15, **_marker(method, 7))
            if dot.paper is not None:
                axes.plot(dot.paper, lane.y + 0.2, **_marker(method, 6, hollow=True))
    axes.set_xlabel("training time in seconds (logarithmic)")
    _legend(figure, own, hollow=True)


def _lanes(own: list[Row]) -> list[Lane]:
    """One lane per data set, from the top down, with room between the kinds."""
    groups: dict[str, list[Row]] = {}
    for row in own:
        groups.setdefault(row.dataset, []).append(row)
    kinds = [group[0].kind for group in groups.values()]
    lanes = []
    for i, group in enumerate(groups.values()):
        y = i + 0.4 * len(set(kinds[: i + 1]))
        dots = {
            row.method: Dot(row.mean, row.standard_error, row.paper) for row in group if row.mean is not None
        }
        lanes.append(Lane(y, group[0].heading, dots))
    return lanes


def _axes(figure: "Figure", lanes: list[Lane]) -> "Axes":
    figure.set_size_inches(WIDTH, 0.42 * (lanes[-1].y + 1) + 1.3)
    axes: Axes = figure.subplots()
    _label_lanes(axes, lanes)
    return axes


def _label_lanes(axes: "Axes", lanes: list[Lane]) -> None:
    axes.set_yticks([lane.y for lane in lanes], labels=[lane.title for lane in lanes])
    axes.set_ylim(lanes[-1].y + 0.6, lanes[0].y - 0.6)
    for above, below in pairwise(lanes):
        axes.axhline((above.y + below.y) / 2, color=GREY, lw=0.8, zorder=0)


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


def _arrow(axes: "Axes", start: float, end: float, y: float, colour: str) -> None:
    style = {"arrowstyle": "->", "color": colour, "lw": 1.4, "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", (end, y), (start, y), arrowprops=style)


def _methods(own: list[Row]) -> list[str]:
    found = {row.method for row in own}
    return [name for name in STYLES if name in found] + sorted(found - set(STYLES))


def _legend(figure: "Figure", own: list[Row], hollow: bool = False) -> None:
    """Above the axes, where it covers nothing."""
    from matplotlib.lines import Line2D

    names = [(LABELS.get(method, method), _marker(method, 7)) for method in _methods(own)]
    if hollow and any(row.paper is not None for row in own):
        names.append(("hollow: the paper's", _marker("", 7, hollow=True) | {"marker": "o"}))
    handles = [Line2D([], [], label=name, **marker) for name, marker in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 5), frameon=False)
