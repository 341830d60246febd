"""Values as text: JSON for programs, short forms for messages."""

import math
import re
import reprlib
from typing import Any


def as_json(value: Any) -> Any:
    """Return a value in the types of JSON; infinities and NaN become null, unknown types become text."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def encodable(text: str, encoding: str = "utf-8") -> str:
    """Return a text with a question mark for what cannot be encoded: in UTF-8, lone surrogates."""
    return text.encode(encoding, "replace").decode(encoding)


_REPR = reprlib.Repr()
_REPR.maxlist = _REPR.maxdict = _REPR.maxtuple = 40
_REPR.maxstring = _REPR.maxother = 300
_REPR.maxlevel = 4


def short(value: Any) -> str:
    """Return a value as text for a message, shortened where it is long."""
    return _REPR.repr(value)


_STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def terminal_json(text: str) -> str:
    """Return JSON with escapes for what steers terminals and `json.dumps` leaves as it is."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    """Return a text as one line, with spaces for control and invisible characters, which steer terminals."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
