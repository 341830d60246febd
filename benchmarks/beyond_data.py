"""Objects with a known structure, of any number, written block by block.

The sizes of the classes follow Zipf's law. A few directions separate classes; noise of larger variance is in
the others.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

ROWS = 1 << 18  # rows made at once
TELLING = 24  # directions that separate classes


class Made(NamedTuple):
    """Two files: vectors and the class numbers beside them."""

    vectors: Path
    labels: Path


# p_c ∝ 1 / c
def zipf(n_classes: int) -> np.ndarray:
    """Shares of the classes, the largest first."""
    share = 1 / np.arange(1, n_classes + 1)
    return share / share.sum()


def objects(rng: np.random.Generator, labels: np.ndarray, d: int, n_classes: int) -> np.ndarray:
    """Objects of some classes: x = centre + noise, in float32; the centres are the same for every call."""
    centres = np.zeros((n_classes, d), np.float32)
    telling = min(TELLING, d // 2)
    centres[:, :telling] = np.random.default_rng(7).standard_normal((n_classes, telling), np.float32)
    spread = np.full(d, 0.6, np.float32)
    spread[telling:] = 2.0 / np.sqrt(np.arange(1, d - telling + 1, dtype=np.float32))  # falling
    noise = rng.standard_normal((len(labels), d), np.float32)
    noise *= spread
    noise += centres[labels]
    return noise


def make(folder: Path, n: int, d: int, n_classes: int) -> Made:
    """Write n objects of d columns; every class has two or more."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Made(folder / "vectors.npy", folder / "labels.npy")
    head = {"fortran_order": False}
    with made.vectors.open("wb") as vectors, made.labels.open("wb") as labels:
        np.lib.format.write_array_header_1_0(vectors, {**head, "descr": "<f4", "shape": (n, d)})
        np.lib.format.write_array_header_1_0(labels, {**head, "descr": "<i4", "shape": (n,)})
        share = zipf(n_classes)
        for start in range(0, n, ROWS):
            rng = np.random.default_rng([1, start])
            y = rng.choice(n_classes, min(ROWS, n - start), p=share).astype(np.int32)
            first = y[: 2 * n_classes] if start == 0 else y[:0]
            first[:] = np.arange(len(first)) % n_classes
            vectors.write(objects(rng, y, d, n_classes).data)
            labels.write(y.data)
    return made
