"""A first look at labeled objects: what classes there are, where their middle is, what is wrong with them.

Objects come in blocks, and blocks in parts: a file of a folder, or some rows of a file or an array. Whatever
is wrong with a part is told by its name; a part that is left out is left out as a whole.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..inputs import label_text

NONE, TEXT, NUMBER, STRANGE = range(4)  # what a label may be
LETTERS = 200  # of a label, beyond which a column holds texts and not classes


class BadPart(ValueError):
    """What is wrong with a part, and where."""


class Block(NamedTuple):
    """Some labeled objects, as they were read."""

    part: str  # the part that it belongs to, as a user would name it
    X: np.ndarray  # (n, d), float32 or float64
    y: Any  # n labels
    first: int = 0  # the number of its first row in the part
    may_lack: bool = False  # whether a row may have no vector, and is NaN then
    error: str = ""  # why it could not be read, where that was found out elsewhere


class Look(NamedTuple):
    """How a source is looked at."""

    texts: bool = False  # whether labels are compared as texts, as those of a store are
    may_miss: bool = False  # whether rows may lack a label, as those of a store may
    skip_bad: bool = False  # whether bad parts are left out


class Skipped(NamedTuple):
    """A part that was left out."""

    part: str
    why: str


@dataclass
class Survey:
    """What was seen."""

    n_columns: int
    counts: dict[Any, int] = field(default_factory=dict)  # objects of each class
    total: Any = 0.0  # (d,), float64, Σ x
    n: int = 0
    n_missing: int = 0  # rows without a vector or a label, which are not learned from
    dtype: Any = np.float32  # of the finest objects
    digests: list[str] = field(default_factory=list)  # of the content, part by part
    lengths: list[int] = field(default_factory=list)  # objects, part by part; 0 for one that was left out
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, other: "Survey") -> None:
        """Take in what was seen of another part."""
        for label, count in other.counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
        self.total = self.total + other.total
        self.n, self.n_missing = self.n + other.n, self.n_missing + other.n_missing
        self.dtype = np.result_type(self.dtype, other.dtype)
        self.digests, self.lengths = self.digests + other.digests, self.lengths + other.lengths
        self.skipped = self.skipped + other.skipped

    def leave_out(self, part: str, error: Exception) -> None:
        """Note that a part was left out, and why."""
        why = str(error) if part in str(error) else f"{part}: {error}"
        self.skipped, self.lengths = [*self.skipped, Skipped(part, why)], [*self.lengths, 0]

    @property
    def classes(self) -> np.ndarray:
        """The classes, sorted; (c,)."""
        return np.array(sorted(self.counts))

    @property
    def sizes(self) -> np.ndarray:
        """Objects of each class, in the order of `classes`; int64 (c,)."""
        return np.array([self.counts[label] for label in sorted(self.counts)], dtype=np.int64)

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.total / max(1, self.n))

    @property
    def digest(self) -> str:
        """What stands for the content of all parts, in their order."""
        return hashlib.sha256("\n".join(self.digests).encode()).hexdigest()

    def check(self) -> None:
        """Refuse what nothing can be learned from."""
        if not self.n:
            parts = f" {len(self.skipped)} parts were left out, the first because: " if self.skipped else ""
            why = self.skipped[0].why if self.skipped else ""
            raise ValueError(f"there is no object with a label to learn from.{parts}{why}")


def survey_part(blocks: Iterable[Block], n_columns: int, look: Look) -> Survey:
    """Look at all blocks of one part; BadPart says what is wrong with it."""
    seen, digest = Survey(n_columns), hashlib.sha256()
    for block in blocks:
        X, labels = clean(block, n_columns, look)
        seen.n_missing += len(block.X) - len(X)
        if not len(X):
            continue
        classes, numbers = uniques(labels)
        for label, count in zip(classes.tolist(), np.bincount(numbers).tolist(), strict=True):
            seen.counts[label] = seen.counts.get(label, 0) + count
        seen.total = seen.total + X.sum(axis=0, dtype=np.float64)
        seen.n, seen.dtype = seen.n + len(X), np.result_type(seen.dtype, X.dtype)
        digest.update(f"{X.dtype.str} {X.shape} {labels.dtype.kind}".encode())
        digest.update(np.ascontiguousarray(X).data)
        digest.update("\x00".join(map(str, labels.tolist())).encode("utf-8", "surrogatepass"))
    seen.digests, seen.lengths = [digest.hexdigest()], [seen.n]
    return seen


def clean(block: Block, n_columns: int, look: Look) -> tuple[np.ndarray, np.ndarray]:
    """The objects of a block that can be learned from, and their labels; BadPart where one is not as it must.

    Returns
    -------
    X : array of shape (m, d); labels : array of shape (m,), of numbers, or of texts as objects
    """
    X = block.X
    if block.error:
        raise BadPart(block.error)
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise BadPart(
            f"{block.part} has vectors of {X.shape[-1] if X.ndim == 2 else X.shape} columns, the others "
            f"{n_columns}."
        )
    if len(block.y) != len(X):
        raise BadPart(f"{block.part} has {len(X):,} vectors and {len(block.y):,} labels.")
    labels, known = labels_of(block, look)
    with np.errstate(over="ignore", invalid="ignore"):
        strange = ~np.isfinite(X.sum(axis=1, dtype=np.float64))  # finite only if all terms are
    if strange.any():
        lacking = np.isnan(X).all(axis=1) if block.may_lack else np.zeros(len(X), dtype=bool)
        strange = ~np.isfinite(X).all(axis=1) & ~lacking
        if strange.any():
            row = int(np.argmax(strange))
            told = "NaN" if np.isnan(X[row]).any() else "an infinite number"
            raise BadPart(
                f"row {block.first + row:,} of {block.part} has {told} in its vector. Repair or remove it."
            )
        known = known & ~lacking
    return (X, labels) if known.all() else (X[known], labels[known])


def labels_of(block: Block, look: Look) -> tuple[np.ndarray, np.ndarray]:
    """Labels as an array, and which of them are there."""
    y = block.y
    if isinstance(y, np.ndarray) and y.dtype.kind in "iub" and y.ndim == 1 and not look.texts:
        return y, np.ones(len(y), dtype=bool)
    values: list[Any] = y.tolist() if isinstance(y, np.ndarray) else list(y)
    kinds = _kinds(values)
    known = kinds != NONE
    if not known.all() and not look.may_miss:
        row = int(np.argmin(known))
        raise BadPart(f"row {block.first + row:,} of {block.part} has no label; got {values[row]!r}.")
    if (kinds == STRANGE).any():
        row = int(np.argmax(kinds == STRANGE))
        raise BadPart(
            f"Unknown label type: row {block.first + row:,} of {block.part} has {values[row]!r:.60} "
            f"({type(values[row]).__name__}). Labels are whole numbers, truth values, or texts of at most "
            f"{LETTERS:,} letters."
        )
    if look.texts:
        return _objects([label_text(value) for value in values]), known
    if not len(values):
        return np.zeros(0, np.int64), known
    if (kinds != kinds[0]).any():
        row = int(np.argmax(kinds != kinds[0]))
        raise BadPart(
            f"Unknown label type: {block.part} has texts and numbers as labels, as in row "
            f"{block.first + row:,}; give one kind."
        )
    return (_objects(values) if kinds[0] == TEXT else np.array(values)), known


def _kinds(values: list[Any]) -> np.ndarray:
    """What each label is: NONE, a TEXT, a NUMBER or STRANGE; those of one type are told at once."""
    types = set(map(type, values))
    if types <= {int, bool} and -(2**63) <= min(values, default=0) <= max(values, default=0) < 2**64:
        return np.full(len(values), NUMBER)
    if types == {str} and max(map(len, values)) <= LETTERS:
        return np.where(_objects(values) == "", NONE, TEXT)
    return np.array([_kind(value) for value in values], dtype=np.int64)


def _kind(value: Any) -> int:
    if value is None or type(value).__name__ == "NAType":  # that of a data frame
        return NONE
    if isinstance(value, str):
        return (TEXT if value else NONE) if len(value) <= LETTERS else STRANGE
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return NUMBER if -(2**63) <= int(value) < 2**64 else STRANGE
    if isinstance(value, float | np.floating):
        return NONE if np.isnan(value) else NUMBER if float(value).is_integer() else STRANGE
    return STRANGE


def _objects(values: Sequence[Any]) -> np.ndarray:
    """Texts as objects: in an array of texts, each would be as long as the longest."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def uniques(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels that occur, each once, and the number of each label among them."""
    if labels.dtype != object:
        classes, numbers = np.unique(labels, return_inverse=True)
        return classes, numbers
    places: dict[str, int] = {}
    numbers = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.int64)
    return np.array([*places]), numbers


def codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Class numbers of labels, int64; OSError for a label that was not there before."""
    found, inverse = uniques(labels)
    places = np.minimum(np.searchsorted(classes, found), len(classes) - 1)
    if (classes[places] != found).any():
        raise OSError("the objects changed while they were read: there are other labels now. Start again.")
    return np.asarray(places[inverse], dtype=np.int64)


def survey_all(
    parts: Iterable[tuple[str, Callable[[], Iterable[Block]]]],
    n_columns: int,
    look: Look,
    seen_rows: Callable[[int], Any],
) -> Survey:
    """Look at all parts, in order; a bad one is raised, or left out and told."""
    whole = Survey(n_columns)
    for name, blocks in parts:

        def counted(blocks: Callable[[], Iterable[Block]] = blocks) -> Iterable[Block]:
            for block in blocks():
                yield block
                seen_rows(len(block.X))

        try:
            seen = survey_part(counted(), n_columns, look)
            check_kind(kind_of(whole), seen, name)
            whole.add(seen)
        except (OSError, ValueError) as error:
            whole.leave_out(name, error)
            if not look.skip_bad:
                raise refused(whole) from error
    return whole


def refused(whole: Survey) -> BadPart:
    """What is said of the last part that is bad, where such are not left out."""
    return BadPart(f"{whole.skipped[-1].why} Bad parts can be left out: skip_bad=True, --skip-bad.")


def kind_of(seen: Survey) -> bool | None:
    """Whether labels are texts; None where there are none."""
    return next((isinstance(label, str) for label in seen.counts), None)


def check_kind(kind: bool | None, seen: Survey, name: str) -> None:
    """Refuse texts as labels where there were numbers before, and numbers where there were texts."""
    if None not in (kind, kind_of(seen)) and kind_of(seen) != kind:
        raise BadPart(f"Unknown label type: {name} has other labels than those before it: texts, or numbers.")
