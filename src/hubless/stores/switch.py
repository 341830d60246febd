"""Blue and green on a file system: a lock, marks beside a file, and one step that puts one in its place."""

import ctypes
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .store import Mark, StoreError

CHUNK, CHUNKS = 1 << 16, 64  # what a fingerprint reads of a file: its size, and bytes from all over it
EXCHANGE, HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux


def fingerprint(path: Path) -> str:
    """A short text of a file's content, or of all files in a folder, that a rename does not change."""
    if path.is_dir():
        parts = [f"{file.name}:{fingerprint(file)}" for file in sorted(path.iterdir())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for i in range(CHUNKS if size > CHUNK * CHUNKS else -(-size // CHUNK)):
            file.seek(i * (size - CHUNK) // (CHUNKS - 1) if size > CHUNK * CHUNKS else i * CHUNK)
            digest.update(file.read(CHUNK))
    return digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _marks_file(path: Path) -> Path:
    return path.with_name(path.name + ".hubless.json")


def marks_of(path: Path) -> dict[str, str]:
    """Marks by content, of all that a path was or is."""
    try:
        found = json.loads(_marks_file(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_mark(path: Path) -> Mark | None:
    """The mark of what lies there now. Marks go by content, so a file put in its place never inherits one."""
    marks = marks_of(path)
    return Mark.from_json(marks.get(fingerprint(path))) if marks and path.exists() else None


def write_mark(path: Path, content: str, mark: Mark) -> None:
    """Let a path know the mark of a content, before or after it has it."""
    write_text(_marks_file(path), json.dumps({**marks_of(path), content: mark.to_json()}, indent=1) + "\n")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; the system frees it when the process dies, however it dies."""
    lock = path.with_name(f".{path.name}.hubless-lock")
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise StoreError(f"another apply to {path} is under way; wait for it, or stop it.") from error
        try:
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                break
        except FileNotFoundError:  # its last owner removed it just now: the lock is on a file without a name
            pass
        os.close(handle)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def put_in_place(new: Path, served: Path, kept: Path) -> None:
    """Let `served` be what `new` is, and `kept` what `served` was; nobody ever finds `served` missing.

    What a kill leaves is told apart by `settle`, which is to be called before.
    """
    if kept.exists() and not kept.samefile(served):
        raise StoreError(f"{kept} is in the way: what {served} is now would be kept there. Rename it.")
    if new.stat().st_dev != served.stat().st_dev:
        raise StoreError(
            f"{new} is on another disk than {served}, so that it cannot take its place in one step. Apply "
            "again with a target in the same folder, then promote that."
        )
    _let_who_may_read(new, served)
    if served.is_dir():  # no folder has two names, so the new one takes the name that it will leave
        os.rename(new, kept)
        _exchange(kept, served)
        return
    if not kept.exists():
        try:
            os.link(served, kept)
        except OSError:  # a file system without links
            shutil.copy2(served, kept)
    os.replace(new, served)


def _let_who_may_read(new: Path, served: Path) -> None:
    """Give what will serve the owner and the permissions of what serves."""
    with suppress(PermissionError):  # only root gives files away
        os.chown(new, served.stat().st_uid, served.stat().st_gid)
    shutil.copymode(served, new)


def settle(original: Path, moved: Path, is_moved: Callable[[Path], bool]) -> None:
    """Give folders their names back where a switch was cut short, between a rename and an exchange.

    Then a moved copy is found under the name of the original, or the original under that of the moved copy.
    """
    for wrong, right, expected in ((original, moved, True), (moved, original, False)):
        if wrong.is_dir() and not right.exists() and is_moved(wrong) == expected:
            os.rename(wrong, right)


def free_name(path: Path, served: Path) -> Path:
    """A path at which nothing is, or what `served` is: the one given, or the same with a number."""
    number, tried = 1, path
    while tried.exists() and not tried.samefile(served):
        number += 1
        tried = path.with_name(f"{path.name.removesuffix(served.suffix)}-{number}{served.suffix}")
    return tried


def forget_marks(path: Path) -> None:
    """Remove the marks of a path at which nothing is left."""
    if not path.exists():
        _marks_file(path).unlink(missing_ok=True)


def _exchange(one: Path, other: Path) -> None:
    """Two folders change names: at once where the system can (Linux), else one after the other."""
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if swap is not None and swap(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0:
        return
    aside = one.with_name(f".{one.name}.hubless-swap")
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)
