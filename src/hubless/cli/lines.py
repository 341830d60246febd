"""Printed lines: untrusted text adds none and steers no terminal; colours are for terminals."""

import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..support.credentials import without_secrets_in
from ..support.progress import beside_bar
from ..support.terminal import painted, wants_colour
from ..support.text import encodable, printable

# Lines that start so, whoever prints them, have a style; other lines have one as a Line.
STARTS = {
    "next: ": "name",
    "To see it: ": "name",
    "To undo: ": "name",
    "note: ": "doubt",
    "hubless: warning: ": "doubt",
    "hubless: ": "bad",
}
HELP = (  # parts of a help text, and their styles
    (re.compile(r"^(?=\S)[^:\n]*:(?=$| hubless )", re.MULTILINE), "heading"),  # headings, and usage:
    (re.compile(r"(?<=^  )hubless .*?(?=  |$)", re.MULTILINE), "name"),  # commands to type
    (re.compile(r"(?<=^  )-[\w-]+|(?<=, )--[\w-]+(?=  | [A-Z]|$)", re.MULTILINE), "name"),  # options
    (re.compile(r"(?<=^  )[a-z]+(?= +[a-z])", re.MULTILINE), "name"),  # verbs
)


class Line(str):
    """A line in a style of `support/terminal.py`."""

    style = ""


def styled(style: str, lines: Iterable[str]) -> list[str]:
    """Return lines in a style."""
    made = [Line(line) for line in lines]
    for line in made:
        line.style = style
    return list[str](made)


def write_lines(lines: Iterable[str], stream: Any) -> None:
    """Print lines; what is untrusted in them adds no line, and does not steer a terminal."""
    has_colour = wants_colour(stream)
    with beside_bar():
        for line in lines:
            text = encodable(printable(line), encoding_of(stream))
            style = _style_of(line) if has_colour and text else ""
            print(painted(text, style) if style else text, file=stream)


def _style_of(line: str) -> str:
    if isinstance(line, Line):
        return line.style
    return next((style for start, style in STARTS.items() if line.startswith(start)), "")


def write_error(message: str, given: Sequence[str] = ()) -> None:
    """Print what went wrong to stderr, on one line, without secrets, such as those of the words given."""
    write_lines([f"hubless: {without_secrets_in(message, given)}"], sys.stderr)


def write_traceback(error: BaseException, given: Sequence[str] = ()) -> None:
    """Print where an error came from to stderr, without secrets, and without what steers a terminal."""
    text = without_secrets_in("".join(traceback.format_exception(error)), given)
    write_lines(text.rstrip("\n").split("\n"), sys.stderr)


@contextmanager
def plain_warnings(given: Sequence[str] = ()) -> Iterator[None]:
    """Print warnings as errors are printed: one line each, which may quote untrusted text."""

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        write_error(f"warning: {message}", given)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # data may have many classes
        warnings.showwarning = show
        yield


def encoding_of(stream: Any) -> str:
    """Return the encoding of a text stream, in lower case."""
    return str(getattr(stream, "encoding", None) or "utf-8").lower()


def painted_help(text: str) -> str:
    """Return a help text, which has no untrusted text, with colours."""
    for part, style in HELP:
        text = part.sub(lambda found, style=style: painted(found[0], style), text)  # type: ignore[misc]
    return text
