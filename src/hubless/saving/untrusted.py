"""Untrusted files of a saved model: each is read once and within bounds, and JSON is read strictly."""

import errno
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..support.text import short
from .values import check_names

MAX_HEADER = 16 << 20  # bytes of the header of a safetensors file
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def kind_of(path: Path) -> str | None:
    """Say what a path is if it is not a file; None for a file, or a link to one."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return "a link to itself"
    return None if stat.S_ISREG(mode) else f"{KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file"


def read_file(folder: Path, name: str, most: int, hint: str = "") -> bytes:
    """Read a file of a folder once: what is checked is what is used, whatever becomes of the file.

    ValueError for a link that leads out of the folder, for anything but a plain file, and for more than
    `most` bytes.
    """
    inside, path = os.path.realpath(folder), os.path.realpath(folder / name)
    if os.path.commonpath([inside, path]) != inside:
        raise ValueError(f"{name} is a link that leads out of the folder, to {path}. Copy the file itself.")
    # NOFOLLOW and NONBLOCK, for what took its place since: a link is an error, and a pipe is not waited for
    flags = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    handle = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{name} is not a file.")
        if status.st_size > most:
            raise ValueError(f"{name} has {status.st_size} bytes; at most {most} are read{hint}.")
        content = file.read(status.st_size + 1)
    if len(content) != status.st_size:
        raise ValueError(f"{name} changed while it was read.")
    return content


def parse_json(content: bytes | str) -> Any:
    """Read JSON strictly: each name once, numbers finite and of 64 bits."""
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    return json.loads(
        text,
        object_pairs_hook=_names_once,
        parse_int=_whole_number,
        parse_float=_number,
        parse_constant=_number,
    )


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        ((name, times),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{short(name)} occurs {times} times.")
    return dict(pairs)


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


def check_header(content: bytes, name: str) -> None:
    """Refuse a safetensors file by its header alone, before any array is made of it.

    Whether offsets and shapes agree is left to safetensors, which lets no byte go unused or be used twice.
    """
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(len(content) - 8, MAX_HEADER):
        raise ValueError(
            f"{name} is not a safetensors file: deserializing it would take a header of {size} bytes, of "
            f"{len(content)} in all; at most {MAX_HEADER} are read."
        )
    header = parse_json(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise ValueError(f"{name} is not a safetensors file: its header is {short(header)}.")
    for entry in header.values():
        check_names(entry, ("dtype", "shape", "data_offsets"), f"each array of {name}")


def left_behind(folder: Path, files: Iterable[str]) -> Path | None:
    """Return the old model that a save left between its two renames: the newest that has all files."""
    written = {}
    with suppress(OSError):
        for path in folder.parent.iterdir():
            is_old = path.name.startswith(f".{folder.name}.") and path.name.endswith(".old")
            if is_old and all((path / name).is_file() for name in files):
                written[path] = max((path / name).stat().st_mtime for name in files)
    return max(written, key=lambda path: written[path], default=None)
