"""What all our drawings by matplotlib share: colours, settings, new Axes, files; matplotlib is loaded late.

The same data gives the same file: text stays text, ids come from a fixed salt, and no date is written. No
pyplot: nothing is left open, and no window is needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from ..report.colours import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from ..report.report import Report

# The colours of Okabe and Ito, which people with any colour vision can tell apart
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, GRID, INK, FAINT = "#7F7F7F", "#E6E6E6", "#333333", "#9A9A9A"

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
    "grid.color": GRID,
    "ytick.major.size": 0,
    "savefig.dpi": 100,
}
# Of the plots of a report, which are narrow; those of the paper's tables are wide and have rows for an axis
PLOT_SETTINGS: dict[Any, Any] = SETTINGS | {
    "pdf.fonttype": 42,  # TrueType, which journals ask for
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
# Metadata that a file of each kind must leave out, so that the same drawing gives the same bytes
UNDATED: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "png": {}, "svg": {"Date": None}}

COLUMN, PAGE = 3.3, 6.9  # inches: one column of a paper, and two
STATES = ("before", "after")
# Dashed against solid, as these two colours are the same grey in black and white
COLOURS = {"before": LIGHT["before"], "after": LIGHT["after"], "queries": BLACK}
DASHES = {"before": (0, (4, 1.5)), "after": "-", "queries": (0, (1, 1.2))}
# Options for texts of the user: a dollar sign in them starts no formula
PLAIN_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

ReportOrFigures: TypeAlias = "Report | Mapping[str, Any]"


def figures_of(report: ReportOrFigures) -> Mapping[str, Any]:
    """Return the figures of a report, or the dict of figures that was given instead."""
    figures = report if isinstance(report, Mapping) else getattr(report, "figures", None)
    if not isinstance(figures, Mapping) or "skyline" not in figures:
        raise TypeError(
            "plots are drawn from a report of hubless, or from its figures (a dict with skyline and others); "
            f"got {type(report).__name__}."
        )
    return figures


@contextmanager
def styled(settings: dict[Any, Any] = PLOT_SETTINGS, what: str = "plots") -> Iterator[type["Figure"]]:
    """Apply our settings instead of the user's; yield the class of figures."""
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


def file_of(figure: "Figure", file_format: str) -> bytes:
    """Return the content of a file with the figure; call it inside `styled`."""
    file = BytesIO()
    figure.savefig(file, format=file_format, metadata=UNDATED[file_format])
    # git warns of the spaces that matplotlib leaves at the ends of lines
    return file.getvalue().replace(b" \n", b"\n") if file_format == "svg" else file.getvalue()


@contextmanager
def panel(ax: "Axes | None", height: float = 2.5) -> Iterator["Axes"]:
    """Yield the Axes of the user, in the user's style, or new ones in ours, as wide as one column."""
    if ax is not None:
        yield ax
        return
    with styled() as figure_class:
        new = figure_class(figsize=(COLUMN, height), layout="constrained").add_subplot()
        style_ticks(new)
        yield new


def style_ticks(ax: "Axes") -> None:
    """Set what matplotlib would otherwise read from the settings later, when ours no longer apply."""
    ax.tick_params(which="major", labelsize=7.5, length=2.5, width=0.6, color=INK, labelcolor=INK)
    ax.tick_params(which="minor", length=0)


def remove_frame(ax: "Axes") -> None:
    """Remove grid, ticks and frame, for a map or a matrix."""
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def shade(name: str, share: float) -> str:
    """Return a colour of the page mixed with its colour for nothing; `share` from 0 to 1."""
    nothing, colour = (bytes.fromhex(LIGHT[key][1:]) for key in ("empty", name))
    return "#" + bytes(round(a + share * (b - a)) for a, b in zip(nothing, colour, strict=True)).hex()


def ramp(colours: Sequence[str]) -> "Colormap":
    """Return the scale that goes through these colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("page", colours)


def one_line(text: object, length: int = 40) -> str:
    """Return a text of the user as a label: on one line, without characters that no file can hold.

    A long one is cut in its middle, as names of classes often differ at their ends.
    """
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())
    end = length // 3
    return line if len(line) <= length else f"{line[: length - end - 1]}…{line[-end:]}"


def two_lines(text: object, length: int) -> str:
    """Return a text of the user as a label on one line, or on two, parted where its words are."""
    line = one_line(text, 2 * length)
    if len(line) <= length:
        return line
    ends = [place for place in range(1, len(line)) if line[place - 1] in " _-./,"] or [length]
    middle = min(ends, key=lambda place: abs(2 * place - len(line)))
    return f"{line[:middle]}\n{line[middle:]}"


def short(value: float | str) -> str:
    """Return a number as 0.5, 20 or 10⁻⁴, and a word such as "no map" as one line."""
    if isinstance(value, str):
        return one_line(value, 16)
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:g}".replace("-", "−")
    figure, power = f"{value:.1e}".split("e")
    factor = "" if float(figure) == 1 else f"{float(figure):g}·".replace("-", "−")
    return f"{factor}10{str(int(power)).translate(RAISED)}"
