"""Untrusted files and texts: read once and within bounds, and JSON without surprises; else a ValueError.

Everything that hubless reads as JSON is read here: models, marks, notes of a switch, tables of items,
streams, raw results.
"""

import json
import math
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

from .text import short

DEEPEST = 100  # lists and objects inside each other: far from where Python's own recursion ends
SMALL = 16 << 20  # bytes of a file that hubless writes beside a store
FLAGS = ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # a pipe is not waited for


def open_plain(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a plain file to read it; ValueError for a pipe or a device, which is not waited for, or a folder.

    Without `follow`, OSError for a link.
    """
    flags = FLAGS if follow else (*FLAGS, "O_NOFOLLOW")
    handle = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"{path.name} is not a file.")
    return os.fdopen(handle, "rb")


def read_bounded(path: Path, most: int, hint: str = "", *, follow: bool = True) -> bytes:
    """Read a file once: what is checked is what is used, whatever becomes of the file.

    ValueError for anything but a plain file, and for more than `most` bytes; without `follow`, OSError for a
    link.
    """
    with open_plain(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ValueError(f"{path.name} has {size} bytes; at most {most} are read{hint}.")
        content = file.read(size + 1)
    if len(content) != size:
        raise ValueError(f"{path.name} changed while it was read.")
    return content


def read_json(path: Path, most: int = SMALL) -> Any:
    """Read a small JSON file strictly; OSError where there is none, ValueError where it is not readable."""
    return parse_json(read_bounded(path, most))


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file; {} where there is none, or something else."""
    try:
        values = read_json(path)
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def parse_json(content: bytes | str, *, any_numbers: bool = False) -> Any:
    """Read JSON strictly: UTF-8, each name once in an object, at most 100 levels, finite numbers of 64 bits.

    With `any_numbers`, for data of users, NaN, infinities and longer whole numbers are read as Python writes
    them.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    numbers = {} if any_numbers else NUMBERS
    try:
        value = json.loads(text, object_pairs_hook=_names_once, **numbers)
    except RecursionError:
        raise _too_deep() from None
    if text.count("[") + text.count("{") > DEEPEST:  # else it cannot be deeper
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Refuse what functions that call themselves could not handle, such as `repr`."""
    level = [value]
    for _ in range(DEEPEST + 1):
        inside = [item for item in level if isinstance(item, list | dict)]
        if not inside:
            return
        level = [each for item in inside for each in (item.values() if isinstance(item, dict) else item)]
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects are nested too deeply: more than {DEEPEST} levels.")


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        ((name, times),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{short(name)} occurs {times} times.")
    return values


def _whole_number(text: str) -> int:
    value = int(text) if len(text) <= 20 else 1 << 64
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError(f"the number {short(text)} does not fit into 64 bits.")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {short(text)} is not finite.")
    return value


NUMBERS: dict[str, Any] = {"parse_int": _whole_number, "parse_float": _number, "parse_constant": _number}
