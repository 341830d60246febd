"""The journal of a switch, `.NAME.hubless-switch`: what takes part in it, to recover an interrupted one.

Whoever can write to the folder can plant a journal. It is believed only where its names are those of a
switch, and where what is there is exactly what an interrupted switch leaves behind: the same files or
folders, known by their identities, under three names (see `_remedy`). What follows then is one rename, or
the removal of a second name of a file: nothing that has only one name is ever removed.
"""

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ..support.untrusted_json import read_object
from ..support.writing import new_file, sync_folder
from .file_marks import forget_marks
from .kept_copies import may_keep

Identity: TypeAlias = tuple[int, int]  # device and inode, which no rename changes


@dataclass(frozen=True)
class Journal:
    """What takes part in a switch: names, all in the folder of the served path, and identities."""

    new: str  # where what is to be served was
    kept: str  # where what was served goes
    before: Identity  # of what was served
    after: Identity  # of what is to be served

    def write(self, served: Path) -> None:
        """Write the journal beside the served path, on the disk."""
        with new_file(_journal_file(served), sync=True, like=served) as file:
            file.write(json.dumps(vars(self)).encode())
        sync_folder(served.parent)

    @staticmethod
    def read(served: Path) -> "Journal | None":
        """Return the journal of a path; None where there is none, or none that a switch of it wrote."""
        values = read_object(_journal_file(served)) if _is_trusted(served) else {}
        new, kept = values.get("new"), values.get("kept")
        before, after = (_as_identity(values.get(name)) for name in ("before", "after"))
        if not isinstance(new, str) or not isinstance(kept, str) or before is None or after is None:
            return None
        is_name = new not in (".", "..", served.name, kept) and Path(new).name == new
        is_ours = is_name and may_keep(served, kept) and before != after
        return Journal(new, kept, before, after) if is_ours else None


def _is_trusted(served: Path) -> bool:
    """Say whether a journal is by this user, by root, or by the owner of what is served.

    In a folder for all, such as /tmp, anyone can plant one, but cannot rename files of others by hand.
    """
    if not hasattr(os, "geteuid"):
        return True
    return _owner_of(_journal_file(served)) in (os.geteuid(), 0, _owner_of(served))


def _owner_of(path: Path) -> int | None:
    """Return the user who owns a file or a link; None where there is none."""
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None


def _as_identity(value: object) -> Identity | None:
    if not isinstance(value, list) or len(value) != 2 or any(type(number) is not int for number in value):
        return None
    return value[0], value[1]


def identity_of(path: Path) -> Identity | None:
    """Return what a path is; None where there is nothing, or a link, which takes part in no switch."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else (status.st_dev, status.st_ino)


def _remedy(served: Path, journal: Journal) -> partial[None] | None:
    """Return what completes or undoes a switch, by what is there now; None where it was not interrupted."""
    new, kept = served.with_name(journal.new), served.with_name(journal.kept)
    before, after = journal.before, journal.after
    remedies: dict[Any, partial[None]] = {  # of what is at: served, new, kept
        (before, after, before): partial(os.unlink, kept),  # a file with its second name: undo
        (None, after, before): partial(os.rename, kept, served),  # a folder, between two renames: undo
        (after, before, before): partial(os.unlink, new),  # the file is exchanged: remove a third name
        (after, before, None): partial(os.rename, new, kept),  # exchanged: give it the name to keep
        (after, None, before): partial(forget_marks, new),  # only the marks of the name it left are there
    }
    return remedies.get((identity_of(served), identity_of(new), identity_of(kept)))


def was_interrupted(served: Path) -> bool:
    """Say whether a switch of a path was interrupted, or is happening now; nothing is changed."""
    journal = Journal.read(served)
    return journal is not None and _remedy(served, journal) is not None


def recover_switch(served: Path) -> bool:
    """Complete or undo a switch that was interrupted; say whether there was one.

    A journal that does not fit what is there is removed, and nothing else is changed.
    """
    journal, done = Journal.read(served), False
    while journal is not None and (remedy := _remedy(served, journal)) is not None:
        remedy()
        sync_folder(served.parent)
        done = True
        if remedy.func is forget_marks:
            break
    with suppress(FileNotFoundError):
        _journal_file(served).unlink()
        sync_folder(served.parent)
    return done


def _journal_file(served: Path) -> Path:
    return served.with_name(f".{served.name}.hubless-switch")
