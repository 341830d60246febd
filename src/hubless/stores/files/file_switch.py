"""The switch of a file, or of a folder of files, to its moved copy and back, with their marks."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..checks import check_promoted, check_unchanged
from ..file_marks import fingerprint, forget_marks, marks_of, read_mark, write_mark
from ..kept_copies import has_original, moved_copy_of, original_of
from ..store import StoreError
from ..switch import check_may_keep, put_in_place

LONGEST_NAME = 255  # bytes of a file name, on all common file systems


def promote_file(blue: Any, green: Any) -> Path:
    """Serve green under the name of blue; return where the original is kept."""
    mark = check_unchanged(blue, green)
    content, kept = fingerprint(green.path), original_of(blue.path)
    if content == fingerprint(blue.path):
        raise StoreError(f"{green.name} equals {blue.name}: the model moves none of its items.")
    _check_not_an_original(blue.path)
    check_may_keep(blue.path, kept)  # before the mark, which would make what is there the original
    _check_way_back(moved_copy_of(blue.path, mark.model))
    write_mark(blue.path, content, replace(mark, original=kept.name))
    put_in_place(green.path, blue.path, kept)
    forget_marks(green.path)  # of the name in another folder, where it was
    return kept


def _check_not_an_original(path: Path) -> None:
    """Refuse to replace the original that another name would roll back to."""
    owner = path.with_name(path.name.replace(".original", "", 1))
    if owner != path and original_of(owner) == path and marks_of(owner):
        raise StoreError(f"{path} is the original of {owner}, kept to roll back to. Roll back first.")


def _check_way_back(moved: Path) -> None:
    """Refuse names from which `rollback` could not switch back: those of temporary files are longer."""
    longest = f".{moved.name}.hubless.json.00000000.part"
    if len(os.fsencode(longest)) > LONGEST_NAME:
        raise StoreError(
            f"the way back would need the name {longest}, of more than {LONGEST_NAME} bytes. Give the "
            "index a shorter name first."
        )


def rollback_file(store: Any) -> Path:
    """Serve the original again; return where the moved copy is kept."""
    mark, path = check_promoted(store.name, store.mark()), store.path
    kept = original_of(path)  # never a path from a file of marks
    if not has_original(path) or read_mark(kept) is not None:
        why = "is itself a moved copy" if has_original(path) else "no longer exists"
        raise StoreError(f"the original, {kept}, {why}: {store.name} stays as it is.")
    moved = moved_copy_of(path, mark.model)
    write_mark(moved, fingerprint(path), replace(mark, original=None, changed=False), like=path)
    put_in_place(kept, path, moved)
    return moved
