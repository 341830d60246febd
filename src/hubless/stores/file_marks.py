"""Marks of files and folders: kept in `NAME.hubless.json` beside them, by the content that they belong to."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..support.untrusted_json import read_object
from ..support.writing import new_file, sync_folder
from .kept_copies import has_original, original_of
from .store import Mark

CHUNK, CHUNKS = 1 << 16, 64  # bytes of a chunk, and how many of a large file are hashed, evenly spread


def fingerprint(path: Path) -> str:
    """Return a hash of a file's size and content (of a large one, a sample), or of all files in a folder.

    Links to folders inside are not followed, and pipes and the like not opened: they count by their names.
    """
    if path.is_dir():
        inside = sorted(path.iterdir())
        is_whole = [entry.is_file() or (entry.is_dir() and not entry.is_symlink()) for entry in inside]
        parts = [
            f"{entry.name}:{fingerprint(entry) if whole else ''}"
            for entry, whole in zip(inside, is_whole, strict=True)
        ]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for i in range(CHUNKS if size > CHUNK * CHUNKS else -(-size // CHUNK)):
            file.seek(i * (size - CHUNK) // (CHUNKS - 1) if size > CHUNK * CHUNKS else i * CHUNK)
            digest.update(file.read(CHUNK))
    return digest.hexdigest()


def marks_of(path: Path) -> dict[str, Any]:
    """Return the marks of all contents that a path has or had, by fingerprint."""
    return read_object(_marks_file(path))


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
    if mark is None and has_original(path) and fingerprint(original) not in {content, *known}:
        promoted = [other for other in known.values() if other is not None and other.original is not None]
        mark = replace(promoted[-1], changed=True) if promoted else None
    # where the original is follows from the path: a file of marks may come from anywhere
    return mark if mark is None or mark.original is None else replace(mark, original=original.name)


def write_mark(path: Path, content: str, mark: Mark, *, like: Path | None = None) -> None:
    """Record the mark of a content that a path has or will have, in a file with the rights of `like`."""
    text = json.dumps({**marks_of(path), content: mark.to_json()}, indent=1) + "\n"
    with new_file(_marks_file(path), sync=True, like=like or path) as file:
        file.write(text.encode())
    sync_folder(path.parent)


def forget_marks(path: Path) -> None:
    """Remove the marks of a path that no longer exists."""
    if not path.exists():
        _marks_file(path).unlink(missing_ok=True)


def _marks_file(path: Path) -> Path:
    return path.with_name(path.name + ".hubless.json")
