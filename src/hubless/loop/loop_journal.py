"""The journal of a loop: `journal.jsonl`, one line a decision, which a person can read.

A decision that changes something is first written to `pending.json`, with what to do; then it is done; then
its line is added to the journal. A call that was killed in between leaves `pending.json`, and the next call
completes it: every step can be done twice.
"""

import json
import os
from pathlib import Path
from typing import Any

from ..stores.store import StoreError
from ..support.text import as_json, reason
from ..support.untrusted_json import parse_json, read_bounded, read_json
from ..support.writing import new_file, sync_folder
from .loop_state import LoopState

JOURNAL, PENDING, VERSIONS = "journal.jsonl", "pending.json", "versions"
MOST = 1 << 30  # bytes of a journal


def read_decisions(folder: Path) -> list[dict[str, Any]]:
    """Return all decisions, the first first; a last line that a killed call left unfinished is ignored."""
    file = folder / JOURNAL
    if not file.is_file():
        return []
    lines = read_bounded(file, MOST).split(b"\n")[:-1]
    decisions = []
    for number, line in enumerate(lines, 1):
        try:
            decision = parse_json(line)
            if not isinstance(decision, dict) or decision.get("number") != number:
                raise ValueError(f"expected decision {number}")
        except ValueError as error:
            raise StoreError(f"{file}, line {number}, is damaged: {reason(error)}. Restore it.") from error
        decisions.append(decision)
    return decisions


def state_of(decisions: list[dict[str, Any]]) -> LoopState:
    """Return the state after decisions."""
    if not decisions:
        return LoopState()
    slices = [entry for decision in decisions for entry in decision.get("slices", [])]
    return LoopState.from_dict(decisions[-1].get("state"), slices)


def read_pending(folder: Path) -> dict[str, Any] | None:
    """Return the decision that a killed call did not complete; None where there is none."""
    file = folder / PENDING
    if not file.is_file():
        return None
    decision = read_json(file)
    if not isinstance(decision, dict):
        raise StoreError(f"{file} is damaged. Remove it; `hubless status` says what the index serves.")
    return decision


def write_pending(folder: Path, decision: dict[str, Any]) -> None:
    """Write what is about to be done, on the disk."""
    with new_file(folder / PENDING, sync=True) as file:
        file.write(_line(decision))
    sync_folder(folder)


def close_decision(folder: Path, decision: dict[str, Any], n_before: int) -> None:
    """Add a decision to the journal, unless it is there already, and remove what was pending."""
    if decision["number"] == n_before + 1:
        _append(folder / JOURNAL, _line(decision))
        sync_folder(folder)
    (folder / PENDING).unlink(missing_ok=True)
    sync_folder(folder)


def _append(path: Path, line: bytes) -> None:
    """Add a line, in the place of an unfinished one."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o666), "r+b") as file:
        content = file.read()
        file.seek(content.rfind(b"\n") + 1)
        file.truncate()
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _line(decision: dict[str, Any]) -> bytes:
    return (json.dumps(as_json(decision), ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "replace"
    )
