"""Arrays that are mapped from files: what was read of them goes back to the system, and changes are seen."""

import mmap
import os
from typing import Any

import numpy as np


def give_back(X: Any) -> None:
    """Let go of the pages of a mapped file, which would otherwise count as memory of the process."""
    if isinstance(X, np.memmap) and X.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        mapped = getattr(X, "_mmap", None)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)


def last_written(X: Any) -> str:
    """Return a text that differs once the file of a mapped array was written to; "" for other arrays."""
    if not isinstance(X, np.memmap) or X.filename is None:
        return ""
    try:
        found = os.stat(X.filename)
    except OSError:
        return "removed"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
