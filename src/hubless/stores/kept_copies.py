"""Where a file or a folder keeps its original, once promoted, and its moved copy, once rolled back."""

import os
import re
from pathlib import Path

from ..support.writing import remove_parts


def original_of(path: Path) -> Path:
    """Return where the original of a path is kept, once promoted."""
    return path.with_name(f"{path.stem}.original{path.suffix}")


def has_original(path: Path) -> bool:
    """Say whether an original of a path is kept: a file of a file, a folder of a folder; never a pipe."""
    original = original_of(path)
    return original.is_dir() if path.is_dir() else original.is_file()


def moved_copy_of(path: Path, model: str) -> Path:
    """Return where the moved copy of a path is kept, once rolled back: a free path, or `path` itself."""
    start = re.sub("[^0-9a-f]", "0", f"{model:0<8}"[:8])  # of a hash; a mark may have anything there
    number, copy = 1, path.with_name(f"{path.stem}.moved-{start}{path.suffix}")
    while os.path.lexists(copy) and (copy.is_symlink() or not copy.samefile(path)):
        number += 1
        copy = path.with_name(f"{path.stem}.moved-{start}-{number}{path.suffix}")
    return copy


def may_keep(served: Path, kept: str) -> bool:
    """Say whether a switch of `served` keeps what was there under this name."""
    return re.fullmatch(_kept_names(served), kept) is not None


def remove_unfinished(served: Path) -> None:
    """Remove what killed processes left of a switch of `served`; call it with the lock of that path."""
    name = rf"({re.escape(served.name)}|{_kept_names(served)})"
    remove_parts(served.parent, rf"{name}(\.hubless\.json)?|\.{re.escape(served.name)}\.hubless-switch")


def _kept_names(served: Path) -> str:
    return rf"{re.escape(served.stem)}\.(original|moved-[0-9a-f]{{8}}(-\d+)?){re.escape(served.suffix)}"
