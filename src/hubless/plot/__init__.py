"""Plots of a report for papers, by matplotlib: `pip install 'hubless[plot]'`.

Each takes a report of hubless, or the figures in it (a dict), draws on the Axes given, or on new ones as
wide as one column, and returns them. Plots on Axes of your own follow your style.

    ax = plot.skyline(report)
    ax.figure.savefig("skyline.pdf")
    plot.save(report, "figures")          # all, as SVG and PNG
    plot.save(report, "summary.pdf")      # the main ones on one page
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..download import replacing
from .canvas import PAGE, Report, dress, figures_of, style
from .curves import centrality, lorenz, singular_values, skyline, variance
from .fields import confusion, hub_map, movers, surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "centrality",
    "confusion",
    "hub_map",
    "lorenz",
    "movers",
    "save",
    "singular_values",
    "skyline",
    "summary",
    "surface",
    "variance",
]

# What a file of each kind must leave out for the same report to give the same bytes
UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
ACROSS, DEEP = 2, 3  # panels of the summary, as large as plots of one column


def summary(report: Report) -> "Figure":
    """The main plots on one figure, two columns wide; those that the report has nothing for are left out."""
    plots = _plots(report)
    main = ("map-before", "map-after", "skyline", "lorenz", "centrality", "confusion-difference", "variance")
    shown = [plots[name] for name in main if name in plots][: ACROSS * DEEP]
    with style() as figure_class:
        deep = -(-len(shown) // ACROSS)
        figure = figure_class(figsize=(PAGE, 2.75 * deep), layout="constrained")
        for place, draw in enumerate(shown):
            ax = figure.add_subplot(deep, ACROSS, place + 1)
            dress(ax)
            draw(report, ax=ax)
            ax.set_title("abcdef"[place], loc="left", fontsize=9, fontweight="bold")
    return figure


def save(report: Report, path: str | Path) -> list[Path]:
    """Write the summary to a file (.pdf, .png or .svg), or each plot to a folder as SVG and as PNG.

    Returns the files. The same report gives the same bytes.
    """
    path = Path(path)
    if path.is_dir() or not path.suffix:
        path.mkdir(parents=True, exist_ok=True)
        return [
            _write(figure, path / f"{name}{suffix}")
            for name, draw in _plots(report).items()
            for figure in [draw(report).get_figure()]
            for suffix in (".svg", ".png")
        ]
    if path.suffix.lower() not in UNDATED:
        raise ValueError(
            f"{path.name} ends in {path.suffix}; plots are written as {', '.join(UNDATED)}, or to a folder, "
            "whose name has no full stop."
        )
    return [_write(summary(report), path)]


def _plots(report: Report) -> dict[str, Callable[..., "Axes"]]:
    """The plots that a report has something for, by the name of their file."""
    figures, has_points = figures_of(report), getattr(report, "details", None) is not None
    has_classes, choice = figures["classes"] is not None, figures["choice"]
    has_values = figures["why"]["singular_values"] is not None  # a list, or an array
    has_scores = any(mover["score"] is not None for mover in choice["movers"])
    drawn: dict[str, tuple[bool, Callable[..., Axes]]] = {
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
    return {name: draw for name, (has, draw) in drawn.items() if has}


def _write(figure: Any, path: Path) -> Path:
    suffix, file = path.suffix.lower(), BytesIO()
    with style(), _any_letters():
        figure.savefig(file, format=suffix[1:], metadata=UNDATED[suffix])
    with replacing(path) as target:
        target.write(file.getvalue())
    return path


@contextmanager
def _any_letters() -> Iterator[None]:
    """Texts of users may have letters that the font lacks: a box is drawn; an SVG keeps them as they are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield
