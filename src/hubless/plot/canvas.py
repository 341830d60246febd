"""What all plots share: the report they are drawn from, the style, Axes of their own, texts of users.

matplotlib is loaded when a plot is asked for. No pyplot: nothing is left open, and no window is needed.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..paper.figures import GREY, SETTINGS, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.9  # inches: one column of a paper, and two
STATES = ("before", "after")
# Of Okabe and Ito's colours; dashed against solid, as these two are the same grey in black and white
COLOURS = {"before": "#D55E00", "after": "#0072B2", "queries": "#000000"}
DASHES = {"before": (0, (4, 1.5)), "after": "-", "queries": (0, (1, 1.2))}
INK, FAINT = "#333333", "#9A9A9A"
ZERO = 0.5  # where an N10 of 0 is drawn on a logarithmic axis

# Over the settings of the paper's tables, which are wide and have rows for an axis
STYLE: dict[Any, Any] = SETTINGS | {
    "pdf.fonttype": 42,  # letters stay letters, which journals ask for
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.left": True,
    "axes.grid.axis": "both",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "legend.fontsize": 7.5,
    "savefig.dpi": 300,
}


class Reported(Protocol):
    """What `hubless.report` makes: all figures, and the points of the map as arrays."""

    figures: dict[str, Any]
    details: dict[str, Any]


Report = Reported | Mapping[str, Any]


def figures_of(report: Report) -> Mapping[str, Any]:
    """The figures of a report, or the plain dict of them, as the page holds it."""
    figures = report if isinstance(report, Mapping) else getattr(report, "figures", None)
    if not isinstance(figures, Mapping) or "skyline" not in figures:
        raise TypeError(
            "plots are drawn from a report of hubless, or from its figures (a dict with skyline and others); "
            f"got {type(report).__name__}."
        )
    return figures


def chosen(value: str, allowed: tuple[str, ...], name: str) -> str:
    """The value, if it is allowed."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not known; allowed are {', '.join(map(repr, allowed))}.")
    return value


def style() -> AbstractContextManager[type["Figure"]]:
    """Our settings, whatever the user's own are; gives the class of figures."""
    return styled(STYLE, "plots")


@contextmanager
def panel(ax: "Axes | None", width: float = COLUMN, height: float = 2.5) -> Iterator["Axes"]:
    """The Axes given, in the style of whoever made them, or new ones in ours."""
    if ax is not None:
        yield ax
        return
    with style() as figure_class:
        own = figure_class(figsize=(width, height), layout="constrained").add_subplot()
        dress(own)
        yield own


def dress(ax: "Axes") -> None:
    """What matplotlib would otherwise read from its settings later, when ours are gone."""
    ax.tick_params(which="major", labelsize=7.5, length=2.5, width=0.6, color=INK, labelcolor=INK)
    ax.tick_params(which="minor", length=0)


def bare(ax: "Axes") -> None:
    """No axes around what has none: a map, a matrix."""
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def key(ax: "Axes", place: Literal["upper left", "upper right", "lower left"]) -> None:
    """Names of the lines, in their colours, in a corner that the lines leave free."""
    pale = {"framealpha": 0.8, "edgecolor": "none", "borderpad": 0.1}  # dots may come near
    ax.legend(loc=place, labelcolor="linecolor", handlelength=1.9, borderaxespad=0.2, **pale)


def said(text: object, most: int = 40) -> str:
    """A text of the user as a label: on one line, short, without what no file can hold."""
    shown = " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def plain_text() -> dict[str, Any]:
    """For texts of the user: a dollar sign in them starts no formula."""
    return {"parse_math": False, "usetex": False}


def light(ax: "Axes") -> None:
    """Grid lines behind all else, on Axes of ours and of others."""
    ax.grid(True, color=GREY, linewidth=0.5)
    ax.set_axisbelow(True)
