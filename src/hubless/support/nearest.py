"""The nearest known name: what somebody who mistyped one may have meant."""

import os
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from .text import short

MOST = 2000  # names that are compared
LISTED = 3  # files of the same kind that are named where none has a similar name


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another one, whatever its case; None where none is near."""
    by_lower: dict[str, str] = {}
    for other in islice(known, MOST):
        by_lower.setdefault(other.lower(), other)
    near = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint to add to a message, such as " Did you mean 'category'?"; "" where no name is near."""
    near = nearest(name, known)
    return "" if near is None else f" Did you mean {short(near)}?"


def files_near(path: str | os.PathLike[str], suffixes: Iterable[str] = ()) -> str:
    """Return a hint to a file or a folder beside one that does not exist, such as " There is vectors.npy.".

    `suffixes` are those of files that would serve, too; by default that of the missing one.
    """
    missing = Path(os.path.expanduser(path))
    names: list[str] = []
    with suppress(OSError, ValueError):  # the folder is missing, too
        names = sorted(name for name in islice(os.listdir(missing.parent), MOST) if name[:1] != ".")
    near = nearest(missing.name, names)
    ends = tuple(suffixes) or ((missing.suffix,) if missing.suffix else ())
    found = [near] if near is not None else [name for name in names if ends and name.endswith(ends)]
    if not 0 < len(found) <= LISTED:
        return ""
    return f" There is {' and '.join(os.fspath(missing.parent / name) for name in found)}."
