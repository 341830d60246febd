"""Results of blocks, kept in a folder: an interrupted run resumes there.

A file is named by a digest of everything that its content depends on, so it does not matter which process
wrote it, or when; several runs may share a folder. A file that is missing or damaged is computed again.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..support.cache import load_arrays, save_arrays
from ..support.outputs import check_output, real_path
from ..support.version import __version__

PREFIX = "hubless-"  # of all files, as the folder may hold other files of the user
OURS = re.compile(rf"\.?{PREFIX}[0-9a-f]{{64}}\.npz(\..*\.part)?")


class Checkpoint(NamedTuple):
    """The kept results of one step, one for each block, and one of all of them."""

    folder: Path
    step: str  # digest of what the results depend on

    def file(self, name: Any) -> Path:
        """Return where a result is kept; `name` is the number of a block, or the name of a sum."""
        key = hashlib.sha256(f"{__version__} {self.step} {name}".encode()).hexdigest()
        return self.folder / f"{PREFIX}{key}.npz"

    def load(self, name: Any, fields: Sequence[str]) -> list[np.ndarray] | None:
        """Return the arrays of a result; None where there is none."""
        return load_arrays(self.file(name), fields)

    def save(self, name: Any, **arrays: Any) -> None:
        """Keep a result; where the disk is full it is not kept, and the run continues."""
        save_arrays(self.file(name), **arrays)

    def remove(self, names: Iterable[Any]) -> None:
        """Remove results that are no longer needed."""
        for name in names:
            with suppress(OSError):
                self.file(name).unlink()


def digest_of(*values: Any) -> str:
    """Return a digest of arrays, numbers and texts."""
    digest = hashlib.sha256()
    for array in map(np.asarray, values):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def scratch_folder(scratch: Any) -> Path | None:
    """Return the folder for results of blocks; OSError where nothing can be written there."""
    if scratch is None:
        return None
    folder = real_path(scratch)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"scratch must be a folder; {folder} is a file. Give a new folder.")
    return check_output(Checkpoint(folder, "").file("")).parent


def clear(folder: Path) -> None:
    """Remove what learning left in a folder, and the folder itself where it is empty then."""
    for file in folder.iterdir() if folder.is_dir() else ():
        if OURS.fullmatch(file.name):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
