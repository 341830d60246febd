"""Untrusted files of a saved model: what is there, and whether it may be read."""

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..support.text import short
from ..support.untrusted_json import parse_json, read_bounded
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
    # what took its place since is an error where it is a link
    return read_bounded(Path(path), most, hint, follow=False)


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
