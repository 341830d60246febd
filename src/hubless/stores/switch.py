"""Blue and green on a file system: a lock, marks beside a file, and one step that puts one in its place."""

import ctypes
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
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
    """The mark of what lies there now, by its content.

    Of a content that no mark knows: that of a promotion whose original is kept still, as changed. Who adds
    moved items to a promoted file makes no original of it.
    """
    marks = marks_of(path)
    if not marks or not path.exists():
        return None
    known = {content: Mark.from_json(text) for content, text in marks.items()}
    content, original = fingerprint(path), original_of(path)
    mark = known.get(content)
    # a switch that was cut short leaves there a second name of this, or the moved copy
    if mark is None and original.exists() and fingerprint(original) not in {content, *known}:
        promoted = [other for other in known.values() if other is not None and other.original is not None]
        mark = replace(promoted[-1], changed=True) if promoted else None
    # where the original is follows from the path: a file of marks may come from anywhere
    return mark if mark is None or mark.original is None else replace(mark, original=original.name)


def original_of(path: Path) -> Path:
    """Where the original of a path is kept, once promoted."""
    return path.with_name(f"{path.stem}.original{path.suffix}")


def write_mark(path: Path, content: str, mark: Mark) -> None:
    """Let a path know the mark of a content, before or after it has it."""
    write_text(_marks_file(path), json.dumps({**marks_of(path), content: mark.to_json()}, indent=1) + "\n")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; the system frees it when the process dies, however it dies."""
    import fcntl  # not on every system, and only those who write need it

    lock, handle = path.with_name(f".{path.name}.hubless-lock"), -1
    try:
        while handle < 0:
            handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_it = os.path.samestat(os.fstat(handle), os.stat(lock))
            except (
                FileNotFoundError
            ):  # its last owner removed it just now: the lock is on a file without a name
                is_it = False
            except OSError as error:
                raise StoreError(f"another process is at work on {path}; wait for it, or stop it.") from error
            if not is_it:
                os.close(handle)
                handle = -1
        yield
    finally:
        if handle >= 0:
            os.close(handle)
        _sweep(lock)


def _sweep(lock: Path) -> None:
    """Remove a lock that nobody holds, however its owner ended."""
    import fcntl

    with suppress(OSError):  # not there, or held by another
        handle = os.open(lock, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.unlink()
        finally:
            os.close(handle)


def put_in_place(new: Path, served: Path, kept: Path) -> None:
    """Let `served` be what `new` is, and `kept` what `served` was; nobody ever finds `served` missing.

    To be called with the lock of `served`, and after `settle`.
    """
    if kept.exists() and not kept.samefile(served):
        raise StoreError(f"{kept} is in the way: what {served} is now would be kept there. Rename it.")
    check_same_disk(new, served)
    _let_who_may_read(new, served)
    if served.is_dir():  # no folder has two names, so the new one takes the name that it will leave
        told = {"new": new.name, "kept": kept.name, "inode": new.stat().st_ino}  # which no rename changes
        write_text(_journal(served), json.dumps(told))
        os.rename(new, kept)
        _exchange(kept, served)
        _journal(served).unlink()
        return
    if not kept.exists():
        _keep(served, kept)
    os.replace(new, served)


def _keep(served: Path, kept: Path) -> None:
    """Give a file a second name, or where there can be none, copy it; never over anything."""
    try:
        os.link(served, kept)
    except FileExistsError as error:
        raise StoreError(f"{kept} is in the way: another process made it just now. Look at both.") from error
    except OSError:  # a file system without links
        part = kept.with_name(f".{kept.name}.hubless-part")
        shutil.copy2(served, part)
        os.rename(part, kept)


def check_same_disk(new: Path, served: Path) -> None:
    """Refuse what cannot take the place of another in one step."""
    where = new if new.exists() else new.parent
    if where.stat().st_dev != served.stat().st_dev:
        raise StoreError(
            f"{new} is on another disk than {served}, so that it cannot take its place in one step. Give a "
            "target in the same folder."
        )


def _let_who_may_read(new: Path, served: Path) -> None:
    """Give what will serve the owner and the permissions of what serves."""
    with suppress(PermissionError):  # only root gives files away
        os.chown(new, served.stat().st_uid, served.stat().st_gid)
    shutil.copymode(served, new)


def settle(served: Path) -> None:
    """Undo, or finish, a switch of folders that was cut short, by the note that it left."""
    try:
        told = json.loads(_journal(served).read_text(encoding="utf-8"))
        new, kept = (served.with_name(Path(told[name]).name) for name in ("new", "kept"))
        inode = int(told["inode"])
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return
    aside = _aside(kept)
    if aside.exists():  # between the renames of a system that cannot exchange two names at once
        os.rename(aside, kept if served.exists() else served)
    if kept.exists() and not new.exists() and served.stat().st_ino != inode:
        os.rename(kept, new)
    _journal(served).unlink()


def _journal(served: Path) -> Path:
    return served.with_name(f".{served.name}.hubless-switch")


def _aside(one: Path) -> Path:
    return one.with_name(f".{one.name}.hubless-swap")


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
    aside = _aside(one)
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)
