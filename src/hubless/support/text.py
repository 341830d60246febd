"""Values as text: JSON for programs, short forms for messages."""

import json
import math
import reprlib
from collections.abc import Iterable
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


def reason(error: BaseException) -> str:
    """Return why something failed, in one short line, whatever a library wrote into its error."""
    text = printable(" ".join(str(error).split())).rstrip(".")
    text = text if len(text) <= 400 else f"{text[:400]} …"
    return text if isinstance(error, OSError | ValueError) and text else f"{type(error).__name__}: {text}"


def terminal_json(text: str) -> str:
    """Return JSON, of one or more lines, with escapes for control and invisible characters."""
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(line: str) -> str:
    # a lone surrogate is left to `encodable`: many programs refuse its escape
    is_kept = [letter.isprintable() or "\ud800" <= letter <= "\udfff" for letter in line]
    pairs = zip(line, is_kept, strict=True)
    return "".join(letter if kept else json.dumps(letter)[1:-1] for letter, kept in pairs)


def printable(text: str) -> str:
    """Return a text as one line, with spaces for control and invisible characters, which steer terminals."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " for letter in text)


def printable_lines(lines: Iterable[str]) -> str:
    """Return lines as one text, to which untrusted values in them add no line."""
    return "\n".join(map(printable, lines))
