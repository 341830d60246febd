"""The picture to share: verdict, figures before and after, and the worst hub, on 1200 × 630 pixels.

Its texts are those of `report.share_card`; the page draws the same by a canvas (web/card.js).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, filterwarnings

from ..report.colours import LIGHT
from .style import PLAIN_TEXT, ReportOrFigures, figures_of, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, LEFT, RIGHT = 1200, 630, 72, 616  # pixels; the latter two: where its two columns begin
COLUMN, TILE = 500, 240  # widths: of the hub, and of a figure
SMALLEST = 0.7  # of the size of letters, before a text is cut
SENTENCE, LOWEST = ((25, 36), (22, 29), (20, 27)), 340  # its letters and steps, largest first; its last line
POINT = 72 / 100  # of a pixel
KINDS = {"move": ("✓", "accent"), "mixed": ("±", "text"), "harmful": ("✕", "wrong")}
JUDGED = {"better": "accent", "worse": "wrong"}


class Letters(NamedTuple):
    """How a text is written, in which width."""

    size: float  # pixels; less where a text on one line is too long otherwise
    colour: str = "text"
    width: float = WIDTH - 2 * LEFT
    weight: str = "normal"
    most: int = 1  # lines
    step: float = 0  # from line to line


def share_card(report: ReportOrFigures) -> "Figure":
    """Draw the picture to share, 1200 × 630 pixels.

    Examples
    --------
    >>> from hubless.paper import demo
    >>> figure = share_card(demo.report("iris"))
    >>> [float(inches) for inches in figure.get_size_inches()]  # at 100 dots per inch
    [12.0, 6.3]
    """
    card = figures_of(report)["share"]
    with styled() as figure_class, quiet():
        figure = figure_class(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=LIGHT["surface"])
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
        axes.set_axis_off()
        sign, colour = KINDS.get(card["kind"], ("≈", "muted"))
        _box(axes, 0, 0, 20, HEIGHT, colour)
        _write(axes, LEFT, 80, card["title"], Letters(26, "muted"))
        title = Letters(46, colour, weight="bold", most=2, step=54)
        y = 146 + _write(axes, LEFT, 146, f"{sign} {card['verdict']}", title)
        _write_sentence(axes, y + 50, card["words"])
        _box(axes, LEFT, 362, WIDTH - 2 * LEFT, 2, "line")
        if card["hub"] is not None:
            _draw_hub(axes, card["hub"])
        for place, tile in enumerate(card["tiles"]):
            _draw_tile(axes, RIGHT + 268 * (place % 2), 402 + 100 * (place // 2), tile)
        _write(axes, LEFT, 606, card["sizes"], Letters(18, "muted", 800))
        _write(axes, WIDTH - LEFT - 91, 606, "hubless", Letters(21, weight="bold"))
        return figure


def _write_sentence(axes: "Axes", y: float, text: str) -> None:
    """Write the sentence in the largest letters that have room for all of it."""
    for size, step in SENTENCE:
        letters = Letters(size, most=1 + int((LOWEST - y) // step), step=step)
        if len(_lines(text, letters._replace(most=letters.most + 1))) <= letters.most:
            break
    _write(axes, LEFT, y, text, letters)


def _draw_hub(axes: "Axes", hub: dict[str, Any]) -> None:
    _write(axes, LEFT, 402, hub["title"], Letters(18, "muted", COLUMN))
    _write(axes, LEFT, 436, hub["name"], Letters(24, "text", COLUMN, "bold"))
    longest = max(hub["before"], hub["after"], 1)
    for state, top in (("before", 456), ("after", 500)):
        length = max(3, 300 * hub[state] / longest)
        _write(axes, LEFT, top + 25, state, Letters(20, state))
        _box(axes, LEFT + 84, top, length, 34, state)
        _write(axes, LEFT + 96 + length, top + 26, f"{hub[state]:,}", Letters(26, state, weight="bold"))
    _write(axes, LEFT, 562, hub["says"], Letters(18, "muted", COLUMN))


def _draw_tile(axes: "Axes", x: float, y: float, tile: dict[str, str]) -> None:
    colour = JUDGED.get(tile["judgement"], "muted")
    _write(axes, x, y, tile["title"], Letters(18, "muted", TILE))
    _write(axes, x, y + 34, f"{tile['before']} → {tile['after']}", Letters(26, "text", TILE, "bold"))
    _write(axes, x, y + 60, tile["says"], Letters(18, colour, TILE))


def _box(axes: "Axes", x: float, y: float, width: float, height: float, colour: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=LIGHT[colour], linewidth=0))


def _write(axes: "Axes", x: float, y: float, text: str, letters: Letters) -> float:
    """Write a text with its first line at y; return how much lower the last line is."""
    if letters.most == 1:
        wide = _width(text, letters)
        letters = letters._replace(size=letters.size * min(1, max(SMALLEST, letters.width / max(wide, 1))))
    lines = _lines(text, letters)
    style: dict[str, Any] = {"fontsize": letters.size * POINT, "fontweight": letters.weight, **PLAIN_TEXT}
    for number, line in enumerate(lines):
        axes.text(x, y + number * letters.step, line, color=LIGHT[letters.colour], va="baseline", **style)
    return letters.step * (len(lines) - 1)


def _lines(text: str, letters: Letters) -> list[str]:
    """Return the lines of a text; what has no room ends in an ellipsis."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < letters.most:
        fits = _fitting(rest, letters)
        place = rest.rfind(" ", 0, fits + 1)
        end = len(rest) if fits == len(rest) else place if place > 0 else fits
        lines.append(rest[:end])
        rest = rest[end:].lstrip()
    if rest:
        whole = f"{lines[-1]} {rest}"
        lines[-1] = f"{whole[: max(_fitting(whole, letters) - 2, 0)].rstrip()}…"
    return lines


def _fitting(text: str, letters: Letters) -> int:
    """Return how many letters of a text fit into the width, at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _width(text[:middle], letters) <= letters.width else (low, middle - 1)
    return low


def _width(text: str, letters: Letters) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=letters.size * POINT, weight=letters.weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / POINT


@contextmanager
def quiet() -> Iterator[None]:
    """Draw boxes for characters that the font lacks, without a warning for each."""
    with catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield
