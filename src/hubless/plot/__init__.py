"""Plots of a report for papers, by matplotlib: `pip install 'hubless[plot]'`.

Each takes a report of hubless, or its figures (a dict), draws on the given Axes, or on new ones as wide as
one column, and returns them. Plots on your Axes follow your style.

    ax = plot.skyline(report)
    ax.figure.savefig("skyline.pdf")
    plot.save(report, "figures")          # all, as SVG and PNG
    plot.save(report, "summary.pdf")      # the main ones on one page
    plot.save_card(report, "card.png")    # the verdict as a picture to share
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..support.outputs import check_output
from ..support.writing import new_file
from .curves import centrality, lorenz, movers, singular_values, skyline, variance
from .maps import hub_map
from .matrices import confusion, surface
from .share_picture import quiet, share_card
from .style import PAGE, PLOT_SETTINGS, UNDATED, ReportOrFigures, figures_of, file_of, style_ticks, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "centrality",
    "check_card",
    "confusion",
    "hub_map",
    "lorenz",
    "movers",
    "save",
    "save_card",
    "share_card",
    "singular_values",
    "skyline",
    "summary",
    "surface",
    "variance",
]

SUFFIXES = tuple(f".{file_format}" for file_format in UNDATED)
ACROSS, DEEP = 2, 3  # panels of the summary, each as large as a plot of one column


def summary(report: ReportOrFigures) -> "Figure":
    """Draw the main plots that the report has data for on one figure, two columns wide.

    Examples
    --------
    >>> from hubless import plot
    >>> from hubless.paper import demo
    >>> plot.summary(demo.report("iris")).savefig("summary.pdf")
    """
    plots = _plots(report)
    main = ("map-before", "map-after", "skyline", "lorenz", "centrality", "confusion-difference", "variance")
    shown = [plots[name] for name in main if name in plots][: ACROSS * DEEP]
    with styled() as figure_class:
        deep = -(-len(shown) // ACROSS)
        figure = figure_class(figsize=(PAGE, 2.75 * deep), layout="constrained")
        for place, draw in enumerate(shown):
            ax = figure.add_subplot(deep, ACROSS, place + 1)
            style_ticks(ax)
            draw(report, ax=ax)
            ax.set_title("abcdef"[place], loc="left", fontsize=9, fontweight="bold")
    return figure


def save(report: ReportOrFigures, path: str | Path) -> list[Path]:
    """Write the summary to a file (.pdf, .png or .svg), or each plot to a folder as SVG and as PNG.

    Returns the files. The same report gives the same bytes.

    Examples
    --------
    >>> from hubless import plot
    >>> from hubless.paper import demo
    >>> [file.name for file in plot.save(demo.report("iris"), "summary.svg")]
    ['summary.svg']
    """
    path = Path(os.path.expanduser(path))
    if path.is_dir() or not path.suffix:
        check_output(path / "skyline.svg")
        path.mkdir(parents=True, exist_ok=True)
        return [
            _write(figure, path / f"{name}{suffix}")
            for name, draw in _plots(report).items()
            for figure in [draw(report).get_figure()]
            for suffix in (".svg", ".png")
        ]
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{path.name} ends in {path.suffix}; plots are written as {', '.join(SUFFIXES)}, or to a folder, "
            "whose name has no full stop."
        )
    check_output(path)
    return [_write(summary(report), path)]


def save_card(report: ReportOrFigures, path: str | Path) -> Path:
    """Write the picture to share, a .png file of 1200 × 630 pixels; return the file.

    Examples
    --------
    >>> from hubless import plot
    >>> from hubless.paper import demo
    >>> plot.save_card(demo.report("iris"), "card.png").name
    'card.png'
    """
    check_card(path)
    return _write(share_card(report), Path(path).expanduser(), {"savefig.dpi": 100})


def check_card(path: str | Path) -> None:
    """Raise an error where the picture to share cannot be written, before the report is made.

    Examples
    --------
    >>> from hubless import plot
    >>> plot.check_card("card.svg")
    Traceback (most recent call last):
    ValueError: the picture to share is a PNG file; got card.svg. Give a name that ends in .png.
    """
    if Path(path).suffix.lower() != ".png":
        raise ValueError(f"the picture to share is a PNG file; got {path}. Give a name that ends in .png.")
    check_output(Path(path).expanduser())
    with styled(what="pictures to share"):
        pass


def _plots(report: ReportOrFigures) -> dict[str, Callable[..., "Axes"]]:
    """Return the plots that a report has data for, by the name of their file."""
    figures, has_points = figures_of(report), getattr(report, "details", None) is not None
    has_classes, choice = figures["classes"] is not None, figures["choice"]
    has_values = figures["why"]["singular_values"] is not None  # a list, or an array
    has_scores = any(mover["score"] is not None for mover in choice["movers"])
    plots: dict[str, tuple[bool, Callable[..., Axes]]] = {
        "skyline": (True, skyline),
        "lorenz": (True, lorenz),
        "map-before": (has_points, partial(hub_map, state="before")),
        "map-after": (has_points, partial(hub_map, state="after")),
        "confusion-before": (has_classes, partial(confusion, view="before")),
        "confusion-after": (has_classes, partial(confusion, view="after")),
        "confusion-difference": (has_classes, partial(confusion, view="difference")),
        "centrality": (True, centrality),
        "variance": (True, variance),
        "singular-values": (has_values, singular_values),
        "surface": (choice["surface"] is not None, surface),
        "movers": (has_scores, movers),
    }
    return {name: draw for name, (has_data, draw) in plots.items() if has_data}


def _write(figure: Any, path: Path, settings: dict[Any, Any] | None = None) -> Path:
    with styled(PLOT_SETTINGS | (settings or {})), quiet():
        content = file_of(figure, path.suffix.lower()[1:])
    real = check_output(path)
    real.parent.mkdir(parents=True, exist_ok=True)
    with new_file(real) as file:
        file.write(content)
    return path
