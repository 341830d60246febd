"""Write the moved copy of a store: what it lacks, and not what it has already."""

from typing import Any

import numpy as np

from ..outofcore.dask.dask_files import write_moved
from ..stores.files.file_store import FileStore
from ..stores.store import Store, StoreError
from ..support.progress import step
from .before_reading import last_part
from .repair import UNMOVED, Repair

PASSES = 5  # over blue, while others write to it


def fill(blue: Store, green: Store, state: str, write: Any, notes: list[str]) -> tuple[str, dict[str, Any]]:
    """Write what green lacks and remove what blue lacks, until a pass over blue finds nothing to do.

    Return the state of blue when the two last agreed, and how many rows were written, removed and not moved.
    """
    written = removed = passes = 0
    is_complete = False
    while not is_complete and passes < (1 if green.is_written_whole else PASSES):
        state, passes = blue.state() if passes else state, passes + 1
        n_written, unmoved = write()
        n_removed = 0 if green.is_written_whole else _remove(blue, green)
        written, removed = written + n_written, removed + n_removed
        is_complete = not n_written and not n_removed
    if green.is_written_whole and blue.state() != state:
        raise StoreError(f"{blue.name} changed while it was read; nothing was written. Apply again.")
    if not is_complete and not green.is_written_whole:
        advice = "Pause the writers and apply again before you promote."
        if blue.can_reconcile:
            advice = "Promote with the model soon: it moves the rows that changed since."
        notes.append(f"rows of {blue.name} were still changing after {PASSES} passes. {advice}")
    by_reason = None if unmoved is None else dict(zip(UNMOVED, unmoved.tolist(), strict=True))
    return state, {"written": written, "removed": removed, "passes": passes, "unmoved": by_reason}


def unmoved_notes(model: Repair, unmoved: dict[str, int]) -> list[str]:
    """Return what a user should know of rows that are not moved."""
    words = {
        "no vector": "they have no vector, or NaN in it",
        "infinite": "they have infinite numbers",
        "too large": "they are too large: their squares overflow",
        "zero": "they are zero, and have no direction",
        "unknown class": f"the model does not know their {model.label}",
    }
    lost = "" if model.width == model.dimension else "; of another width, only a zero can be kept"
    return [
        f"{count:,} items are not moved: {words[reason]}{lost}." for reason, count in unmoved.items() if count
    ]


def write_rows(model: Repair, blue: Store, green: Store, count: int) -> tuple[int, np.ndarray]:
    """Return the number of rows that were written, and of those that are not moved, by reason."""
    written, unmoved = 0, np.zeros(len(UNMOVED), dtype=np.int64)
    green.begin_pass()
    with step(f"moving {count:,} rows into {last_part(green.name)}", count, "rows") as moving:
        for batch in blue.batches(model.columns):
            moved = model.move_batch(batch)
            outdated = green.outdated(batch, moved)
            if outdated.any():
                green.write(batch.take(outdated), moved[outdated])
            written += int(outdated.sum())
            unmoved += model.count_unmoved(batch)
            moving.update(len(batch.ids))
    return written, unmoved


def write_on_dask(model: Repair, blue: Store, green: FileStore, count: int) -> tuple[int, np.ndarray | None]:
    """Let the workers of a cluster do what `write_rows` does."""
    if green.is_done():
        return 0, None
    with step(f"moving {count:,} rows into {last_part(green.name)}", unit="parts") as moving:
        return write_moved(model, blue, green, moving)


def _remove(blue: Store, green: Store) -> int:
    missing = [ids[~blue.contains(ids)] for ids in green.ids()]
    for ids in missing:
        if len(ids):
            green.remove(ids)
    return sum(map(len, missing))
