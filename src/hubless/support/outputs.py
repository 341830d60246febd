"""Where output goes, checked before anything long begins.

A link that a user names is followed where it leads somewhere: the link stays, and what it names is replaced.
A link to nothing is refused, and never written through.
"""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from .system_errors import explain
from .writing import _temporary


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path with links followed, except those that lead to nothing, which are kept."""
    path = Path(os.path.expanduser(path)).absolute()
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):  # it does not exist, or it is a link to itself
        parent = real_path(path.parent)
        return parent.parent if path.name == ".." else parent / path.name


def check_output(path: str | os.PathLike[str]) -> Path:
    """Return where a file or a folder is written, links followed; OSError says why it cannot be written.

    A byte is written to a file without a name in the same folder, which finds a missing permission and a
    full disk; nothing remains, however the process ends. Folders on the way need not exist. Whether what
    exists may be replaced is for the caller to say.
    """
    real = real_path(path)
    try:
        first = next(place for place in (real, *real.parents) if os.path.lexists(place))
        if not first.exists():
            raise FileNotFoundError(
                f"{first} is a link to {os.readlink(first)}, where there is nothing. Remove the link, or "
                "give another name."
            )
        if not real.name:
            raise IsADirectoryError(f"{real} is a folder. Give a name in it.")
        if first != real and not first.is_dir():
            raise NotADirectoryError(f"{first} is a file: {real} cannot be written in it. Give a new folder.")
        _try_to_write((real.parent if first == real else first) / real.name)
    except OSError as error:
        raise type(error)(explain(error, path)) from error
    return real


def _try_to_write(path: Path) -> None:
    with suppress(FileNotFoundError):
        os.lstat(_temporary(path))  # which refuses a name that is too long
    with TemporaryFile(dir=path.parent, buffering=0) as file:  # without a name, where the system can do that
        file.write(b"0")  # which a full disk refuses
