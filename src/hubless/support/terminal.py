"""What a stream can show: whether it is a terminal, and whether colours are wanted on it."""

import os
from typing import Any

STYLES = {"heading": "1", "name": "36", "good": "32", "doubt": "33", "bad": "31", "faint": "2"}  # SGR codes


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal that understands control sequences, as bars need them."""
    return bool(getattr(stream, "isatty", bool)()) and os.environ.get("TERM") != "dumb"


def wants_colour(stream: Any) -> bool:
    """Return whether colours are wanted on a stream.

    NO_COLOR says no, then FORCE_COLOR or CLICOLOR_FORCE say yes, whatever the stream is; CLICOLOR=0 says no.
    Otherwise colours are for terminals.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return os.environ.get("CLICOLOR") != "0" and is_terminal(stream)


def painted(text: str, style: str) -> str:
    """Return a text in one of STYLES."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"
