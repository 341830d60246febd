"""The labels of a block: which occur, and which of them each object has."""

from typing import Any, NamedTuple

import numpy as np

from ..arrays.inputs import label_text

NONE, TEXT, NUMBER, INVALID = range(4)  # what a label may be
LETTERS = 200  # of a label, beyond which a column holds texts and not classes


class BadPart(ValueError):
    """What is wrong with a part of the objects, and where."""


class Labels(NamedTuple):
    """The labels of n objects."""

    values: np.ndarray  # (u,), the labels that occur, each once and sorted: numbers, or texts
    places: np.ndarray  # (n,), which of them each object has, int64; -1 for none

    @property
    def kind(self) -> int:
        """What the labels are: TEXT, NUMBER, or NONE where there is no label."""
        return NONE if not len(self.values) else TEXT if self.values.dtype.kind == "U" else NUMBER

    def counts(self) -> dict[Any, int]:
        """Return how many objects have each label."""
        counts = np.bincount(self.places, minlength=len(self.values))
        pairs = zip(self.values.tolist(), counts.tolist(), strict=True)
        return {label: count for label, count in pairs if count}

    def codes(self, classes: np.ndarray) -> np.ndarray:
        """Return the class number of each object, int64; OSError for a label that is not a class."""
        places = np.minimum(np.searchsorted(classes, self.values), len(classes) - 1)
        if (classes[places] != self.values).any():
            raise OSError("the objects changed while they were read: new labels appeared. Run it again.")
        return np.asarray(places[self.places], dtype=np.int64)


def read_labels(y: Any, *, as_texts: bool = False, part: str = "y", first: int = 0) -> Labels:
    """Return the labels of an array or a list; BadPart where one is invalid.

    With `as_texts` they are compared as texts, as those of a store are, and 3, 3.0 and "3" are one class;
    otherwise they are all numbers or all texts. `part` and `first` name the rows in messages.
    """
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iub":
        numbers, places = np.unique(y, return_inverse=True)
        return (
            _merged([str(value) for value in numbers.tolist()], places)
            if as_texts
            else Labels(numbers, places)
        )
    values, places = _distinct(y.tolist() if isinstance(y, np.ndarray) else list(y), part, first)
    kinds = np.array([_kind(value) for value in values], dtype=np.int64)
    if (kinds == INVALID).any():
        row = int(np.argmax((kinds == INVALID)[places]))
        raise _invalid(values[places[row]], part, first + row)
    if not as_texts and {TEXT, NUMBER} <= {*kinds.tolist()}:
        row = int(np.argmax(kinds[places] == (NUMBER if kinds[places[0]] == TEXT else TEXT)))
        where = f"{part} has texts and numbers as labels, as in row {first + row:,}"
        raise BadPart(f"Unknown label type: {where}; give one kind.")
    known = np.cumsum(kinds != NONE) - 1  # the place of a label among those that are not missing
    known[kinds == NONE] = -1
    kept = [value for value, place in zip(values, known.tolist(), strict=True) if place >= 0]
    return _merged([label_text(value) for value in kept] if as_texts else kept, known[places])


def _merged(values: list[Any], places: np.ndarray) -> Labels:
    """Return labels sorted and without duplicates; a place of -1 stays."""
    distinct, new = np.unique(np.array(values), return_inverse=True)
    return Labels(distinct, np.append(new, -1)[places])


def _distinct(given: list[Any], part: str, first: int) -> tuple[list[Any], np.ndarray]:
    """Return the distinct labels as they were given, and which of them each row has."""
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(given))}
    except TypeError:  # a list or a dict
        row = next(row for row, value in enumerate(given) if not _is_hashable(value))
        raise _invalid(given[row], part, first + row) from None
    return list(numbers), np.fromiter(map(numbers.__getitem__, given), np.int64, len(given))


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _kind(value: Any) -> int:
    if value is None or type(value).__name__ == "NAType":  # that of a data frame
        return NONE
    if isinstance(value, str):
        return (TEXT if value else NONE) if len(value) <= LETTERS else INVALID
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return NUMBER if -(2**63) <= int(value) < 2**64 else INVALID
    if isinstance(value, float | np.floating):
        return NONE if np.isnan(value) else NUMBER if float(value).is_integer() else INVALID
    return INVALID


def _invalid(value: Any, part: str, row: int) -> BadPart:
    return BadPart(
        f"Unknown label type: row {row:,} of {part} has {value!r:.60} ({type(value).__name__}). Labels are "
        f"whole numbers, booleans, or texts of at most {LETTERS:,} characters."
    )
