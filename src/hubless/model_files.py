"""Files of a saved model: read once and within bounds, written whole or not at all."""

import errno
import json
import math
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from .plain import check_names, short

MOST_HEADER = 16 << 20  # bytes of the header of a safetensors file
KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def kind_of(path: Path) -> str | None:
    """What is in the place of a file, in words; None for a file, or a link to one."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "not there"
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return "a link to itself"
    if stat.S_ISREG(mode):
        return None
    return next((f"{told}, not a file" for test, told in KINDS if test(mode)), "a device, not a file")


def read_file(folder: Path, name: str, most: int, hint: str = "") -> bytes:
    """A file of a folder, read once: what is checked is what is used, whatever becomes of the file.

    ValueError for what leads out of the folder, is no plain file or has more than `most` bytes.
    """
    inside, path = os.path.realpath(folder), os.path.realpath(folder / name)
    if os.path.commonpath([inside, path]) != inside:
        raise ValueError(f"{name} is a link that leads out of the folder, to {path}. Copy the file itself.")
    # NOFOLLOW and NONBLOCK, for what took its place since: a link is an error, a pipe does not make us wait
    flags = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    handle = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{name} is not a file.")
        if found.st_size > most:
            raise ValueError(f"{name} has {found.st_size} bytes; at most {most} are read{hint}.")
        content = file.read(found.st_size + 1)
    if len(content) != found.st_size:
        raise ValueError(f"{name} changed while it was read.")
    return content


def parse_json(content: bytes | str) -> Any:
    """JSON, read strictly: each name once, numbers finite and of 64 bits."""
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    return json.loads(
        text,
        object_pairs_hook=_names_once,
        parse_int=_whole_number,
        parse_float=_number,
        parse_constant=_number,
    )


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{short(twice[0][0])} is there {twice[0][1]} times.")
    return found


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
    if len(content) < 8 or size > min(len(content) - 8, MOST_HEADER):
        raise ValueError(
            f"{name} is no safetensors file: deserializing it would take a header of {size} bytes, of "
            f"{len(content)} in all; at most {MOST_HEADER} are read."
        )
    header = parse_json(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise ValueError(f"{name} is no safetensors file: its header is {short(header)}.")
    for told in header.values():
        check_names(told, ("dtype", "shape", "data_offsets"), f"each array of {name}")


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A folder to fill that becomes `folder` at the end, whole, or is removed.

    All is on the disk before the name changes, so a power cut leaves the former one or the new one. A folder
    cannot be renamed onto a full one, so the former one makes way first: a kill at that very moment leaves it
    whole under a hidden name, `.NAME.*.old`, which `load` tells. A kill before it leaves `.NAME.*.part`.
    """
    mark = uuid4().hex[:8]
    part, old = (folder.with_name(f".{folder.name}.{mark}.{end}") for end in ("part", "old"))
    part.mkdir(parents=True)
    try:
        yield part
        for path in part.iterdir():
            _sync(path, os.O_RDWR)
        _sync_folder(part)
        if folder.exists():
            os.rename(folder, old)
        os.rename(part, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        shutil.rmtree(part, ignore_errors=True)
        raise
    _sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def left_behind(folder: Path, files: Iterable[str]) -> Path | None:
    """The former model, where a save was cut short between its two renames: the last that has all files."""
    found = {}
    with suppress(OSError):
        for path in folder.parent.iterdir():
            is_old = path.name.startswith(f".{folder.name}.") and path.name.endswith(".old")
            if is_old and all((path / name).is_file() for name in files):
                found[path] = max((path / name).stat().st_mtime for name in files)
    return max(found, key=lambda path: found[path], default=None)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk; not all systems can, and files are there all the same."""
    with suppress(OSError):
        _sync(folder, os.O_RDONLY)
