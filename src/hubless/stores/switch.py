"""Replace a file or a folder by another in one step, and keep the old one.

A file is replaced by a rename. A folder cannot be renamed onto one that has files, so two exchange names;
a note beside them (`.NAME.hubless-switch`) says how to complete or undo an exchange that was interrupted.
"""

import ctypes
import hashlib
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from glob import escape
from pathlib import Path

from ..support.writing import new_file
from .store import Mark, StoreError

RENAME_EXCHANGE, AT_FDCWD = 2, -100  # constants of Linux


def write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    with new_file(path, sync=True) as file:
        file.write(text.encode("utf-8"))


def original_of(path: Path) -> Path:
    """Return where the original of a path is kept, once promoted."""
    return path.with_name(f"{path.stem}.original{path.suffix}")


def moved_copy_of(path: Path, model: str) -> Path:
    """Return where the moved copy of a path is kept, once rolled back: a free path, or `path` itself."""
    number, copy = 1, path.with_name(f"{path.stem}.moved-{model[:8]}{path.suffix}")
    while copy.exists() and not copy.samefile(path):
        number += 1
        copy = path.with_name(f"{path.stem}.moved-{model[:8]}-{number}{path.suffix}")
    return copy


def put_in_place(new: Path, served: Path, kept: Path) -> None:
    """Put `new` at the path `served`, and what was there at `kept`; `served` exists at every moment.

    Except for folders on systems that cannot exchange two names at once: `served` is missing for a moment.

    Call it with the lock of `served`, and after `recover_switch`.
    """
    if kept.exists() and not kept.samefile(served):
        raise StoreError(
            f"{kept} exists already, but {served} is to be kept under that name. Rename {kept.name} first."
        )
    check_same_disk(new, served)
    with suppress(PermissionError):  # only root can change the owner
        os.chown(new, served.stat().st_uid, served.stat().st_gid)
    shutil.copymode(served, new)
    if served.is_dir():  # a folder has one name only, so the new one takes the name that it will leave
        note = {"new": new.name, "kept": kept.name, "inode": new.stat().st_ino}  # which no rename changes
        write_text(_beside(served, "switch"), json.dumps(note))
        os.rename(new, kept)
        _exchange(kept, served)
        _beside(served, "switch").unlink()
        return
    if not kept.exists():
        _keep(served, kept)
    os.replace(new, served)


def recover_switch(served: Path) -> None:
    """Undo, or complete, a switch of folders that was interrupted, by the note that it left."""
    try:
        note = json.loads(_beside(served, "switch").read_text(encoding="utf-8"))
        new, kept = (served.with_name(Path(note[name]).name) for name in ("new", "kept"))
        inode = int(note["inode"])
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return
    aside = _beside(kept, "swap")
    if aside.exists():  # between the renames of a system that cannot exchange two names at once
        os.rename(aside, kept if served.exists() else served)
    if kept.exists() and not new.exists() and served.stat().st_ino != inode:
        os.rename(kept, new)
    _beside(served, "switch").unlink()


def check_same_disk(new: Path, served: Path) -> None:
    """Refuse a path on another disk than the served one: it cannot be renamed to it."""
    where = new if new.exists() else new.parent
    if where.stat().st_dev != served.stat().st_dev:
        raise StoreError(
            f"{new} is on another disk than {served}, so it cannot take its place in one step. Give a target "
            "in the same folder."
        )


def _keep(served: Path, kept: Path) -> None:
    """Give a file a second name, or copy it where the file system has no hard links."""
    try:
        os.link(served, kept)
    except FileExistsError as error:
        raise StoreError(f"{kept} exists already: another process made it just now. Compare both.") from error
    except OSError:
        part = _beside(kept, "part")
        shutil.copy2(served, part)
        os.rename(part, kept)


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders: at once where the system can (Linux), else one after the other."""
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if swap is not None:
        paths = (AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other))
        if swap(*paths, RENAME_EXCHANGE) == 0:
            return
    aside = _beside(one, "swap")
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)


def _beside(path: Path, end: str) -> Path:
    return path.with_name(f".{path.name}.hubless-{end}")


# --- marks: kept in `NAME.hubless.json` beside a file or folder, by the content that they belong to --------


CHUNK, CHUNKS = 1 << 16, 64  # bytes of a chunk, and how many of a large file are hashed, evenly spread


def fingerprint(path: Path) -> str:
    """Return a hash of a file's size and content (of a large one, a sample), or of all files in a folder."""
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


def marks_of(path: Path) -> dict[str, str]:
    """Return the marks of all contents that a path has or had, by fingerprint."""
    try:
        marks = json.loads(_marks_file(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return marks if isinstance(marks, dict) else {}


def read_mark(path: Path) -> Mark | None:
    """Return the mark of what a path is now, by its content.

    While its original is kept, a path whose content has no mark counts as a promoted one that others wrote
    to: adding moved items does not make it an original.
    """
    marks = marks_of(path)
    if not marks or not path.exists():
        return None
    known = {content: Mark.from_json(text) for content, text in marks.items()}
    content, original = fingerprint(path), original_of(path)
    mark = known.get(content)
    # an interrupted switch leaves there a second name of this, or the moved copy
    if mark is None and original.exists() and fingerprint(original) not in {content, *known}:
        promoted = [other for other in known.values() if other is not None and other.original is not None]
        mark = replace(promoted[-1], changed=True) if promoted else None
    # where the original is follows from the path: a file of marks may come from anywhere
    return mark if mark is None or mark.original is None else replace(mark, original=original.name)


def write_mark(path: Path, content: str, mark: Mark) -> None:
    """Record the mark of a content that a path has or will have."""
    write_text(_marks_file(path), json.dumps({**marks_of(path), content: mark.to_json()}, indent=1) + "\n")


def forget_marks(path: Path) -> None:
    """Remove the marks of a path that no longer exists."""
    if not path.exists():
        _marks_file(path).unlink(missing_ok=True)


def remove_left_parts(path: Path) -> None:
    """Remove what killed processes left of the marks of a path; to be called under its lock."""
    for part in path.parent.glob(f".{escape(_marks_file(path).name)}.*.part"):
        part.unlink(missing_ok=True)


def _marks_file(path: Path) -> Path:
    return path.with_name(path.name + ".hubless.json")
