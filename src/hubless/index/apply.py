"""From blue to green: build the moved index beside the one that serves, switch to it, switch back."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import __version__
from ..distributed.files import write_moved
from ..movers import Stay
from ..progress import bar_of
from ..stores.file_store import FileStore
from ..stores.store import Batch, Facts, Mark, Store, StoreError
from .collection import are_unit, collect, space_of
from .recall import compare_recall
from .repair import Repair

PASSES = 5  # over blue, while others write to it


def apply(
    model: Repair, blue: Store, name: str, *, progress: bool | None = False, on_dask: bool = False
) -> dict[str, Any]:
    """Build the store `name` beside blue, with every vector moved; blue is read and nothing else.

    Run it again after anything went wrong, or after rows were added: it writes what is missing. `on_dask`
    lets the workers of the current client move and write the files, which they must see.

    Returns
    -------
    report : dict with "target", "rows", "written", "removed", "passes", "metric", "notes"
    """
    blue.refresh()
    state = blue.state()  # before the first look at it
    facts = blue.facts()
    notes = check_movable(model, blue, facts)
    _check_rows_are_those(model, blue)
    green = blue.beside(name)
    if on_dask and not isinstance(green, FileStore):
        raise StoreError(f"{blue.name} is written by one process: leave --dask out.")
    mark = Mark(model.hash, blue.name, "", done=False)
    with green.lock():
        _check_nothing_is_lost(blue, green)
        green.begin(blue, mark)
        written = removed = passes = 0
        clean = False
        while not clean and passes < (1 if green.written_at_once else PASSES):
            state, passes = state if passes == 0 else blue.state(), passes + 1
            write: Any = _write_on_dask if on_dask else _write
            wrote, strange = write(model, blue, green, facts.count, progress)
            gone = 0 if green.written_at_once else _remove(blue, green)
            written, removed, clean = written + wrote, removed + gone, not wrote and not gone
        if green.written_at_once and blue.state() != state:
            raise StoreError(f"{blue.name} changed while it was read; nothing was made. Apply again.")
        if not clean and not green.written_at_once:
            notes.append(
                f"rows of {blue.name} were still changing after {PASSES} passes. Promote will ask for "
                "another apply; pause the writers for that."
            )
        if strange:
            notes.append(f"{strange:,} items stay where they are: the model knows no such {model.label}.")
        green.finish(blue, Mark(model.hash, blue.name, state, done=True))
        notes += compare_recall(blue, green) if written or removed else []
    return {
        "target": green.name,
        "rows": green.facts().count,
        "written": written,
        "removed": removed,
        "passes": passes,
        "metric": facts.metric or model.metric,
        "notes": notes,
        "hubless_version": __version__,
    }


def _check_rows_are_those(model: Repair, blue: Store) -> None:
    """Refuse to move single items by their row number in other data than was learned from."""
    if model.own is None or not blue.has_row_numbers():
        return
    here = collect(blue).in_space(model.metric).about()["fingerprint"]
    if here != model.facts.get("data", {}).get("fingerprint"):
        raise StoreError(
            f"the model moves some items by their row number, and {blue.name} is not the data it was learned "
            "from. Fit again; or give the items ids (--items, --id), then fit."
        )


def _check_nothing_is_lost(blue: Store, green: Store) -> None:
    """Refuse to build over what has served: rows that were added to it meanwhile are nowhere else."""
    mark = green.mark() if green.exists() else None
    if mark is None or mark.original is None:
        return
    added = sum(int((~blue.holds(ids)).sum()) for ids in green.ids())
    if added:
        raise StoreError(
            f"{green.name} has served, and {added:,} of its rows are not in {blue.name}: they would be lost. "
            "Give another name; or add them to the original, or remove this one, first."
        )


def promote(blue: Store, name: str) -> dict[str, Any]:
    """Let the name of blue serve the green store `name`; the original is kept."""
    blue.settle()
    green = blue.beside(name)
    mark = green.mark() if green.exists() else None
    if mark is None or not mark.done:
        told = "is not finished" if mark else "was not made by hubless" if green.exists() else "is not there"
        raise StoreError(f"{green.name} {told}. Run `hubless apply` to its end first.")
    if mark.source != blue.name:
        raise StoreError(f"{green.name} was made from {mark.source}, not from {blue.name}.")
    served = blue.mark()
    if served is not None and not (_is_cut_short(served) and served.model == mark.model):
        raise StoreError(f"{blue.name} is moved already; roll back first.")
    kept = blue.promote(green)
    return {"serving": blue.name, "moved_by": mark.model, "original": kept}


def _is_cut_short(mark: Mark) -> bool:
    """Whether a promote switched, but did not get to its end: what serves lacks its search index."""
    return mark.original is not None and not mark.done


def status(store: Store) -> dict[str, Any]:
    """What a name serves: an original, a moved index with its original kept, or a copy being built."""
    mark, facts = store.mark(), store.facts()
    told = "original"
    if mark is not None:
        told = "moved copy" if mark.done else "unfinished copy"
        if mark.original is not None:
            told = "serving moved, promote again to finish" if _is_cut_short(mark) else "serving moved"
            told += ", changed since" if mark.changed else ""
    kept = None if mark is None or mark.original is None else store.beside(mark.original).exists()
    return {
        "name": store.name,
        "status": told,
        "count": facts.count,
        "metric": facts.metric,
        "model": None if mark is None else mark.model,
        "source": None if mark is None else mark.source,
        "original": None if mark is None else mark.original,
        "original_is_there": kept,
    }


def rollback(store: Store) -> dict[str, Any]:
    """Let a promoted name serve its original again; the moved one is kept."""
    store.settle()
    mark = store.mark()
    if mark is None:
        raise StoreError(f"{store.name} serves what was never moved: there is nothing to roll back.")
    if mark.original is None:
        raise StoreError(
            f"{store.name} is a moved copy that was not promoted: there is nothing to roll back. Remove it "
            f"if you do not need it; {mark.source} was never changed."
        )
    original = store.beside(mark.original)
    added = sum(int((~original.holds(ids)).sum()) for ids in store.ids())
    kept = store.rollback()
    return {"serving": store.name, "moved_kept_as": kept, "added_since": added}


def check_movable(
    model: Repair, blue: Store, facts: Facts, batches: Iterable[Batch] | None = None
) -> list[str]:
    """Refuse what moving would harm; what else a user should know.

    `batches` are the rows to look at, by default all.
    """
    if isinstance(model.mover, Stay) and model.own is None:
        raise StoreError(
            "this model moves nothing: fit found that moving does not help here. Keep the index."
        )
    mark = blue.mark()
    if mark is not None:
        since = ""
        if mark.changed:
            since = f", and changed since (made anew from originals? then remove {blue.name}.hubless.json)"
        raise StoreError(
            f"{blue.name} is already moved, by model {mark.model[:12]}{since}. Nothing is moved twice: "
            + (f"apply to {mark.source}." if mark.original is None else "roll back first.")
        )
    if facts.dimension != model.dimension:
        raise StoreError(
            f"{blue.name} has vectors of {facts.dimension} columns, the model moves {model.dimension}."
        )
    if not facts.is_exact:
        raise StoreError(
            f"{blue.name} ({facts.kind}) keeps its vectors quantised: what it gives back is not what was put "
            "in. Move the original vectors and build it again from those."
        )
    return _check_metric(model, blue, facts.metric or model.metric, batches)


def _check_metric(model: Repair, blue: Store, asked: str, batches: Iterable[Batch] | None) -> list[str]:
    """A model for cosine is one for unit vectors by L2 and inner product too; none is for another metric."""
    if asked == model.metric:
        return []
    all_unit = True
    if asked == "ip" or model.metric == "cosine":
        for batch in blue.batches() if batches is None else batches:
            there = batch.vectors[np.isfinite(batch.vectors).all(axis=1) & batch.vectors.any(axis=1)]
            space_of(asked, there, blue.name)  # refuses inner product of vectors of other lengths
            all_unit &= are_unit(there)
    if model.metric != "cosine" or not all_unit:
        space = "cosine" if asked == "ip" else asked
        raise StoreError(
            f"{blue.name} compares by {asked}, the model was learned for {model.metric}. Fit one for {space}."
        )
    by = "inner product" if asked == "ip" else "L2"
    return [f"{blue.name} compares unit vectors by {by}: moved vectors are brought to length 1."]


def _write(model: Repair, blue: Store, green: Store, count: int, progress: bool | None) -> tuple[int, int]:
    """Rows that were written, and items of a class that the model does not know."""
    written = strange = 0
    with bar_of(progress, count, unit=" rows") as bar:
        for batch in blue.batches(model.columns):
            moved = model.move_batch(batch)
            stale = green.stale(batch, moved)
            if stale.any():
                green.write(batch.take(stale), moved[stale])
            written += int(stale.sum())
            strange += model.n_strange(batch)
            bar.update(len(batch.ids))
    return written, strange


def _write_on_dask(
    model: Repair, blue: Store, green: FileStore, count: int, progress: bool | None
) -> tuple[int, int]:
    """The same, by the workers of a cluster."""
    if green.is_done():
        return 0, 0
    with bar_of(progress, unit=" parts", desc="move") as bar:
        return write_moved(model, blue, green, bar)


def _remove(blue: Store, green: Store) -> int:
    removed = 0
    for ids in list(green.ids()):
        gone = ~blue.holds(ids)
        if gone.any():
            green.remove(ids[gone])
        removed += int(gone.sum())
    return removed
