"""One step of a loop: what is new in the log, what it says, and what is done about it."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..repair.index_items import Source, are_unit, as_store, read_items
from ..repair.repair import Repair
from ..stores.checks import check_outside, path_lock
from ..stores.store import Store, StoreError
from ..support.credentials import without_secrets
from ..support.outputs import check_output, real_path
from ..support.progress import reports_steps
from ..support.text import short
from ..support.version import __version__
from .click_log import LogRow, read_log_rows
from .decision import KEEP, PROMOTE, Decision, SliceAnswers, decide, named
from .loop_journal import JOURNAL, close_decision, read_decisions, read_pending, state_of, write_pending
from .loop_state import ORIGINAL, LoopState, Slice, Version
from .positions import ETA
from .questions import Lookup, ask, understand
from .slice_score import FEWEST, Differences
from .slices import check_same_log, close_slices, learn_slices
from .versions import (
    keep_version,
    load_version,
    original_store,
    remove_versions,
    serve,
    serving_version,
)

SLICE, KEPT = 100, 3  # questions of a slice, versions that are kept
WAIT = "wait"


@reports_steps
def watch_index(
    source: Source,
    log: str | os.PathLike[str],
    folder: str | os.PathLike[str] = "loop",
    *,
    queries: Source | None = None,
    write: bool = False,
    slice_size: int = SLICE,
    keep: int = KEPT,
    leave_out: Sequence[int] = (),
    eta: float = ETA,
    random_state: int = 0,
    progress: bool | None = False,
) -> dict[str, Any]:
    """Make one step of a loop that learns from a log: keep what serves, promote a version, or roll back.

    A scheduler calls it again and again. Where the log has grown by a slice, a candidate is learned from all
    slices before, and tested on this one. Where it has not, nothing happens. A call that was killed is
    completed by the next.

    Parameters
    ----------
    source : name of a store, or Store
        The index that serves.
    log : path
        JSON lines or a table, which grows at its end: searches with what was shown and clicked, or
        judgements.
    folder : path
        Where the loop keeps its journal and its versions.
    queries : name of a store, or Store, optional
        The vectors of the queries that the log names by their ids.
    write : bool
        Whether to do what was decided, and to write it to the journal. By default nothing is written.
    slice_size : int
        Different queries with an answer that make a slice.
    keep : int
        Versions that are kept.
    leave_out : sequence of int
        Numbers of slices that are not learned from, from now on.
    eta : float
        How steeply attention is assumed to fall with the rank r: as r to the power −eta.
    random_state : int
        Seed of the folds that settings are chosen by.
    progress : bool or None
        Whether to show progress bars; None shows them on a terminal.

    Returns
    -------
    decision : dict
        "decision" ("wait", "keep", "promote" or "roll back"), "why", "serving", "slices", "candidate",
        "figures", "guards", "notes", "written", and more: a line of the journal

    Examples
    --------
    >>> import json, numpy as np
    >>> from hubless.loop import watch_index
    >>> with open("log.jsonl", "w") as log:
    ...     log.writelines(json.dumps({"query": i, "item": i, "score": 1}) + "\\n" for i in range(20))
    >>> np.save("items.npy", np.eye(20))
    >>> how = {"queries": "items.npy", "slice_size": 20, "write": True}
    >>> step = watch_index("items.npy", "log.jsonl", "loop", **how)
    >>> step["decision"], step["why"]
    ('keep', 'There are too few questions before this slice to learn from.')
    """
    _check_numbers(slice_size, keep, eta)
    store, place = as_store(source), real_path(folder)
    check_outside(store, place)
    if write:
        check_output(place)
        place.mkdir(parents=True, exist_ok=True)
    with path_lock(place / JOURNAL) if write else nullcontext():
        if write:
            store.recover()
            store.refresh()
        loop = _Loop(store, place, keep, write)
        pending = read_pending(place)
        if pending is not None:
            return loop.complete(pending)
        asked = None if queries is None else as_store(queries)
        loop.state = loop.state.without(leave_out)
        return loop.step(read_log_rows(log), asked, slice_size, eta, random_state)


def _check_numbers(slice_size: int, keep: int, eta: float) -> None:
    if slice_size < FEWEST or keep < 1 or not 0 <= eta <= 10:
        raise ValueError(
            f"a slice has {FEWEST} questions or more, 1 version or more is kept, and eta is from 0 to 10; "
            f"got slice_size={slice_size}, keep={keep} and eta={eta}."
        )


def _about_unknown(rows: list[LogRow], known: Lookup) -> list[str]:
    """Say how many new rows are left out, and where the first is."""
    left_out = [row.line for row in rows if not known.has(row)]
    if not left_out:
        return []
    count = "1 row is" if len(left_out) == 1 else f"{len(left_out):,} rows are"
    why = "the query, or every item, is unknown"
    return [f"{count} left out, since {why}; the first is line {left_out[0]:,}."]


class _Loop:
    """A loop in its folder, with the journal as it is."""

    def __init__(self, store: Store, folder: Path, keep: int, write: bool) -> None:
        self.store, self.folder, self.keep, self.write = store, folder, keep, write
        self.decisions = read_decisions(folder)
        of = self.decisions[-1].get("index") if self.decisions else None
        if of not in (None, without_secrets(store.name)):
            raise StoreError(
                f"{folder} is the folder of the loop of {short(of)}. Give {store.name} a folder of its own "
                "(folder, --folder)."
            )
        self.state = state_of(self.decisions)

    def step(
        self,
        rows: list[LogRow],
        queries: Store | None,
        slice_size: int,
        eta: float,
        random_state: int,
    ) -> dict[str, Any]:
        """Return the decision for what is new in the log, done where it is to be."""
        check_same_log(rows, self.state.slices)
        state, notes = self._as_it_serves()
        items = read_items(original_store(self.store))
        items = items.in_space("cosine") if are_unit(items.vectors) else items
        known = understand(rows, items, queries, eta)
        closed, n_open = close_slices(rows, known, state.slices, slice_size)
        notes += _about_unknown(rows[state.slices[-1].stop if state.slices else 0 :], known)
        if not closed:
            why = f"{n_open} of {slice_size} questions since the last slice: nothing is decided yet."
            return self._record(Decision(WAIT, why, state), closed, notes)
        state = replace(state, slices=(*state.slices, *closed))
        models = {
            version.number: load_version(self.folder, version)
            for version in state.versions
            if version.number in _needed(state)
        }
        look = SliceAnswers(items, ask(rows[closed[-1].start : closed[-1].stop], known), models)
        learn = partial(learn_slices, rows, state.slices, known, items, random_state)
        decision = decide(state, look, learn)
        return self._act(decision, closed, notes)

    def _as_it_serves(self) -> tuple[LoopState, list[str]]:
        """Return the state, with what the index serves in truth: somebody may have switched it by hand."""
        serving = serving_version(self.store, self.state)
        if serving == self.state.serving:
            return self.state, []
        note = f"{named(serving).capitalize()} serves, and not {named(self.state.serving)}: it was switched."
        return replace(self.state, serving=serving, over_serving=Differences(), doubt=None), [note]

    def _act(self, decision: Decision, closed: Sequence[Slice], notes: list[str]) -> dict[str, Any]:
        """Do what was decided, and write it down."""
        if decision.what == KEEP:
            record = self._record(decision, closed, notes)
            if self.write:
                close_decision(self.folder, record, len(self.decisions))
            return record
        otherwise = decision.state
        if decision.what == PROMOTE:
            decision.state = self._with_version(decision)
        record = self._record(decision, closed, notes)
        if not self.write:
            return record
        if decision.what == PROMOTE and decision.candidate is not None:
            keep_version(self.folder, decision.state.versions[-1], decision.candidate)
        write_pending(self.folder, {**record, "otherwise": otherwise.as_dict()})
        return self._finish(record, otherwise)

    def _with_version(self, decision: Decision) -> LoopState:
        """Return the state in which a candidate serves, with as many versions as are kept."""
        state, model = decision.state, decision.candidate
        assert model is not None
        version = Version(state.made + 1, model.hash, decision.learned, state.serving)
        state = replace(
            state, serving=version.number, made=version.number, over_serving=Differences(), doubt=None
        )
        last = [*state.versions, version][-self.keep :]
        needed = {version.number, version.before}
        kept = [each for each in (*state.versions, version) if each in last or each.number in needed]
        return replace(state, versions=tuple(kept))

    def complete(self, pending: dict[str, Any]) -> dict[str, Any]:
        """Complete a decision that a killed call has begun."""
        otherwise = pending.pop("otherwise", None)
        n = len(self.decisions)
        if pending.get("number") not in (n, n + 1):
            raise StoreError(f"{self.folder} has a decision to complete that is not the last. Restore it.")
        pending["notes"] = [
            *pending.get("notes", []),
            "An interrupted call was completed by the next.",
        ]
        if not self.write:
            return {**pending, "written": False}
        slices = [asdict(each) for each in self.state.slices]
        if pending["number"] == n + 1:
            slices += pending.get("slices", [])
        return self._finish(pending, LoopState.from_dict(otherwise, slices))

    def _finish(self, record: dict[str, Any], otherwise: LoopState) -> dict[str, Any]:
        """Make the index serve what a record says, and add it to the journal."""
        state = LoopState.from_dict(record["state"], [asdict(each) for each in otherwise.slices])
        ours = {version.model for each in (*self._earlier(), state) for version in each.versions}
        refusal = serve(self.store, self._model(state), ours)
        if refusal is not None:
            record |= {"decision": KEEP, "why": f"The candidate is held back by a guard: {refusal}."}
            record |= {"state": otherwise.as_dict(), "serving": otherwise.serving}
            write_pending(self.folder, {**record, "otherwise": otherwise.as_dict()})
            serve(self.store, self._model(otherwise), ours, guard=False)
            state = otherwise
        close_decision(self.folder, record, len(self.decisions))
        remove_versions(self.folder, state)
        return record

    def _earlier(self) -> list[LoopState]:
        """Return the states after all decisions, which name every version that was ever made."""
        return [LoopState.from_dict(decision["state"], []) for decision in self.decisions]

    def _model(self, state: LoopState) -> Repair | None:
        version = state.version(state.serving)
        return None if version is None else load_version(self.folder, version)

    def _record(self, decision: Decision, closed: Sequence[Slice], notes: list[str]) -> dict[str, Any]:
        """Return a line of the journal: first what a person reads, last what the next call needs."""
        model, state = decision.candidate, decision.state
        candidate = model and {
            "model": model.hash,
            "mover": model.learned["mover"],
            "chosen by": model.learned["chosen by"],
            "learned from": list(decision.learned),
            "questions": model.learned["queries"],
            "pairs": model.learned["n"],
        }
        return {
            "number": len(self.decisions) + 1,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "decision": decision.what,
            "why": decision.why,
            "serving": state.serving,
            "served before": self.state.serving,
            "index": without_secrets(self.store.name),
            "slices": [asdict(each) for each in closed],
            "candidate": candidate,
            "figures": decision.figures,
            "guards": decision.guards,
            "notes": notes,
            "hubless": __version__,
            "written": self.write and decision.what != WAIT,
            "state": state.as_dict(),
        }


def _needed(state: LoopState) -> set[int]:
    """Return the versions whose answers a decision needs."""
    serving = state.version(state.serving)
    before = ORIGINAL if serving is None else serving.before
    return {state.serving, before, ORIGINAL if state.doubt is None else state.doubt.version}
