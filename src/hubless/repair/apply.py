"""Build the moved index beside the one that serves, switch to it, switch back.

This is a blue/green deployment: "blue" is the store that serves, "green" the moved copy that is built.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from ..outofcore.dask.dask_files import write_moved
from ..outofcore.dask.engine import cluster
from ..stores.files.file_store import FileStore
from ..stores.store import Batch, Facts, Mark, Store, StoreError
from ..support.progress import progress_bar
from ..support.version import __version__
from .index_items import (
    Model,
    Source,
    are_unit,
    as_repair,
    as_store,
    check_dimension,
    check_original,
    read_items,
    space_of,
)
from .recall import compare_recall
from .repair import Repair

PASSES = 5  # over blue, while others write to it


def apply_index(
    model: Model, source: Source, target: str, *, dask: str | None = None, progress: bool | None = False
) -> dict[str, Any]:
    """Build the moved index beside the one that serves, which is only read.

    Called again after an interruption, it resumes in a database, and writes a file from the start. Called
    again after rows were added, changed or removed, it writes the differences, or the whole file.

    Parameters
    ----------
    model : folder, Repair or mover
    source : name of a store, or Store
    target : str
        File, table or collection to create, in the same place as the source.
    dask : str, optional
        Address of a running Dask scheduler whose workers move and write the files, which they must have
        access to; "" starts a cluster on this machine.
    progress : bool or None
        Whether to show a progress bar; None shows one on a terminal.

    Returns
    -------
    result : dict
        "target", "rows", "written", "removed", "passes", "metric", "notes", "hubless_version"
    """
    repair, blue = as_repair(model), as_store(source)
    blue.refresh()
    state = blue.state()  # before its rows are read
    facts = blue.facts()
    notes = check_movable(repair, blue, facts)
    _check_same_rows(repair, blue)
    green = blue.sibling(target)
    if dask is not None and not isinstance(green, FileStore):
        raise StoreError(f"{blue.name} is not made of files, so one process writes it: leave out --dask.")
    with nullcontext() if dask is None else cluster(dask), green.lock():
        _check_nothing_is_lost(blue, green)
        width = None if repair.width == facts.dimension else repair.width
        green.begin(blue, Mark(repair.hash, blue.name, "", done=False, width=width))
        write: Any = _write if dask is None else _write_on_dask
        write = partial(write, repair, blue, green, facts.count, progress)
        state, counts = _fill(blue, green, state, write, repair.label, notes)
        green.finish(blue, Mark(repair.hash, blue.name, state, done=True, width=width))
        notes += compare_recall(blue, green) if counts["written"] or counts["removed"] else []
    return {
        "target": green.name,
        "rows": green.facts().count,
        **counts,
        "metric": facts.metric or repair.metric,
        "notes": notes,
        "hubless_version": __version__,
    }


def promote_index(source: Source, target: str) -> dict[str, Any]:
    """Switch to the moved index under the name of the original, in one step; the original is kept.

    Returns
    -------
    result : dict
        "serving": the name, "moved_by": the hash of the model, "original": the name of the original
    """
    blue = as_store(source)
    blue.recover()
    green = blue.sibling(target)
    mark = green.mark() if green.exists() else None
    if mark is None or not mark.done:
        unmarked = "was not made by hubless" if green.exists() else "does not exist"
        state = unmarked if mark is None else "is not finished"
        raise StoreError(f"{green.name} {state}. Run `hubless apply` to its end first.")
    if mark.source != blue.name:
        raise StoreError(f"{green.name} was made from {mark.source}, not from {blue.name}.")
    served_mark = blue.mark()
    if served_mark is not None and not (_is_interrupted(served_mark) and served_mark.model == mark.model):
        raise StoreError(f"{blue.name} is moved already; roll back first.")
    return {"serving": blue.name, "moved_by": mark.model, "original": blue.promote(green)}


def rollback_index(source: Source) -> dict[str, Any]:
    """Switch back to the original under the same name, in one step; the moved index is kept.

    Returns
    -------
    result : dict
        "serving": the name, "moved_kept_as": the name of the moved index, "added_since": the number of rows
        that were added to it meanwhile, which the original lacks
    """
    store = as_store(source)
    store.recover()
    mark = store.mark()
    if mark is None:
        raise StoreError(f"{store.name} serves its original vectors: there is nothing to roll back.")
    if mark.original is None:
        raise StoreError(f"{store.name} is a copy that was not promoted: there is nothing to roll back.")
    added = _count_missing(store, store.sibling(mark.original))
    return {"serving": store.name, "moved_kept_as": store.rollback(), "added_since": added}


def index_status(source: Source) -> dict[str, Any]:
    """Return whether an index is an original or a moved one, and which model moved it.

    Returns
    -------
    result : dict
        "name", "status", "count", "dimension", "metric", "model", "source", "original", "original_is_there"
    """
    store = as_store(source)
    mark, facts = store.mark(), store.facts()
    result = {"name": store.name, "status": "original"}
    result |= {name: getattr(facts, name) for name in ("count", "dimension", "metric")}
    if mark is None:
        return {**result, **dict.fromkeys(("model", "source", "original", "original_is_there"))}
    status, is_there = "moved copy" if mark.done else "unfinished copy", None
    if mark.original is not None:
        is_there = store.sibling(mark.original).exists()
        status = "serving moved, promote again to finish" if _is_interrupted(mark) else "serving moved"
        status += ", changed since" if mark.changed else ""
    result |= {"status": status, "model": mark.model, "source": mark.source}
    return {**result, "original": mark.original, "original_is_there": is_there}


def _is_interrupted(mark: Mark) -> bool:
    """Return whether a promote switched but was interrupted: what serves lacks its search index."""
    return mark.original is not None and not mark.done


# --- what is refused ----------------------------------------------------------------------------------------


def check_movable(
    model: Repair, blue: Store, facts: Facts, batches: Iterable[Batch] | None = None
) -> list[str]:
    """Refuse a store that moving would harm, and return notes for the user.

    `batches` are the rows to check, by default all.
    """
    if model.moves_nothing:
        raise StoreError("this model moves nothing: not moving was the best choice. Keep the index as it is.")
    check_original(blue, facts)
    check_dimension(model, facts.dimension, blue.name)
    notes = [] if model.query_note is None else [model.query_note]
    metric, all_unit = facts.metric or model.stored_metric, True
    if model.stored_metric == "l2" != metric:
        raise StoreError(f"{blue.name} compares by {metric}, the model is for l2. Fit one for this metric.")
    if metric == model.metric:
        return notes
    if metric == "ip" or model.metric == "cosine":  # a model for cosine also serves unit vectors
        for batch in blue.batches() if batches is None else batches:
            whole = batch.vectors[np.isfinite(batch.vectors).all(axis=1) & batch.vectors.any(axis=1)]
            space_of(metric, whole, blue.name)  # refuses inner product of vectors of other lengths
            all_unit &= are_unit(whole)
    if model.metric != "cosine" or not all_unit:
        raise StoreError(
            f"{blue.name} compares by {metric}, the model is for {model.metric}. Fit one for this metric."
        )
    if model.stored_metric == "l2":  # of corrected items, which have other lengths
        return notes
    by = "inner product" if metric == "ip" else "L2"
    return [f"{blue.name} compares unit vectors by {by}: moved vectors are brought to length 1.", *notes]


def _check_same_rows(model: Repair, blue: Store) -> None:
    """Refuse steps of single items by row number in data other than what the model learned from."""
    if model.steps is None or not blue.ids_are_row_numbers():
        return
    if read_items(blue).in_space(model.metric).about()["fingerprint"] != model.fingerprint:
        raise StoreError(
            f"the model moves some items by their row number, and {blue.name} is not the data it was learned "
            "from. Fit again; or give the items ids (--items, --id), then fit."
        )


def _check_nothing_is_lost(blue: Store, green: Store) -> None:
    """Refuse to build over a store that has served: rows that were added to it are nowhere else."""
    mark = green.mark() if green.exists() else None
    if mark is None or mark.original is None:
        return
    added = _count_missing(green, blue)
    if added:
        raise StoreError(
            f"{green.name} has served, and {added:,} of its rows are not in {blue.name}: they would be lost. "
            "Give another name; or first add them to the original, or remove this one."
        )


def _count_missing(store: Store, other: Store) -> int:
    """Count the rows of a store that another one lacks."""
    return sum(int((~other.contains(ids)).sum()) for ids in store.ids())


# --- what is written ----------------------------------------------------------------------------------------


def _fill(
    blue: Store, green: Store, state: str, write: Any, label: str | None, notes: list[str]
) -> tuple[str, dict[str, int]]:
    """Write what green lacks and remove what blue lacks, until a pass over blue finds nothing to do.

    Return the state of blue when the two last agreed, and how many rows were written and removed.
    """
    written = removed = passes = 0
    is_complete = False
    while not is_complete and passes < (1 if green.is_written_whole else PASSES):
        state, passes = blue.state() if passes else state, passes + 1
        n_written, unknown = write()
        n_removed = 0 if green.is_written_whole else _remove(blue, green)
        written, removed = written + n_written, removed + n_removed
        is_complete = not n_written and not n_removed
    if green.is_written_whole and blue.state() != state:
        raise StoreError(f"{blue.name} changed while it was read; nothing was written. Apply again.")
    if not is_complete and not green.is_written_whole:
        notes.append(
            f"rows of {blue.name} were still changing after {PASSES} passes. Pause the writers and "
            "apply again before you promote."
        )
    if unknown:
        notes.append(f"{unknown:,} items are not moved: the model does not know their {label}.")
    return state, {"written": written, "removed": removed, "passes": passes}


def _write(model: Repair, blue: Store, green: Store, count: int, progress: bool | None) -> tuple[int, int]:
    """Return the number of rows that were written, and of items of unknown classes."""
    written = unknown = 0
    with progress_bar(progress, count, unit=" rows") as bar:
        for batch in blue.batches(model.columns):
            moved = model.move_batch(batch)
            outdated = green.outdated(batch, moved)
            if outdated.any():
                green.write(batch.take(outdated), moved[outdated])
            written += int(outdated.sum())
            unknown += model.n_unknown(batch)
            bar.update(len(batch.ids))
    return written, unknown


def _write_on_dask(
    model: Repair, blue: Store, green: FileStore, count: int, progress: bool | None
) -> tuple[int, int]:
    """Let the workers of a cluster do what `_write` does."""
    if green.is_done():
        return 0, 0
    with progress_bar(progress, unit=" parts", desc="move") as bar:
        return write_moved(model, blue, green, bar)


def _remove(blue: Store, green: Store) -> int:
    removed = 0
    for ids in list(green.ids()):
        missing = ~blue.contains(ids)
        if missing.any():
            green.remove(ids[missing])
        removed += int(missing.sum())
    return removed
