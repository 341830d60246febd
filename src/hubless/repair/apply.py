"""Build the moved index beside the one that serves, switch to it, switch back.

This is a blue/green deployment: "blue" is the store that serves, "green" the moved copy that is built.
"""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from ..outofcore.dask.engine import cluster
from ..stores.checks import check_unchanged
from ..stores.files.file_store import FileStore
from ..stores.reconcile import Reconcile
from ..stores.store import Mark, Store, StoreError
from ..support.progress import end_dry_run, is_dry_run, reports_steps, step
from ..support.version import __version__
from .before_reading import check_named, last_part
from .build_copy import fill, unmoved_notes, write_on_dask, write_rows
from .index_items import Model, Source, as_repair, as_store
from .late_rows import reconcile_by, reconcile_with
from .movable import check_movable, check_nothing_is_lost, check_same_rows, count_missing
from .recall import compare_recall


@reports_steps
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
        "target", "rows", "written", "removed", "passes", "unmoved", "metric", "notes", "hubless_version".
        "unmoved" has the number of rows that are not moved, for each reason; None where nothing was read.

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> repair.apply_index(model, "items.npy", "moved.npy")["written"]
    90
    >>> bool(np.load("items.npy").std() > np.load("moved.npy").std())  # the original is only read
    True
    """
    repair, blue = as_repair(model), as_store(source)
    blue.refresh()
    blue = blue.pinned()  # a promote beside this must not make it read, and move again, what was moved
    state = blue.state()  # before its rows are read
    facts = blue.facts()
    check_movable(repair, blue, facts, batches=[])
    check_named(blue, facts, repair.columns)
    green = blue.sibling(target)
    if dask is not None and not isinstance(green, FileStore):
        raise StoreError(f"{blue.name} is not made of files, so one process writes it: leave out --dask.")
    width = None if repair.width == facts.dimension else repair.width
    mark = Mark(repair.hash, blue.name, "", done=False, width=width)
    green.check_target(blue, mark)
    end_dry_run(f"building {green.name}")
    with nullcontext() if dask is None else cluster(dask), green.lock():
        with step(f"checking {facts.count:,} rows of {last_part(blue.name)}"):
            notes = check_movable(repair, blue, facts)
        check_same_rows(repair, blue)
        check_nothing_is_lost(blue, green)
        green.begin(blue, mark)
        write: Any = write_rows if dask is None else write_on_dask
        write = partial(write, repair, blue, green, facts.count)
        state, counts = fill(blue, green, state, write, notes)
        notes += unmoved_notes(repair, counts["unmoved"] or {})
        mark = replace(mark, state=state, done=True)
        if green.can_reconcile:
            late = reconcile_with(repair, blue, facts.metric or repair.stored_metric)
            state, n_late = green.catch_up(blue, mark, late)
            mark, counts["written"] = replace(mark, state=state), counts["written"] + n_late
        with step(f"completing {last_part(green.name)}, with its search index"):
            green.finish(blue, mark)
        with step("comparing what the two indexes find"):
            notes += compare_recall(blue, green) if counts["written"] or counts["removed"] else []
    return {
        "target": green.name,
        "rows": green.facts().count,
        **counts,
        "metric": facts.metric or repair.metric,
        "notes": notes,
        "hubless_version": __version__,
    }


def promote_index(
    source: Source,
    target: str,
    model: Model | None = None,
    *,
    max_rows: int = Reconcile.rows,
    max_wait: float = Reconcile.seconds,
) -> dict[str, Any]:
    """Switch to the moved index under the name of the original, in one step; the original is kept.

    Parameters
    ----------
    source : name of a store, or Store
    target : str
        What was given to `apply_index`.
    model : folder, Repair or mover, optional
        The model that moved it. With it, rows of a PostgreSQL table that changed since are moved, too: most
        while others write, the last ones while their writers wait. Without it, and in other stores, such
        changes are an error.
    max_rows, max_wait : int, float
        How many rows may be moved while writers wait, and for how many seconds they may wait; beyond that,
        StoreError, and the original serves as before.

    Returns
    -------
    result : dict
        "serving": the name, "moved_by": the hash of the model, "original": the name of the original,
        "note": what to know of a switch that is not a single step, or None

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> _ = repair.apply_index(model, "items.npy", "moved.npy")
    >>> kept = repair.promote_index("items.npy", "moved.npy")["original"]
    >>> bool((np.load(kept) == X).all())
    True
    """
    blue = as_store(source)
    _recover(blue)
    blue.facts()  # refuses a source whose vector column is not named, which the way back needs
    green = blue.sibling(target)
    mark, served_mark = green.mark() if green.exists() else None, blue.mark()
    if mark is None and served_mark is not None and served_mark.original is not None and not green.exists():
        raise StoreError(
            f"{green.name} does not exist, and {blue.name} serves a moved copy, by model "
            f"{served_mark.model[:12]}: an earlier promote may have completed. To undo it, roll back."
        )
    if mark is None or not mark.done:
        unmarked = "was not made by hubless" if green.exists() else "does not exist"
        state = unmarked if mark is None else "is not finished"
        raise StoreError(f"{green.name} {state}. Run `hubless apply` to its end first.")
    if mark.source != blue.name:
        raise StoreError(f"{green.name} was made from {mark.source}, not from {blue.name}.")
    if served_mark is not None and not (_is_interrupted(served_mark) and served_mark.model == mark.model):
        raise StoreError(f"{blue.name} is moved already; roll back first.")
    late = () if model is None else reconcile_by(as_repair(model), blue, mark, max_rows, max_wait)
    if is_dry_run() and served_mark is None and not late:
        check_unchanged(blue, green)  # as the switch itself does
    with step(f"switching {blue.name} to {last_part(green.name)}"):
        kept = blue.promote(green, *late)
    return {"serving": blue.name, "moved_by": mark.model, "original": kept, "note": blue.switch_note}


def rollback_index(source: Source) -> dict[str, Any]:
    """Switch back to the original under the same name, in one step; the moved index is kept.

    Returns
    -------
    result : dict
        "serving": the name, "moved_kept_as": the name of the moved index, "added_since": the number of rows
        that were added to it meanwhile, which the original lacks, "note": as of `promote_index`

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> from hubless.movers import MoveLabeled
    >>> X, y = np.random.default_rng(0).standard_normal((90, 8)), np.arange(90) % 3
    >>> np.save("items.npy", X)
    >>> model = repair.Repair(MoveLabeled().fit(X, y))
    >>> _ = repair.apply_index(model, "items.npy", "moved.npy")
    >>> _ = repair.promote_index("items.npy", "moved.npy")
    >>> _ = repair.rollback_index("items.npy")
    >>> bool((np.load("items.npy") == X).all())
    True
    """
    store = as_store(source)
    _recover(store)
    mark = store.mark()
    if mark is None:
        raise StoreError(f"{store.name} serves its original vectors: there is nothing to roll back.")
    if mark.original is None:
        raise StoreError(f"{store.name} is a copy that was not promoted: there is nothing to roll back.")
    original = store.sibling(mark.original)
    if is_dry_run():
        original.facts()  # refuses one that is gone, as the switch itself does
    with step(f"switching {store.name} back to {last_part(original.name)}"):
        added = count_missing(store, original)
        kept = store.rollback()
    return {"serving": store.name, "moved_kept_as": kept, "added_since": added, "note": store.switch_note}


def recover_index(source: Source) -> dict[str, Any]:
    """Complete or undo a switch that was interrupted; nothing is changed where there was none.

    `promote_index` and `rollback_index` do this first, too.

    Returns
    -------
    result : dict
        "name", "recovered": whether there was something to do, and what `index_status` returns

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> np.save("items.npy", np.eye(3, dtype=np.float32))
    >>> repair.recover_index("items.npy")["recovered"]  # nothing was interrupted
    False
    """
    store = as_store(source)
    recovered = _recover(store)
    store.refresh()
    return {"recovered": recovered, **index_status(store)}


def index_status(source: Source) -> dict[str, Any]:
    """Return whether an index is an original or a moved one, and which model moved it.

    Returns
    -------
    result : dict
        "name", "status", "interrupted": whether a switch was interrupted or is happening now, "count",
        "dimension", "metric", "model", "source", "original", "original_is_there"

    Examples
    --------
    >>> import numpy as np
    >>> from hubless import repair
    >>> np.save("items.npy", np.eye(3, dtype=np.float32))
    >>> repair.index_status("items.npy")["status"]
    'original'
    """
    store = as_store(source)
    facts, mark = store.facts(), store.mark()
    result = {"name": store.name, "status": "original", "interrupted": store.is_interrupted()}
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


def _recover(store: Store) -> bool:
    """Complete or undo an interrupted switch; say whether there was one. A dry run ends before it does."""
    if is_dry_run() and store.is_interrupted():
        end_dry_run(f"completing or undoing the interrupted switch of {store.name}")
    return False if is_dry_run() else store.recover()


def _is_interrupted(mark: Mark) -> bool:
    """Return whether a promote switched but was interrupted: what serves lacks its search index."""
    return mark.original is not None and not mark.done
