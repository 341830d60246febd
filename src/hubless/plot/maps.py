"""The map of a report: items, queries, and rays from the busiest items to the queries that find them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.inputs import check_choice
from .style import COLOURS, COLUMN, FAINT, INK, STATES, ReportOrFigures, figures_of, panel, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def hub_map(
    report: ReportOrFigures, ax: "Axes | None" = None, state: str = "before", hubs: int = 5
) -> "Axes":
    """Draw the items, their area by N10, and rays from the busiest ones to the queries that find them.

    The numbers are N10. The hubs are the busiest `hubs` items before moving, in both states, so that two maps
    can be compared.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> ax = hub_map(demo.report("iris"), state="after")
    >>> ax.get_xlabel()
    'after: area is N10, lines go to the queries'
    """
    check_choice("state", state, STATES)
    details = getattr(report, "details", None)
    if details is None:
        raise ValueError("the map needs the points: give the report itself, not its figures alone.")
    items, queries, s = details["items"], details["queries"], STATES.index(state)
    k, colour = figures_of(report)["counts"]["hub_k"], COLOURS[state]
    points = np.column_stack([items["x"], items["y"]]).astype(float)
    query_points = np.column_stack([queries["x"], queries["y"]]).astype(float)
    near, counts = np.reshape(queries[f"near{s}"], (-1, k)), np.asarray(items[f"n{s}"]).astype(float)
    busiest = np.argsort(-np.asarray(items["n0"]).astype(float), kind="stable")[:hubs]
    rays = [
        (points[hub], query_points[query])
        for hub in busiest
        for query in np.flatnonzero((near == hub).any(axis=1))
    ]
    (x, y), (query_x, query_y) = points.T, query_points.T
    with panel(ax, height=COLUMN) as axes:
        area = _areas(axes, items, counts)
        # Dots are rasterized, to keep the file small; text stays text
        dots: dict[str, Any] = {"linewidth": 0, "rasterized": True, "clip_on": False}
        axes.scatter(x, y, s=area, color=FAINT, alpha=0.4, label="item", zorder=1, **dots)
        axes.scatter(query_x, query_y, s=0.5, color=INK, label="query", zorder=2, **dots)
        _draw_lines(axes, rays, colour)
        over = busiest[::-1]  # the busiest on top
        rim: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5, "zorder": 4, "clip_on": False}
        axes.scatter(x[over], y[over], s=area[over], color=colour, label="hub", **rim)
        _frame(axes, items, queries)
        for hub in _apart(axes, busiest, points):
            _tag(axes, f"{counts[hub]:,.0f}", points[hub], colour)
        axes.set_xlabel(f"{state}: area is N{k}, lines go to the queries")
        return axes


def _areas(axes: "Axes", items: dict[str, Any], counts: np.ndarray) -> np.ndarray:
    """Return areas of dots by N10: one scale for both states, smaller on small Axes, and never a huge dot."""
    size = min(1.0, axes.bbox.width / axes.figure.dpi / (0.75 * COLUMN)) ** 2
    most = max(1, int(np.max(items["n0"], initial=0)), int(np.max(items["n1"], initial=0)))
    return size * (0.8 + min(1.0, 180 / most) * counts)


def _draw_lines(axes: "Axes", lines: list[Any], colour: str) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(lines, colors=colour, linewidths=0.4, alpha=0.45, zorder=3))


def _apart(axes: "Axes", busiest: np.ndarray, points: np.ndarray) -> list[int]:
    """Return the hubs that get their number: not those that are on top of a busier one."""
    room = 0.05 * np.ptp(axes.get_xlim())
    tagged: list[int] = []
    for hub in busiest.tolist():
        if (np.linalg.norm(points[tagged] - points[hub], axis=1) > room).all():
            tagged.append(hub)
    return tagged


def _tag(axes: "Axes", text: str, point: Any, colour: str) -> None:
    from matplotlib.patheffects import withStroke

    axes.annotate(
        text, point, (4, 4), textcoords="offset points", color=colour, fontsize="small", fontweight="bold",
        path_effects=[withStroke(linewidth=2, foreground="white")], zorder=5,
    )  # fmt: skip


def _frame(axes: "Axes", items: dict[str, Any], queries: dict[str, Any]) -> None:
    """Use one box for items and queries, and no scales: the two directions have no units."""
    for direction, limits in (("x", axes.set_xlim), ("y", axes.set_ylim)):
        values = np.concatenate([np.asarray(part[direction]).astype(float) for part in (items, queries)])
        edge = 0.04 * (np.ptp(values) or 1)
        limits(values.min() - edge, values.max() + edge)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    remove_frame(axes)
