"""What a loop knows from one call to the next; the last line of its journal has all of it."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from ..stores.store import StoreError
from .slice_score import Differences

ORIGINAL = 0  # the number of the version that is the index as it was


@dataclass(frozen=True)
class Slice:
    """Consecutive rows of the log, which are tested on first and learned from later."""

    number: int
    start: int  # first row
    stop: int  # last row + 1
    digest: str  # of these rows
    lines: tuple[int, int]  # first and last line in the file
    dates: tuple[float, float] | None  # of the first and the last row, in seconds since 1970
    questions: int
    pairs: int


@dataclass(frozen=True)
class Version:
    """A model that the loop promoted."""

    number: int
    model: str  # its hash
    learned: tuple[int, ...]  # numbers of the slices that it learned from
    before: int  # the version that served before, or ORIGINAL

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.number:04d}-{self.model[:12]}"


@dataclass(frozen=True)
class Doubt:
    """A version that one slice spoke against: the next slice says which of the two was wrong."""

    version: int
    slice: int


@dataclass(frozen=True)
class LoopState:
    """What a loop knows: what serves, which versions and slices there are, and the evidence so far."""

    serving: int = ORIGINAL
    versions: tuple[Version, ...] = ()
    slices: tuple[Slice, ...] = ()
    left_out: tuple[int, ...] = ()  # numbers of slices that are not learned from
    accepted: tuple[int, ...] = ()  # of slices in the last candidate that was not visibly worse
    doubt: Doubt | None = None
    over_original: Differences = field(default_factory=Differences)  # of candidates
    over_serving: Differences = field(default_factory=Differences)  # of candidates, since this one serves
    made: int = 0  # versions that were ever made

    def version(self, number: int) -> Version | None:
        """Return a version by its number; None for the original, and for one that is no longer kept."""
        return next((version for version in self.versions if version.number == number), None)

    @property
    def rows(self) -> int:
        """How many rows of the log are in slices."""
        return self.slices[-1].stop if self.slices else 0

    def trusted(self, before: int) -> list[int]:
        """Return the numbers of slices to learn from, before a slice."""
        return [
            each.number for each in self.slices if each.number < before and each.number not in self.left_out
        ]

    def without(self, slices: Any) -> Self:
        """Return the state with more slices left out."""
        return replace(self, left_out=tuple(sorted({*self.left_out, *slices})))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data; slices are in the lines of their own decisions."""
        values = asdict(self)
        del values["slices"]
        return values

    @classmethod
    def from_dict(cls, values: Any, slices: Any) -> Self:
        """Return the state in plain data; StoreError where it is none."""
        try:
            doubt = values["doubt"]
            state = cls(
                _whole(values["serving"]),
                tuple(_version(entry) for entry in values["versions"]),
                tuple(_slice(entry) for entry in slices),
                tuple(map(_whole, values["left_out"])),
                tuple(map(_whole, values["accepted"])),
                None if doubt is None else Doubt(_whole(doubt["version"]), _whole(doubt["slice"])),
                _evidence(values["over_original"]),
                _evidence(values["over_serving"]),
                _whole(values["made"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(
                f"the journal of the loop is damaged ({type(error).__name__}: {error}). Restore it from a "
                "backup; or roll the index back, and give another folder."
            ) from error
        return state


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


def _version(entry: Any) -> Version:
    model = _text(entry["model"])
    if len(model) != 64 or set(model) - set("0123456789abcdef"):
        raise ValueError("a model has no hash")
    learned = tuple(map(_whole, entry["learned"]))
    return Version(_whole(entry["number"]), model, learned, _whole(entry["before"]))


def _slice(entry: Any) -> Slice:
    first, last = map(_whole, entry["lines"])
    dates = entry["dates"]
    numbers = {name: _whole(entry[name]) for name in ("number", "start", "stop", "questions", "pairs")}
    when = None if dates is None else (float(dates[0]), float(dates[1]))
    return Slice(digest=_text(entry["digest"]), lines=(first, last), dates=when, **numbers)


def _evidence(entry: Any) -> Differences:
    return Differences(
        _whole(entry["n"]), float(entry["total"]), float(entry["squares"]), _whole(entry["looks"])
    )
