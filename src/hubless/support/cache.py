"""Arrays kept in a file for a later run; a damaged file counts as missing."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from .untrusted_json import open_plain
from .writing import new_file


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Save arrays for `load_arrays`; do nothing where the file cannot be written."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # its stub takes `allow_pickle` for an array


def load_arrays(path: Path, names: Sequence[str]) -> list[np.ndarray] | None:
    """Return arrays saved by `save_arrays`; None where the file is missing or damaged."""
    try:
        with open_plain(path) as file, np.load(file, allow_pickle=False) as arrays:
            return [arrays[name] for name in names]
    except Exception:  # NumPy may raise anything for a damaged file, and not only what it documents
        return None
