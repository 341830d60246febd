"""Commands that users can copy into a shell."""

import shlex
from collections.abc import Iterable


def command(verb: str, *names: str, options: Iterable[str] = ()) -> str:
    """Return a command of hubless: a verb, what it takes by position, and its options as they are typed."""
    words = [*names, *options]
    if any(name.startswith("-") for name in names):
        words = [*options, "--", *names]
    return " ".join(map(quoted, ["hubless", verb, *words]))


def typed(option: str, value: object) -> list[str]:
    """Return an option and its value as they are typed; a value that starts with a dash is joined to it."""
    text = str(value)
    if not text.startswith("-"):
        return [option, text]
    return [f"{option}={text}" if option.startswith("--") else f"{option}{text}"]


def quoted(word: str) -> str:
    """Return a word as a shell reads it, on one line: control and invisible characters have escapes."""
    if word.isprintable():
        return shlex.quote(word)
    letters = (
        letter if letter.isprintable() and letter not in "\\'" else _escaped(letter) for letter in word
    )
    return f"$'{''.join(letters)}'"


def _escaped(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))
