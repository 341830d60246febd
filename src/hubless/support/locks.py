"""A lock on a path: held by one process at a time, and freed by the system when that process dies."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Locked(ValueError):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a path, a file `.NAME.hubless-lock` beside it; Locked if another process holds it."""
    handle = None
    try:
        while handle is None:
            handle = _lock(path, os.O_CREAT)
        yield
    finally:
        if handle is not None:
            os.close(handle)
        _remove_unheld(path)


def _file_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.hubless-lock")


def _lock(path: Path, flags: int = 0) -> int | None:
    """Lock the file of a path and return its handle; None where another process has just removed the file."""
    import fcntl  # missing on Windows, and only writing needs it

    file, is_current, busy = _file_of(path), False, f"another process is working on {path}; "
    try:  # a link that somebody put there is never followed, or its target would be created
        handle = os.open(file, flags | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise Locked(f"{busy}it is that of another user: wait for it, or remove {file}.") from error
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise Locked(f"{file} is a link, which is not followed. Remove it.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A lock on a deleted file excludes nobody: the next process creates a new file.
        is_current = os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Locked(f"{busy}wait for it, or stop it.") from error
    finally:
        if not is_current:
            os.close(handle)
    return handle if is_current else None


def _remove_unheld(path: Path) -> None:
    """Remove the lock file of a path if nobody holds it, however its owner ended."""
    with suppress(OSError, Locked):  # it does not exist, or another process holds it
        handle = _lock(path)
        if handle is not None:
            try:
                _file_of(path).unlink()
            finally:
                os.close(handle)
