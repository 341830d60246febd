"""A block of labeled objects: what was read of one place, and what of it can be learned from."""

from typing import Any, NamedTuple

import numpy as np

from .labels import BadPart, Labels, read_labels


class Block(NamedTuple):
    """Labeled objects as they were read together.

    Blocks belong to parts: a file of a folder, or some rows of a file or an array. What is wrong is reported
    by the name of the part, and a part is skipped as a whole.
    """

    part: str  # its name, as a user would say it
    X: np.ndarray  # (n, d), float32 or float64
    y: Any  # n labels
    first: int = 0  # the number of its first row in the part
    may_lack: bool = False  # whether a row may have no vector; it is NaN then
    error: str = ""  # why it could not be read

    @staticmethod
    def unreadable(part: str, error: Exception) -> "Block":
        """Return a block that says why it could not be read."""
        return Block(part, np.empty((0, 0)), [], error=str(error) or type(error).__name__)

    def row(self, number: int) -> str:
        """Name a row of the block, for a message."""
        return f"row {self.first + number:,} of {self.part}"


class Look(NamedTuple):
    """What is required of objects, and what is done with bad ones."""

    n_columns: int
    as_texts: bool = False  # whether labels are compared as texts, as those of a store are
    may_miss: bool = False  # whether rows may lack a label, as those of a store may
    skip_bad: bool = False  # whether bad parts are skipped, or refused


def clean(block: Block, look: Look) -> tuple[np.ndarray, Labels]:
    """Return the objects of a block that have a vector and a label, (m, d); BadPart where one is invalid."""
    if block.error:
        raise BadPart(block.error)
    X, part = block.X, block.part
    if X.ndim != 2 or X.shape[1] != look.n_columns:
        width = X.shape[1] if X.ndim == 2 else X.shape
        raise BadPart(f"{part} has vectors of {width} columns, the others {look.n_columns}.")
    if len(block.y) != len(X):
        raise BadPart(f"{part} has {len(X):,} vectors and {len(block.y):,} labels.")
    labels = read_labels(block.y, as_texts=look.as_texts, part=part, first=block.first)
    known = labels.places >= 0
    if not known.all() and not look.may_miss:
        row = int(np.argmin(known))
        raise BadPart(f"{block.row(row)} has no label; got {block.y[row]!r}.")
    known &= has_vector(block)
    return (X, labels) if known.all() else (X[known], labels._replace(places=labels.places[known]))


def has_vector(block: Block) -> np.ndarray:
    """Return which rows have a vector, bool; BadPart where one has an invalid number."""
    X = block.X
    with np.errstate(over="ignore", invalid="ignore"):
        # finite only if all terms are; a product, in which short floats may overflow: then each is looked at
        sums = X @ np.ones(X.shape[1], X.dtype)
    if np.isfinite(sums).all():
        return np.ones(len(X), dtype=bool)
    lacks = np.isnan(X).all(axis=1) if block.may_lack else np.zeros(len(X), dtype=bool)
    invalid = ~np.isfinite(X).all(axis=1) & ~lacks
    if invalid.any():
        row = int(np.argmax(invalid))
        got = "NaN" if np.isnan(X[row]).any() else "an infinite number"
        raise BadPart(f"{block.row(row)} has {got} in its vector. Repair or remove it.")
    return ~lacks
