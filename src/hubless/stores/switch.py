"""Replace a file or a folder by another under one name, in one step, and keep the old one.

The two exchange names, where the system can do that (Linux, macOS). A journal (journal.py) says how to
complete or undo a switch that was interrupted. Everything here is called with the lock of the served path;
readers call none of it.
"""

import filecmp
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..support.writing import exchange_names, new_file, opened_itself, set_mode
from .checks import path_lock
from .journal import Identity, Journal, identity_of, recover_switch
from .kept_copies import remove_unfinished
from .store import StoreError


@contextmanager
def switching(served: Path, *others: Path) -> Iterator[None]:
    """Hold the locks of a path and of others that change with it, with an interrupted switch recovered."""
    with ExitStack() as locks:
        for path in (served, *others):
            locks.enter_context(path_lock(path))
        recover(served)
        yield


def recover(served: Path) -> bool:
    """Complete or undo an interrupted switch, and clean up after it; say whether there was one."""
    remove_unfinished(served)
    return recover_switch(served)


def put_in_place(new: Path, served: Path, kept: Path) -> None:
    """Put `new` at the path `served`, and what was there at `kept`; `served` exists at every moment.

    Except for folders on systems that cannot exchange two names at once: `served` is missing for a moment.

    Call it inside `switching(served, …)`.
    """
    check_may_keep(served, kept)
    new = _bring_beside(new, served)
    copy_rights(served, new)
    before, after = identity_of(served), identity_of(new)
    if before is None or after is None:
        raise StoreError(f"{served if before is None else new} is no longer there. Check its folder.")
    Journal(new.name, kept.name, before, after).write(served)
    try:
        (_switch_folders if served.is_dir() else _switch_files)(new, served, kept, before)
    finally:  # after an error, as after a kill: complete it, or undo it
        recover_switch(served)


def check_may_keep(served: Path, kept: Path) -> None:
    """Refuse to keep what is served under a name that something else has."""
    if os.path.lexists(kept) and not _is_copy(kept, served):
        raise StoreError(
            f"{kept} exists already, but {served} is to be kept under that name. Rename {kept.name} first."
        )


def _switch_folders(new: Path, served: Path, kept: Path, before: Identity) -> None:
    if exchange_names(new, served):
        _check_exchanged(new, served, before)
        os.rename(new, kept)
        return
    os.rename(served, kept)
    os.rename(new, served)


def _switch_files(new: Path, served: Path, kept: Path, before: Identity) -> None:
    """Give the served file a second name first: so it can be found under `kept` from then on."""
    has_link = _link(served, kept)
    if exchange_names(new, served):
        try:
            _check_exchanged(new, served, before)
        except StoreError:
            kept.unlink(missing_ok=True)
            raise
        if has_link:
            new.unlink()
        else:
            os.replace(new, kept)
        return
    if not has_link:
        with new_file(kept, sync=True, like=served) as copy, served.open("rb") as file:
            shutil.copyfileobj(file, copy)
        about = served.stat()  # its time of change, too, tells what green was made from
        os.utime(kept, ns=(about.st_atime_ns, about.st_mtime_ns))
    os.replace(new, served)


def _check_exchanged(new: Path, served: Path, before: Identity) -> None:
    """Undo an exchange that took away something else than what was to be replaced."""
    if identity_of(new) != before:
        exchange_names(new, served)
        raise StoreError(
            f"another program replaced {served} in this moment, so the switch was undone. Apply again."
        )


def _link(path: Path, name: Path) -> bool:
    """Give a file a second name; say whether the file system has such links."""
    try:
        os.link(path, name)
    except OSError:
        return False
    return True


def _is_copy(kept: Path, served: Path) -> bool:
    """Say whether an interrupted switch left a copy of the served file; byte by byte."""
    are_files = kept.is_file() and served.is_file() and not kept.is_symlink()
    return are_files and filecmp.cmp(kept, served, shallow=False)


def check_same_disk(new: Path, served: Path) -> None:
    """Refuse a path on another disk than the served one: it cannot be renamed to it."""
    where = new if new.exists() else new.parent
    if where.stat().st_dev != served.stat().st_dev:
        raise StoreError(
            f"{new} is on another disk than {served}, so it cannot take its place in one step. Give a target "
            "in the same folder."
        )


def _bring_beside(new: Path, served: Path) -> Path:
    """Return `new` in the folder of the served path, to which it is moved from another folder."""
    check_same_disk(new, served)
    beside = served.with_name(new.name)
    if beside != new:
        if os.path.lexists(beside):
            raise StoreError(f"{beside} exists already, and {new} needs that name. Rename one of them.")
        os.rename(new, beside)
    return beside


def copy_rights(source: Path, target: Path) -> None:
    """Give a file, or a folder and the files in it that both have, the owner and the mode of another."""
    for path in (target, *(target.iterdir() if target.is_dir() else ())):
        model = source if path == target else source / path.name
        if not path.is_symlink() and model.exists():
            set_rights(path, model.stat(), owner=True)


def set_rights(path: Path, about: os.stat_result, *, owner: bool = False) -> None:
    """Give a file or a folder the mode of another, and where possible its owner; a link is never followed.

    A file does not get the right to run as its owner: a stranger's program would run as whoever copied it.
    """
    with opened_itself(path) as handle:
        if owner and handle is not None:
            with suppress(PermissionError):  # only root can change the owner
                os.chown(handle, about.st_uid, about.st_gid)
        mode = stat.S_IMODE(about.st_mode) if path.is_dir() else about.st_mode & 0o777
        set_mode(handle, path, mode)
