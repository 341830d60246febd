"""Write a file or a folder whole, or not at all.

The content is written under a temporary name in the same folder and renamed at the end, so a reader finds the
old content or the new one. Temporary names are random and are created exclusively: a link that somebody put
there is never followed. What replaces something has the rights that it had. A killed process may leave a
hidden `.NAME.*.part`, which can be removed.
"""

import ctypes
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from .progress import end_dry_run

AT_FDCWD, SWAP = -100, 2  # constants of Linux; macOS has the same number for SWAP
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def _temporary(path: Path, end: str = "part") -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex[:8]}.{end}")


@contextmanager
def new_file(path: Path, *, sync: bool = False, like: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file that becomes `path` at the end; after an error it is removed and `path` is as before.

    With `sync`, the content is on the disk before the name changes, so a power cut leaves one or the other.
    A file that replaces another has its rights; one that is new has those of `like`, where that is given.
    """
    end_dry_run(f"writing {path.name}")
    part, mode = _temporary(path), _mode_of(path)
    mode = _mode_of(like) if mode is None and like is not None else mode
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(part, flags, 0o666 if mode is None else 0o600), "wb")
    try:
        with file:
            if mode is not None:
                set_mode(file.fileno(), part, mode & 0o666)
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

    Everything is on the disk before the name changes. With `replace`, an existing folder is replaced: in one
    step where the system can do that, else the old one is renamed first, and a process killed between the two
    renames leaves it complete as `.NAME.*.old`.
    """
    if not replace and os.path.lexists(folder):
        raise FileExistsError(f"{folder} exists already and is not changed. Give the name of a new folder.")
    end_dry_run(f"writing {folder.name}")
    part, old, mode = _temporary(folder), _temporary(folder, "old"), _mode_of(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part.mkdir(0o777 if mode is None else 0o700)
    try:
        yield part
        if mode is not None:
            with opened_itself(part) as handle:
                set_mode(handle, part, mode)
        sync_all(part)
        if replace and folder.is_dir() and not folder.is_symlink() and exchange_names(part, folder):
            old = part
        else:
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


def exchange_names(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders in one step; say whether the system can do that."""
    library, paths = ctypes.CDLL(None, use_errno=True), (os.fsencode(one), os.fsencode(other))
    if hasattr(library, "renameat2"):  # Linux
        failed = library.renameat2(AT_FDCWD, paths[0], AT_FDCWD, paths[1], SWAP)
    elif hasattr(library, "renamex_np"):  # macOS
        failed = library.renamex_np(*paths, SWAP)
    else:
        return False
    if failed and ctypes.get_errno() not in UNSUPPORTED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(one), None, str(other))
    return not failed


def private_folder(path: Path) -> Path:
    """Make a folder beside a path, which only this user can enter, for what will become `path`.

    Whoever makes it holds a lock of `path`, and removes it by `remove_parts`.
    """
    folder = _temporary(path)
    folder.mkdir(0o700)
    return folder


def remove_parts(folder: Path, name: str) -> None:
    """Remove what killed processes left unfinished of all names in a folder that match a pattern.

    Call it with a lock under which alone they are written.
    """
    ours = re.compile(rf"\.({name})\.[0-9a-f]{{8}}\.part")
    for part in folder.iterdir() if folder.is_dir() else ():
        if ours.fullmatch(part.name):
            remove(part)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it, if it is there; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def opened_itself(path: Path) -> Iterator[int | None]:
    """Open a file or a folder that exists, to set its rights; OSError for a link put in its place meanwhile.

    None where the system cannot set rights by such a handle.
    """
    if os.chmod not in os.supports_fd:
        yield None
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def set_mode(handle: int | None, path: Path, mode: int) -> None:
    """Set the rights of an open file or folder: by its name, those of another could be set meanwhile."""
    os.chmod(handle if handle is not None and os.chmod in os.supports_fd else path, mode)


def _mode_of(path: Path) -> int | None:
    """Return the rights of a file or a folder; None where there is none, and for a link."""
    with suppress(OSError):
        status = os.lstat(path)
        return None if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
    return None


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(path: Path) -> None:
    """Flush a file, or a folder with all that is in it, to the disk."""
    for inside in (*path.rglob("*"), path) if path.is_dir() else (path,):
        if inside.is_dir():
            sync_folder(inside)
        elif inside.is_file():
            _sync(inside, os.O_RDWR)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, where the system supports it."""
    with suppress(OSError):
        _sync(folder, os.O_RDONLY)
