"""Memory-mapped arrays: release pages that were read, and notice when their file has changed."""

import mmap
import os
from typing import Any

import numpy as np


def release_pages(X: Any) -> None:
    """Release the pages of a mapped file, which would otherwise count as memory of the process."""
    if isinstance(X, np.memmap) and X.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        mapped = getattr(X, "_mmap", None)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)


def last_written(X: Any) -> str:
    """Return a text that changes when the file of a mapped array is written to; "" for other arrays."""
    if not isinstance(X, np.memmap) or X.filename is None:
        return ""
    try:
        status = os.stat(X.filename)
    except OSError:
        return "removed"
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
