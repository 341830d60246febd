"""The mark that everything carries which hubless moved."""

import json
from dataclasses import asdict, dataclass
from typing import Self

from ..support.untrusted_json import parse_json


@dataclass(frozen=True)
class Mark:
    """What a moved store carries, so that nothing is moved twice."""

    model: str  # hash of the model that moved it
    source: str  # name of the store that it was made from
    state: str  # `state()` of that store when the two last agreed
    done: bool  # whether all rows are written and the index is built
    original: str | None = None  # where the original is kept, once promoted
    changed: bool = False  # whether others wrote to it since, where that can be known
    width: int | None = None  # columns of its vectors, where those of the source have another number

    def to_json(self) -> str:
        """Return the mark as a text."""
        values = {name: value for name, value in asdict(self).items() if name != "width" or value is not None}
        return json.dumps({"hubless": 1, **values}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes | None) -> Self | None:
        """Return the mark in a text, or None for a text that is not ours."""
        try:
            values = parse_json(text or "null")
            if not isinstance(values, dict) or values.pop("hubless", None) != 1:
                return None
            mark = cls(**values)
        except (TypeError, ValueError):
            return None
        is_width = mark.width is None or (type(mark.width) is int and mark.width > 0)
        allowed = {"done": bool, "changed": bool, "original": str | None, "width": int | None}
        is_typed = all(isinstance(value, allowed.get(name, str)) for name, value in values.items())
        return mark if is_width and is_typed else None
