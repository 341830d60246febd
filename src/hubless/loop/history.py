"""What a loop decided so far, as a table for people."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..stores.store import StoreError
from ..support.text import printable_lines
from .loop_journal import read_decisions, state_of

SHOWN = ("candidate over the original, this slice", "candidate over the original, all slices")


@dataclass(frozen=True)
class History:
    """All decisions of a loop, the first first; print it."""

    decisions: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"decisions": self.decisions}

    @property
    def serving(self) -> str:
        """What serves, in words."""
        number = self.decisions[-1].get("serving", 0)
        return f"version {number}" if number else "the original"

    def __str__(self) -> str:
        lines = [f"{'':>3} {'decided':<17}{'slices':<8}{'decision':<10}{'serves':<10}gain over the original"]
        for decision in self.decisions:
            head = f"{decision['number']:>3} {when(decision):<17}{slices_in_words(decision):<8}"
            serves = f"version {decision['serving']}" if decision.get("serving") else "original"
            lines.append(f"{head}{decision.get('decision', ''):<10}{serves:<10}{gain_in_words(decision)}")
            lines += [f"    {text}" for text in (decision.get("why", ""), *decision.get("notes", []))]
        return printable_lines([*lines, f"{self.serving.capitalize()} serves."])


def read_history(folder: str | os.PathLike[str]) -> History:
    """Return what the loop in a folder decided; StoreError where there is none.

    Examples
    --------
    >>> import json, numpy as np
    >>> from hubless.loop import read_history, watch_index
    >>> with open("log.jsonl", "w") as log:
    ...     log.writelines(json.dumps({"query": i, "item": i, "score": 1}) + "\\n" for i in range(20))
    >>> np.save("items.npy", np.eye(20))
    >>> how = {"queries": "items.npy", "slice_size": 20, "write": True}
    >>> step = watch_index("items.npy", "log.jsonl", "loop", **how)
    >>> read_history("loop").serving
    'the original'
    """
    decisions = read_decisions(Path(os.path.expanduser(folder)))
    if not decisions:
        raise StoreError(f"{folder} has no journal of a loop: `hubless watch --write` begins one.")
    state_of(decisions)  # refuses a damaged journal
    return History(decisions)


def when(decision: dict[str, Any]) -> str:
    """Return the time of a decision, to the minute."""
    try:
        time = datetime.fromisoformat(str(decision.get("time"))).astimezone(UTC)
    except ValueError:
        return "unknown"
    return f"{time:%Y-%m-%d %H:%M}"


def slices_in_words(decision: dict[str, Any]) -> str:
    """Return the slices that a decision closed: 4, or 2–4."""
    numbers = [entry["number"] for entry in decision.get("slices", [])]
    return "" if not numbers else f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def figure_of(decision: dict[str, Any], what: str) -> dict[str, Any] | None:
    """Return a figure of a decision by its name."""
    return next((figure for figure in decision.get("figures", []) if figure.get("what") == what), None)


def gain_in_words(decision: dict[str, Any]) -> str:
    """Return the gain of a candidate on the newest slice with its interval, where there was one."""
    figure = figure_of(decision, SHOWN[0])
    if figure is None or figure["low"] is None:
        return "" if figure is None else f"{figure['mean']:+.3f}"
    return f"{figure['mean']:+.3f} ({figure['low']:+.3f} to {figure['high']:+.3f})"
