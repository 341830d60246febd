"""Write a file or a folder whole, or not at all.

The content is written under a temporary name in the same folder and renamed at the end, so a reader finds the
old content or the new one. Temporary names are random and are created exclusively: a link that somebody put
there is never followed. A killed process may leave a hidden `.NAME.*.part`, which can be removed.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4


def _temporary(path: Path, end: str = "part") -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex[:8]}.{end}")


@contextmanager
def new_file(path: Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that becomes `path` at the end; after an error it is removed and `path` is as before.

    With `sync`, the content is on the disk before the name changes, so a power cut leaves one or the other.
    """
    part = _temporary(path)
    file = part.open("xb")
    try:
        with file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """Make a folder to fill that becomes `folder` at the end; after an error it is removed.

    Everything is on the disk before the name changes. With `replace`, an existing folder is replaced. A
    folder cannot be renamed onto one that is not empty, so the old one is renamed first: a process killed
    between the two renames leaves it complete as `.NAME.*.old`.
    """
    if not replace and os.path.lexists(folder):
        raise FileExistsError(f"{folder} exists already and is not changed. Give the name of a new folder.")
    part, old = _temporary(folder), _temporary(folder, "old")
    part.mkdir(parents=True)
    try:
        yield part
        for path in part.rglob("*"):
            if path.is_dir():
                sync_folder(path)
            elif path.is_file():
                _sync(path, os.O_RDWR)
        sync_folder(part)
        if replace and folder.exists():
            os.rename(folder, old)
        os.rename(part, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(folder.parent)
    if old.is_symlink():
        old.unlink()
    else:
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, where the system supports it."""
    with suppress(OSError):
        _sync(folder, os.O_RDONLY)
