"""What the picture to share says: the page draws it (web/card.js), and so does `plot.share_card`."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..support.text import printable
from .details import cut
from .numerals import in_form

SAYS = {"same": "≈ no clear change", "unknown": "≈ too few queries to tell"}
SHOWN = 4  # tiles that have room


def share_card(
    figures: Mapping[str, Any], hubs: Sequence[Mapping[str, Any]], threshold: int
) -> dict[str, Any]:
    """Return the texts of the picture, each on one line, and the two numbers of its bars.

    `hubs` has the items that do the most harm first; hubs are those that at least `threshold` queries find.

    Users' texts are cut, and have spaces for characters that steer: what is left can only be read.
    """
    summary, counts = figures["summary"], figures["counts"]
    items, queries, dimension = (f"{counts[name]:,}" for name in ("items", "queries", "dimension"))
    return {
        "title": _line(figures["title"]),
        "kind": summary["verdict"]["kind"],
        "verdict": _line(summary["verdict"]["title"]),
        "words": _line(summary["sentence"], 400),
        "tiles": [_tile(tile) for tile in summary["figures"][:SHOWN]],
        "hub": _worst(hubs, counts["hub_k"], threshold) if hubs else None,
        "sizes": f"{items} items · {queries} queries · {dimension} dimensions",
    }


def _line(text: Any, length: int = 120) -> str:
    return cut(" ".join(printable(str(text)).split()), length) or ""


def _tile(tile: Mapping[str, Any]) -> dict[str, str]:
    """Return a figure before and after, and what is said of the change, in a sign and a word."""
    before, after = tile["before"], tile["after"]
    judgement, says = tile["judgement"], SAYS.get(tile["judgement"])
    if before == after:
        judgement, says = "same", "= no change"
    sign = "▲" if after > before else "▼"
    return {
        "title": _line(tile["title"], 40),
        "before": in_form(before, tile["form"]),
        "after": in_form(after, tile["form"]),
        "judgement": judgement,
        "says": says or f"{sign} {judgement}",
    }


def _worst(hubs: Sequence[Mapping[str, Any]], k: int, threshold: int) -> dict[str, Any]:
    """Return the worst hub; where none is listed, the worst item."""
    hub = next((hub for hub in hubs if hub["before"] >= threshold), hubs[0])
    worst = "worst" if hub["harm_before"] else "busiest"
    is_hub = hub["before"] >= threshold
    return {
        "title": f"The {worst} hub" if is_hub else f"The {worst} item: no hub, chance makes as busy ones",
        "name": _line(hub["text"] or hub["id"]),
        "before": hub["before"],
        "after": hub["after"],
        "says": f"queries that have it among their {k} nearest",
    }
