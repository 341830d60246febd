"""Results of parts, kept in a folder under the content they were learned from: a second run goes on there."""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..download import load_arrays, save_arrays
from ..moments import Moments
from .lesson import Lesson, Sums, Taught
from .partition import PREFIX

KEY = 64  # letters of a key
NAMES = ("origin", "weight", "x_sum", "z_sum", "A", "K", "n_pairs", "codes", "class_sums")


class Checkpoints(NamedTuple):
    """Where results of parts are kept; nowhere without a folder."""

    folder: Path | None

    def load(self, key: str) -> Sums | None:
        """The result under a key; None where there is none."""
        arrays = None if self.folder is None else load_arrays(self._file(key), NAMES)
        return None if arrays is None else _from_arrays(arrays)

    def save(self, key: str, found: Sums) -> Sums:
        """Keep a result."""
        if self.folder is not None:
            save_arrays(self._file(key), **_as_arrays(found))
        return found

    def get(self, key: str, learn: Callable[[], Sums]) -> Sums:
        """The result under a key, or what is learned now, which is then kept."""
        return self.load(key) or self.save(key, learn())

    def _file(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{PREFIX}{key}.npz"


def clear(folder: Path) -> None:
    """Remove what learning left in a folder, and the folder where nothing else is in it."""
    ours = re.compile(rf"\.?{PREFIX}(rows\.bin|partition\.json|[0-9a-f]{{{KEY}}}\.npz)(\..*\.part)?")
    for file in folder.iterdir() if folder.is_dir() else ():
        if ours.fullmatch(file.name):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _as_arrays(sums: Sums) -> dict[str, np.ndarray]:
    m = sums.moments
    values = (m.origin, m.weight, m.x_sum, m.z_sum, m.A, m.K, sums.n_pairs, sums.codes, sums.class_sums)
    return {name: np.asarray(value) for name, value in zip(NAMES, values, strict=True)}


def _from_arrays(arrays: list[np.ndarray]) -> Sums:
    origin, weight, x_sum, z_sum, A, K, n_pairs, codes, class_sums = arrays
    return Sums(Moments(origin, float(weight), x_sum, z_sum, A, K), int(n_pairs), codes, class_sums)


def content_of(X: np.ndarray) -> bytes:
    """What stands for the bytes of an array."""
    return hashlib.sha256(np.ascontiguousarray(X).data).digest()


def key_of(lesson: Lesson, taught: Taught, codes: np.ndarray, *contents: Any) -> str:
    """What a result depends on: the lesson, who teaches, and the bytes of the objects."""
    told = {"n_targets": lesson.n_targets, "means": lesson.means, "within": lesson.within, "version": 1}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    arrays = [lesson.origin, taught.rows, taught.weights, codes, *contents]
    for array in arrays:
        if isinstance(array, bytes):
            digest.update(array)
        elif array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
